//! The data layout message (type 0x0008, versions 1 to 5): where and how the elements of a dataset are stored.

use super::take_bytes;
use crate::error::{Error, Result};
use crate::format::hdf5::parse::{Cursor, Sizes};
use crate::shape::{Coord, MAX_RANK};
use bytes::Bytes;

/// A parsed data layout message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Version of the message, 1 to 5. From 5 on, chunk indexes store sizes of filtered chunks in the file's own length
    /// size.
    pub version: u8,
    /// How the elements are stored.
    pub class: LayoutClass,
}

/// How the elements are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutClass {
    /// In the message itself.
    Compact(Bytes),
    /// One run of bytes.
    Contiguous {
        /// Where; [`UNDEFINED`](crate::format::hdf5::parse::UNDEFINED) if never written or external.
        address: u64,
        /// Its length in bytes; versions 1 and 2 do not say.
        size: Option<u64>,
    },
    /// Chunks, found through an index.
    Chunked(Chunked),
    /// Mappings, as one object of the global heap.
    Virtual {
        /// Address of the heap collection; undefined if there are no mappings.
        address: u64,
        /// Object in it.
        index: u32,
    },
}

/// Chunked storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunked {
    /// Extents of a chunk in elements; one for each axis of the dataspace, none of them zero.
    pub chunk: Coord,
    /// Bytes of one element, as the message says (the datatype message decides).
    pub element_size: u64,
    /// The kind of index and what it was created with.
    pub index: IndexKind,
    /// Where the index is, or the chunks themselves (single chunk, implicit); undefined if never written.
    pub address: u64,
    /// Flag bit 0: edge chunks that reach over the extents are stored unfiltered.
    pub edge_unfiltered: bool,
}

/// The kinds of chunk index, with their creation parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Version 1 B-tree, node type 1 (layout versions 1 to 3).
    BtreeV1,
    /// The one chunk that there is.
    Single {
        /// Its encoded size and its filter mask, where it is filtered.
        filtered: Option<(u64, u32)>,
    },
    /// All chunks in a row, unfiltered.
    Implicit,
    /// Fixed array.
    FixedArray {
        /// Bits of the number of elements in a page of a data block.
        page_bits: u8,
    },
    /// Extensible array.
    ExtensibleArray {
        /// Bits needed for the number of elements.
        max_bits: u8,
        /// Elements in the index block.
        index_elements: u8,
        /// Fewest data block pointers in a secondary block.
        min_pointers: u8,
        /// Fewest elements in a data block.
        min_elements: u8,
        /// Bits of the number of elements in a page of a data block.
        page_bits: u8,
    },
    /// Version 2 B-tree, record type 10 or 11.
    BtreeV2 {
        /// Bytes of a node.
        node_size: u32,
        /// Percentage at which a node is split.
        split: u8,
        /// Percentage at which nodes are merged.
        merge: u8,
    },
}

impl IndexKind {
    /// What people call it.
    pub fn name(&self) -> &'static str {
        match self {
            IndexKind::BtreeV1 => "version 1 B-tree",
            IndexKind::Single { .. } => "single chunk",
            IndexKind::Implicit => "implicit",
            IndexKind::FixedArray { .. } => "fixed array",
            IndexKind::ExtensibleArray { .. } => "extensible array",
            IndexKind::BtreeV2 { .. } => "version 2 B-tree",
        }
    }
}

impl Layout {
    /// Parses the message in `bytes`.
    pub fn parse(bytes: &Bytes, mut c: Cursor<'_>, sizes: Sizes) -> Result<Layout> {
        let version = c.u8()?;
        let class = match version {
            1 | 2 => Self::early(bytes, &mut c, sizes)?,
            3..=5 => Self::late(bytes, &mut c, sizes, version)?,
            _ => return Err(Error::unsupported(format!("data layout message version {version}"))),
        };
        Ok(Layout { version, class })
    }

