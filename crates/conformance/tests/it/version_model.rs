//! Random steps on versions, against a list of plain arrays; checked by versioned-hdf5 at intervals.
//!
//! `HYPERSLAB_VERSION_STEPS=10000 cargo test -p conformance version_model` takes as many steps as it says;
//! `HYPERSLAB_VERSION_SEED` is another beginning.

use crate::upkeep::told;
use hyperslab::codec::FilterSpec;
use hyperslab::dtype::{ByteOrder, DType, IntegerType};
use hyperslab::model::write::ArraySpec;
use hyperslab::source::write::{Locking, SyncPolicy, WriteOptions};
use hyperslab::staged::Values;
use hyperslab::version::{self, Metadata, Order, Parent, Stage, Upkeep, Versions};
use hyperslab::write::CreateOptions;
use hyperslab::{Format, OpenOptions};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What is written to elements that nobody set.
const FILL: i32 = 3;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Dense {
    shape: Vec<u64>,
    data: Vec<i32>,
    note: Option<i32>,
}

impl Dense {
    fn new(shape: &[u64]) -> Dense {
        let count = shape.iter().product::<u64>() as usize;
        Dense { shape: shape.to_vec(), data: vec![FILL; count], note: None }
    }

    fn at(&self, coord: &[u64]) -> usize {
        coord.iter().zip(&self.shape).fold(0, |n, (&at, &dim)| n * dim + at) as usize
    }

    fn resized(&self, shape: &[u64]) -> Dense {
        let mut new = Dense { note: self.note, ..Dense::new(shape) };
        for coord in
            coords(&self.shape.iter().zip(shape).map(|(&a, &b)| (0..a.min(b)).collect()).collect::<Vec<_>>())
        {
            let at = new.at(&coord);
            new.data[at] = self.data[self.at(&coord)];
        }
        new
    }
}

/// All combinations of positions, the last axis fastest.
fn coords(axes: &[Vec<u64>]) -> Vec<Vec<u64>> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        all.iter().flat_map(|head| axis.iter().map(move |&at| [head.as_slice(), &[at]].concat())).collect()
    })
}

type State = BTreeMap<String, Dense>;

#[derive(Clone, Debug)]
struct Committed {
    name: String,
    parent: Option<String>,
    state: State,
}

struct Model {
    path: String,
    random: Random,
    write: WriteOptions,
    versions: Vec<Committed>,
    current: Option<String>,
    /// Chunks of arrays by path; as long as a stack is there they cannot change.
    chunks: BTreeMap<String, Vec<u64>>,
    names: u64,
}

impl Model {
    fn open(&self) -> Versions {
        Versions::open(&hyperslab::open(self.path.as_str()).expect("it opens")).expect("versions")
    }

    /// Some array that is staged.
    fn pick(&mut self, state: &State) -> Option<String> {
        let at = self.random.below(state.len() as u64) as usize;
        state.keys().nth(at).cloned()
    }

    fn shape(&mut self, rank: usize) -> Vec<u64> {
        (0..rank).map(|_| self.random.below(if rank == 1 { 24 } else { 7 })).collect()
    }

