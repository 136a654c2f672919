//! Times hyperslab, h5py and other readers on the same files, each reader in a process of its own.

mod hdf5_reader_peer;
mod inflate;
mod ours;
mod rust_hdf5_peer;

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
        ["run", only @ ..] => run(only),
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
                let suffix = if name.starts_with("netcdf3") { "nc" } else { "h5" };
                let values = reader.read(&folder.join(format!("{name}.{suffix}")), kind == "strided")?;
                (start.elapsed(), bits(&values))
            }
        };
        best = best.min(seconds.as_secs_f64() * 1000.0);
        sum = this;
    }
    println!("{}", json!({"ms": best, "sum": sum, "peak": peak()}));
    Ok(())
}

fn corners(folder: &Path) -> Result<Vec<[u64; 3]>, Failure> {
    let facts: Value = serde_json::from_slice(&std::fs::read(folder.join("boxes.json"))?)?;
    Ok(serde_json::from_value(facts["boxes"].clone())?)
}

/// One measurement in a process of its own; an error text where the reader cannot do it.
fn measure(reader: &str, workload: &str, folder: &Path, repetitions: u32) -> Result<Value, Failure> {
    let mut command = if reader == REFERENCE {
        let mut c = Command::new(std::env::var("HYPERSLAB_PYTHON").unwrap_or("python3".into()));
        c.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python_worker.py"));
        c
    } else {
        let mut c = Command::new(std::env::current_exe()?);
        c.args(["worker", reader]);
        c
    };
    let out = command.arg(workload).arg(folder).arg(repetitions.to_string()).output()?;
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr);
        return Err(text.lines().last().unwrap_or("failed").chars().take(150).collect::<String>().into());
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}

fn run(only: &[&str]) -> Result<(), Failure> {
    let folder = std::env::var_os("BENCH_DATA")
        .map_or(Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench-data"), PathBuf::from);
    let repetitions: u32 = std::env::var("BENCH_REPETITIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(7);
    let made = Command::new(std::env::var("HYPERSLAB_PYTHON").unwrap_or("python3".into()))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("data.py"))
        .arg(&folder)
        .status()?;
    if !made.success() {
        return Err("could not make the files".into());
    }
    println!("best of {repetitions} in ms; a file read anew each time, from the page cache\n");
    println!("| workload | {} | ours to h5py | aim | ours to best peer |", READERS.join(" | "));
    println!("|---|{}---|---|---|", "---:|".repeat(READERS.len()));
    let mut wrong = Vec::new();
    for (workload, title, aim) in WORKLOADS.iter().filter(|w| only.is_empty() || only.contains(&w.0)) {
        let results: Vec<_> = READERS.iter().map(|r| measure(r, workload, &folder, repetitions)).collect();
        let ms = |i: usize| results[i].as_ref().ok().and_then(|v| v["ms"].as_f64());
        let mut cells = String::new();
        for (i, result) in results.iter().enumerate() {
            match result {
                Ok(v) => cells += &format!(" {:.1} |", v["ms"].as_f64().unwrap_or(f64::NAN)),
                Err(e) => {
                    cells += " - |";
                    wrong.push(format!("{workload}: {}: {e}", READERS[i]));
                }
            }
            if let (Ok(v), Ok(h5py)) = (result, &results[0])
                && v["sum"] != h5py["sum"]
            {
                wrong.push(format!("{workload}: {} gives other values than h5py", READERS[i]));
            }
        }
        let ratio = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => format!("{:.3}", a / b),
            _ => "-".into(),
        };
        let peer = (2..READERS.len()).filter_map(ms).reduce(f64::min);
        println!("| {title} |{cells} {} | {aim:.2} | {} |", ratio(ms(1), ms(0)), ratio(ms(1), peer));
        if *workload == "gzip_full" {
            let floor = measure("inflate", workload, &folder, repetitions)?;
            let floor = floor["ms"].as_f64();
            let text = floor.map_or("-".into(), |f| format!("{f:.1}"));
            println!(
                "| bare parallel inflating of its chunks | | {text} | | | {} | 1.10 | |",
                ratio(ms(1), floor)
            );
        }
    }
    println!("\npeak memory of one full read, MiB beyond the 128 MiB of the result\n");
    println!("| workload | {} |\n|---|{}", READERS.join(" | "), "---:|".repeat(READERS.len()));
    for workload in ["gzip_full", "contiguous_full", "small_full"] {
        let cell = |r: &&str| match measure(r, workload, &folder, 1).ok().and_then(|v| v["peak"].as_f64()) {
            Some(bytes) => format!(" {:.0} |", bytes / (1 << 20) as f64 - 128.0),
            None => " - |".into(),
        };
        println!("| {workload} |{}", READERS.iter().map(cell).collect::<String>());
    }
    for line in &wrong {
        println!("\n{line}");
    }
    Ok(())
}
