//! Which chunks the versions of a file use.

use super::view::View;
use super::{FIRST, Found, STORE, Versions, arrays};
use crate::array::{Array, File, Object};
use crate::error::{Context, Error, Result};
use crate::model::write::ObjectPath;
use crate::model::{ChunkRef, Hierarchy, Layout, LinkTarget, NodeId, Storage};
use crate::shape::{Coord, Name};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// A version by what it holds, committed or not.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) found: Found,
}

/// An array of a version: where it is, and what its chunks are.
#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) at: ObjectPath,
    /// Its own description; its grid is that of the stack.
    pub(super) dims: Vec<u64>,
    /// Number of a chunk in C order, and its number in the stack; sorted.
    pub(super) slots: Vec<(u64, u64)>,
}

/// What versions use of the stack of one array.
#[derive(Debug, Default)]
pub(super) struct Use {
    /// The arrays that are made of it, in the order of the names of versions.
    pub(super) maps: Vec<Map>,
    pub(super) raw: Option<Array>,
    /// Whether it is no map of chunks in some version, but a dataset without storage.
    pub(super) is_bare: bool,
    /// Why its chunks cannot be told, if so.
    pub(super) refused: Option<String>,
}

impl Use {
    /// Fails if it is not known what is used.
    pub(super) fn check(&self) -> Result<()> {
        self.refused.as_ref().map_or(Ok(()), |what| Err(Error::unsupported(what)))
    }

    /// The chunks of the stack that are used, each with its extents within the arrays that have it.
    pub(super) fn slots(&self) -> BTreeMap<u64, Coord> {
        let mut slots = BTreeMap::new();
        let Some(raw) = &self.raw else { return slots };
        let chunk = raw.meta().chunk_shape();
        for map in &self.maps {
            for &(number, slot) in &map.slots {
                slots.entry(slot).or_insert_with(|| extent(number, &map.dims, chunk));
            }
        }
        slots
    }
}

/// Extents of a chunk within its array.
pub(super) fn extent(mut number: u64, dims: &[u64], chunk: &[u64]) -> Coord {
    let mut extent: Coord = dims
        .iter()
        .zip(chunk)
        .rev()
        .map(|(&dim, &chunk)| {
            let count = dim.div_ceil(chunk.max(1)).max(1);
            let at = number % count;
            number /= count;
            chunk.min(dim.saturating_sub(at.saturating_mul(chunk)))
        })
        .collect();
    extent.reverse();
    extent
}

/// The elements of a chunk, as a selection.
pub(super) fn region(mut number: u64, grid: &[u64], chunk: &[u64], extent: &[u64]) -> String {
    let axes = grid.iter().zip(chunk).zip(extent).rev();
    let mut axes: Vec<String> = axes
        .map(|((&count, &chunk), &extent)| {
            let start = (number % count.max(1)).saturating_mul(chunk);
            number /= count.max(1);
            format!("{start}:{}", start.saturating_add(extent))
        })
        .collect();
    axes.reverse();
    axes.join(", ")
}

/// All groups of versions but the first one, by the bytes of their names.
pub(super) fn versions(versions: &Versions) -> Result<Vec<Kept>> {
    let mut all = Vec::new();
    for name in versions.names()? {
        if let Some(found) = versions.find(&name)?.filter(|_| name != FIRST) {
            all.push(Kept { name, found });
        }
    }
    Ok(all)
}

/// The place of a version in the file.
pub(super) fn place_of(store: &ObjectPath, version: &str) -> ObjectPath {
    store.join("versions").join(Name::parse(version))
}

/// The paths of all arrays that any version has, or had: those that have a stack.
pub(super) fn stacks(file: &File, store: &ObjectPath) -> Result<BTreeSet<ObjectPath>> {
    let mut stacks = BTreeSet::new();
    let root = file.group(&store.to_string())?;
    let mut seen = HashSet::from([root.node().clone()]);
    let mut open = vec![(ObjectPath::root(), root)];
    while let Some((path, group)) = open.pop() {
        for link in group.links()?.links {
            let LinkTarget::Hard(node) = &link.target else { continue };
            let is_top = path.is_root();
            if is_top && link.name.as_bytes() == b"versions" || !seen.insert(node.clone()) {
                continue;
            }
            let here = path.join(link.name.clone());
            match file.object(node, format!("{store}{here}"))? {
                Object::Group(below) => open.push((here, below)),
                // At the top it is what the array `raw_data` would have in a group of this name.
                Object::Array(_) if link.name.as_bytes() == b"raw_data" && !is_top => {
                    stacks.insert(path.clone());
                }
                _ => {}
            }
        }
    }
    Ok(stacks)
}

