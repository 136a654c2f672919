//! Times hyperslab and other readers on the same files and stores, each reader in a process of its own.

mod hdf5_reader_peer;
mod inflate;
mod ours;
mod rechunk;
mod rust_hdf5_peer;
mod staged;
mod versions;
mod write;
mod zarrs_peer;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

type Failure = Box<dyn std::error::Error>;

/// One workload, and the aims for it: at most so many times the time of h5py (netCDF-3: of netCDF4-python).
const WORKLOADS: &[(&str, &str, f64)] = &[
    ("gzip_full", "gzip, all of it", 0.45),
    ("zstd_full", "Zstd, all of it", 0.40),
    ("contiguous_full", "contiguous, all of it", 1.0),
    ("small_full", "gzip in 4x16x16 chunks", 0.35),
    ("gzip_strided", "gzip, [::7, ::7, ::7]", 0.36),
    ("contiguous_strided", "contiguous, [::7, ::7, ::7]", 1.0),
    ("random", "gzip, 1000 random 1x64x64", 0.30),
    ("listing", "10,000 datasets, attributes", 0.04),
    ("netcdf3_full", "netCDF-3, all of it", 0.60),
    ("netcdf3-records_full", "netCDF-3, one of two record variables", 0.60),
];
/// The reader that the others are measured by; the column of netCDF-3 files is netCDF4-python's.
const REFERENCE: &str = "h5py";
const READERS: &[&str] = &[REFERENCE, "hyperslab", "rust-hdf5", "hdf5-reader"];

/// The same for Zarr: store and workload, and the aim: at most so many times the time of the fastest peer.
const ZARR_WORKLOADS: &[(&str, &str, f64)] = &[
    ("v3-zstd_full", "v3 Zstd, all of it", 1.0),
    ("v3-sharded_full", "v3 shards of 128x256x256, all of it", 1.0),
    ("v3-blosc_full", "v3 Blosc LZ4, all of it", 1.0),
    ("v2-zlib_full", "v2 zlib and shuffle, all of it", 1.0),
    ("v3-zstd_random", "v3 Zstd, 1000 random 1x64x64", 0.6),
    ("v3-sharded_random", "v3 shards, 1000 random 1x64x64", 0.6),
];
const ZARR_READERS: &[&str] = &["hyperslab", "zarr-python", "zarrs-python", "tensorstore", "zarrs"];

/// What a reader does; every method opens the file anew.
trait Reader {
    /// Reads `d` of `file`: all of it, or every seventh element on each axis.
    fn read(&self, file: &Path, strided: bool) -> Result<Vec<f32>, Failure>;
    /// Reads boxes of 1x64x64 one after the other through one open file.
    fn boxes(&self, file: &Path, corners: &[[u64; 3]]) -> Result<Vec<Vec<f32>>, Failure>;
    /// Lists every dataset with the values of its attributes; sums numbers and lengths of texts.
    fn listing(&self, file: &Path) -> Result<u64, Failure>;
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["run", "staged"] => staged::run(repetitions() as usize),
        ["run", "versions", only @ ..] => versions::run(folder(), repetitions() as usize, only),
        ["run", "rechunk"] => rechunk::run(&folder(), "1"),
        ["run", "rechunk", gib] => rechunk::run(&folder(), gib),
        ["run", only @ ..] => run(only),
        ["rechunk", source, target] => rechunk::work(source, target),
        ["write", workload, folder, repetitions] => {
            write::work(workload, Path::new(folder), repetitions, false)
        }
        ["write-durable", workload, folder, repetitions] => {
            write::work(workload, Path::new(folder), repetitions, true)
        }
        ["worker", reader, workload, folder, repetitions] => {
            work(reader, workload, Path::new(folder), repetitions)
        }
        _ => Err("usage: bench run [WORKLOAD ...]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bench: {e}");
            ExitCode::FAILURE
        }
    }
}

fn bits(values: &[f32]) -> u64 {
    values.iter().map(|v| u64::from(v.to_bits())).sum()
}

fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Runs one workload with one reader and prints the best time.
fn work(reader: &str, workload: &str, folder: &Path, repetitions: &str) -> Result<(), Failure> {
    let reader: Box<dyn Reader> = match reader {
        "hyperslab" => Box::new(ours::Hyperslab),
        "rust-hdf5" => Box::new(rust_hdf5_peer::RustHdf5),
        "hdf5-reader" => Box::new(hdf5_reader_peer::Hdf5Reader),
        "inflate" => Box::new(inflate::Inflate),
        "zarrs" => Box::new(zarrs_peer::Zarrs),
        _ => return Err(format!("no reader {reader}").into()),
    };
    let (mut best, mut sum) = (f64::INFINITY, 0);
    for _ in 0..repetitions.parse::<usize>()? {
        let start = std::time::Instant::now();
        let (seconds, this) = match workload {
            "random" => {
                let parts = reader.boxes(&folder.join("gzip.h5"), &corners(folder)?)?;
                (start.elapsed(), parts.iter().fold(0, |n, p| bits(p).wrapping_add(n)))
            }
            "listing" => {
                let sum = reader.listing(&folder.join("listing.h5"))?;
                (start.elapsed(), sum)
            }
            _ => {
                let (name, kind) = workload.rsplit_once('_').ok_or("no such workload")?;
                let format = match name {
                    _ if is_zarr(workload) => "zarr",
                    _ if name.starts_with("netcdf3") => "nc",
                    _ => "h5",
                };
                let path = folder.join(format!("{name}.{format}"));
                if kind == "random" {
                    let parts = reader.boxes(&path, &corners(folder)?)?;
                    (start.elapsed(), parts.iter().fold(0, |n, p| bits(p).wrapping_add(n)))
                } else {
                    let values = reader.read(&path, kind == "strided")?;
                    (start.elapsed(), bits(&values))
                }
            }
        };
        best = best.min(seconds.as_secs_f64() * 1000.0);
        sum = this;
    }
    println!("{}", json!({"ms": best, "sum": sum, "peak": peak()}));
    Ok(())
}

fn is_zarr(workload: &str) -> bool {
    ZARR_WORKLOADS.iter().any(|w| w.0 == workload)
}

fn corners(folder: &Path) -> Result<Vec<[u64; 3]>, Failure> {
    let facts: Value = serde_json::from_slice(&std::fs::read(folder.join("boxes.json"))?)?;
    Ok(serde_json::from_value(facts["boxes"].clone())?)
}

/// One measurement in a process of its own; an error text where the reader cannot do it.
fn measure(reader: &str, workload: &str, folder: &Path, repetitions: u32) -> Result<Value, Failure> {
    let mut command = if reader == REFERENCE {
        python("python_worker.py")
    } else if ["zarr-python", "zarrs-python", "tensorstore"].contains(&reader) {
        let (name, _) = workload.rsplit_once('_').ok_or("no such workload")?;
        let store = folder.join(format!("{name}.zarr"));
        let mut c = python("zarr_worker.py");
        c.args([reader, workload]).arg(store).arg(repetitions.to_string());
        return answer(&mut c);
    } else {
        let mut c = Command::new(std::env::current_exe()?);
        c.args(["worker", reader]);
        c
    };
    answer(command.arg(workload).arg(folder).arg(repetitions.to_string()))
}

/// A script beside this crate.
fn python(script: &str) -> Command {
    let mut command = Command::new(std::env::var("HYPERSLAB_PYTHON").unwrap_or("python3".into()));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script));
    command
}

fn answer(command: &mut Command) -> Result<Value, Failure> {
    let out = command.output()?;
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr);
        return Err(text.lines().last().unwrap_or("failed").chars().take(150).collect::<String>().into());
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}

fn repetitions() -> u32 {
    std::env::var("BENCH_REPETITIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(7)
}

fn folder() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench-data");
    std::env::var_os("BENCH_DATA").map_or_else(own, PathBuf::from)
}

fn run(only: &[&str]) -> Result<(), Failure> {
    let folder = folder();
    let repetitions = repetitions();
    for script in ["data.py", "zarr_data.py"] {
        if !python(script).arg(&folder).status()?.success() {
            return Err("could not make the files".into());
        }
    }
    println!("best of {repetitions} in ms; a file read anew each time, from the page cache\n");
    let mut wrong = Vec::new();
    hdf5(only, &folder, repetitions, &mut wrong)?;
    zarr(only, &folder, repetitions, &mut wrong);
    write::run(only, &folder, repetitions, &mut wrong);
    if only.is_empty() {
        memory(&folder);
    }
    for line in &wrong {
        println!("\n{line}");
    }
    Ok(())
}

