//! Classic netCDF as we write it, read and edited by netCDF4-python, scipy and ncdump.

use crate::judges::{self, Judged};
use crate::{report, sha256};
use conformance::crash::{array, dimension, options, path_of, put, scratch};
use conformance::rng::Rng;
use conformance::{reference, tool};
use hyperslab::Limits;
use hyperslab::format::netcdf3::header::Type;
use hyperslab::format::netcdf3::write::{Writer, create, edit};
use hyperslab::format::netcdf3::{NetCdf3, Version};
use hyperslab::model::write::{AttributeSpec, Change, Content, HierarchyWriter};
use hyperslab::model::{Dataspace, Hierarchy};
use hyperslab::source::{FileSource, SyncPolicy, WriteOptions};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const CLASSIC: [Type; 6] = [Type::Byte, Type::Char, Type::Short, Type::Int, Type::Float, Type::Double];
const MORE: [Type; 5] = [Type::UByte, Type::UShort, Type::UInt, Type::Int64, Type::UInt64];

fn fast() -> WriteOptions {
    options().with_sync(SyncPolicy::None)
}

/// NumPy's name of a type, without the order of bytes.
fn numpy(kind: Type) -> &'static str {
    match kind {
        Type::Byte => "i1",
        Type::Char => "S1",
        Type::Short => "i2",
        Type::Int => "i4",
        Type::Float => "f4",
        Type::Double => "f8",
        Type::UByte => "u1",
        Type::UShort => "u2",
        Type::UInt => "u4",
        Type::Int64 => "i8",
        Type::UInt64 => "u8",
    }
}

fn random_bytes(rng: &mut Rng, kind: Type, count: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..count * kind.size()).map(|_| rng.next() as u8).collect();
    match kind {
        // Text that no trimming changes.
        Type::Char => bytes.iter_mut().for_each(|b| *b = b'a' + *b % 26),
        // No signalling NaN, which some processors make quiet.
        Type::Float | Type::Double => bytes.chunks_exact_mut(kind.size()).for_each(|e| e[0] = 0x40),
        _ => {}
    }
    bytes
}

fn set(writer: &mut Writer, object: &str, name: &str, kind: Type, bytes: &[u8]) -> hyperslab::Result<Value> {
    let (dtype, space, value) = match kind {
        Type::Char => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            (hyperslab::format::netcdf3::header::text(bytes.len()), Dataspace::Scalar, json!(text))
        }
        _ => {
            let n = (bytes.len() / kind.size()) as u64;
            let space = Dataspace::Simple { dims: vec![n], max: vec![Some(n)] };
            (kind.dtype(), space, json!([numpy(kind), sha256(bytes)]))
        }
    };
    let content = Content::Fixed(bytes.to_vec().into());
    let attribute = AttributeSpec { name: name.into(), dtype, committed: None, space, content };
    writer.apply(Change::SetAttribute { object: path_of(object), attribute })?;
    Ok(value)
}

/// A variable and what is in it.
struct Made {
    name: String,
    kind: Type,
    dims: Vec<usize>,
    bytes: Vec<u8>,
    attributes: Map<String, Value>,
}

/// A file and what is in it.
struct Model {
    version: Version,
    dims: Vec<(String, u64, bool)>,
    attributes: Map<String, Value>,
    made: Vec<Made>,
}

impl Model {
    fn expected(&self) -> Value {
        let model = match self.version {
            Version::Classic => "NETCDF3_CLASSIC",
            Version::Offset64 => "NETCDF3_64BIT_OFFSET",
            Version::Data64 => "NETCDF3_64BIT_DATA",
        };
        let dimensions: Map<String, Value> = self
            .dims
            .iter()
            .map(|(name, length, unlimited)| (name.clone(), json!([length, unlimited])))
            .collect();
        let variables: Map<String, Value> = self
            .made
            .iter()
            .map(|v| {
                let dims: Vec<&str> = v.dims.iter().map(|&d| self.dims[d].0.as_str()).collect();
                (v.name.clone(), json!([numpy(v.kind), dims, sha256(&v.bytes), v.attributes]))
            })
            .collect();
        json!({ "model": model, "dimensions": dimensions, "attributes": self.attributes, "variables": variables })
    }