    fn early(bytes: &Bytes, c: &mut Cursor<'_>, sizes: Sizes) -> Result<LayoutClass> {
        let fields = usize::from(c.u8()?);
        let class = c.u8()?;
        c.skip(5)?;
        if fields == 0 || fields > MAX_RANK + 1 {
            return Err(c.corrupt(format!("{fields} dimension fields")));
        }
        match class {
            0 => {
                c.skip(4 * fields)?;
                let size = c.u32()?;
                Ok(LayoutClass::Compact(take_bytes(bytes, c, u64::from(size))?))
            }
            // The extents stand here too, cut to 32 bits: the dataspace message is the one to trust.
            1 => Ok(LayoutClass::Contiguous { address: c.address(sizes)?, size: None }),
            2 => Ok(LayoutClass::Chunked(Self::by_btree(c, fields, sizes)?)),
            _ => Err(c.corrupt(format!("data layout class {class}"))),
        }
    }

    fn late(bytes: &Bytes, c: &mut Cursor<'_>, sizes: Sizes, version: u8) -> Result<LayoutClass> {
        match (c.u8()?, version) {
            (0, _) => {
                let size = c.u16()?;
                Ok(LayoutClass::Compact(take_bytes(bytes, c, u64::from(size))?))
            }
            (1, _) => {
                Ok(LayoutClass::Contiguous { address: c.address(sizes)?, size: Some(c.length(sizes)?) })
            }
            (2, 3) => {
                let fields = usize::from(c.u8()?);
                Ok(LayoutClass::Chunked(Self::by_btree(c, fields, sizes)?))
            }
            (2, _) => Ok(LayoutClass::Chunked(Self::indexed(c, sizes)?)),
            (3, 4..) => Ok(LayoutClass::Virtual { address: c.address(sizes)?, index: c.u32()? }),
            (class, _) => Err(c.corrupt(format!("data layout class {class}"))),
        }
    }

    /// The chunked property of versions 1 to 3, behind the number of its dimension fields.
    fn by_btree(c: &mut Cursor<'_>, fields: usize, sizes: Sizes) -> Result<Chunked> {
        let address = c.address(sizes)?;
        let (chunk, element_size) = chunk_extents(c, fields, 4)?;
        Ok(Chunked { chunk, element_size, index: IndexKind::BtreeV1, address, edge_unfiltered: false })
    }

    /// The chunked property of versions 4 and 5.
    fn indexed(c: &mut Cursor<'_>, sizes: Sizes) -> Result<Chunked> {
        let flags = c.u8()?;
        if flags & !0x03 != 0 {
            return Err(c.corrupt(format!("chunk flags {flags:#04x}")));
        }
        let fields = usize::from(c.u8()?);
        let width = usize::from(c.u8()?);
        if width == 0 || width > 8 {
            return Err(c.corrupt(format!("chunk extents of {width} bytes")));
        }
        let (chunk, element_size) = chunk_extents(c, fields, width)?;
        let index = match c.u8()? {
            1 if flags & 0x02 != 0 => IndexKind::Single { filtered: Some((c.length(sizes)?, c.u32()?)) },
            1 => IndexKind::Single { filtered: None },
            2 => IndexKind::Implicit,
            3 => IndexKind::FixedArray { page_bits: c.u8()? },
            4 => IndexKind::ExtensibleArray {
                max_bits: c.u8()?,
                index_elements: c.u8()?,
                min_pointers: c.u8()?,
                min_elements: c.u8()?,
                page_bits: c.u8()?,
            },
            5 => IndexKind::BtreeV2 { node_size: c.u32()?, split: c.u8()?, merge: c.u8()? },
            kind => return Err(c.corrupt(format!("chunk index type {kind}"))),
        };
        let address = c.address(sizes)?;
        Ok(Chunked { chunk, element_size, index, address, edge_unfiltered: flags & 0x01 != 0 })
    }
}

/// Reads `fields` extents of `width` bytes, of which the last is the size of an element.
fn chunk_extents(c: &mut Cursor<'_>, fields: usize, width: usize) -> Result<(Coord, u64)> {
    if !(2..=MAX_RANK + 1).contains(&fields) {
        return Err(c.corrupt(format!("{fields} chunk extents")));
    }
    let mut chunk = Coord::new();
    for _ in 0..fields {
        let extent = c.uint(width)?;
        if extent == 0 {
            return Err(c.corrupt("a chunk extent is zero"));
        }
        chunk.push(extent);
    }
    let element_size = chunk.pop().unwrap_or(1);
    Ok((chunk, element_size))
}
