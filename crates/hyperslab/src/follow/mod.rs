//! New rows of arrays that somebody else is writing, as they come.
//!
//! A *row* is one index of the first axis. [`Follow`] looks again and again, waits longer the longer nothing comes, and gives
//! each row once, in order, when all of it is written: a value is what was written, or not yet there. How to look again
//! depends on what is followed (`watch`); whether a row is written is the same question for all (`row`).
//!
//! - An HDF5 file that a SWMR writer has open is read live, until the writer has closed it.
//! - Any other file (HDF5 without SWMR, netCDF-3) is opened again when it has changed and keeps still.
//! - Zarr stores are opened again.
//! - Over HTTP and in object stores the same holds; nothing is pinned or kept of a live file.

mod delay;
mod identity;
mod row;
mod settle;
mod watch;

use crate::array::{Address, Array, OpenOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Cancel;
use crate::model::Elements;
use crate::shape::byte_count;
use bytes::Bytes;
use delay::Delays;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use watch::{Look, Watch};

/// The longest sleep without a look at the token that stops it.
const NAP: Duration = Duration::from_millis(20);

/// The shortest pause between two looks that bring nothing.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long the first look may take.
const FIRST: Duration = Duration::from_millis(200);

/// Looks in a row that may fail because a server or file system does, before the error is given.
const PATIENCE: u32 = 20;

/// Looks that must have met the same fault before it counts as one that will stay.
const LOOKS: u32 = 100;

/// Where to begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum From {
    /// With the first row.
    #[default]
    Start,
    /// With the first row that was not there at the first look.
    End,
    /// With this row.
    Row(u64),
}

/// How arrays are followed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FollowOptions {
    /// Where to begin.
    pub from: From,
    /// The longest pause between two looks.
    pub interval: Duration,
    /// Stop when looking found no row for so long.
    pub idle: Option<Duration>,
    /// How long a fault of a file that does not change is waited for, and for 100 looks at least, before it is an error.
    pub patience: Duration,
    /// Take what has not changed for so long as all that its writer wrote: rows that hold fill, and chunks that are missing,
    /// are given as they are then. Without it they are not given before their writer has gone on or closed the file.
    pub settle: Option<Duration>,
    /// Stop after so many rows.
    pub rows: Option<u64>,
    /// Stops it from another thread, or a signal handler.
    pub cancel: Cancel,
    /// Bytes of rows that are read at a time; at least one row is.
    pub batch: u64,
    /// How files are opened.
    pub open: OpenOptions,
}

impl Default for FollowOptions {
    fn default() -> Self {
        FollowOptions {
            from: From::Start,
            interval: Duration::from_millis(100),
            idle: None,
            patience: Duration::from_secs(10),
            settle: None,
            rows: None,
            cancel: Cancel::new(),
            batch: 16 << 20,
            open: OpenOptions::default(),
        }
    }
}

impl FollowOptions {
    /// From the first row on, looking every 100 ms at least, until the writer has closed the file.
    pub fn new() -> Self {
        FollowOptions::default()
    }

    /// Sets where to begin.
    #[must_use]
    pub fn with_from(mut self, from: From) -> Self {
        self.from = from;
        self
    }

    /// Sets the longest pause between two looks.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Stops when looking found no row for so long; what a caller does with rows does not count. A writer that died never closes its file: without this, its reader waits for ever.
    #[must_use]
    pub fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = Some(idle);
        self
    }

    /// Sets how long a fault of a file that does not change is waited for.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Takes what has not changed for so long as all that its writer wrote, rows that hold fill included. For files and
    /// stores that are finished and do not say so; of a writer that pauses for longer, fill may be given.
    #[must_use]
    pub fn with_settle(mut self, settle: Duration) -> Self {
        self.settle = Some(settle);
        self
    }

    /// Stops after so many rows.
    #[must_use]
    pub fn with_rows(mut self, rows: u64) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Sets the token that stops it.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sets how many bytes of rows are read at a time.
    #[must_use]
    pub fn with_batch(mut self, bytes: u64) -> Self {
        self.batch = bytes;
        self
    }

    /// Sets how files are opened.
    #[must_use]
    pub fn with_open(mut self, open: OpenOptions) -> Self {
        self.open = open;
        self
    }
}