    /// Adds a record with its values to all variables that have such.
    fn append(&mut self, writer: &mut Writer, rng: &mut Rng) -> hyperslab::Result<()> {
        self.dims[0].1 += 1;
        let records = self.dims[0].1;
        let of_records = self.made.iter_mut().filter(|v| v.dims.first() == Some(&0));
        for v in of_records {
            let mut shape: Vec<u64> = v.dims.iter().map(|&d| self.dims[d].1).collect();
            shape[0] = records;
            let one = shape[1..].iter().product::<u64>() as usize;
            v.bytes.extend(random_bytes(rng, v.kind, one));
            writer.apply(Change::Resize { array: path_of(&v.name), shape })?;
            put(writer, &v.name, &v.bytes)?;
        }
        Ok(())
    }
}

/// A file of some variables of every kind.
fn random_file(file: &Path, rng: &mut Rng) -> hyperslab::Result<Model> {
    let version = rng.pick(&[Version::Classic, Version::Offset64, Version::Data64]);
    let mut w = create(file, version, &fast())?;
    let mut dims = vec![("time".to_owned(), rng.below(5) as u64, true)];
    (0..1 + rng.below(3)).for_each(|i| dims.push((format!("d{i}"), 1 + rng.below(6) as u64, false)));
    for (name, length, unlimited) in &dims {
        dimension(&mut w, name, *length, *unlimited)?;
    }
    let mut model = Model { version, dims, attributes: Map::new(), made: Vec::new() };
    let kinds: Vec<Type> =
        if version == Version::Data64 { [&CLASSIC[..], &MORE].concat() } else { CLASSIC.to_vec() };
    for i in 0..rng.below(4) {
        let (kind, count) = (rng.pick(&kinds), 1 + rng.below(9));
        let bytes = random_bytes(rng, kind, count);
        let name = format!("global {i}");
        model.attributes.insert(name.clone(), set(&mut w, "/", &name, kind, &bytes)?);
    }
    for i in 0..rng.below(6) {
        let mut on: Vec<usize> = (0..rng.below(4)).map(|_| 1 + rng.below(model.dims.len() - 1)).collect();
        if rng.chance(60) {
            on.insert(0, 0);
        }
        let kind = rng.pick(&kinds);
        let name = format!("v{i}");
        let named: Vec<(&str, u64)> =
            on.iter().map(|&d| (model.dims[d].0.as_str(), model.dims[d].1)).collect();
        array(&mut w, &name, kind, &named)?;
        let mut attributes = Map::new();
        if rng.chance(40) {
            let length = 1 + rng.below(30);
            let bytes = random_bytes(rng, Type::Char, length);
            attributes.insert("units".into(), set(&mut w, &name, "units", Type::Char, &bytes)?);
        }
        let count = named.iter().map(|d| d.1).product::<u64>() as usize;
        let bytes = match rng.chance(80) {
            true => random_bytes(rng, kind, count),
            false => kind.fill().repeat(count),
        };
        if bytes != kind.fill().repeat(count) {
            put(&mut w, &name, &bytes)?;
        }
        model.made.push(Made { name, kind, dims: on, bytes, attributes });
    }
    Box::new(w).commit()?;
    Ok(model)
}

