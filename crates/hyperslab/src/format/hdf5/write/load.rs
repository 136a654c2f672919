//! Objects of a file that is there, brought into a transaction when it touches them.
//!
//! The file is read as it was when the transaction began. What the transaction does not understand of an object is kept
//! byte for byte; what could not be kept faithfully is refused before anything changes.

use super::group::{GroupK, Table};
use super::header::{Blocks, NewMessage, Prefix};
use super::index::Entry;
use super::object::{
    Array, Attribute, AttributeValue, Body, Chunked, Elsewhere, Fill, Group, Id, Link, Object, Storage,
    Stored, Target,
};
use super::transaction::Transaction;
use super::{Hdf5Options, Libver, disk, global};
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::format::hdf5::attribute::dense_messages;
use crate::format::hdf5::dataset::Dataset;
use crate::format::hdf5::file::Space;
use crate::format::hdf5::group;
use crate::format::hdf5::heap::{GlobalHeap, LocalHeap};
use crate::format::hdf5::hierarchy::Hdf5;
use crate::format::hdf5::message::attribute::{AttributeInfo, AttributeMessage};
use crate::format::hdf5::message::external::ExternalSlot;
use crate::format::hdf5::message::layout::{IndexKind, LayoutClass};
use crate::format::hdf5::message::link::SymbolTable;
use crate::format::hdf5::message::shared::Shared;
use crate::format::hdf5::message::{Message, dataspace, datatype, kind};
use crate::format::hdf5::object::Header;
use crate::format::hdf5::parse::{Cursor, UNDEFINED};
use crate::limits::Limits;
use crate::model::write::{EncodedChunk, ExternalRun};
use crate::model::{
    ChunkIndex, ChunkRef, Dataspace, FillValue, HeapRef, Hierarchy, LinkTarget, NodeId, NodeKind,
};
use crate::shape::{Coord, Name};
use crate::source::{Neighbours, Source};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The file as it was when the transaction began.
#[derive(Debug)]
pub(super) struct Reading {
    file: Arc<Hdf5>,
}

/// An index of the file, and the extents of its array.
type StoredIndex = (Arc<dyn ChunkIndex>, Vec<u64>);

/// A message as it is, to be written again.
fn kept(message: &Message) -> NewMessage {
    let mut flags = message.flags;
    if message.kind > kind::CACHE_IMAGE && flags & 0x10 != 0 {
        // "Say so if somebody who does not know this message changes the object."
        flags |= 0x20;
    }
    NewMessage { kind: message.kind, flags, order: message.creation_order, body: message.bytes.to_vec() }
}

impl Transaction {
    /// A transaction on the file in `target`. Files that cannot be changed faithfully are refused by name.
    pub(super) fn edit(target: Arc<dyn super::Target>, limits: Limits) -> Result<Transaction> {
        let source: Arc<dyn Source> = target.clone();
        let file = Hdf5::open(source, Neighbours::default(), limits.clone())?;
        let superblock = file.superblock().clone();
        if superblock.is_open_for_writing() || superblock.is_live() {
            return Err(Error::new(
                ErrorKind::Permission,
                "a writer has the file open, or died with it open",
            )
            .hint("if nobody writes it, clear the flag first: hyperslab check --clear-flag"));
        }
        file.check_editable()?;
        // Later structures are kept away from files that are without them.
        let libver = match superblock.version {
            0 | 1 => Libver::Earliest,
            2 => Libver::V18,
            _ => Libver::V110,
        };
        let tracks = file.links(&file.root())?.tracks_order;
        let options = Hdf5Options::new().with_libver(libver).with_track_order(tracks);
        let k = file.btree_k();
        let end = superblock.end.saturating_sub(superblock.offset);
        let root = superblock.root;
        let mut transaction = Transaction {
            disk: disk::Disk::new(target, superblock.offset, end, superblock.sizes),
            options,
            limits,
            objects: Vec::new(),
            by_address: HashMap::new(),
            root: Id(0),
            heap: global::GlobalHeap::default(),
            reading: Some(Reading { file }),
            group_k: GroupK { leaf: k.group_leaf, internal: k.group_internal },
            chunk_k: k.chunk,
            root_table: None,
            written: HashMap::new(),
            unhashed: HashSet::new(),
            next_dimension: None,
            chunks: 0,
        };
        transaction.root = transaction.load(root).context(|| "root group")?;
        // The root group is used even where no link leads to it.
        let root = transaction.root;
        let object = transaction.object_mut(root)?;
        object.references = object.references.max(1);
        Ok(transaction)
    }

