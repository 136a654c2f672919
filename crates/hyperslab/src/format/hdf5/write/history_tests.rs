//! Random histories of changes against a model of a few lines: after each commit the file is what the model says.

use super::*;
use crate::dtype::{ByteOrder, CharSet, DType, IntegerType, StringPadding};
use crate::format;
use crate::model::write::{ArraySpec, AttributeSpec, EncodedChunk, LayoutSpec, LinkSpec};
use crate::model::{ChunkRef, Dataspace, Hierarchy, LinkTarget, NodeId, NodeKind, Storage};
use crate::shape::Coord;
use crate::source::{MemorySource, Neighbours};
use std::collections::BTreeMap;

/// What an object should be.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    attributes: BTreeMap<String, Vec<u8>>,
    /// Extents and elements by chunk, for arrays.
    array: Option<(Vec<u64>, Chunks)>,
    soft: Option<String>,
}

/// Chunks by coordinates, decoded.
type Chunks = BTreeMap<Vec<u64>, Vec<u8>>;

const CHUNK: [u64; 2] = [3, 4];

struct History {
    seed: u64,
    /// Objects by path.
    model: BTreeMap<String, Model>,
    next: u32,
}

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text).unwrap()
}

impl History {
    fn random(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.seed >> 33) as usize % below.max(1)
    }

    fn pick(&mut self, wanted: impl Fn(&Model) -> bool) -> Option<String> {
        let all: Vec<String> = self.model.iter().filter(|(_, m)| wanted(m)).map(|(p, _)| p.clone()).collect();
        let i = self.random(all.len());
        all.get(i).cloned()
    }

    fn fresh(&mut self) -> String {
        let group = self.pick(|m| m.array.is_none() && m.soft.is_none()).unwrap();
        self.next += 1;
        format!(
            "{}/{}{}",
            group.trim_end_matches('/'),
            ["n", "name", "a rather long name "][self.random(3)],
            self.next
        )
    }

    /// What lies at a path and below it, by what follows the path.
    fn below(&self, at: &str) -> Vec<(String, Model)> {
        let own =
            |p: &String| p.strip_prefix(at).filter(|r| r.is_empty() || r.starts_with('/')).map(str::to_owned);
        self.model.iter().filter_map(|(p, m)| Some((own(p)?, m.clone()))).collect()
    }

    fn step(&mut self, w: &mut Hdf5Writer) {
        match self.random(14) {
            0 | 1 => {
                let at = self.fresh();
                w.apply(Change::CreateGroup { path: path(&at) }).unwrap();
                self.model.insert(at, Model::default());
            }
            2..=4 => {
                let at = self.fresh();
                let dtype = DType::Integer(IntegerType::new(2, ByteOrder::Little, true));
                let dims = vec![self.random(9) as u64, self.random(9) as u64 + 1];
                let max = match self.random(3) {
                    0 => vec![None, Some(dims[1] + 6)],
                    1 => vec![None, None],
                    _ => vec![Some(40), Some(40)],
                };
                let mut spec = ArraySpec::new(dtype, Dataspace::Simple { dims: dims.clone(), max });
                spec.layout = LayoutSpec::Chunked { chunk: CHUNK.to_vec(), shard: None };
                if self.random(2) == 0 {
                    let parameters = vec![2];
                    let name = Name::default();
                    spec.filters = vec![crate::codec::FilterSpec::Hdf5 { id: 2, flags: 0, name, parameters }];
                }
                w.apply(Change::CreateArray { path: path(&at), spec: Box::new(spec) }).unwrap();
                self.model.insert(at, Model { array: Some((dims, BTreeMap::new())), ..Model::default() });
            }
            5..=7 => {
                let Some(at) = self.pick(|m| m.soft.is_none()) else { return };
                let name = format!("a{}", self.random(15));
                let size = [3, 200, 4500, 66_000][self.random(40).min(3)];
                let value: Vec<u8> = (0..size).map(|i| (i + self.next as usize) as u8).collect();
                self.next += 1;
                let (padding, charset) = (StringPadding::NullPadded, CharSet::Ascii);
                let attribute = AttributeSpec {
                    name: Name::from(name.as_str()),
                    dtype: DType::String { size, padding, charset },
                    committed: None,
                    space: Dataspace::Scalar,
                    content: Content::Fixed(value.clone().into()),
                };
                match w.apply(Change::SetAttribute { object: path(&at), attribute }) {
                    Ok(()) => {
                        self.model.get_mut(&at).unwrap().attributes.insert(name, value);
                    }
                    // A header of version 1 has no room for it.
                    Err(e) => assert!(e.kind() == crate::ErrorKind::Unsupported && size > 60_000, "{e}"),
                }
            }
            8 => {
                let Some(at) = self.pick(|m| !m.attributes.is_empty()) else { return };
                let name = self.model[&at].attributes.keys().next().unwrap().clone();
                let change = Change::DeleteAttribute { object: path(&at), name: Name::from(name.as_str()) };
                w.apply(change).unwrap();
                self.model.get_mut(&at).unwrap().attributes.remove(&name);
            }
            9 => {
                let Some(at) = self.pick(|_| true).filter(|p| p.matches('/').count() > 1) else { return };
                w.apply(Change::Delete { path: path(&at) }).unwrap();
                self.below(&at).into_iter().for_each(|(rest, _)| {
                    self.model.remove(&format!("{at}{rest}"));
                });
            }
            10 => {
                let Some(from) = self.pick(|_| true).filter(|p| !p.is_empty()) else { return };
                let to = self.fresh();
                let done = w.apply(Change::Rename { from: path(&from), to: path(&to) });
                if to.starts_with(&format!("{from}/")) {
                    assert!(done.is_err());
                    return;
                }
                done.unwrap();
                for (rest, m) in self.below(&from) {
                    self.model.remove(&format!("{from}{rest}"));
                    self.model.insert(format!("{to}{rest}"), m);
                }
            }
            11 => {
                let Some(from) = self.pick(|_| true).filter(|p| p.matches('/').count() > 1) else { return };
                let to = self.fresh();
                if self.model[&from].soft.is_some() {
                    return;
                }
                let all = self.below(&from);
                w.apply(Change::CopyObject { from: path(&from), to: path(&to) }).unwrap();
                all.into_iter().for_each(|(rest, m)| {
                    self.model.insert(format!("{to}{rest}"), m);
                });
            }
            12 => {
                let (at, to) = (self.fresh(), format!("/somewhere/{}", self.next));
                let link = LinkSpec::Soft(Name::from(to.as_str()));
                w.apply(Change::CreateLink { path: path(&at), link }).unwrap();
                self.model.insert(at, Model { soft: Some(to), ..Model::default() });
            }
            _ => {
                let Some(at) = self.pick(|m| m.array.is_some()) else { return };
                let layout = w.layout(&path(&at)).unwrap();
                let shape = vec![self.random(30) as u64, layout.shape[1].max(1) + self.random(2) as u64];
                if w.apply(Change::Resize { array: path(&at), shape: shape.clone() }).is_ok() {
                    let (dims, chunks) = self.model.get_mut(&at).unwrap().array.as_mut().unwrap();
                    *dims = shape.clone();
                    chunks.retain(|c, _| c.iter().zip(CHUNK).zip(&shape).all(|((&c, n), &d)| c * n < d));
                    for (coord, bytes) in chunks.iter_mut() {
                        for (i, element) in bytes.chunks_mut(2).enumerate() {
                            let place = [i as u64 / CHUNK[1], i as u64 % CHUNK[1]];
                            if (0..2).any(|a| coord[a] * CHUNK[a] + place[a] >= shape[a]) {
                                element.fill(0);
                            }
                        }
                    }
                }
                self.fill(w, &at);
            }
        }
    }

    /// The model in lines of words: the path, then each attribute, and of an array its extents and chunks, in hex.
    fn told(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let list = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let mut out = String::new();
        for (at, model) in &self.model {
            out += &hex(at.as_bytes());
            model.attributes.iter().for_each(|(name, value)| out += &format!(" a:{name}:{}", hex(value)));
            if let Some((dims, chunks)) = &model.array {
                out += &format!(" d:{}", list(dims));
                chunks.iter().for_each(|(at, bytes)| out += &format!(" c:{}:{}", list(at), hex(bytes)));
            }
            model.soft.iter().for_each(|to| out += &format!(" s:{}", hex(to.as_bytes())));
            out += "\n";
        }
        out
    }

    /// Writes some chunks of an array.
    fn fill(&mut self, w: &mut Hdf5Writer, at: &str) {
        let layout = w.layout(&path(at)).unwrap();
        let grid = layout.grid();
        let mut chunks = Vec::new();
        for _ in 0..self.random(6) {
            if layout.count().unwrap() == 0 {
                break;
            }
            let coord: Coord = grid.iter().map(|&n| self.random(n as usize) as u64).collect();
            let plain: Vec<u8> = (0..24).map(|_| self.random(256) as u8).collect();
            // What lies beyond the extents is nobody's; the model has zeros there.
            let mut bytes = plain;
            for (i, element) in bytes.chunks_mut(2).enumerate() {
                let place = [i as u64 / CHUNK[1], i as u64 % CHUNK[1]];
                if (0..2).any(|a| coord[a] * CHUNK[a] + place[a] >= layout.shape[a]) {
                    element.fill(0);
                }
            }
            let mut encoded = Vec::new();
            let mask =
                layout.pipeline.encode(&bytes, &mut encoded, &mut crate::codec::Scratch::default()).unwrap();
            let stored = self.model.get_mut(at).unwrap().array.as_mut().unwrap();
            stored.1.insert(coord.to_vec(), bytes);
            chunks.push(EncodedChunk { coord, bytes: Some(encoded.into()), mask });
        }
        w.write_chunks(&path(at), chunks).unwrap();
    }
}

