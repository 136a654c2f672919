//! Messages of groups: link (type 0x0006), link info (0x0002), group info (0x000A) and symbol table (0x0011).

use super::take_bytes;
use crate::error::{Error, Result};
use crate::format::hdf5::parse::{Cursor, Sizes};
use crate::model::{Link, LinkTarget, NodeId};
use crate::shape::Name;
use bytes::Bytes;

/// Parses a link message in `bytes`.
pub fn parse(bytes: &Bytes, mut c: Cursor<'_>, sizes: Sizes) -> Result<Link> {
    let version = c.u8()?;
    if version != 1 {
        return Err(Error::unsupported(format!("link message version {version}")));
    }
    let flags = c.u8()?;
    if flags & 0xe0 != 0 {
        return Err(c.corrupt(format!("link flags {flags:#04x}")));
    }
    let class = if flags & 0x08 != 0 { c.u8()? } else { 0 };
    let creation_order = if flags & 0x04 != 0 { Some(c.u64()? as i64) } else { None };
    if flags & 0x10 != 0 {
        // The name's character set: names are kept as bytes.
        c.skip(1)?;
    }
    let length = c.uint(1 << (flags & 0x03))?;
    if length == 0 {
        return Err(c.corrupt("a link without a name"));
    }
    let name = Name::from(c.take_u64(length)?);
    let target = match class {
        0 => LinkTarget::Hard(NodeId::Address(c.address(sizes)?)),
        1 => {
            let length = u64::from(c.u16()?);
            LinkTarget::Soft(Name::from(c.take_u64(length)?))
        }
        2..=63 => return Err(c.corrupt(format!("link class {class}"))),
        class => {
            let length = u64::from(c.u16()?);
            let data = take_bytes(bytes, &mut c, length)?;
            if class == 64 { external(&data, &c)? } else { LinkTarget::UserDefined { class, data } }
        }
    };
    Ok(Link { name, target, creation_order })
}

/// The data of an external link: version and flags, file, path.
fn external(data: &Bytes, outer: &Cursor<'_>) -> Result<LinkTarget> {
    let mut c = Cursor::new(data, "external link", outer.offset().saturating_sub(data.len() as u64));
    let version = c.u8()? >> 4;
    if version != 0 {
        return Err(Error::unsupported(format!("external link version {version}")));
    }
    let file = Name::from(c.c_string()?);
    let path = Name::from(c.c_string()?);
    Ok(LinkTarget::External { file, path })
}

/// A parsed link info message: where links are that do not stand in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// Whether the order of creation is tracked.
    pub tracks_order: bool,
    /// Fractal heap of the link messages; undefined if all are in the header.
    pub heap: u64,
    /// Version 2 B-tree over the names.
    pub names: u64,
    /// Version 2 B-tree over the order of creation, where it is indexed.
    pub order: Option<u64>,
}

impl LinkInfo {
    /// Parses the message.
    pub fn parse(mut c: Cursor<'_>, sizes: Sizes) -> Result<Self> {
        let version = c.u8()?;
        if version != 0 {
            return Err(Error::unsupported(format!("link info message version {version}")));
        }
        let flags = c.u8()?;
        if flags & !0x03 != 0 {
            return Err(c.corrupt(format!("link info flags {flags:#04x}")));
        }
        let tracks_order = flags & 0x01 != 0;
        if tracks_order {
            let _largest = c.u64()?;
        }
        let heap = c.address(sizes)?;
        let names = c.address(sizes)?;
        let order = if flags & 0x02 != 0 { Some(c.address(sizes)?) } else { None };
        Ok(LinkInfo { tracks_order, heap, names, order })
    }
}

/// A parsed symbol table message: the links of an old-style group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolTable {
    /// Version 1 B-tree over the names.
    pub btree: u64,
    /// Local heap of the names.
    pub heap: u64,
}

impl SymbolTable {
    /// Parses the message.
    pub fn parse(mut c: Cursor<'_>, sizes: Sizes) -> Result<Self> {
        Ok(SymbolTable { btree: c.address(sizes)?, heap: c.address(sizes)? })
    }
}
