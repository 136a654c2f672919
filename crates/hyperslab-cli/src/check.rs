//! `check`: is everything in this file sound?

use crate::args::Check;
use crate::describe::is_netcdf4;
use crate::json::Json;
use crate::output::{self, Failure, Out, Outcome, Progress, Style};
use hyperslab::array::{Array, Item, Verdict};
use hyperslab::model::{Fault, NodeKind, Writer};
use hyperslab::source::write::{Recovery, journal_state, leftovers};
use hyperslab::{Address, Error, ErrorKind, File, Object, OpenOptions};
use std::collections::HashSet;
use std::path::Path;

/// Everything that was found.
#[derive(Default)]
struct Report {
    faults: Vec<Found>,
    /// What could not be looked at, or is worth knowing.
    notes: Vec<Found>,
    /// What was said already: many links may lead through one broken block.
    said: HashSet<String>,
    /// Why there was nothing to look at.
    failure: Option<Error>,
    /// Whether there are groups of which nobody knows what is in them.
    unlisted: bool,
    objects: u64,
    attributes: u64,
    chunks: u64,
    skipped: u64,
    bytes: u64,
    hashes: u64,
}

/// A fault, and the object it belongs to.
struct Found {
    object: String,
    error: Error,
}

/// More faults than these are only counted.
const SHOWN: usize = 10_000;

impl Report {
    fn add(&mut self, object: &str, error: Error) {
        // What we lack, or were told not to do, is no fault of the file.
        let ours =
            matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Permission | ErrorKind::LimitExceeded);
        let list = if ours { &mut self.notes } else { &mut self.faults };
        if list.len() < SHOWN && self.said.insert(format!("{object}: {error}")) {
            list.push(Found { object: object.into(), error });
        }
    }

    /// Whether all is sound; `None`: what was looked at is, but not all could be.
    fn sound(&self) -> Option<bool> {
        match (self.faults.is_empty(), self.notes.is_empty() && self.failure.is_none()) {
            (true, true) => Some(true),
            (true, false) => None,
            (false, _) => Some(false),
        }
    }
}

/// Checks one file; false if there are faults, or groups that could not be looked into.
pub(crate) fn run(arguments: &Check, options: &OpenOptions, out: &mut Out) -> Outcome<bool> {
    let mut report = Report::default();
    let mut file_notes = Vec::new();
    if arguments.clear_flag {
        file_notes.push(clear_flag(arguments)?);
    }
    let mut state = "ok";
    // What was interrupted is named, and not brought back: somebody may want to look at it.
    let options = &options.clone().with_recovery(Recovery::LookThrough);
    interrupted(arguments, options, &mut report)?;
    file_notes.extend(left_over(&arguments.file));
    match open(arguments, options) {
        Ok(file) => {
            state = state_of(&file, arguments);
            if state != "ok" {
                file_notes.push(format!("state: {state}"));
            }
            let base = file.info().notes.into_iter().filter(|(key, _)| matches!(*key, "base address"));
            file_notes.extend(base.map(|(key, text)| format!("{key}: {text}")));
            check(&file, &mut report);
            if state == "ok" {
                conventions(&file, options, &mut report);
            }
            arguments.stats.say(file.traffic());
        }
        // The file is there, and its outermost structure is broken.
        Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Checksum | ErrorKind::Truncated) => {
            report.add("", e);
        }
        Err(e) if arguments.json => report.failure = Some(e),
        Err(e) => return Err(Failure::Library(e)),
    }
    if arguments.json {
        print_json(arguments, &report, state, &file_notes, out)?;
    } else {
        print_text(arguments, &report, &file_notes, out)?;
    }
    match report.failure {
        Some(e) => Err(Failure::Library(e)),
        None => Ok(report.faults.is_empty() && !report.unlisted),
    }
}

/// Reports an edit that was interrupted.
fn interrupted(arguments: &Check, options: &OpenOptions, report: &mut Report) -> Outcome<()> {
    let address = &arguments.file;
    if address.scheme().is_some() || !address.local().is_file() {
        return Ok(());
    }
    if let Some(journal) = journal_state(address.local(), &options.limits)? {
        let text = format!(
            "an edit was interrupted: {} holds {} of the file as they were",
            journal.path.display(),
            output::bytes(journal.bytes)
        );
        report.add(
            "",
            match journal.fault {
                Some(fault) => fault,
                None => Error::new(ErrorKind::Changed, text).hint(
                    "it is checked as it was before; whatever else opens it here brings it back to that",
                ),
            },
        );
    }
    Ok(())
}