/// What a file holds, in the words of the model.
fn read(file: &dyn Hierarchy) -> BTreeMap<String, Model> {
    let mut out = BTreeMap::new();
    let mut todo: Vec<(String, NodeId)> = vec![(String::new(), file.root())];
    while let Some((at, node)) = todo.pop() {
        file.check_node(&node, &mut |f| panic!("{at}: {:?}", f.error));
        let mut model = Model::default();
        for a in file.attributes(&node).unwrap() {
            let a = a.map_err(|(_, e)| e).unwrap();
            model.attributes.insert(a.name.to_string(), a.data.to_vec());
        }
        match file.kind(&node).unwrap() {
            NodeKind::Group => {
                let links = file.links(&node).unwrap();
                assert!(links.faults.is_empty());
                for link in links.links {
                    let below = format!("{at}/{}", link.name);
                    match link.target {
                        LinkTarget::Hard(node) => todo.push((below, node)),
                        LinkTarget::Soft(to) => {
                            let soft = Some(to.to_string());
                            out.insert(below, Model { soft, ..Model::default() });
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
            NodeKind::Array => {
                let (meta, storage) = file.array(&node).unwrap();
                let Storage::Chunks(index) = storage else { panic!() };
                let context =
                    crate::codec::BindContext { dtype: &meta.dtype, chunk: &CHUNK, chunk_bytes: 24 };
                let pipeline = crate::codec::Registry::default().pipeline(&meta.filters, &context).unwrap();
                let mut chunks = BTreeMap::new();
                let visit = &mut |coord: Coord, chunk: ChunkRef| {
                    let ChunkRef::Range { source, offset, length, mask } = chunk else { panic!() };
                    let mut stored = vec![0; length as usize];
                    source.read_into(offset, &mut stored)?;
                    let mut bytes = Vec::new();
                    pipeline.decode(&stored, mask, &mut bytes, &mut crate::codec::Scratch::default())?;
                    chunks.insert(coord.to_vec(), bytes);
                    Ok(())
                };
                index.scan(visit, &mut |f| panic!("{at}: {:?}", f.error)).unwrap();
                for coord in chunks.keys() {
                    // Found one by one too.
                    let coord: Coord = coord.as_slice().into();
                    assert!(matches!(index.locate(&[coord]).unwrap()[0], ChunkRef::Range { .. }));
                }
                model.array = Some((meta.space.dims().to_vec(), chunks));
            }
            NodeKind::Datatype => panic!(),
        }
        out.insert(at, model);
    }
    out
}

fn run(libver: Libver, track: bool, seed: u64, sessions: usize, steps: usize) {
    let target = Arc::new(MemoryTarget::default());
    let options = Hdf5Options::new().with_libver(libver).with_track_order(track);
    let mut history = History { seed, model: BTreeMap::from([(String::new(), Model::default())]), next: 0 };
    for session in 0..sessions {
        let mut writer = match session {
            0 => Hdf5Writer::create(target.clone(), options.clone(), Limits::default()).unwrap(),
            _ => Hdf5Writer::edit(target.clone(), Limits::default()).unwrap(),
        };
        for _ in 0..steps {
            history.step(&mut writer);
        }
        Box::new(writer).commit().unwrap();
        let source = Arc::new(MemorySource::new(target.bytes(), "test"));
        let file = format::open(source, Neighbours::default(), Limits::default()).unwrap();
        let found = read(file.as_ref());
        for (at, wanted) in &history.model {
            assert_eq!(found.get(at), Some(wanted), "{libver:?} {track} {seed} session {session}: {at}");
        }
        assert_eq!(found.len(), history.model.len());
    }
    if let Some(folder) = std::env::var_os("HYPERSLAB_HISTORIES") {
        // For `scripts/hdf5-histories`, which asks h5py.
        let name = format!("{libver:?}-{track}-{seed}");
        let folder = std::path::Path::new(&folder);
        std::fs::write(folder.join(format!("{name}.h5")), target.bytes()).unwrap();
        std::fs::write(folder.join(format!("{name}.txt")), history.told()).unwrap();
    }
}

/// Whatever is wrong in a file, changing it is an error or done, and no panic.
#[test]
fn damaged_files_are_changed_or_refused() {
    let mut history =
        History { seed: 99, model: BTreeMap::from([(String::new(), Model::default())]), next: 0 };
    for libver in [Libver::Earliest, Libver::V18, Libver::V110, Libver::Latest] {
        let target = Arc::new(MemoryTarget::default());
        let options = Hdf5Options::new().with_libver(libver).with_track_order(libver == Libver::V18);
        history.model = BTreeMap::from([(String::new(), Model::default())]);
        let mut writer = Hdf5Writer::create(target.clone(), options, Limits::default()).unwrap();
        (0..60).for_each(|_| history.step(&mut writer));
        Box::new(writer).commit().unwrap();
        let whole = target.bytes();
        // Where structures start; what elements are is nobody's business.
        let signatures: [&[u8; 4]; 12] = [
            b"OHDR", b"OCHK", b"TREE", b"SNOD", b"HEAP", b"BTHD", b"BTLF", b"FRHP", b"EAHD", b"EAIB",
            b"FAHD", b"FADB",
        ];
        let found = signatures.iter().flat_map(|s| crate::format::hdf5::test_space::find(&whole, s));
        let starts: Vec<usize> = found.map(|at| at as usize).chain([0]).collect();
        let (mut changed, mut refused) = (0, 0);
        let seals = seals(&whole);
        for _ in 0..60 {
            let mut bytes = whole.clone();
            for _ in 0..1 + history.random(3) {
                let start = starts[history.random(starts.len())];
                let at = (start + history.random(70)).min(bytes.len() - 1);
                bytes[at] = match history.random(3) {
                    0 => 0xff,
                    1 => bytes[at] ^ 1 << history.random(8),
                    _ => history.random(256) as u8,
                };
            }
            // Checksums would find most of it.
            for &(at, length) in &seals {
                crate::format::hdf5::test_space::reseal(&mut bytes, at, length);
            }
            let Ok(mut w) = Hdf5Writer::edit(Arc::new(MemoryTarget::new(bytes)), Limits::default()) else {
                refused += 1;
                continue;
            };
            let paths: Vec<String> = history.model.keys().cloned().collect();
            for at in paths {
                let attribute = AttributeSpec {
                    name: Name::from("more"),
                    dtype: DType::Integer(IntegerType::new(1, ByteOrder::Little, false)),
                    committed: None,
                    space: Dataspace::Scalar,
                    content: Content::Fixed(vec![1].into()),
                };
                let _ = w.apply(Change::SetAttribute { object: path(&at), attribute });
                if let Ok(layout) = w.layout(&path(&at)) {
                    let shape = layout.shape.iter().map(|&d| d.saturating_add(5)).collect();
                    let _ = w.apply(Change::Resize { array: path(&at), shape });
                    let bytes = Some(vec![1; 24].into());
                    let chunk =
                        EncodedChunk { coord: layout.shape.iter().map(|_| 1).collect(), bytes, mask: 0 };
                    let _ = w.write_chunks(&path(&at), vec![chunk]);
                }
                if history.random(4) == 0 {
                    let to = path(&format!("{at} copied"));
                    let _ = w.apply(Change::CopyObject { from: path(&at), to });
                }
                if history.random(6) == 0 {
                    let _ = w.apply(Change::Delete { path: path(&at) });
                }
            }
            match Box::new(w).commit() {
                Ok(_) => changed += 1,
                Err(_) => refused += 1,
            }
        }
        assert!(changed > 0 && refused > 0, "{libver:?}: {changed} changed, {refused} refused");
    }
}

/// Where structures of a fixed length are, and the length in front of their checksums.
fn seals(bytes: &[u8]) -> Vec<(usize, usize)> {
    let lengths: [(&[u8; 4], usize); 4] = [(b"BTHD", 34), (b"FRHP", 142), (b"EAHD", 68), (b"FAHD", 24)];
    let found = |(signature, length): (&[u8; 4], usize)| {
        let all = crate::format::hdf5::test_space::find(bytes, signature).into_iter();
        all.map(move |at| (at as usize, length)).collect::<Vec<_>>()
    };
    lengths.into_iter().flat_map(found).filter(|(at, length)| at + length + 4 <= bytes.len()).collect()
}

#[test]
fn random_histories_end_as_the_model_says() {
    let number = |name: &str, usual| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (sessions, seed) = (number("HYPERSLAB_SESSIONS", 25), number("HYPERSLAB_SEED", 7));
    for libver in [Libver::Earliest, Libver::V18, Libver::V110, Libver::Latest] {
        for track in [false, true] {
            run(libver, track, (seed + libver as usize) as u64, sessions, 12);
        }
    }
}
