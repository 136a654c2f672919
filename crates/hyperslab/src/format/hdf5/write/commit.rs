//! The end of a transaction: indexes and headers get their places and are written.
//!
//! The length of a header does not depend on any address. So all new headers are measured first and get their places, and
//! are written when every address is known.

use super::attribute::{self, NewAttribute};
use super::encoder::Encoder;
use super::group::{self, NewLink};
use super::header::{NewMessage, Prefix, TRACKS_ORDER};
use super::index;
use super::local::Texts;
use super::message::{self, AttributeParts, Places};
use super::object::{Array, AttributeValue, Body, Fill, Id, Object, Storage, Stored, Target};
use super::transaction::Transaction;
use crate::error::{Context, Error, Result};
use crate::format::hdf5::message::fill::Fill as FillMessage;
use crate::format::hdf5::message::kind;
use crate::format::hdf5::message::layout::{Chunked, IndexKind, LayoutClass};
use crate::format::hdf5::parse::UNDEFINED;
use crate::model::write::Committed;
use crate::model::{FillValue, LinkTarget, NodeId};
use crate::shape::Name;
use bytes::Bytes;
use std::collections::HashMap;

/// The messages that say where the elements of an array are.
#[derive(Clone, Debug)]
struct Located {
    class: LayoutClass,
    external: Option<Vec<u8>>,
}

/// Whether headers are measured or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Measure,
    Write,
}

impl Transaction {
    /// Makes everything that was changed durable.
    pub(super) fn commit(&mut self) -> Result<Committed> {
        for id in self.dirty() {
            if let Body::Array(_) = &self.object(id)?.body {
                self.complete(id)?;
            }
        }
        self.state_provenance()?;
        self.make_scales()?;
        let mut located = HashMap::new();
        for id in self.dirty() {
            if self.needs_place(id)? {
                let place = self.locate(id)?;
                located.insert(id, place);
            }
        }
        let dirty = self.dirty();
        for &id in &dirty {
            if self.object(id)?.place.is_some() {
                continue;
            }
            let (prefix, messages) = self.messages(id, &located, Pass::Measure)?;
            // Headers that lie one after the other are written in one go.
            let length = prefix.exact(&messages, self.disk.sizes()).next_multiple_of(8);
            let address = self.disk.allocate(length, 8)?;
            self.object_mut(id)?.place = Some((address, length));
        }
        for &id in &dirty {
            if self.object(id)?.attributes_dirty {
                self.reclaim_attributes(id)?;
            }
            if matches!(&self.object(id)?.body, Body::Group(group) if group.dirty) {
                self.reclaim_links(id, false)?;
            }
            let (prefix, messages) = self.messages(id, &located, Pass::Write)?;
            let place = self.object(id)?.place.ok_or_else(|| Error::invalid("an object without a place"))?;
            self.release_blocks(id)?;
            let blocks = prefix.write(&mut self.disk, place, &messages)?;
            if let Some(stored) = &mut self.object_mut(id)?.stored {
                stored.blocks = blocks;
            }
        }
        self.heap.flush(&mut self.disk)?;
        self.write_superblock()?;
        self.disk.commit()?;
        Ok(Committed { bytes: self.disk.written(), chunks: self.chunks })
    }

    /// Objects that are there and have to be written.
    fn dirty(&self) -> Vec<Id> {
        let used = |(_, o): &(usize, &Object)| o.references > 0 && o.is_dirty();
        self.objects.iter().enumerate().filter(used).map(|(i, _)| Id(i)).collect()
    }

    /// Whether messages say anew where the elements of an array are.
    fn needs_place(&self, id: Id) -> Result<bool> {
        let object = self.object(id)?;
        let Body::Array(array) = &object.body else { return Ok(false) };
        let index = matches!(&array.storage, Storage::Chunked(chunked) if chunked.dirty);
        Ok(object.stored.is_none() || array.dirty || index)
    }