    pub(super) fn file(&self) -> Result<Arc<Hdf5>> {
        match &self.reading {
            Some(reading) => Ok(reading.file.clone()),
            None => Err(Error::invalid("a new file has no objects to be read")),
        }
    }

    /// The file as it is now, to be read by the parsers.
    pub(super) fn space(&mut self) -> Result<Space> {
        let (base, end, sizes) = (self.disk.base(), self.disk.end(), self.disk.sizes());
        let target: Arc<dyn Source> = self.disk.target()?.clone();
        let end = base.saturating_add(end).min(target.len()?);
        Ok(Space::new(target.clone(), target, base, end, sizes, Arc::new(self.limits.clone())))
    }

    /// The object whose header is at `address`.
    pub(super) fn load(&mut self, address: u64) -> Result<Id> {
        if let Some(&id) = self.by_address.get(&address) {
            return Ok(id);
        }
        let file = self.file()?;
        let header = file.objects().header(address)?;
        let class = file.objects().kind(&header)?;
        let mut refused = None;
        let mut stored = Stored {
            prefix: prefix(&header)?,
            messages: Vec::new(),
            link_messages: Vec::new(),
            attribute_messages: Vec::new(),
            array_messages: Vec::new(),
            blocks: Blocks(header.blocks.clone()),
            table: None,
        };
        for message in &header.messages {
            if message.kind > kind::CACHE_IMAGE && message.flags & 0x08 != 0 {
                let text = format!("a message of type {:#06x}, which writers must know", message.kind);
                refused = Some(text);
            }
            if message.is_shared() && !matches!(message.kind, kind::DATATYPE) {
                refused = Some(format!("a shared {}", kind::name(message.kind)));
            }
            let list = match (message.kind, class) {
                (kind::REFERENCE_COUNT, _) => continue,
                (kind::ATTRIBUTE | kind::ATTRIBUTE_INFO, _) => &mut stored.attribute_messages,
                (kind::LINK | kind::LINK_INFO | kind::SYMBOL_TABLE, NodeKind::Group) => {
                    &mut stored.link_messages
                }
                (kind::DATASPACE | kind::LAYOUT, NodeKind::Array) => &mut stored.array_messages,
                _ => &mut stored.messages,
            };
            list.push(kept(message));
        }
        let first = stored.blocks.0.first().map_or(0, |b| b.1);
        if !stored.prefix.has_room(first, self.disk.sizes()) {
            refused = Some("a header that has no room to be continued".into());
        }
        let references = stored.prefix.references;
        let tracks = stored.prefix.flags & super::header::TRACKS_ORDER != 0;
        let body = match class {
            NodeKind::Group => {
                let (group, table) = self.load_group(&file, &header)?;
                stored.table = table;
                Body::Group(group)
            }
            NodeKind::Datatype => match header.find(kind::DATATYPE) {
                Some(message) => Body::Datatype(file.objects().datatype(message)?),
                None => return Err(header.corrupt("no datatype message")),
            },
            NodeKind::Array => Body::Array(Box::new(self.load_array(&file, &header)?)),
        };
        let place = stored.blocks.0.first().copied();
        let id = self.add(Object {
            body,
            attributes: Vec::new(),
            next_attribute: 0,
            tracks,
            attributes_dirty: false,
            attributes_loaded: false,
            references,
            references_dirty: false,
            place,
            refused,
            stored: Some(stored),
            carried: Vec::new(),
            times: None,
        });
        self.by_address.insert(address, id);
        Ok(id)
    }

