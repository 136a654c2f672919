//! The messages of object headers, parsed from their bytes (specification, section IV.A.2).

pub mod external;
pub mod layout;

use super::parse::Cursor;
use crate::error::Result;
use crate::shape::to_usize;
use bytes::Bytes;

/// Takes `length` bytes at the cursor, which runs over `bytes`, without copying.
pub(crate) fn take_bytes(bytes: &Bytes, c: &mut Cursor<'_>, length: u64) -> Result<Bytes> {
    let start = c.position();
    let length = to_usize(length)?;
    c.skip(length)?;
    // The cursor runs over the same bytes; a shorter buffer gives an empty part instead of a panic.
    Ok(if start + length <= bytes.len() { bytes.slice(start..start + length) } else { Bytes::new() })
}