    /// Writes what leads to the elements of an array.
    fn locate(&mut self, id: Id) -> Result<Located> {
        let array = self.array(id)?;
        let class = match &array.storage {
            Storage::Compact(bytes) => LayoutClass::Compact(Bytes::copy_from_slice(bytes)),
            Storage::Contiguous { address, size, .. } => {
                LayoutClass::Contiguous { address: address.unwrap_or(UNDEFINED), size: Some(*size) }
            }
            Storage::Chunked(chunked) => {
                let (mut kind, mut address) = (chunked.kind, chunked.address);
                let (chunk, edge_unfiltered) = (chunked.chunk.clone(), chunked.edge_unfiltered);
                let element_size = array.dtype.size() as u64;
                if chunked.dirty {
                    (kind, address) = self.write_index(id)?;
                }
                LayoutClass::Chunked(Chunked { chunk, element_size, index: kind, address, edge_unfiltered })
            }
            Storage::Virtual(block) if block.is_empty() => {
                LayoutClass::Virtual { address: UNDEFINED, index: 0 }
            }
            Storage::Virtual(block) => {
                let block = block.clone();
                let place = self.heap.insert(&mut self.disk, &block)?;
                LayoutClass::Virtual { address: place.address, index: place.index }
            }
            Storage::Elsewhere(_) => {
                return Err(Error::invalid("elements in other arrays or files, which were not looked up"));
            }
            Storage::External(runs) => {
                let size = crate::shape::byte_count(array.space.dims(), array.dtype.size())?;
                let mut texts = Texts::new();
                let slots: Vec<(u64, u64, Option<u64>)> =
                    runs.iter().map(|r| (texts.add(r.file.as_bytes()), r.offset, r.length)).collect();
                let (heap, _) = texts.write(&mut self.disk, None)?;
                let mut out = Encoder::new(self.disk.sizes());
                message::external(&mut out, heap, &slots)?;
                let class = LayoutClass::Contiguous { address: UNDEFINED, size: Some(size) };
                return Ok(Located { class, external: Some(out.finish()) });
            }
        };
        Ok(Located { class, external: None })
    }

    /// Writes what changed of the chunk index of an array, or all of it.
    fn write_index(&mut self, id: Id) -> Result<(IndexKind, u64)> {
        let chunked = self.chunked_mut(id)?;
        if !chunked.loaded {
            let (kind, address, chunk) = (chunked.kind, chunked.address, chunked.chunk.clone());
            let changes = chunked.touched.clone();
            let array = self.array(id)?.meta();
            let shape = self.shape_of(&array, &chunk)?;
            if let Some(updated) = index::update(&mut self.disk, kind, address, shape, &changes)? {
                let chunked = self.chunked_mut(id)?;
                chunked.dirty = false;
                if chunked.address != updated.1 {
                    chunked.address = updated.1;
                    self.array_mut(id)?.dirty = true;
                }
                return Ok(updated);
            }
            self.load_chunks(id)?;
        }
        self.reclaim_index(id)?;
        let chunked = self.chunked_mut(id)?;
        let chunks = std::mem::take(&mut chunked.chunks);
        let (kind, chunk) = (chunked.kind, chunked.chunk.clone());
        let array = self.array(id)?.meta();
        let written = self
            .shape_of(&array, &chunk)
            .and_then(|shape| index::write(&mut self.disk, kind, shape, &chunks));
        let chunked = self.chunked_mut(id)?;
        chunked.chunks = chunks;
        if let Ok((_, address)) = written {
            chunked.address = address;
            chunked.dirty = false;
        }
        self.array_mut(id)?.dirty = true;
        written
    }

    /// The prefix and the messages of an object's header.
    fn messages(
        &mut self,
        id: Id,
        located: &HashMap<Id, Located>,
        pass: Pass,
    ) -> Result<(Prefix, Vec<NewMessage>)> {
        let mut messages = match &self.object(id)?.stored {
            Some(stored) => stored.messages.clone(),
            None => self.object(id)?.carried.clone(),
        };
        let references = self.object(id)?.references;
        let object = self.object(id)?;
        let kept = |list: fn(&Stored) -> &Vec<NewMessage>| object.stored.as_ref().map(|s| list(s).clone());
        let keeps_attributes = object.stored.is_some() && !object.attributes_dirty;
        let attribute_messages = kept(|s| &s.attribute_messages);
        match &object.body {
            Body::Group(group) => match kept(|s| &s.link_messages).filter(|_| !group.dirty) {
                Some(kept) => messages.extend(kept),
                None => {
                    let has_info = messages.iter().any(|m| m.kind == kind::GROUP_INFO);
                    let links = self.link_messages(id, pass)?;
                    if !has_info && links.iter().any(|m| m.kind == kind::LINK_INFO) {
                        // Version, and flags that say that nothing is estimated.
                        messages.push(NewMessage::constant(kind::GROUP_INFO, vec![0, 0]));
                    }
                    messages.extend(links);
                }
            },
            Body::Array(array) => match kept(|s| &s.array_messages) {
                Some(kept) if !array.dirty => messages.extend(kept),
                stored => {
                    // Of a stored array extents and layout alone are new.
                    let array = array.meta();
                    let place = located.get(&id).ok_or_else(|| Error::invalid("an array without a place"))?;
                    let own = self.array_messages(&array, place, pass)?.into_iter();
                    let new =
                        |m: &NewMessage| stored.is_none() || matches!(m.kind, kind::DATASPACE | kind::LAYOUT);
                    messages.extend(own.filter(new));
                }
            },
            Body::Datatype(dtype) if self.object(id)?.stored.is_none() => {
                let mut out = Encoder::new(self.disk.sizes());
                message::dtype(&mut out, dtype, self.style())?;
                messages.push(NewMessage::constant(kind::DATATYPE, out.finish()));
            }
            Body::Datatype(_) => {}
        }
        let mut attributes = Vec::new();
        if !keeps_attributes {
            attributes = self.attribute_bodies(id, pass)?;
        }
        let object = self.object(id)?;
        let mut prefix = match &object.stored {
            Some(stored) => Prefix { references, ..stored.prefix.clone() },
            None => {
                let early = self.is_early() && !object.tracks;
                let version = if early && attribute::is_compact(&attributes, usize::MAX) { 1 } else { 2 };
                Prefix::new(version, references, object.tracks).with_times(object.times)
            }
        };
        if prefix.version == 1 && object.tracks {
            prefix.version = 2;
        }
        match attribute_messages.filter(|_| keeps_attributes) {
            Some(kept) => messages.extend(kept),
            None => messages.extend(self.attribute_messages(id, &prefix, &attributes, pass)?),
        }
        if prefix.version != 1 && references > 1 {
            let mut out = Encoder::new(self.disk.sizes());
            out.u8(0).u32(references);
            messages.push(NewMessage::new(kind::REFERENCE_COUNT, out.finish()));
        }
        Ok((prefix, messages))
    }

