//! The rollback journal: what stood in a file before it was changed, in a file beside it.
//!
//! ```text
//! journal = header segment*
//! header  = magic[8] version:u32 page:u32 length:u64 protected:u64 first:u32 0:u32 salt[16] 0:u32 crc:u32      64 bytes
//! segment = "SEGM" count:u32 end:u64 flags:u32 crc:u32 entry*count old*                                      24 bytes
//! entry   = page:u64 stored:u32 0:u32 new[8]:u32                                                              48 bytes
//! ```
//!
//! Numbers are little-endian, checksums CRC-32C. `length` is the length of the file before, and `protected` the end of what
//! belonged to its state; `first` is the checksum of its first page. An entry names a page of 4096 bytes; of a page that is
//! named for the first time the `stored` bytes that stood there below `protected` follow the entries, in their order. `new` are
//! the checksums of its eight sectors as they will be. `end` is how long the file may be by then, if flag 1 says that
//! nothing follows. The checksum of a segment covers the salt and all of the segment but the checksum itself.
//!
//! No page is changed before the segment that names it is on the disk. A journal is rolled back only into the file it was
//! made for, in a state in which the edit can have left it: each sector as it was, or as it was to be. So neither an edit by
//! another program since, nor another file of that name, is overwritten.

use super::disk::{DiskFile, read_up_to};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{Budget, Limits};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// Bytes that are kept, journaled and changed together. What is cast to `usize` in this module is bounded by it, or by the
/// length of a buffer in memory.
pub(super) const PAGE: u64 = 4096;
/// Bytes that a disk writes in one piece.
pub(super) const SECTOR: usize = 512;
const SECTORS: usize = PAGE as usize / SECTOR;

const MAGIC: [u8; 8] = *b"\x89HSLJ\r\n\x1a";
const VERSION: u32 = 1;
const HEADER: usize = 64;
const SEGMENT: usize = 24;
const ENTRY: usize = 48;
const LAST: u32 = 1;

/// What a page costs in memory, roughly.
const COST: u64 = 128;

/// Where the journal of a file is.
pub(super) fn path_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".hyperslab-journal");
    PathBuf::from(name)
}

fn crc(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, bytes)
}

/// Checksums of the sectors of a page, of which only the bytes below `protected` count.
pub(super) fn sectors(page: u64, bytes: &[u8], protected: u64) -> [u32; SECTORS] {
    let counted = protected.saturating_sub(page.saturating_mul(PAGE)).min(PAGE) as usize;
    let bytes = bytes.get(..counted.min(bytes.len())).unwrap_or(bytes);
    let mut out = [0; SECTORS];
    for (sum, sector) in out.iter_mut().zip(bytes.chunks(SECTOR)) {
        *sum = crc(0, sector);
    }
    out
}

/// The state of a file that a journal brings back.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// Length of the file.
    pub(super) length: u64,
    /// End of what belongs to the state.
    pub(super) protected: u64,
    /// Checksum of the protected part of the first page.
    pub(super) first: u32,
    /// Tells segments of this journal from those of an earlier one in the same place.
    pub(super) salt: [u8; 16],
}

