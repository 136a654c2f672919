//! `diff`: whether two files say the same.

use crate::args::Diff;
use crate::output::{self, Out, Outcome};
use hyperslab::OpenOptions;
use hyperslab::diff::{DiffOptions, diff};

/// Compares two files; false if they differ.
pub(crate) fn run(arguments: &Diff, open: &OpenOptions, out: &mut Out) -> Outcome<bool> {
    let (a, b) = (output::open(arguments.a.clone(), open)?, output::open(arguments.b.clone(), open)?);
    let mut options = DiffOptions::default();
    options.rtol = arguments.rtol;
    options.atol = arguments.atol;
    options.nan_equal = arguments.nan_equal;
    let mut printed = Ok(());
    let same = diff(&a, &b, &options, &mut |difference| {
        if printed.is_ok() && !arguments.quiet {
            printed = out.line(&difference);
        }
    })?;
    printed?;
    Ok(same)
}
