//! Random edits of files, one transaction after the other, against a model in memory: `crash --histories`.
//!
//! At intervals the file is left as it is, beside what the model says (`.json`), for the reference libraries to read.

use crate::crash::{options, path_of};
use crate::rng::Rng;
use hyperslab::dtype::{ByteOrder, DType, IntegerType};
use hyperslab::error::Result;
use hyperslab::model::write::{ArraySpec, Change, LayoutSpec, ObjectPath, ShardSpec};
use hyperslab::model::{Dataspace, Dimension};
use hyperslab::source::write::SyncPolicy;
use hyperslab::staged::{StagedArray, Values};
use hyperslab::write::{CreateOptions, Format, Transaction};
use hyperslab::{OpenOptions, Selection};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A kind of file.
#[derive(Debug)]
pub struct Kind {
    /// Its name, and that of its files.
    pub name: &'static str,
    format: Format,
    ending: &'static str,
    shards: bool,
}

/// All of them.
pub const KINDS: &[Kind] = &[
    Kind { name: "cdf1", format: Format::NetCdf3, ending: "nc", shards: false },
    Kind { name: "cdf2", format: Format::Cdf2, ending: "nc", shards: false },
    Kind { name: "cdf5", format: Format::Cdf5, ending: "nc", shards: false },
    Kind { name: "zarr2", format: Format::Zarr2, ending: "zarr", shards: false },
    Kind { name: "zarr3", format: Format::Zarr3, ending: "zarr", shards: false },
    Kind { name: "shards", format: Format::Zarr3, ending: "zarr", shards: true },
    Kind { name: "nczarr", format: Format::NcZarr, ending: "zarr", shards: false },
    Kind { name: "zip", format: Format::Zarr3, ending: "zip", shards: false },
];

const FILL: i32 = -7;

/// An array of the model: all elements in C order.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    shape: Vec<u64>,
    grows: bool,
    data: Vec<i32>,
}

impl Held {
    fn new(shape: Vec<u64>, grows: bool) -> Held {
        let count = shape.iter().product::<u64>() as usize;
        Held { shape, grows, data: vec![FILL; count] }
    }

    /// Numbers of the elements of a box.
    fn numbers(&self, start: &[u64], stop: &[u64]) -> Vec<usize> {
        let mut out = vec![0u64];
        for ((&start, &stop), &length) in start.iter().zip(stop).zip(&self.shape) {
            out = out.iter().flat_map(|n| (start..stop).map(move |i| n * length + i)).collect();
        }
        out.into_iter().map(|n| n as usize).collect()
    }

    fn resize(&mut self, shape: &[u64]) {
        let mut new = Held::new(shape.to_vec(), self.grows);
        let common: Vec<u64> = self.shape.iter().zip(shape).map(|(&a, &b)| a.min(b)).collect();
        let zeros = vec![0; shape.len()];
        for (from, to) in self.numbers(&zeros, &common).into_iter().zip(new.numbers(&zeros, &common)) {
            new.data[to] = self.data[from];
        }
        *self = new;
    }
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    arrays: BTreeMap<String, Held>,
    /// Attributes of arrays by name, and of the root, whose name is empty.
    attributes: BTreeMap<(String, String), i32>,
}

impl Model {
    /// Records of a classic file.
    fn records(&self) -> Option<u64> {
        self.arrays.values().find(|held| held.grows).map(|held| held.shape[0])
    }

    fn delete(&mut self, name: &str) {
        self.arrays.remove(name);
        self.attributes.retain(|(object, _), _| object != name);
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let Some(held) = self.arrays.remove(from) {
            self.arrays.insert(to.to_owned(), held);
        }
        let moved: Vec<_> = self.attributes.keys().filter(|(object, _)| object == from).cloned().collect();
        for key in moved {
            if let Some(value) = self.attributes.remove(&key) {
                self.attributes.insert((to.to_owned(), key.1), value);
            }
        }
    }

