//! Copies of a corpus by every way there and back: what is not the same afterwards was said before.
//!
//!     copies FOLDER [--every N] [--only TEXT] [--show N] [--refused]
//!
//! FOLDER holds `files/` and `expected/<same path>.json`. Each file is copied by each route of its format, and compared with
//! the last copy. Every difference has to be of something that a report on the way called dropped or mapped; what
//! `describe` no longer finds in a copy has to be in its report, and what a report calls dropped must not be there; a copy
//! with `--strict` fails if and only if something is dropped, and leaves nothing. A file that cannot be copied at all has to
//! be damaged, or of a kind that cannot be opened. Exit 1 if any of this is not so.

use conformance::{corpus, tool};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the tool said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

fn run(arguments: &[&str]) -> Said {
    let output = Command::new("sh")
        .args(["-c", r#"ulimit -v 8000000; exec timeout 120 "$@""#, "copy"])
        .arg(tool::path())
        .args(arguments)
        .output()
        .expect("sh starts");
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    }
}

/// One line of a report that is not `kept`.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    why: String,
    dropped: bool,
}

impl Entry {
    /// Whether it is about what stands at a path, or about something around it.
    fn covers(&self, path: &str) -> bool {
        // The array that is all of a Zarr store.
        if self.name == "/array" && path == "/" {
            return true;
        }
        let inside = |rest: &str| rest.is_empty() || rest.starts_with(['/', ':']);
        // Faults of links and attributes without a name are told of the group or object.
        self.name == "/" || path.strip_prefix(self.name.as_str()).is_some_and(inside)
    }
}

/// Attributes in which a format keeps what others keep elsewhere.
const PLUMBING: [&str; 12] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "_NCProperties",
    "_ARRAY_DIMENSIONS",
    "_FillValue",
    "_nczarr_attr",
];

/// Objects and attributes of a file, by `describe`.
fn names(path: &str) -> Option<BTreeSet<String>> {
    let said = run(&["describe", "--json", path]);
    let value: Value = serde_json::from_str(&said.out).ok()?;
    let mut found = BTreeSet::new();
    let mut add = |at: &str, object: &Value| {
        found.insert(at.to_owned());
        for name in object["attrs"].as_object().into_iter().flatten().map(|(name, _)| name) {
            if !PLUMBING.contains(&name.as_str()) && !name.starts_with("_nczarr") {
                found.insert(format!("{at}:{name}"));
            }
        }
    };
    if let Some(objects) = value["hdf5"]["objects"].as_object() {
        objects.iter().for_each(|(at, object)| add(at, object));
    } else if let Some(nodes) = value["zarr"]["nodes"].as_object() {
        nodes.iter().for_each(|(at, node)| add(&format!("/{at}"), node));
    } else {
        let netcdf = &value["netcdf"];
        add("/", netcdf);
        netcdf["vars"].as_object()?.iter().for_each(|(name, var)| add(&format!("/{name}"), var));
    }
    Some(found)
}

/// The ways of a file of some format, each a list of formats.
fn routes(path: &Path, format: &str) -> Vec<Vec<&'static str>> {
    match format {
        "hdf5" => vec![vec!["hdf5"], vec!["netcdf4"], vec!["zarr3", "hdf5"], vec!["nczarr", "netcdf4"]],
        "netcdf3" => {
            let version = std::fs::read(path).ok().and_then(|b| b.get(3).copied());
            let own = match version {
                Some(2) => "cdf2",
                Some(5) => "cdf5",
                _ => "netcdf3",
            };
            vec![vec!["netcdf4", own]]
        }
        "zarr" => {
            let is_three = path.is_dir() && path.join("zarr.json").exists();
            vec![vec!["hdf5", if is_three { "zarr3" } else { "zarr2" }]]
        }
        _ => Vec::new(),
    }
}

/// What is wrong with the copies of one file by one way; the number of copies that were made.
struct Result {
    faults: Vec<String>,
    refused: Option<String>,
    dropped: usize,
}

