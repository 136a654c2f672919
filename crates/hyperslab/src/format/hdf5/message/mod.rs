//! The messages of object headers, parsed from their bytes (specification, section IV.A.2).
//!
//! Parsers here are pure: what a message points to is followed by `object`, `group`, `attribute` and `index`.

pub mod attribute;
pub mod dataspace;
pub mod datatype;
pub mod extension;
pub mod external;
pub mod fill;
pub mod filter;
pub mod layout;
pub mod link;
pub mod selection;
pub mod shared;
#[cfg(test)]
mod tests;

use super::parse::Cursor;
use crate::error::Result;
use crate::shape::to_usize;
use bytes::Bytes;

/// The type numbers of messages.
pub mod kind {
    /// Ignored.
    pub const NIL: u16 = 0x00;
    /// Extents.
    pub const DATASPACE: u16 = 0x01;
    /// Where the links of a new-style group are.
    pub const LINK_INFO: u16 = 0x02;
    /// Element type.
    pub const DATATYPE: u16 = 0x03;
    /// Fill value, old form.
    pub const FILL_OLD: u16 = 0x04;
    /// Fill value.
    pub const FILL: u16 = 0x05;
    /// A link.
    pub const LINK: u16 = 0x06;
    /// External data files.
    pub const EXTERNAL_FILES: u16 = 0x07;
    /// Data layout.
    pub const LAYOUT: u16 = 0x08;
    /// A message that only tests of the reference library write.
    pub const BOGUS: u16 = 0x09;
    /// Estimates for a new-style group.
    pub const GROUP_INFO: u16 = 0x0a;
    /// Filter pipeline.
    pub const FILTERS: u16 = 0x0b;
    /// An attribute.
    pub const ATTRIBUTE: u16 = 0x0c;
    /// A comment on the object.
    pub const COMMENT: u16 = 0x0d;
    /// Modification time, old form.
    pub const MODIFIED_OLD: u16 = 0x0e;
    /// Where the shared message table is.
    pub const SHARED_TABLE: u16 = 0x0f;
    /// More messages elsewhere.
    pub const CONTINUATION: u16 = 0x10;
    /// Where the links of an old-style group are.
    pub const SYMBOL_TABLE: u16 = 0x11;
    /// Modification time.
    pub const MODIFIED: u16 = 0x12;
    /// Non-default B-tree K values.
    pub const BTREE_K: u16 = 0x13;
    /// Driver information.
    pub const DRIVER_INFO: u16 = 0x14;
    /// Where dense attributes are.
    pub const ATTRIBUTE_INFO: u16 = 0x15;
    /// Reference count.
    pub const REFERENCE_COUNT: u16 = 0x16;
    /// File space strategy and free-space managers.
    pub const FILE_SPACE: u16 = 0x17;
    /// Metadata cache image.
    pub const CACHE_IMAGE: u16 = 0x18;

    /// What people call a message.
    pub fn name(kind: u16) -> &'static str {
        match kind {
            NIL => "NIL message",
            DATASPACE => "dataspace message",
            LINK_INFO => "link info message",
            DATATYPE => "datatype message",
            FILL_OLD => "old fill value message",
            FILL => "fill value message",
            LINK => "link message",
            EXTERNAL_FILES => "external data files message",
            LAYOUT => "data layout message",
            BOGUS => "bogus message",
            GROUP_INFO => "group info message",
            FILTERS => "filter pipeline message",
            ATTRIBUTE => "attribute message",
            COMMENT => "object comment message",
            MODIFIED_OLD => "old modification time message",
            SHARED_TABLE => "shared message table message",
            CONTINUATION => "continuation message",
            SYMBOL_TABLE => "symbol table message",
            MODIFIED => "modification time message",
            BTREE_K => "B-tree K values message",
            DRIVER_INFO => "driver info message",
            ATTRIBUTE_INFO => "attribute info message",
            REFERENCE_COUNT => "reference count message",
            FILE_SPACE => "file space info message",
            CACHE_IMAGE => "metadata cache image message",
            _ => "unknown message",
        }
    }
}

/// A message as it stands in an object header.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its type number, one of [`kind`].
    pub kind: u16,
    /// Bit 0: constant; bit 1: shared, the body says where it is; bits 3 and 7: what to do if it is unknown.
    pub flags: u8,
    /// Place in the order of creation of attributes, where tracked.
    pub creation_order: Option<u16>,
    /// The body.
    pub bytes: Bytes,
    /// File offset of the body, for messages to people.
    pub offset: u64,
}

impl Message {
    /// Whether the body only says where the message is.
    pub fn is_shared(&self) -> bool {
        self.flags & 0x02 != 0
    }

    /// A cursor over the body.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.bytes, kind::name(self.kind), self.offset)
    }
}

/// Takes `length` bytes at the cursor, which runs over `bytes`, without copying.
pub(crate) fn take_bytes(bytes: &Bytes, c: &mut Cursor<'_>, length: u64) -> Result<Bytes> {
    let start = c.position();
    let length = to_usize(length)?;
    c.skip(length)?;
    // The cursor runs over the same bytes; a shorter buffer gives an empty part instead of a panic.
    Ok(if start + length <= bytes.len() { bytes.slice(start..start + length) } else { Bytes::new() })
}
