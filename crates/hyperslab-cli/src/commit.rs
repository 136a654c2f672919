//! `commit`: a new version.

use crate::args::Commit;
use crate::edit::assignment;
use crate::given::Given;
use crate::interrupt::Busy;
use crate::output::{self, Failure, Out, Outcome};
use hyperslab::OpenOptions;
use hyperslab::select::Selection;
use hyperslab::source::write::WriteOptions;
use hyperslab::version::{Parent, Timestamp, stage};

pub(crate) fn run(arguments: &Commit, open: &OpenOptions, out: &mut Out) -> Outcome<()> {
    let address = &arguments.address;
    let parent = match arguments.parent.as_deref() {
        None => Parent::Current,
        Some("") => Parent::Nothing,
        Some(name) => Parent::Version(name.to_owned()),
    };
    let mut file = address.clone();
    file.path = "/".to_owned();
    let _busy = Busy::new();
    let mut version = stage(file, &address.path, &arguments.name, &parent, open, &WriteOptions::default())?;
    if let Some(time) = &arguments.time {
        match Timestamp::parse(time)? {
            Some(time) => version.set_time(time),
            None => {
                return Err(Failure::Other(format!("{time} is no time: write YYYY-MM-DD HH:MM:SS, in UTC")));
            }
        }
    }
    if let Some(other) = &arguments.from {
        version.take(&output::open(other.clone(), open)?)?;
    }
    for text in &arguments.set {
        let Some((target, value)) = assignment(text) else {
            return Err(Failure::Other(format!("{text} sets nothing: write path[SLICE]=VALUE")));
        };
        let (path, selection) = match target.strip_suffix(']').and_then(|t| t.rsplit_once('[')) {
            Some((path, slice)) => (path, Selection::parse(slice)?),
            None => (target, Selection::all()),
        };
        let array = version.array(path)?;
        let selected = selection.resolve(array.shape(), &open.limits)?;
        let given = Given::parse_for(value, array.dtype(), selected.shape())?;
        given.with(|values| version.set(path, &selection, values))?;
    }
    let done = version.commit()?;
    out.line(format_args!("{}: {} written", arguments.name, output::bytes(done.bytes)))
}
