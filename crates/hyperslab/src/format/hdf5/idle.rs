//! Structures of an object that readers pass by, and that only `check` looks at: indexes over the order of creation, and
//! the free space of heaps.

use super::btree::v2::Tree;
use super::file::Space;
use super::free_space;
use super::heap::FractalHeap;
use super::message::attribute::AttributeInfo;
use super::message::kind;
use super::message::link::LinkInfo;
use super::object::Header;
use super::parse::UNDEFINED;
use crate::error::{Error, Result};

/// Record types of the trees over the order of creation of links and attributes.
const LINKS_BY_ORDER: u8 = 6;
const ATTRIBUTES_BY_ORDER: u8 = 9;

/// Gives each fault to `fault`. Messages that do not parse are none of this: reading them says so.
pub(super) fn check(space: &Space, header: &Header, fault: &mut dyn FnMut(Error)) {
    let space = &space.scoped();
    let links = header.find(kind::LINK_INFO).and_then(|m| LinkInfo::parse(m.cursor(), space.sizes()).ok());
    let attributes =
        header.find(kind::ATTRIBUTE_INFO).and_then(|m| AttributeInfo::parse(m.cursor(), space.sizes()).ok());
    let stores = [
        links.map(|i| (i.heap, i.order, LINKS_BY_ORDER, "links")),
        attributes.map(|i| (i.heap, i.order, ATTRIBUTES_BY_ORDER, "attributes")),
    ];
    for (heap, order, record_type, what) in stores.into_iter().flatten().filter(|s| s.0 != UNDEFINED) {
        if let Some(order) = order.filter(|&o| o != UNDEFINED)
            && let Err(e) = tree(space, order, record_type, fault)
        {
            fault(e.context(format!("order of creation of the {what}")));
        }
        // A heap that does not open has said so when it was read.
        let manager = FractalHeap::open(space, heap).map_or(UNDEFINED, |h| h.free_space());
        if manager != UNDEFINED
            && let Err(e) = free_space::check(space, manager)
        {
            fault(e.context(format!("free space of the heap of {what}")));
        }
    }
}

fn tree(space: &Space, address: u64, record_type: u8, fault: &mut dyn FnMut(Error)) -> Result<()> {
    Tree::open(space, address, record_type)?.walk(&mut |_| Ok(()), &mut |e| {
        fault(e);
        Ok(())
    })
}
