//! What the text behind `--at` means.

use super::{Timestamp, Version, Versions};
use crate::error::{ErrorKind, Result};

/// A name comes first: a version may be called like a number or a time.
pub(super) fn pick(versions: &Versions, text: &str) -> Result<Version> {
    let missing = match versions.get(text) {
        Err(e) if e.kind() == ErrorKind::NotFound => e,
        found => return found,
    };
    let back = if text == "0" { Some(0) } else { text.strip_prefix('-').and_then(|n| n.parse::<u64>().ok()) };
    if let Some(back) = back {
        return versions.back(back);
    }
    match Timestamp::parse(text)? {
        Some(time) => versions.at_time(&time),
        None => Err(missing),
    }
}
