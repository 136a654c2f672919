//! One object header.

use crate::error::{Error, Result};
use crate::format::hdf5::file::Space;
use crate::format::hdf5::message::{Message, kind};
use crate::format::hdf5::parse::Cursor;
use bytes::Bytes;

const HEADER: &str = "object header";
const CONTINUATION: &str = "object header continuation";

/// Bytes that hold most headers; one read is enough for those.
pub(super) const USUAL: u64 = 512;

/// Times of an object, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Last read.
    pub access: u32,
    /// Data last written.
    pub modification: u32,
    /// Metadata last changed.
    pub change: u32,
    /// Made.
    pub birth: u32,
}

/// A parsed object header, continuations included.
#[derive(Clone, Debug)]
pub struct Header {
    /// Its address.
    pub address: u64,
    /// Its offset in the source.
    pub offset: u64,
    /// Version, 1 or 2.
    pub version: u8,
    /// Flags (version 2).
    pub flags: u8,
    /// Reference count (version 1; version 2 has a message for it).
    pub references: u32,
    /// Times, where stored.
    pub times: Option<Times>,
    /// Most compact and fewest dense attributes, where stored.
    pub phase_change: Option<(u16, u16)>,
    /// The messages that say something, in the order in which they stand.
    pub messages: Vec<Message>,
    /// Bytes of the header and all its continuations.
    pub length: u64,
    /// Address and length of each block: the header itself, then its continuations.
    pub blocks: Vec<(u64, u64)>,
}

/// A run of messages.
struct Block {
    bytes: Bytes,
    /// Where messages start and end in it.
    start: usize,
    end: usize,
    /// File offset of the first byte.
    offset: u64,
}

impl Header {
    /// Reads the header at `address`.
    pub fn open(space: &Space, address: u64) -> Result<Header> {
        let (mut header, continuations) = Header::begin(space, address)?;
        header.follow(space, continuations)?;
        Ok(header)
    }

    /// Reads the first block of the header at `address`, and where the others are.
    pub(super) fn begin(space: &Space, address: u64) -> Result<(Header, Vec<(u64, u64)>)> {
        let bytes = space.read_up_to(HEADER, address, USUAL)?;
        let mut c = space.cursor(&bytes, HEADER, address);
        let offset = c.offset();
        let mut header = Header {
            address,
            offset,
            version: 1,
            flags: 0,
            references: 1,
            times: None,
            phase_change: None,
            messages: Vec::new(),
            length: 0,
            blocks: Vec::new(),
        };
        let (start, length) = match c.rest() {
            // What comes before the checksum can be verified says how long the header is.
            [b'O', b'H', b'D', b'R', ..] => header.late(&mut c).map_err(Error::torn)?,
            [1, ..] => header.early(&mut c)?,
            _ => return Err(c.corrupt("no object header here").torn()),
        };
        // Version 2 has a checksum behind the messages.
        let trailer: u64 = if header.version == 1 { 0 } else { 4 };
        let total = (start as u64).saturating_add(length).saturating_add(trailer);
        let bytes = match usize::try_from(total).ok().filter(|&n| n <= bytes.len()) {
            Some(n) => bytes.slice(..n),
            None => space.read(HEADER, address, total).map_err(Error::torn)?,
        };
        let end = bytes.len().saturating_sub(trailer as usize);
        if header.version == 2 {
            let mut c = space.cursor(&bytes, HEADER, address);
            c.skip(end)?;
            c.checksum()?;
        }
        header.length = total;
        header.blocks.push((address, total));
        let mut continuations = Vec::new();
        header.block(space, &Block { bytes, start, end, offset }, &mut continuations)?;
        Ok((header, continuations))
    }

    /// The prefix of version 1: where messages start, and how many bytes they have.
    fn early(&mut self, c: &mut Cursor<'_>) -> Result<(usize, u64)> {
        c.skip(2)?;
        let _messages = c.u16()?;
        self.references = c.u32()?;
        let length = c.u32()?;
        c.skip(4)?;
        Ok((c.position(), length.into()))
    }

