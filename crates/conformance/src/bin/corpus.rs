//! Scores `hyperslab describe --json` against a corpus of files and what the reference libraries say of them.
//!
//!     corpus FOLDER [--show N]
//!
//! FOLDER holds `files/` and `expected/<same path>.json`. Each section of the descriptions (`hdf5`, `netcdf`, `zarr`) has
//! a score. Exit 1 if one is below its floor in `score.txt`, or if the program crashed, hung, or wrote what is not JSON.

use conformance::compare::{Difference, SECTIONS, compare};
use conformance::tool;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What became of one file.
struct Report {
    file: String,
    /// For each section the number of items, and those that differ.
    sections: Vec<(usize, Vec<Difference>)>,
    fault: Option<String>,
}

/// Differences that are known: file, item ("*" for all), and the reason.
fn exceptions() -> Vec<[String; 3]> {
    let text =
        std::fs::read_to_string(tool::root().join("crates/conformance/exceptions.tsv")).unwrap_or_default();
    let lines = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    lines.filter_map(|l| l.split('\t').map(String::from).collect::<Vec<_>>().try_into().ok()).collect()
}

/// The lowest score of a section that passes.
fn floor(section: &str) -> f64 {
    let text =
        std::fs::read_to_string(tool::root().join("crates/conformance/score.txt")).expect("the floors");
    let line = text.lines().find_map(|l| l.strip_prefix(section)?.strip_prefix(' ')?.trim().parse().ok());
    line.unwrap_or_else(|| panic!("score.txt has no floor for {section}"))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|a| a == name)?;
        arguments.get(at + 1).and_then(|v| v.parse::<f64>().ok())
    };
    let Some(folder) = arguments.first().map(PathBuf::from).filter(|f| f.join("expected").is_dir()) else {
        eprintln!("usage: corpus FOLDER [--show N]");
        return ExitCode::from(2);
    };
    let folder = folder.canonicalize().expect("the folder is there");
    let files = conformance::corpus::files(&folder);
    let (next, reports) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(report) = look(&folder, file) {
                        reports.lock().expect("no thread panics").push(report);
                    }
                }
            });
        }
    });
    let mut reports = reports.into_inner().expect("no thread panics");
    reports.sort_by(|a, b| a.file.cmp(&b.file));
    judge(&reports, option("--show").unwrap_or(20.0) as usize)
}

fn judge(reports: &[Report], mut show: usize) -> ExitCode {
    let exceptions = exceptions();
    let is_known = |section: &str, file: &str, item: &str| {
        let named = format!("{section} {item}");
        exceptions.iter().any(|[f, i, _]| f == file && (i == "*" || *i == named))
    };
    for report in reports {
        if let Some(fault) = &report.fault {
            println!("FAULT {}: {fault}", report.file);
        }
    }
    let mut passes = true;
    for (i, section) in SECTIONS.iter().enumerate() {
        let (mut total, mut equal, mut excused) = (0, 0, 0);
        for report in reports {
            let Some((count, differs)) = report.sections.get(i) else { continue };
            total += count;
            equal += count - differs.len();
            for Difference { item, expected, found } in differs {
                if is_known(section, &report.file, item) {
                    excused += 1;
                } else if show > 0 {
                    show -= 1;
                    let short = |v: &Value| v.to_string().chars().take(300).collect::<String>();
                    let found = found.as_ref().map_or("nothing".into(), short);
                    let expected = short(expected);
                    println!(
                        "DIFF {} {section} {item}\n  expected {expected}\n  found    {found}",
                        report.file
                    );
                }
            }
        }
        if total == 0 {
            continue;
        }
        let (percent, floor) = (100.0 * equal as f64 / total as f64, floor(section));
        println!(
            "{section}: {equal} of {total} items equal ({percent:.2} %), {excused} others excused by name"
        );
        if percent < floor {
            passes = false;
            println!("{section}: the score fell below {floor} %");
        }
    }
    let faults = reports.iter().filter(|r| r.fault.is_some()).count();
    let whole = reports.iter().filter(|r| r.fault.is_none() && r.sections.iter().all(|s| s.1.is_empty()));
    println!("corpus: {} of {} files whole, {faults} faults", whole.count(), reports.len());
    if passes && faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Describes one file, with limits on memory and time; nothing for files that are not there.
fn look(folder: &Path, file: &str) -> Option<Report> {
    let text = std::fs::read(folder.join("expected").join(format!("{file}.json"))).ok()?;
    let expected: Value = serde_json::from_slice(&text).ok()?;
    let path = folder.join("files").join(file);
    if !path.exists() {
        return None;
    }
    let output = Command::new("sh")
        .args(["-c", r#"ulimit -v 8000000; exec timeout 60 "$@""#, "describe"])
        .arg(tool::path())
        .args(["describe", "--json"])
        .arg(&path)
        .output()
        .expect("sh starts");
    let words = String::from_utf8_lossy(&output.stderr);
    let found: Result<Value, _> = serde_json::from_slice(&output.stdout);
    let fault = match (output.status.code(), &found) {
        (None, _) | (Some(101 | 124 | 134 | 137 | 139), _) => {
            Some(format!("{}: {}", output.status, words.trim()))
        }
        _ if words.contains("panicked at") => Some(words.trim().to_string()),
        (_, Err(e)) if !output.stdout.is_empty() => Some(format!("not JSON: {e}")),
        _ => None,
    };
    let found = found.unwrap_or_default();
    let sections = SECTIONS.iter().map(|s| compare(s, &expected[*s], &found[*s])).collect();
    Some(Report { file: file.to_string(), sections, fault })
}
