//! What is written while crashes are simulated.

use super::{Scenario, array, commit_file, dimension, number, path_of, put, scratch};
use hyperslab::copy::{CopyOptions, Extents, copy, parse_codecs};
use hyperslab::dtype::{ByteOrder, DType, IntegerType};
use hyperslab::error::Result;
use hyperslab::format::netcdf3::{self, Version};
use hyperslab::model::write::{ArraySpec, Change, HierarchyWriter, LayoutSpec, ObjectPath, ShardSpec};
use hyperslab::model::{Dataspace, Dimension};
use hyperslab::source::write::WriteOptions;
use hyperslab::staged::{StagedArray, Values};
use hyperslab::version::{Parent, Timestamp, Versions, delete_versions, rebuild_hash_tables, stage};
use hyperslab::write::{CreateOptions, Format, Transaction};
use hyperslab::{File, Limits, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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
    Scenario {
        name: "nczarr",
        target: "a.nczarr",
        run: |f, o, d| through_the_door(Format::NcZarr, &f.join("a.nczarr"), o, d),
    },
    Scenario {
        name: "zarr3 in a zip file",
        target: "a.zip",
        run: |f, o, d| through_the_door(Format::Zarr3, &f.join("a.zip"), o, d),
    },
    Scenario { name: "shards", target: "a.zarr", run: shards },
    Scenario { name: "versions", target: "a.h5", run: versions },
    Scenario {
        name: "copies over a file",
        target: "a.h5",
        run: |f, o, d| copies(&f.join("a.h5"), &[Format::Hdf5, Format::NetCdf4], o, d),
    },
    Scenario {
        name: "copies over a classic file",
        target: "a.nc",
        run: |f, o, d| copies(&f.join("a.nc"), &[Format::Cdf2, Format::NetCdf3], o, d),
    },
    Scenario {
        name: "copies over a folder",
        target: "a.zarr",
        run: |f, o, d| copies(&f.join("a.zarr"), &[Format::Zarr3, Format::NcZarr, Format::Zarr2], o, d),
    },
    Scenario {
        name: "copies over a zip file",
        target: "a.zip",
        run: |f, o, d| copies(&f.join("a.zip"), &[Format::Zarr3, Format::Zarr2], o, d),
    },
    Scenario { name: "a copy onto itself, without what was deleted", target: "a.h5", run: repack },
    Scenario { name: "netcdf3, moved and cut", target: "a.nc", run: moved },
];

/// Bytes that differ.
fn bytes(length: u64, seed: u64) -> Vec<u8> {
    (0..length).map(|n| (n * 7 + n / 251 + seed) as u8).collect()
}

/// A netCDF-3 file that is changed in several edits.
struct Classic<'a> {
    file: PathBuf,
    options: &'a WriteOptions,
    done: &'a mut dyn FnMut(),
}

impl Classic<'_> {
    fn create(&self, version: Version) -> Result<netcdf3::write::Writer> {
        netcdf3::write::create(&self.file, version, self.options)
    }

    fn edit(&self) -> Result<netcdf3::write::Writer> {
        netcdf3::write::edit(&self.file, self.options, &Limits::default()).map(|(_, writer)| writer)
    }

    fn commit(&mut self, writer: netcdf3::write::Writer) -> Result<()> {
        Box::new(writer).commit()?;
        (self.done)();
        Ok(())
    }
}

