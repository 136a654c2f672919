//! `copy --chunks` beside `nccopy -c`: a field in chunks of one time step each becomes one in chunks of few places each.

use crate::Failure;
use hyperslab::copy::{CopyOptions, Extents, copy};
use hyperslab::source::write::{SyncPolicy, WriteOptions};
use hyperslab::write::Format;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Bytes of elements in memory that we are allowed.
const MEMORY: u64 = 512 << 20;
const CHUNKS: &[(&str, u64)] = &[("time", 1024), ("y", 16), ("x", 16)];

/// Copies in this process, and prints time and peak memory.
pub fn work(source: &str, target: &str) -> Result<(), Failure> {
    let mut options = CopyOptions::default();
    options.memory = MEMORY;
    options.create.write = WriteOptions::new().with_sync(SyncPolicy::None).with_overwrite(true);
    options.chunks = Some(Extents::Dimensions(CHUNKS.iter().map(|(n, e)| ((*n).to_owned(), *e)).collect()));
    let start = Instant::now();
    copy(&hyperslab::open(source)?, target, Format::NetCdf4, &options)?;
    println!("{}", json!({"s": start.elapsed().as_secs_f64(), "peak": crate::peak()}));
    Ok(())
}

/// Makes a file of so many GiB, copies it both ways, and prints a table.
pub fn run(folder: &Path, gib: &str) -> Result<(), Failure> {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (source, ours, theirs) = (path("rechunk.nc"), path("rechunked.nc"), path("rechunked-nccopy.nc"));
    crate::answer(crate::python("rechunk_data.py").args(["make", &source, gib]))?;
    let mut own = Command::new(std::env::current_exe()?);
    let done = crate::answer(own.args(["rechunk", &source, &ours]))?;
    let (seconds, peak) = (done["s"].as_f64().unwrap_or(f64::NAN), done["peak"].as_f64().unwrap_or(f64::NAN));
    let spec: Vec<String> = CHUNKS.iter().map(|(n, e)| format!("{n}/{e}")).collect();
    let start = Instant::now();
    let status = Command::new("nccopy").args(["-c", &spec.join(","), &source, &theirs]).status()?;
    let other = start.elapsed().as_secs_f64();
    if !status.success() {
        return Err("nccopy failed".into());
    }
    println!("| {gib} GiB, time-major to place-major | s | peak MiB |\n|---|---:|---:|");
    println!("| hyperslab, {} MiB allowed | {seconds:.1} | {:.0} |", MEMORY >> 20, peak / (1 << 20) as f64);
    println!("| nccopy -c | {other:.1} | |\n| ratio (aim 0.50; 600 MiB) | {:.3} | |", seconds / other);
    let same = crate::answer(crate::python("rechunk_data.py").args(["compare", &ours, &theirs]))?;
    for file in [&source, &ours, &theirs] {
        std::fs::remove_file(file)?;
    }
    match same["same"].as_bool() {
        Some(true) => Ok(()),
        _ => Err("the two copies hold other values".into()),
    }
}
