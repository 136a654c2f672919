//! Old-style groups: a version 1 B-tree over names in a local heap, its leaves symbol table nodes (specification,
//! III.A.1, III.B, III.C, III.D).

use crate::error::{Context, Error, Result};
use crate::format::hdf5::btree::v1::{Node, NodeType};
use crate::format::hdf5::file::Space;
use crate::format::hdf5::heap::LocalHeap;
use crate::format::hdf5::message::link::SymbolTable;
use crate::format::hdf5::parse::UNDEFINED;
use crate::model::{Link, LinkTarget, NodeId};
use crate::shape::Name;
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::HashSet;

const NODE: &str = "symbol table node";

/// Bytes of a child node that are fetched ahead.
const CHILD: u64 = 512;

/// The cache type of an entry that is a soft link.
const SOFT: u32 = 2;

/// Visits every link in the order of names; those that cannot be read as errors.
pub(super) fn links(space: &Space, table: SymbolTable, visit: &mut dyn FnMut(Result<Link>)) -> Result<()> {
    if table.btree == UNDEFINED {
        return Ok(());
    }
    let space = &space.scoped();
    let heap = LocalHeap::open(space, table.heap)?;
    let root = open(space, table.btree)?;
    let mut walk = Walk { space, heap: &heap, visit, seen: HashSet::from([table.btree]) };
    walk.node(&root, 0)
}

fn open(space: &Space, address: u64) -> Result<Node> {
    Node::open(space, address, NodeType::Group, usize::from(space.sizes().length))
}

struct Walk<'a> {
    space: &'a Space,
    heap: &'a LocalHeap,
    visit: &'a mut dyn FnMut(Result<Link>),
    /// Nodes met so far: each is met once, in a tree.
    seen: HashSet<u64>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, depth: u32) -> Result<()> {
        self.space.limits().check_depth("B-tree nodes of a group", depth)?;
        self.space.prefetch((0..node.len()).filter_map(|i| Some((node.child(i).ok()?, CHILD))));
        for i in 0..node.len() {
            // A part that cannot be read hides its own links only.
            let done = node.child(i).and_then(|address| self.child(node, address, depth));
            if let Err(e) = done {
                (self.visit)(Err(e));
            }
        }
        Ok(())
    }

    fn child(&mut self, node: &Node, address: u64, depth: u32) -> Result<()> {
        if !self.seen.insert(address) {
            return Err(Error::corrupt(
                "version 1 B-tree node",
                self.space.base().saturating_add(node.address()),
                format!("the child at {address:#x} was met before"),
            ));
        }
        if node.level() > 0 {
            let child = open_child(self.space, node, address)?;
            return self.node(&child, depth + 1);
        }
        for entry in SymbolNode::open(self.space, address)?.entries(self.space) {
            (self.visit)(entry.and_then(|e| e.link(self.heap)));
        }
        Ok(())
    }
}

/// Opens a node that must be one level below `node`.
fn open_child(space: &Space, node: &Node, address: u64) -> Result<Node> {
    let child = open(space, address)?;
    if child.level() + 1 != node.level() {
        return Err(Error::corrupt(
            "version 1 B-tree node",
            space.base().saturating_add(address),
            format!("level {} below level {}", child.level(), node.level()),
        ));
    }
    Ok(child)
}

/// Finds one link: child *i* holds the names behind key *i*, up to and with key *i* + 1.
pub(super) fn link(space: &Space, table: SymbolTable, name: &Name) -> Result<Option<Link>> {
    if table.btree == UNDEFINED {
        return Ok(None);
    }
    let space = &space.scoped();
    let heap = LocalHeap::open(space, table.heap)?;
    let wanted = name.as_bytes();
    let mut node = open(space, table.btree)?;
    loop {
        let (mut low, mut high) = (0, node.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let key = node.key(middle + 1)?.length(space.sizes())?;
            if heap.text(key)? < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == node.len() {
            return Ok(None);
        }
        let address = node.child(low)?;
        if node.level() > 0 {
            // Levels fall, so that this ends.
            node = open_child(space, &node, address)?;
            continue;
        }
        let symbols = SymbolNode::open(space, address)?;
        for entry in symbols.entries(space) {
            let entry = entry?;
            match heap.text(entry.name)?.cmp(wanted) {
                Ordering::Equal => return entry.link(&heap).map(Some),
                Ordering::Less => {}
                Ordering::Greater => break,
            }
        }
        return Ok(None);
    }
}

/// A symbol table node.
struct SymbolNode {
    bytes: Bytes,
    address: u64,
    count: usize,
}

/// One entry of it.
struct Entry {
    name: u64,
    header: u64,
    /// Heap offset of the value, if it is a soft link.
    soft: Option<u64>,
}

impl SymbolNode {
    fn open(space: &Space, address: u64) -> Result<SymbolNode> {
        let head = space.read(NODE, address, 8)?;
        let mut c = space.cursor(&head, NODE, address);
        c.signature(b"SNOD")?;
        let version = c.u8()?;
        if version != 1 {
            return Err(c.corrupt(format!("version {version}, only 1 is known")));
        }
        c.skip(1)?;
        let count = usize::from(c.u16()?);
        let entry = 2 * usize::from(space.sizes().offset) + 24;
        let bytes = space.read(NODE, address.saturating_add(8), (count * entry) as u64)?;
        Ok(SymbolNode { bytes, address, count })
    }

    fn entries(&self, space: &Space) -> impl Iterator<Item = Result<Entry>> {
        let sizes = space.sizes();
        let mut c = space.cursor(&self.bytes, NODE, self.address.saturating_add(8));
        (0..self.count).map(move |_| {
            let name = c.address(sizes)?;
            let header = c.address(sizes)?;
            let kind = c.u32()?;
            c.skip(4)?;
            let mut scratch = c.clone();
            c.skip(16)?;
            let soft = if kind == SOFT { Some(u64::from(scratch.u32()?)) } else { None };
            Ok(Entry { name, header, soft })
        })
    }
}

impl Entry {
    fn link(&self, heap: &LocalHeap) -> Result<Link> {
        let name = Name::from(heap.text(self.name)?);
        let target = match self.soft {
            Some(value) => {
                LinkTarget::Soft(Name::from(heap.text(value).context(|| format!("soft link {name}"))?))
            }
            None => LinkTarget::Hard(NodeId::Address(self.header)),
        };
        Ok(Link { name, target, creation_order: None })
    }
}