impl Start {
    pub(super) fn new(first_page: &[u8], length: u64, protected: u64, salt: [u8; 16]) -> Self {
        let first = crc(0, first_page);
        Start { length, protected, first, salt }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend((PAGE as u32).to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out.extend(self.protected.to_le_bytes());
        out.extend(self.first.to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.salt);
        out.extend([0; 4]);
        let sum = crc(0, &out);
        out.extend(sum.to_le_bytes());
        out
    }

    fn parse(bytes: &[u8; HEADER]) -> Option<Start> {
        let (body, sum) = bytes.split_at(HEADER - 4);
        let good = body.starts_with(&MAGIC)
            && u32_at(body, 8)? == VERSION
            && u64::from(u32_at(body, 12)?) == PAGE
            && u32_at(sum, 0)? == crc(0, body);
        let (length, protected) = (u64_at(body, 16)?, u64_at(body, 24)?);
        let salt = body.get(40..56)?.try_into().ok()?;
        (good && protected <= length).then_some(Start { length, protected, first: u32_at(body, 32)?, salt })
    }

    /// Bytes of a page that belong to the state.
    pub(super) fn stored(&self, page: u64) -> usize {
        // At most a page.
        self.protected.saturating_sub(page.saturating_mul(PAGE)).min(PAGE) as usize
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// A page that is about to change.
pub(super) struct Change<'a> {
    pub(super) page: u64,
    /// What stands there below the protected end; `None` if an earlier segment holds it.
    pub(super) old: Option<Vec<u8>>,
    pub(super) new: &'a [u8],
}

/// The bytes of a segment. `end`: how long the file will be, if this is the last one.
pub(super) fn segment(start: &Start, changes: &[Change<'_>], end: Option<u64>) -> Vec<u8> {
    let old = changes.iter().filter_map(|c| c.old.as_ref()).map(Vec::len).sum::<usize>();
    let mut out = Vec::with_capacity(SEGMENT + ENTRY * changes.len() + old);
    out.extend(b"SEGM");
    out.extend((changes.len() as u32).to_le_bytes());
    out.extend(end.unwrap_or(0).to_le_bytes());
    out.extend(if end.is_some() { LAST } else { 0 }.to_le_bytes());
    out.extend([0; 4]);
    for change in changes {
        out.extend(change.page.to_le_bytes());
        out.extend((change.old.as_ref().map_or(0, Vec::len) as u32).to_le_bytes());
        out.extend([0; 4]);
        for sum in sectors(change.page, change.new, start.protected) {
            out.extend(sum.to_le_bytes());
        }
    }
    for old in changes.iter().filter_map(|c| c.old.as_ref()) {
        out.extend(old);
    }
    let sum = crc(crc(crc(0, &start.salt), &out[..20]), &out[24..]);
    out[20..24].copy_from_slice(&sum.to_le_bytes());
    out
}

/// What is known of a page that was to change.
#[derive(Clone, Debug)]
pub(super) struct Old {
    /// Where in the journal what stood there is.
    pub(super) at: u64,
    /// As the page was to be, each time.
    new: Vec<[u32; SECTORS]>,
}

/// A journal that was read: the segments that are whole, and so all that the file may have been changed by.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) file: Box<dyn DiskFile>,
    pub(super) path: PathBuf,
    pub(super) start: Start,
    pub(super) pages: BTreeMap<u64, Old>,
    /// How long the file may be, if the edit came to its end.
    end: Option<u64>,
}

impl Journal {
    /// Reads a journal. `None`: it has no segment that is whole, and nothing that belongs to the file was changed.
    pub(super) fn read(file: Box<dyn DiskFile>, path: PathBuf, limits: &Limits) -> Result<Option<Journal>> {
        let failed = |e| Error::io(format!("cannot read {}", path.display()), e);
        let length = file.file().metadata().map_err(failed)?.len();
        let mut head = [0; HEADER];
        if read_up_to(file.as_ref(), 0, &mut head).map_err(failed)? < HEADER {
            return Ok(None);
        }
        let Some(start) = Start::parse(&head) else { return Ok(None) };
        let budget = Budget::new("pages of a journal in memory", limits.metadata);
        let mut pages: BTreeMap<u64, Old> = BTreeMap::new();
        let (mut at, mut end) = (HEADER as u64, None);
        while end.is_none() && at < length {
            let Some((entries, last, next)) =
                read_segment(file.as_ref(), &start, at, length).map_err(failed)?
            else {
                break;
            };
            for (page, place, sums) in entries {
                budget.charge(COST)?;
                match (pages.get_mut(&page), place) {
                    (Some(known), None) => known.new.push(sums),
                    (None, Some(at)) => drop(pages.insert(page, Old { at, new: vec![sums] })),
                    _ => {
                        let text = format!("page {page} is there twice, or what stood there is not");
                        return Err(Error::corrupt("journal", at, text).context(path.display()));
                    }
                }
            }
            (at, end) = (next, last);
        }
        if pages.is_empty() {
            return Ok(None);
        }
        Ok(Some(Journal { file, path, start, pages, end }))
    }

    /// What stood in a page, below the protected end.
    pub(super) fn old(&self, page: u64) -> Result<Vec<u8>> {
        let failed = |e| Error::io(format!("cannot read {}", self.path.display()), e);
        let Some(old) = self.pages.get(&page) else { return Ok(Vec::new()) };
        let mut bytes = vec![0; self.start.stored(page)];
        let n = read_up_to(self.file.as_ref(), old.at, &mut bytes).map_err(failed)?;
        if n < bytes.len() {
            let text = "the journal became shorter while it was read";
            return Err(Error::new(ErrorKind::Truncated, text).context(self.path.display()));
        }
        Ok(bytes)
    }

    /// Fails unless `file` is in a state in which the edit can have left it.
    pub(super) fn verify(&self, file: &dyn DiskFile, name: &Path) -> Result<()> {
        let failed = |e| Error::io(format!("cannot read {}", name.display()), e);
        let changed = |what: String| {
            let text = format!(
                "{} does not fit {}: {what}; the file was changed after the edit that was interrupted, or is another one",
                self.path.display(),
                name.display()
            );
            Error::new(ErrorKind::Changed, text)
                .hint("look whether the file is what you want; if so, remove the journal; if not, restore it from a copy")
        };
        let length = file.file().metadata().map_err(failed)?.len();
        if length < self.start.protected {
            return Err(changed(format!("it has {length} bytes, {} before", self.start.protected)));
        }
        if let Some(end) = self.end.filter(|end| length > self.start.length.max(*end)) {
            return Err(changed(format!("it has {length} bytes, {end} at most")));
        }
        for (&page, old) in &self.pages {
            let before = self.old(page)?;
            let mut now = vec![0; before.len()];
            read_up_to(file, page.saturating_mul(PAGE), &mut now).map_err(failed)?;
            let sums = sectors(page, &now, self.start.protected);
            for (i, (now, before)) in now.chunks(SECTOR).zip(before.chunks(SECTOR)).enumerate() {
                if now != before && !old.new.iter().any(|new| new.get(i) == sums.get(i)) {
                    let at = page.saturating_mul(PAGE).saturating_add((i * SECTOR) as u64);
                    return Err(changed(format!(
                        "what stands at {at:#x} stood there neither before nor after"
                    )));
                }
            }
        }
        let mut first = vec![0; self.start.stored(0)];
        match self.pages.contains_key(&0) {
            true => first = self.old(0)?,
            false => drop(read_up_to(file, 0, &mut first).map_err(failed)?),
        }
        if crc(0, &first) != self.start.first {
            return Err(changed("its first bytes are those of another file".into()));
        }
        Ok(())
    }

    /// Fails if somebody made the journal who could not have changed the file.
    #[cfg(unix)]
    pub(super) fn check_owner(&self, file: &Metadata) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        let failed = |e| Error::io(format!("cannot look at {}", self.path.display()), e);
        let owner = self.file.file().metadata().map_err(failed)?.uid();
        if owner == file.uid() || owner == 0 || file.mode() & 0o022 != 0 {
            return Ok(());
        }
        let text = format!("{} belongs to user {owner}, who may not write the file", self.path.display());
        Err(Error::new(ErrorKind::Permission, text)
            .hint("look at it, and remove it if it has no business there"))
    }

    #[cfg(not(unix))]
    pub(super) fn check_owner(&self, _file: &Metadata) -> Result<()> {
        Ok(())
    }
}

/// Entries of a segment: page, where in the journal its old bytes are, checksums of the new ones.
type Entries = Vec<(u64, Option<u64>, [u32; SECTORS])>;

/// The segment at `at`, the end of the file if it is the last, and where the next one begins; `None` if it is not whole.
fn read_segment(
    file: &dyn DiskFile,
    start: &Start,
    at: u64,
    length: u64,
) -> std::io::Result<Option<(Entries, Option<u64>, u64)>> {
    let mut head = [0; SEGMENT];
    if read_up_to(file, at, &mut head)? < SEGMENT || !head.starts_with(b"SEGM") {
        return Ok(None);
    }
    let fields = (|| Some((u32_at(&head, 4)?, u64_at(&head, 8)?, u32_at(&head, 16)?, u32_at(&head, 20)?)))();
    let Some((count, end, flags, stated)) = fields else { return Ok(None) };
    let table = u64::from(count) * ENTRY as u64;
    // Nothing is allocated that is not in the file.
    let body = at + SEGMENT as u64;
    if table > length.saturating_sub(body) {
        return Ok(None);
    }
    let mut bytes = vec![0; table as usize];
    if read_up_to(file, body, &mut bytes)? < bytes.len() {
        return Ok(None);
    }
    let mut sum = crc(crc(crc(0, &start.salt), &head[..20]), &bytes);
    let mut next = body + table;
    let mut entries = Entries::with_capacity(count as usize);
    let mut page = vec![0; PAGE as usize];
    for entry in bytes.chunks_exact(ENTRY) {
        let (Some(number), Some(stored)) = (u64_at(entry, 0), u32_at(entry, 8)) else { return Ok(None) };
        let mut sums = [0; SECTORS];
        for (i, out) in sums.iter_mut().enumerate() {
            *out = u32_at(entry, 16 + 4 * i).unwrap_or(0);
        }
        let stored = stored as usize;
        if stored != 0 && stored != start.stored(number) {
            return Ok(None);
        }
        let place = (stored > 0).then_some(next);
        let Some(buffer) = page.get_mut(..stored) else { return Ok(None) };
        if read_up_to(file, next, buffer)? < stored {
            return Ok(None);
        }
        sum = crc(sum, buffer);
        next += stored as u64;
        entries.push((number, place, sums));
    }
    let last = (flags & LAST != 0).then_some(end);
    Ok((sum == stated).then_some((entries, last, next)))
}