    fn json(&self) -> String {
        let arrays: Vec<String> = self
            .arrays
            .iter()
            .map(|(name, held)| {
                format!("{name:?}: {{\"shape\": {:?}, \"data\": {:?}}}", held.shape, held.data)
            })
            .collect();
        let attributes: Vec<String> = self
            .attributes
            .iter()
            .map(|((object, name), value)| format!("[{object:?}, {name:?}, {value}]"))
            .collect();
        format!("{{\"arrays\": {{{}}}, \"attributes\": [{}]}}", arrays.join(", "), attributes.join(", "))
    }
}

struct Run<'a> {
    kind: &'a Kind,
    address: String,
    rng: Rng,
    model: Model,
    serial: u64,
}

fn integers() -> DType {
    DType::Integer(IntegerType::new(4, ByteOrder::Little, true))
}

impl Run<'_> {
    fn is_classic(&self) -> bool {
        self.kind.ending == "nc"
    }

    fn begin(&mut self, anew: bool) -> Result<Transaction> {
        let write = options().with_sync(SyncPolicy::None).with_overwrite(true);
        if anew {
            self.model = Model::default();
            let mut new = CreateOptions::new();
            new.write = write;
            return hyperslab::create(self.address.as_str(), self.kind.format, &new);
        }
        hyperslab::edit(self.address.as_str(), &OpenOptions::default(), &write)
    }

    fn name(&mut self) -> String {
        format!("a{}", self.rng.below(9))
    }

    fn box_of(&mut self, shape: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let one = |&length: &u64| {
            let start = self.rng.below(length as usize) as u64;
            (start, start + 1 + self.rng.below((length - start) as usize) as u64)
        };
        shape.iter().map(one).unzip()
    }

    /// One change, of an array that this transaction has not touched; its name, if there was something to do.
    fn step(&mut self, w: &mut Transaction, touched: &BTreeSet<String>) -> Result<Option<Vec<String>>> {
        let name = self.name();
        if touched.contains(&name) {
            return Ok(None);
        }
        let there = self.model.arrays.get(&name).cloned();
        let Some(held) = there else {
            self.create(w, &name)?;
            return Ok(Some(vec![name]));
        };
        match self.rng.below(20) {
            0 => {
                w.apply(Change::Delete { path: path_of(&name) })?;
                self.model.delete(&name);
            }
            1 => {
                let to = self.name();
                if touched.contains(&to) || self.model.arrays.contains_key(&to) {
                    return Ok(None);
                }
                w.apply(Change::Rename { from: path_of(&name), to: path_of(&to) })?;
                self.model.rename(&name, &to);
                return Ok(Some(vec![name, to]));
            }
            2..=4 => {
                let (attribute, value) = (format!("n{}", self.rng.below(4)), self.rng.below(1000) as i32);
                let object = if self.rng.chance(30) { String::new() } else { name.clone() };
                w.set_attribute(&format!("/{object}"), &attribute, value)?;
                self.model.attributes.insert((object, attribute), value);
            }
            5 => {
                let known: Vec<_> =
                    self.model.attributes.keys().filter(|(o, _)| *o == name).cloned().collect();
                if known.is_empty() {
                    return Ok(None);
                }
                let (object, attribute) = known[self.rng.below(known.len())].clone();
                w.apply(Change::DeleteAttribute { object: path_of(&name), name: attribute.as_str().into() })?;
                self.model.attributes.remove(&(object, attribute));
            }
            6..=10 if held.grows || !self.is_classic() => return self.resize(w, &name, touched),
            _ => {
                if held.data.is_empty() {
                    return Ok(None);
                }
                let mut staged = w.stage(&name)?;
                for _ in 0..1 + self.rng.below(3) {
                    self.set(&mut staged, &name)?;
                }
                w.write(&name, &staged)?;
            }
        }
        Ok(Some(vec![name]))
    }

    /// Sets a box of an array, there and in the model.
    fn set(&mut self, staged: &mut StagedArray, name: &str) -> Result<()> {
        let shape = staged.shape().to_vec();
        if shape.contains(&0) {
            return Ok(());
        }
        let (start, stop) = self.box_of(&shape);
        let extents: Vec<u64> = start.iter().zip(&stop).map(|(a, b)| b - a).collect();
        let values: Vec<i32> = (0..extents.iter().product::<u64>())
            .map(|_| if self.rng.chance(20) { FILL } else { self.rng.below(100_000) as i32 })
            .collect();
        let words: Vec<String> = start.iter().zip(&stop).map(|(a, b)| format!("{a}:{b}")).collect();
        staged.set(words.join(", ").as_str(), Values::new(&extents, &values)?)?;
        if let Some(held) = self.model.arrays.get_mut(name) {
            for (number, value) in held.numbers(&start, &stop).into_iter().zip(values) {
                held.data[number] = value;
            }
        }
        Ok(())
    }

    fn create(&mut self, w: &mut Transaction, name: &str) -> Result<()> {
        let rank = 1 + self.rng.below(3);
        let mut shape: Vec<u64> = (0..rank).map(|_| 1 + self.rng.below(11) as u64).collect();
        let grows = !self.is_classic() || self.rng.chance(60);
        if self.is_classic() && grows {
            shape[0] = self.model.records().unwrap_or(shape[0]);
        }
        let mut spec = ArraySpec::simple(integers(), &shape).with_fill(&FILL.to_le_bytes());
        if let Dataspace::Simple { max, .. } = &mut spec.space
            && grows
        {
            max[0] = None;
        }
        if !self.is_classic() {
            let chunk: Vec<u64> = shape.iter().map(|_| 1 + self.rng.below(5) as u64).collect();
            let extents = chunk.iter().map(|&n| n * (1 + self.rng.below(3) as u64)).collect();
            let shard =
                self.kind.shards.then_some(ShardSpec { extents, index_at_start: self.rng.chance(50) });
            spec.layout = LayoutSpec::Chunked { chunk, shard };
        }
        if self.kind.format == Format::NcZarr {
            // Along a dimension of its own, which says that it can grow.
            self.serial += 1;
            let dimension = format!("d{}", self.serial);
            spec.dimensions = shape.iter().map(|_| None).collect();
            spec.dimensions[0] = Some(path_of(&dimension));
            let dimension = Dimension { name: dimension.as_str().into(), length: shape[0], unlimited: true };
            w.apply(Change::CreateDimension { group: ObjectPath::root(), dimension })?;
        }
        w.create_array(name, spec)?;
        self.model.arrays.insert(name.to_owned(), Held::new(shape, grows));
        Ok(())
    }

    fn resize(
        &mut self,
        w: &mut Transaction,
        name: &str,
        touched: &BTreeSet<String>,
    ) -> Result<Option<Vec<String>>> {
        let Some(held) = self.model.arrays.get(name).cloned() else { return Ok(None) };
        let mut shape = held.shape.clone();
        let rows = shape[0];
        shape[0] = match self.rng.below(3) {
            0 => rows.saturating_sub(self.rng.below(9) as u64),
            _ => (rows + self.rng.below(9) as u64).min(60),
        };
        if !self.kind.format.is_netcdf() && self.rng.chance(30) {
            let last = shape.len() - 1;
            shape[last] = 1 + self.rng.below(15) as u64;
        }
        let mut names = vec![name.to_owned()];
        if self.is_classic() {
            // They share their records, and what was staged of others does not know of it.
            if !touched.is_empty() {
                return Ok(None);
            }
            let all = self.model.arrays.iter().filter(|(_, held)| held.grows);
            names = all.map(|(name, _)| name.clone()).collect();
        }
        let mut staged = w.stage(name)?;
        staged.resize(&shape)?;
        for name in &names {
            if let Some(held) = self.model.arrays.get_mut(name) {
                let mut own = held.shape.clone();
                own[0] = shape[0];
                held.resize(if names.len() > 1 { &own } else { &shape });
            }
        }
        self.set(&mut staged, name)?;
        w.write(name, &staged)?;
        Ok(Some(names))
    }

    /// How the file differs from the model.
    fn compare(&self) -> std::result::Result<(), String> {
        let wrong = |e: hyperslab::Error| e.to_string();
        let file = hyperslab::open(self.address.as_str()).map_err(wrong)?;
        let mut fault = None;
        file.check(&mut |f| fault = Some(f.error));
        if let Some(e) = fault {
            return Err(e.to_string());
        }
        let mut found = Model::default();
        let attributes = |object: &hyperslab::Object, name: &str, into: &mut Model| {
            for attribute in object.attributes()? {
                let attribute = attribute.map_err(|(_, e)| e)?;
                let text = format!("{:?}", object.attribute_value(&attribute)?);
                let digits: String = text.chars().filter(char::is_ascii_digit).collect();
                if attribute.name.as_bytes().starts_with(b"n") {
                    let key = (name.to_owned(), attribute.name.to_string());
                    into.attributes.insert(key, digits.parse().unwrap_or(-1));
                }
            }
            hyperslab::Result::Ok(())
        };
        for entry in file.walk() {
            let object = entry.open(&file).map_err(wrong)?;
            let name = entry.path.trim_start_matches('/').to_owned();
            attributes(&object, &name, &mut found).map_err(wrong)?;
            if let hyperslab::Object::Array(array) = &object {
                let data = array.read::<i32>(Selection::all()).map_err(wrong)?.data;
                let grows = self.model.arrays.get(&name).is_some_and(|held| held.grows);
                found.arrays.insert(name, Held { shape: array.shape().to_vec(), grows, data });
            }
        }
        if found == self.model {
            return Ok(());
        }
        let names = |model: &Model| model.arrays.keys().cloned().collect::<Vec<_>>();
        let differ: Vec<_> = self
            .model
            .arrays
            .iter()
            .filter(|(name, held)| found.arrays.get(*name) != Some(held))
            .map(|(name, held)| format!("{name} is {:?}, not {held:?}", found.arrays.get(name)))
            .collect();
        Err(format!(
            "{:?} are there, {:?} should be; {}; attributes {:?}, {:?}",
            names(&found),
            names(&self.model),
            differ.join("; "),
            found.attributes,
            self.model.attributes
        ))
    }
}

