//! Crashes while files are written: the states that they may leave, and processes that are killed.

use hyperslab::array::Item;
use hyperslab::dtype::{ByteOrder, DType, IntegerType};
use hyperslab::error::Result;
use hyperslab::format::netcdf3::{self, Version};
use hyperslab::model::write::{
    ArraySpec, AttributeSpec, Change, Content, EncodedChunk, HierarchyWriter, ObjectPath,
};
use hyperslab::model::{Dataspace, Dimension};
use hyperslab::shape::Coord;
use hyperslab::source::write::simulate::{Crash, Fault, Outcome, Recording};
use hyperslab::source::write::{Locking, SyncPolicy, WriteOptions};
use hyperslab::staged::{StagedArray, Values};
use hyperslab::write::{CreateOptions, Format, Transaction};
use hyperslab::{ErrorKind, File, Limits, Object, OpenOptions, Selection};
use sha2::Digest;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something that is written, commit by commit. It says when one is done.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The file in the folder.
    pub target: &'static str,
    /// Does it, in a folder.
    pub run: fn(&Path, &WriteOptions, &mut dyn FnMut()) -> Result<()>,
}

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "netcdf3", target: "a.nc", run: netcdf3 },
    Scenario { name: "netcdf3, more pages than memory", target: "a.nc", run: netcdf3_small },
    Scenario {
        name: "hdf5",
        target: "a.h5",
        run: |f, o, d| through_the_door(Format::Hdf5, &f.join("a.h5"), o, d),
    },
    Scenario {
        name: "hdf5, more pages than memory",
        target: "a.h5",
        run: |f, o, d| through_the_door(Format::Hdf5, &f.join("a.h5"), &o.clone().with_memory(8 << 10), d),
    },
    Scenario {
        name: "netcdf4",
        target: "a.nc",
        run: |f, o, d| through_the_door(Format::NetCdf4, &f.join("a.nc"), o, d),
    },
    Scenario {
        name: "zarr2",
        target: "a.zarr",
        run: |f, o, d| through_the_door(Format::Zarr2, &f.join("a.zarr"), o, d),
    },
    Scenario {
        name: "zarr3",
        target: "a.zarr",
        run: |f, o, d| through_the_door(Format::Zarr3, &f.join("a.zarr"), o, d),
    },
];

/// Options that take nothing from the environment.
pub fn options() -> WriteOptions {
    WriteOptions::new().with_locking(Locking::Always)
}

/// Everything in a file, as a hash; or why there is nothing.
pub fn contents(path: &Path) -> String {
    let file = match hyperslab::open(path.to_string_lossy().as_ref()) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound && !path.exists() => return "nothing".into(),
        Err(e) => return format!("{e}"),
    };
    match told(&file) {
        Ok(text) => sha2::Sha256::digest(text).iter().take(12).map(|b| format!("{b:02x}")).collect(),
        Err(e) => format!("{e}"),
    }
}

fn told(file: &File) -> Result<String> {
    let mut text = String::new();
    let mut fault = None;
    // What a transaction that was never committed has left is no fault.
    file.check(&mut |f| fault = Some(f.error).filter(|e| e.kind() != ErrorKind::NotYet));
    let mut walk = file.walk();
    for entry in walk.by_ref() {
        text.push_str(&format!("{}\n", entry.path));
        match &entry.item {
            Item::Group(..) | Item::Object(..) => {}
            Item::Fault(_, e) => text.push_str(&e.to_string()),
            other => {
                text.push_str(&format!("{other:?}\n"));
                continue;
            }
        }
        let object = entry.open(file)?;
        object.check(&mut |f| fault = Some(f.error));
        for attribute in object.attributes()? {
            let attribute = attribute.map_err(|(_, e)| e)?;
            let value = object.attribute_value(&attribute)?;
            text.push_str(&format!("{} {} {value:?}\n", attribute.name, attribute.dtype));
        }
        if let Object::Array(array) = object {
            let values = array.read_packed(Selection::all())?.bytes;
            text.push_str(&format!("{:?} {}\n", array.shape(), array.dtype()));
            text.extend(sha2::Sha256::digest(&values).iter().map(|b| format!("{b:02x}")));
        }
    }
    fault.map_or(Ok(text), Err)
}

/// A folder of its own, in memory where the system has such.
pub fn scratch(name: &str) -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let folder = folder.join(format!("hyperslab-crash-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder is made");
    folder
}

