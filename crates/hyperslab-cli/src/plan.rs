//! `plan`.

use crate::args::Plan;
use crate::output::{Failure, Out, Outcome};
use hyperslab::OpenOptions;

pub(crate) fn run(_: &Plan, _: &OpenOptions, _: &mut Out) -> Outcome<()> {
    Err(Failure::Other("plan is not there yet".into()))
}