    fn load_group(&mut self, file: &Hdf5, header: &Header) -> Result<(Group, Option<Table>)> {
        let links = group::links(file.objects(), header)?;
        if let Some(fault) = links.faults.into_iter().next() {
            return Err(fault.error.context("a group with links that cannot be read is not changed"));
        }
        let sizes = self.disk.sizes();
        let table = match header.find(kind::SYMBOL_TABLE) {
            Some(message) => {
                let table = SymbolTable::parse(message.cursor(), sizes)?;
                Some(Table { btree: table.btree, heap: table.heap }).filter(|t| t.btree != UNDEFINED)
            }
            None => None,
        };
        let mut group = Group { tracks: links.tracks_order, ..Group::default() };
        for (link, number) in links.links.into_iter().zip(0i64..) {
            let order = link.creation_order.unwrap_or(number);
            group.next = group.next.max(order.saturating_add(1));
            let target = match link.target {
                LinkTarget::Hard(NodeId::Address(address)) => Target::Address(address),
                LinkTarget::Hard(node) => return Err(Error::invalid(format!("{node} in an HDF5 file"))),
                LinkTarget::Soft(path) => Target::Soft(path),
                LinkTarget::External { file, path } => Target::External { file, path },
                LinkTarget::UserDefined { class, data } => Target::UserDefined { class, data },
            };
            group.links.insert(link.name, Link { target, order });
        }
        if let Some(message) = header.find(kind::LINK_INFO).filter(|_| group.tracks) {
            let mut c = message.cursor();
            c.skip(2)?;
            group.next = group.next.max(c.u64()? as i64);
        }
        Ok((group, table))
    }

    fn load_array(&mut self, file: &Hdf5, header: &Header) -> Result<Array> {
        let dataset = Dataset::parse(file.objects(), header)?;
        let Dataset { dtype, committed, space, layout, fill, filters, external } = dataset;
        let committed = committed.map(|address| self.load(address)).transpose()?;
        let bytes = match &space {
            Dataspace::Null => 0,
            space => crate::shape::byte_count(space.dims(), dtype.size())?,
        };
        let version = layout.version.max(3);
        let storage = match layout.class {
            LayoutClass::Compact(bytes) => Storage::Compact(bytes.to_vec()),
            LayoutClass::Contiguous { address, .. } => match external {
                Some(files) => Storage::Elsewhere(Elsewhere::External(files)),
                None => Storage::Contiguous {
                    address: Some(address).filter(|&a| a != UNDEFINED),
                    size: bytes,
                    written: (address == UNDEFINED).then(BTreeSet::new),
                },
            },
            LayoutClass::Chunked(chunked) => Storage::Chunked(Chunked {
                kind: chunked.index,
                loaded: chunked.address == UNDEFINED,
                dirty: false,
                address: chunked.address,
                edge_unfiltered: chunked.edge_unfiltered,
                ..Chunked::new(chunked.chunk)
            }),
            LayoutClass::Virtual { address, index } => {
                Storage::Elsewhere(Elsewhere::Virtual(HeapRef { address, index }))
            }
        };
        let fill_value = match fill.value {
            FillValue::Undefined => Fill::Undefined,
            FillValue::Default => Fill::Default,
            FillValue::Value(bytes) => Fill::Stored(bytes),
        };
        Ok(Array {
            dtype,
            committed,
            space,
            fill: fill_value,
            fill_time: fill.time,
            allocation: fill.allocation,
            filters,
            storage,
            version,
            dimensions: Vec::new(),
            dirty: false,
        })
    }

    /// The committed type that a shared message body leads to.
    fn committed_of(&mut self, c: &mut Cursor<'_>) -> Result<Option<Id>> {
        match Shared::parse(c, self.disk.sizes())? {
            Shared::Object(address) => self.load(address).map(Some),
            Shared::Heap(_) => Ok(None),
        }
    }