fn travel(file: &Path, route: &[&str], folder: &Path) -> Result {
    let mut result = Result { faults: Vec::new(), refused: None, dropped: 0 };
    let mut here = file.to_path_buf();
    let mut told: Vec<Entry> = Vec::new();
    for (i, format) in route.iter().enumerate() {
        let target = folder.join(format!("{i}.{}", if format.contains("zarr") { "zarr" } else { "h5" }));
        let (from, to) = (here.to_string_lossy().into_owned(), target.to_string_lossy().into_owned());
        let said = run(&["copy", "--json", "--to", format, &from, &to]);
        let crashed =
            matches!(said.code, -1 | 101 | 124 | 134 | 137 | 139) || said.err.contains("panicked at");
        if crashed {
            result.faults.push(format!("to {format}: {}: {}", said.code, said.err));
            return result;
        }
        if said.code != 0 {
            if target.exists() {
                result.faults.push(format!("to {format}: refused, and something is left"));
            }
            // What is wrong with the file is its own fault; anything else would be ours.
            let excuses = ["E_CORRUPT", "E_TRUNCATED", "E_CHECKSUM", "E_LIMIT", "E_UNSUPPORTED"];
            if excuses.iter().any(|code| said.err.contains(code)) {
                result.refused = Some(format!("to {format}: {}", said.err));
            } else {
                result.faults.push(format!("to {format}: {}", said.err));
            }
            return result;
        }
        let entries: Vec<Entry> = said.out.lines().filter_map(entry).collect();
        let dropped = entries.iter().filter(|e| e.dropped).count();
        result.dropped += dropped;
        let strict = folder.join(format!("strict-{i}"));
        let said = run(&["copy", "--strict", "--to", format, &from, &strict.to_string_lossy()]);
        if (said.code != 0) != (dropped > 0) {
            result.faults.push(format!("to {format}: {dropped} dropped, and --strict exits {}", said.code));
        }
        if said.code != 0 && strict.exists() {
            result.faults.push(format!("to {format}: --strict failed, and something is left"));
        }
        if let (Some(before), Some(after)) = (names(&from), names(&to)) {
            for name in before.iter().filter(|name| !after.contains(*name) && name.as_str() != "/") {
                if !entries.iter().any(|e| e.covers(name)) && !is_renamed(name, &after) {
                    result
                        .faults
                        .push(format!("to {format}: {name} is gone, and the report does not say so"));
                }
            }
            let there = |e: &&Entry| e.dropped && after.contains(&e.name) && !is_partial(e);
            if let Some(e) = entries.iter().find(there) {
                result
                    .faults
                    .push(format!("to {format}: {} is said to be dropped ({}), and is there", e.name, e.why));
            }
        }
        told.extend(entries);
        here = target;
    }
    let (from, to) = (file.to_string_lossy().into_owned(), here.to_string_lossy().into_owned());
    // By way of another format exact types may be others; by netCDF-4 and back they may not.
    let exact = route.len() == 1 && route != ["netcdf4"]
        || !from.ends_with("h5") && route.contains(&"netcdf4") && route.len() == 2;
    let loose: &[&str] = if exact && !route.contains(&"nczarr") { &[] } else { &["--loose"] };
    let said = run(&[&["diff", &from, &to], loose].concat());
    match said.code {
        0 => {}
        1 => {
            for line in said.out.lines().filter(|line| line.starts_with('/')) {
                let path = line.split(": ").next().unwrap_or_default();
                if !told.iter().any(|e| e.covers(path)) {
                    let short: String = line.chars().take(200).collect();
                    result.faults.push(format!("by {}: {short}", route.join(", ")));
                }
            }
        }
        // What cannot be read cannot be compared.
        2 if ["E_CORRUPT", "E_TRUNCATED", "E_LIMIT", "E_UNSUPPORTED", "E_CHECKSUM"]
            .iter()
            .any(|e| said.err.contains(e)) =>
        {
            result.refused = Some(format!("diff: {}", said.err));
        }
        code => result.faults.push(format!("diff: {code}: {}", said.err)),
    }
    result
}

/// Whether something is there under the name that a format has for it.
fn is_renamed(name: &str, after: &BTreeSet<String>) -> bool {
    // The array that is all of a Zarr store.
    let array = name.strip_prefix("/:").map(|attribute| format!("/array:{attribute}"));
    if array.is_some_and(|at| after.contains(&at)) {
        return true;
    }
    let Some((group, last)) = name.rsplit_once('/') else { return false };
    // A variable that is called like a dimension and is not its scale.
    let last = last.strip_prefix("_nc4_non_coord_").unwrap_or(last);
    after.contains(&format!("{group}/{last}")) || after.contains(&format!("{group}/_nc4_non_coord_{last}"))
}

/// Whether what is dropped is a part of what is there.
fn is_partial(entry: &Entry) -> bool {
    entry.why.contains("references to what is not in the copy")
        || entry.why.contains("a link that cannot be read")
        || entry.name == "/"
}

fn entry(line: &str) -> Option<Entry> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let outcome = text("outcome");
    (outcome != "kept").then(|| Entry { name: text("name"), why: text("why"), dropped: outcome == "dropped" })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1));
    let number = |name: &str, usual: usize| option(name).and_then(|v| v.parse().ok()).unwrap_or(usual);
    let Some(folder) = arguments.first().map(PathBuf::from).filter(|f| f.join("expected").is_dir()) else {
        eprintln!("usage: copies FOLDER [--every N] [--only TEXT] [--show N] [--refused]");
        return ExitCode::from(2);
    };
    let folder = folder.canonicalize().expect("the folder is there");
    let (every, show) = (number("--every", 1).max(1), number("--show", 40));
    let only = option("--only").cloned().unwrap_or_default();
    let files: Vec<String> =
        corpus::files(&folder).into_iter().filter(|f| f.contains(&only)).step_by(every).collect();
    let scratch = tempfile::tempdir().expect("a folder");
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(i) else { break };
                    let path = folder.join("files").join(file);
                    let text = std::fs::read(folder.join("expected").join(format!("{file}.json")))
                        .unwrap_or_default();
                    let expected: Value = serde_json::from_slice(&text).unwrap_or_default();
                    let format = expected["format"].as_str().unwrap_or_default().to_owned();
                    for (n, route) in routes(&path, &format).into_iter().enumerate().filter(|_| path.exists())
                    {
                        let folder = scratch.path().join(format!("{i}-{n}"));
                        std::fs::create_dir(&folder).expect("a folder");
                        let result = travel(&path, &route, &folder);
                        let _ = std::fs::remove_dir_all(&folder);
                        results.lock().expect("no thread panics").push((file.clone(), route, result));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panics");
    results.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    let (mut shown, mut faulty, mut refused, mut dropped) = (0, 0, 0, 0);
    for (file, route, result) in &results {
        faulty += usize::from(!result.faults.is_empty());
        refused += usize::from(result.refused.is_some());
        dropped += usize::from(result.dropped > 0);
        for fault in &result.faults {
            if shown < show {
                println!("FAULT {file} ({}): {fault}", route.join(", "));
            }
            shown += 1;
        }
        if let Some(why) = result.refused.as_ref().filter(|_| arguments.iter().any(|a| a == "--refused")) {
            println!("REFUSED {file} ({}): {why}", route.join(", "));
        }
    }
    println!(
        "copies: {} ways of {} files, {faulty} with faults; {refused} of damaged or unknown ones refused; {dropped} drop something",
        results.len(),
        files.len()
    );
    if faulty == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
