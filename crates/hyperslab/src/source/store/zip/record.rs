//! Records of a zip file as they are written (APPNOTE 4.3): the same for the same files, without times.

use super::directory::Entry;
use crate::error::{Error, Result};

/// The first day that a zip file knows, in place of a time of change.
const DAY: u16 = 1 << 5 | 1;

/// Names are UTF-8.
const UTF8: u16 = 1 << 11;

/// A regular file that all may read, on Unix.
const MODE: u32 = 0o100_644 << 16;

const ALL: u32 = u32::MAX;

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Record<'a> {
    pub(super) name: &'a str,
    pub(super) method: u16,
    pub(super) crc: u32,
    /// Bytes in the zip file.
    pub(super) stored: u64,
    /// Bytes that come out.
    pub(super) length: u64,
    /// Where its local header is.
    pub(super) header: u64,
}

impl<'a> Record<'a> {
    /// A file of another zip file, its bytes as they are.
    pub(super) fn copied(name: &'a str, entry: &Entry, header: u64) -> Record<'a> {
        let Entry { method, crc, stored, length, .. } = *entry;
        Record { name, method, crc, stored, length, header }
    }

    fn is_long(&self) -> bool {
        self.stored.max(self.length) >= u64::from(ALL)
    }

    fn flags(&self) -> u16 {
        if self.name.is_ascii() { 0 } else { UTF8 }
    }

    /// What stands before its bytes.
    pub(super) fn local(&self) -> Result<Vec<u8>> {
        let sizes = if self.is_long() { vec![self.length, self.stored] } else { Vec::new() };
        let extra = zip64(&sizes);
        let mut out = b"PK\x03\x04".to_vec();
        out.extend(self.common(self.is_long(), extra.len())?);
        out.extend(self.name.as_bytes());
        out.extend(extra);
        Ok(out)
    }

    /// What the directory says of it.
    pub(super) fn central(&self) -> Result<Vec<u8>> {
        let far = self.header >= u64::from(ALL);
        let mut sizes = if self.is_long() { vec![self.length, self.stored] } else { Vec::new() };
        sizes.extend(far.then_some(self.header));
        let extra = zip64(&sizes);
        let mut out = b"PK\x01\x02".to_vec();
        // Made on Unix.
        out.extend([version(self.is_long() || far) as u8, 3]);
        out.extend(self.common(self.is_long() || far, extra.len())?);
        // No comment, first part, binary.
        out.extend([0; 6]);
        out.extend(MODE.to_le_bytes());
        out.extend(short(self.header).to_le_bytes());
        out.extend(self.name.as_bytes());
        out.extend(extra);
        Ok(out)
    }

    /// The fields that both have, in the order in which both have them.
    fn common(&self, large: bool, extra: usize) -> Result<Vec<u8>> {
        let name = u16::try_from(self.name.len())
            .map_err(|_| Error::unsupported(format!("a name of {} bytes in a zip file", self.name.len())))?;
        let mut out = Vec::with_capacity(26);
        for field in [version(large), self.flags(), self.method, 0, DAY] {
            out.extend(field.to_le_bytes());
        }
        let (stored, length) =
            if self.is_long() { (ALL, ALL) } else { (short(self.stored), short(self.length)) };
        for field in [self.crc, stored, length] {
            out.extend(field.to_le_bytes());
        }
        out.extend(name.to_le_bytes());
        // At most three sizes.
        out.extend((extra as u16).to_le_bytes());
        Ok(out)
    }
}

/// The version of the format that is needed to read it.
fn version(large: bool) -> u16 {
    if large { 45 } else { 20 }
}

/// A size, or the sign that it stands elsewhere.
fn short(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(ALL)
}

/// The extra field with sizes that do not fit.
fn zip64(sizes: &[u64]) -> Vec<u8> {
    if sizes.is_empty() {
        return Vec::new();
    }
    let length = (sizes.len() * 8) as u16;
    let head = [1u16, length].into_iter().flat_map(u16::to_le_bytes);
    head.chain(sizes.iter().flat_map(|size| size.to_le_bytes())).collect()
}

/// What stands behind a directory of `length` bytes at `start`.
pub(super) fn end(entries: u64, start: u64, length: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let large = entries >= u64::from(u16::MAX) || start >= u64::from(ALL) || length >= u64::from(ALL);
    if large {
        let here = start.saturating_add(length);
        out.extend(b"PK\x06\x06");
        out.extend(44u64.to_le_bytes());
        out.extend([45, 3, 45, 0]);
        out.extend([0; 8]);
        out.extend([entries, entries, length, start].iter().flat_map(|n| n.to_le_bytes()));
        out.extend(b"PK\x06\x07\0\0\0\0");
        out.extend(here.to_le_bytes());
        out.extend(1u32.to_le_bytes());
    }
    let count = if large { u16::MAX } else { entries as u16 };
    let (length, start) = if large { (ALL, ALL) } else { (short(length), short(start)) };
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, count].iter().flat_map(|n| n.to_le_bytes()));
    out.extend([length, start].iter().flat_map(|n| n.to_le_bytes()));
    out.extend([0, 0]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: u64 = 5 << 32;

    fn record(stored: u64, header: u64) -> Record<'static> {
        Record { name: "a/b", method: 0, crc: 7, stored, length: stored, header }
    }

    fn u64_at(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn sizes_that_do_not_fit_stand_in_an_extra_field() {
        let (small, large) = (record(5, 9), record(LARGE, LARGE + 1));
        assert_eq!((small.local().unwrap().len(), small.central().unwrap().len()), (33, 49));
        let local = large.local().unwrap();
        assert_eq!((local[4], &local[18..26], &local[33..37]), (45, &[0xff; 8][..], &[1, 0, 16, 0][..]));
        assert_eq!((u64_at(&local, 37), u64_at(&local, 45)), (LARGE, LARGE));
        let central = large.central().unwrap();
        assert_eq!((&central[42..46], &central[49..53]), (&[0xff; 4][..], &[1, 0, 24, 0][..]));
        assert_eq!((u64_at(&central, 53), u64_at(&central, 69)), (LARGE, LARGE + 1));
        // A short file far behind has only its place there.
        let far = record(5, LARGE).central().unwrap();
        assert_eq!((&far[49..53], u64_at(&far, 53), far.len()), (&[1, 0, 8, 0][..], LARGE, 61));
        assert_eq!(record(5, LARGE).local().unwrap().len(), 33);
    }

    #[test]
    fn many_files_need_the_large_end() {
        assert_eq!(end(3, 10, 20).len(), 22);
        for end in [end(65_535, 10, 20), end(3, LARGE, 20)] {
            assert_eq!(end.len(), 56 + 20 + 22);
            assert!(end.starts_with(b"PK\x06\x06") && end[56..].starts_with(b"PK\x06\x07"));
            assert_eq!(u64_at(&end, 64), u64_at(&end, 40) + u64_at(&end, 48));
        }
    }
}
