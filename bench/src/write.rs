//! Writing beside h5py and the writers of Zarr: the field of the other benchmarks, and files of many small datasets. What
//! each writer does is in `write_worker.py` too.

use crate::Failure;
use hyperslab::codec::FilterSpec;
use hyperslab::dtype::Native;
use hyperslab::model::write::{ArraySpec, LayoutSpec, ShardSpec};
use hyperslab::source::write::{SyncPolicy, WriteOptions};
use hyperslab::staged::Values;
use hyperslab::write::{CreateOptions, Format, Transaction, create};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// One workload: name, title, the most that it may take of the time of the fastest peer, and the peers.
type Workload = (&'static str, &'static str, f64, &'static [&'static str]);

const HDF5: &[&str] = &["h5py"];
const ZARR: &[&str] = &["zarr-python", "zarrs-python", "tensorstore"];

const WORKLOADS: &[Workload] = &[
    ("write_gzip.h5", "HDF5, gzip 4 and shuffle", 0.5, HDF5),
    ("write_zstd.h5", "HDF5, Zstd 3 and shuffle", 0.5, HDF5),
    ("write_contiguous.h5", "HDF5, contiguous", 1.1, HDF5),
    ("write_chunked.h5", "HDF5, chunks without filters", 1.1, HDF5),
    ("write_small.h5", "HDF5, 10,000 small datasets", 0.15, HDF5),
    ("write_listing.h5", "HDF5, 10,000 with three attributes each", 0.15, HDF5),
    ("write_zstd.zarr", "Zarr 3, Zstd 3", 1.0, ZARR),
    ("write_shards.zarr", "Zarr 3, shards of 128x256x256, Zstd 3", 1.0, ZARR),
];

const CHUNK: [u64; 3] = [16, 64, 64];
const SHARD: [u64; 3] = [128, 256, 256];

fn hdf5(id: u16, parameters: &[u32]) -> FilterSpec {
    FilterSpec::Hdf5 { id, flags: 0, name: "".into(), parameters: parameters.to_vec() }
}

