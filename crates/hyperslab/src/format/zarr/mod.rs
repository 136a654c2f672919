//! Zarr, versions 2 and 3: JSON documents and chunks as objects of a store.
//!
//! A *node* is a folder of the store with a document in it: `zarr.json` (version 3), `.zarray` or `.zgroup` with `.zattrs`
//! (version 2). A folder without one that has nodes below it counts as a group. On stores that are far away consolidated
//! metadata is used where it is there; others are asked for each document.

mod array;
mod attribute;
mod fill;
mod heap;
mod index;
mod key;
mod node;
mod object;
mod rectilinear;
mod shard;
mod types;
pub mod write;

use crate::codec::{BindContext, Registry};
use crate::dtype::{DType, ReferenceKind};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::json::Json;
use crate::limits::Limits;
use crate::model::{
    ArrayMeta, AttributeEntry, ChunkGrid, ChunkIndex, Dataspace, Documents, Employed, Fault, FileInfo,
    FillValue, HeapRef, Hierarchy, Layout, Link, LinkTarget, Links, NodeId, NodeKind, Reference, Storage,
    Tile, Workers,
};
use crate::shape::{Name, byte_count, element_count};
use crate::source::store::{Get, Store};
use crate::source::{Latency, Source, Traffic, ZipStore};
use array::{ArrayDocument, Codecs, Fill};
use bytes::Bytes;
use heap::{Heap, VariableArray};
use index::Objects;
use key::KeyEncoding;
use node::{Consolidated, Shared, join};
use object::Opened;
use quick_cache::sync::Cache;
use rectilinear::{Crossing, Rectilinear};
use shard::Shards;
use std::sync::Arc;
use types::Element;

/// Documents that are remembered.
const KNOWN: usize = 4096;

/// Documents that are asked for in one batch.
const DOCUMENTS: usize = 1024;

/// Folders without a document that are looked into for nodes below them.
const SEARCHES: usize = 1000;

/// An open hierarchy of groups and arrays.
#[derive(Debug)]
pub struct Zarr {
    store: Arc<dyn Store>,
    limits: Limits,
    /// Nodes by path; `None` for folders without a document.
    nodes: Cache<String, Shared>,
    consolidated: Option<Consolidated>,
    /// Words about the file, for `info`.
    notes: Vec<(&'static str, String)>,
    opened: Arc<Opened>,
    heap: Heap,
    workers: Employed,
    registry: Registry,
    /// Whether chunks of elements of any length that were never written are errors.
    raise: bool,
    /// Whether netCDF-C wrote it, which prints fill values with six digits.
    by_netcdf: bool,
    /// Whether that was a version that calls a byte of text one of UTF-32, which its own marks need not say.
    old_text: bool,
}

/// Whether documents come from the consolidated metadata in the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consolidation {
    /// On stores that are far away, where it is there.
    #[default]
    WhereFar,
    /// Where it is there.
    Preferred,
    /// In any case: a store without it is an error.
    Required,
}

/// The folder of a zip file that the hierarchy lies in: the innermost one around all documents, so that none is hidden.
/// `None` if there is no document.
pub fn root_in_zip(source: Arc<dyn Source>, limits: &Limits) -> Result<Option<String>> {
    let keys = ZipStore::open_at(source, "", limits)?.list("")?;
    let folders = keys.iter().filter_map(|key| node::folder_of_document(key));
    Ok(folders.reduce(around_both).map(str::to_owned))
}

/// The innermost folder around two folders, or one of them.
fn around_both<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.split('/').zip(other.split('/')).take_while(|(a, b)| a == b);
    let length = same.fold(0, |length, (name, _)| length + name.len() + 1);
    one.get(..length.saturating_sub(1)).unwrap_or_default()
}

/// A chunk index, the extents of a chunk, and those of the grid of chunks.
type Indexed = (Arc<dyn ChunkIndex>, Vec<u64>, Vec<u64>);

/// An array, or a part of one, whose objects hold chunks with the same extents.
struct Part<'a> {
    shape: &'a [u64],
    /// Extents of what one object holds.
    chunk: &'a [u64],
    codecs: &'a Codecs,
    keys: &'a KeyEncoding,
    /// Of a part, coordinates of the first object.
    first: Option<&'a [u64]>,
}