/// What a scenario leaves after each commit, and all states in which a crash may leave it, opened.
pub fn simulate(scenario: &Scenario, crash: Crash) -> Result<Outcome> {
    let folder = scratch("plain");
    let target = folder.join(scenario.target);
    let mut states = vec![contents(&target)];
    (scenario.run)(&folder, &options().with_sync(SyncPolicy::None), &mut || states.push(contents(&target)))?;
    let _ = std::fs::remove_dir_all(&folder);
    let folder = scratch("recorded");
    let disk = Recording::new(&folder).expect("a folder is looked at");
    (scenario.run)(&folder, &options().with_disk(Arc::new(disk.clone())), &mut || disk.done())?;
    let crashed = scratch("crashed");
    let mut look = |folder: &Path| contents(&folder.join(scenario.target));
    let outcome = crash.run(&disk, &crashed, &states, &mut look).expect("states are laid out");
    let _ = std::fs::remove_dir_all(&folder);
    let _ = std::fs::remove_dir_all(&crashed);
    Ok(outcome)
}

/// A path from the root.
pub fn path_of(text: &str) -> ObjectPath {
    ObjectPath::parse(text).expect("a path")
}

/// A dimension of the root group.
pub fn dimension(writer: &mut dyn HierarchyWriter, name: &str, length: u64, unlimited: bool) -> Result<()> {
    let dimension = Dimension { name: name.into(), length, unlimited };
    writer.apply(Change::CreateDimension { group: ObjectPath::root(), dimension })
}

/// An attribute of numbers of four bytes.
pub fn number(writer: &mut dyn HierarchyWriter, object: &str, name: &str, values: &[i32]) -> Result<()> {
    let count = values.len() as u64;
    let bytes: Vec<u8> = values.iter().flat_map(|n| n.to_be_bytes()).collect();
    let attribute = AttributeSpec {
        name: name.into(),
        dtype: netcdf3::header::Type::Int.dtype(),
        committed: None,
        space: Dataspace::Simple { dims: vec![count], max: vec![Some(count)] },
        content: Content::Fixed(bytes.into()),
    };
    writer.apply(Change::SetAttribute { object: path_of(object), attribute })
}

/// An array on dimensions of the root group.
pub fn array(
    writer: &mut dyn HierarchyWriter,
    name: &str,
    kind: netcdf3::header::Type,
    dims: &[(&str, u64)],
) -> Result<()> {
    let extents: Vec<u64> = dims.iter().map(|d| d.1).collect();
    let space = match extents.as_slice() {
        [] => Dataspace::Scalar,
        dims => Dataspace::Simple { dims: dims.to_vec(), max: dims.iter().map(|&d| Some(d)).collect() },
    };
    let mut spec = ArraySpec::new(kind.dtype(), space);
    spec.dimensions = dims.iter().map(|d| Some(path_of(d.0))).collect();
    writer.apply(Change::CreateArray { path: path_of(name), spec: Box::new(spec) })
}

/// Writes all elements of an array without filters, as stored, in the pieces that its writer wants.
pub fn put(writer: &mut dyn HierarchyWriter, name: &str, all: &[u8]) -> Result<()> {
    let layout = writer.layout(&path_of(name))?;
    let (grid, size) = (layout.grid(), layout.dtype.size());
    let mut chunks = Vec::new();
    for n in 0..layout.count()? {
        let mut rest = n;
        let mut coord: Coord = grid.iter().map(|_| 0).collect();
        for (axis, &count) in grid.iter().enumerate().rev() {
            coord[axis] = rest % count;
            rest /= count;
        }
        let (start, extent) = (layout.start_of(&coord), layout.valid_of(&coord));
        let first = start.iter().zip(&layout.shape).fold(0, |n, (&at, &d)| n * d + at) as usize * size;
        let length = extent.iter().product::<u64>() as usize * size;
        let bytes = all.get(first..first + length).expect("elements for all pieces");
        chunks.push(EncodedChunk { coord, bytes: Some(bytes.to_vec().into()), mask: 0 });
    }
    writer.write_chunks(&path_of(name), chunks)
}

/// Bytes that differ.
fn bytes(length: u64, seed: u64) -> Vec<u8> {
    (0..length).map(|n| (n * 7 + n / 251 + seed) as u8).collect()
}

