//! The pages of an edit, and how they come to the disk. What is cast to `usize` here is bounded by a page, or by the length of a
//! buffer in memory.

use super::disk::{DiskFile, read_up_to};
use super::journal::{self, Change, PAGE, Start};
use super::{SyncPolicy, WriteOptions, folder_of};
use crate::error::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes of at least so many bytes go to the disk at once, where nothing stands that has to be kept.
const DIRECT: u64 = 64 << 10;
/// Bytes of one write that is put together from pages.
const RUN: usize = 1 << 20;
/// Pages of one segment of a journal.
const PAGES: usize = 1024;

/// A journal that is being written.
#[derive(Debug)]
struct Writing {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    start: Start,
    /// Its length.
    end: u64,
    /// Pages whose old bytes it holds, and where.
    pages: BTreeMap<u64, u64>,
}

/// The bytes of a file as they will be.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) file: Box<dyn DiskFile>,
    pub(super) path: PathBuf,
    options: WriteOptions,
    /// Length of the file before.
    before: u64,
    /// Below this stands what a crash must bring back; 0 in a new file.
    protected: u64,
    /// Below this, what stands in the file is a part of its bytes now.
    valid: u64,
    /// Protected pages that were written in the file, and are a part of its bytes now.
    written: BTreeSet<u64>,
    /// Whether what stood behind the protected part was cut off.
    cut: bool,
    /// Length now.
    pub(super) length: u64,
    /// Length of the file on the disk.
    physical: u64,
    /// The greatest length that it had: after a crash it may have it again, as what cut it need not be durable.
    reached: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
    journal: Option<Writing>,
}

impl Edit {
    /// The bytes of a file of which the first `length` are to be kept until commit.
    pub(super) fn new(file: Box<dyn DiskFile>, path: PathBuf, length: u64, options: WriteOptions) -> Self {
        Edit {
            file,
            path,
            options,
            before: length,
            protected: length,
            valid: length,
            written: BTreeSet::new(),
            cut: false,
            length,
            physical: length,
            reached: length,
            pages: BTreeMap::new(),
            journal: None,
        }
    }

    /// Says that what stands at `end` and behind belongs to no state of the file.
    pub(super) fn protect(&mut self, end: u64) -> Result<()> {
        if end > self.protected || self.is_changed() {
            return Err(Error::invalid("the end of a file is said before it is changed"));
        }
        (self.protected, self.valid, self.length) = (end, end, end);
        Ok(())
    }

    /// Whether anything differs from the file as it was.
    fn is_changed(&self) -> bool {
        self.length != self.protected
            || self.valid != self.protected
            || !self.pages.is_empty()
            || self.has_journal()
    }

    fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    fn failed(&self, what: &str, offset: u64) -> impl Fn(std::io::Error) -> Error + use<> {
        let text = format!("cannot {what} {} at {offset:#x}", self.path.display());
        move |e| Error::io(&text, e)
    }

