//! Looking again at arrays that somebody else is writing.

use super::identity::{Identity, Samples};
use super::row::{self, Known};
use super::settle::Settling;
use super::{Part, Rows};
use crate::array::{Address, Array, File, Location, OpenOptions, Origin, is_being_written};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Layout, Storage, Writer};
use std::time::{Duration, Instant};

/// How long a local file that no SWMR writer has open must have kept still before it is read. Times of files are no finer
/// than a few milliseconds, and a write within one of them would go unseen.
const STILL: Duration = Duration::from_millis(20);

/// How long a writer's flag must have been gone before the file counts as closed: it is cleared among the last writes.
const CLOSING: Duration = Duration::from_millis(100);

/// How often rows that were given are looked at again where nothing says that anything has changed.
const DOUBT: Duration = Duration::from_secs(1);

/// How long what was given and reads otherwise now must do so before another file is taken to be there.
const CERTAIN: Duration = Duration::from_millis(10);

/// Bounds of the time for which rows that hold fill must hold the same.
const WINDOW: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How long a file must not have been changed that never says whether it is closed, for it to count as closed.
const FINISHED: Duration = Duration::from_secs(60);

/// Attempts of one operation: what stays torn is looked at again in any case.
const ATTEMPTS: u32 = 10;

/// The arrays, and how they were seen last.
#[derive(Debug)]
pub(super) struct Watch {
    address: Address,
    options: OpenOptions,
    /// How long rows that hold fill must hold the same.
    window: Duration,
    /// How long nothing must change for all that is there to count as written.
    settle: Option<Duration>,
    targets: Vec<Target>,
    file: Option<File>,
    /// Where the bytes of the file that is followed come from: of a local file also after it was renamed or removed.
    origin: Option<Origin>,
    /// A local file as it was when last looked at, and since when it is so.
    stamp: Option<String>,
    since: Instant,
    /// Since when it was not changed, also before it was looked at.
    untouched: Instant,
    /// Its writers leave no word, and it looks as if none had it open.
    silent: bool,
    /// The stamp of the file that was opened.
    opened: Option<String>,
    /// A SWMR writer had it open.
    was_live: bool,
    /// Nobody has it open to write: what is there is all there will be.
    closed: bool,
    /// Since when nobody has it open.
    left: Option<Instant>,
    /// What is left of the file that was followed before its name led to another.
    leaving: Leaving,
    /// Another file is there, which was not said yet.
    replaced: bool,
    /// When this look began, and the one before it.
    looks: (Option<Instant>, Option<Instant>),
    /// When rows that were given were last looked at again.
    checked: Instant,
    /// The stamp for which there were no further rows, and the first one that there was not.
    exhausted: Option<(String, u64)>,
    /// What it looked like, and since when.
    seen: Option<(String, Instant)>,
    /// When the last look began that did not see the rows that were given last, if they had to wait.
    before: Option<Instant>,
    /// Retries of files that were left.
    retries: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// Its name leads to the file that is followed.
    No,
    /// Another file has its name; rows of this one come first.
    Rows,
    /// There are no more.
    Done,
}

#[derive(Debug)]
struct Target {
    path: String,
    array: Option<Array>,
    /// Rows that were announced.
    rows: u64,
    identity: Option<Identity>,
    samples: Samples,
    /// Rows that there were when samples of rows that are not given were last looked for.
    anchored: Option<u64>,
    settling: Settling,
}

/// What a look saw.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Rows that all arrays have.
    pub(super) rows: u64,
    /// Arrays that have fewer rows than before: path, rows before, rows now.
    pub(super) shrunk: Vec<(String, u64, u64)>,
    /// Another file is there, of which nothing was looked at yet.
    pub(super) replaced: bool,
}

impl Target {
    fn new(path: &str) -> Self {
        Target {
            path: path.to_owned(),
            array: None,
            rows: 0,
            identity: None,
            samples: Samples::default(),
            anchored: None,
            settling: Settling::default(),
        }
    }
}

impl Watch {
    pub(super) fn new(
        address: Address,
        paths: &[&str],
        options: OpenOptions,
        interval: Duration,
        settle: Option<Duration>,
    ) -> Self {
        let now = Instant::now();
        Watch {
            address,
            options,
            window: interval.clamp(WINDOW.0, WINDOW.1),
            settle,
            targets: paths.iter().map(|path| Target::new(path)).collect(),
            file: None,
            origin: None,
            stamp: None,
            since: now,
            untouched: now,
            silent: false,
            opened: None,
            was_live: false,
            closed: false,
            left: None,
            leaving: Leaving::No,
            replaced: false,
            looks: (None, None),
            checked: now,
            exhausted: None,
            seen: None,
            before: None,
            retries: 0,
        }
    }