/// Names what was begun in place of the file and was never finished.
fn left_over(address: &Address) -> Vec<String> {
    let local = address.scheme().is_none().then(|| leftovers(address.local()));
    let text = |path: &std::path::PathBuf| {
        let path = path.display();
        format!("left over: {path}, whose writer was killed; whoever writes the file anew removes it")
    };
    local.iter().flatten().map(text).collect()
}

/// Opens the file: live, if its writer is there and lets others read.
fn open(arguments: &Check, options: &OpenOptions) -> hyperslab::Result<File> {
    let file = output::open(arguments.file.clone(), options)?;
    let live = file.swmr_writer_active().unwrap_or(false) && is_being_written(&arguments.file) == Some(true);
    if live { hyperslab::open_swmr_with(arguments.file.clone(), options) } else { Ok(file) }
}

/// Whether a process has a local file open to write it, as far as can be told.
fn is_being_written(address: &Address) -> Option<bool> {
    let path = if address.scheme().is_none() { Some(address.local()) } else { None };
    path.and_then(hyperslab::array::is_being_written)
}

/// What can be told of the writer of a file.
fn state_of(file: &File, arguments: &Check) -> &'static str {
    let writer = file.hierarchy().writer().unwrap_or(Writer::Unknown);
    let alive = is_being_written(&arguments.file);
    match (writer, alive) {
        (Writer::None | Writer::Unknown | Writer::Silent, _) => "ok",
        (Writer::Swmr, Some(true)) => "being written by SWMR",
        (Writer::Alone, Some(true)) => "being written",
        (_, Some(false)) => "left open by a writer that is gone",
        (Writer::Swmr, None) => "being written by SWMR, or left open by a writer that is gone",
        (Writer::Alone, None) => "being written, or left open by a writer that is gone",
    }
}

/// Clears the flag of a writer that is gone, and says what was done.
fn clear_flag(arguments: &Check) -> Outcome<String> {
    let address = &arguments.file;
    if address.scheme().is_some() {
        return Err(Failure::Other(format!("{address} is not a local file: its flag cannot be cleared")));
    }
    Ok(match hyperslab::array::clear_writer_flags(address.local(), arguments.writer_is_gone)? {
        None => "no flag was set".into(),
        Some(done) => {
            let end = match done.end {
                (old, new) if old != new => format!("; the end of the file is {new} instead of {old}"),
                _ => String::new(),
            };
            format!(
                "cleared the flags {:#x}{end}; the superblock is saved in {}",
                done.flags,
                done.saved.display()
            )
        }
    })
}

fn check(file: &File, report: &mut Report) {
    file.check(&mut |Fault { object, error }| {
        report.add(&object.map(|o| o.to_string()).unwrap_or_default(), error);
    });
    let mut progress = Progress::new("checking", None);
    for entry in file.walk() {
        progress.step(1);
        match &entry.item {
            Item::Group(_, links) => {
                if let Ok(links) = links {
                    for fault in &links.faults {
                        report.add(&entry.path, copy(&fault.error));
                    }
                }
            }
            Item::Object(_, NodeKind::Array | NodeKind::Datatype | NodeKind::Group) => {}
            Item::Fault(_, e) => {
                report.add(&entry.path, copy(e));
                continue;
            }
            _ => continue,
        }
        if let Item::Group(_, Err(e)) = &entry.item {
            report.unlisted = true;
            report.add(&entry.path, copy(e));
        }
        report.objects += 1;
        match entry.open(file) {
            Ok(object) => check_object(&entry.path, &object, report),
            Err(e) => report.add(&entry.path, e),
        }
    }
}

/// What netCDF and NCZarr say of the objects, where a file is of theirs.
fn conventions(file: &File, options: &OpenOptions, report: &mut Report) {
    let is_netcdf = match file.info().format {
        "Zarr" => true,
        "HDF5" => is_netcdf4(Path::new(file.name()), file),
        // What there is to say of netCDF-3 its own format says.
        _ => false,
    };
    if !is_netcdf {
        return;
    }
    match file.netcdf() {
        Ok(view) => view.check(&options.limits, &mut |path, error| {
            let object = path.split_once(':').map_or(path, |(object, _)| object);
            // The view meets again what is broken without it.
            let known = |found: &Found| {
                [path, object].contains(&found.object.as_str())
                    && error.to_string().contains(found.error.message())
            };
            if !report.faults.iter().chain(&report.notes).any(known) {
                report.add(path, error.context("netCDF"));
            }
        }),
        Err(e) => report.add("", e.context("netCDF")),
    }
}

/// The same error for a second owner.
fn copy(e: &Error) -> Error {
    let mut copy = Error::new(e.kind(), e.message().to_string());
    if let Some((structure, offset)) = e.place() {
        copy = copy.at(structure.to_string(), offset);
    }
    copy
}