    /// Brings the attributes of an object into the transaction.
    pub(super) fn load_attributes(&mut self, id: Id) -> Result<()> {
        let object = self.object(id)?;
        if object.attributes_loaded {
            return Ok(());
        }
        let Some(stored) = &object.stored else { return Ok(()) };
        let tracks = object.tracks;
        let address = object.place.map_or(0, |p| p.0);
        let sizes = self.disk.sizes();
        let messages = stored.attribute_messages.clone();
        let mut next = 0u64;
        let mut found: Vec<(Bytes, u8, u64)> = Vec::new();
        let mut info = None;
        for message in &messages {
            let body = Bytes::copy_from_slice(&message.body);
            if message.kind == kind::ATTRIBUTE_INFO {
                let mut c = Cursor::new(&body, kind::name(message.kind), 0);
                info = Some(AttributeInfo::parse(c.clone(), sizes)?);
                c.skip(2)?;
                if tracks {
                    next = next.max(c.u16()?.into());
                }
                continue;
            }
            let order = match (tracks, message.order) {
                (true, Some(order)) => order.into(),
                _ => found.len() as u64,
            };
            found.push((body, message.flags, order));
        }
        if let Some(info) = info.filter(|info| info.heap != UNDEFINED) {
            let file = self.file()?;
            dense_messages(file.objects().space(), &info, &mut |body, flags, order| {
                let order = if info.tracks_order { u64::from(order) } else { found.len() as u64 };
                found.push((body, flags, order));
                Ok(())
            })?;
        }
        let mut attributes = Vec::with_capacity(found.len());
        for (body, flags, order) in found {
            if flags & 0x02 != 0 {
                return Err(Error::unsupported(format!(
                    "changing the object at {address:#x}, which shares attributes"
                )));
            }
            let name = kind::name(kind::ATTRIBUTE);
            let parts = AttributeMessage::parse(&body, Cursor::new(&body, name, 0), &mut None)?;
            let committed = match parts.datatype.shared {
                true => self.committed_of(&mut Cursor::new(&parts.datatype.bytes, name, 0))?,
                false => None,
            };
            next = next.max(order.saturating_add(1));
            let what = AttributeValue::Kept { body, flags, committed };
            attributes.push(Attribute { name: parts.name, order, what });
        }
        let object = self.object_mut(id)?;
        object.attributes = attributes;
        object.next_attribute = next;
        object.attributes_loaded = true;
        Ok(())
    }

    /// The index of an array as the file has it, and the extents there, if its chunks are not known yet.
    fn stored_index(&mut self, id: Id) -> Result<Option<StoredIndex>> {
        let Body::Array(array) = &self.object(id)?.body else { return Ok(None) };
        let Storage::Chunked(chunked) = &array.storage else { return Ok(None) };
        if chunked.loaded {
            return Ok(None);
        }
        let file = self.file()?;
        let address = self.object(id)?.place.map_or(0, |p| p.0);
        let (meta, storage) = file.array(&NodeId::Address(address))?;
        match storage {
            crate::model::Storage::Chunks(index) => Ok(Some((index, meta.space.dims().to_vec()))),
            _ => Err(Error::invalid("an array in chunks without an index")),
        }
    }

    /// Looks up the chunks that will be written.
    pub(super) fn look_up(&mut self, id: Id, chunks: &[EncodedChunk]) -> Result<()> {
        let Some((index, dims)) = self.stored_index(id)? else { return Ok(()) };
        if self.chunked_mut(id)?.kind == IndexKind::Implicit {
            return self.load_chunks(id);
        }
        let base = self.disk.base();
        let chunked = self.chunked_mut(id)?;
        // Beyond the extents that the file has there is nothing.
        let stored = |at: &[u64]| {
            at.iter().zip(&chunked.chunk).zip(&dims).all(|((&c, &n), &d)| c.saturating_mul(n) < d)
        };
        let unknown = |at: &Coord| !chunked.known.contains_key(at) && !chunked.touched.contains_key(at);
        let wanted: Vec<Coord> =
            chunks.iter().map(|c| c.coord.clone()).filter(|at| stored(at) && unknown(at)).collect();
        for (at, place) in wanted.iter().zip(index.locate(&wanted)?) {
            let entry = match place {
                ChunkRef::Range { offset, length, mask, .. } => {
                    let mask = stored_mask(chunked.edge_unfiltered, mask);
                    Some(Entry { address: offset.saturating_sub(base), length, mask })
                }
                ChunkRef::Absent => None,
                _ => return Err(Error::unsupported("a chunk that is not in the file")),
            };
            chunked.known.insert(at.clone(), entry);
        }
        Ok(())
    }

