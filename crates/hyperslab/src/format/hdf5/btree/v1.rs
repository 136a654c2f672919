//! Version 1 B-trees (specification, III.A.1): one node at a time. What keys mean, and how to walk, is up to the caller.

use crate::error::Result;
use crate::format::hdf5::file::Space;
use crate::format::hdf5::parse::Cursor;
use bytes::Bytes;

const NODE: &str = "version 1 B-tree node";

/// What a tree indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeType {
    /// Symbol table nodes of a group.
    Group,
    /// Chunks of a dataset.
    Chunk,
}

/// One node: `entries` children, with a key before the first, between each two and behind the last.
#[derive(Clone, Debug)]
pub struct Node {
    address: u64,
    level: u8,
    entries: usize,
    /// Keys and children, alternating.
    body: Bytes,
    key_size: usize,
    offset_size: usize,
    /// File offset of the body, for messages.
    body_at: u64,
}

impl Node {
    /// Reads the node at `address`, which must be of `kind`; a key has `key_size` bytes.
    pub fn open(space: &Space, address: u64, kind: NodeType, key_size: usize) -> Result<Self> {
        let sizes = space.sizes();
        let offset_size = usize::from(sizes.offset);
        let head_size = 8 + 2 * offset_size;
        let head = space.read(NODE, address, head_size as u64)?;
        let mut c = space.cursor(&head, NODE, address);
        c.signature(b"TREE")?;
        let wanted = match kind {
            NodeType::Group => 0,
            NodeType::Chunk => 1,
        };
        let found = c.u8()?;
        if found != wanted {
            return Err(c.corrupt(format!("node type {wanted} expected, {found} found")));
        }
        let level = c.u8()?;
        let entries = usize::from(c.u16()?);
        // At most 65535 × (key + address), and a key is at most 8 + 8 × 33 bytes.
        let body_size = entries * (key_size + offset_size) + key_size;
        let body_at = address.saturating_add(head_size as u64);
        let body = space.read(NODE, body_at, body_size as u64)?;
        let body_at = space.base().saturating_add(body_at);
        Ok(Node { address, level, entries, body, key_size, offset_size, body_at })
    }

    /// Where the node is.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Steps down to the leaves: 0 in a leaf, whose children are what the tree indexes.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Number of children.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there are no children.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// A cursor over key `i`, `i` from 0 to `len()`.
    pub fn key(&self, i: usize) -> Result<Cursor<'_>> {
        self.part(i, 0, self.key_size)
    }

    /// Address of child `i`.
    pub fn child(&self, i: usize) -> Result<u64> {
        let mut c = self.part(i, self.key_size, self.offset_size)?;
        c.address(crate::format::hdf5::parse::Sizes {
            offset: self.offset_size as u8,
            length: self.offset_size as u8,
        })
    }

    fn part(&self, i: usize, skip: usize, length: usize) -> Result<Cursor<'_>> {
        let step = self.key_size + self.offset_size;
        let start = i.checked_mul(step).and_then(|s| s.checked_add(skip));
        let bytes = start.and_then(|s| self.body.get(s..s.checked_add(length)?));
        let at = self.body_at.saturating_add(start.unwrap_or(0) as u64);
        match bytes {
            Some(bytes) => Ok(Cursor::new(bytes, NODE, at)),
            None => Err(crate::error::Error::corrupt(NODE, at, format!("there is no entry {i}"))),
        }
    }
}
