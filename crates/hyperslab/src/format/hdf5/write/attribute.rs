//! Attributes, written: in the object header, or in a fractal heap.

use super::btree2::{self, TreeKind};
use super::disk::Disk;
use super::encoder::Encoder;
use super::header::NewMessage;
use super::heap;
use super::message::{self, Places};
use crate::error::Result;
use crate::format::hdf5::message::kind;
use crate::format::hdf5::parse::{Sizes, UNDEFINED, lookup3};
use crate::shape::Name;

/// Place in the order of creation where none is tracked.
const NO_ORDER: u16 = u16::MAX;

/// An attribute message, ready to be stored.
#[derive(Clone, Debug)]
pub(super) struct NewAttribute {
    pub(super) name: Name,
    /// Flags of the message: 0 but for messages that are shared.
    pub(super) flags: u8,
    pub(super) body: Vec<u8>,
    /// Place in the order of creation.
    pub(super) order: Option<u16>,
}

/// Whether attributes can stand in an object header.
pub(super) fn is_compact(attributes: &[NewAttribute], max: usize) -> bool {
    attributes.len() <= max && attributes.iter().all(|a| a.body.len() <= 65_000)
}

/// The message that says where attributes are.
pub(super) fn info(places: &Places, sizes: Sizes) -> NewMessage {
    let mut out = Encoder::new(sizes);
    message::attribute_info(&mut out, places);
    NewMessage { flags: 0x04, ..NewMessage::new(kind::ATTRIBUTE_INFO, out.finish()) }
}

/// The messages of attributes in the object header.
pub(super) fn compact(attributes: &[NewAttribute]) -> Vec<NewMessage> {
    let message = |a: &NewAttribute| NewMessage {
        kind: kind::ATTRIBUTE,
        flags: a.flags,
        order: a.order,
        body: a.body.clone(),
    };
    attributes.iter().map(message).collect()
}

/// Writes attributes into a fractal heap with its indexes.
pub(super) fn dense(disk: &mut Disk, attributes: &[NewAttribute], next: Option<u64>) -> Result<Places> {
    let sizes = disk.sizes();
    let objects: Vec<&[u8]> = attributes.iter().map(|a| a.body.as_slice()).collect();
    let (heap, ids) = heap::write(disk, heap::ATTRIBUTES, &objects)?;
    let numbered = || attributes.iter().zip(&ids);
    let record = |out: &mut Encoder, a: &NewAttribute, id: &[u8]| {
        out.put(id).u8(a.flags).u32(a.order.unwrap_or(NO_ORDER).into());
    };
    let mut by_name: Vec<(u32, &NewAttribute, &Vec<u8>)> =
        numbered().map(|(a, id)| (lookup3(a.name.as_bytes()), a, id)).collect();
    by_name.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
    let mut records = Encoder::new(sizes);
    for (hash, attribute, id) in by_name {
        record(&mut records, attribute, id);
        records.u32(hash);
    }
    let tree = TreeKind { record_type: 8, record_size: 17, node_size: 512 };
    let names = btree2::write(disk, tree, records.as_bytes())?;
    let mut order = UNDEFINED;
    if next.is_some() {
        let mut by_order: Vec<(&NewAttribute, &Vec<u8>)> = numbered().collect();
        by_order.sort_by_key(|(a, _)| a.order);
        let mut records = Encoder::new(sizes);
        for (attribute, id) in by_order {
            record(&mut records, attribute, id);
        }
        let tree = TreeKind { record_type: 9, record_size: 13, node_size: 512 };
        order = btree2::write(disk, tree, records.as_bytes())?;
    }
    Ok(Places { next, heap, names, order })
}