    /// One change of what is staged.
    fn change(&mut self, stage: &mut Stage, state: &mut State) {
        let step = self.random.below(12);
        if step == 0 || state.is_empty() {
            let rank = 1 + self.random.below(4) as usize;
            let path = format!("{}/d{rank}", ["", "/deep", "/deep/er"][self.random.below(3) as usize]);
            let shape = self.shape(rank);
            let chunk =
                self.chunks.entry(path.clone()).or_insert_with(|| vec![1 + rank as u64 % 3; rank]).clone();
            let made = stage.create_array(&path, &spec(&shape, &chunk));
            assert_eq!(made.is_ok(), !state.contains_key(&path), "{path}: {made:?}");
            state.entry(path).or_insert_with(|| Dense::new(&shape));
            return;
        }
        let path = self.pick(state).expect("an array");
        let dense = state.get_mut(&path).expect("it is there");
        match step {
            1 => {
                stage.delete(&path).expect("it is removed");
                state.remove(&path);
            }
            2 | 3 => {
                let shape = {
                    let rank = dense.shape.len();
                    (0..rank).map(|_| self.random.below(if rank == 1 { 24 } else { 7 })).collect::<Vec<_>>()
                };
                stage.array(&path).expect("it is there").resize(&shape).expect("it is resized");
                *dense = dense.resized(&shape);
            }
            4 => {
                let mut shape = dense.shape.clone();
                shape[0] = 1 + self.random.below(3);
                let count = shape.iter().product::<u64>() as usize;
                let rows: Vec<i32> = (0..count).map(|_| self.random.below(5) as i32).collect();
                stage.append(&path, Values::new(&shape, &rows).expect("values")).expect("it is appended");
                dense.data.extend(rows);
                dense.shape[0] += shape[0];
            }
            5 => {
                let value = self.random.below(9) as i32;
                stage.set_attribute(&path, "note", value).expect("an attribute");
                dense.note = Some(value);
            }
            6 => {
                // What fails changes nothing.
                let rank = dense.shape.len();
                let many = vec![1i32; 1000];
                assert!(stage.set(&path, .., &many).is_err() || dense.data.is_empty());
                assert!(stage.set(&path, vec!["99"; rank].join(", ").as_str(), 1i32).is_err());
                assert!(stage.append(&path, &[[1i32; 9]; 0].concat()).is_err() || rank == 1);
            }
            _ => {
                let (mut words, mut axes, mut counts) = (Vec::new(), Vec::new(), Vec::new());
                let listed = self.random.below(dense.shape.len() as u64 * 2) as usize;
                for (axis, &dim) in dense.shape.iter().enumerate() {
                    let start = self.random.below(dim + 1);
                    let stop = start + self.random.below(dim - start + 1);
                    if axis == listed && dim > 0 {
                        let list: Vec<u64> =
                            (0..1 + self.random.below(3)).map(|_| self.random.below(dim)).collect();
                        let text: Vec<String> = list.iter().map(u64::to_string).collect();
                        words.push(format!("[{}]", text.join(",")));
                        counts.push(list.len() as u64);
                        axes.push(list);
                    } else if listed >= dense.shape.len() && self.random.one_in(3) && dim > 0 {
                        let at = self.random.below(dim);
                        words.push(at.to_string());
                        axes.push(vec![at]);
                    } else {
                        let by = 1 + self.random.below(3);
                        words.push(format!("{start}:{stop}:{by}"));
                        let list: Vec<u64> = (start..stop).step_by(by as usize).collect();
                        counts.push(list.len() as u64);
                        axes.push(list);
                    }
                }
                let coords = coords(&axes);
                let selection = format!("[{}]", words.join(", "));
                let values: Vec<i32> = match self.random.one_in(3) {
                    true => vec![self.random.below(5) as i32; coords.len()],
                    false => coords.iter().map(|_| self.random.below(5) as i32).collect(),
                };
                let given = Values::new(&counts, &values).expect("values");
                stage
                    .set(&path, selection.as_str(), given)
                    .unwrap_or_else(|e| panic!("{path}[{selection}]: {e}"));
                for (coord, value) in coords.iter().zip(values) {
                    let at = dense.at(coord);
                    dense.data[at] = value;
                }
            }
        }
    }

    /// A version: begun, changed, and committed or dropped.
    fn version(&mut self) -> u64 {
        let (parent, mut state) = match self.random.below(6) {
            0 => (Parent::Nothing, State::new()),
            1 if !self.versions.is_empty() => {
                let at = self.random.below(self.versions.len() as u64) as usize;
                let version = &self.versions[at];
                (Parent::Version(version.name.clone()), version.state.clone())
            }
            _ => {
                let current = self.versions.iter().find(|v| Some(&v.name) == self.current.as_ref());
                (Parent::Current, current.map_or(State::new(), |v| v.state.clone()))
            }
        };
        self.names += 1;
        let name = format!("v{}", self.names);
        let open = OpenOptions::default();
        let mut stage =
            version::stage(self.path.as_str(), "/", &name, &parent, &open, &self.write).expect("it begins");
        let steps = 1 + self.random.below(8);
        for _ in 0..steps {
            self.change(&mut stage, &mut state);
        }
        for (path, dense) in &state {
            let read = stage.array(path).expect("it is there").read::<i32>(..).expect("it reads");
            assert_eq!((&read.data, &read.shape), (&dense.data, &dense.shape), "{path}, staged");
        }
        if self.random.one_in(6) {
            return steps + 1;
        }
        let is_current = self.versions.is_empty() || !self.random.one_in(5);
        stage.set_make_current(is_current);
        stage.commit().unwrap_or_else(|e| panic!("{name}: {e}"));
        let parent = match parent {
            Parent::Nothing => None,
            Parent::Version(name) => Some(name),
            Parent::Current => self.current.clone(),
        };
        if is_current {
            self.current = Some(name.clone());
        }
        self.versions.push(Committed { name, parent, state });
        steps + 1
    }

