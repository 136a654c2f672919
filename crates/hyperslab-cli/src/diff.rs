//! `diff`: whether two files say the same.

use crate::args::{At, Diff};
use crate::output::{self, Out, Outcome};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::{Address, OpenOptions};

/// Compares two files; false if they differ.
pub(crate) fn run(arguments: &Diff, open: &OpenOptions, out: &mut Out) -> Outcome<bool> {
    let second = arguments.b.as_ref().unwrap_or(&arguments.a);
    if arguments.at.len() > 2 || arguments.b.is_none() && arguments.at.len() < 2 {
        return Err(hyperslab::Error::invalid("two versions, of one file or of two, are compared").into());
    }
    let at = |address: &Address, version: usize| {
        let version = At { at: arguments.at.get(version).cloned(), of: None };
        output::open_at(address.clone(), &version, open)
    };
    let (a, b) = (at(&arguments.a, 0)?, at(second, 1)?);
    let mut options = DiffOptions::default();
    options.rtol = arguments.rtol;
    options.atol = arguments.atol;
    options.nan_equal = arguments.nan_equal;
    options.loose = arguments.loose;
    let mut printed = Ok(());
    let same = diff(&a, &b, &options, &mut |difference| {
        if printed.is_ok() && !arguments.quiet {
            printed = out.line(&difference);
        }
    })?;
    printed?;
    Ok(same)
}
