//! Attributes: in the object header (compact) or in a fractal heap (dense).

use super::btree::v2::Tree;
use super::file::Space;
use super::heap::FractalHeap;
use super::message::attribute::{AttributeInfo, AttributeMessage};
use super::message::shared::Shared;
use super::message::{Message, dataspace, kind};
use super::object::{Header, Objects};
use super::parse::{Cursor, UNDEFINED};
use crate::error::{Error, Result};
use crate::model::{Attribute, AttributeEntry, NodeId};
use crate::shape::{Name, byte_count, to_usize};
use bytes::Bytes;

const RECORD: &str = "version 2 B-tree record of an attribute";

/// Record type of the tree over names: heap identifier, flags, order of creation, hash.
const BY_NAME: u8 = 8;
/// Record type of the tree over the order of creation: the same without the hash.
const BY_ORDER: u8 = 9;

/// All attributes of an object, sorted by the bytes of their names.
pub fn attributes(objects: &Objects, header: &Header) -> Result<Vec<AttributeEntry>> {
    let mut entries: Vec<AttributeEntry> = Vec::new();
    let sizes = objects.space().sizes();
    let info = match header.find(kind::ATTRIBUTE_INFO) {
        Some(message) => Some(AttributeInfo::parse(message.cursor(), sizes)?),
        None => None,
    };
    match info.filter(|info| info.heap != UNDEFINED) {
        Some(info) => dense(objects, &info, &mut entries)?,
        None => {
            // Some writers number all alike: the order of the messages decides between equals.
            let place = |m: &Message, i: u64| m.creation_order.map_or(i, |n| (u64::from(n) << 32) + i);
            let numbered = header.all(kind::ATTRIBUTE).zip(0u64..);
            entries.extend(numbered.map(|(m, i)| attribute(objects, m, place(m, i))));
        }
    }
    let key = |entry: &AttributeEntry| match entry {
        Ok(attribute) => Some(attribute.name.clone()),
        Err((name, _)) => name.clone(),
    };
    if entries.len() > 1 {
        entries.sort_by_cached_key(key);
    }
    Ok(entries)
}

/// Visits the attributes in the heap.
fn dense(objects: &Objects, info: &AttributeInfo, entries: &mut Vec<AttributeEntry>) -> Result<()> {
    let space = &objects.space().scoped();
    let heap = FractalHeap::open(space, info.heap)?;
    let (address, kind) = match info.order {
        Some(order) if info.names == UNDEFINED => (order, BY_ORDER),
        _ => (info.names, BY_NAME),
    };
    if address == UNDEFINED {
        return Ok(());
    }
    let tree = Tree::open(space, address, kind)?;
    let mut faults = Vec::new();
    // Where the order of creation is not tracked, that of the tree stands for it, as in the reference library.
    let mut number = 0;
    tree.walk(
        &mut |record| {
            let place = (!info.tracks_order).then_some(number);
            number += 1;
            entries.push(record_attribute(objects, &heap, record, place));
            Ok(())
        },
        &mut |e| {
            faults.push(Err((None, e)));
            Ok(())
        },
    )?;
    entries.append(&mut faults);
    Ok(())
}

/// Visits the attribute messages in the heap: body, flags, and place in the order of creation.
pub(in crate::format::hdf5) fn dense_messages(
    space: &Space,
    info: &AttributeInfo,
    visit: &mut dyn FnMut(Bytes, u8, u32) -> Result<()>,
) -> Result<()> {
    let space = &space.scoped();
    let heap = FractalHeap::open(space, info.heap)?;
    let (address, kind) = match info.order {
        Some(order) if info.names == UNDEFINED => (order, BY_ORDER),
        _ => (info.names, BY_NAME),
    };
    if address == UNDEFINED {
        return Ok(());
    }
    Tree::open(space, address, kind)?.for_each(&mut |record| {
        let mut c = Cursor::new(record, RECORD, 0);
        let id = c.take(8)?;
        let (flags, order) = (c.u8()?, c.u32()?);
        // Of a message that is shared the identifier is one of another heap.
        let body = if flags & 0x02 != 0 { Bytes::new() } else { heap.object(id)? };
        visit(body, flags, order)
    })
}

fn record_attribute(
    objects: &Objects,
    heap: &FractalHeap,
    record: &[u8],
    place: Option<u64>,
) -> AttributeEntry {
    let message = || -> Result<(Message, u64)> {
        let mut c = Cursor::new(record, RECORD, 0);
        let mut id = [0; 8];
        id.copy_from_slice(c.take(8)?);
        // Bit 1: the identifier is one of the shared message table's heap.
        let shared = c.u8()? & 0x02 != 0;
        let order = place.unwrap_or(u64::from(c.u32()?));
        if shared {
            return Ok((objects.shared_message(kind::ATTRIBUTE, &id)?, order));
        }
        let bytes = heap.object(&id)?;
        Ok((Message { kind: kind::ATTRIBUTE, flags: 0, creation_order: None, bytes, offset: 0 }, order))
    };
    message().map_err(|e| (None, e)).and_then(|(message, order)| attribute(objects, &message, order))
}

/// The attribute in a message, the `order`-th of its object.
fn attribute(objects: &Objects, message: &Message, order: u64) -> AttributeEntry {
    let mut name: Option<Name> = None;
    match decode(objects, message, &mut name) {
        Ok(attribute) => Ok(Attribute { order: Some(order), ..attribute }),
        Err(e) => match &name {
            Some(n) => {
                let e = e.context(format!("attribute {n}"));
                Err((name, e))
            }
            None => Err((None, e)),
        },
    }
}

fn decode(objects: &Objects, message: &Message, name: &mut Option<Name>) -> Result<Attribute> {
    let resolved;
    let message = if message.is_shared() {
        resolved = objects.resolve(message)?;
        &resolved
    } else {
        message
    };
    let parts = AttributeMessage::parse(&message.bytes, message.cursor(), name)?;
    let dtype = objects.datatype(&objects.resolve_part(kind::DATATYPE, &parts.datatype)?)?;
    let committed = match parts.datatype.shared {
        true => {
            let mut c = Cursor::new(&parts.datatype.bytes, kind::name(kind::DATATYPE), parts.datatype.offset);
            Shared::parse(&mut c, objects.space().sizes())?.object().map(NodeId::Address)
        }
        false => None,
    };
    let space = objects.resolve_part(kind::DATASPACE, &parts.dataspace)?;
    let space = dataspace::parse(space.cursor(), objects.space().sizes())?;
    let length =
        if space.is_null() { 0 } else { byte_count(space.dims(), dtype.size()).and_then(to_usize)? };
    if length > parts.data.len() {
        return Err(Error::corrupt(
            kind::name(kind::ATTRIBUTE),
            message.offset,
            format!("{length} bytes of elements wanted, {} are there", parts.data.len()),
        ));
    }
    let data = parts.data.slice(..length);
    Ok(Attribute { name: parts.name, dtype, space, data, order: None, committed })
}