    fn disk_read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        read_up_to(self.file.as_ref(), offset, buffer).map_err(self.failed("read", offset))
    }

    /// Reads what is on the disk, and zeros behind its end; but what was there when the edit began has to be.
    fn read_disk(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let found = self.disk_read(offset, buffer)?;
        let known = self.valid.saturating_sub(offset).min(buffer.len() as u64) as usize;
        if found < known {
            return Err(Error::new(ErrorKind::Changed, "the file became shorter while it was edited")
                .at("file", offset.saturating_add(found as u64))
                .context(self.path.display()));
        }
        buffer.get_mut(found..).unwrap_or_default().fill(0);
        Ok(())
    }

    fn disk_write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_at(offset, bytes).map_err(self.failed("write", offset))?;
        self.physical = self.physical.max(offset.saturating_add(bytes.len() as u64));
        self.reached = self.reached.max(self.physical);
        Ok(())
    }

    fn disk_set_len(&mut self, length: u64) -> Result<()> {
        self.file.set_len(length).map_err(self.failed("set the end of", length))?;
        self.physical = length;
        self.reached = self.reached.max(length);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        match self.options.sync {
            SyncPolicy::Full => self.file.sync().map_err(self.failed("sync", 0)),
            SyncPolicy::None => Ok(()),
        }
    }

    /// Removes what stands behind the protected part, before the first write there.
    fn cut(&mut self) -> Result<()> {
        if !self.cut {
            if self.physical > self.protected {
                self.disk_set_len(self.protected)?;
            }
            self.cut = true;
        }
        Ok(())
    }

    /// A page as it is now, from the disk.
    fn load(&self, page: u64) -> Result<Box<[u8]>> {
        let mut out = vec![0; PAGE as usize].into_boxed_slice();
        let start = page.saturating_mul(PAGE);
        // Of the protected part what was not cut off, or was written since; behind it all.
        let kept = if self.written.contains(&page) { self.protected } else { self.valid };
        let end = if self.cut && self.protected.saturating_sub(start) < PAGE { u64::MAX } else { kept };
        let n = end.min(self.length).saturating_sub(start).min(PAGE) as usize;
        if let Some(part) = out.get_mut(..n).filter(|part| !part.is_empty()) {
            self.read_disk(start, part)?;
        }
        // What was cut off within this page and stands behind the cut is none of it.
        if !self.written.contains(&page) && self.valid < self.protected {
            let (from, to) =
                (self.valid.saturating_sub(start).min(PAGE), self.protected.saturating_sub(start).min(PAGE));
            if let Some(part) = out.get_mut(from as usize..to as usize) {
                part.fill(0);
            }
        }
        Ok(out)
    }

    fn page(&mut self, page: u64) -> Result<&mut [u8]> {
        if !self.pages.contains_key(&page) {
            let loaded = self.load(page)?;
            self.pages.insert(page, loaded);
        }
        match self.pages.get_mut(&page) {
            Some(page) => Ok(page),
            None => Err(Error::invalid("a page of the edit is gone")),
        }
    }

    /// Reads bytes as they are now; they must be there.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let mut done = 0usize;
        while done < buffer.len() {
            let at = offset.saturating_add(done as u64);
            let (page, within) = (at / PAGE, (at % PAGE) as usize);
            let rest = buffer.get_mut(done..).unwrap_or_default();
            if let Some(bytes) = self.pages.get(&page) {
                let n = copy(bytes.get(within..).unwrap_or_default(), rest);
                done += n;
                continue;
            }
            // As far as there are no pages in memory, and nothing but the disk to ask.
            let next =
                self.pages.range(page..).next().map_or(u64::MAX, |(&next, _)| next.saturating_mul(PAGE));
            let plain = match at < self.valid {
                true => self.valid,
                false if self.cut && at >= self.protected => u64::MAX,
                false => at,
            };
            let n = next.min(plain).saturating_sub(at).min(rest.len() as u64) as usize;
            if n > 0 {
                self.read_disk(at, rest.get_mut(..n).unwrap_or_default())?;
                done += n;
            } else {
                let bytes = self.load(page)?;
                done += copy(bytes.get(within..).unwrap_or_default(), rest);
            }
        }
        Ok(())
    }

    /// Length of the file before.
    pub(super) fn length_before(&self) -> u64 {
        self.protected
    }

    /// Reads bytes as they were before; they must have been there.
    pub(super) fn read_before(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let text = "the file became shorter while it was edited";
        let shorter = || Error::new(ErrorKind::Changed, text).context(self.path.display());
        if self.disk_read(offset, buffer)? < buffer.len() {
            return Err(shorter());
        }
        let Some(journal) = &self.journal else { return Ok(()) };
        let failed = |e| Error::io(format!("cannot read {}", journal.path.display()), e);
        let end = offset.saturating_add(buffer.len() as u64);
        for (&page, &at) in journal.pages.range(offset / PAGE..end.div_ceil(PAGE)) {
            let start = page.saturating_mul(PAGE);
            let (from, to) = (offset.max(start), end.min(start.saturating_add(PAGE)));
            let part =
                buffer.get_mut(from.saturating_sub(offset) as usize..to.saturating_sub(offset) as usize);
            let part = part.unwrap_or_default();
            if read_up_to(journal.file.as_ref(), at.saturating_add(from - start), part).map_err(failed)?
                < part.len()
            {
                return Err(shorter());
            }
        }
        Ok(())
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= i64::MAX as u64).ok_or_else(
            || Error::invalid(format!("{} bytes at {offset:#x} are beyond any file", bytes.len())),
        )?;
        // Whole pages behind the protected part.
        let first = offset.max(self.protected).div_ceil(PAGE).saturating_mul(PAGE);
        let last = end / PAGE * PAGE;
        let length = self.length.max(end);
        if last >= first.saturating_add(DIRECT) {
            let at = |n: u64| n.saturating_sub(offset) as usize;
            self.write_pages(offset, bytes.get(..at(first)).unwrap_or_default(), length)?;
            self.cut()?;
            self.drop_pages(first / PAGE, last / PAGE);
            self.disk_write(first, bytes.get(at(first)..at(last)).unwrap_or_default())?;
            self.write_pages(last, bytes.get(at(last)..).unwrap_or_default(), length)?;
        } else {
            self.write_pages(offset, bytes, length)?;
        }
        self.length = length;
        Ok(())
    }

    fn drop_pages(&mut self, from: u64, to: u64) {
        let mut behind = self.pages.split_off(&from);
        self.pages.append(&mut behind.split_off(&to));
    }

    fn write_pages(&mut self, offset: u64, bytes: &[u8], length: u64) -> Result<()> {
        let mut done = 0usize;
        while done < bytes.len() {
            let at = offset.saturating_add(done as u64);
            let rest = bytes.get(done..).unwrap_or_default();
            let page = at / PAGE;
            if at.is_multiple_of(PAGE) && rest.len() as u64 >= PAGE {
                let whole = rest.get(..PAGE as usize).unwrap_or_default();
                self.pages.insert(page, whole.into());
                done += PAGE as usize;
            } else {
                let within = self.page(page)?;
                done += copy(rest, within.get_mut((at % PAGE) as usize..).unwrap_or_default());
            }
            if (self.pages.len() as u64).saturating_mul(PAGE) > self.options.memory {
                self.length = self.length.max(length.min(at.saturating_add(PAGE)));
                self.spill()?;
            }
        }
        Ok(())
    }

    pub(super) fn set_len(&mut self, length: u64) -> Result<()> {
        if length > i64::MAX as u64 {
            return Err(Error::invalid(format!("{length} bytes are beyond any file")));
        }
        if length < self.length {
            self.pages.split_off(&length.div_ceil(PAGE));
            self.written.split_off(&length.div_ceil(PAGE));
            if !length.is_multiple_of(PAGE) {
                let page = self.page(length / PAGE)?;
                page.get_mut((length % PAGE) as usize..).unwrap_or_default().fill(0);
            }
            self.valid = self.valid.min(length);
            let end = length.max(self.protected);
            if self.cut && self.physical > end {
                self.disk_set_len(end)?;
            }
        }
        self.length = length;
        Ok(())
    }

    /// Writes pages in rising order, in runs.
    fn write_run(&mut self, numbers: &[u64]) -> Result<()> {
        let limit = self.length.max(self.protected);
        let mut run: Vec<u8> = Vec::new();
        let mut start = 0;
        for &page in numbers {
            let at = page.saturating_mul(PAGE);
            if !run.is_empty() && (start + run.len() as u64 != at || run.len() >= RUN) {
                self.disk_write(start, &run)?;
                run.clear();
            }
            if run.is_empty() {
                start = at;
            }
            let bytes = self.pages.get(&page).map(|bytes| &bytes[..]).unwrap_or_default();
            let n = limit.saturating_sub(at).min(PAGE) as usize;
            run.extend(bytes.get(..n).unwrap_or_default());
        }
        if !run.is_empty() {
            self.disk_write(start, &run)?;
        }
        Ok(())
    }

    /// Brings all pages to the disk, and forgets them.
    fn spill(&mut self) -> Result<()> {
        self.flush_free()?;
        let numbers: Vec<u64> = self.pages.keys().copied().collect();
        for numbers in numbers.chunks(PAGES) {
            self.keep(numbers, None)?;
        }
        self.sync_journal()?;
        self.change(&numbers)
    }

    /// Brings pages behind the protected part to the disk.
    fn flush_free(&mut self) -> Result<()> {
        let free: Vec<u64> =
            self.pages.range(self.protected.div_ceil(PAGE)..).map(|(&page, _)| page).collect();
        if !free.is_empty() {
            self.cut()?;
            self.write_run(&free)?;
            self.pages.split_off(&self.protected.div_ceil(PAGE));
        }
        Ok(())
    }

    /// Writes protected pages, of which the journal holds what stood there.
    fn change(&mut self, numbers: &[u64]) -> Result<()> {
        if !numbers.is_empty() {
            // The last of them may reach beyond the protected part.
            self.cut()?;
        }
        self.write_run(numbers)?;
        for page in numbers {
            self.pages.remove(page);
            self.written.insert(*page);
        }
        Ok(())
    }

    /// Writes a segment with what stands in protected pages.
    fn keep(&mut self, numbers: &[u64], end: Option<u64>) -> Result<()> {
        if self.journal.is_none() {
            self.journal = Some(self.start()?);
        }
        let mut old = Vec::with_capacity(numbers.len());
        let protected = self.protected;
        for &page in numbers {
            let known = self.journal.as_ref().is_some_and(|j| j.pages.contains_key(&page));
            let start = page.saturating_mul(PAGE);
            let mut bytes = vec![0; protected.saturating_sub(start).min(PAGE) as usize];
            if !known && self.disk_read(start, &mut bytes)? < bytes.len() {
                let text = "the file became shorter while it was edited";
                return Err(Error::new(ErrorKind::Changed, text).context(self.path.display()));
            }
            old.push((!known).then_some(bytes));
        }
        let changes: Vec<Change<'_>> = numbers
            .iter()
            .zip(old)
            .filter_map(|(&page, old)| Some(Change { page, old, new: self.pages.get(&page)? }))
            .collect();
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let segment = journal::segment(&journal.start, &changes, end);
        let failed = |e| Error::io(format!("cannot write {}", journal.path.display()), e);
        journal.file.write_at(journal.end, &segment).map_err(failed)?;
        journal.end += segment.len() as u64;
        // The old bytes are the last of it.
        let mut at = journal.end;
        for change in changes.iter().rev() {
            if let Some(old) = &change.old {
                at = at.saturating_sub(old.len() as u64);
                journal.pages.insert(change.page, at);
            }
        }
        Ok(())
    }

    /// Makes the journal.
    fn start(&self) -> Result<Writing> {
        let path = journal::path_of(&self.path);
        let failed = |e| {
            let e = Error::io(format!("cannot make {}", path.display()), e);
            match e.kind() {
                ErrorKind::Permission => {
                    e.hint("edits need the right to make files in the folder of the file")
                }
                _ => e,
            }
        };
        let mut first = vec![0; self.protected.min(PAGE) as usize];
        self.disk_read(0, &mut first)?;
        let start = Start::new(&first, self.before, self.protected, salt());
        let disk = &self.options.disk;
        let file = disk.create(&path).map_err(failed)?;
        let head = start.encode();
        let made = file.write_at(0, &head).and_then(|()| match self.options.sync {
            SyncPolicy::Full => disk.sync_folder(&folder_of(&path)),
            SyncPolicy::None => Ok(()),
        });
        if let Err(e) = made {
            // It holds nothing, and harms nobody.
            let _ = disk.remove(&path);
            return Err(failed(e));
        }
        Ok(Writing { file, path, start, end: head.len() as u64, pages: BTreeMap::new() })
    }

    fn sync_journal(&self) -> Result<()> {
        match (&self.journal, self.options.sync) {
            (Some(journal), SyncPolicy::Full) => journal
                .file
                .sync()
                .map_err(|e| Error::io(format!("cannot sync {}", journal.path.display()), e)),
            _ => Ok(()),
        }
    }

    /// Makes all changes durable, all or nothing.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.prepare()?;
        let mut numbers: Vec<u64> = self.pages.keys().copied().collect();
        self.drop_unchanged(&mut numbers)?;
        if self.length > self.protected {
            self.cut()?;
            if self.length > self.physical {
                self.disk_set_len(self.length)?;
            }
        }
        if numbers.is_empty() && !self.has_journal() {
            self.sync()?;
        } else {
            let mut parts = numbers.chunks(PAGES).peekable();
            let end = self.length.max(self.protected).max(self.reached);
            if parts.peek().is_none() {
                self.keep(&[], Some(end))?;
            }
            while let Some(part) = parts.next() {
                self.keep(part, parts.peek().is_none().then_some(end))?;
            }
            self.sync_journal()?;
            self.change(&numbers)?;
            self.sync()?;
            self.drop_journal()?;
        }
        // It is done; what follows is no part of any state.
        if self.physical > self.length {
            // Durable, so that the journal of a next opener does not meet the longer file.
            let _ = self.disk_set_len(self.length).and_then(|()| self.sync());
        }
        self.begin();
        Ok(())
    }

    /// Brings what is behind the protected part to the disk, and what was cut off and grew again into memory.
    fn prepare(&mut self) -> Result<()> {
        let grown = self.valid / PAGE..self.length.min(self.protected).div_ceil(PAGE);
        if self.valid < self.protected {
            for page in grown {
                if !self.written.contains(&page) {
                    self.page(page)?;
                    if (self.pages.len() as u64).saturating_mul(PAGE) > self.options.memory {
                        self.spill()?;
                    }
                }
            }
        }
        self.flush_free()
    }

    /// Drops pages that are as they were.
    fn drop_unchanged(&mut self, numbers: &mut Vec<u64>) -> Result<()> {
        let mut same = BTreeSet::new();
        for &page in numbers.iter().filter(|page| !self.written.contains(page)) {
            // What stands behind the protected part will be cut off.
            if !self.cut && page.saturating_add(1).saturating_mul(PAGE) > self.protected {
                continue;
            }
            let mut now = vec![0; PAGE as usize];
            let n = self.disk_read(page.saturating_mul(PAGE), &mut now)?;
            let end = self.length.saturating_sub(page.saturating_mul(PAGE)).min(PAGE) as usize;
            if n >= end && self.pages.get(&page).is_some_and(|new| new.get(..end) == now.get(..end)) {
                same.insert(page);
            }
        }
        numbers.retain(|page| !same.contains(page));
        self.pages.retain(|page, _| !same.contains(page));
        Ok(())
    }

    fn drop_journal(&mut self) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let failed = |e| Error::io(format!("cannot remove {}", journal.path.display()), e);
        self.options.disk.remove(&journal.path).map_err(failed)?;
        let folder = folder_of(&journal.path);
        self.journal = None;
        // The state is the new one from here on; a crash before the folder is synced may bring back the old one.
        match self.options.sync {
            SyncPolicy::Full => self.options.disk.sync_folder(&folder).map_err(|e| {
                self.begin();
                Error::io(format!("cannot sync {}, after the change was made", folder.display()), e)
            }),
            SyncPolicy::None => Ok(()),
        }
    }

    /// What is there now is what the next edit starts from.
    fn begin(&mut self) {
        (self.before, self.protected, self.valid) = (self.physical, self.length, self.length);
        self.cut = false;
        self.written.clear();
        self.pages.clear();
    }

    /// The same for a new file, which has now got its name.
    pub(super) fn begin_at(&mut self, path: &Path) {
        self.path = path.to_path_buf();
        self.begin();
    }

    /// Makes a file that is new durable, under the name that it has.
    pub(super) fn finish_new(&mut self) -> Result<()> {
        self.flush_free()?;
        if self.physical != self.length {
            self.disk_set_len(self.length)?;
        }
        self.sync()
    }

    /// Brings back the file as it was. The journal stays where that fails, and the next opener tries again.
    pub(super) fn roll_back(&mut self) -> Result<()> {
        self.pages.clear();
        if let Some(journal) = self.journal.take() {
            // Read as the next opener reads it.
            drop(journal);
            super::recover::roll_back(self.file.as_ref(), &self.path, &self.options)?;
        }
        if self.cut && self.physical != self.before {
            // Durable, as after a commit.
            self.disk_set_len(self.before)?;
            self.sync()?;
        }
        (self.length, self.valid, self.cut) = (self.protected, self.protected, false);
        self.written.clear();
        Ok(())
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let n = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..n), to.get_mut(..n)) {
        to.copy_from_slice(from);
    }
    n
}

/// Bytes that no other journal has.
fn salt() -> [u8; 16] {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let time =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    let mut out = [0; 16];
    let (head, tail) = out.split_at_mut(8);
    head.copy_from_slice(&time.to_le_bytes());
    let own = (u64::from(std::process::id()) << 32) ^ MADE.fetch_add(1, Ordering::Relaxed);
    tail.copy_from_slice(&own.to_le_bytes());
    out
}
