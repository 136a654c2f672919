//! Versions of arrays beside versioned-hdf5, in files. What each workload does is in `versions_worker.py` too.

use crate::Failure;
use hyperslab::dtype::Native;
use hyperslab::model::write::ArraySpec;
use hyperslab::source::write::{SyncPolicy, WriteOptions};
use hyperslab::staged::{Block, Values};
use hyperslab::version::{Order, Parent, Versions, delete_versions, stage};
use hyperslab::write::CreateOptions;
use hyperslab::{Format, OpenOptions};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Workloads, each for both arrays, with the aim: at most so many times the time of versioned-hdf5.
const AIMS: &[(&str, &str, f64)] = &[
    ("open", "open version 50 of 101, five elements", 0.2),
    ("whole", "open version 50 of 101, all of it", 0.6),
    ("first", "first version", 0.6),
    ("one", "version with one chunk changed", 0.2),
    ("hundred", "a hundred such versions", 0.1),
    ("delete", "50 of 101 versions deleted", 0.05),
];

/// Versions in the file of many small ones.
const MANY: u64 = 2000;

#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    shape: &'static [u64],
    chunk: &'static [u64],
    native: Native,
}

const KINDS: &[Kind] = &[
    Kind { name: "line", shape: &[10_000_000], chunk: &[4096], native: Native::I64 },
    Kind { name: "plane", shape: &[2000, 2000], chunk: &[100, 100], native: Native::F64 },
];

impl Kind {
    fn spot(&self, i: u64) -> Vec<u64> {
        let at = i * 7919 * 1237 % self.shape.iter().product::<u64>();
        match self.shape {
            [_, wide] => vec![at / wide, at % wide],
            _ => vec![at],
        }
    }
}

/// Time on the clock and of the processor, in ms.
#[derive(Clone, Copy)]
struct Taken(f64, f64);

fn processor() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the structure it is given, and to nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1000.0 + time.tv_nsec as f64 / 1e6
}

/// Medians of the times of `work`; `prepare` is not timed, nor is what becomes of the results, nor the first run of several.
fn measure<R>(
    count: usize,
    prepare: impl Fn() -> Result<(), Failure>,
    work: impl Fn() -> Result<R, Failure>,
) -> Result<Taken, Failure> {
    let mut taken = Vec::new();
    for _ in 0..=count {
        prepare()?;
        let (start, before) = (Instant::now(), processor());
        let kept = work()?;
        taken.push((start.elapsed().as_secs_f64() * 1000.0, processor() - before));
        drop(kept);
    }
    taken.drain(..1.min(count - 1));
    let median = |column: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = taken.iter().map(column).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Ok(Taken(median(|t| t.0), median(|t| t.1)))
}

struct Bench {
    folder: PathBuf,
    write: WriteOptions,
}

impl Bench {
    fn scratch(&self) -> PathBuf {
        self.folder.join("ours.h5")
    }

    fn fresh(&self, source: Option<&Path>) -> Result<(), Failure> {
        let _ = std::fs::remove_file(self.scratch());
        if let Some(source) = source {
            std::fs::copy(source, self.scratch())?;
        }
        Ok(())
    }

    fn first(&self, kind: &Kind, path: &Path, data: &Block) -> Result<(), Failure> {
        let mut options = CreateOptions::default();
        options.write = self.write.clone();
        hyperslab::create(path, Format::Hdf5, &options)?.commit()?;
        let mut next = stage(path, "/", "r0", &Parent::Current, &OpenOptions::default(), &self.write)?;
        next.create_array("x", &ArraySpec::simple(kind.native.dtype(), kind.shape).with_chunk(kind.chunk))?;
        next.set("x", .., data)?;
        next.commit()?;
        Ok(())
    }

    fn more(&self, kind: &Kind, path: &Path, i: u64) -> Result<(), Failure> {
        let mut next =
            stage(path, "/", &format!("r{i}"), &Parent::Current, &OpenOptions::default(), &self.write)?;
        let spot: Vec<String> = kind.spot(i).iter().map(u64::to_string).collect();
        match kind.native {
            Native::I64 => next.set("x", spot.join(", ").as_str(), -(i as i64))?,
            _ => next.set("x", spot.join(", ").as_str(), -(i as f64))?,
        }
        next.commit()?;
        Ok(())
    }

    fn read(&self, path: &Path, version: &str, selection: &str) -> Result<Vec<u8>, Failure> {
        let versions = Versions::open(&hyperslab::open(path)?)?;
        let array = versions.file(&versions.get(version)?).array("x")?;
        Ok(match selection {
            ".." => array.read_raw(..)?.bytes,
            some => array.read_raw(some)?.bytes,
        })
    }

