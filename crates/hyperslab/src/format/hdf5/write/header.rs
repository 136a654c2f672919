//! Object headers, written (specification, IV.A.1): version 1 for early files, version 2 since.
//!
//! An object is known by the address of its header, and the first block of a header has the length that it was made with:
//! messages that no longer fit go on in another block.

use super::disk::Disk;
use super::encoder::Encoder;
use crate::error::{Error, Result};
use crate::format::hdf5::message::kind;
use crate::format::hdf5::parse::Sizes;

/// A message to be written.
#[derive(Clone, Debug)]
pub(super) struct NewMessage {
    /// Its type.
    pub(super) kind: u16,
    /// As stored.
    pub(super) flags: u8,
    /// Place in the order of creation, for attributes.
    pub(super) order: Option<u16>,
    /// Its body.
    pub(super) body: Vec<u8>,
}

impl NewMessage {
    /// A message with flags 0.
    pub(super) fn new(kind: u16, body: Vec<u8>) -> Self {
        NewMessage { kind, flags: 0, order: None, body }
    }

    /// A message that does not change any more.
    pub(super) fn constant(kind: u16, body: Vec<u8>) -> Self {
        NewMessage { flags: 0x01, ..NewMessage::new(kind, body) }
    }
}

/// What stands in front of the messages.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    /// 1 or 2.
    pub(super) version: u8,
    /// Flags of version 2, without the bits for the width of the length.
    pub(super) flags: u8,
    /// Access, modification, change and birth, where flag 0x20 says that they are stored.
    pub(super) times: [u32; 4],
    /// When attributes are stored otherwise, where flag 0x10 says so.
    pub(super) phase_change: (u16, u16),
    /// Hard links and users; in version 2 a message.
    pub(super) references: u32,
}

/// Flag: the order of creation of attributes is tracked.
pub(super) const TRACKS_ORDER: u8 = 0x04;
/// Flag: and there is an index over it.
pub(super) const INDEXES_ORDER: u8 = 0x08;
const PHASE_CHANGE: u8 = 0x10;
const TIMES: u8 = 0x20;

/// Where the blocks of a header are: address and length, of the whole block.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks(pub(super) Vec<(u64, u64)>);

impl Prefix {
    /// Of an object that is made now.
    pub(super) fn new(version: u8, references: u32, tracks_order: bool) -> Self {
        let flags = if tracks_order { TRACKS_ORDER | INDEXES_ORDER } else { 0 };
        Prefix { version, flags, times: [0; 4], phase_change: (8, 6), references }
    }

    /// The times that are stored: access, modification, change and birth.
    pub(super) fn stored_times(&self) -> Option<[u32; 4]> {
        (self.version != 1 && self.flags & TIMES != 0).then_some(self.times)
    }

    /// The same with times, where its version has them.
    #[must_use]
    pub(super) fn with_times(mut self, times: Option<[u32; 4]>) -> Self {
        if let Some(times) = times.filter(|_| self.version != 1) {
            self.times = times;
            self.flags |= TIMES;
        }
        self
    }

    /// The most attributes that stand in the header.
    pub(super) fn max_compact(&self) -> usize {
        self.phase_change.0.into()
    }

    fn message_head(&self) -> usize {
        match self.version {
            1 => 8,
            _ if self.flags & TRACKS_ORDER != 0 => 6,
            _ => 4,
        }
    }

    /// Bytes that a message takes.
    fn size(&self, message: &NewMessage) -> usize {
        let body =
            if self.version == 1 { message.body.len().next_multiple_of(8) } else { message.body.len() };
        self.message_head() + body
    }

    /// Bytes in front of the messages of a block of `length` bytes of messages.
    fn head(&self, width: usize) -> usize {
        match self.version {
            1 => 16,
            _ => {
                let times = if self.flags & TIMES != 0 { 16 } else { 0 };
                let phase = if self.flags & PHASE_CHANGE != 0 { 4 } else { 0 };
                6 + times + phase + width
            }
        }
    }

    /// All bytes of the first block that holds `messages` and nothing else, but for room enough to be continued elsewhere.
    pub(super) fn exact(&self, messages: &[NewMessage], sizes: Sizes) -> u64 {
        let content: usize = messages.iter().map(|m| self.size(m)).sum();
        self.block(content.max(self.continuation(sizes)))
    }

    /// Bytes of the message that says where a header goes on.
    fn continuation(&self, sizes: Sizes) -> usize {
        let bytes = self.message_head() + usize::from(sizes.offset) + usize::from(sizes.length);
        if self.version == 1 { bytes.next_multiple_of(8) } else { bytes }
    }

    /// Whether a header whose first block has `length` bytes can be continued elsewhere.
    pub(super) fn has_room(&self, length: u64, sizes: Sizes) -> bool {
        self.block(self.continuation(sizes)) <= length
    }

    /// All bytes of the first block with room for `content` bytes of messages.
    pub(super) fn block(&self, content: usize) -> u64 {
        let trailer = if self.version == 1 { 0 } else { 4 };
        (self.head(width(content)) + content + trailer) as u64
    }