/// Makes `steps` changes of a file of a kind in the folder, some in each transaction, some of which are dropped; what was done, or
/// how the file came to differ from the model. Every `interval` transactions, and at the end, the file and the model stay.
pub fn run(
    kind: &Kind,
    steps: u64,
    seed: u64,
    folder: &Path,
    interval: u64,
) -> std::result::Result<String, String> {
    let rng = Rng::new(seed, kind.name.bytes().fold(0, |n, b| n * 31 + u64::from(b)));
    let mut run = Run { kind, address: String::new(), rng, model: Model::default(), serial: 0 };
    let (mut done, mut commits, mut dropped) = (0, 0u64, 0u64);
    let file = folder.join(format!("{}.{}", kind.name, kind.ending));
    run.address = file.to_string_lossy().into_owned();
    while done < steps {
        let anew = commits == 0 || run.rng.chance(1);
        let before = run.model.clone();
        let at = format!("after {done} steps, {commits} commits");
        let frame = |e: hyperslab::Error| format!("{at}: {e}");
        let mut w = run.begin(anew).map_err(frame)?;
        let mut touched = BTreeSet::new();
        for _ in 0..1 + run.rng.below(4) {
            if let Some(names) = run.step(&mut w, &touched).map_err(frame)? {
                touched.extend(names);
                done += 1;
            }
        }
        if run.rng.chance(10) && commits > 0 {
            drop(w);
            run.model = before;
            dropped += 1;
        } else {
            w.commit().map_err(frame)?;
            commits += 1;
        }
        run.compare().map_err(|e| format!("after {done} steps, {commits} commits: {e}"))?;
        if commits % interval == 0 || done >= steps {
            keep(&file, &folder.join(format!("{}-{commits}.{}", kind.name, kind.ending)))
                .map_err(|e| e.to_string())?;
            let model = folder.join(format!("{}-{commits}.json", kind.name));
            std::fs::write(model, run.model.json()).map_err(|e| e.to_string())?;
        }
    }
    Ok(format!("{done} steps, {commits} commits, {dropped} transactions dropped"))
}

/// Copies a file, or a folder with everything in it.
fn keep(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return std::fs::copy(from, to).map(|_| ());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        keep(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