fn netcdf3(folder: &Path, options: &WriteOptions, done: &mut dyn FnMut()) -> Result<()> {
    use netcdf3::header::Type;
    let (file, limits) = (folder.join("a.nc"), Limits::default());
    let edit = || netcdf3::write::edit(&file, options, &limits).map(|(_, writer)| writer);
    let mut commit = |writer: netcdf3::write::Writer| {
        Box::new(writer).commit()?;
        done();
        Ok(())
    };
    let mut w = netcdf3::write::create(&file, Version::Offset64, options)?;
    dimension(&mut w, "t", 2, true)?;
    dimension(&mut w, "x", 700, false)?;
    array(&mut w, "a", Type::Int, &[("x", 700)])?;
    array(&mut w, "r", Type::Short, &[("t", 2), ("x", 700)])?;
    array(&mut w, "s", Type::Byte, &[("t", 2)])?;
    put(&mut w, "a", &bytes(2800, 1))?;
    put(&mut w, "r", &bytes(2800, 2))?;
    commit(w)?;
    // Records: one, then many.
    for records in [3, 60] {
        let mut w = edit()?;
        w.apply(Change::Resize { array: path_of("r"), shape: vec![records, 700] })?;
        put(&mut w, "r", &bytes(records * 1400, 2))?;
        put(&mut w, "s", &bytes(records, 3))?;
        commit(w)?;
    }
    // Values in place; an attribute, for which there is no room at first.
    let mut w = edit()?;
    put(&mut w, "a", &bytes(2800, 5))?;
    commit(w)?;
    for n in 0..2 {
        let mut w = edit()?;
        number(&mut w, "a", "n", &[n; 40])?;
        put(&mut w, "a", &bytes(2800, n as u64))?;
        commit(w)?;
    }
    // Names, a further array, one that goes.
    let mut w = edit()?;
    w.apply(Change::Rename { from: path_of("s"), to: path_of("q") })?;
    commit(w)?;
    let mut w = edit()?;
    array(&mut w, "new", Type::Double, &[("t", 60)])?;
    commit(w)?;
    let mut w = edit()?;
    w.apply(Change::Delete { path: path_of("r") })?;
    w.apply(Change::Delete { path: path_of("new") })?;
    w.apply(Change::Resize { array: path_of("q"), shape: vec![7] })?;
    commit(w)?;
    // In place of the file that is there.
    let mut w = netcdf3::write::create(&file, Version::Classic, &options.clone().with_overwrite(true))?;
    array(&mut w, "a", Type::Int, &[])?;
    put(&mut w, "a", &[1, 2, 3, 4])?;
    commit(w)
}

fn netcdf3_small(folder: &Path, options: &WriteOptions, done: &mut dyn FnMut()) -> Result<()> {
    netcdf3(folder, &options.clone().with_memory(8 << 10), done)
}

/// Groups, arrays in chunks, attributes: made, changed in place, grown, cut, renamed, removed, and made anew.
fn through_the_door(
    format: Format,
    path: &Path,
    options: &WriteOptions,
    done: &mut dyn FnMut(),
) -> Result<()> {
    let address = path.to_string_lossy().into_owned();
    let mut new = CreateOptions::new();
    new.write = options.clone();
    let edit = || hyperslab::edit(address.as_str(), &OpenOptions::default(), options);
    let mut commit = |transaction: Transaction| {
        transaction.commit()?;
        done();
        Ok(())
    };
    let dtype = || DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    let growing = |dims: &[u64], chunk: &[u64]| {
        let mut spec = ArraySpec::simple(dtype(), dims).with_chunk(chunk).with_fill(&(-1i32).to_le_bytes());
        if let Dataspace::Simple { max, .. } = &mut spec.space {
            max[0] = None;
        }
        spec
    };
    let mut w = hyperslab::create(address.as_str(), format, &new)?;
    w.create_group("g")?;
    w.create_array("g/a", growing(&[20, 30], &[8, 8]))?;
    w.create_array("b", growing(&[5], &[4]))?;
    w.set_attribute("g", "title", "an example")?;
    let mut staged = StagedArray::full(&[20, 30], &[8, 8], &dtype(), Some(Values::from(-1i32)))?;
    staged.set("2:11, 3:20", Values::from(7i32))?;
    w.write("g/a", &staged)?;
    commit(w)?;
    // Values of whole chunks and of parts of them.
    let mut w = edit()?;
    w.set("g/a", "0:12, 0:9", Values::from(5i32))?;
    w.set_attribute("g/a", "units", "K")?;
    commit(w)?;
    // Rows more: one, then many.
    for rows in [6u64, 40] {
        let mut w = edit()?;
        let mut staged = w.stage("b")?;
        let before = staged.shape()[0];
        staged.resize(&[rows])?;
        staged.set(&*format!("{before}:"), Values::from(rows as i32))?;
        w.write("b", &staged)?;
        commit(w)?;
    }
    let mut w = edit()?;
    let mut staged = w.stage("g/a")?;
    staged.resize(&[9, 30])?;
    w.write("g/a", &staged)?;
    commit(w)?;
    // Objects that come, move and go.
    let mut w = edit()?;
    w.create_array("g/c", growing(&[50], &[50]))?;
    w.set_attribute("g/c", "text", &*"long ".repeat(200))?;
    commit(w)?;
    let mut w = edit()?;
    w.apply(Change::Rename { from: path_of("g/c"), to: path_of("c") })?;
    w.apply(Change::DeleteAttribute { object: path_of("g"), name: "title".into() })?;
    commit(w)?;
    let mut w = edit()?;
    w.apply(Change::Delete { path: path_of("g") })?;
    commit(w)?;
    new.write.overwrite = true;
    let mut w = hyperslab::create(address.as_str(), format, &new)?;
    w.create_array("only", growing(&[3], &[3]))?;
    commit(w)
}

