//! Objects copied within a file: stored chunks as they are, what elements point to on the heap anew.

use super::encoder::Encoder;
use super::global;
use super::header::NewMessage;
use super::index::{self, Entry};
use super::object::{
    Array, Attribute, AttributeValue, Body, Fill, Group, Id, Link, Object, Storage, Target, Value,
};
use super::transaction::Transaction;
use crate::codec::{BindContext, Pipeline, Registry, Scratch};
use crate::dtype::{DType, ReferenceKind};
use crate::error::{Context, Error, Result};
use crate::format::hdf5::heap::GlobalHeap;
use crate::format::hdf5::message::kind;
use crate::format::hdf5::message::layout::IndexKind;
use crate::format::hdf5::parse::{Cursor, UNDEFINED};
use crate::model::HeapRef;
use crate::model::write::ObjectPath;
use crate::shape::{byte_count, to_usize};
use bytes::Bytes;
use std::collections::HashMap;

/// Bytes that are copied at a time.
const STEP: u64 = 4 << 20;

/// Whether elements point into the global heap.
pub(super) fn has_heap(dtype: &DType) -> bool {
    match dtype {
        DType::VarString { .. } | DType::VarLen { .. } => true,
        DType::Reference { kind, .. } => *kind != ReferenceKind::Object,
        DType::Compound { fields, .. } => fields.iter().any(|f| has_heap(&f.dtype)),
        DType::Array { base, .. } => has_heap(base),
        _ => false,
    }
}

/// The pipeline of an array in chunks.
fn pipeline(array: &Array, chunk: &[u64]) -> Result<Pipeline> {
    let chunk_bytes = byte_count(chunk, array.dtype.size())?;
    let context = BindContext { dtype: &array.dtype, chunk, chunk_bytes };
    Registry::default().pipeline(&array.filters, &context)
}

/// Fails if there is no exact copy of an array. `is_new`: made in this transaction.
fn check_copy(array: &Array, is_new: bool) -> Result<()> {
    let Storage::Chunked(chunked) = &array.storage else { return Ok(()) };
    if is_new && chunked.kind == IndexKind::Implicit && !chunked.chunks.is_empty() {
        return Err(Error::unsupported("a copy of an array with an implicit chunk index that is being made")
            .hint("commit first"));
    }
    // What points to the heap is decoded, and points to other objects then. All else is copied as it is stored, whatever
    // its filters are.
    match has_heap(&array.dtype) {
        true => chunked.chunks.values().try_for_each(|e| pipeline(array, &chunked.chunk)?.check(e.mask)),
        false => Ok(()),
    }
}

/// Whether a message of a stored object that says nothing of links, attributes, or how elements are stored: who copies the
/// object copies it, also if nobody here knows what it means.
fn is_carried(message: &NewMessage) -> bool {
    matches!(message.kind, kind::COMMENT | kind::MODIFIED | kind::MODIFIED_OLD | kind::GROUP_INFO)
        || message.kind > kind::CACHE_IMAGE
}

/// The committed types that an object uses, one for each use.
fn committed_types(object: &Object) -> Vec<Id> {
    let own = match &object.body {
        Body::Array(array) => array.committed,
        _ => None,
    };
    let attributes = object.attributes.iter().filter_map(|a| match &a.what {
        AttributeValue::New { committed, .. } | AttributeValue::Kept { committed, .. } => *committed,
    });
    own.into_iter().chain(attributes).collect()
}

