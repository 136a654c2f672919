//! Dense groups: link messages in a fractal heap, found through version 2 B-trees (record types 5 and 6).

use crate::error::{Context, Error, Result};
use crate::format::hdf5::btree::v2::Tree;
use crate::format::hdf5::file::Space;
use crate::format::hdf5::heap::FractalHeap;
use crate::format::hdf5::message::link::{self, LinkInfo};
use crate::format::hdf5::parse::{Cursor, UNDEFINED, lookup3};
use crate::model::Link;
use crate::shape::Name;
use bytes::Bytes;

const RECORD: &str = "version 2 B-tree record of a link";

/// Record type of the tree over names: hash, heap identifier.
const BY_NAME: u8 = 5;
/// Record type of the tree over the order of creation: number, heap identifier.
const BY_ORDER: u8 = 6;

/// Bytes of a heap identifier.
const ID: usize = 7;

fn parse(space: &Space, bytes: &Bytes) -> Result<Link> {
    link::parse(bytes, Cursor::new(bytes, "link message in a fractal heap", 0), space.sizes())
}

/// Visits every link; those that cannot be read as errors.
pub(super) fn links(space: &Space, info: &LinkInfo, visit: &mut dyn FnMut(Result<Link>)) -> Result<()> {
    let space = &space.scoped();
    let heap = FractalHeap::open(space, info.heap)?;
    // The tree over names always exists; old files may have the other one only.
    let (address, kind, skip) = match info.order {
        Some(order) if info.names == UNDEFINED => (order, BY_ORDER, 8),
        _ => (info.names, BY_NAME, 4),
    };
    if address == UNDEFINED {
        return Ok(());
    }
    let tree = Tree::open(space, address, kind)?;
    let mut faults = Vec::new();
    tree.walk(
        &mut |record| {
            let mut c = Cursor::new(record, RECORD, 0);
            c.skip(skip)?;
            let id = c.take(ID)?;
            visit(heap.object(id).and_then(|bytes| parse(space, &bytes)));
            Ok(())
        },
        &mut |e| {
            faults.push(e);
            Ok(())
        },
    )?;
    faults.into_iter().for_each(|e| visit(Err(e)));
    Ok(())
}

/// Finds one link by the hash of its name; names of equal hash are in the order of their bytes.
pub(super) fn link(space: &Space, info: &LinkInfo, name: &Name) -> Result<Option<Link>> {
    let space = &space.scoped();
    if info.names == UNDEFINED {
        let mut found = None;
        links(space, info, &mut |link| {
            if let Ok(link) = link
                && link.name == *name
            {
                found = Some(link);
            }
        })?;
        return Ok(found);
    }
    let heap = FractalHeap::open(space, info.heap)?;
    let tree = Tree::open(space, info.names, BY_NAME)?;
    let hash = lookup3(name.as_bytes());
    let mut found = None;
    let record = tree.search(&mut |record| {
        let mut c = Cursor::new(record, RECORD, 0);
        let order = c.u32()?.cmp(&hash);
        if order.is_ne() {
            return Ok(order);
        }
        let link = heap.object(c.take(ID)?).and_then(|bytes| parse(space, &bytes));
        let link = link.context(|| format!("link {name}"))?;
        let order = link.name.cmp(name);
        found = Some(link);
        Ok(order)
    })?;
    match (record, found) {
        (None, _) => Ok(None),
        (Some(_), Some(link)) => Ok(Some(link)),
        (Some(_), None) => Err(Error::corrupt(RECORD, 0, "a record without a link")),
    }
}
