//! What references point to: old object and region references, and the references of HDF5 1.12.

use super::file::Space;
use super::heap::GlobalHeap;
use super::message::selection;
use super::parse::{Cursor, UNDEFINED};
use crate::dtype::ReferenceKind;
use crate::error::{Error, Result};
use crate::model::{HeapRef, NodeId, Reference, RegionSelection, SpaceSelection};
use crate::shape::Name;
use bytes::Bytes;

/// Flag of a reference whose target is in another file.
const EXTERNAL: u8 = 0x01;

/// What `heap` must answer for: the object header of a dataset in, its rank out.
pub trait Ranks {
    /// Rank of the dataset whose object header is at `address`.
    fn rank(&self, address: u64) -> Result<usize>;
}

/// Resolves a stored reference.
pub fn resolve(
    space: &Space,
    heap: &GlobalHeap,
    ranks: &dyn Ranks,
    kind: ReferenceKind,
    stored: &[u8],
) -> Result<Reference> {
    let sizes = space.sizes();
    let mut c = Cursor::new(stored, "reference", 0);
    if stored.iter().all(|&b| b == 0) {
        return Ok(Reference::Null);
    }
    match kind {
        ReferenceKind::Object => match c.address(sizes)? {
            0 | UNDEFINED => Ok(Reference::Null),
            address => Ok(Reference::Object(NodeId::Address(address))),
        },
        ReferenceKind::Region => {
            let address = c.address(sizes)?;
            if address == 0 || address == UNDEFINED {
                return Ok(Reference::Null);
            }
            let bytes = heap.object(HeapRef { address, index: c.u32()? })?;
            let mut c = Cursor::new(&bytes, "region reference in the global heap", 0);
            let address = c.address(sizes)?;
            region(ranks, address, &mut c)
        }
        ReferenceKind::Standard => standard(space, heap, ranks, &mut c),
    }
}

/// A reference of HDF5 1.12: type and flags, then either the object itself or where the rest is in the global heap.
fn standard(space: &Space, heap: &GlobalHeap, ranks: &dyn Ranks, c: &mut Cursor<'_>) -> Result<Reference> {
    let sizes = space.sizes();
    let class = c.u8()?;
    let flags = c.u8()?;
    let external = flags & EXTERNAL != 0;
    if class == 2 && !external {
        let address = token(c)?;
        return Ok(Reference::Object(NodeId::Address(address)));
    }
    let size = c.u32()?;
    let address = c.address(sizes)?;
    if address == 0 || address == UNDEFINED {
        return Ok(Reference::Null);
    }
    if external {
        return Err(Error::unsupported("a reference to an object in another file"));
    }
    let bytes = heap.object(HeapRef { address, index: c.u32()? })?;
    let bytes = trim(&bytes, size);
    let mut c = Cursor::new(&bytes, "reference in the global heap", 0);
    let address = token(&mut c)?;
    match class {
        3 => {
            // The bytes of the selection, and the rank of its dataspace.
            let _length = c.u32()?;
            let _rank = c.u32()?;
            region(ranks, address, &mut c)
        }
        4 => {
            let length = u64::from(c.u16()?);
            let name = Name::from(c.take_u64(length)?);
            Ok(Reference::Attribute(NodeId::Address(address), name))
        }
        _ => Err(c.corrupt(format!("reference type {class}"))),
    }
}

fn trim(bytes: &Bytes, size: u32) -> Bytes {
    bytes.slice(..bytes.len().min(size as usize))
}

/// An object token: its length, then an address.
fn token(c: &mut Cursor<'_>) -> Result<u64> {
    match c.u8()? {
        n @ 1..=16 => c.uint(usize::from(n)),
        n => Err(c.corrupt(format!("an object token of {n} bytes"))),
    }
}

fn region(ranks: &dyn Ranks, address: u64, c: &mut Cursor<'_>) -> Result<Reference> {
    let parsed = selection::parse(c)?;
    let rank = ranks.rank(address)?;
    if parsed.rank.is_some_and(|r| r != rank) && parsed.elements != SpaceSelection::None {
        return Err(c.corrupt(format!("a selection of rank {:?} in a dataset of rank {rank}", parsed.rank)));
    }
    Ok(Reference::Region(NodeId::Address(address), RegionSelection { rank, selection: parsed.elements }))
}
