//! Looking again at arrays that somebody else is writing.

use super::row::{self, Known};
use super::{Part, Rows};
use crate::array::{Address, Array, File, Location, OpenOptions, is_being_written, open_swmr_with};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Storage, Writer};
use std::time::{Duration, Instant};

/// How long a local file that no SWMR writer has open must have kept still before it is read. Times of files are no finer
/// than a few milliseconds, and a write within one of them would go unseen.
const STILL: Duration = Duration::from_millis(20);

/// How long such a file must have kept still for what looks like fill to be what was written.
const QUIET: Duration = Duration::from_secs(1);

/// How long a writer's flag must have been gone before the file counts as closed: it is cleared among the last writes.
const CLOSING: Duration = Duration::from_millis(100);

/// Attempts of one operation: what stays torn is looked at again in any case.
const ATTEMPTS: u32 = 10;

/// The arrays, and how they were seen last.
#[derive(Debug)]
pub(super) struct Watch {
    address: Address,
    options: OpenOptions,
    targets: Vec<Target>,
    file: Option<File>,
    /// A local file as it was when last looked at, and since when it is so.
    stamp: Option<String>,
    since: Instant,
    /// The stamp of the file that was opened.
    opened: Option<String>,
    /// A SWMR writer had it open.
    was_live: bool,
    /// Nobody has it open to write: what is there is all there will be.
    closed: bool,
    /// Since when nobody has it open.
    left: Option<Instant>,
    /// Another file stands there, which was not said yet.
    replaced: bool,
    /// Retries of files that were left.
    retries: u64,
}

#[derive(Debug)]
struct Target {
    path: String,
    array: Option<Array>,
    /// Rows that were announced.
    rows: u64,
    /// Rows that were announced before the writer went on.
    settled: u64,
}

/// What a look saw.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Rows that all arrays have.
    pub(super) rows: u64,
    /// Arrays that have fewer rows than before: path, rows before, rows now.
    pub(super) shrunk: Vec<(String, u64, u64)>,
    /// Another file stands there.
    pub(super) replaced: bool,
}

impl Watch {
    pub(super) fn new(address: Address, paths: &[&str], options: OpenOptions) -> Self {
        let target = |path: &&str| Target { path: (*path).to_owned(), array: None, rows: 0, settled: 0 };
        Watch {
            address,
            options,
            targets: paths.iter().map(target).collect(),
            file: None,
            stamp: None,
            since: Instant::now(),
            opened: None,
            was_live: false,
            closed: false,
            left: None,
            replaced: false,
            retries: 0,
        }
    }

    /// Operations that were run again.
    pub(super) fn retries(&self) -> u64 {
        self.retries + self.file.as_ref().map_or(0, File::swmr_retries)
    }

    /// Whether a SWMR writer has closed the file, so that nothing more will come.
    pub(super) fn is_final(&self) -> bool {
        self.was_live && self.closed
    }

