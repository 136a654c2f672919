//! Staged arrays beside versioned-hdf5, on arrays in memory. What each operation does is in `staged_worker.py` too.

use crate::Failure;
use hyperslab::dtype::Element;
use hyperslab::select::{Mask, Step};
use hyperslab::staged::{Block, StagedArray, Values};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Operations with the aim: at most so many times the time of versioned-hdf5.
const AIMS: &[(&str, f64)] = &[
    ("assign_100", 0.1),
    ("assign_100_1d", 0.1),
    ("assign_100_staged", 0.1),
    ("assign_100_staged_1d", 0.1),
    ("assign_one", 0.1),
    ("assign_whole", 0.8),
    ("assign_whole_1d", 0.8),
    ("assign_strided", 0.8),
    ("assign_rows", 0.8),
    ("assign_rows_unsorted", 0.8),
    ("assign_rows_mask", 0.8),
    ("assign_points_1d", 0.8),
    ("read_100", 0.1),
    ("read_100_1d", 0.1),
    ("read_whole", 0.8),
    ("read_whole_1d", 0.8),
    ("read_strided", 0.8),
    ("read_rows", 0.8),
    ("read_rows_unsorted", 0.8),
    ("read_points_1d", 0.8),
    ("resize_up", 0.1),
    ("resize_up_1d", 0.1),
    ("resize_up_edges", 0.8),
    ("resize_down", 0.8),
    ("resize_down_1d", 0.1),
    ("load", 0.8),
    ("load_1d", 0.8),
    ("commit", 0.8),
    ("commit_1d", 0.8),
    ("commit_same", 0.8),
];