fn check_object(path: &str, object: &Object, report: &mut Report) {
    object.check(&mut |fault| report.add(path, fault.error));
    match object.attributes() {
        Ok(entries) => {
            for entry in entries {
                report.attributes += 1;
                match entry {
                    Ok(a) => {
                        if let Err(e) = object.attribute_value(&a) {
                            report.add(path, e);
                        }
                    }
                    Err((Some(name), e)) => report.add(path, e.context(format!("attribute {name}"))),
                    Err((None, e)) => report.add(path, e.context("an attribute")),
                }
            }
        }
        Err(e) => report.add(path, e),
    }
    if let Object::Array(array) = object {
        let verified = array.verify(&mut |fault| report.add(path, fault.error));
        report.chunks += verified.chunks;
        report.skipped += verified.skipped;
        report.bytes = report.bytes.saturating_add(verified.bytes);
        provenance(path, array, report);
    }
}

fn provenance(path: &str, array: &Array, report: &mut Report) {
    match array.verify_provenance() {
        Ok(provenance) => match provenance.verdict {
            Verdict::NoHash => {}
            Verdict::Ok => report.hashes += 1,
            Verdict::Mismatch { stated, computed } => {
                report.hashes += 1;
                let text = format!(
                    "provenance: the elements hash to {computed}, but _provenance_sha256 says {stated}"
                );
                report.add(path, Error::new(ErrorKind::Checksum, text));
            }
        },
        // A file whose attributes or chunks are broken has said so already.
        Err(e) if e.message().contains("_provenance_sha256") => report.add(path, e),
        Err(_) => {}
    }
}

/// What was looked at, in words.
fn summary(report: &Report) -> String {
    let hashes = match report.hashes {
        0 => String::new(),
        n => format!(", {n} provenance hashes"),
    };
    let skipped = match report.skipped {
        0 => String::new(),
        n => format!(", {n} chunks not checked"),
    };
    format!(
        "{} objects, {} attributes, {} chunks of {}{skipped}{hashes}",
        report.objects,
        report.attributes,
        report.chunks,
        output::bytes(report.bytes)
    )
}

fn print_text(arguments: &Check, report: &Report, file_notes: &[String], out: &mut Out) -> Outcome<()> {
    let object =
        |found: &Found| if found.object.is_empty() { String::new() } else { format!("{}: ", found.object) };
    for found in &report.faults {
        out.line(format_args!("{} {}{}", out.paint(Style::Red, "fault"), object(found), found.error))?;
    }
    for found in &report.notes {
        out.line(format_args!(
            "{} {}{}",
            out.paint(Style::Yellow, "not checked"),
            object(found),
            found.error
        ))?;
    }
    for note in file_notes {
        out.line(format_args!("{} {note}", out.paint(Style::Yellow, "note")))?;
    }
    let verdict = match report.faults.len() {
        0 if report.unlisted => out.paint(Style::Red, "not all could be listed"),
        0 if !report.notes.is_empty() => out.paint(Style::Yellow, "sound as far as checked"),
        0 => out.paint(Style::Green, "sound"),
        1 => out.paint(Style::Red, "1 fault"),
        n if n >= SHOWN => out.paint(Style::Red, format_args!("at least {n} faults")),
        n => out.paint(Style::Red, format_args!("{n} faults")),
    };
    out.line(format_args!("{}: {verdict}: {}", arguments.file, summary(report)))
}

fn print_json(
    arguments: &Check,
    report: &Report,
    state: &str,
    file_notes: &[String],
    out: &mut Out,
) -> Outcome<()> {
    let error = |e: &Error, object: Option<&str>| {
        let mut own = vec![("code", Json::from(e.code())), ("message", Json::text(e))];
        own.extend(object.map(|object| ("object", object.into())));
        if let Some((structure, offset)) = e.place() {
            own.extend([("structure", structure.into()), ("offset", offset.into())]);
        }
        Json::map(own)
    };
    let list = |found: &[Found]| Json::list(found.iter().map(|f| error(&f.error, Some(&f.object))));
    out.line(Json::map([
        ("file", Json::text(&arguments.file)),
        ("state", state.into()),
        ("sound", report.sound().map_or(Json::Null, Json::Bool)),
        ("error", report.failure.as_ref().map_or(Json::Null, |e| error(e, None))),
        ("faults", list(&report.faults)),
        ("not_checked", list(&report.notes)),
        ("notes", Json::list(file_notes.iter().map(String::as_str))),
        ("objects", report.objects.into()),
        ("attributes", report.attributes.into()),
        ("chunks", report.chunks.into()),
        ("chunks_not_checked", report.skipped.into()),
        ("bytes", report.bytes.into()),
        ("provenance_hashes", report.hashes.into()),
    ]))
}
