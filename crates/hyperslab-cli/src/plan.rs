//! `plan`: what a read would do.

use crate::args::Plan;
use crate::json::Json;
use crate::output::{Out, Outcome};
use hyperslab::OpenOptions;

pub(crate) fn run(arguments: &Plan, options: &OpenOptions, out: &mut Out) -> Outcome<()> {
    let address = &arguments.address;
    let file = crate::output::open_at(address.clone(), &arguments.version, options)?;
    let (array, selection) = crate::get::array(&file, address)?;
    let plan = array.plan(selection)?;
    arguments.stats.say(file.traffic());
    if arguments.json {
        return out.line(Json::map(plan.summary()?.entries().map(|(name, n)| (name, Json::from(n)))));
    }
    out.line(plan.to_string().trim_end())
}
