//! One version of a group, as a hierarchy of its own.

use super::index::{ChunkMap, Mapped};
use super::store::same;
use crate::array::{Array, File};
use crate::dtype::{DType, ReferenceKind};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    ArrayMeta, AttributeEntry, ChunkGrid, Fault, FileInfo, HeapRef, Hierarchy, Layout, Link, LinkTarget,
    Links, NodeId, NodeKind, Reference, Stacked, Storage, VirtualMapping, Workers,
};
use crate::shape::Name;
use crate::source::Traffic;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Arrays of chunks kept open.
const KEPT: usize = 4096;

/// What the file itself is called in external links of a version, which begin at the file's own root.
const ITSELF: &str = ".";

/// The same in mappings, where `.` would be the version.
const WHOLE_FILE: &str = "./.";

/// What the layout adds to the attributes of a version, and of its arrays.
pub(super) const OF_VERSION: [&[u8]; 3] = [b"committed", b"prev_version", b"timestamp"];
pub(super) const OF_ARRAY: [&[u8]; 2] = [b"raw_data", b"chunks"];

/// The arrays of chunks of a file that were opened, for all of its versions.
#[derive(Debug)]
pub(super) struct Raws {
    file: File,
    opened: Mutex<HashMap<Name, Array>>,
}

impl Raws {
    pub(super) fn new(file: File) -> Raws {
        Raws { file, opened: Mutex::default() }
    }

    /// The array of chunks at a path from the root of the file.
    pub(super) fn get(&self, path: &Name) -> Result<Array> {
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened().get(path) {
            return Ok(known.clone());
        }
        let array = self.file.array(&path.to_string()).map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::InvalidArgument => {
                let text = format!("its chunks are in {path}, which is not there: {}", e.message());
                Error::new(ErrorKind::Corrupt, text)
            }
            _ => e,
        })?;
        let mut opened = opened();
        if opened.len() >= KEPT {
            opened.clear();
        }
        Ok(opened.entry(path.clone()).or_insert(array).clone())
    }
}

/// One version, seen as a file.
#[derive(Debug)]
pub(super) struct View {
    inner: Arc<dyn Hierarchy>,
    root: NodeId,
    raws: Arc<Raws>,
}

impl View {
    pub(super) fn new(inner: Arc<dyn Hierarchy>, root: NodeId, raws: Arc<Raws>) -> View {
        View { inner, root, raws }
    }

    /// The description of an array as a map of chunks, and the array that has them; `None` if it is no such map.
    pub(super) fn map(&self, node: &NodeId) -> Result<Option<(ArrayMeta, Mapped, Array)>> {
        let mut raw = None;
        let chunk_of = &mut |path: &Name| {
            let found = self.raws.get(path)?;
            let chunk = stacked_chunk(&found);
            raw = Some(found);
            Ok(chunk)
        };
        let Some(Stacked { meta, source, slots }) = self.inner.stacked(node, chunk_of)? else {
            return Ok(None);
        };
        let raw = match raw {
            Some(raw) => raw,
            None => match self.named(node)? {
                Some(raw) => raw,
                None => return Ok(None),
            },
        };
        // What a map says of chunks that are not all there is for the ordinary way.
        let rows = raw.shape().first().copied().unwrap_or(0);
        let Some(chunk) = stacked_chunk(&raw) else { return Ok(None) };
        let inside = |slot: u64| {
            let end = slot.checked_add(1).and_then(|n| n.checked_mul(*chunk.first()?));
            end.is_some_and(|end| end <= rows)
        };
        let is_whole = chunk.len() == meta.space.dims().len() && slots.iter().all(|slot| inside(slot.1));
        let is_alike = raw.dtype() == &meta.dtype
            && (same(&raw.meta().fill_element, &meta.fill_element) || !meta.dtype.is_fixed());
        if !is_whole || !is_alike {
            return Ok(None);
        }
        Ok(Some((meta, Mapped { source, slots }, raw)))
    }

    /// The array of chunks that the attribute `raw_data` of an array names.
    fn named(&self, node: &NodeId) -> Result<Option<Array>> {
        let Some(path) = super::log::text_attribute(&*self.inner, node, "raw_data")? else { return Ok(None) };
        self.raws.get(&Name::from(path.as_str())).map(Some)
    }

