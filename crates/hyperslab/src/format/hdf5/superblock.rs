//! The superblock (specification, II.A): versions 0 to 3, anywhere behind a user block.

use super::message::link::SymbolTable;
use super::parse::{Cursor, Sizes, UNDEFINED, lookup3};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::source::{ByteRange, Source};

/// The eight bytes that start every superblock.
pub const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

const SUPERBLOCK: &str = "superblock";
const DRIVER_BLOCK: &str = "driver information block";

/// The longest superblock: version 1 with 8-byte addresses.
const LONGEST: u64 = 136;

/// A writer has the file open, or died with it open.
const OPEN_FOR_WRITING: u32 = 0x01;
/// A single writer has it open for concurrent readers.
const OPEN_FOR_SWMR: u32 = 0x04;

/// A parsed superblock. Addresses are relative to `offset`.
#[derive(Clone, Debug)]
pub struct Superblock {
    /// Where it stands in the source, which is also address 0: the length of the user block.
    pub offset: u64,
    /// Version.
    pub version: u8,
    /// Sizes of addresses and lengths.
    pub sizes: Sizes,
    /// Status flags.
    pub flags: u32,
    /// The base address that is stored; only its distance to `offset` matters.
    pub stored_base: u64,
    /// Offset in the source at which the file ends, by what is stored.
    pub end: u64,
    /// Object header of the superblock extension (versions 2 and 3).
    pub extension: Option<u64>,
    /// Driver information block (versions 0 and 1).
    pub driver_block: Option<u64>,
    /// Object header of the root group.
    pub root: u64,
    /// Cached symbol table of the root group (versions 0 and 1).
    pub root_table: Option<SymbolTable>,
    /// B-tree K values of groups, leaf and internal, and of chunk indexes (versions 0 and 1).
    pub btree_k: Option<(u16, u16, Option<u16>)>,
}

impl Superblock {
    /// Where the signature is: at 0, 512, 1024, 2048, …; `None` if nowhere.
    pub fn find(source: &dyn Source) -> Result<Option<u64>> {
        let length = source.len()?;
        let mut offset = 0u64;
        while offset.checked_add(8).is_some_and(|end| end <= length) {
            let mut found = [0; 8];
            source.read_into(offset, &mut found)?;
            if &found == SIGNATURE {
                return Ok(Some(offset));
            }
            offset = if offset == 0 { 512 } else { offset.saturating_mul(2) };
        }
        Ok(None)
    }

    /// Reads the superblock at `offset`.
    pub fn open(source: &dyn Source, offset: u64) -> Result<Superblock> {
        let length = LONGEST.min(source.len()?.saturating_sub(offset));
        let bytes = source.read(&[ByteRange::new(offset, length)]).at(SUPERBLOCK, offset)?;
        let bytes = bytes.first().map(|b| b.as_ref()).unwrap_or_default();
        Superblock::parse(bytes, offset)
    }

    /// Parses the superblock in `bytes`, which stand at `offset` of the source.
    pub fn parse(bytes: &[u8], offset: u64) -> Result<Superblock> {
        let mut c = Cursor::new(bytes, SUPERBLOCK, offset);
        if c.take(8)? != SIGNATURE {
            return Err(c.corrupt("the signature is missing"));
        }
        match c.u8()? {
            version @ 0..=1 => Self::early(&mut c, offset, version),
            // A writer that opens or closes the file writes it anew.
            version @ 2..=3 => Self::late(&mut c, offset, version).map_err(Error::torn),
            version => {
                Err(Error::unsupported(format!("superblock version {version}")).at(SUPERBLOCK, offset))
            }
        }
    }

    fn early(c: &mut Cursor<'_>, offset: u64, version: u8) -> Result<Superblock> {
        for what in ["free-space storage", "root group symbol table entry"] {
            zero(c, what)?;
        }
        c.skip(1)?;
        zero(c, "shared header message format")?;
        let sizes = sizes(c)?;
        c.skip(1)?;
        let leaf = c.u16()?;
        let internal = c.u16()?;
        if leaf == 0 || internal == 0 {
            return Err(c.corrupt("a B-tree K value of groups is zero"));
        }
        let flags = c.u32()?;
        check_flags(c, flags)?;
        let chunk = if version == 1 {
            let k = c.u16()?;
            c.skip(2)?;
            if k == 0 {
                return Err(c.corrupt("the B-tree K value of chunk indexes is zero"));
            }
            Some(k)
        } else {
            None
        };
        let stored_base = c.address(sizes)?;
        let _free_space = c.address(sizes)?;
        let stored_end = c.address(sizes)?;
        let driver_block = Some(c.address(sizes)?).filter(|&a| a != UNDEFINED);
        // The root group's symbol table entry: name, header, cache type, reserved bytes, scratch pad.
        c.skip(usize::from(sizes.offset))?;
        let root = c.address(sizes)?;
        let cached = c.u32()?;
        c.skip(4)?;
        let mut scratch = Cursor::new(c.take(16)?, SUPERBLOCK, c.offset());
        let root_table = if cached == 1 {
            Some(SymbolTable { btree: scratch.address(sizes)?, heap: scratch.address(sizes)? })
        } else {
            None
        };
        Ok(Superblock {
            offset,
            version,
            sizes,
            flags,
            stored_base,
            end: rebased(stored_end, stored_base, offset),
            extension: None,
            driver_block,
            root,
            root_table,
            btree_k: Some((leaf, internal, chunk)),
        })
    }