impl Transaction {
    pub(super) fn copy_object(&mut self, from: &ObjectPath, to: &ObjectPath) -> Result<()> {
        let source = self.find(from)?;
        let place = self.place_for(to)?;
        // Everything that is to be copied, found before anything changes: the copy may go into what is copied.
        let (mut order, mut new) = (vec![source], HashMap::new());
        let mut next = 0;
        while let Some(&id) = order.get(next) {
            next += 1;
            self.check_editable(id)?;
            self.load_attributes(id)?;
            if let Body::Array(_) = &self.object(id)?.body {
                self.load_chunks(id)?;
                self.load_elsewhere(id)?;
                let is_new = self.object(id)?.stored.is_none();
                check_copy(self.array(id)?, is_new).context(|| format!("copy of {from}"))?;
            }
            let Body::Group(group) = &self.object(id)?.body else { continue };
            let names: Vec<_> = group.links.keys().cloned().collect();
            for name in names {
                if let Some(Target::Object(child)) = self.child(id, &name)?
                    && !order.contains(&child)
                {
                    order.push(child);
                }
            }
        }
        for &id in &order {
            let copy = self.copy_one(id).context(|| format!("copy of {from}"))?;
            new.insert(id, copy);
        }
        // Nothing was counted before all copies are there. Links lead to them.
        for copy in new.values() {
            let users = committed_types(self.object(*copy)?);
            for user in users {
                self.refer(user, 1)?;
            }
            let Body::Group(group) = &mut self.object_mut(*copy)?.body else { continue };
            let mut targets = Vec::new();
            for link in group.links.values_mut() {
                if let Target::Object(old) = link.target
                    && let Some(&id) = new.get(&old)
                {
                    link.target = Target::Object(id);
                    targets.push(id);
                }
            }
            for id in targets {
                self.refer(id, 1)?;
            }
        }
        match new.get(&source) {
            Some(&copy) => self.link(place, Target::Object(copy), None),
            None => Err(Error::invalid("an object that was not copied")),
        }
    }

