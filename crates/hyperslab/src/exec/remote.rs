//! Sources where a request takes long: batches are fetched ahead while workers decode.

use super::ahead::First;
use super::cache::{Memory, Slot, slot};
use super::worker::{self, describe, too_long};
use super::{Cancel, Job, ReadStats, pool};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Fetch, Part, Task};
use crate::source::ByteRange;
use crate::source::store::Get;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes of one unit: of each source, what was asked and what came.
#[derive(Default)]
pub(super) struct Fetched {
    sources: BTreeMap<usize, (Vec<ByteRange>, Vec<Bytes>)>,
    /// What the stores say of each object, by the number of its key.
    objects: BTreeMap<usize, Option<Bytes>>,
    /// What is kept of each task's chunk, until a worker takes it.
    slots: Vec<Mutex<Slot>>,
}

impl Fetched {
    /// The bytes of a range that was asked for, alone or as a part of a longer one.
    fn get(&self, source: usize, range: ByteRange) -> Result<&[u8]> {
        let missing = || Error::new(ErrorKind::Io, format!("the source did not give the bytes at {range}"));
        let (ranges, bytes) = self.sources.get(&source).ok_or_else(missing)?;
        let last = ranges.partition_point(|r| r.offset <= range.offset);
        // Ranges of one source may overlap where wanted ones did; the nearest that holds all is as good as any.
        for i in (0..last).rev() {
            let from = usize::try_from(range.offset - ranges[i].offset).ok();
            let length = usize::try_from(range.length).ok();
            let found = from
                .zip(length)
                .and_then(|(from, length)| bytes.get(i)?.get(from..from.checked_add(length)?));
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(missing())
    }
}

pub(super) fn fetch(
    part: &Part,
    memory: Option<&Memory<'_>>,
    unit: &Range<usize>,
    stats: &mut ReadStats,
) -> Result<Fetched> {
    let tasks = part.tasks.get(unit.clone()).unwrap_or(&[]);
    let slots: Vec<Slot> = tasks.iter().map(|task| slot(part, memory, task)).collect();
    let wanted = |i: usize| !matches!(slots.get(i), Some(Slot::Found(_)));
    let mut fetched = Fetched::default();
    for (source, ranges) in part.requests(unit, &wanted)? {
        let Some(from) = part.sources.get(source) else { continue };
        let bytes = from.read(&ranges)?;
        if bytes.len() != ranges.len() {
            return Err(Error::new(
                ErrorKind::Io,
                format!("{} answers {} of {} requests", from.name(), bytes.len(), ranges.len()),
            ));
        }
        stats.requests += ranges.len() as u64;
        stats.bytes_read += ranges.iter().map(|r| r.length).sum::<u64>();
        fetched.sources.insert(source, (ranges, bytes));
    }
    let mut wanted: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for task in tasks {
        if let Fetch::Object { store, key } = task.fetch {
            wanted.entry(store).or_default().push(key);
        }
    }
    for (store, keys) in wanted {
        let Some((from, _)) = part.stores.get(store) else { continue };
        let gets: Vec<Get> = keys
            .iter()
            .filter_map(|&key| part.keys.get(key))
            .map(|key| Get::whole(&**key).within(part.most))
            .collect();
        let answers = from.get_many(&gets);
        stats.requests += gets.len() as u64;
        for (key, answer) in keys.into_iter().zip(answers) {
            // Too long together, or alone: the worker asks for it once more, by itself.
            if gets.len() > 1 && answer.as_ref().is_err_and(|e| e.kind() == ErrorKind::LimitExceeded) {
                continue;
            }
            let answer = answer.map_err(|e| too_long(part, e)).map_err(|e| match part.keys.get(key) {
                Some(name) => e.context(format!("{name} of {}", from.name())),
                None => e,
            })?;
            fetched.objects.insert(key, answer);
        }
    }
    fetched.slots = slots.into_iter().map(Mutex::new).collect();
    Ok(fetched)
}

/// Runs the units of a part in order: one is fetched while the one before waits and the one before that is decoded.
/// `first` is what the first one fetched, if that was done before.
pub(super) fn run(job: &Job<'_>, threads: usize, mut first: Option<First>) -> Result<()> {
    let (sender, receiver) = sync_channel::<(&Range<usize>, Result<Fetched>)>(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut stats = ReadStats::default();
            for unit in &job.part.units {
                if job.cancel.is_some_and(Cancel::is_cancelled) || !job.wants(unit.start) {
                    break;
                }
                let fetched = match first.take() {
                    Some((fetched, took)) => {
                        stats.add(&took);
                        fetched
                    }
                    None => fetch(job.part, job.memory.as_ref(), unit, &mut stats),
                };
                let failed = fetched.is_err();
                if sender.send((unit, fetched)).is_err() || failed {
                    break;
                }
            }
            job.count(&stats);
        });
        for (unit, fetched) in receiver {
            match fetched {
                Ok(fetched) => decode(job, unit, &fetched, threads),
                Err(e) => {
                    let task = job.part.tasks.get(unit.start);
                    job.fail(
                        unit.start,
                        match task {
                            Some(task) => describe(job, task, e),
                            None => e,
                        },
                    );
                }
            }
            if job.failed.load(Ordering::Relaxed) != usize::MAX {
                break;
            }
        }
    });
    job.cancel.map_or(Ok(()), Cancel::check)
}

fn decode(job: &Job<'_>, unit: &Range<usize>, fetched: &Fetched, threads: usize) {
    job.next.store(unit.start, Ordering::Relaxed);
    let work = || {
        worker::with(|worker| {
            loop {
                let number = job.next.fetch_add(1, Ordering::Relaxed);
                if !unit.contains(&number) || !job.wants(number) {
                    break;
                }
                let Some(task) = job.part.tasks.get(number) else { break };
                let slot = fetched.slots.get(number - unit.start);
                let slot = slot.map(|s| std::mem::replace(&mut *lock(s), Slot::Passing));
                if let Err(e) = one(job, worker, task, slot.unwrap_or(Slot::Passing), fetched) {
                    job.fail(number, describe(job, task, e));
                }
            }
            job.count(&std::mem::take(&mut worker.stats));
        });
    };
    let taken = pool::run(threads.min(unit.len()), &work);
    job.count(&ReadStats { threads: taken as u64, ..ReadStats::default() });
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn one(job: &Job<'_>, worker: &mut worker::Worker, task: &Task, slot: Slot, fetched: &Fetched) -> Result<()> {
    if let Some(cancel) = job.cancel {
        cancel.check()?;
    }
    match task.fetch {
        Fetch::Encoded { .. } if matches!(slot, Slot::Found(_)) => worker.decoded(job, task, &[], 0, slot),
        Fetch::Encoded { source, offset, length, mask } => {
            let encoded = fetched.get(source, ByteRange::new(offset, length))?;
            worker.decoded(job, task, encoded, mask, slot)
        }
        Fetch::Stored { source, .. } => worker.stored(job, task, |range| fetched.get(source, range)),
        Fetch::Object { key, .. } => match fetched.objects.get(&key) {
            Some(bytes) => worker.object(job, task, bytes.as_deref(), slot),
            None => worker.task(job, task, slot, &mut Vec::new()),
        },
        _ => worker.in_memory(job, task),
    }
}