    fn workload(&self, name: &str, kind: &Kind, repetitions: usize, data: &Block) -> Result<Taken, Failure> {
        let many = self.folder.join(format!("{}100.h5", kind.name));
        let own = self.folder.join(format!("{}_own.h5", kind.name));
        let path = self.scratch();
        let five = if kind.shape.len() == 1 { "0:5" } else { "0:5, 0:5" };
        let nothing = || Ok(());
        match name {
            "open" => measure(5 * repetitions, nothing, || self.read(&many, "r50", five)),
            "whole" => measure(repetitions, nothing, || self.read(&many, "r50", "..")),
            "first" => measure(repetitions, || self.fresh(None), || self.first(kind, &path, data)),
            "one" => measure(repetitions, || self.fresh(Some(&own)), || self.more(kind, &path, 1)),
            "hundred" => {
                let work = || (1..=100).try_for_each(|i| self.more(kind, &path, i));
                measure(1, || self.fresh(Some(&own)), work)
            }
            "delete" => {
                let odd = |_: &Versions| Ok((1..100).step_by(2).map(|i| format!("r{i}")).collect());
                let work = || -> Result<(), Failure> {
                    let open = OpenOptions::default();
                    delete_versions(path.as_path(), Some("/"), odd, &open, &self.write)?.commit()?;
                    Ok(())
                };
                measure(repetitions, || self.fresh(Some(&many)), work)
            }
            _ => Err("no such workload".into()),
        }
    }

    /// Opening a file with few versions and one with many of a small array.
    fn many(&self, repetitions: usize) -> Result<(Taken, Taken), Failure> {
        let kind = Kind { name: "small", shape: &[1000], chunk: &[100], native: Native::I64 };
        let data: Vec<i64> = (0..1000).collect();
        let data = Block::from_values(&Values::new(kind.shape, &data)?)?;
        let times = [10, MANY].map(|count| {
            let path = self.folder.join(format!("small{count}.h5"));
            if !path.exists() {
                self.first(&kind, &path, &data)?;
                (1..count).try_for_each(|i| self.more(&kind, &path, i))?;
            }
            let versions = Versions::open(&hyperslab::open(path.as_path())?)?;
            assert_eq!(versions.list(Order::Name)?.len() as u64, count);
            measure(20 * repetitions, || Ok(()), || self.read(&path, "r7", "0:5"))
        });
        let [few, many] = times;
        Ok((few?, many?))
    }
}

fn block(kind: &Kind) -> Result<Block, Failure> {
    let count = kind.shape.iter().product::<u64>() as i64;
    Ok(match kind.native {
        Native::I64 => Block::from_values(&Values::new(kind.shape, &(0..count).collect::<Vec<i64>>())?)?,
        _ => Block::from_values(&Values::new(
            kind.shape,
            &(0..count).map(|n| n as f64).collect::<Vec<f64>>(),
        )?)?,
    })
}

fn python(words: &[&str]) -> Result<Vec<u8>, Failure> {
    let python = std::env::var("HYPERSLAB_PYTHON").unwrap_or("python3".into());
    let worker = Path::new(env!("CARGO_MANIFEST_DIR")).join("versions_worker.py");
    let output = Command::new(python).arg(worker).args(words).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(output.stdout)
}

/// Times all workloads here and in versioned-hdf5 and prints a table. `only` names some of them, which are then not timed there.
pub fn run(folder: PathBuf, repetitions: usize, only: &[&str]) -> Result<(), Failure> {
    let folder = folder.join("versions");
    std::fs::create_dir_all(&folder)?;
    let place = folder.to_str().ok_or("a folder that is no text")?;
    python(&["make", place])?;
    let theirs: Value = match only {
        [] => serde_json::from_slice(&python(&[place, &repetitions.to_string()])?)?,
        _ => Value::Null,
    };
    let fast = Bench { folder: folder.clone(), write: WriteOptions::new().with_sync(SyncPolicy::None) };
    let safe = Bench { folder, write: WriteOptions::new() };
    println!("medians of {repetitions} in ms, in brackets of the processor; files in the page cache\n");
    println!("| workload | versioned-hdf5 | hyperslab, no sync | ratio | aim | hyperslab, synced |");
    println!("|---|---:|---:|---:|---:|---:|");
    let cell = |Taken(clock, processor): Taken| format!("{clock:.2} ({processor:.2})");
    for kind in KINDS {
        let data = block(kind)?;
        let own = fast.folder.join(format!("{}_own.h5", kind.name));
        let _ = std::fs::remove_file(&own);
        fast.first(kind, &own, &data)?;
        for (name, title, aim) in AIMS.iter().filter(|w| only.is_empty() || only.contains(&w.0)) {
            let mine = fast.workload(name, kind, repetitions, &data)?;
            let synced = match *name {
                "open" | "whole" => String::new(),
                _ => cell(safe.workload(name, kind, repetitions, &data)?),
            };
            let other = &theirs[format!("{name}_{}", kind.name)];
            let (other, ratio) = match (other[0].as_f64(), other[1].as_f64()) {
                (Some(clock), Some(processor)) => {
                    let miss = if mine.0 > aim * clock { " (missed)" } else { "" };
                    (cell(Taken(clock, processor)), format!("{:.3}{miss}", mine.0 / clock))
                }
                _ => ("-".into(), "-".into()),
            };
            println!("| {title}, {} | {other} | {} | {ratio} | {aim} | {synced} |", kind.name, cell(mine));
        }
    }
    if only.is_empty() || only.contains(&"many") {
        let (few, many) = fast.many(repetitions)?;
        println!("\n| open and read five elements | 10 versions | {MANY} versions | ratio | aim |");
        println!("|---|---:|---:|---:|---:|");
        println!("| an array of ten chunks | {} | {} | {:.3} | 2 |", cell(few), cell(many), many.0 / few.0);
    }
    let _ = std::fs::remove_file(fast.scratch());
    Ok(())
}