    fn array_messages(&mut self, array: &Array, place: &Located, pass: Pass) -> Result<Vec<NewMessage>> {
        let sizes = self.disk.sizes();
        let mut messages = Vec::new();
        let mut out = Encoder::new(sizes);
        message::dataspace(&mut out, &array.space, self.style())?;
        messages.push(NewMessage::new(kind::DATASPACE, out.finish()));
        let (body, shared) = self.datatype_body(&array.dtype, array.committed)?;
        let datatype = NewMessage::constant(kind::DATATYPE, body);
        messages.push(NewMessage { flags: 0x01 | u8::from(shared) << 1, ..datatype });
        let value = match (&array.fill, pass) {
            (Fill::Undefined, _) => FillValue::Undefined,
            (Fill::Default, _) => FillValue::Default,
            (Fill::Stored(bytes), _) => FillValue::Value(bytes.clone()),
            (Fill::Value(_), Pass::Measure) => FillValue::Value(vec![0; array.dtype.size()].into()),
            (Fill::Value(value), Pass::Write) => FillValue::Value(self.flatten(&array.dtype, value)?),
        };
        let fill = FillMessage { allocation: array.allocation, time: array.fill_time, value };
        let mut out = Encoder::new(sizes);
        message::fill(&mut out, &fill, self.style())?;
        messages.push(NewMessage::constant(kind::FILL, out.finish()));
        if !array.filters.is_empty() {
            let mut out = Encoder::new(sizes);
            message::filters(&mut out, &array.filters, self.style())?;
            messages.push(NewMessage::constant(kind::FILTERS, out.finish()));
        }
        if let Some(external) = &place.external {
            messages.push(NewMessage::new(kind::EXTERNAL_FILES, external.clone()));
        }
        let mut out = Encoder::new(sizes);
        message::layout(&mut out, &place.class, array.version)?;
        messages.push(NewMessage::new(kind::LAYOUT, out.finish()));
        Ok(messages)
    }

    /// The body of a datatype message, and whether it only says where the type is.
    fn datatype_body(&self, dtype: &crate::dtype::DType, committed: Option<Id>) -> Result<(Vec<u8>, bool)> {
        let mut out = Encoder::new(self.disk.sizes());
        match committed {
            Some(id) => message::committed(&mut out, self.object(id)?.place.map_or(0, |p| p.0)),
            None => message::dtype(&mut out, dtype, self.style())?,
        }
        Ok((out.finish(), committed.is_some()))
    }

