//! What each version changed.

use super::view::View;
use super::{Order, Version, Versions};
use crate::array::{File, Item};
use crate::error::{Context, Result};
use crate::model::{ChunkRef, Hierarchy, NodeId, NodeKind, Storage, Value};
use crate::shape::Name;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// Chunks looked up at a time.
const BATCH: usize = 4096;

/// A version, and how it differs from its parent.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// The version.
    pub version: Version,
    /// Whether it is the current one.
    pub is_current: bool,
    /// What is not as it is in its parent, by path.
    pub changed: Vec<Changed>,
    /// Its arrays.
    pub arrays: u64,
    /// Chunks that no older version has.
    pub chunks_new: u64,
    /// Its other chunks; each array counts a chunk as often as it has it.
    pub chunks_reused: u64,
    /// Stored bytes of the new chunks.
    pub bytes_added: u64,
}

/// An object or a link that differs from that of the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its path in the version.
    pub path: String,
    /// What it is, or was in the parent if it is there no more.
    pub kind: Kind,
    /// How it differs.
    pub change: Change,
}

/// What stands at a path of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An array.
    Array,
    /// A group; the root is the version itself.
    Group,
    /// A named datatype.
    Datatype,
    /// A link: soft, external, or another hard one to an object that stands elsewhere, too.
    Link,
    /// What cannot be read.
    Fault,
}

/// How something differs from that of the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The parent has none.
    Added,
    /// Only the parent has one.
    Removed,
    /// Other elements, extents or element type, or another target of a link; perhaps other attributes, too.
    Data,
    /// Other attributes only.
    Attributes,
}

/// What tells an object of one version from that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print {
    kind: Kind,
    data: u64,
    attributes: u64,
}