/// What a look brought.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// New rows, the same ones of each array.
    Rows(Rows),
    /// An array became shorter. It is followed from its new end on, or from the row that [`From::Row`] asks for if that is later.
    Shrunk {
        /// The array.
        path: String,
        /// Rows before.
        from: u64,
        /// Rows now.
        to: u64,
    },
    /// Another file or store took the place of the one that was followed, or is written over it: rows that were given are not
    /// there any more. Of a local file that was renamed or removed, the rows that were written came before. The new one is
    /// followed from its first row on, or from the row that [`From::Row`] asks for.
    Replaced {
        /// Rows of the old one that were announced when it was last seen, and that were not given.
        left: u64,
    },
}

/// Rows that came.
#[derive(Debug)]
pub struct Rows {
    /// The first one.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Those of each array, in the order in which the arrays were given.
    pub parts: Vec<Part>,
}

/// Rows of one array.
#[derive(Debug)]
pub struct Part {
    /// The array as it was when they were read.
    pub array: Array,
    /// Their extents.
    pub shape: Vec<u64>,
    /// Their elements as stored, in C order.
    pub bytes: Bytes,
    /// The same elements with everything that they point to.
    pub elements: Elements,
}

/// Why it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The writer closed the file, and all rows were given.
    Closed,
    /// No row was found for as long as was allowed.
    Idle,
    /// As many rows came as were wanted.
    Rows,
    /// It was cancelled.
    Cancelled,
    /// An error was given.
    Failed,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FollowStats {
    /// Rows given.
    pub rows: u64,
    /// Rows that the extents announced at the last look and that were not given: they are not written yet, or cannot be told
    /// from such (they hold fill, and no later row was written), unless it was cancelled before.
    pub waiting: u64,
    /// Rows that were announced when as many as were wanted had come: nobody looked whether they are written.
    pub unwanted: u64,
    /// Looks.
    pub looks: u64,
    /// Operations and looks that were done again because a writer had torn them.
    pub retries: u64,
    /// The median of the times from the last look that did not see a row to the moment when it was given. A row cannot have
    /// waited longer; those that were there at the first look do not count.
    pub delay_p50: Duration,
    /// Their 99th percentile.
    pub delay_p99: Duration,
    /// Why it stopped, if it has.
    pub stop: Option<Stop>,
}

/// Follows arrays: an iterator over what happens to them, which waits until something does. Ends as its options say, after an
/// error, and when the writer has closed the file.
#[derive(Debug)]
pub struct Follow {
    watch: Watch,
    options: FollowOptions,
    /// The next row to give; unknown before the first look.
    next: Option<u64>,
    events: VecDeque<Event>,
    stats: FollowStats,
    delays: Delays,
    pause: Duration,
    /// When the last look began that did not see the next row.
    unseen: Option<Instant>,
    /// The first look and the last since which no row was found.
    nothing: Option<(Instant, Instant)>,
    /// Why the last look failed, if it did.
    fault: Option<Fault>,
    failures: u32,
    /// The last look gave rows, and there are more.
    more: bool,
}

/// Why looks fail.
#[derive(Debug)]
struct Fault {
    error: Error,
    /// The file as it was, where that is known.
    stamp: Option<String>,
    since: Instant,
    looks: u32,
}

/// Follows the arrays at `paths` of the file of an address, or that of its own path if there are none.
///
/// Fails where the file cannot be opened, has no such array, or the array has no axis. What may be half written is waited for.
pub fn follow(address: impl Into<Address>, paths: &[&str], options: FollowOptions) -> Result<Follow> {
    let address = address.into();
    let own = [address.path.as_str()];
    let paths = if paths.is_empty() { &own[..] } else { paths };
    let watch = Watch::new(address.clone(), paths, options.open.clone(), options.interval, options.settle);
    let mut follow = Follow {
        watch,
        next: None,
        events: VecDeque::new(),
        stats: FollowStats::default(),
        delays: Delays::default(),
        pause: options.interval / 8,
        unseen: None,
        nothing: None,
        fault: None,
        failures: 0,
        more: false,
        options,
    };
    // What is wrong with the question is said at once, and what is there now is where it begins. A file that does not keep
    // still is not waited for.
    let begun = Instant::now();
    loop {
        follow.look()?;
        if follow.next.is_some() || begun.elapsed() > FIRST {
            return Ok(follow);
        }
        std::thread::sleep(NAP / 4);
    }
}