/// What each reader needs for a workload, as cells of a table; the first reader's answer is the right one.
fn compare(
    workload: &str,
    readers: &[&str],
    folder: &Path,
    repetitions: u32,
    wrong: &mut Vec<String>,
) -> (Vec<Option<f64>>, String) {
    let results: Vec<_> = readers.iter().map(|r| measure(r, workload, folder, repetitions)).collect();
    let mut cells = String::new();
    for (reader, result) in readers.iter().zip(&results) {
        match result {
            Ok(v) => cells += &format!(" {:.1} |", v["ms"].as_f64().unwrap_or(f64::NAN)),
            Err(e) => {
                cells += " - |";
                wrong.push(format!("{workload}: {reader}: {e}"));
            }
        }
        if let (Ok(v), Ok(first)) = (result, &results[0])
            && v["sum"] != first["sum"]
        {
            wrong.push(format!("{workload}: {reader} gives other values than {}", readers[0]));
        }
    }
    (results.iter().map(|r| r.as_ref().ok().and_then(|v| v["ms"].as_f64())).collect(), cells)
}

fn ratio(a: Option<f64>, b: Option<f64>) -> String {
    match (a, b) {
        (Some(a), Some(b)) => format!("{:.3}", a / b),
        _ => "-".into(),
    }
}

/// The workloads asked for, with a line above them if there are any.
fn chosen<'a>(
    only: &'a [&str],
    all: &'a [(&'a str, &'a str, f64)],
    head: &str,
) -> impl Iterator<Item = &'a (&'a str, &'a str, f64)> {
    let wanted = move |w: &&(&str, &str, f64)| only.is_empty() || only.contains(&w.0);
    if all.iter().any(|w| wanted(&w)) {
        println!("{head}");
    }
    all.iter().filter(wanted)
}

fn hdf5(only: &[&str], folder: &Path, repetitions: u32, wrong: &mut Vec<String>) -> Result<(), Failure> {
    let head = format!(
        "| workload | {} | ours to h5py | aim | ours to best peer |\n|---|{}---|---|---|",
        READERS.join(" | "),
        "---:|".repeat(READERS.len())
    );
    for (workload, title, aim) in chosen(only, WORKLOADS, &head) {
        let (ms, cells) = compare(workload, READERS, folder, repetitions, wrong);
        let peer = ms.iter().skip(2).copied().flatten().reduce(f64::min);
        println!("| {title} |{cells} {} | {aim:.2} | {} |", ratio(ms[1], ms[0]), ratio(ms[1], peer));
        if *workload == "gzip_full" {
            let floor = measure("inflate", workload, folder, repetitions)?;
            let floor = floor["ms"].as_f64();
            let text = floor.map_or("-".into(), |f| format!("{f:.1}"));
            println!(
                "| bare parallel inflating of its chunks | | {text} | | | {} | 1.10 | |",
                ratio(ms[1], floor)
            );
        }
    }
    Ok(())
}

fn zarr(only: &[&str], folder: &Path, repetitions: u32, wrong: &mut Vec<String>) {
    let head = format!(
        "\n| workload | {} | ours to best peer | aim |\n|---|{}---|---|",
        ZARR_READERS.join(" | "),
        "---:|".repeat(ZARR_READERS.len())
    );
    for (workload, title, aim) in chosen(only, ZARR_WORKLOADS, &head) {
        let (ms, cells) = compare(workload, ZARR_READERS, folder, repetitions, wrong);
        let peer = ms.iter().skip(1).copied().flatten().reduce(f64::min);
        println!("| {title} |{cells} {} | {aim:.2} |", ratio(ms[0], peer));
    }
}

fn memory(folder: &Path) {
    println!("\npeak memory of one full read, MiB beyond the 128 MiB of the result\n");
    println!("| workload | {} |\n|---|{}", READERS.join(" | "), "---:|".repeat(READERS.len()));
    for workload in ["gzip_full", "contiguous_full", "small_full"] {
        let cell = |r: &&str| match measure(r, workload, folder, 1).ok().and_then(|v| v["peak"].as_f64()) {
            Some(bytes) => format!(" {:.0} |", bytes / (1 << 20) as f64 - 128.0),
            None => " - |".into(),
        };
        println!("| {workload} |{}", READERS.iter().map(cell).collect::<String>());
    }
}
