//! Crashes while files are written: the states that they may leave, and processes that are killed.

mod kill;
mod scenario;

pub use kill::{Work, commit_of, kills, write_for_ever};
pub use scenario::SCENARIOS;

use hyperslab::array::Item;
use hyperslab::dtype::{ByteOrder, DType, IntegerType};
use hyperslab::error::Result;
use hyperslab::format::netcdf3;
use hyperslab::model::write::{
    ArraySpec, AttributeSpec, Change, Content, EncodedChunk, HierarchyWriter, ObjectPath,
};
use hyperslab::model::{Dataspace, Dimension};
use hyperslab::shape::Coord;
use hyperslab::source::write::simulate::{Crash, Fault, Outcome, Recording};
use hyperslab::source::write::{Locking, SyncPolicy, WriteOptions};
use hyperslab::staged::{StagedArray, Values};
use hyperslab::write::{CreateOptions, Format};
use hyperslab::{ErrorKind, File, Object, OpenOptions, Selection};
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
            if entry.path.ends_with("/__first_version__") && attribute.name.as_bytes() == b"timestamp" {
                // By the clock.
                continue;
            }
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

/// States in which a crash may leave a file while an edit that was interrupted is taken back, or carried through: it breaks off at
/// every `step`th call of a scenario, and what opens the file then breaks off too.
pub fn recoveries(scenario: &Scenario, step: usize, crash: Crash) -> Result<Outcome> {
    let mut all = Outcome::default();
    for at in (0..).step_by(step) {
        let folder = scratch("torn");
        let disk = Recording::new(&folder).expect("a folder is looked at");
        let disk = disk.with_fault(Fault { at, error: 5, stays: true });
        let ended = (scenario.run)(&folder, &options().with_disk(Arc::new(disk.clone())), &mut || {});
        if disk.calls() <= at {
            ended?;
            break;
        }
        let target = folder.join(scenario.target);
        if !target.exists() {
            continue;
        }
        let disk = Recording::new(&folder).expect("a folder is looked at");
        let how = options().with_disk(Arc::new(disk.clone()));
        let edit = || hyperslab::edit(target.to_string_lossy().as_ref(), &OpenOptions::default(), &how);
        let mut opened = edit();
        for _ in 0..50 {
            // A process that another test is starting may have our lock for a moment.
            if opened.as_ref().is_err_and(|e| e.kind() == ErrorKind::Permission) {
                std::thread::sleep(std::time::Duration::from_millis(20));
                opened = edit();
            }
        }
        drop(opened?);
        let states = [contents(&target)];
        let crashed = scratch("again");
        let mut look = |folder: &Path| contents(&folder.join(scenario.target));
        let outcome = crash.run(&disk, &crashed, &states, &mut look).expect("states are laid out");
        all.states += outcome.states;
        all.old += outcome.old;
        all.lost.extend(outcome.lost.into_iter().map(|lost| format!("broken off at call {at}, {lost}")));
    }
    for name in ["torn", "again"] {
        let _ = std::fs::remove_dir_all(scratch(name));
    }
    Ok(all)
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
