//! Processes that write, killed at some moment.

use super::{array, commit_file, dimension, number, options, path_of, put, scratch};
use hyperslab::copy::{CopyOptions, copy};
use hyperslab::dtype::{ByteOrder, DType, IntegerType};
use hyperslab::error::Result;
use hyperslab::format::netcdf3::{self, Version};
use hyperslab::model::Dataspace;
use hyperslab::model::write::{ArraySpec, Change, HierarchyWriter};
use hyperslab::source::write::{SyncPolicy, leftovers};
use hyperslab::staged::{StagedArray, Values};
use hyperslab::version::{Order, Parent, Versions, stage};
use hyperslab::write::{Cdl, CreateOptions, Format};
use hyperslab::{Limits, OpenOptions, Selection};
use std::path::{Path, PathBuf};

/// What a process does until it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Changes a file in place.
    Edit,
    /// Makes it anew.
    Anew,
    /// Copies another file over it.
    Copy,
    /// Makes it anew of CDL.
    Create,
    /// Adds versions to it.
    Commit,
}

impl Work {
    const ALL: [(&str, Work); 5] = [
        ("--edit", Work::Edit),
        ("--anew", Work::Anew),
        ("--copy", Work::Copy),
        ("--create", Work::Create),
        ("--commit", Work::Commit),
    ];

    /// Reads its name.
    pub fn parse(text: &str) -> Option<Work> {
        Work::ALL.iter().find(|(name, _)| *name == text).map(|(_, work)| *work)
    }
}

/// Makes a file and edits it for ever, saying the number of each commit: for a process that will be killed.
pub fn write_for_ever(file: &Path, work: Work) -> Result<()> {
    use netcdf3::header::Type;
    let limits = Limits::default();
    let anew = match work {
        Work::Copy => return copy_for_ever(file),
        Work::Create => return create_for_ever(file),
        Work::Commit => return commit_for_ever(file),
        Work::Anew => true,
        Work::Edit => false,
    };
    if let Some(format @ (Format::Hdf5 | Format::Zarr3)) = Format::of_name(&file.to_string_lossy()) {
        return edit_for_ever(file, format, anew);
    }
    for n in 0i32.. {
        if anew || n == 0 {
            let options = options().with_overwrite(true);
            let mut w = netcdf3::write::create(file, Version::Offset64, &options)?;
            dimension(&mut w, "t", n as u64, true)?;
            dimension(&mut w, "x", 5000, false)?;
            array(&mut w, "a", Type::Int, &[("x", 5000)])?;
            array(&mut w, "r", Type::Int, &[("t", n as u64)])?;
            fill(&mut w, n)?;
            Box::new(w).commit()?;
        } else {
            let (_, mut w) = netcdf3::write::edit(file, &options(), &limits)?;
            w.apply(Change::Resize { array: path_of("r"), shape: vec![n as u64] })?;
            fill(&mut w, n)?;
            Box::new(w).commit()?;
        }
        println!("{n}");
    }
    Ok(())
}

fn edit_for_ever(file: &Path, format: Format, anew: bool) -> Result<()> {
    let address = file.to_string_lossy();
    let mut new = CreateOptions::new().with_overwrite(true);
    new.write = options().with_overwrite(true);
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    for n in 0i32.. {
        let rows: Vec<i32> = (0..n).collect();
        let mut w;
        if anew || n == 0 {
            w = hyperslab::create(&*address, format, &new)?;
            w.create_array("a", ArraySpec::simple(dtype.clone(), &[5000]).with_chunk(&[512]))?;
            let mut spec = ArraySpec::simple(dtype.clone(), &[n as u64]).with_chunk(&[64]);
            if let Dataspace::Simple { max, .. } = &mut spec.space {
                max[0] = None;
            }
            w.create_array("r", spec)?;
            w.write("a", &StagedArray::full(&[5000], &[512], &dtype, Some(Values::from(n)))?)?;
            let mut r = StagedArray::full(&[n as u64], &[64], &dtype, None)?;
            r.set(Selection::all(), Values::from(&rows))?;
            w.write("r", &r)?;
        } else {
            w = hyperslab::edit(&*address, &OpenOptions::default(), &options())?;
            w.set("a", Selection::all(), Values::from(n))?;
            let mut r = w.stage("r")?;
            r.resize(&[n as u64])?;
            r.set(&*format!("{}:", n - 1), Values::from(n - 1))?;
            w.write("r", &r)?;
        }
        w.set_attribute("/", "n", n)?;
        w.commit()?;
        println!("{n}");
    }
    Ok(())
}