/// Median of the times of `work` in ms; `prepare` is not timed, nor is what becomes of the results.
struct Bench {
    repetitions: usize,
    times: Vec<(&'static str, f64)>,
}

impl Bench {
    fn measure<R>(
        &mut self,
        name: &'static str,
        prepare: impl Fn() -> Result<StagedArray, Failure>,
        work: impl Fn(&mut StagedArray) -> Result<R, Failure>,
    ) -> Result<(), Failure> {
        let mut taken = Vec::new();
        for _ in 0..=self.repetitions {
            let mut array = prepare()?;
            let start = Instant::now();
            let kept = work(&mut array)?;
            taken.push(start.elapsed().as_secs_f64() * 1000.0);
            drop(kept);
        }
        taken.remove(0);
        taken.sort_by(f64::total_cmp);
        self.times.push((name, taken[taken.len() / 2]));
        Ok(())
    }
}

fn corner(i: u64, n: u64) -> u64 {
    i * 7919 % n
}

fn block<T: Element>(shape: &[u64], data: &[T]) -> Result<Block, Failure> {
    Ok(Block::from_values(&Values::new(shape, data)?)?)
}

/// All of them, in the order of the table.
fn ours(repetitions: usize) -> Result<Vec<(&'static str, f64)>, Failure> {
    let plane: Vec<f64> = (0..4_000_000).map(f64::from).collect();
    let line: Vec<i64> = (0..10_000_000).collect();
    let (small, run) = (vec![1f64; 37 * 53], vec![1i64; 1000]);
    let small = Values::new(&[37, 53], &small)?;
    let rows: Vec<i64> = (0..2000).step_by(10).collect();
    let mixed: Vec<i64> = (0..200).map(|i| i * 1237 % 2000).collect();
    let mask: Vec<bool> = (0..2000).map(|i| i % 10 == 0).collect();
    let points: Vec<i64> = (0..5000).map(|i| i * 7919 * 13 % 10_000_000).collect();
    let corners: Vec<(u64, u64)> = (0..100).map(|i| (corner(i, 1960), corner(i * 31, 1940))).collect();
    let starts: Vec<u64> = (0..100).map(|i| corner(i * 977, 9_999_000)).collect();
    let plane_kept = StagedArray::from_base(block(&[2000, 2000], &plane)?, &[100, 100], None)?;
    let line_kept = StagedArray::from_base(block(&[10_000_000], &line)?, &[4096], None)?;
    let wide: Vec<f64> = (0..2050 * 2050).map(|i| f64::from(i % 4_000_000)).collect();
    let edges_kept = StagedArray::from_base(block(&[2050, 2050], &wide)?, &[100, 100], None)?;
    let plane_base = || Ok(plane_kept.copy());
    let line_base = || Ok(line_kept.copy());
    let loaded = |kept: &StagedArray| {
        let mut array = kept.copy();
        array.load()?;
        Ok(array)
    };
    let boxes = |a: &mut StagedArray| -> Result<(), Failure> {
        for &(y, x) in &corners {
            a.set((y..y + 37, x..x + 53), small.clone())?;
        }
        Ok(())
    };
    let runs = |a: &mut StagedArray| -> Result<(), Failure> {
        for &start in &starts {
            a.set(start..start + 1000, &run)?;
        }
        Ok(())
    };
    let read_boxes = |a: &mut StagedArray| {
        corners
            .iter()
            .map(|&(y, x)| Ok(a.read::<f64>((y..y + 37, x..x + 53))?))
            .collect::<Result<Vec<_>, Failure>>()
    };
    let read_runs = |a: &mut StagedArray| {
        starts
            .iter()
            .map(|&start| Ok(a.read::<i64>(start..start + 1000)?))
            .collect::<Result<Vec<_>, Failure>>()
    };
    let all = Values::new(&[2000, 2000], &plane)?;
    let mut b = Bench { repetitions, times: Vec::new() };
    b.measure("assign_100", plane_base, boxes)?;
    b.measure("assign_100_1d", line_base, runs)?;
    b.measure("assign_100_staged", || loaded(&plane_kept), boxes)?;
    b.measure("assign_100_staged_1d", || loaded(&line_kept), runs)?;
    b.measure("assign_one", plane_base, |a| Ok(a.set((777, 777), 5.0)?))?;
    b.measure("assign_whole", plane_base, |a| Ok(a.set(.., all.clone())?))?;
    b.measure("assign_whole_1d", line_base, |a| Ok(a.set(.., &line)?))?;
    b.measure("assign_strided", plane_base, |a| Ok(a.set((Step(.., 7), Step(.., 5)), 5.0)?))?;
    b.measure("assign_rows", plane_base, |a| Ok(a.set(rows.clone(), 5.0)?))?;
    b.measure("assign_rows_unsorted", plane_base, |a| Ok(a.set(mixed.clone(), 5.0)?))?;
    b.measure("assign_rows_mask", plane_base, |a| Ok(a.set(Mask::from(mask.clone()), 5.0)?))?;
    b.measure("assign_points_1d", line_base, |a| Ok(a.set(points.clone(), 5i64)?))?;
    b.measure("read_100", plane_base, read_boxes)?;
    b.measure("read_100_1d", line_base, read_runs)?;
    b.measure("read_whole", plane_base, |a| Ok(a.read::<f64>(..)?))?;
    b.measure("read_whole_1d", line_base, |a| Ok(a.read::<i64>(..)?))?;
    b.measure("read_strided", plane_base, |a| Ok(a.read::<f64>((Step(.., 7), Step(.., 5)))?))?;
    b.measure("read_rows", plane_base, |a| Ok(a.read::<f64>(rows.clone())?))?;
    b.measure("read_rows_unsorted", plane_base, |a| Ok(a.read::<f64>(mixed.clone())?))?;
    b.measure("read_points_1d", line_base, |a| Ok(a.read::<i64>(points.clone())?))?;
    b.measure("resize_up", plane_base, |a| Ok(a.resize(&[2080, 2080])?))?;
    b.measure("resize_up_1d", line_base, |a| Ok(a.resize(&[10_000_300])?))?;
    b.measure("resize_up_edges", || Ok(edges_kept.copy()), |a| Ok(a.resize(&[2080, 2080])?))?;
    b.measure("resize_down", plane_base, |a| Ok(a.resize(&[1950, 1950])?))?;
    b.measure("resize_down_1d", line_base, |a| Ok(a.resize(&[9_999_000])?))?;
    b.measure("load", plane_base, |a| Ok(a.load()?))?;
    b.measure("load_1d", line_base, |a| Ok(a.load()?))?;
    b.measure("commit", || loaded(&plane_kept), |a| Ok(a.commit()?))?;
    b.measure("commit_1d", || loaded(&line_kept), |a| Ok(a.commit()?))?;
    let same = || {
        let dtype = hyperslab::dtype::Native::F64.dtype();
        let mut array = StagedArray::full(&[2000, 2000], &[100, 100], &dtype, None)?;
        array.set(.., 1.0)?;
        Ok(array)
    };
    b.measure("commit_same", same, |a| Ok(a.commit()?))?;
    Ok(b.times)
}

/// Times all operations here and in versioned-hdf5, one after the other, and prints a table.
pub fn run(repetitions: usize) -> Result<(), Failure> {
    let python = std::env::var("HYPERSLAB_PYTHON").unwrap_or("python3".into());
    let worker = Path::new(env!("CARGO_MANIFEST_DIR")).join("staged_worker.py");
    let output = Command::new(python).arg(worker).arg(repetitions.to_string()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let theirs: Value = serde_json::from_slice(&output.stdout)?;
    let ours = ours(repetitions)?;
    println!("medians of {repetitions} in ms; arrays in memory\n");
    println!("| operation | versioned-hdf5 | hyperslab | ratio | aim |");
    println!("|---|---:|---:|---:|---:|");
    for (name, aim) in AIMS {
        let mine = ours.iter().find(|(n, _)| n == name).ok_or("an operation without a time")?.1;
        let other = theirs[name].as_f64().ok_or("an operation that versioned-hdf5 does not know")?;
        let ratio = mine / other;
        let miss = if ratio > *aim { " (missed)" } else { "" };
        println!("| {name} | {other:.3} | {mine:.3} | {ratio:.3}{miss} | {aim} |");
    }
    Ok(())
}