fn netcdf3(folder: &Path, options: &WriteOptions, done: &mut dyn FnMut()) -> Result<()> {
    use netcdf3::header::Type;
    let mut classic = Classic { file: folder.join("a.nc"), options, done };
    let mut w = classic.create(Version::Offset64)?;
    dimension(&mut w, "t", 2, true)?;
    dimension(&mut w, "x", 700, false)?;
    array(&mut w, "a", Type::Int, &[("x", 700)])?;
    array(&mut w, "r", Type::Short, &[("t", 2), ("x", 700)])?;
    array(&mut w, "s", Type::Byte, &[("t", 2)])?;
    put(&mut w, "a", &bytes(2800, 1))?;
    put(&mut w, "r", &bytes(2800, 2))?;
    classic.commit(w)?;
    // Records: one, then many.
    for records in [3, 60] {
        let mut w = classic.edit()?;
        w.apply(Change::Resize { array: path_of("r"), shape: vec![records, 700] })?;
        put(&mut w, "r", &bytes(records * 1400, 2))?;
        put(&mut w, "s", &bytes(records, 3))?;
        classic.commit(w)?;
    }
    // Values in place; an attribute, for which there is no room at first.
    let mut w = classic.edit()?;
    put(&mut w, "a", &bytes(2800, 5))?;
    classic.commit(w)?;
    for n in 0..2 {
        let mut w = classic.edit()?;
        number(&mut w, "a", "n", &[n; 40])?;
        put(&mut w, "a", &bytes(2800, n as u64))?;
        classic.commit(w)?;
    }
    // Names, a further array, one that goes.
    let mut w = classic.edit()?;
    w.apply(Change::Rename { from: path_of("s"), to: path_of("q") })?;
    classic.commit(w)?;
    let mut w = classic.edit()?;
    array(&mut w, "new", Type::Double, &[("t", 60)])?;
    classic.commit(w)?;
    let mut w = classic.edit()?;
    w.apply(Change::Delete { path: path_of("r") })?;
    w.apply(Change::Delete { path: path_of("new") })?;
    w.apply(Change::Resize { array: path_of("q"), shape: vec![7] })?;
    classic.commit(w)?;
    // In place of the file that is there.
    let mut w =
        netcdf3::write::create(&classic.file, Version::Classic, &options.clone().with_overwrite(true))?;
    array(&mut w, "a", Type::Int, &[])?;
    put(&mut w, "a", &[1, 2, 3, 4])?;
    classic.commit(w)
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
    // Along a dimension of its own, where that says whether an array can grow.
    let growing = |w: &mut Transaction, path: &str, dims: &[u64], chunk: &[u64]| {
        let mut spec = ArraySpec::simple(dtype(), dims).with_chunk(chunk).with_fill(&(-1i32).to_le_bytes());
        if let Dataspace::Simple { max, .. } = &mut spec.space {
            max[0] = None;
        }
        if format == Format::NcZarr {
            let name = format!("along_{}", path.replace('/', "_"));
            let dimension = Dimension { name: name.as_str().into(), length: dims[0], unlimited: true };
            w.apply(Change::CreateDimension { group: ObjectPath::root(), dimension })?;
            spec.dimensions = dims.iter().map(|_| None).collect();
            spec.dimensions[0] = Some(path_of(&name));
        }
        w.create_array(path, spec)
    };
    let mut w = hyperslab::create(address.as_str(), format, &new)?;
    w.create_group("g")?;
    growing(&mut w, "g/a", &[20, 30], &[8, 8])?;
    growing(&mut w, "b", &[5], &[4])?;
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
    growing(&mut w, "g/c", &[50], &[50])?;
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
    growing(&mut w, "only", &[3], &[3])?;
    commit(w)
}

fn integers() -> DType {
    DType::Integer(IntegerType::new(4, ByteOrder::Little, true))
}

/// Arrays in shards: parts of shards changed, rows added and cut.
fn shards(folder: &Path, options: &WriteOptions, done: &mut dyn FnMut()) -> Result<()> {
    let address = folder.join("a.zarr").to_string_lossy().into_owned();
    let mut new = CreateOptions::new();
    new.write = options.clone();
    let edit = || hyperslab::edit(address.as_str(), &OpenOptions::default(), options);
    let mut commit = |transaction: Transaction| {
        transaction.commit()?;
        done();
        Ok(())
    };
    let mut spec = ArraySpec::simple(integers(), &[20, 20]).with_fill(&(-1i32).to_le_bytes());
    let shard = Some(ShardSpec { extents: vec![8, 16], index_at_start: false });
    spec.layout = LayoutSpec::Chunked { chunk: vec![4, 4], shard };
    if let Dataspace::Simple { max, .. } = &mut spec.space {
        max[0] = None;
    }
    let mut w = hyperslab::create(address.as_str(), Format::Zarr3, &new)?;
    w.create_array("s", spec)?;
    commit(w)?;
    for (selection, value) in [("0:3, 0:3", 1), ("2:17, 2:17", 2), ("5, :", 3)] {
        let mut w = edit()?;
        w.set("s", selection, Values::from(value))?;
        commit(w)?;
    }
    for rows in [33, 6] {
        let mut w = edit()?;
        let mut staged = w.stage("s")?;
        staged.resize(&[rows, 20])?;
        staged.set("4:6, :", Values::from(rows as i32))?;
        w.write("s", &staged)?;
        commit(w)?;
    }
    let mut w = edit()?;
    w.apply(Change::Delete { path: path_of("s") })?;
    commit(w)
}