impl Follow {
    /// What was done so far.
    pub fn stats(&self) -> FollowStats {
        FollowStats {
            retries: self.stats.retries + self.watch.retries(),
            delay_p50: self.delays.percentile(50),
            delay_p99: self.delays.percentile(99),
            ..self.stats
        }
    }

    /// Why the last look failed, if it did: what is waited for, or was when it stopped.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.as_ref().map(|fault| &fault.error)
    }

    /// Looks once, and takes note of what is there.
    fn look(&mut self) -> Result<()> {
        self.stats.looks += 1;
        let begun = Instant::now();
        let rows = self.stats.rows;
        let seen = self.watch.look().and_then(|look| {
            self.failures = 0;
            self.take(look, begun)
        });
        self.nothing = match self.nothing {
            _ if self.stats.rows > rows => None,
            Some((first, _)) => Some((first, begun)),
            None => Some((begun, begun)),
        };
        match seen {
            Ok(()) => self.fault = None,
            Err(e) => {
                let early = e.kind() == ErrorKind::NotYet;
                self.forgive(e, begun)?;
                if !early {
                    self.watch.distrust();
                }
            }
        }
        Ok(())
    }

    /// Whether an error is one to wait for the end of.
    fn forgive(&mut self, e: Error, begun: Instant) -> Result<()> {
        let seen = self.next.is_some();
        let passes = match e.kind() {
            ErrorKind::NotYet => true,
            ErrorKind::Corrupt | ErrorKind::Checksum | ErrorKind::Truncated | ErrorKind::Changed => true,
            // A file that is about to be replaced may be gone for a moment.
            ErrorKind::NotFound => seen,
            ErrorKind::Io => {
                self.failures += 1;
                seen && self.failures <= PATIENCE
            }
            _ => false,
        };
        if !passes || (self.watch.is_final() && e.kind() != ErrorKind::NotYet) {
            return Err(e);
        }
        self.stats.retries += u64::from(e.kind() != ErrorKind::NotYet);
        let stamp = self.watch.stamp_now().ok().flatten();
        let same = |old: &Fault| old.stamp == stamp && old.error.to_string() == e.to_string();
        let (since, looks) = match &self.fault {
            Some(old) if same(old) => (old.since, old.looks + 1),
            _ => (begun, 1),
        };
        let fault = Fault { error: e, stamp, since, looks };
        // A file that was removed may come back after any time, and a writer that is there may mend what it writes.
        let stays = is_damage(fault.error.kind())
            && fault.looks >= LOOKS
            && begun - since >= self.options.patience
            && !self.watch.is_being_written();
        if stays {
            return Err(fault.error);
        }
        self.fault = Some(fault);
        Ok(())
    }

    /// Whether no row was found for as long as is allowed.
    fn is_idle(&self) -> bool {
        self.options.idle.zip(self.nothing).is_some_and(|(idle, (first, last))| last - first >= idle)
    }

    /// The fault of a file that did not change for most of the time in which no row was found: it is why there was none.
    fn lasting_fault(&mut self) -> Option<Error> {
        let (first, last) = self.nothing?;
        let fault = self.fault.take_if(|fault| {
            (is_damage(fault.error.kind()) || fault.error.kind() == ErrorKind::NotFound)
                && last - fault.since >= (last - first) / 2
        });
        fault.map(|fault| fault.error)
    }

    fn take(&mut self, look: Look, begun: Instant) -> Result<()> {
        let asked = if let From::Row(row) = self.options.from { row } else { 0 };
        if look.replaced {
            self.events.push_back(Event::Replaced { left: std::mem::take(&mut self.stats.waiting) });
            self.next = Some(asked);
            self.unseen = Some(begun);
            // Its rows come at once.
            self.more = true;
            return Ok(());
        }
        let mut next = self.next.unwrap_or(match self.options.from {
            From::Start => 0,
            From::End => look.rows,
            From::Row(row) => row,
        });
        for (path, from, to) in look.shrunk {
            next = next.min(to).max(asked);
            self.events.push_back(Event::Shrunk { path, from, to });
        }
        self.next = Some(next);
        let waited = std::mem::replace(&mut self.stats.waiting, look.rows.saturating_sub(next));
        self.watch.anchor(next)?;
        let batch = self.batch()?;
        let wanted = self.stats.waiting.min(batch);
        let rows = if wanted == 0 { None } else { self.watch.rows(next, wanted, batch)? };
        let Some(rows) = rows else {
            self.unseen = Some(begun);
            // What took the place of the file comes at once. If it was written over it, these were the rows of the new one.
            self.more = self.watch.spent() || self.watch.is_replaced();
            if self.watch.is_replaced() {
                self.stats.waiting = waited;
            }
            return Ok(());
        };
        let rows = self.limited(rows)?;
        self.watch.given(&rows)?;
        self.next = Some(next + rows.count);
        self.stats.rows += rows.count;
        self.stats.waiting -= rows.count;
        if self.options.rows.is_some_and(|most| self.stats.rows >= most) {
            self.stats.unwanted = std::mem::take(&mut self.stats.waiting);
        }
        if let Some(before) = self.watch.before().or(self.unseen) {
            self.delays.add(before.elapsed(), rows.count);
        }
        self.more = self.stats.waiting > 0;
        if !self.more {
            // The next row was not there when this look began.
            self.unseen = Some(begun);
        }
        self.pause = self.options.interval / 8;
        self.events.push_back(Event::Rows(rows));
        Ok(())
    }

    /// No more rows than are wanted in all.
    fn limited(&self, rows: Rows) -> Result<Rows> {
        let left = self.options.rows.map_or(u64::MAX, |most| most - self.stats.rows.min(most));
        if rows.count <= left { Ok(rows) } else { rows.first_rows(left) }
    }

    /// Rows that are read at a time.
    fn batch(&self) -> Result<u64> {
        let mut bytes = 0u64;
        for array in self.watch.arrays() {
            let row = array.shape().get(1..).unwrap_or(&[]);
            bytes = bytes.saturating_add(byte_count(row, array.dtype().size())?);
        }
        Ok((self.options.batch / bytes.max(1)).max(1))
    }

    /// Whether there is a reason to stop.
    fn stop(&self) -> Option<Stop> {
        if self.options.rows.is_some_and(|most| self.stats.rows >= most) {
            Some(Stop::Rows)
        } else if self.options.cancel.is_cancelled() {
            Some(Stop::Cancelled)
        } else if self.watch.is_final() && self.stats.waiting == 0 {
            Some(Stop::Closed)
        } else if self.is_idle() {
            Some(Stop::Idle)
        } else {
            None
        }
    }

    /// Waits before the next look.
    fn wait(&mut self) {
        // The last look is when the time is over.
        let idle = self
            .options
            .idle
            .zip(self.nothing)
            .map(|(idle, (first, _))| idle.saturating_sub(first.elapsed()));
        let pause = self.watch.soon().map_or(self.pause, |soon| soon.max(SHORTEST).min(self.pause));
        let end = Instant::now() + idle.map_or(pause, |idle| idle.min(pause));
        while !self.options.cancel.is_cancelled() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
        self.pause = (self.pause * 2).max(SHORTEST).min(self.options.interval);
    }
}

impl Iterator for Follow {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            if self.stats.stop.is_some() {
                return None;
            }
            self.stats.stop = self.stop();
            if self.stats.stop == Some(Stop::Idle)
                && let Some(fault) = self.lasting_fault()
            {
                self.stats.stop = Some(Stop::Failed);
                return Some(Err(fault));
            }
            if self.stats.stop.is_some() {
                return None;
            }
            // After a batch there may be more at once.
            if !std::mem::take(&mut self.more) {
                self.wait();
            }
            if let Err(e) = self.look() {
                self.stats.stop = Some(Stop::Failed);
                return Some(Err(e));
            }
        }
    }
}

/// Whether an error says that the file is damaged, or half written.
fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt | ErrorKind::Checksum | ErrorKind::Truncated)
}

impl Rows {
    /// The first of them.
    fn first_rows(self, count: u64) -> Result<Rows> {
        let parts = self.parts.into_iter().map(|part| part.first_rows(count)).collect::<Result<_>>()?;
        Ok(Rows { first: self.first, count, parts })
    }
}