    /// Whatever is done to all versions.
    fn upkeep(&mut self) {
        let open = OpenOptions::default();
        let done = |upkeep: hyperslab::Result<Upkeep>| upkeep.and_then(Upkeep::commit).expect("it is done");
        match self.random.below(8) {
            0 => {
                done(version::rebuild_hash_tables(self.path.as_str(), None, &open, &self.write));
            }
            1 => {
                version::repack(self.path.as_str(), None, &open, &self.write).expect("it is written anew");
            }
            2 => {
                let known: Vec<String> =
                    self.versions.iter().flat_map(|version| version.state.keys().cloned()).collect();
                let Some(path) = known.get(self.random.below(known.len() as u64) as usize) else { return };
                let rank = self.chunks[path].len();
                let chunk: Vec<u64> = (0..rank).map(|_| 1 + self.random.below(4)).collect();
                let deflate =
                    FilterSpec::Hdf5 { id: 1, flags: 1, name: "deflate".into(), parameters: vec![4] };
                let filters = self.random.one_in(2).then(|| vec![deflate]);
                // Arrays that are made here later have to be like it.
                let metadata = Metadata { chunk: Some(chunk.clone()), ..Metadata::default() };
                done(version::modify_metadata(self.path.as_str(), None, path, &metadata, &open, &self.write));
                if let Some(filters) = filters {
                    let with = Metadata { filters: Some(filters), ..Metadata::default() };
                    done(version::modify_metadata(self.path.as_str(), None, path, &with, &open, &self.write));
                    let without = Metadata { filters: Some(Vec::new()), ..Metadata::default() };
                    done(version::modify_metadata(
                        self.path.as_str(),
                        None,
                        path,
                        &without,
                        &open,
                        &self.write,
                    ));
                }
                self.chunks.insert(path.clone(), chunk);
            }
            3 => {
                // Dropped, nothing happened.
                let names: Vec<String> = self.versions.iter().map(|v| v.name.clone()).collect();
                let pick = |_: &Versions| Ok(names);
                let upkeep = version::delete_versions(self.path.as_str(), None, pick, &open, &self.write);
                drop(upkeep.expect("it is prepared"));
            }
            _ => {
                let mut gone = Vec::new();
                for version in &self.versions {
                    if self.random.one_in(if self.versions.len() > 30 { 2 } else { 5 }) {
                        gone.push(version.name.clone());
                    }
                }
                let pick = |_: &Versions| Ok(gone.clone());
                done(version::delete_versions(self.path.as_str(), None, pick, &open, &self.write));
                let parents: BTreeMap<String, Option<String>> =
                    self.versions.iter().map(|v| (v.name.clone(), v.parent.clone())).collect();
                let ancestor = |mut name: Option<String>| {
                    while let Some(at) = name.as_ref().filter(|name| gone.contains(name)) {
                        name = parents[at].clone();
                    }
                    name
                };
                self.versions.retain(|version| !gone.contains(&version.name));
                for version in &mut self.versions {
                    version.parent = ancestor(version.parent.clone());
                }
                self.current = ancestor(self.current.clone());
                let used = |path: &String| self.versions.iter().any(|v| v.state.contains_key(path));
                // Of what nobody has any more nothing is left that would have to be alike, if it had elements.
                let open = self.open();
                let store = open.base();
                self.chunks.retain(|path, _| {
                    used(path) || store.get(&format!("/_version_data{path}/raw_data")).is_ok()
                });
            }
        }
    }

