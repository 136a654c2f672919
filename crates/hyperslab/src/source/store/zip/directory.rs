//! The directory of a zip file (APPNOTE 4.3): end record, Zip64 records, central directory; and the local headers that
//! stand before the files. Everything is little-endian.

use crate::error::{Context, Error, Result};
use crate::limits::Limits;
use crate::source::{ByteRange, Source};
use bytes::Bytes;

pub(super) const LOCAL: &str = "zip local file header";
const END: &str = "zip end of central directory";
const END64: &str = "zip64 end of central directory";
const CENTRAL: &str = "zip central directory";

/// Bytes of an end record without its comment.
const END_LENGTH: usize = 22;
/// Bytes of the record that leads to the Zip64 end record.
const LOCATOR_LENGTH: usize = 20;
/// Bytes that are read from the end at once: the end record with the longest comment.
const TAIL: u64 = 64 << 10;

/// What the directory says of one file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    /// Bytes in the zip file.
    pub(super) stored: u64,
    /// Bytes that come out.
    pub(super) length: u64,
    /// Offset of the local header in the source.
    pub(super) header: u64,
    /// Where the directory begins, behind all files.
    pub(super) limit: u64,
    /// Lengths of name and extra field in the directory; most writers give the local header the same.
    variable: u64,
}

impl Entry {
    pub(super) fn is_stored(&self) -> bool {
        self.method == 0
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Fails if the file cannot be read or is too long.
    pub(super) fn check(&self, limits: &Limits) -> Result<()> {
        if self.is_encrypted() {
            return Err(Error::unsupported("encrypted files in a zip file").at(LOCAL, self.header));
        }
        match self.method {
            0 | 8 => {}
            method => {
                let what = format!("compression method {method} of zip files{}", method_name(method));
                return Err(Error::unsupported(what).at(LOCAL, self.header));
            }
        }
        if self.is_stored() && self.stored != self.length {
            let text = format!("stored as {} bytes, though it has {}", self.stored, self.length);
            return Err(Error::corrupt(CENTRAL, self.header, text));
        }
        if !self.is_stored() && self.length > limits.chunk {
            return Err(Error::limit("a deflated file in bytes", self.length.into(), limits.chunk.into()));
        }
        Ok(())
    }

    /// Bytes of the local header, if it has the same variable parts as the directory.
    pub(super) fn local_length(&self) -> u64 {
        30 + self.variable
    }

    /// Where the bytes of the file begin: behind its local header, which `bytes` begin with.
    pub(super) fn start(&self, bytes: &[u8]) -> Result<u64> {
        let mut c = Fields::new(bytes, LOCAL, self.header);
        if c.u32()? != 0x0403_4b50 {
            return Err(c.corrupt("the signature is missing"));
        }
        c.skip(22)?;
        let variable = u64::from(c.u16()?) + u64::from(c.u16()?);
        Ok(self.header.saturating_add(30 + variable))
    }

    /// Fails unless `bytes` have the checksum that is stored.
    pub(super) fn verify(&self, bytes: &[u8]) -> Result<()> {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        if crc.sum() != self.crc {
            return Err(Error::checksum(LOCAL, self.header, self.crc, crc.sum()));
        }
        Ok(())
    }
}

fn method_name(method: u16) -> &'static str {
    match method {
        9 => " (Deflate64)",
        12 => " (bzip2)",
        14 => " (LZMA)",
        93 => " (Zstandard)",
        95 => " (XZ)",
        _ => "",
    }
}

/// Where the central directory is and how much there is of it.
struct Place {
    offset: u64,
    length: u64,
    entries: u64,
    /// Bytes in front of the zip file, which its offsets do not count.
    before: u64,
}

/// Reads the names and entries of all files, in the order in which they stand.
pub(super) fn read(source: &dyn Source, limits: &Limits) -> Result<Vec<(String, Entry)>> {
    let length = source.len()?;
    let tail_length = length.min(TAIL + END_LENGTH as u64);
    let tail_offset = length - tail_length;
    let tail = only(source.read(&[ByteRange::new(tail_offset, tail_length)]).at(END, tail_offset)?)?;
    let place = find(source, &tail, tail_offset)?;
    if place.length > limits.metadata {
        return Err(Error::limit(CENTRAL, place.length.into(), limits.metadata.into()));
    }
    let from = place.offset.checked_sub(tail_offset);
    let to = from.and_then(|from| from.checked_add(place.length));
    let bytes = match (from, to) {
        // The end of most zip files has the whole directory.
        (Some(from), Some(to)) if to <= tail.len() as u64 => tail.slice(from as usize..to as usize),
        _ => only(source.read(&[ByteRange::new(place.offset, place.length)]).at(CENTRAL, place.offset)?)?,
    };
    parse(&bytes, &place)
}

