//! Links of groups, written: in the object header, in a fractal heap, or in a symbol table.

use super::btree1;
use super::btree2::{self, TreeKind};
use super::disk::Disk;
use super::encoder::Encoder;
use super::header::NewMessage;
use super::heap;
use super::local::Texts;
use super::message::{self, Places};
use crate::error::{Error, Result};
use crate::format::hdf5::message::kind;
use crate::format::hdf5::parse::{Sizes, UNDEFINED, lookup3};
use crate::model::LinkTarget;
use crate::shape::Name;

/// The most links in an object header, as the reference library has it.
pub(super) const MAX_COMPACT: usize = 8;

/// A link, with the address that a hard link leads to.
#[derive(Clone, Debug)]
pub(super) struct NewLink<'a> {
    pub(super) name: &'a Name,
    pub(super) target: &'a LinkTarget,
    pub(super) address: u64,
    pub(super) order: Option<i64>,
}

/// B-tree K values: half the number of entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupK {
    /// Of symbol table nodes.
    pub(super) leaf: u16,
    /// Of B-tree nodes.
    pub(super) internal: u16,
}

/// Symbol table of an old-style group: addresses of its B-tree and of its local heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) btree: u64,
    pub(super) heap: u64,
}

/// Whether links can stand in an object header.
pub(super) fn is_compact(links: &[NewLink<'_>]) -> bool {
    // A name or a value near to the length that a message has at most goes into a heap.
    let long = |link: &NewLink<'_>| {
        let value = match link.target {
            LinkTarget::Soft(path) => path.as_bytes().len(),
            LinkTarget::External { file, path } => file.as_bytes().len() + path.as_bytes().len(),
            LinkTarget::UserDefined { data, .. } => data.len(),
            LinkTarget::Hard(_) => 0,
        };
        link.name.as_bytes().len() + value > 60_000
    };
    links.len() <= MAX_COMPACT && !links.iter().any(long)
}

fn body(link: &NewLink<'_>, sizes: Sizes) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    message::link(&mut out, link.name, link.target, link.address, link.order)?;
    Ok(out.finish())
}

/// The messages of a new-style group, links in the object header.
pub(super) fn compact(links: &[NewLink<'_>], next: Option<u64>, sizes: Sizes) -> Result<Vec<NewMessage>> {
    let mut messages = info(&Places::compact(next), sizes);
    let mut links: Vec<&NewLink<'_>> = links.iter().collect();
    links.sort_by(|a, b| (a.order, a.name).cmp(&(b.order, b.name)));
    for link in links {
        messages.push(NewMessage::new(kind::LINK, body(link, sizes)?));
    }
    Ok(messages)
}

/// The messages of a new-style group that say where its links are.
pub(super) fn info(places: &Places, sizes: Sizes) -> Vec<NewMessage> {
    let mut out = Encoder::new(sizes);
    message::link_info(&mut out, places);
    vec![NewMessage::new(kind::LINK_INFO, out.finish())]
}

/// Writes links into a fractal heap with its indexes.
pub(super) fn dense(disk: &mut Disk, links: &[NewLink<'_>], next: Option<u64>) -> Result<Places> {
    let sizes = disk.sizes();
    let bodies = links.iter().map(|l| body(l, sizes)).collect::<Result<Vec<_>>>()?;
    let objects: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    let (heap, ids) = heap::write(disk, heap::LINKS, &objects)?;
    let mut by_name: Vec<(u32, &Name, &[u8])> =
        links.iter().zip(&ids).map(|(l, id)| (lookup3(l.name.as_bytes()), l.name, id.as_slice())).collect();
    by_name.sort();
    let mut records = Encoder::new(sizes);
    for (hash, _, id) in by_name {
        records.u32(hash).put(id);
    }
    let tree = TreeKind { record_type: 5, record_size: 11, node_size: 512 };
    let names = btree2::write(disk, tree, records.as_bytes())?;
    let mut order = UNDEFINED;
    if next.is_some() {
        let mut by_order: Vec<(i64, &[u8])> =
            links.iter().zip(&ids).map(|(l, id)| (l.order.unwrap_or(0), id.as_slice())).collect();
        by_order.sort();
        let mut records = Encoder::new(sizes);
        for (number, id) in by_order {
            records.u64(number as u64).put(id);
        }
        let tree = TreeKind { record_type: 6, record_size: 15, node_size: 512 };
        order = btree2::write(disk, tree, records.as_bytes())?;
    }
    Ok(Places { next, heap, names, order })
}

/// The message of an old-style group.
pub(super) fn table(table: Table, sizes: Sizes) -> NewMessage {
    let mut out = Encoder::new(sizes);
    out.address(table.btree).address(table.heap);
    NewMessage::new(kind::SYMBOL_TABLE, out.finish())
}

/// Whether an old-style group can hold a link.
pub(super) fn is_old(target: &LinkTarget) -> bool {
    matches!(target, LinkTarget::Hard(_) | LinkTarget::Soft(_))
}

/// Writes the symbol table of an old-style group. `kept` are addresses of a B-tree and a heap that others know.
pub(super) fn old(disk: &mut Disk, links: &[NewLink<'_>], k: GroupK, kept: Option<Table>) -> Result<Table> {
    let sizes = disk.sizes();
    let mut links: Vec<&NewLink<'_>> = links.iter().collect();
    links.sort_by_key(|l| l.name);
    let mut texts = Texts::new();
    let capacity = 2 * usize::from(k.leaf).max(1);
    let node_size = 8 + capacity * (2 * usize::from(sizes.offset) + 24);
    let mut children = Vec::new();
    let mut keys = vec![0u64];
    let nodes = links.len().div_ceil(capacity);
    let (share, more) = (links.len() / nodes.max(1), links.len() % nodes.max(1));
    let mut rest = links.as_slice();
    for i in 0..nodes {
        let (own, behind) = rest.split_at((share + usize::from(i < more)).min(rest.len()));
        rest = behind;
        let mut out = Encoder::new(sizes);
        out.put(b"SNOD").u8(1).u8(0).u16(own.len() as u16);
        let mut last = 0;
        for link in own {
            last = texts.add(link.name.as_bytes());
            match link.target {
                LinkTarget::Hard(_) => {
                    out.address(last).address(link.address).u32(0).zeros(4 + 16);
                }
                LinkTarget::Soft(path) => {
                    let value = u32::try_from(texts.add(path.as_bytes()))
                        .map_err(|_| Error::unsupported("a group with 4 GiB of names"))?;
                    out.address(last).address(UNDEFINED).u32(2).zeros(4).u32(value).zeros(12);
                }
                _ => return Err(Error::unsupported("external and user-defined links in an old-style group")),
            }
        }
        let mut bytes = out.finish();
        bytes.resize(node_size, 0);
        children.push(disk.place(&bytes)?);
        keys.push(last);
    }
    let keys: Vec<Vec<u8>> = keys
        .into_iter()
        .map(|key| {
            let mut out = Encoder::new(sizes);
            out.length(key);
            out.finish()
        })
        .collect();
    let tree = btree1::TreeKind { node_type: 0, k: k.internal, key_size: sizes.length.into() };
    let btree = btree1::write(disk, tree, &children, &keys, kept.map(|t| t.btree))?;
    let (heap, _) = texts.write(disk, kept.map(|t| t.heap))?;
    Ok(Table { btree, heap })
}
