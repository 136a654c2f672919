//! What each version changed.

use super::view::View;
use super::{Order, Version, Versions, arrays};
use crate::array::File;
use crate::error::{Context, Result};
use crate::model::{ChunkRef, Hierarchy, NodeId, Storage, Value};
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
    /// The arrays that are not as they are in its parent, by path.
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

/// An array that differs from that of the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its path in the version.
    pub path: String,
    /// How it differs.
    pub change: Change,
}

/// How an array differs from that of the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The parent has none.
    Added,
    /// Only the parent has one.
    Removed,
    /// Other elements, extents or element type; perhaps other attributes, too.
    Data,
    /// Other attributes only.
    Attributes,
}

/// What tells an array of one version from that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print {
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
        for (path, node) in arrays(&file) {
            entry.arrays += 1;
            let mut data = DefaultHasher::new();
            match view.map(&node)? {
                Some((meta, map, raw)) => {
                    (&map.source, &map.slots, meta.space.dims()).hash(&mut data);
                    meta.dtype.to_string().hash(&mut data);
                    if let Some(source) = map.source {
                        let known = seen.entry(source).or_default();
                        let slots: Vec<u64> = map.slots.iter().map(|slot| slot.1).collect();
                        let new: Vec<u64> =
                            slots.iter().copied().filter(|slot| known.insert(*slot)).collect();
                        entry.chunks_new += new.len() as u64;
                        entry.chunks_reused += (slots.len() - new.len()) as u64;
                        entry.bytes_added = entry.bytes_added.saturating_add(stored(
                            raw.storage(),
                            &new,
                            meta.space.dims().len(),
                        )?);
                    }
                }
                None => format!("{:?}", view.array(&node)?).hash(&mut data),
            }
            let attributes = attributes(&file, &node, &path)?;
            here.insert(path, Print { data: data.finish(), attributes });
        }
        Ok(here)
    }
}

/// The differences between the arrays of two versions, by path.
fn changes(parent: &BTreeMap<String, Print>, here: &BTreeMap<String, Print>) -> Vec<Changed> {
    let mut changed = Vec::new();
    for (path, print) in here {
        let change = match parent.get(path) {
            None => Change::Added,
            Some(before) if before.data != print.data => Change::Data,
            Some(before) if before.attributes != print.attributes => Change::Attributes,
            Some(_) => continue,
        };
        changed.push(Changed { path: path.clone(), change });
    }
    let removed = parent.keys().filter(|path| !here.contains_key(*path));
    changed.extend(removed.map(|path| Changed { path: path.clone(), change: Change::Removed }));
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

/// What tells the attributes of an array from others: their values, wherever they are stored.
fn attributes(file: &File, node: &NodeId, path: &str) -> Result<u64> {
    let mut hash = DefaultHasher::new();
    // Not opened as an array, which would read its map once more.
    for entry in file.hierarchy().attributes(node)? {
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
    Ok(hash.finish())
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