    /// A link as it is seen from the version: what begins at the root of the file still does.
    fn link_from_here(link: Link) -> Link {
        match link.target {
            LinkTarget::Soft(path) if path.as_bytes().first() == Some(&b'/') => {
                Link { target: LinkTarget::External { file: ITSELF.into(), path }, ..link }
            }
            _ => link,
        }
    }
}

/// The chunk extents of an array of stacked chunks; `None` if it is none.
fn stacked_chunk(raw: &Array) -> Option<Vec<u64>> {
    match (&raw.meta().grid, raw.storage()) {
        (ChunkGrid::Regular(chunk), Storage::Chunks(_)) if raw.shape().get(1..) == chunk.get(1..) => {
            Some(chunk.clone())
        }
        _ => None,
    }
}

impl Hierarchy for View {
    fn info(&self) -> FileInfo {
        self.inner.info()
    }

    fn root(&self) -> NodeId {
        self.root.clone()
    }

    fn kind(&self, node: &NodeId) -> Result<NodeKind> {
        self.inner.kind(node)
    }

    fn links(&self, group: &NodeId) -> Result<Links> {
        let mut links = self.inner.links(group)?;
        links.links = links.links.into_iter().map(View::link_from_here).collect();
        Ok(links)
    }

    fn link(&self, group: &NodeId, name: &Name) -> Result<Option<Link>> {
        Ok(self.inner.link(group, name)?.map(View::link_from_here))
    }

    fn attributes(&self, node: &NodeId) -> Result<Vec<AttributeEntry>> {
        let hidden: &[&[u8]] = match () {
            () if *node == self.root => &OF_VERSION,
            () if self.inner.kind(node)? == NodeKind::Array => &OF_ARRAY,
            () => &[],
        };
        let mut attributes = self.inner.attributes(node)?;
        attributes.retain(|entry| match entry {
            Ok(a) => !hidden.contains(&a.name.as_bytes()),
            Err(_) => true,
        });
        Ok(attributes)
    }

    fn array(&self, node: &NodeId) -> Result<(ArrayMeta, Storage)> {
        let Some((meta, Mapped { slots, .. }, raw)) = self.map(node)? else {
            let (meta, storage) = self.inner.array(node)?;
            let Storage::Virtual(mappings) = storage else { return Ok((meta, storage)) };
            let from_here = |m: &VirtualMapping| match m.file.as_bytes() {
                b"." => VirtualMapping { file: WHOLE_FILE.into(), ..m.clone() },
                _ => m.clone(),
            };
            return Ok((meta, Storage::Virtual(mappings.iter().map(from_here).collect())));
        };
        let chunk = raw.meta().chunk_shape().to_vec();
        let same_fill = same(&raw.meta().fill_element, &meta.fill_element);
        let dims = meta.space.dims().to_vec();
        let filters = raw.meta().filters.clone();
        let mut notes = meta.notes.clone();
        notes.push(("chunks of all versions", raw.path().to_owned()));
        let meta = ArrayMeta {
            grid: ChunkGrid::Regular(chunk.clone()),
            layout: Layout::Chunked { index: "chunk map of a version" },
            filters,
            notes,
            ..meta
        };
        Ok((meta, Storage::Chunks(Arc::new(ChunkMap::new(&dims, &chunk, slots, raw, same_fill)))))
    }

    fn datatype(&self, node: &NodeId) -> Result<DType> {
        self.inner.datatype(node)
    }

    fn heap_ref(&self, stored: &[u8]) -> Result<Option<(u64, HeapRef)>> {
        self.inner.heap_ref(stored)
    }

    fn heap_objects(&self, refs: &[HeapRef]) -> Result<Vec<Bytes>> {
        self.inner.heap_objects(refs)
    }

    fn employ(&self, workers: Arc<dyn Workers>) {
        self.inner.employ(workers);
    }

    fn reference(&self, kind: ReferenceKind, stored: &[u8]) -> Result<Reference> {
        self.inner.reference(kind, stored)
    }

    fn neighbour(&self, file: &Name) -> Result<Option<Arc<dyn Hierarchy>>> {
        match file.as_str() {
            Some(ITSELF | WHOLE_FILE) => Ok(Some(self.inner.clone())),
            _ => self.inner.neighbour(file),
        }
    }

    fn check(&self, fault: &mut dyn FnMut(Fault)) {
        self.inner.check(fault);
    }

    fn check_node(&self, node: &NodeId, fault: &mut dyn FnMut(Fault)) {
        self.inner.check_node(node, fault);
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }
}