    /// The arrays, as far as they are open.
    pub(super) fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.targets.iter().filter_map(|target| target.array.as_ref())
    }

    /// Looks at the extents of all arrays.
    pub(super) fn look(&mut self) -> Result<Look> {
        let mut look = Look::default();
        if let Some(file) = &self.file
            && !file.hierarchy().is_current()?
        {
            // The new one is opened first, so that one that is not there yet is waited for.
            open_swmr_with(self.address.clone(), &self.options)?;
            self.leave();
            (self.was_live, self.closed, self.left) = (false, false, None);
            self.replaced = true;
        }
        let still = self.keeps_still()?;
        // Whether the writer is there is looked at before the extents: what it wrote before it closed is then in them.
        let writer = self.writer()?;
        self.was_live |= writer == Writer::Swmr;
        self.refresh(still)?;
        self.left = match writer {
            Writer::None => self.left.or_else(|| Some(Instant::now())),
            Writer::Swmr | Writer::Alone | Writer::Unknown => None,
        };
        self.closed = self.left.is_some_and(|left| !self.was_live || left.elapsed() >= CLOSING);
        for target in &mut self.targets {
            let Some(array) = &target.array else { continue };
            let Some(&rows) = array.shape().first() else {
                return Err(Error::invalid(format!("{} has no axis to follow", target.path)));
            };
            if rows < target.rows {
                look.shrunk.push((target.path.clone(), target.rows, rows));
                target.settled = target.settled.min(rows);
            }
            if rows > target.rows {
                target.settled = target.rows;
            }
            target.rows = rows;
            if still == Some(true) && self.since.elapsed() > QUIET {
                target.settled = rows;
            }
        }
        look.replaced = std::mem::take(&mut self.replaced);
        look.rows = self.targets.iter().map(|target| target.rows).min().unwrap_or(0);
        Ok(look)
    }

    /// Reads as many of these rows as all arrays have written.
    pub(super) fn rows(&mut self, first: u64, count: u64) -> Result<Option<Rows>> {
        let mut parts: Vec<Part> = Vec::new();
        let mut count = count;
        for target in &self.targets {
            let Some(array) = &target.array else { return Ok(None) };
            let known = Known { settled: target.settled, closed: self.closed };
            let Some(part) = row::read(array, first, count, known)? else { return Ok(None) };
            count = part.shape.first().copied().unwrap_or(0).min(count);
            parts.push(part);
        }
        if count == 0 {
            return Ok(None);
        }
        // A file that was written meanwhile, without the order of SWMR, may have given a mixture.
        if self.opened.is_some() && self.stamp_now()? != self.opened {
            return Err(Error::new(
                ErrorKind::Changed,
                format!("{} changed while it was read", self.address.file),
            ));
        }
        Rows { first, count, parts }.first_rows(count).map(Some)
    }

    fn leave(&mut self) {
        if let Some(file) = self.file.take() {
            self.retries += file.swmr_retries();
        }
        self.opened = None;
        self.targets.iter_mut().for_each(|target| target.array = None);
    }

    /// The state of a local file, where it says something.
    pub(super) fn stamp_now(&self) -> Result<Option<String>> {
        Location::stamp(&self.address)
    }

    /// Whether a process has a local file open to write it, as far as can be told.
    pub(super) fn is_being_written(&self) -> bool {
        self.address.scheme().is_none() && is_being_written(self.address.local()) == Some(true)
    }

    /// Whether a local file has kept still long enough to be read; `None` where that cannot be told, or does not matter.
    fn keeps_still(&mut self) -> Result<Option<bool>> {
        if self.is_live() {
            return Ok(None);
        }
        let now = self.stamp_now()?;
        if now.is_none() {
            return Ok(None);
        }
        if now != self.stamp {
            self.stamp = now;
            self.since = Instant::now();
        }
        Ok(Some(self.since.elapsed() >= STILL))
    }

    /// Whether all arrays are read live, or through sources that are.
    fn is_live(&self) -> bool {
        let live = |array: &Array| array.is_live() || matches!(array.storage(), Storage::Virtual(_));
        self.targets.iter().all(|target| target.array.as_ref().is_some_and(live))
    }

    fn writer(&self) -> Result<Writer> {
        let mut all = Writer::None;
        for array in self.arrays() {
            match array.writer()? {
                Writer::Swmr => return Ok(Writer::Swmr),
                Writer::None => {}
                other => all = other,
            }
        }
        Ok(if self.arrays().next().is_none() { Writer::Unknown } else { all })
    }

    /// Brings the extents up to date.
    fn refresh(&mut self, still: Option<bool>) -> Result<()> {
        if self.is_live() {
            for target in &mut self.targets {
                if let Some(array) = &mut target.array {
                    array.refresh()?;
                }
            }
            return Ok(());
        }
        let all_open = self.targets.iter().all(|target| target.array.is_some());
        if all_open && self.opened.is_some() && self.opened == self.stamp {
            return Ok(());
        }
        let file = open_swmr_with(self.address.clone(), &self.options)?;
        file.set_swmr_read_attempts(ATTEMPTS);
        // A SWMR file may be read at any time, another only when it keeps still.
        if still == Some(false) && !file.is_swmr_read() {
            return Err(Error::new(ErrorKind::NotYet, format!("{} is being written", self.address.file)));
        }
        let arrays: Vec<Array> =
            self.targets.iter().map(|target| file.array(&target.path)).collect::<Result<_>>()?;
        // Which rows were written cannot be told by chunks that differ.
        if let Some(array) = arrays.iter().find(|a| matches!(a.storage(), Storage::Tiles(_))) {
            let what = format_args!("to follow {}, which has a rectilinear chunk grid", array.path());
            return Err(Error::unsupported(what));
        }
        self.leave();
        self.file = Some(file);
        for (target, array) in self.targets.iter_mut().zip(arrays) {
            target.array = Some(array);
        }
        self.opened = if self.is_live() { None } else { self.stamp.clone() };
        Ok(())
    }
}