fn fill(w: &mut dyn HierarchyWriter, n: i32) -> Result<()> {
    number(w, "/", "n", &[n])?;
    put(w, "a", &n.to_be_bytes().repeat(5000))?;
    put(w, "r", &(0..n).flat_map(|i| i.to_be_bytes()).collect::<Vec<_>>())
}

fn copy_for_ever(file: &Path) -> Result<()> {
    let address = file.to_string_lossy();
    let source = format!("{address}.source.h5");
    let mut made = CreateOptions::new().with_overwrite(true);
    made.write = options().with_overwrite(true).with_sync(SyncPolicy::None);
    let mut how = CopyOptions::default();
    how.create.write = options().with_overwrite(true);
    let format = Format::of_name(&address).unwrap_or(Format::Hdf5);
    for n in 0i32.. {
        create_from(&source, Format::Hdf5, &made, n)?;
        copy(&hyperslab::open(source.as_str())?, &*address, format, &how)?;
        println!("{n}");
    }
    Ok(())
}

/// CDL, made to a file.
fn create_from(address: &str, format: Format, new: &CreateOptions, n: i32) -> Result<()> {
    let list = |numbers: &mut dyn Iterator<Item = i32>| {
        numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
    };
    let a = list(&mut std::iter::repeat_n(n, 5000));
    let r = list(&mut (0..n));
    let r = if n > 0 { format!("r = {r};") } else { String::new() };
    let text = format!(
        "netcdf a {{ dimensions: x = 5000; t = UNLIMITED; variables: int a(x); int r(t); :n = {n}; data: a = {a}; {r} }}"
    );
    let mut w = hyperslab::create(address, format, new)?;
    Cdl::parse(text.as_bytes(), &Limits::default())?.write_to(&mut w, format)?;
    w.commit().map(|_| ())
}

fn create_for_ever(file: &Path) -> Result<()> {
    let address = file.to_string_lossy();
    let mut new = CreateOptions::new().with_overwrite(true);
    new.write = options().with_overwrite(true);
    let format = Format::of_name(&address).unwrap_or(Format::Hdf5);
    for n in 0i32.. {
        create_from(&address, format, &new, n)?;
        println!("{n}");
    }
    Ok(())
}

fn commit_for_ever(file: &Path) -> Result<()> {
    let address = file.to_string_lossy();
    let mut new = CreateOptions::new();
    new.write = options().with_overwrite(true);
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    // Version 0 is the file without versions.
    hyperslab::create(&*address, Format::Hdf5, &new)?.commit()?;
    println!("0");
    for n in 1i32.. {
        let open = OpenOptions::default();
        let mut next = stage(&*address, "/", &format!("v{n}"), &Parent::Current, &open, &options())?;
        if n == 1 {
            next.create_array("a", &ArraySpec::simple(dtype.clone(), &[5000]).with_chunk(&[512]))?;
            next.create_array("r", &ArraySpec::simple(dtype.clone(), &[0]).with_chunk(&[64]))?;
        }
        next.set("a", Selection::all(), Values::from(n))?;
        let r = next.array("r")?;
        r.resize(&[n as u64])?;
        r.set(&*format!("{}:", n - 1), Values::from(n - 1))?;
        next.commit()?;
        println!("{n}");
    }
    Ok(())
}

/// The newest version of a file of [`Work::Commit`], after a look at all of them.
fn version_of(file: &Path) -> std::result::Result<i32, String> {
    let wrong = |e: hyperslab::Error| e.to_string();
    let file = hyperslab::open(file.to_string_lossy().as_ref()).map_err(wrong)?;
    if file.group("_version_data").is_err() {
        return Ok(0);
    }
    let versions = Versions::open(&file).map_err(wrong)?;
    let all = versions.list(Order::Time).map_err(wrong)?;
    for (n, version) in (1i32..).zip(&all) {
        let file = versions.file(version);
        let read = |name| file.array(name).and_then(|a| a.read::<i32>(Selection::all())).map_err(wrong);
        let (a, r) = (read("a")?.data, read("r")?.data);
        if version.name != format!("v{n}") || a != [n; 5000] || !r.iter().copied().eq(0..n) {
            return Err(format!("version {} of {} is wrong", version.name, all.len()));
        }
    }
    let current = versions.current().map_err(wrong)?.map(|version| version.name);
    match current == Some(format!("v{}", all.len())) {
        true => Ok(all.len() as i32),
        false => Err(format!("{current:?} is the current one of {}", all.len())),
    }
}