/// Runs a scenario on a disk that fails at one of its calls, every `step`th of them, once or for good; how often, and what
/// was then neither the last commit that had returned nor the next.
pub fn faults(scenario: &Scenario, step: usize) -> Result<(usize, Vec<String>)> {
    let folder = scratch("plain");
    let target = folder.join(scenario.target);
    let mut states = vec![contents(&target)];
    (scenario.run)(&folder, &options().with_sync(SyncPolicy::None), &mut || states.push(contents(&target)))?;
    let (mut count, mut wrong) = (0, Vec::new());
    for at in (0..).step_by(step) {
        let mut reached = false;
        for (error, stays) in [(28, false), (28, true), (5, true)] {
            let folder = scratch("failing");
            let disk = Recording::new(&folder).expect("a folder is looked at");
            let disk = disk.with_fault(Fault { at, error, stays });
            let mut done = 0;
            let ended =
                (scenario.run)(&folder, &options().with_disk(Arc::new(disk.clone())), &mut || done += 1);
            reached |= disk.calls() > at;
            let found = contents(&folder.join(scenario.target));
            count += 1;
            let next = ended.is_err() && states.get(done + 1) == Some(&found);
            if states.get(done) != Some(&found) && !next {
                wrong.push(format!(
                    "{}: call {at}, error {error}, for good: {stays}: {done} commits, {found}; {ended:?}",
                    scenario.name
                ));
            }
        }
        if !reached {
            break;
        }
    }
    Ok((count, wrong))
}

/// A file with the arrays `a` along `x` and `r` along `t`, which can grow, of `n` integers each.
pub fn commit_file(file: &Path, n: u64) -> Result<()> {
    let address = file.to_string_lossy();
    let mut new = CreateOptions::new().with_overwrite(true);
    new.write = options().with_overwrite(true).with_sync(SyncPolicy::None);
    let format = Format::of_name(&address).unwrap_or(Format::Hdf5);
    let mut w = hyperslab::create(&*address, format, &new)?;
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    let numbers: Vec<i32> = (0..n as i32).map(|i| i.wrapping_mul(40_503) >> 7).collect();
    for (array, dim) in [("a", "x"), ("r", "t")] {
        let unlimited = array == "r";
        if format.is_netcdf() {
            let dimension = Dimension { name: dim.into(), length: n, unlimited };
            w.apply(Change::CreateDimension { group: ObjectPath::root(), dimension })?;
        }
        let mut spec = ArraySpec::simple(dtype.clone(), &[n]);
        if format != Format::NetCdf3 {
            spec = spec.with_chunk(&[n.min(4096)]);
        }
        if format.is_netcdf() {
            spec.dimensions = vec![Some(path_of(dim))];
        }
        if let Dataspace::Simple { max, .. } = &mut spec.space
            && unlimited
        {
            max[0] = None;
        }
        w.create_array(array, spec)?;
        let mut staged = StagedArray::full(&[n], &[4096], &dtype, None)?;
        staged.set(Selection::all(), Values::from(&numbers))?;
        w.write(array, &staged)?;
    }
    w.commit().map(|_| ())
}

/// Makes a file and edits it for ever, saying the number of each commit: for a process that will be killed.
pub fn write_for_ever(file: &Path, anew: bool) -> Result<()> {
    use netcdf3::header::Type;
    let limits = Limits::default();
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
        let ending = ["nc", "h5", "zarr"][number % 3];
        let file = folder.join(format!("{number}.{ending}"));
        let mode = if rng.chance(30) { "--anew" } else { "--edit" };
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
        match commit_of(&file) {
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
    }
    let _ = std::fs::remove_dir_all(&folder);
    (in_commit, wrong)
}