    fn late(c: &mut Cursor<'_>, offset: u64, version: u8) -> Result<Superblock> {
        let sizes = sizes(c)?;
        let flags = u32::from(c.u8()?);
        check_flags(c, flags)?;
        let stored_base = c.address(sizes)?;
        let extension = Some(c.address(sizes)?).filter(|&a| a != UNDEFINED);
        let stored_end = c.address(sizes)?;
        let root = c.address(sizes)?;
        c.checksum()?;
        Ok(Superblock {
            offset,
            version,
            sizes,
            flags,
            stored_base,
            end: rebased(stored_end, stored_base, offset),
            extension,
            driver_block: None,
            root,
            root_table: None,
            btree_k: None,
        })
    }

    /// Whether a single writer may be adding to the file (SWMR): what is stored changes between reads.
    pub fn is_live(&self) -> bool {
        self.version >= 3 && self.flags & OPEN_FOR_SWMR != 0
    }

    /// Offset in a source of `length` bytes behind the last one that belongs to the file.
    ///
    /// A SWMR writer does not keep the stored end up to date while it appends: then the length counts. The end of a file
    /// that no such writer has open is what the file says it is.
    pub fn data_end(&self, length: u64) -> u64 {
        if self.is_live() { length } else { length.min(self.end) }
    }

    /// Whether a writer has the file open, or did not close it.
    pub fn is_open_for_writing(&self) -> bool {
        self.flags & OPEN_FOR_WRITING != 0
    }

    /// Its bytes as stored (versions 2 and 3).
    pub fn bytes(&self, source: &dyn Source) -> Result<Vec<u8>> {
        let mut bytes = vec![0; 16 + 4 * usize::from(self.sizes.offset)];
        source.read_into(self.offset, &mut bytes)?;
        Ok(bytes)
    }

    /// The same bytes with no flags, another end (an offset in the source), and their checksum (version 3).
    pub fn cleared(&self, bytes: &[u8], end: u64) -> Result<Vec<u8>> {
        let size = usize::from(self.sizes.offset);
        let mut out = bytes.to_vec();
        // Signature, version and sizes stand before the flags; the addresses of base and extension before the end.
        let stored = end.saturating_sub(self.offset).saturating_add(self.stored_base).to_le_bytes();
        let parts = (out.len() == 16 + 4 * size && size <= 8, stored.get(..size));
        let (true, Some(stored)) = parts else {
            return Err(Error::invalid("these are not the bytes of a superblock of version 3"));
        };
        out.get_mut(11..12).into_iter().for_each(|flags| flags.fill(0));
        out.get_mut(12 + 2 * size..12 + 3 * size).into_iter().for_each(|field| field.copy_from_slice(stored));
        let body = out.len() - 4;
        let sum = lookup3(out.get(..body).unwrap_or_default()).to_le_bytes();
        out.get_mut(body..).into_iter().for_each(|field| field.copy_from_slice(&sum));
        Ok(out)
    }

    /// Fails if the driver that wrote the file spread it over several.
    pub fn check_driver(&self, source: &dyn Source) -> Result<()> {
        let Some(address) = self.driver_block else { return Ok(()) };
        let at = self.offset.saturating_add(address);
        let bytes = source.read(&[ByteRange::new(at, 16)]).at(DRIVER_BLOCK, at)?;
        let bytes = bytes.first().map(|b| b.as_ref()).unwrap_or_default();
        let mut c = Cursor::new(bytes, DRIVER_BLOCK, at);
        zero(&mut c, "driver information block")?;
        c.skip(7)?;
        check_driver(c.take(8)?)
    }

    /// Fails if the source is shorter than the file says.
    pub fn check_end(&self, length: u64) -> Result<()> {
        if length < self.end && !self.is_live() {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("the file is truncated: it has {length} bytes of {}", self.end),
            )
            .at(SUPERBLOCK, self.offset)
            .hint("it was cut off while being copied or written; get it again"));
        }
        Ok(())
    }
}

/// Refuses the drivers that spread a file over several.
pub(super) fn check_driver(name: &[u8]) -> Result<()> {
    let what = match name {
        b"NCSAfami" => "a member of a family of files (HDF5's family driver)",
        b"NCSAmult" => "a member of a set of files (HDF5's multi driver)",
        _ => return Ok(()),
    };
    Err(Error::unsupported(what).hint("join the members into one file with h5repart or h5repack"))
}

fn zero(c: &mut Cursor<'_>, what: &str) -> Result<()> {
    let here = c.clone();
    match c.u8()? {
        0 => Ok(()),
        version => Err(here.corrupt(format!("{what} version {version}, only 0 is known"))),
    }
}

fn sizes(c: &mut Cursor<'_>) -> Result<Sizes> {
    let here = c.clone();
    let (offset, length) = (c.u8()?, c.u8()?);
    match (offset, length) {
        (2 | 4 | 8, 2 | 4 | 8) => Ok(Sizes { offset, length }),
        (2 | 4 | 8 | 16 | 32, 2 | 4 | 8 | 16 | 32) => {
            Err(Error::unsupported(format!("addresses of {offset} and lengths of {length} bytes")))
        }
        _ => Err(here.corrupt(format!("addresses of {offset} and lengths of {length} bytes"))),
    }
}

fn check_flags(c: &Cursor<'_>, flags: u32) -> Result<()> {
    if flags & !0x07 != 0 {
        return Err(c.corrupt(format!("status flags {flags:#x}")));
    }
    Ok(())
}

/// The stored end, moved as the superblock was moved since.
fn rebased(end: u64, base: u64, offset: u64) -> u64 {
    if offset >= base { end.saturating_add(offset - base) } else { end.saturating_sub(base - offset) }
}