    /// Operations that were run again.
    pub(super) fn retries(&self) -> u64 {
        self.retries + self.file.as_ref().map_or(0, File::swmr_retries)
    }

    /// Whether a SWMR writer has closed the file, so that nothing more will come.
    pub(super) fn is_final(&self) -> bool {
        self.was_live && self.closed && self.leaving == Leaving::No && !self.replaced
    }

    /// The arrays, as far as they are open.
    pub(super) fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.targets.iter().filter_map(|target| target.array.as_ref())
    }

    /// When rows that wait will have waited long enough.
    pub(super) fn due(&self) -> Option<Duration> {
        self.targets.iter().filter_map(|target| target.settling.due(self.window)).min()
    }

    /// When to look again at the latest: rows have waited long enough, or a file that has changed may keep still.
    pub(super) fn soon(&self) -> Option<Duration> {
        let changed = self.stamp.is_some() && self.opened != self.stamp && !self.is_live();
        let still =
            changed.then(|| STILL.saturating_sub(self.since.elapsed())).filter(|left| !left.is_zero());
        self.due().into_iter().chain(still).min()
    }

    /// When the last look began that did not see the rows that were given last, if they had to wait since.
    pub(super) fn before(&self) -> Option<Instant> {
        self.before
    }

    /// Looks at the extents of all arrays.
    pub(super) fn look(&mut self) -> Result<Look> {
        self.looks = (Some(Instant::now()), self.looks.0);
        if self.leaving == Leaving::No && !self.is_current()? {
            self.leaving = Leaving::Rows;
            self.open_again();
        }
        if self.leaving == Leaving::Done {
            // The new one is opened first, so that one that is not there yet is waited for.
            self.open()?;
            self.replace();
        }
        if std::mem::take(&mut self.replaced) {
            return Ok(Look { replaced: true, ..Look::default() });
        }
        let still = if self.leaving == Leaving::No { self.keeps_still()? } else { None };
        // Whether the writer is there is looked at before the extents: what it wrote before it closed is then in them.
        let writer = self.writer()?;
        self.was_live |= writer == Writer::Swmr;
        self.silent = writer == Writer::Silent;
        let reopened = self.refresh(still)?;
        if self.targets.iter_mut().any(|target| !target.is_same()) {
            self.replace();
            return self.look();
        }
        self.left = match writer {
            Writer::None => self.left.or_else(|| Some(Instant::now())),
            Writer::Swmr | Writer::Alone | Writer::Unknown | Writer::Silent => None,
        };
        self.closed = self.left.is_some_and(|left| !self.was_live || left.elapsed() >= CLOSING);
        let mut look = Look::default();
        for target in &mut self.targets {
            let Some(array) = &target.array else { continue };
            let Some(&rows) = array.shape().first() else {
                return Err(Error::invalid(format!("{} has no axis to follow", target.path)));
            };
            if rows < target.rows {
                look.shrunk.push((target.path.clone(), target.rows, rows));
            }
            target.rows = rows;
        }
        let shrunk = !look.shrunk.is_empty();
        // What is shorter may be another one; so may be what has changed, or looks the same.
        let doubt = match &self.opened {
            Some(_) => reopened,
            None => self.checked.elapsed() >= DOUBT,
        };
        if (shrunk || doubt) && self.is_another(shrunk)? {
            self.replace();
            return self.look();
        }
        for (path, _, to) in &look.shrunk {
            let cut = |target: &mut Target| target.settling.cut(*to);
            self.targets.iter_mut().filter(|target| target.path == *path).for_each(cut);
        }
        look.rows = self.targets.iter().map(|target| target.rows).min().unwrap_or(0);
        Ok(look)
    }

    /// Reads as many of these rows as all arrays have written. `ahead`: how many more to look at for one that is later.
    pub(super) fn rows(&mut self, first: u64, count: u64, ahead: u64) -> Result<Option<Rows>> {
        // What has not changed gives nothing new.
        let spent = self.opened.clone().map(|stamp| (stamp, first));
        let waits = self.settle.is_none() && !self.may_be_finished();
        if spent.is_some() && spent == self.exhausted && !self.closed && waits {
            return Ok(None);
        }
        let mut rows = self.written(first, count, ahead, self.closed)?;
        if rows.is_none() && self.due().is_none() && !self.closed {
            if self.has_settled(first, count)? || self.is_finished() {
                rows = self.written(first, count, ahead, true)?;
            } else {
                self.exhausted = spent;
            }
        }
        let Some(rows) = rows else { return Ok(None) };
        // A file that was written meanwhile, without the order of SWMR, may have given a mixture.
        if self.opened.is_some() && self.stamp_now()? != self.opened {
            return Err(Error::new(
                ErrorKind::Changed,
                format!("{} changed while it was read", self.address.file),
            ));
        }
        if self.is_another(false)? {
            self.replace();
            return Ok(None);
        }
        Ok(Some(rows))
    }

    fn written(&mut self, first: u64, count: u64, ahead: u64, closed: bool) -> Result<Option<Rows>> {
        let mut parts: Vec<Part> = Vec::new();
        let mut count = count;
        let known = Known { closed, window: self.window, ahead, before: self.looks.1 };
        for target in &mut self.targets {
            let Some(array) = &target.array else { return Ok(None) };
            let part = row::read(array, first, count, known, &mut target.settling)?;
            let Some(part) = part else { return Ok(None) };
            count = part.shape.first().copied().unwrap_or(0).min(count);
            if count == 0 {
                return Ok(None);
            }
            parts.push(part);
        }
        let waited = self.targets.iter().filter(|target| target.settling.settled() > first);
        self.before = waited.filter_map(|target| target.settling.before()).min();
        Rows { first, count, parts }.first_rows(count).map(Some)
    }

    /// Takes note of rows that are given.
    pub(super) fn given(&mut self, rows: &Rows) -> Result<()> {
        for (target, part) in self.targets.iter_mut().zip(&rows.parts) {
            target.samples.take(part, rows.first)?;
        }
        Ok(())
    }

    /// Takes samples of rows in front of the first one that is to be given, so that another file is noticed all the same.
    pub(super) fn anchor(&mut self, next: u64) -> Result<()> {
        let known = Known { closed: self.closed, window: self.window, ahead: 1, before: None };
        for target in &mut self.targets {
            let Some(array) = &target.array else { continue };
            let rows = target.rows.min(next);
            if rows == 0 || !target.samples.is_empty() || target.anchored == Some(target.rows) {
                continue;
            }
            target.anchored = Some(target.rows);
            for row in [0, rows - 1] {
                // Only of what is certainly written.
                let mut settling = Settling::default();
                match row::read(array, row, 1, known, &mut settling) {
                    Ok(Some(part)) => target.samples.take(&part, row)?,
                    Ok(None) => {}
                    Err(e) if row::is_early(&e) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(())
    }

    /// Whether another file is there, which the next look says.
    pub(super) fn is_replaced(&self) -> bool {
        self.replaced
    }

    /// There are no more rows of the file whose name leads to another now, if it does. Whether it did.
    pub(super) fn spent(&mut self) -> bool {
        let leaves = self.leaving == Leaving::Rows && self.due().is_none();
        if leaves {
            self.leaving = Leaving::Done;
        }
        leaves
    }

    /// After an error: what is open may not be what is there any more, and is opened again at the next look.
    pub(super) fn distrust(&mut self) {
        if self.leaving == Leaving::Rows {
            self.leaving = Leaving::Done;
        }
        self.leave();
    }

    /// Whether nothing has changed for as long as all that is there then counts as written.
    fn has_settled(&mut self, first: u64, count: u64) -> Result<bool> {
        let Some(settle) = self.settle else { return Ok(false) };
        let mut state = format!("{:?}", self.stamp_now()?);
        for target in &self.targets {
            let Some(array) = &target.array else { return Ok(false) };
            // Of what has no time of change, the rows themselves.
            let content = if self.opened.is_some() { 0 } else { row::content(array, first, count)? };
            state.push_str(&format!(" {:?} {content:x}", array.shape()));
        }
        match &self.seen {
            Some((seen, since)) if *seen == state => Ok(since.elapsed() >= settle),
            _ => {
                self.seen = Some((state, Instant::now()));
                Ok(false)
            }
        }
    }

    /// Whether a file that never says so has not been changed for so long that it may be closed.
    fn may_be_finished(&self) -> bool {
        let own = |array: &Array| matches!(array.meta().layout, Layout::Chunked { .. } | Layout::Contiguous);
        self.silent
            && self.opened.is_some()
            && self.opened == self.stamp
            && self.untouched.elapsed() >= FINISHED
            && self.arrays().all(own)
    }

    /// Whether it counts as closed: no process is seen to write it either.
    fn is_finished(&self) -> bool {
        self.may_be_finished() && !self.is_being_written()
    }

    /// Whether rows that were given read otherwise now, and go on to: then it is another file in the same place. `all`: look
    /// at all that are known.
    fn is_another(&mut self, all: bool) -> Result<bool> {
        let differs = |watch: &Watch| -> Result<bool> {
            for target in &watch.targets {
                let Some(array) = &target.array else { continue };
                // The path may lead to another object now.
                let moved = match (&watch.file, array.is_live()) {
                    (Some(file), true) if watch.leaving == Leaving::No => {
                        target.identity != Some(Identity::of(&file.array(&target.path)?))
                    }
                    _ => false,
                };
                if moved || !target.samples.hold(array, all)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let another = differs(self)?;
        if another {
            std::thread::sleep(CERTAIN);
            if !differs(self)? {
                let text = format!("{} read otherwise for a moment", self.address.file);
                return Err(Error::new(ErrorKind::NotYet, text));
            }
        }
        self.checked = Instant::now();
        Ok(another)
    }

    /// Begins anew with what is there now.
    fn replace(&mut self) {
        self.leave();
        for target in &mut self.targets {
            *target = Target::new(&target.path);
        }
        self.origin = None;
        (self.was_live, self.closed, self.left) = (false, false, None);
        (self.stamp, self.seen, self.exhausted) = (None, None, None);
        (self.leaving, self.replaced) = (Leaving::No, true);
        self.checked = Instant::now();
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

    /// Whether its name still leads to the file that is followed.
    fn is_current(&self) -> Result<bool> {
        self.origin.as_ref().map_or(Ok(true), Origin::is_current)
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
            self.since = Instant::now();
            let age = if self.stamp.is_none() { Location::age(&self.address) } else { Duration::ZERO };
            self.untouched = self.since.checked_sub(age).unwrap_or(self.since);
            self.stamp = now;
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

    /// Brings the extents up to date. Whether the file was opened anew.
    fn refresh(&mut self, still: Option<bool>) -> Result<bool> {
        if self.is_live() {
            for target in &mut self.targets {
                if let Some(array) = &mut target.array {
                    array.refresh()?;
                }
            }
            return Ok(false);
        }
        let all_open = self.targets.iter().all(|target| target.array.is_some());
        if all_open && (self.leaving == Leaving::Rows || self.opened.is_some() && self.opened == self.stamp) {
            return Ok(false);
        }
        let (file, origin) = self.open()?;
        // A SWMR file may be read at any time, another only when it keeps still.
        if still == Some(false) && !file.is_swmr_read() {
            return Err(Error::new(ErrorKind::NotYet, format!("{} is being written", self.address.file)));
        }
        let arrays = self.found(&file)?;
        self.leave();
        self.take(file, arrays);
        self.origin = origin;
        self.opened = if self.is_live() { None } else { self.stamp.clone() };
        Ok(true)
    }

    fn take(&mut self, file: File, arrays: Vec<Array>) {
        self.file = Some(file);
        for (target, array) in self.targets.iter_mut().zip(arrays) {
            target.array = Some(array);
        }
    }

    /// Opens what its address leads to.
    fn open(&self) -> Result<(File, Option<Origin>)> {
        let (file, origin) = Origin::open(&self.address, &self.options).map_err(|e| self.early(e))?;
        file.set_swmr_read_attempts(ATTEMPTS);
        Ok((file, origin))
    }

    /// Opens the file that is followed once more, although its name leads to another. If that fails there are no more rows.
    fn open_again(&mut self) {
        if self.is_live() {
            return;
        }
        let again = match &self.origin {
            Some(origin) => origin.reopen(&self.address, &self.options),
            None => Err(Error::invalid("not a file")),
        };
        match again.and_then(|file| Ok((self.found(&file)?, file))) {
            Ok((arrays, file)) => {
                self.leave();
                self.take(file, arrays);
            }
            Err(_) => self.leaving = Leaving::Done,
        }
    }

    /// The arrays in a file.
    fn found(&self, file: &File) -> Result<Vec<Array>> {
        let found = self.targets.iter().map(|target| file.array(&target.path));
        let arrays = found.collect::<Result<Vec<Array>>>().map_err(|e| self.early(e))?;
        // Which rows were written cannot be told by chunks that differ.
        if let Some(array) = arrays.iter().find(|a| matches!(a.storage(), Storage::Tiles(_))) {
            let what = format_args!("to follow {}, which has a rectilinear chunk grid", array.path());
            return Err(Error::unsupported(what));
        }
        Ok(arrays)
    }

    /// What was followed before and is something else for a moment is being written anew.
    fn early(&self, e: Error) -> Error {
        let known = self.targets.iter().any(|target| target.identity.is_some());
        match e.kind() {
            ErrorKind::Unsupported | ErrorKind::InvalidArgument if known => {
                Error::new(ErrorKind::Corrupt, e.to_string())
            }
            _ => e,
        }
    }
}

impl Target {
    /// Whether it is the array that was there before; the first one is.
    fn is_same(&mut self) -> bool {
        let Some(array) = &self.array else { return true };
        let now = Identity::of(array);
        *self.identity.get_or_insert_with(|| now.clone()) == now
    }
}