    fn message(&self, out: &mut Encoder, message: &NewMessage) -> Result<()> {
        let length =
            if self.version == 1 { message.body.len().next_multiple_of(8) } else { message.body.len() };
        let length = u16::try_from(length).map_err(|_| {
            let name = kind::name(message.kind);
            Error::unsupported(format!("a {name} of {length} bytes, an object header holds 65535"))
        })?;
        if self.version == 1 {
            out.u16(message.kind).u16(length).u8(message.flags).zeros(3).put(&message.body);
            out.zeros(usize::from(length) - message.body.len());
            return Ok(());
        }
        out.u8(message.kind as u8).u16(length).u8(message.flags);
        if self.flags & TRACKS_ORDER != 0 {
            out.u16(message.order.unwrap_or(0));
        }
        out.put(&message.body);
        Ok(())
    }

    /// Fills the rest of a block with what means nothing.
    fn gap(&self, out: &mut Encoder, bytes: usize) {
        let head = self.message_head();
        if bytes < head {
            // Version 1 has no such gaps: everything in it is a multiple of 8.
            out.zeros(bytes);
            return;
        }
        let mut left = bytes;
        while left > 0 {
            if left < head {
                out.zeros(left);
                return;
            }
            let body = (left - head).min(0xffff & !7);
            if self.version == 1 {
                out.u16(kind::NIL).u16(body as u16).zeros(4);
            } else {
                out.u8(kind::NIL as u8).u16(body as u16).zeros(head - 3);
            }
            out.zeros(body);
            left -= head + body;
        }
    }

    /// Writes the header. `first` is the first block; what does not fit there goes into one that is allocated.
    ///
    /// The order of messages is kept but for those that are moved, and the messages of the first block come first.
    pub(super) fn write(
        &self,
        disk: &mut Disk,
        first: (u64, u64),
        messages: &[NewMessage],
    ) -> Result<Blocks> {
        let trailer = if self.version == 1 { 0 } else { 4 };
        // The width of the length is that of the block's room, whatever fills it.
        let (width, room) = [1usize, 2, 4, 8]
            .into_iter()
            .filter(|_| self.version != 1)
            .filter_map(|w| Some((w, (first.1 as usize).checked_sub(self.head(w) + trailer)?)))
            .find(|&(w, room)| w == 8 || room < 1 << (8 * w))
            .or_else(|| Some((4, (first.1 as usize).checked_sub(16)?)))
            .filter(|_| first.1 < 1 << 32)
            .ok_or_else(|| Error::invalid("an object header without room"))?;
        let total: usize = messages.iter().map(|m| self.size(m)).sum();
        let sizes = disk.sizes();
        let link = self.continuation(sizes);
        let mut here: Vec<&NewMessage> = Vec::new();
        let mut there: Vec<&NewMessage> = Vec::new();
        let mut used = 0;
        let mut blocks = Blocks(vec![first]);
        let mut continuation = None;
        if total <= room {
            here.extend(messages);
            used = total;
        } else {
            if link > room {
                return Err(Error::unsupported("an object header without room for a continuation"));
            }
            for message in messages {
                let size = self.size(message);
                if used + size + link <= room {
                    used += size;
                    here.push(message);
                } else {
                    there.push(message);
                }
            }
            let mut out = Encoder::new(sizes);
            if self.version != 1 {
                out.put(b"OCHK");
            }
            there.iter().try_for_each(|m| self.message(&mut out, m))?;
            if self.version != 1 {
                out.checksum();
            }
            let bytes = out.finish();
            let address = disk.place(&bytes)?;
            blocks.0.push((address, bytes.len() as u64));
            let mut body = Encoder::new(sizes);
            body.address(address).length(bytes.len() as u64);
            continuation = Some(NewMessage::new(kind::CONTINUATION, body.finish()));
            used += link;
        }
        let mut out = Encoder::new(sizes);
        let gap = room - used;
        if self.version == 1 {
            // A gap too small for a message cannot be: sizes are multiples of 8, and so is a head.
            let count = messages.len() + usize::from(continuation.is_some()) + self.gaps(gap);
            let count =
                u16::try_from(count).map_err(|_| Error::unsupported("65536 messages of one object"))?;
            out.u8(1).u8(0).u16(count).u32(self.references).u32(room as u32).u32(0);
        } else {
            let code = width.ilog2() as u8;
            out.put(b"OHDR").u8(2).u8(self.flags & !0x03 | code);
            if self.flags & TIMES != 0 {
                self.times.iter().for_each(|&t| {
                    out.u32(t);
                });
            }
            if self.flags & PHASE_CHANGE != 0 {
                out.u16(self.phase_change.0).u16(self.phase_change.1);
            }
            out.uint(room as u64, width);
        }
        for message in here.into_iter().chain(&continuation) {
            self.message(&mut out, message)?;
        }
        self.gap(&mut out, gap);
        if self.version != 1 {
            out.checksum();
        }
        disk.put(first.0, &out.finish())?;
        Ok(blocks)
    }

    /// NIL messages in a gap.
    fn gaps(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.message_head() + (0xffff & !7))
    }
}

/// Bytes of the length of version 2 for a block of `content` bytes of messages.
fn width(content: usize) -> usize {
    match content {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}