/// Adds what a version uses, by the paths of arrays. An array with mappings that are not whole chunks of its own stack is
/// [refused](Use::refused).
pub(super) fn look(
    versions: &Versions,
    store: &ObjectPath,
    version: &Kept,
    uses: &mut BTreeMap<ObjectPath, Use>,
) -> Result<()> {
    let frame = || format!("version {}", version.name);
    let place = place_of(store, &version.name);
    let view =
        View::new(versions.file.hierarchy().clone(), version.found.node.clone(), versions.raws.clone());
    for (path, node) in nodes(versions, version) {
        let path = ObjectPath::parse(&path)?;
        let at = joined(&place, &path);
        let stack = joined(store, &path).join("raw_data");
        let found = uses.entry(path.clone()).or_default();
        let mapped = view.map(&node).context(|| format!("array {path}")).context(frame)?;
        let Some((meta, map, raw)) = mapped else {
            let inner = versions.file.hierarchy();
            let (meta, storage) = inner.array(&node).context(|| format!("array {path}")).context(frame)?;
            let what = match (meta.layout, storage) {
                (Layout::Virtual(0), _) => {
                    found.is_bare = true;
                    continue;
                }
                (Layout::Virtual(_), _) => "whose mappings are not whole chunks",
                // Older libraries make a dataset without storage of a map of nothing.
                (_, storage) if is_empty(&storage)? => {
                    found.is_bare = true;
                    continue;
                }
                _ => "whose elements are its own",
            };
            return Err(
                Error::unsupported(format!("{path}, {what}, in an upkeep of versions")).context(frame())
            );
        };
        if let Some(source) = &map.source
            && ObjectPath::parse(&source.to_string())? != stack
        {
            let what = format!("whose chunks are in {source}, in an upkeep of versions");
            found.refused = Some(format!("{path} of {}, {what}", version.name));
            continue;
        }
        found.maps.push(Map { at, dims: meta.space.dims().to_vec(), slots: map.slots });
        found.raw.get_or_insert(raw);
    }
    Ok(())
}

/// Whether nothing was ever written to an array.
fn is_empty(storage: &Storage) -> Result<bool> {
    let Storage::Chunks(index) = storage else { return Ok(false) };
    let (mut is_empty, mut fault) = (true, None);
    let visit = &mut |_, chunk| {
        is_empty &= matches!(chunk, ChunkRef::Absent);
        Ok(())
    };
    index.scan(visit, &mut |found| fault = Some(found.error))?;
    fault.map_or(Ok(is_empty), Err)
}

/// What a version holds, committed or not.
pub(super) fn file_of(versions: &Versions, version: &Kept) -> File {
    let inner = versions.file.hierarchy().clone();
    let view: Arc<dyn Hierarchy> =
        Arc::new(View::new(inner, version.found.node.clone(), versions.raws.clone()));
    versions.file.seen_through(view)
}

/// The arrays of a version, committed or not.
fn nodes(versions: &Versions, version: &Kept) -> Vec<(String, NodeId)> {
    arrays(&file_of(versions, version)).collect()
}

/// The paths of arrays of a version that have elements.
pub(super) fn filled(versions: &Versions, version: &Kept, known: &mut BTreeSet<ObjectPath>) -> Result<()> {
    for (path, node) in nodes(versions, version) {
        let path = ObjectPath::parse(&path)?;
        if known.contains(&path) {
            continue;
        }
        let (meta, _) = versions.file.hierarchy().array(&node).context(|| format!("array {path}"))?;
        if meta.space.dims().first().is_some_and(|&rows| rows > 0) {
            known.insert(path);
        }
    }
    Ok(())
}

/// The one path behind the other.
pub(super) fn joined(place: &ObjectPath, path: &ObjectPath) -> ObjectPath {
    place.names().iter().chain(path.names()).cloned().collect()
}

/// The group in which versions of what is in a group are kept.
pub(super) fn store_of(versions: &Versions) -> Result<ObjectPath> {
    Ok(ObjectPath::parse(&versions.place)?.join(STORE))
}