impl Versions {
    /// All versions, oldest first, and what each one changed. Reads chunk maps and attributes, no elements.
    pub fn log(&self) -> Result<Vec<LogEntry>> {
        let current = self.current()?.map(|v| v.name);
        // Chunks by the array that has them.
        let mut seen: HashMap<Name, HashSet<u64>> = HashMap::new();
        let mut prints: HashMap<String, BTreeMap<String, Print>> = HashMap::new();
        let mut entries = Vec::new();
        for version in self.list(Order::Time)? {
            let mut entry = LogEntry {
                is_current: current.as_ref() == Some(&version.name),
                changed: Vec::new(),
                arrays: 0,
                chunks_new: 0,
                chunks_reused: 0,
                bytes_added: 0,
                version,
            };
            let here =
                self.look(&mut entry, &mut seen).context(|| format!("version {}", entry.version.name))?;
            let none = BTreeMap::new();
            let parent = entry.version.parent.as_ref().and_then(|name| prints.get(name)).unwrap_or(&none);
            entry.changed = changes(parent, &here);
            prints.insert(entry.version.name.clone(), here);
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Counts the chunks of a version, and gives what tells its arrays from others.
    fn look(
        &self,
        entry: &mut LogEntry,
        seen: &mut HashMap<Name, HashSet<u64>>,
    ) -> Result<BTreeMap<String, Print>> {
        let file = self.file(&entry.version);
        let view = View::new(self.file.hierarchy().clone(), entry.version.node.clone(), self.raws.clone());
        let mut here = BTreeMap::new();
        for found in file.walk() {
            let path = found.path;
            let mut data = DefaultHasher::new();
            let (kind, node) = match &found.item {
                Item::Group(group, _) => (Kind::Group, Some(group.node().clone())),
                Item::Object(node, NodeKind::Array) => {
                    self.look_at(&view, node, entry, seen, &mut data).context(|| format!("array {path}"))?;
                    (Kind::Array, Some(node.clone()))
                }
                Item::Object(node, _) => {
                    view.datatype(node)?.to_string().hash(&mut data);
                    (Kind::Datatype, Some(node.clone()))
                }
                Item::HardLink(first) => {
                    first.hash(&mut data);
                    (Kind::Link, None)
                }
                Item::SoftLink(target) => {
                    target.hash(&mut data);
                    (Kind::Link, None)
                }
                Item::ExternalLink(file, target) => {
                    (file, target).hash(&mut data);
                    (Kind::Link, None)
                }
                Item::UserLink(class, bytes) => {
                    (class, bytes).hash(&mut data);
                    (Kind::Link, None)
                }
                Item::Fault(_, e) => {
                    e.to_string().hash(&mut data);
                    (Kind::Fault, None)
                }
            };
            let attributes = node.map_or(Ok(0), |node| attributes(&file, &node, &path))?;
            here.insert(path, Print { kind, data: data.finish(), attributes });
        }
        Ok(here)
    }

    /// Counts the chunks of an array of a version.
    fn look_at(
        &self,
        view: &View,
        node: &NodeId,
        entry: &mut LogEntry,
        seen: &mut HashMap<Name, HashSet<u64>>,
        data: &mut DefaultHasher,
    ) -> Result<()> {
        entry.arrays += 1;
        let Some((meta, map, raw)) = view.map(node)? else {
            format!("{:?}", view.array(node)?).hash(data);
            return Ok(());
        };
        (&map.source, &map.slots, meta.space.dims()).hash(data);
        meta.dtype.to_string().hash(data);
        if let Some(source) = map.source {
            let known = seen.entry(source).or_default();
            let slots: Vec<u64> = map.slots.iter().map(|slot| slot.1).collect();
            let new: Vec<u64> = slots.iter().copied().filter(|slot| known.insert(*slot)).collect();
            entry.chunks_new += new.len() as u64;
            entry.chunks_reused += (slots.len() - new.len()) as u64;
            let bytes = stored(raw.storage(), &new, meta.space.dims().len())?;
            entry.bytes_added = entry.bytes_added.saturating_add(bytes);
        }
        Ok(())
    }
}

/// The differences between what two versions hold, by path.
fn changes(parent: &BTreeMap<String, Print>, here: &BTreeMap<String, Print>) -> Vec<Changed> {
    let mut changed = Vec::new();
    let mut add = |path: &String, kind, change| changed.push(Changed { path: path.clone(), kind, change });
    for (path, print) in here {
        match parent.get(path) {
            None if path == "/" && print.attributes == Print::BARE => {}
            None if path == "/" => add(path, print.kind, Change::Attributes),
            None => add(path, print.kind, Change::Added),
            // Something else of the same name.
            Some(before) if before.kind != print.kind => {
                add(path, before.kind, Change::Removed);
                add(path, print.kind, Change::Added);
            }
            Some(before) if before.data != print.data => add(path, print.kind, Change::Data),
            Some(before) if before.attributes != print.attributes => {
                add(path, print.kind, Change::Attributes);
            }
            Some(_) => {}
        }
    }
    for (path, print) in parent.iter().filter(|(path, _)| !here.contains_key(*path)) {
        add(path, print.kind, Change::Removed);
    }
    changed.sort_by(|a, b| a.path.cmp(&b.path));
    changed
}

/// Stored bytes of chunks of a stack.
pub(super) fn stored(storage: &Storage, slots: &[u64], rank: usize) -> Result<u64> {
    let Storage::Chunks(index) = storage else { return Ok(0) };
    let mut total = 0u64;
    for batch in slots.chunks(BATCH) {
        let at = |slot: u64| (0..rank).map(|axis| if axis == 0 { slot } else { 0 }).collect();
        let chunks: Vec<_> = batch.iter().map(|&slot| at(slot)).collect();
        for chunk in index.locate(&chunks)? {
            if let ChunkRef::Range { length, .. } = chunk {
                total = total.saturating_add(length);
            }
        }
    }
    Ok(total)
}

impl Print {
    /// Of an object without attributes.
    const BARE: u64 = 0;
}

/// What tells the attributes of an object from others: their values, wherever they are stored.
fn attributes(file: &File, node: &NodeId, path: &str) -> Result<u64> {
    let mut hash = DefaultHasher::new();
    let mut is_bare = true;
    // Not opened as an array, which would read its map once more.
    for entry in file.hierarchy().attributes(node)? {
        is_bare = false;
        match entry {
            Ok(a) => {
                a.name.hash(&mut hash);
                a.dtype.to_string().hash(&mut hash);
                a.space.dims().hash(&mut hash);
                let value =
                    crate::array::attribute_value(&**file.hierarchy(), &a, file.options().limits.output)
                        .context(|| format!("attribute {} of {path}", a.name))?;
                format!("{value:?}").hash(&mut hash);
            }
            Err((name, e)) => (name, e.to_string()).hash(&mut hash),
        }
    }
    Ok(if is_bare { Print::BARE } else { hash.finish() })
}

/// An attribute of an object that is a text; `None` if there is none.
pub(super) fn text_attribute(hierarchy: &dyn Hierarchy, node: &NodeId, name: &str) -> Result<Option<String>> {
    for entry in hierarchy.attributes(node)? {
        match entry {
            Ok(a) if a.name.as_bytes() == name.as_bytes() => {
                let value = crate::array::attribute_value(hierarchy, &a, 1 << 20)?;
                return Ok(match value {
                    Value::Text(text) => Some(text),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    Ok(None)
}