    /// Brings the chunks of an array into the transaction.
    pub(super) fn load_chunks(&mut self, id: Id) -> Result<()> {
        let Some((index, _)) = self.stored_index(id)? else { return Ok(()) };
        let base = self.disk.base();
        let plain_edges = self.chunked_mut(id)?.edge_unfiltered;
        let mut chunks = BTreeMap::new();
        let mut fault = None;
        index.scan(
            &mut |coord, chunk| {
                let ChunkRef::Range { offset, length, mask, .. } = chunk else {
                    return Err(Error::unsupported("a chunk that is not in the file"));
                };
                let mask = stored_mask(plain_edges, mask);
                chunks.insert(coord, Entry { address: offset.saturating_sub(base), length, mask });
                Ok(())
            },
            &mut |f| fault = Some(f.error),
        )?;
        if let Some(error) = fault {
            return Err(error.context("an array whose chunk index is damaged is not changed"));
        }
        let chunked = self.chunked_mut(id)?;
        for (at, entry) in std::mem::take(&mut chunked.touched) {
            match entry {
                Some(entry) => chunks.insert(at, entry),
                None => chunks.remove(&at),
            };
        }
        chunked.known.clear();
        chunked.chunks = chunks;
        chunked.loaded = true;
        Ok(())
    }

    /// Looks up which other arrays or files hold the elements of an array.
    pub(super) fn load_elsewhere(&mut self, id: Id) -> Result<()> {
        let Body::Array(array) = &self.object(id)?.body else { return Ok(()) };
        let Storage::Elsewhere(place) = &array.storage else { return Ok(()) };
        let file = self.file()?;
        let space = file.objects().space();
        let storage = match place {
            Elsewhere::Virtual(place) if place.address == UNDEFINED => Storage::Virtual(Vec::new()),
            Elsewhere::Virtual(place) => {
                Storage::Virtual(GlobalHeap::new(space.clone()).object(*place)?.to_vec())
            }
            Elsewhere::External(files) => {
                let heap = LocalHeap::open(space, files.heap)?;
                let run = |slot: &ExternalSlot| {
                    let file = Name::from(heap.text(slot.name)?);
                    Ok(ExternalRun { file, offset: slot.offset, length: slot.size })
                };
                Storage::External(files.slots.iter().map(run).collect::<Result<_>>()?)
            }
        };
        self.array_mut(id)?.storage = storage;
        Ok(())
    }

    /// Fails if an object of the file cannot be changed faithfully.
    pub(super) fn check_editable(&mut self, id: Id) -> Result<()> {
        match &self.object(id)?.refused {
            Some(what) => Err(Error::unsupported(format!("changing an object with {what}"))),
            None => Ok(()),
        }
    }

    /// Fails if an object of the file, or one below it, cannot be removed.
    pub(super) fn check_removable(&mut self, id: Id) -> Result<()> {
        let (mut todo, mut seen) = (vec![id], HashSet::new());
        while let Some(id) = todo.pop() {
            if !seen.insert(id) {
                continue;
            }
            self.check_editable(id)?;
            self.load_attributes(id)?;
            // With other users it stays.
            if self.object(id)?.references > 1 {
                continue;
            }
            let Body::Group(group) = &self.object(id)?.body else { continue };
            let names: Vec<_> = group.links.keys().cloned().collect();
            for name in names {
                if let Some(Target::Object(child)) = self.child(id, &name)? {
                    todo.push(child);
                }
            }
        }
        Ok(())
    }

    /// Gives up the blocks of a header, but for the first.
    pub(super) fn release_blocks(&mut self, id: Id) -> Result<()> {
        let Some(stored) = &mut self.object_mut(id)?.stored else { return Ok(()) };
        let blocks: Vec<(u64, u64)> = stored.blocks.0.drain(1.min(stored.blocks.0.len())..).collect();
        blocks.into_iter().for_each(|(address, length)| self.disk.release(address, length));
        Ok(())
    }