fn script(arguments: &[&str]) -> (String, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/netcdf3_write.py");
    let output =
        Command::new(reference::python()).arg(script).args(arguments).output().expect("Python starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), errors)
}

#[test]
fn others_read_what_we_write() {
    let folder = scratch("netcdf3");
    let mut expected = Map::new();
    for number in 0..150 {
        let mut rng = Rng::new(17, number);
        let name = format!("{number}.nc");
        let file = folder.join(&name);
        let mut model = random_file(&file, &mut rng).expect("the file is written");
        // Edits of our own: records, an attribute that fits or not, a variable more.
        for _ in 0..rng.below(4) {
            let (_, mut w) = edit(&file, &fast(), &Limits::default()).expect("the file is edited");
            if rng.chance(60) {
                model.append(&mut w, &mut rng).expect("a record is added");
            }
            if rng.chance(40) {
                let length = 1 + rng.below(300);
                let bytes = random_bytes(&mut rng, Type::Char, length);
                let value = set(&mut w, "/", "history", Type::Char, &bytes).expect("an attribute is set");
                model.attributes.insert("history".into(), value);
            }
            Box::new(w).commit().expect("the edit is committed");
        }
        // The length counts only where a variable has it.
        if !model.made.iter().any(|v| v.dims.first() == Some(&0)) {
            let hierarchy = NetCdf3::open(
                Arc::new(FileSource::open(&file).expect("the file is there")),
                &Limits::default(),
            );
            model.dims[0].1 = hierarchy
                .expect("it opens")
                .dimensions(&hyperslab::model::NodeId::Address(0))
                .expect("dimensions")[0]
                .length;
        }
        expected.insert(name, model.expected());
    }
    std::fs::write(folder.join("expected.json"), Value::Object(expected).to_string()).expect("a file");
    let (differs, counted) = script(&["check", folder.to_str().expect("text")]);
    let mut wrong: Vec<String> = differs.lines().map(str::to_owned).collect();
    let mut total: usize = counted.split_whitespace().next_back().and_then(|n| n.parse().ok()).unwrap_or(0);
    // What ncdump prints, our own program prints of it too.
    for number in 0..150 {
        let file = folder.join(format!("{number}.nc"));
        let Ok(text) = std::fs::read(folder.join(format!("{number}.nc.cdl"))) else { continue };
        total += 1;
        let ours = tool::ask(&["dump", file.to_str().expect("text")]).expect("dump works");
        if ours != text {
            wrong.push(format!("{number}.nc: dump differs from ncdump"));
        }
    }
    let mut judged = Judged::default();
    for number in 0..150 {
        judged.add(number.to_string(), &folder.join(format!("{number}.nc")));
    }
    wrong.extend(judged.verdict(&folder, 10, &judges::CLASSIC));
    report("files of classic netCDF that others read", total, &wrong);
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn files_are_edited_by_netcdf4_python_and_by_us_in_turn() {
    let folder = scratch("netcdf3-turns");
    let (mut total, mut wrong) = (0, Vec::new());
    for number in 0..12 {
        let mut rng = Rng::new(23, number);
        let file = folder.join(format!("{number}.nc"));
        let mut model = random_file(&file, &mut rng).expect("the file is written");
        let (said, _) = script(&["edit", file.to_str().expect("text")]);
        let mut found: Value = serde_json::from_str(&said).expect("JSON");
        // What it did not touch is as it was.
        for v in model.made.iter().filter(|v| v.dims.first() != Some(&0)) {
            total += 1;
            if found["variables"][&v.name] != model.expected()["variables"][&v.name] {
                wrong.push(format!("{number}: {} after the edit", v.name));
            }
        }
        // Now we: an attribute, values, the variable that it made goes.
        let (_, mut w) = edit(&file, &fast(), &Limits::default()).expect("the file is edited");
        let value = set(&mut w, "/", "ours", Type::Char, &[b'x'; 200]).expect("an attribute is set");
        found["attributes"]["ours"] = value;
        for v in model.made.iter_mut().filter(|v| v.dims.first() != Some(&0)) {
            v.bytes = random_bytes(&mut rng, v.kind, v.bytes.len() / v.kind.size());
            put(&mut w, &v.name, &v.bytes).expect("values are written");
            found["variables"][&v.name][2] = json!(sha256(&v.bytes));
        }
        w.apply(Change::Delete { path: path_of("added") }).expect("the variable goes");
        found["variables"].as_object_mut().expect("a map").remove("added");
        Box::new(w).commit().expect("the edit is committed");
        let name = format!("{number}.nc");
        std::fs::write(folder.join("expected.json"), json!({ name: found }).to_string()).expect("a file");
        let (differs, counted) = script(&["check", folder.to_str().expect("text")]);
        wrong.extend(differs.lines().map(str::to_owned));
        total += counted.split_whitespace().next_back().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
    }
    report("files of classic netCDF that are edited in turn", total, &wrong);
    let _ = std::fs::remove_dir_all(folder);
}