    fn link_messages(&mut self, id: Id, pass: Pass) -> Result<Vec<NewMessage>> {
        let sizes = self.disk.sizes();
        let group = self.group(id)?;
        let tracks = group.tracks;
        let mut targets: Vec<(LinkTarget, u64)> = Vec::with_capacity(group.links.len());
        for link in group.links.values() {
            let address = match &link.target {
                Target::Object(child) => self.object(*child)?.place.map_or(0, |p| p.0),
                Target::Address(address) => *address,
                _ => UNDEFINED,
            };
            let target = match &link.target {
                Target::Object(_) | Target::Address(_) => LinkTarget::Hard(NodeId::Address(address)),
                Target::Soft(path) => LinkTarget::Soft(path.clone()),
                Target::External { file, path } => {
                    LinkTarget::External { file: file.clone(), path: path.clone() }
                }
                Target::UserDefined { class, data } => {
                    LinkTarget::UserDefined { class: *class, data: data.clone() }
                }
            };
            targets.push((target, address));
        }
        let links: Vec<(Name, i64)> = group.links.iter().map(|(n, l)| (n.clone(), l.order)).collect();
        let links: Vec<NewLink<'_>> = links
            .iter()
            .zip(&targets)
            .map(|((name, order), (target, address))| NewLink {
                name,
                target,
                address: *address,
                order: tracks.then_some(*order),
            })
            .collect();
        let next = tracks.then_some(group.next.max(0) as u64);
        let stored = self.object(id)?.stored.as_ref().map(|s| s.table);
        let old = match stored {
            Some(table) => table.is_some(),
            None => self.is_early() && !tracks,
        };
        if old && links.iter().all(|l| group::is_old(l.target)) {
            let kept = stored.flatten();
            let table = match pass {
                Pass::Measure => kept.unwrap_or(group::Table { btree: 0, heap: 0 }),
                Pass::Write => {
                    let table = group::old(&mut self.disk, &links, self.group_k, kept)?;
                    if id == self.root {
                        self.root_table = Some(table);
                    }
                    table
                }
            };
            return Ok(vec![group::table(table, sizes)]);
        }
        if id == self.root {
            self.root_table = None;
        }
        if group::is_compact(&links) {
            return group::compact(&links, next, sizes);
        }
        let places = match pass {
            Pass::Measure => Places::compact(next),
            Pass::Write => group::dense(&mut self.disk, &links, next)?,
        };
        Ok(group::info(&places, sizes))
    }

    /// The bodies of an object's attribute messages.
    fn attribute_bodies(&mut self, id: Id, pass: Pass) -> Result<Vec<NewAttribute>> {
        let object = self.object(id)?;
        let tracks = object.tracks;
        let mut attributes = object.attributes.clone();
        attributes.sort_by_key(|a| a.order);
        let mut out = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            let order = match tracks {
                false => None,
                true => Some(u16::try_from(attribute.order).map_err(|_| {
                    Error::unsupported("more than 65535 attributes made one after the other on one object")
                })?),
            };
            let (body, flags) = match &attribute.what {
                AttributeValue::Kept { body, flags, .. } => (body.to_vec(), *flags),
                AttributeValue::New { dtype, committed, space, value } => {
                    let data = match pass {
                        Pass::Measure => {
                            vec![0; value.count(dtype.size()).saturating_mul(dtype.size())].into()
                        }
                        Pass::Write => {
                            let name = attribute.name.clone();
                            self.flatten(dtype, value).context(|| format!("attribute {name}"))?
                        }
                    };
                    let (datatype, shared) = self.datatype_body(dtype, *committed)?;
                    let mut dataspace = Encoder::new(self.disk.sizes());
                    message::dataspace(&mut dataspace, space, self.style())?;
                    let parts = AttributeParts {
                        name: &attribute.name,
                        datatype: &datatype,
                        shared,
                        dataspace: dataspace.as_bytes(),
                        data: &data,
                    };
                    let mut body = Encoder::new(self.disk.sizes());
                    message::attribute(&mut body, parts, self.style())?;
                    (body.finish(), 0)
                }
            };
            out.push(NewAttribute { name: attribute.name, flags, body, order });
        }
        Ok(out)
    }

    fn attribute_messages(
        &mut self,
        id: Id,
        prefix: &Prefix,
        attributes: &[NewAttribute],
        pass: Pass,
    ) -> Result<Vec<NewMessage>> {
        let sizes = self.disk.sizes();
        if prefix.version == 1 {
            return Ok(attribute::compact(attributes));
        }
        let tracks = prefix.flags & TRACKS_ORDER != 0;
        let next = tracks.then_some(self.object(id)?.next_attribute);
        if attribute::is_compact(attributes, prefix.max_compact()) {
            let mut messages = Vec::new();
            if tracks || !attributes.is_empty() {
                messages.push(attribute::info(&Places::compact(next), sizes));
            }
            messages.extend(attribute::compact(attributes));
            return Ok(messages);
        }
        let places = match pass {
            Pass::Measure => Places::compact(next),
            Pass::Write => attribute::dense(&mut self.disk, attributes, next)?,
        };
        Ok(vec![attribute::info(&places, sizes)])
    }
}