/// The array of a workload.
fn spec(workload: &str, shape: &[u64]) -> Result<ArraySpec, Failure> {
    let mut spec = ArraySpec::simple(Native::F32.dtype(), shape);
    if workload == "write_contiguous.h5" {
        return Ok(spec);
    }
    let shards = workload == "write_shards.zarr";
    let shard = shards.then(|| ShardSpec { extents: SHARD.to_vec(), index_at_start: false });
    spec.layout = LayoutSpec::Chunked { chunk: CHUNK.to_vec(), shard };
    spec.filters = match workload {
        "write_gzip.h5" => vec![hdf5(2, &[4]), hdf5(1, &[4])],
        "write_zstd.h5" => vec![hdf5(2, &[4]), hdf5(32015, &[3])],
        "write_chunked.h5" => Vec::new(),
        _ => {
            let configuration = hyperslab::json::Json::parse(br#"{"level": 3, "checksum": false}"#)?;
            vec![FilterSpec::Zarr { name: "zstd".into(), configuration }]
        }
    };
    Ok(spec)
}

/// 10,000 arrays of four numbers, with attributes or without.
fn many(file: &mut Transaction, attributes: bool) -> Result<(), Failure> {
    for g in 0..100 {
        let group = format!("group_{g:03}");
        file.create_group(&group)?;
        for i in 0..100 {
            let path = format!("{group}/dataset_{i:03}");
            file.create_array(&path, ArraySpec::simple(Native::I32.dtype(), &[4]))?;
            file.set(&path, .., &[0, 1, 2, 3])?;
            if attributes {
                file.set_attribute(&path, "index", i64::from(100 * g + i))?;
                file.set_attribute(&path, "range", &[0.0, 1.0, f64::from(i)])?;
                file.set_attribute(&path, "units", "kelvin")?;
            }
        }
    }
    Ok(())
}

/// Writes a workload to `path`.
fn write(workload: &str, path: &Path, field: &Values<'_>, sync: SyncPolicy) -> Result<(), Failure> {
    let format = if path.extension().is_some_and(|e| e == "zarr") { Format::Zarr3 } else { Format::Hdf5 };
    let mut options = CreateOptions::new();
    options.write = WriteOptions::new().with_sync(sync);
    let mut file = create(path.to_str().ok_or("a path that is not text")?, format, &options)?;
    match workload {
        "write_small.h5" | "write_listing.h5" => many(&mut file, workload == "write_listing.h5")?,
        _ => {
            file.create_array("/d", spec(workload, field.shape())?)?;
            file.set("/d", .., field.clone())?;
        }
    }
    file.commit()?;
    Ok(())
}

fn remove(path: &Path) -> std::io::Result<()> {
    match path {
        _ if path.is_dir() => std::fs::remove_dir_all(path),
        _ if path.exists() => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// Milliseconds of processor time that this process has used, to a hundredth of a second.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum::<f64>() * 10.0
}

/// Writes a workload again and again and prints the best time; `full`: durable.
pub fn work(workload: &str, folder: &Path, repetitions: &str, full: bool) -> Result<(), Failure> {
    let source = folder.join("contiguous.h5");
    let source = hyperslab::open(source.to_str().ok_or("a path that is not text")?)?.array("/d")?;
    let field = source.read::<f32>("...")?;
    let field = Values::new(source.shape(), &field.data)?;
    let sync = if full { SyncPolicy::Full } else { SyncPolicy::None };
    let (mut best, mut used) = (f64::INFINITY, f64::INFINITY);
    let path = folder.join(workload);
    for _ in 0..repetitions.parse::<usize>()? {
        remove(&path)?;
        let (before, start) = (processor(), Instant::now());
        write(workload, &path, &field, sync)?;
        best = best.min(start.elapsed().as_secs_f64() * 1000.0);
        used = used.min(processor() - before);
    }
    println!("{}", json!({"ms": best, "cpu": used}));
    Ok(())
}

/// The time of one writer, and what it wrote, as a reader of its own reads it.
fn measure(
    writer: &str,
    workload: &str,
    folder: &Path,
    repetitions: u32,
) -> Result<(f64, f64, Value), Failure> {
    let mut command = match writer {
        "hyperslab" | "durable" => {
            let mut c = std::process::Command::new(std::env::current_exe()?);
            c.arg(if writer == "durable" { "write-durable" } else { "write" });
            c
        }
        _ => {
            let mut c = crate::python("write_worker.py");
            c.arg(writer);
            c
        }
    };
    let times = crate::answer(command.arg(workload).arg(folder).arg(repetitions.to_string()))?;
    let mut check = crate::python("write_worker.py");
    let written = crate::answer(check.args(["check", workload]).arg(folder).arg("1"))?;
    remove(&folder.join(workload))?;
    let number = |name: &str| times[name].as_f64().unwrap_or(f64::NAN);
    Ok((number("ms"), number("cpu"), written))
}

/// The workloads asked for, as a table. The peers sync nothing, nor do we in the column beside them.
pub fn run(only: &[&str], folder: &Path, repetitions: u32, wrong: &mut Vec<String>) {
    let chosen = |w: &&Workload| only.is_empty() || only.iter().any(|o| w.0 == *o || *o == "write");
    if WORKLOADS.iter().any(|w| chosen(&w)) {
        println!(
            "\nwriting; no writer syncs, but for the one called durable; in brackets the time of all processors\n"
        );
        println!("| workload | hyperslab | durable | peers | ours to the fastest | size | aim |");
        println!("|---|---:|---:|---|---|---|---|");
    }
    for (workload, title, aim, peers) in WORKLOADS.iter().filter(chosen) {
        let ours = match measure("hyperslab", workload, folder, repetitions) {
            Ok(ours) => ours,
            Err(e) => {
                wrong.push(format!("{workload}: hyperslab: {e}"));
                continue;
            }
        };
        let durable = match measure("durable", workload, folder, repetitions) {
            Ok((ms, ..)) => format!("{ms:.1}"),
            Err(e) => {
                wrong.push(format!("{workload}: durable: {e}"));
                "-".into()
            }
        };
        let (mut cells, mut fastest, mut smallest) = (Vec::new(), f64::INFINITY, f64::INFINITY);
        for peer in *peers {
            match measure(peer, workload, folder, repetitions) {
                Ok((ms, used, written)) => {
                    cells.push(format!("{peer} {ms:.1} ({used:.0})"));
                    fastest = fastest.min(ms);
                    smallest = smallest.min(written["bytes"].as_f64().unwrap_or(f64::NAN));
                    if written["sum"] != ours.2["sum"] {
                        wrong.push(format!("{workload}: {peer} and hyperslab wrote other values"));
                    }
                }
                Err(e) => wrong.push(format!("{workload}: {peer}: {e}")),
            }
        }
        let bytes = ours.2["bytes"].as_f64().unwrap_or(f64::NAN);
        let miss = if ours.0 / fastest > *aim { " (missed)" } else { "" };
        println!(
            "| {title} | {:.1} ({:.0}) | {durable} | {} | {:.3}{miss} | {:.2} | {aim:.2} |",
            ours.0,
            ours.1,
            cells.join(", "),
            ours.0 / fastest,
            bytes / smallest
        );
    }
}