    fn copy_one(&mut self, id: Id) -> Result<Id> {
        let old = self.object(id)?;
        let (tracks, next) = (old.tracks, old.next_attribute);
        let attributes = old.attributes.clone();
        let (carried, times) = match &old.stored {
            Some(stored) => {
                let carried = stored.messages.iter().filter(|m| is_carried(m)).cloned().collect();
                (carried, stored.prefix.stored_times())
            }
            None => (old.carried.clone(), old.times),
        };
        let body = match &old.body {
            Body::Group(group) => {
                let links = group
                    .links
                    .iter()
                    .map(|(n, l)| (n.clone(), Link { target: l.target.clone(), order: l.order }))
                    .collect();
                let dimensions = Vec::new();
                Body::Group(Group { links, next: group.next, tracks: group.tracks, dirty: true, dimensions })
            }
            Body::Array(array) => Body::Array(Box::new(self.copy_array(&array.as_ref().clone())?)),
            Body::Datatype(dtype) => Body::Datatype(dtype.clone()),
        };
        let mut copied = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            copied.push(self.copy_attribute(attribute)?);
        }
        let mut object = Object::new(body, tracks);
        object.attributes = copied;
        object.next_attribute = next;
        object.carried = carried;
        object.times = times;
        Ok(self.add(object))
    }

    fn copy_attribute(&mut self, attribute: Attribute) -> Result<Attribute> {
        let AttributeValue::Kept { body, committed, .. } = &attribute.what else { return Ok(attribute) };
        let (dtype, space, data) = self.parse_attribute(body)?;
        if !has_heap(&dtype) {
            return Ok(attribute);
        }
        let value = Value::Fixed(self.deep(&dtype, &data)?);
        let what = AttributeValue::New { dtype, committed: *committed, space, value };
        Ok(Attribute { what, ..attribute })
    }

    fn copy_array(&mut self, array: &Array) -> Result<Array> {
        let heap = has_heap(&array.dtype);
        let storage = match &array.storage {
            Storage::Compact(bytes) if heap => {
                Storage::Compact(self.deep(&array.dtype, &Bytes::copy_from_slice(bytes))?.to_vec())
            }
            Storage::Contiguous { address: Some(address), size, written } => {
                let new = match heap {
                    true => {
                        let bytes = self.disk.read(*address, to_usize(*size)?)?;
                        let bytes = self.deep(&array.dtype, &bytes.into())?;
                        self.disk.place(&bytes)?
                    }
                    false => self.copy_bytes(*address, *size)?,
                };
                Storage::Contiguous { address: Some(new), size: *size, written: written.clone() }
            }
            Storage::Chunked(chunked) => {
                let pipeline = pipeline(array, &chunked.chunk)?;
                let mut new = chunked.clone();
                let mut scratch = Scratch::default();
                for (at, entry) in &mut new.chunks {
                    if heap && array.is_plain(at) {
                        let stored = self.disk.read(entry.address, to_usize(entry.length)?)?;
                        entry.address = {
                            let bytes = self.deep(&array.dtype, &stored.into())?;
                            self.disk.place(&bytes)?
                        };
                    } else if heap {
                        let stored = self.disk.read(entry.address, to_usize(entry.length)?)?;
                        let (mut bytes, mut encoded) = (Vec::new(), Vec::new());
                        pipeline.decode(&stored, entry.mask, &mut bytes, &mut scratch)?;
                        let bytes = self.deep(&array.dtype, &bytes.into())?;
                        let mask = pipeline.encode(&bytes, &mut encoded, &mut scratch)?;
                        let address = self.disk.place(&encoded)?;
                        *entry = Entry { address, length: encoded.len() as u64, mask };
                    } else {
                        entry.address = self.copy_bytes(entry.address, entry.length)?;
                    }
                }
                if new.kind == IndexKind::Implicit && !new.chunks.is_empty() {
                    // Its chunks do not lie in one run, as those of such an index do.
                    new.kind = index::kind(self.shape_of(array, &chunked.chunk)?, false);
                }
                new.dirty = true;
                new.address = UNDEFINED;
                Storage::Chunked(new)
            }
            other => other.clone(),
        };
        let fill = match &array.fill {
            Fill::Stored(bytes) if heap => Fill::Stored(self.deep(&array.dtype, bytes)?),
            other => other.clone(),
        };
        Ok(Array { storage, fill, dirty: true, ..array.clone() })
    }

    fn copy_bytes(&mut self, address: u64, length: u64) -> Result<u64> {
        let new = self.disk.allocate(length, 8)?;
        let mut done = 0;
        while done < length {
            let n = (length - done).min(STEP);
            let bytes = self.disk.read(address + done, to_usize(n)?)?;
            self.disk.put(new + done, &bytes)?;
            done += n;
        }
        Ok(new)
    }

    /// Stored elements with new objects on the heap for those that they point to.
    pub(super) fn deep(&mut self, dtype: &DType, stored: &Bytes) -> Result<Bytes> {
        if !has_heap(dtype) {
            return Ok(stored.clone());
        }
        // Objects of this transaction are there to be read too.
        self.heap.flush(&mut self.disk)?;
        let heap = GlobalHeap::live(self.space()?);
        let mut out = stored.to_vec();
        let size = dtype.size().max(1);
        for element in out.chunks_exact_mut(size) {
            self.deep_element(&heap, dtype, element)?;
        }
        Ok(out.into())
    }

    /// Types are nested no deeper than the limit of types says, which the type was checked against.
    fn deep_element(&mut self, heap: &GlobalHeap, dtype: &DType, element: &mut [u8]) -> Result<()> {
        let sizes = self.disk.sizes();
        let place = |element: &[u8], skip: usize| -> Result<HeapRef> {
            let mut c = Cursor::new(element, "variable-length element", 0);
            c.skip(skip)?;
            Ok(HeapRef { address: c.address(sizes)?, index: c.u32()? })
        };
        // Where the reference to the heap stands in an element.
        let skip = match dtype {
            DType::VarString { .. } | DType::VarLen { .. } => 4,
            DType::Reference { kind: ReferenceKind::Region, .. } => 0,
            DType::Reference { kind: ReferenceKind::Standard, .. } if element.first() != Some(&2) => 6,
            DType::Compound { fields, .. } => {
                for field in fields.iter().filter(|f| has_heap(&f.dtype)) {
                    let end = field.offset.saturating_add(field.dtype.size());
                    if let Some(member) = element.get_mut(field.offset..end) {
                        self.deep_element(heap, &field.dtype, member)?;
                    }
                }
                return Ok(());
            }
            DType::Array { base, .. } if has_heap(base) => {
                for item in element.chunks_exact_mut(base.size().max(1)) {
                    self.deep_element(heap, base, item)?;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let old = place(element, skip)?;
        if old.address == 0 || old.address == UNDEFINED {
            return Ok(());
        }
        let mut object = heap.object(old)?.to_vec();
        if let DType::VarLen { base, .. } = dtype
            && has_heap(base)
        {
            for item in object.chunks_exact_mut(base.size().max(1)) {
                self.deep_element(heap, base, item)?;
            }
        }
        let new = self.heap.insert(&mut self.disk, &object)?;
        let mut out = Encoder::new(sizes);
        global::element(&mut out, 0, Some(new));
        let bytes = out.as_bytes().get(4..).unwrap_or_default();
        if let Some(field) = element.get_mut(skip..skip + bytes.len()) {
            field.copy_from_slice(bytes);
        }
        Ok(())
    }
}
