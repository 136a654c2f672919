//! The attribute message (type 0x000C, versions 1 to 3) and the attribute info message (type 0x0015).

use super::take_bytes;
use crate::error::{Error, Result};
use crate::format::hdf5::parse::{Cursor, Sizes};
use crate::shape::Name;
use bytes::Bytes;

/// A part of an attribute message that is itself a message.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its bytes.
    pub bytes: Bytes,
    /// Where they are in the file.
    pub offset: u64,
    /// Whether they only say where it is.
    pub shared: bool,
}

/// A parsed attribute message.
#[derive(Clone, Debug)]
pub struct AttributeMessage {
    /// Name without its NUL.
    pub name: Name,
    /// Element type.
    pub datatype: Part,
    /// Extents.
    pub dataspace: Part,
    /// Elements, and what may follow them.
    pub data: Bytes,
}

impl AttributeMessage {
    /// Parses the message in `bytes`; `named` gets the name as soon as it is known.
    pub fn parse(bytes: &Bytes, mut c: Cursor<'_>, named: &mut Option<Name>) -> Result<Self> {
        let version = c.u8()?;
        let flags = c.u8()?;
        if !(1..=3).contains(&version) {
            return Err(Error::unsupported(format!("attribute message version {version}")));
        }
        let flags = if version == 1 { 0 } else { flags };
        if flags & !0x03 != 0 {
            return Err(c.corrupt(format!("attribute flags {flags:#04x}")));
        }
        let name_size = u64::from(c.u16()?);
        let datatype_size = u64::from(c.u16()?);
        let dataspace_size = u64::from(c.u16()?);
        if version == 3 {
            // The name's character set: names are kept as bytes.
            c.skip(1)?;
        }
        let mut part = |size: u64, shared: bool| -> Result<Part> {
            let offset = c.offset();
            let bytes = take_bytes(bytes, &mut c, size)?;
            if version == 1 {
                c.skip((size.next_multiple_of(8) - size) as usize)?;
            }
            Ok(Part { bytes, offset, shared })
        };
        let name = part(name_size, false)?.bytes;
        let name = name.split(|&b| b == 0).next().unwrap_or(&name);
        *named = Some(Name::from(name));
        let datatype = part(datatype_size, flags & 0x01 != 0)?;
        let dataspace = part(dataspace_size, flags & 0x02 != 0)?;
        let rest = c.remaining() as u64;
        let data = take_bytes(bytes, &mut c, rest)?;
        Ok(AttributeMessage { name: Name::from(name), datatype, dataspace, data })
    }
}

/// A parsed attribute info message: where attributes are that do not stand in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeInfo {
    /// Whether the order of creation is tracked.
    pub tracks_order: bool,
    /// Fractal heap of the attribute messages; undefined if all are in the header.
    pub heap: u64,
    /// Version 2 B-tree over the names.
    pub names: u64,
    /// Version 2 B-tree over the order of creation, where it is indexed.
    pub order: Option<u64>,
}

impl AttributeInfo {
    /// Parses the message.
    pub fn parse(mut c: Cursor<'_>, sizes: Sizes) -> Result<Self> {
        let version = c.u8()?;
        if version != 0 {
            return Err(Error::unsupported(format!("attribute info message version {version}")));
        }
        let flags = c.u8()?;
        if flags & !0x03 != 0 {
            return Err(c.corrupt(format!("attribute info flags {flags:#04x}")));
        }
        let tracks_order = flags & 0x01 != 0;
        if tracks_order {
            let _largest = c.u16()?;
        }
        let heap = c.address(sizes)?;
        let names = c.address(sizes)?;
        let order = if flags & 0x02 != 0 { Some(c.address(sizes)?) } else { None };
        Ok(AttributeInfo { tracks_order, heap, names, order })
    }
}