/// Versions in an HDF5 file: the first ones, changed chunks, rows more and fewer, arrays that come and go, versions that go.
fn versions(folder: &Path, options: &WriteOptions, done: &mut dyn FnMut()) -> Result<()> {
    let address = folder.join("a.h5").to_string_lossy().into_owned();
    let mut new = CreateOptions::new();
    new.write = options.clone();
    hyperslab::create(address.as_str(), Format::Hdf5, &new)?.commit()?;
    done();
    for n in 0..6i64 {
        let open = OpenOptions::default();
        let mut next = stage(address.as_str(), "/", &format!("v{n}"), &Parent::Current, &open, options)?;
        next.set_time(Timestamp::from_micros(1_700_000_000_000_000 + n)?);
        match n {
            0 => {
                next.create_array("g/a", &ArraySpec::simple(integers(), &[300]).with_chunk(&[64]))?;
                next.create_array("b", &ArraySpec::simple(integers(), &[6, 6]).with_chunk(&[4, 4]))?;
            }
            1 => next.set("g/a", "10:200", Values::from(7i32))?,
            2 => {
                next.array("g/a")?.resize(&[500])?;
                next.set("g/a", "290:", Values::from(8i32))?;
                next.set_attribute("g/a", "units", "K")?;
            }
            3 => next.set("b", "1:3, 2:5", Values::from(9i32))?,
            4 => next.delete("b")?,
            _ => next.array("g/a")?.resize(&[70])?,
        }
        next.commit()?;
        done();
    }
    let open = OpenOptions::default();
    let gone = |_: &Versions| Ok(vec!["v1".to_owned(), "v3".to_owned()]);
    delete_versions(address.as_str(), None, gone, &open, options)?.commit()?;
    done();
    rebuild_hash_tables(address.as_str(), None, &open, options)?.commit()?;
    done();
    Ok(())
}

/// Two files to copy, made once; everything that is simulated is elsewhere.
fn source(which: usize) -> Result<File> {
    static SOURCES: OnceLock<PathBuf> = OnceLock::new();
    let made = || {
        let folder = scratch("sources");
        for (name, n) in [("0.nc3", 3000), ("1.nc3", 1800)] {
            commit_file(&folder.join(name), n).expect("a file to copy");
        }
        folder
    };
    let file = SOURCES.get_or_init(made).join(format!("{which}.nc3"));
    hyperslab::open(file.to_string_lossy().as_ref())
}

/// Copies, one in the place of the other.
fn copies(to: &Path, formats: &[Format], options: &WriteOptions, done: &mut dyn FnMut()) -> Result<()> {
    let address = to.to_string_lossy().into_owned();
    for (n, &format) in formats.iter().cycle().take(2 * formats.len()).enumerate() {
        let mut how = CopyOptions::default();
        how.create.write = options.clone().with_overwrite(n > 0);
        if format != Format::NetCdf3 && format != Format::Cdf2 {
            how.chunks = Some(Extents::parse(if n % 2 == 0 { "x=500,t=700" } else { "x=1000" })?);
            how.codecs = Some(parse_codecs(if n % 2 == 0 { "deflate=1" } else { "none" })?);
        }
        if format == Format::Zarr3 && n % 2 == 0 {
            how.shards = Some(Extents::parse("x=1500,t=1400")?);
        }
        copy(&source(usize::from(n >= formats.len()))?, address.as_str(), format, &how)?;
        done();
    }
    Ok(())
}

/// A file copied onto itself, which is what leaves its dead bytes behind.
fn repack(folder: &Path, options: &WriteOptions, done: &mut dyn FnMut()) -> Result<()> {
    let address = folder.join("a.h5").to_string_lossy().into_owned();
    let mut how = CopyOptions::default();
    how.create.write = options.clone();
    copy(&source(0)?, address.as_str(), Format::Hdf5, &how)?;
    done();
    how.create.write.overwrite = true;
    for gone in ["r", "a"] {
        let mut w = hyperslab::edit(address.as_str(), &OpenOptions::default(), options)?;
        w.apply(Change::Delete { path: path_of(gone) })?;
        w.commit()?;
        done();
        copy(&hyperslab::open(address.as_str())?, address.as_str(), Format::Hdf5, &how)?;
        done();
    }
    Ok(())
}

/// A classic file that is written anew by edits: attributes for which there is no room, fewer records of several arrays.
fn moved(folder: &Path, options: &WriteOptions, done: &mut dyn FnMut()) -> Result<()> {
    use netcdf3::header::Type;
    let mut classic = Classic { file: folder.join("a.nc"), options, done };
    let mut w = classic.create(Version::Classic)?;
    dimension(&mut w, "t", 40, true)?;
    dimension(&mut w, "x", 50, false)?;
    array(&mut w, "a", Type::Int, &[("x", 50)])?;
    array(&mut w, "r", Type::Short, &[("t", 40), ("x", 50)])?;
    array(&mut w, "s", Type::Double, &[("t", 40)])?;
    put(&mut w, "a", &bytes(200, 1))?;
    put(&mut w, "r", &bytes(4000, 2))?;
    put(&mut w, "s", &bytes(320, 4))?;
    classic.commit(w)?;
    for n in 0..3 {
        let mut w = classic.edit()?;
        number(&mut w, "r", &format!("n{n}"), &[n; 300])?;
        classic.commit(w)?;
    }
    for rows in [17, 16, 30, 0] {
        let mut w = classic.edit()?;
        w.apply(Change::Resize { array: path_of("r"), shape: vec![rows, 50] })?;
        classic.commit(w)?;
    }
    let mut w = classic.edit()?;
    w.apply(Change::DeleteAttribute { object: path_of("r"), name: "n1".into() })?;
    classic.commit(w)
}