    /// Everything is as it was committed.
    fn verify(&self) {
        let versions = self.open();
        assert_eq!(versions.current().expect("a current version").map(|v| v.name), self.current);
        let list = versions.list(Order::Name).expect("a list");
        assert_eq!(list.len(), self.versions.len());
        for wanted in &self.versions {
            let version = versions.get(&wanted.name).expect("it is there");
            assert_eq!(version.parent, wanted.parent, "{}", wanted.name);
            let file = versions.file(&version);
            let mut found = 0;
            for entry in file.walk() {
                let Ok(hyperslab::Object::Array(array)) = entry.open(&file) else { continue };
                found += 1;
                let label = format!("{} {}", wanted.name, entry.path);
                let dense = wanted.state.get(&entry.path).unwrap_or_else(|| panic!("{label} is not known"));
                let read = array.read::<i32>(..).unwrap_or_else(|e| panic!("{label}: {e}"));
                assert_eq!((&read.data, &read.shape), (&dense.data, &dense.shape), "{label}");
                let note = array.attribute("note").ok().and_then(|note| note.as_integer());
                assert_eq!(note, dense.note.map(i128::from), "{label}");
            }
            assert_eq!(found, wanted.state.len(), "{}", wanted.name);
        }
    }

    /// The same, as versioned-hdf5 sees it, which then adds a version and removes one.
    fn verify_there(&self, scratch: &Path) {
        let copy = scratch.join("copy.h5");
        std::fs::copy(&self.path, &copy).expect("a copy");
        let first: Vec<&str> = self.versions.iter().take(1).map(|version| version.name.as_str()).collect();
        let jobs =
            [json!([&self.path, "/", []]), json!([copy, "/", [["extend", "theirs"], ["delete", first]]])];
        let states = told(&jobs);
        let same = |state: &Json, skipped: &[&str]| {
            let list = state["versions"].as_array().expect("a list");
            let mut seen = 0;
            for version in list.iter().filter(|v| v["name"] != "theirs") {
                let wanted = self.versions.iter().find(|w| version["name"] == w.name).expect("it is known");
                let arrays = version["arrays"].as_object().expect("a map");
                assert_eq!(arrays.len(), wanted.state.len(), "{}", wanted.name);
                for (path, dense) in &wanted.state {
                    let array = &arrays[path.trim_start_matches('/')];
                    let bytes: String =
                        dense.data.iter().flat_map(|v| v.to_le_bytes()).map(|b| format!("{b:02x}")).collect();
                    assert_eq!(array["shape"], json!(dense.shape), "{} {path}", wanted.name);
                    assert_eq!(array["bytes"], bytes, "{} {path}", wanted.name);
                }
                seen += 1;
            }
            assert_eq!(seen, self.versions.len() - skipped.len());
        };
        same(&states[0], &[]);
        same(&states[1], &first);
    }
}

fn spec(shape: &[u64], chunk: &[u64]) -> ArraySpec {
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    ArraySpec::simple(dtype, shape).with_chunk(chunk).with_fill(&FILL.to_le_bytes())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_steps_are_those_of_plain_arrays() {
    let (steps, seed) = (number("HYPERSLAB_VERSION_STEPS", 1000), number("HYPERSLAB_VERSION_SEED", 1));
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("model.h5");
    hyperslab::create(path.as_path(), Format::Hdf5, &CreateOptions::default())
        .and_then(|transaction| transaction.commit())
        .expect("a file");
    let mut model = Model {
        path: path.to_str().expect("UTF-8").to_owned(),
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        // Between fork and exec a program that another test starts holds every lock of this process for a moment.
        write: WriteOptions::default().with_sync(SyncPolicy::None).with_locking(Locking::Never),
        versions: Vec::new(),
        current: None,
        chunks: BTreeMap::new(),
        names: 0,
    };
    let (mut done, mut checked) = (0, 0);
    while done < steps {
        done += model.version();
        if !model.versions.is_empty() && model.random.one_in(5) {
            model.upkeep();
            done += 1;
            model.verify();
        }
        if done / 2500 > checked && !model.versions.is_empty() {
            checked = done / 2500;
            model.verify_there(scratch.path());
        }
    }
    model.verify();
    if !model.versions.is_empty() {
        model.verify_there(scratch.path());
    }
}
