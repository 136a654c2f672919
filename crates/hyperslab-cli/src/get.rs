//! `get`.

use crate::args::Get;
use crate::output::{Failure, Out, Outcome};
use hyperslab::OpenOptions;

pub(crate) fn run(_: &Get, _: &OpenOptions, _: &mut Out) -> Outcome<()> {
    Err(Failure::Other("get is not there yet".into()))
}