    /// Gives up what an object takes, as far as that is known without reading it: its header and its elements.
    pub(super) fn release(&mut self, id: Id) -> Result<()> {
        self.reclaim_attributes(id)?;
        self.reclaim_links(id, true)?;
        self.reclaim_index(id)?;
        let object = self.object(id)?;
        let mut runs = match (&object.stored, object.place) {
            (Some(stored), _) => stored.blocks.0.clone(),
            (None, place) => place.into_iter().collect(),
        };
        if let Body::Array(array) = &object.body {
            match &array.storage {
                Storage::Contiguous { address: Some(address), size, .. } => runs.push((*address, *size)),
                Storage::Chunked(_) => {
                    // A damaged index gives nothing back, and hinders nobody.
                    let _ = self.load_chunks(id);
                    if let Storage::Chunked(chunked) = &self.array(id)?.storage {
                        runs.extend(chunked.chunks.values().map(|e| (e.address, e.length)));
                    }
                }
                _ => {}
            }
        }
        runs.into_iter().for_each(|(address, length)| self.disk.release(address, length));
        Ok(())
    }

    /// Type, extents and elements of a stored attribute message.
    pub(super) fn parse_attribute(&mut self, body: &Bytes) -> Result<(DType, Dataspace, Bytes)> {
        let name = kind::name(kind::ATTRIBUTE);
        let parts = AttributeMessage::parse(body, Cursor::new(body, name, 0), &mut None)?;
        if parts.dataspace.shared {
            return Err(Error::unsupported("an attribute whose extents are shared"));
        }
        let mut c = Cursor::new(&parts.datatype.bytes, name, 0);
        let dtype = match parts.datatype.shared {
            false => datatype::parse(&mut c, &self.limits)?,
            true => {
                let id = self.committed_of(&mut c)?;
                let id = id.ok_or_else(|| Error::unsupported("an attribute whose type is shared"))?;
                match &self.object(id)?.body {
                    Body::Datatype(dtype) => dtype.clone(),
                    _ => return Err(Error::invalid("the type of an attribute is no committed type")),
                }
            }
        };
        let space = dataspace::parse(Cursor::new(&parts.dataspace.bytes, name, 0), self.disk.sizes())?;
        Ok((dtype, space, parts.data))
    }

    /// Writes what changed of the superblock: the end of the file, and what it knows of the root group.
    pub(super) fn update_superblock(&mut self) -> Result<()> {
        let superblock = self.file()?.superblock().clone();
        let (base, sizes) = (self.disk.base(), self.disk.sizes());
        let end = base.saturating_add(self.disk.end());
        let o = u64::from(sizes.offset);
        if superblock.version >= 2 {
            let source: Arc<dyn Source> = self.disk.target()?.clone();
            let bytes = superblock.bytes(source.as_ref())?;
            let new = superblock.cleared(&bytes, end)?;
            return self.disk.patch(0, &new);
        }
        let first = if superblock.version == 1 { 28 } else { 24 };
        let mut out = super::encoder::Encoder::new(sizes);
        out.address(end.saturating_sub(superblock.offset).saturating_add(superblock.stored_base));
        self.disk.patch(first + 2 * o, &out.finish())?;
        if self.group(self.root)?.dirty {
            // Cache type, reserved bytes, scratch pad.
            let mut out = super::encoder::Encoder::new(sizes);
            match self.root_table {
                Some(table) => out.u32(1).u32(0).address(table.btree).address(table.heap),
                None => out.u32(0).u32(0).zeros(2 * usize::from(sizes.offset)),
            };
            self.disk.patch(first + 6 * o, &out.finish())?;
        }
        Ok(())
    }
}

/// The mask as an entry of the index has it, of one that says what to do: a chunk at the edge that is not filtered skips all
/// filters, and its entry does not say so.
fn stored_mask(plain_edges: bool, mask: u32) -> u32 {
    if plain_edges && mask == u32::MAX { 0 } else { mask }
}

/// What stands in front of the messages of a header, with the number of users.
fn prefix(header: &Header) -> Result<Prefix> {
    let mut references = header.references;
    if let Some(message) = header.find(kind::REFERENCE_COUNT) {
        let mut c = message.cursor();
        c.skip(1)?;
        references = c.u32()?;
    }
    let times = header.times.map_or([0; 4], |t| [t.access, t.modification, t.change, t.birth]);
    let phase_change = header.phase_change.unwrap_or((8, 6));
    Ok(Prefix { version: header.version, flags: header.flags, times, phase_change, references })
}