impl Zarr {
    /// Opens the hierarchy whose root is the root of `store`. Fails with [`ErrorKind::Unsupported`] if there is none.
    /// `registry` and `raise` are as for [`open_store_with`](super::open_store_with).
    pub fn open(
        store: Arc<dyn Store>,
        limits: &Limits,
        registry: Registry,
        raise: bool,
    ) -> Result<Arc<Zarr>> {
        Zarr::open_as(store, limits, registry, raise, Consolidation::default())
    }

    /// The same, with a word about consolidated metadata.
    pub fn open_as(
        store: Arc<dyn Store>,
        limits: &Limits,
        registry: Registry,
        raise: bool,
        consolidation: Consolidation,
    ) -> Result<Arc<Zarr>> {
        let opened = Opened::new(store.clone());
        let mut zarr = Zarr {
            store,
            limits: limits.clone(),
            nodes: Cache::new(KNOWN),
            consolidated: None,
            notes: Vec::new(),
            opened,
            heap: Heap::default(),
            workers: Employed::default(),
            registry,
            raise,
            by_netcdf: false,
            old_text: false,
        };
        zarr.consolidated = match consolidation {
            Consolidation::WhereFar if zarr.store.hints().latency != Latency::Remote => None,
            // A document that can't be read is the same as none: others say the same.
            Consolidation::WhereFar | Consolidation::Preferred => zarr.consolidated().ok().flatten(),
            Consolidation::Required => Some(zarr.consolidated()?.ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "there is no consolidated metadata")
                    .hint("open it without mode=consolidated")
            })?),
        };
        if zarr.consolidated.is_some() {
            zarr.notes.push(("metadata", "consolidated".into()));
        }
        let root = zarr.node("");
        if let Ok(Some(root)) = &root {
            let mark = root.documents.attributes.get("_NCProperties");
            zarr.by_netcdf = mark.is_some();
            zarr.old_text = mark.and_then(Json::as_str).is_some_and(array::is_of_old_text);
        }
        let none =
            || Error::new(ErrorKind::Unsupported, "there is no Zarr document (zarr.json, .zgroup, .zarray)");
        if matches!(root, Ok(None)) {
            match zarr.holds_nodes("", &mut 0) {
                Ok(Some(true)) => write::check_finished(&*zarr.store)?,
                // What cannot be listed has to have a document at its root.
                Err(e) if e.kind() != ErrorKind::Unsupported => return Err(e),
                _ => return Err(none()),
            }
        }
        Ok(Arc::new(zarr))
    }

    /// The consolidated metadata in the root, if there is any.
    fn consolidated(&self) -> Result<Option<Consolidated>> {
        let parse = |bytes: Bytes, name: &'static str| Json::parse(&bytes).context(|| name);
        if let Some(bytes) = self.store.get_within("zarr.json", self.limits.document)? {
            return Consolidated::v3(&parse(bytes, "zarr.json")?).transpose();
        }
        match self.store.get_within(".zmetadata", self.limits.document)? {
            Some(bytes) => Consolidated::v2(&parse(bytes, ".zmetadata")?).map(Some).context(|| ".zmetadata"),
            None => Ok(None),
        }
    }

    /// The node at `path`; `None` for a folder without a document, or if there is nothing.
    fn node(&self, path: &str) -> Result<Shared> {
        if let Some(known) = self.nodes.get(path) {
            return Ok(known);
        }
        let found = match &self.consolidated {
            Some(consolidated) => consolidated.node(path)?,
            None => {
                let paths = [path.to_owned()];
                node::read(&*self.store, &paths, self.limits.document).pop().unwrap_or(Ok(None))?
            }
        };
        let found = found.map(Arc::new);
        self.nodes.insert(path.to_owned(), found.clone());
        Ok(found)
    }

    /// Whether a folder without a document has nodes below it; `None` if there are too many folders to look into all.
    fn holds_nodes(&self, path: &str, searches: &mut usize) -> Result<Option<bool>> {
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            *searches += 1;
            if *searches > SEARCHES {
                return Ok(None);
            }
            let listing = self.store.search(&path)?;
            for name in listing.prefixes {
                let inner = join(&path, &name);
                if !matches!(self.node(&inner), Ok(None)) {
                    return Ok(Some(true));
                }
                open.push(inner);
            }
        }
        Ok(Some(false))
    }

    /// The names of the nodes in a group.
    fn children(&self, path: &str) -> Result<Vec<String>> {
        if let Some(consolidated) = &self.consolidated {
            return Ok(consolidated.children(path));
        }
        let names = self.store.search(path)?.prefixes;
        let inner: Vec<String> = names.iter().map(|name| join(path, name)).collect();
        let mut searches = 0;
        let mut children = Vec::new();
        for (batch, names) in inner.chunks(DOCUMENTS).zip(names.chunks(DOCUMENTS)) {
            let nodes = node::read(&*self.store, batch, self.limits.document);
            for ((path, name), node) in batch.iter().zip(names).zip(nodes) {
                let there = match node {
                    // What could not be looked into is shown: it may be empty, but must not be hidden.
                    Ok(None) => self.holds_nodes(path, &mut searches)? != Some(false),
                    Ok(Some(node)) => {
                        self.nodes.insert(path.clone(), Some(Arc::new(node)));
                        true
                    }
                    // What is wrong is said when it is opened.
                    Err(_) => true,
                };
                if there {
                    children.push(name.clone());
                }
            }
        }
        Ok(children)
    }

    fn array_document(&self, path: &str) -> Result<ArrayDocument> {
        let node = self.node(path)?.filter(|n| n.kind == NodeKind::Array);
        let node = node.ok_or_else(|| Error::invalid(format!("{path:?} is no array")))?;
        let documents = &node.documents;
        if documents.version == 3 {
            array::v3(&documents.metadata).context(|| "zarr.json")
        } else {
            // The first layout of NCZarr has documents of its own.
            let of_nczarr = array::may_be_old_text(&documents.metadata)
                && (self.old_text || {
                    let own = [".nczvar", ".nczarray"]
                        .map(|name| Get::whole(join(path, name)).within(self.limits.document));
                    self.store.get_many(&own).iter().any(|found| matches!(found, Ok(Some(_))))
                });
            let mut document = array::v2(&documents.metadata, of_nczarr).context(|| ".zarray")?;
            if self.by_netcdf {
                document.mend_default_fill();
            }
            Ok(document)
        }
    }

    /// The index of all chunks, through all levels of shards; extents of a chunk, and of the grid.
    fn chunks(&self, path: &str, part: &Part<'_>, registry: &Registry) -> Result<Indexed> {
        let grid_of = |chunk: &[u64]| -> Vec<u64> {
            part.shape.iter().zip(chunk).map(|(d, c)| d.div_ceil((*c).max(1))).collect()
        };
        let mut chunk = part.chunk.to_vec();
        let mut grid = grid_of(&chunk);
        let mut index: Arc<dyn ChunkIndex> = Arc::new(Objects {
            store: self.store.clone(),
            path: path.to_owned(),
            keys: part.keys.clone(),
            first: part.first.map(<[u64]>::to_vec),
            grid: grid.clone(),
        });
        for shard in &part.codecs.shards {
            let ratio: Vec<u64> = chunk.iter().zip(&shard.chunk).map(|(s, c)| s / c).collect();
            (chunk, grid) = (shard.chunk.clone(), grid_of(&shard.chunk));
            index = Arc::new(self.shards(shard, index, ratio, grid.clone(), registry)?);
        }
        Ok((index, chunk, grid))
    }

    fn shards(
        &self,
        shard: &array::Shard,
        parent: Arc<dyn ChunkIndex>,
        ratio: Vec<u64>,
        grid: Vec<u64>,
        registry: &Registry,
    ) -> Result<Shards> {
        let number = DType::from_zarr("uint64", crate::dtype::ByteOrder::Little);
        let number = number.ok_or_else(|| Error::unsupported("integers of eight bytes"))?;
        let mut extents = ratio.clone();
        extents.push(2);
        let bytes = byte_count(&extents, 8)?;
        if bytes > self.limits.metadata {
            return Err(Error::limit("bytes of a shard's index", bytes.into(), self.limits.metadata.into()));
        }
        let context = BindContext { dtype: &number, chunk: &extents, chunk_bytes: bytes };
        let index = registry.pipeline(&shard.index, &context)?;
        index.check(0).context(|| "shard index")?;
        let index_length =
            index.encoded_len().ok_or_else(|| Error::unsupported("a shard index of varying length"))?;
        let whole = DType::Opaque { size: 1, tag: Name::default() };
        let context = BindContext { dtype: &whole, chunk: &[], chunk_bytes: 1 };
        let outer = shard.outer.iter().map(|spec| registry.bind(spec, &context)).collect::<Result<_>>()?;
        let shards = grid.iter().zip(&ratio).map(|(chunks, ratio)| chunks.div_ceil((*ratio).max(1)));
        let known = shard::nothing_known(shards.fold(1, u64::saturating_mul), index_length);
        let (opened, at_start, limit) = (self.opened.clone(), shard.at_start, self.limits.chunk);
        let order = shard.order.clone();
        Ok(Shards { parent, opened, ratio, order, grid, index, index_length, at_start, outer, limit, known })
    }

    /// The regular parts of an array of which `meta` says all but the grid, with the extents of its chunks, which are
    /// those in the shards if there are any.
    fn tiles(
        &self,
        path: &str,
        document: &ArrayDocument,
        grid: &Rectilinear,
        meta: &ArrayMeta,
    ) -> Result<Vec<Tile>> {
        let node = self.node(path)?.ok_or_else(|| Error::invalid(format!("{path:?} is no array")))?;
        let spelled = &node.documents.metadata;
        let tile = |crossing: Crossing| {
            let Crossing { start, shape, first, chunk } = crossing;
            let codecs = array::codecs_for(spelled, &chunk)?;
            let part = Part {
                shape: &shape,
                chunk: &chunk,
                codecs: &codecs,
                keys: &document.keys,
                first: Some(&first),
            };
            let (index, chunk, _) = self.chunks(path, &part, &self.registry)?;
            let first = match codecs.shards.is_empty() {
                true => first,
                // Objects hold whole chunks, so that those in front of it are as many as fit.
                false => start.iter().zip(&chunk).map(|(start, chunk)| start / (*chunk).max(1)).collect(),
            };
            let meta = ArrayMeta {
                space: space_of(&shape),
                grid: ChunkGrid::Regular(chunk),
                filters: codecs.filters,
                notes: Vec::new(),
                ..meta.clone()
            };
            Ok(Tile { start, first, meta, index })
        };
        let crossings = grid.tiles(array::codecs_memory(spelled)?, &self.limits)?;
        crossings.into_iter().map(tile).collect::<Result<_>>().context(|| "zarr.json")
    }

    /// An array with elements of any length.
    fn variable(
        &self,
        path: &str,
        kind: types::Variable,
        codecs: &Codecs,
        fill: &Fill,
        (index, chunk, grid): Indexed,
        registry: &Registry,
    ) -> Result<(Arc<dyn ChunkIndex>, Bytes)> {
        let byte = DType::Opaque { size: 1, tag: Name::default() };
        let context = BindContext { dtype: &byte, chunk: &[], chunk_bytes: 1 };
        let stages = codecs.filters.iter().map(|spec| registry.bind(spec, &context)).collect();
        let fill = match fill {
            Fill::Undefined => Bytes::new(),
            Fill::Value(bytes) => Bytes::copy_from_slice(bytes),
        };
        let (order, raise) = (codecs.order.clone(), self.raise);
        let (limit, decoded) = (self.limits.chunk, heap::nothing_decoded());
        self.heap
            .add(path, VariableArray { kind, index, chunk, grid, order, stages, fill, limit, decoded, raise })
    }
}