    /// The prefix of version 2: where messages start, and how many bytes they have.
    fn late(&mut self, c: &mut Cursor<'_>) -> Result<(usize, u64)> {
        c.signature(b"OHDR")?;
        self.version = c.u8()?;
        if self.version != 2 {
            return Err(c.corrupt(format!("version {} behind the signature of version 2", self.version)));
        }
        self.flags = c.u8()?;
        if self.flags & 0xc0 != 0 {
            return Err(c.corrupt(format!("flags {:#04x}", self.flags)));
        }
        if self.flags & 0x20 != 0 {
            let (access, modification, change, birth) = (c.u32()?, c.u32()?, c.u32()?, c.u32()?);
            self.times = Some(Times { access, modification, change, birth });
        }
        if self.flags & 0x10 != 0 {
            self.phase_change = Some((c.u16()?, c.u16()?));
        }
        let length = c.uint(1 << (self.flags & 0x03))?;
        Ok((c.position(), length))
    }

    /// Collects the messages of all continuations.
    fn follow(&mut self, space: &Space, mut continuations: Vec<(u64, u64)>) -> Result<()> {
        let mut next = 0;
        while let Some(&(address, length)) = continuations.get(next) {
            next += 1;
            self.blocks.push((address, length));
            // Blocks do not overlap, so that together they are no longer than the file: this ends every circle.
            self.length = self.length.saturating_add(length);
            if self.length > space.room(self.length) {
                return Err(self.corrupt("continued for more bytes than the file has"));
            }
            let bytes = space.read(CONTINUATION, address, length)?;
            let mut c = space.cursor(&bytes, CONTINUATION, address);
            if self.version == 2 {
                c = c.sealed();
            }
            let offset = c.offset();
            let (start, end) = if self.version == 1 {
                (0, bytes.len())
            } else {
                let end = bytes.len().saturating_sub(4);
                c.signature(b"OCHK")?;
                c.skip(end.saturating_sub(4))?;
                c.checksum()?;
                (4, end)
            };
            self.block(space, &Block { bytes, start, end, offset }, &mut continuations)?;
        }
        Ok(())
    }

    fn block(&mut self, space: &Space, block: &Block, continuations: &mut Vec<(u64, u64)>) -> Result<()> {
        let Some(body) = block.bytes.get(..block.end) else {
            return Err(self.corrupt("a block shorter than its parts"));
        };
        let mut c = Cursor::new(body, HEADER, block.offset);
        c.skip(block.start)?;
        let tracks_order = self.flags & 0x04 != 0;
        let prefix = match (self.version, tracks_order) {
            (1, _) => 8,
            (_, false) => 4,
            (_, true) => 6,
        };
        // Fewer bytes than a message has are a gap; version 1 has none.
        while c.remaining() >= prefix || self.version == 1 && c.remaining() > 0 {
            let here = c.clone();
            let (kind, size, flags);
            let mut creation_order = None;
            if self.version == 1 {
                kind = c.u16()?;
                size = c.u16()?;
                flags = c.u8()?;
                c.skip(3)?;
            } else {
                kind = u16::from(c.u8()?);
                size = c.u16()?;
                flags = c.u8()?;
                if tracks_order {
                    creation_order = Some(c.u16()?);
                }
            }
            let (start, offset) = (c.position(), c.offset());
            let mut body = Cursor::new(c.take(usize::from(size))?, kind::name(kind), offset);
            match kind {
                kind::NIL => continue,
                kind::CONTINUATION => {
                    let sizes = space.sizes();
                    continuations.push((body.address(sizes)?, body.length(sizes)?));
                    continue;
                }
                _ if kind > kind::CACHE_IMAGE && flags & 0x80 != 0 => {
                    return Err(Error::unsupported(format!(
                        "message type {kind:#06x}, which readers of the object must know"
                    ))
                    .at(HEADER, here.offset()));
                }
                _ => {}
            }
            // Shares the block's memory.
            let bytes = block.bytes.slice(start..start + usize::from(size));
            space.budget().charge(size_of::<Message>() as u64)?;
            self.messages.push(Message { kind, flags, creation_order, bytes, offset });
        }
        Ok(())
    }

    /// The first message of a kind.
    pub fn find(&self, kind: u16) -> Option<&Message> {
        self.messages.iter().find(|m| m.kind == kind)
    }

    /// All messages of a kind.
    pub fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |m| m.kind == kind)
    }

    /// Bytes that the header takes in memory.
    pub fn memory(&self) -> u64 {
        // Small headers lie in a buffer of the usual size.
        self.length.max(USUAL) + (self.messages.len() * size_of::<Message>()) as u64
    }

    /// An error of this header.
    #[cold]
    pub fn corrupt(&self, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::corrupt(HEADER, self.offset, message)
    }
}
