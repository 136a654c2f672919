//! `log`: the versions of a file, and what each one changed.

use crate::args::Log;
use crate::json::Json;
use crate::output::{self, Out, Outcome, Style};
use hyperslab::version::{Change, Kind, LogEntry, Versions};
use hyperslab::{File, OpenOptions};

pub(crate) fn run(arguments: &Log, options: &OpenOptions, out: &mut Out) -> Outcome<()> {
    let address = &arguments.address;
    let file = output::open(address.clone(), options)?;
    let versions = versions(&file, Some(address.path.as_str()).filter(|path| *path != "/"))?;
    let entries = versions.log()?;
    for entry in entries.iter().rev() {
        if arguments.json {
            out.line(described(entry))?;
        } else {
            print(entry, out)?;
        }
    }
    for name in versions.uncommitted()? {
        output::say(format_args!("note: the version {name} was begun and never committed"));
    }
    arguments.stats.say(file.traffic());
    Ok(())
}

/// The versions of a group, or of the one group that has some.
pub(crate) fn versions(file: &File, group: Option<&str>) -> hyperslab::Result<Versions> {
    match group {
        Some(group) => Versions::open_at(file, group),
        None => Versions::open(file),
    }
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Removed => "removed",
        Change::Data => "data",
        Change::Attributes => "attributes",
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Array => "array",
        Kind::Group => "group",
        Kind::Datatype => "datatype",
        Kind::Link => "link",
        Kind::Fault => "fault",
    }
}

fn print(entry: &LogEntry, out: &mut Out) -> Outcome<()> {
    let version = &entry.version;
    let current = if entry.is_current { ", current" } else { "" };
    let parent = version.parent.as_ref().map_or("from nothing".to_owned(), |parent| format!("from {parent}"));
    let name = out.paint(Style::Yellow, &version.name);
    out.line(format_args!("{name}  {}  {parent}{current}", version.time))?;
    let (new, reused) = (entry.chunks_new, entry.chunks_reused);
    let bytes = output::bytes(entry.bytes_added);
    out.line(format_args!("    chunks: {new} new, {reused} reused, {bytes} added"))?;
    for changed in &entry.changed {
        // Arrays go without saying.
        let kind = if changed.kind == Kind::Array { "" } else { kind(changed.kind) };
        let blank = if kind.is_empty() { "" } else { " " };
        out.line(format_args!("    {}{blank}{kind} {}", word(changed.change), changed.path))?;
    }
    Ok(())
}

fn described(entry: &LogEntry) -> Json {
    let version = &entry.version;
    let changed = |change: &hyperslab::version::Changed| {
        Json::map([
            ("path", Json::from(change.path.as_str())),
            ("kind", kind(change.kind).into()),
            ("change", word(change.change).into()),
        ])
    };
    Json::map([
        ("name", Json::from(version.name.as_str())),
        ("time", version.time.as_str().into()),
        ("parent", version.parent.as_deref().map_or(Json::Null, Json::from)),
        ("current", Json::Bool(entry.is_current)),
        ("arrays", entry.arrays.into()),
        ("changed", Json::list(entry.changed.iter().map(changed))),
        ("chunks_new", entry.chunks_new.into()),
        ("chunks_reused", entry.chunks_reused.into()),
        ("bytes_added", entry.bytes_added.into()),
    ])
}