/// The number of the commit that a file of [`write_for_ever`] is in; an error if it is in none.
pub fn commit_of(file: &Path) -> std::result::Result<i32, String> {
    let wrong = |e: hyperslab::Error| e.to_string();
    let file = hyperslab::open(file.to_string_lossy().as_ref()).map_err(wrong)?;
    let n = format!("{:?}", file.root().attribute("n").map_err(wrong)?);
    let n: i32 = n.chars().filter(char::is_ascii_digit).collect::<String>().parse().map_err(|_| n.clone())?;
    let a = file.array("a").and_then(|a| a.read::<i32>(Selection::all())).map_err(wrong)?.data;
    let r = file.array("r").and_then(|r| r.read::<i32>(Selection::all())).map_err(wrong)?.data;
    if a.len() != 5000 || a.iter().any(|&v| v != n) {
        return Err(format!("commit {n}, but a holds {:?}", a.iter().find(|&&v| v != n)));
    }
    if !r.iter().copied().eq(0..n) {
        return Err(format!("commit {n}, but r has {} values", r.len()));
    }
    Ok(n)
}

/// Kills a process that writes, again and again, at some moment; how often, and what was wrong.
pub fn kills(program: &Path, count: usize, seed: u64) -> (usize, Vec<String>) {
    use std::io::Read;
    let mut rng = crate::rng::Rng::new(seed, 0);
    let folder = scratch("kills");
    let (mut wrong, mut in_commit) = (Vec::new(), 0);
    for number in 0..count {
        let mode = Work::ALL[number % Work::ALL.len()].0;
        let ending = match mode {
            "--commit" => "h5",
            "--create" => ["nc", "h5", "zarr", "nczarr"][number / Work::ALL.len() % 4],
            _ => ["nc", "h5", "zarr"][number / Work::ALL.len() % 3],
        };
        let file = folder.join(format!("{number}.{ending}"));
        let mut child = std::process::Command::new(program)
            .args(["--write", file.to_str().expect("a path of text"), mode])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("the writer starts");
        std::thread::sleep(std::time::Duration::from_micros(3000 + rng.below(60_000) as u64));
        child.kill().expect("the writer is killed");
        let mut said = String::new();
        child.stdout.take().expect("its output").read_to_string(&mut said).expect("its output is text");
        child.wait().expect("it has ended");
        let told = said.lines().filter_map(|line| line.parse::<i32>().ok()).next_back().unwrap_or(-1);
        let journal = file.with_extension(format!("{ending}.hyperslab-journal"));
        in_commit += usize::from(journal.exists() || file.join(".hyperslab").exists());
        let found = if mode == "--commit" { version_of(&file) } else { commit_of(&file) };
        match found {
            Ok(n) if n == told || n == told + 1 => {}
            Err(_) if told == -1 && !file.exists() => {}
            Ok(n) => wrong.push(format!("{ending} {mode}: commit {told} was done, {n} is there")),
            Err(e) => wrong.push(format!("{ending} {mode}: commit {told} was done: {e}")),
        }
        // One of which nothing counts yet may stay until the next edit.
        match hyperslab::source::write::journal_state(&file, &Limits::default()) {
            Ok(None) => {}
            _ if !file.is_file() => {}
            other => wrong.push(format!("{mode}: the journal is still there: {other:?}")),
        }
        // The next one that writes a file of the name removes what is left.
        if let Err(e) = commit_file(&file, 3) {
            wrong.push(format!("{ending} {mode}: it cannot be written again: {e}"));
        }
        let left: Vec<PathBuf> = leftovers(&file);
        if !left.is_empty() {
            wrong.push(format!("{ending} {mode}: {left:?} is left"));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    (in_commit, wrong)
}
