//! `ls`.

use crate::args::Ls;
use crate::output::{Failure, Out, Outcome};
use hyperslab::OpenOptions;

pub(crate) fn run(_: &Ls, _: &OpenOptions, _: &mut Out) -> Outcome<()> {
    Err(Failure::Other("ls is not there yet".into()))
}