fn space_of(shape: &[u64]) -> Dataspace {
    match shape {
        [] => Dataspace::Scalar,
        dims => Dataspace::Simple { dims: dims.to_vec(), max: dims.iter().map(|&d| Some(d)).collect() },
    }
}

fn path_of(node: &NodeId) -> Result<&str> {
    match node {
        NodeId::Path(path) => Ok(path),
        other => Err(Error::invalid(format!("{other} is not of a Zarr store"))),
    }
}

impl Hierarchy for Zarr {
    fn info(&self) -> FileInfo {
        let root = self.node("").ok().flatten();
        let version = root.map_or(2, |node| u32::from(node.documents.version));
        let mut notes = self.notes.clone();
        notes.push(("store", self.store.name()));
        FileInfo { format: "Zarr", user_block: 0, version, notes }
    }

    fn root(&self) -> NodeId {
        NodeId::Path("".into())
    }

    fn kind(&self, node: &NodeId) -> Result<NodeKind> {
        Ok(self.node(path_of(node)?)?.map_or(NodeKind::Group, |node| node.kind))
    }

    fn links(&self, group: &NodeId) -> Result<Links> {
        let path = path_of(group)?;
        if self.kind(group)? != NodeKind::Group {
            return Err(Error::invalid(format!("{path:?} is no group")));
        }
        let link = |name: String| Link {
            target: LinkTarget::Hard(NodeId::Path(join(path, &name).into())),
            name: Name::from(name.into_bytes()),
            creation_order: None,
        };
        let mut links: Vec<Link> = self.children(path)?.into_iter().map(link).collect();
        links.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Links { links, tracks_order: false, faults: Vec::new() })
    }

    fn link(&self, group: &NodeId, name: &Name) -> Result<Option<Link>> {
        let path = path_of(group)?;
        let Some(text) = name.as_str().filter(|n| crate::source::store::check_key(n).is_ok()) else {
            return Ok(None);
        };
        let inner = join(path, text);
        let there = match self.node(&inner) {
            Ok(None) => match &self.consolidated {
                Some(consolidated) => consolidated.children(path).iter().any(|c| c == text),
                None => self.holds_nodes(&inner, &mut 0)? != Some(false),
            },
            _ => true,
        };
        let target = LinkTarget::Hard(NodeId::Path(inner.into()));
        Ok(there.then(|| Link { name: name.clone(), target, creation_order: None }))
    }

    fn attributes(&self, node: &NodeId) -> Result<Vec<AttributeEntry>> {
        let Some(node) = self.node(path_of(node)?)? else { return Ok(Vec::new()) };
        if let Err(e) = &node.attributes {
            return Err(Error::new(e.kind(), e.message().to_owned()).context("attributes"));
        }
        Ok(attribute::entries(&node.documents.attributes))
    }

    fn array(&self, node: &NodeId) -> Result<(ArrayMeta, Storage)> {
        let path = path_of(node)?;
        let document = self.array_document(path)?;
        let dtype = document.dtype();
        element_count(&document.shape)?;
        let part = Part {
            shape: &document.shape,
            chunk: &document.chunk,
            codecs: &document.codecs,
            keys: &document.keys,
            first: None,
        };
        let (index, chunk, grid) = self.chunks(path, &part, &self.registry)?;
        let space = space_of(&document.shape);
        let mut notes = Vec::new();
        if let (Some(first), false) = (document.codecs.shards.first(), document.codecs.shards.is_empty()) {
            let place = if first.at_start { "start" } else { "end" };
            let extents = match &document.rectilinear {
                Some(grid) => ChunkGrid::Rectilinear { runs: grid.runs(), largest: Vec::new() }.to_string(),
                None => format!("{:?}", document.chunk),
            };
            notes.push(("shards", format!("of {extents}, index at the {place}")));
        }
        let (fill, fill_element, filters, index) = match &document.element {
            Element::Fixed(_) => {
                let (fill, element) = match &document.fill {
                    Fill::Undefined => (FillValue::Undefined, Bytes::new()),
                    Fill::Value(bytes) => {
                        let bytes = Bytes::copy_from_slice(bytes);
                        (FillValue::Value(bytes.clone()), bytes)
                    }
                };
                (fill, element, document.codecs.filters.clone(), index)
            }
            Element::Variable(_) if document.rectilinear.is_some() => {
                return Err(Error::unsupported("elements of any length in a rectilinear chunk grid"));
            }
            Element::Variable(kind) => {
                let place = (index, chunk.clone(), grid);
                let (pointers, element) =
                    self.variable(path, *kind, &document.codecs, &document.fill, place, &self.registry)?;
                for filter in &document.codecs.filters {
                    if let crate::codec::FilterSpec::Zarr { name, .. } = filter {
                        notes.push(("codec", name.clone()));
                    }
                }
                (FillValue::Value(element.clone()), element, Vec::new(), pointers)
            }
        };
        let layout =
            Layout::Chunked { index: if document.codecs.shards.is_empty() { "objects" } else { "shards" } };
        let mut meta = ArrayMeta {
            dtype,
            committed: None,
            space,
            grid: ChunkGrid::Regular(chunk),
            layout,
            fill,
            fill_element,
            filters,
            notes,
        };
        let Some(grid) = &document.rectilinear else { return Ok((meta, Storage::Chunks(index))) };
        let tiles = self.tiles(path, &document, grid, &meta)?;
        // The chunks in shards are equal, and shards are made of whole ones.
        if document.codecs.shards.is_empty() {
            meta.grid = ChunkGrid::Rectilinear { runs: grid.runs(), largest: document.chunk.clone() };
        }
        Ok((meta, Storage::Tiles(tiles.into())))
    }

    fn dimension_names(&self, array: &NodeId) -> Result<Option<Vec<Option<Name>>>> {
        let names = self.array_document(path_of(array)?)?.dimension_names;
        Ok(names.map(|names| names.into_iter().map(|n| n.map(|n| Name::from(n.into_bytes()))).collect()))
    }

    fn datatype(&self, _node: &NodeId) -> Result<DType> {
        Err(Error::invalid("there are no named datatypes in Zarr"))
    }

    fn heap_ref(&self, stored: &[u8]) -> Result<Option<(u64, HeapRef)>> {
        self.heap.reference(stored)
    }

    fn heap_objects(&self, refs: &[HeapRef]) -> Result<Vec<Bytes>> {
        self.heap.values(refs, self.workers.get())
    }

    fn employ(&self, workers: Arc<dyn Workers>) {
        self.workers.employ(workers);
    }

    fn documents(&self, node: &NodeId) -> Result<Option<Documents>> {
        Ok(self.node(path_of(node)?)?.map(|node| node.documents.clone()))
    }

    fn document(&self, node: &NodeId, name: &str) -> Result<Option<Json>> {
        let key = join(path_of(node)?, name);
        let bytes = self.store.get_within(&key, self.limits.document)?;
        bytes.map(|bytes| Json::parse(&bytes).context(|| key)).transpose()
    }

    fn reference(&self, _kind: ReferenceKind, _stored: &[u8]) -> Result<Reference> {
        Err(Error::invalid("there are no references in Zarr"))
    }

    fn neighbour(&self, _file: &Name) -> Result<Option<Arc<dyn Hierarchy>>> {
        Ok(None)
    }

    fn traffic(&self) -> Traffic {
        self.store.traffic()
    }

    /// Compares consolidated metadata with the documents that it was made of.
    fn check(&self, fault: &mut dyn FnMut(Fault)) {
        let mut report = |path: Option<&str>, error: Error| {
            fault(Fault { object: path.map(|p| NodeId::Path(p.into())), error });
        };
        match write::leftovers(&*self.store) {
            Ok(None) => {}
            Ok(Some(left)) | Err(left) => report(None, left),
        }
        let consolidated = match self.consolidated() {
            Ok(Some(consolidated)) => consolidated,
            Ok(None) => return,
            Err(e) => return report(None, e.context("consolidated metadata")),
        };
        let stale = |text: String| {
            Error::new(ErrorKind::Corrupt, text).context("consolidated metadata").hint("consolidate it again")
        };
        let bare = |document: &Json| match document {
            Json::Map(members) => {
                let kept = members.iter().filter(|(name, _)| name != "consolidated_metadata");
                let mut kept: Vec<_> = kept.cloned().collect();
                kept.sort_by(|a, b| a.0.cmp(&b.0));
                format!("{}", Json::Map(kept))
            }
            other => other.to_string(),
        };
        let of_node = |(path, documents): (&'_ String, &'_ [Option<Json>; 4])| -> Vec<_> {
            let there = node::NAMES.iter().zip(documents).filter(|(_, said)| said.is_some());
            there.map(|(name, _)| (path.clone(), join(path, name))).collect()
        };
        let keys: Vec<(String, String)> = consolidated.nodes.iter().flat_map(of_node).collect();
        let said = consolidated.nodes.values().flatten().flatten();
        let mut said = said.map(&bare);
        for batch in keys.chunks(DOCUMENTS) {
            let gets: Vec<Get> =
                batch.iter().map(|(_, key)| Get::whole(key.as_str()).within(self.limits.document)).collect();
            let answers = self.store.get_many(&gets);
            for (((path, key), answer), said) in batch.iter().zip(answers).zip(said.by_ref()) {
                match answer.and_then(|b| b.map(|b| Json::parse(&b)).transpose()) {
                    Ok(Some(there)) if bare(&there) == said => {}
                    Ok(Some(_)) => report(Some(path), stale(format!("{key} says something else"))),
                    Ok(None) => report(Some(path), stale(format!("there is no {key}"))),
                    Err(e) => report(Some(path), e.context(key)),
                }
            }
        }
        match self.store.list("") {
            Ok(keys) => {
                let folders = keys.iter().filter_map(|key| node::folder_of_document(key));
                for path in folders.filter(|p| !consolidated.nodes.contains_key(*p)) {
                    report(Some(path), stale(format!("it does not know {path:?}")));
                }
            }
            Err(e) => report(None, e),
        }
    }
}
