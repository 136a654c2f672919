//! `info`.

use crate::args::Info;
use crate::output::{Failure, Out, Outcome};
use hyperslab::OpenOptions;

pub(crate) fn run(_: &Info, _: &OpenOptions, _: &mut Out) -> Outcome<()> {
    Err(Failure::Other("info is not there yet".into()))
}
