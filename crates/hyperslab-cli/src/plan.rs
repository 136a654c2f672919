//! `plan`: what a read would do.

use crate::args::Plan;
use crate::output::{Out, Outcome};
use hyperslab::{Address, OpenOptions};

pub(crate) fn run(arguments: &Plan, options: &OpenOptions, out: &mut Out) -> Outcome<()> {
    let address = Address::locate(&arguments.address);
    let file = crate::output::open(address.clone(), options)?;
    let (array, selection) = crate::get::array(&file, &address)?;
    let plan = array.plan(selection)?.to_string();
    out.line(plan.trim_end())
}