fn only(mut answers: Vec<Bytes>) -> Result<Bytes> {
    answers.pop().ok_or_else(|| Error::new(crate::error::ErrorKind::Io, "the source gave no answer"))
}

/// Finds the end record in the tail of the file, and the directory through it.
fn find(source: &dyn Source, tail: &[u8], tail_offset: u64) -> Result<Place> {
    let records = tail.windows(END_LENGTH).enumerate().rev();
    let (at, record) = records
        .filter(|(_, record)| record.starts_with(b"PK\x05\x06"))
        // Its comment reaches to the end of the file; fewer bytes behind it than that, and it is none.
        .find(|(at, record)| {
            let comment = record.get(20..22).map_or(0, |b| usize::from(b[0]) | usize::from(b[1]) << 8);
            at + END_LENGTH + comment <= tail.len()
        })
        .ok_or_else(|| Error::corrupt(END, tail_offset, "no zip file: it has no end record"))?;
    let offset = tail_offset + at as u64;
    let mut c = Fields::new(record, END, offset);
    c.skip(4)?;
    let (disk, first) = (c.u16()?, c.u16()?);
    let (here, entries) = (c.u16()?, c.u16()?);
    let (length, start) = (c.u32()?, c.u32()?);
    let large = entries == u16::MAX || length == u32::MAX || start == u32::MAX;
    if large && let Some(place) = find64(source, tail, tail_offset, at)? {
        return Ok(place);
    }
    if disk != first || here != entries {
        return Err(Error::unsupported("zip files in several parts").at(END, offset));
    }
    placed(start.into(), length.into(), entries.into(), offset, END)
}

/// The place of a directory that ends at `end`; its own offset may not count what stands before the zip file.
fn placed(start: u64, length: u64, entries: u64, end: u64, structure: &'static str) -> Result<Place> {
    let offset = end.checked_sub(length);
    match offset.and_then(|offset| Some((offset, offset.checked_sub(start)?))) {
        Some((offset, before)) => Ok(Place { offset, length, entries, before }),
        None => Err(Error::corrupt(
            structure,
            end,
            format!("a central directory of {length} bytes at {start:#x} does not end before its end record"),
        )),
    }
}

fn find64(source: &dyn Source, tail: &[u8], tail_offset: u64, end: usize) -> Result<Option<Place>> {
    let locator = end.checked_sub(LOCATOR_LENGTH).and_then(|at| tail.get(at..end));
    let Some(locator) = locator.filter(|l| l.starts_with(b"PK\x06\x07")) else { return Ok(None) };
    let locator_offset = tail_offset + (end - LOCATOR_LENGTH) as u64;
    let mut c = Fields::new(locator, "zip64 end of central directory locator", locator_offset);
    c.skip(8)?;
    let stored = c.u64()?;
    // The record stands right before the locator, unless it has been extended; then its own offset has to be right.
    let mut found = None;
    for offset in [locator_offset.saturating_sub(56), stored] {
        let in_tail = offset.checked_sub(tail_offset).and_then(|at| tail.get(at as usize..)?.get(..56));
        let record = match in_tail {
            Some(record) => Bytes::copy_from_slice(record),
            None if offset.checked_add(56).is_some_and(|end| end <= locator_offset) => {
                only(source.read(&[ByteRange::new(offset, 56)]).at(END64, offset)?)?
            }
            None => continue,
        };
        if record.starts_with(b"PK\x06\x06") {
            found = Some((offset, record));
            break;
        }
    }
    let Some((offset, record)) = found else {
        return Err(Error::corrupt(END64, stored, "the signature is missing"));
    };
    let mut c = Fields::new(&record, END64, offset);
    c.skip(16)?;
    let (disk, first) = (c.u32()?, c.u32()?);
    let (here, entries) = (c.u64()?, c.u64()?);
    let (length, start) = (c.u64()?, c.u64()?);
    if disk != first || here != entries {
        return Err(Error::unsupported("zip files in several parts").at(END64, offset));
    }
    placed(start, length, entries, offset, END64).map(Some)
}

fn parse(bytes: &[u8], place: &Place) -> Result<Vec<(String, Entry)>> {
    // An entry has 46 bytes at least, so that the count cannot make the list long.
    let most = bytes.len() as u64 / 46;
    if place.entries > most {
        let text = format!("{} entries do not fit into {} bytes", place.entries, bytes.len());
        return Err(Error::corrupt(CENTRAL, place.offset, text));
    }
    let mut found = Vec::with_capacity(place.entries as usize);
    // Programs of Windows wrote all names so; in names with / a \ is a character as any other.
    let mut has_slash = false;
    let mut c = Fields::new(bytes, CENTRAL, place.offset);
    for _ in 0..place.entries {
        let here = c.clone();
        if c.u32()? != 0x0201_4b50 {
            return Err(here.corrupt("the signature of an entry is missing"));
        }
        c.skip(4)?;
        let (flags, method) = (c.u16()?, c.u16()?);
        c.skip(4)?;
        let (crc, stored, length) = (c.u32()?, u64::from(c.u32()?), u64::from(c.u32()?));
        let (name, extra, comment) = (c.u16()?, c.u16()?, c.u16()?);
        c.skip(8)?;
        let header = u64::from(c.u32()?);
        let variable = u64::from(name) + u64::from(extra);
        let name = c.take(name.into())?;
        let extra = c.take(extra.into())?;
        c.skip(comment.into())?;
        let mut sizes = [length, stored, header];
        widen(&mut sizes, Fields::new(extra, CENTRAL, here.offset()))?;
        let [length, stored, header] = sizes;
        let header = header.checked_add(place.before).filter(|&h| h < place.offset);
        let header = header.ok_or_else(|| here.corrupt("an entry for a file behind the directory"))?;
        has_slash |= name.strip_suffix(b"/").unwrap_or(name).contains(&b'/');
        // Names are UTF-8 or of a code page that agrees with it where keys are concerned.
        let name = match std::str::from_utf8(name) {
            Ok(name) => name.to_owned(),
            // No key has a NUL.
            Err(_) => format!("\0{}", String::from_utf8_lossy(name)),
        };
        let limit = place.offset;
        found.push((name, Entry { flags, method, crc, stored, length, header, limit, variable }));
    }
    for (name, _) in &mut found {
        if !has_slash && name.contains('\\') {
            *name = name.replace('\\', "/");
        }
        *name = name.strip_prefix("./").unwrap_or(name).trim_start_matches('/').to_owned();
    }
    Ok(found)
}

/// Takes from the Zip64 extra field what did not fit: those of length, stored length and offset that are all ones.
fn widen(sizes: &mut [u64; 3], mut extra: Fields<'_>) -> Result<()> {
    while extra.remaining() >= 4 {
        let (kind, length) = (extra.u16()?, extra.u16()?);
        // An extra field that is cut off says nothing; some writers pad with zeros.
        let Ok(body) = extra.take(length.into()) else { break };
        if kind == 1 {
            let mut body = Fields::new(body, "zip64 extra field", extra.offset());
            for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                *size = body.u64()?;
            }
            break;
        }
    }
    Ok(())
}

/// Little-endian fields one after the other.
#[derive(Clone)]
struct Fields<'a> {
    bytes: &'a [u8],
    structure: &'static str,
    offset: u64,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8], structure: &'static str, offset: u64) -> Self {
        Fields { bytes, structure, offset }
    }

    fn offset(&self) -> u64 {
        self.offset
    }

    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn corrupt(&self, text: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::corrupt(self.structure, self.offset, text)
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.bytes.split_at_checked(n) else {
            return Err(self.corrupt(format!("{n} bytes wanted, {} are left", self.bytes.len())));
        };
        self.bytes = rest;
        self.offset = self.offset.saturating_add(n as u64);
        Ok(taken)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(|_| ())
    }

    fn uint(&mut self, n: usize) -> Result<u64> {
        Ok(self.take(n)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn u16(&mut self) -> Result<u16> {
        // Two bytes were taken.
        Ok(self.uint(2)? as u16)
    }

    fn u32(&mut self) -> Result<u32> {
        // Four bytes were taken.
        Ok(self.uint(4)? as u32)
    }

    fn u64(&mut self) -> Result<u64> {
        self.uint(8)
    }
}
