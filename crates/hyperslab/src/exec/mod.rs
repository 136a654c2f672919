//! Runs a [`ReadPlan`]: fetches, decodes on workers, converts and places.
//!
//! Workers take units of a part in order. Each chunk is decoded in the worker's own buffers, or straight into the result
//! where it lies there in one run, and is converted and placed in one pass into its own tile of the result
//! ([`hyperslab_kernels::canvas`]). Nothing is locked while bytes are read or decoded.

mod ahead;
mod cache;
pub mod encode;
mod pool;
mod remote;
mod stats;
#[cfg(test)]
mod tests;
mod worker;

pub use cache::ChunkCache;
pub use stats::{Cancel, ReadStats};

use crate::dtype::{ByteOrder, Conversion, DType, Native};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::Workers;
use crate::plan::{Fetch, Part, ReadPlan, Task};
use crate::select::Selector;
use crate::shape::to_usize;
use hyperslab_kernels::canvas::{Axis, Canvas, Convert, Positions};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use worker::Worker;

/// In which form the elements of a result are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As stored.
    Stored,
    /// As a type of this machine.
    Native {
        /// The type.
        native: Native,
        /// Fail where a value changes.
        exact: bool,
    },
}

/// What a read gives for chunks that were never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingChunks {
    /// The fill value of the array.
    #[default]
    Fill,
    /// NaN, where elements are floats; otherwise the fill value.
    Nan,
    /// An error of kind [`NotFound`](crate::ErrorKind::NotFound).
    Raise,
    /// An error of kind [`NotYet`](crate::ErrorKind::NotYet): for what is being written, where a chunk that is missing may
    /// come yet. Elements of a virtual dataset that no source covers are the same.
    NotYet,
}

/// How a plan is run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Threads at most, the calling one counted; `None`: as many as the process may use.
    pub threads: Option<usize>,
    /// Stops the run.
    pub cancel: Option<Cancel>,
    /// What chunks are that were never written.
    pub missing: MissingChunks,
    /// Decoded chunks of earlier reads.
    pub cache: Option<ChunkCache>,
}

/// The memory of a result.
#[derive(Debug)]
pub struct Output<'a> {
    /// Room for exactly the elements of the plan.
    pub bytes: &'a mut [u8],
    /// Whether it holds zeros only, so that zeros need not be written.
    pub zeroed: bool,
}

/// Bytes of one element of the result.
pub fn element_size(plan: &ReadPlan, form: Form) -> usize {
    match form {
        Form::Stored => plan.dtype().size(),
        Form::Native { native, .. } => native.size(),
    }
}

/// Runs a plan. After an error the output holds anything.
pub fn run(plan: &ReadPlan, form: Form, output: Output<'_>, options: &RunOptions) -> Result<ReadStats> {
    let element = element_size(plan, form);
    let wanted = plan.count()?.checked_mul(element);
    if wanted != Some(output.bytes.len()) {
        return Err(Error::invalid(format!(
            "a buffer of {} bytes for {:?} elements of {element}",
            output.bytes.len(),
            plan.shape()
        )));
    }
    let mut stats = ReadStats { bytes_out: output.bytes.len() as u64, threads: 1, ..ReadStats::default() };
    if plan.is_sparse() && options.missing == MissingChunks::NotYet {
        check_covered(plan)?;
    }
    let whole = |part: &Part| part.covers();
    let mut zeroed = output.zeroed;
    if plan.is_sparse() && !plan.parts().iter().any(whole) {
        let fill = fill_element(plan.background(), &conversion(plan.dtype(), plan, form)?)?;
        if !(zeroed && fill.iter().all(|&b| b == 0)) {
            zeroed = false;
            repeat(&fill, output.bytes);
        }
    }
    // Later parts may write over earlier ones.
    let overlap = plan.parts().len() > 1;
    let mut ahead = ahead::Ahead::new(plan, options);
    for part in plan.parts() {
        let first = ahead.next();
        let done = run_part(part, plan, form, output.bytes, zeroed && !overlap, options, first);
        stats.add(&done.context(|| format!("array {}", part.name))?);
    }
    stats.bytes_out = output.bytes.len() as u64;
    Ok(stats)
}

/// Calls `work` with each number below `count`, on at most `most` threads; each has a state of its own. `threads`: as in
/// [`RunOptions`].
pub(crate) fn for_each<S>(
    count: usize,
    threads: Option<usize>,
    most: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) + Sync,
) {
    let next = AtomicUsize::new(0);
    let threads = threads.unwrap_or_else(pool::default_threads).min(most).min(count).max(1);
    pool::run(threads, &|| {
        let mut state = state();
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                number if number < count => work(&mut state, number),
                _ => break,
            }
        }
    });
}

/// So many threads, or as many as the process may use, as the workers of a format.
#[derive(Debug)]
pub struct Threads(pub Option<usize>);

impl Workers for Threads {
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        for_each(count, self.0, usize::MAX, || (), |(), i| work(i));
    }
}

fn conversion(dtype: &DType, plan: &ReadPlan, form: Form) -> Result<Conversion> {
    match form {
        Form::Stored => Conversion::between(dtype, plan.dtype()),
        Form::Native { native, exact } => Conversion::new(dtype, native, exact),
    }
}

/// Fills `out` with copies of `element`.
fn repeat(element: &[u8], out: &mut [u8]) {
    // A block of copies first, so that the rest is copied in long runs.
    let block = element.len() * (4096 / element.len().max(1)).max(1);
    let (first, rest) = out.split_at_mut(block.min(out.len()));
    first.chunks_exact_mut(element.len().max(1)).for_each(|one| one.copy_from_slice(element));
    rest.chunks_mut(block.max(1)).for_each(|more| more.copy_from_slice(&first[..more.len()]));
}

/// The fill value as wanted.
fn fill_element(stored: &[u8], conversion: &Conversion) -> Result<Vec<u8>> {
    let zeros = vec![0; conversion.source_size()];
    let stored = if stored.is_empty() { &zeros } else { stored };
    let mut fill = vec![0; conversion.target_size()];
    conversion.run(stored, stored.len(), &mut fill)?;
    Ok(fill)
}

/// A stored NaN, of types that have one that is known here.
fn nan(dtype: &DType) -> Option<Vec<u8>> {
    match dtype {
        DType::Float(t) if t.is_ieee() => {
            let mut nan = match t.size {
                2 => half::f16::NAN.to_le_bytes().to_vec(),
                4 => f32::NAN.to_le_bytes().to_vec(),
                _ => f64::NAN.to_le_bytes().to_vec(),
            };
            if t.order == ByteOrder::Big {
                nan.reverse();
            }
            Some(nan)
        }
        DType::Complex { base } => nan(base).map(|part| part.repeat(2)),
        _ => None,
    }
}

/// Does `work` for each of `items` in up to `threads` threads, in any order; gives the first error that comes.
pub(crate) fn each<T: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let most = threads.min(items.len());
    if most <= 1 {
        return items.into_iter().try_for_each(work);
    }
    let items = Mutex::new(items.into_iter());
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    pool::run(most, &|| {
        loop {
            let next = items.lock().unwrap_or_else(|e| e.into_inner()).next();
            let Some(item) = next else { break };
            if let Err(e) = work(item) {
                failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(e);
                break;
            }
        }
    });
    failed.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}

/// What `work` makes of each of `items`, in their order, in up to `threads` threads: of those that wait rather than compute.
pub(crate) fn all<I: Sync, T: Send>(threads: usize, items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let slots: Vec<Mutex<Option<T>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let put = |(item, slot): (&I, &Mutex<Option<T>>)| {
        let made = work(item);
        *slot.lock().unwrap_or_else(|e| e.into_inner()) = Some(made);
        Ok(())
    };
    // Nothing fails here: what was made of an item may be an error.
    let _ = each(threads, items.iter().zip(&slots).collect(), put);
    slots.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(|e| e.into_inner())).collect()
}

/// How many threads copying so many bytes is worth.
pub(crate) fn copying_threads(bytes: u64, most: Option<usize>) -> usize {
    let worth = usize::try_from(bytes / COPIED).unwrap_or(usize::MAX).max(1);
    worth.min(most.unwrap_or_else(pool::default_threads).max(1))
}

/// What all workers on one part share.
struct Job<'a> {
    part: &'a Part,
    canvas: &'a Canvas<'a>,
    conversion: &'a Conversion,
    /// The fill value as wanted.
    fill: Vec<u8>,
    /// Whether chunks that were never written hold the fill value already.
    filled: bool,
    cancel: Option<&'a Cancel>,
    missing: MissingChunks,
    /// Chunks of earlier reads, where they are kept.
    memory: Option<cache::Memory<'a>>,
    /// The next unit, or task of a remote unit, that nobody has taken.
    next: AtomicUsize,
    /// The first task in the order of the plan that is known to fail: what comes before it is still done, so that the
    /// error does not depend on who was faster.
    failed: AtomicUsize,
    error: Mutex<Option<(usize, Error)>>,
    stats: Mutex<ReadStats>,
}

impl Job<'_> {
    fn fail(&self, task: usize, error: Error) {
        self.failed.fetch_min(task, Ordering::Relaxed);
        let mut first = self.error.lock().unwrap_or_else(|e| e.into_inner());
        if first.as_ref().is_none_or(|(known, _)| task < *known) {
            *first = Some((task, error));
        }
    }

    /// Whether a task is still worth doing.
    fn wants(&self, task: usize) -> bool {
        task < self.failed.load(Ordering::Relaxed)
    }

    fn count(&self, stats: &ReadStats) {
        self.stats.lock().unwrap_or_else(|e| e.into_inner()).add(stats);
    }

    /// Takes units until there are none left.
    fn take_units(&self, worker: &mut Worker) {
        let units = &self.part.units;
        while let Some(unit) = units.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if !self.wants(unit.start) {
                break;
            }
            if let Some(Err(e)) = self.cancel.map(Cancel::check) {
                self.fail(unit.start, e);
                break;
            }
            worker.unit(self, unit);
        }
    }
}

fn run_part(
    part: &Part,
    plan: &ReadPlan,
    form: Form,
    out: &mut [u8],
    zeroed: bool,
    options: &RunOptions,
    first: Option<ahead::First>,
) -> Result<ReadStats> {
    let conversion = conversion(&part.dtype, plan, form)?;
    if part.tasks.is_empty() {
        return Ok(ReadStats::default());
    }
    let most = options.threads.unwrap_or_else(pool::default_threads).max(1);
    let threads = worth(part, conversion.target_size()).min(part.units.len()).min(most);
    if zeroed && threads > 1 && is_dense(part) {
        touch(out, threads);
    }
    let axes = axes(part)?;
    let canvas = Canvas::new(out, conversion.target_size(), axes)
        .ok_or_else(|| Error::invalid("the parts of a plan do not fit its result"))?;
    // Fills stand first, objects that turn out not to be there last. A fill value that nobody wants may be one that does
    // not convert.
    let wanted =
        |task: Option<&Task>| task.is_some_and(|t| matches!(t.fetch, Fetch::Fill | Fetch::Object { .. }));
    let fill = if wanted(part.tasks.first()) || wanted(part.tasks.last()) {
        let nan = (options.missing == MissingChunks::Nan).then(|| nan(&part.dtype)).flatten();
        fill_element(nan.as_deref().unwrap_or(&part.fill), &conversion).context(|| "fill value")?
    } else {
        Vec::new()
    };
    let job = Job {
        part,
        canvas: &canvas,
        conversion: &conversion,
        filled: zeroed && fill.iter().all(|&b| b == 0),
        fill,
        cancel: options.cancel.as_ref(),
        missing: options.missing,
        memory: cache::Memory::new(options.cache.as_ref(), part),
        next: AtomicUsize::new(0),
        failed: AtomicUsize::new(usize::MAX),
        error: Mutex::new(None),
        stats: Mutex::new(ReadStats::default()),
    };
    if part.has_remote() {
        remote::run(&job, most, first)?;
    } else {
        let taken = pool::run(threads, &|| worker::with(|worker| job.take_units(worker)));
        job.count(&ReadStats { threads: taken as u64, ..ReadStats::default() });
    }
    let error = job.error.into_inner().unwrap_or_else(|e| e.into_inner());
    match error {
        Some((_, error)) => Err(error),
        None => Ok(job.stats.into_inner().unwrap_or_else(|e| e.into_inner())),
    }
}

/// Fails if a part of the result has no source, or if that cannot be told.
fn check_covered(plan: &ReadPlan) -> Result<()> {
    let mut written = 0u64;
    for part in plan.parts() {
        written = written.saturating_add(part.elements()?);
    }
    let wanted = plan.count()? as u64;
    if written > wanted {
        let what = "waiting for a virtual dataset whose mappings overlap, or whose sources are virtual";
        return Err(Error::unsupported(what));
    }
    if written < wanted {
        return Err(Error::new(ErrorKind::NotYet, "no source covers all of what is wanted yet"));
    }
    Ok(())
}

/// Whether nearly all of the result will be written.
fn is_dense(part: &Part) -> bool {
    // Fills stand first.
    part.covers() && part.tasks.get(part.tasks.len() / 8).is_some_and(|t| t.fetch != Fetch::Fill)
}

/// Gets the memory of a fresh result from the system, each huge page by one thread.
///
/// Otherwise workers meet at the same page: each gets one from the system and clears it, and all but one are thrown
/// away. That costs more than the reads of a whole result that is not compressed.
fn touch(out: &mut [u8], threads: usize) {
    const PAGE: usize = 2 << 20;
    if out.len() < 4 * PAGE {
        return;
    }
    let (first, pages) = out.split_at_mut(out.as_ptr().align_offset(PAGE).min(out.len()));
    first.iter_mut().take(1).for_each(|byte| *byte = 0);
    let pages = Mutex::new(pages.chunks_mut(PAGE));
    pool::run(threads, &|| {
        loop {
            let next = pages.lock().unwrap_or_else(|e| e.into_inner()).next();
            match next.and_then(|page| page.first_mut()) {
                Some(byte) => *byte = 0,
                None => break,
            }
        }
    });
}

/// A thread is worth waking for so many bytes to copy.
const COPIED: u64 = 512 << 10;

/// How many threads the work of a part is worth: waking one costs as much as decoding some tens of KiB.
fn worth(part: &Part, target_size: usize) -> usize {
    const DECODED: u64 = 48 << 10;
    let chunk: u64 = part.chunk.iter().fold(part.element() as u64, |n, &d| n.saturating_mul(d));
    let wanted = part.elements().unwrap_or(0).saturating_mul(target_size as u64);
    let bytes = if part.pipeline.is_empty() {
        wanted / COPIED
    } else {
        (chunk.saturating_mul(part.tasks.len() as u64) / DECODED).max(wanted / COPIED)
    };
    usize::try_from(bytes).unwrap_or(usize::MAX).max(1)
}

/// The axes of the canvas: the box that a part's positions lie in.
fn axes(part: &Part) -> Result<Vec<Axis>> {
    let selectors = part.region.selectors().iter().zip(part.region.extents());
    selectors
        .enumerate()
        .map(|(i, (selector, &extent))| {
            let positions = match selector {
                Selector::Range { count, out_start, out_step, .. } => Positions::Even {
                    start: to_usize(*out_start)?,
                    step: isize::try_from(*out_step)
                        .map_err(|_| Error::invalid("a step of a plan is too long"))?,
                    count: to_usize(*count)?,
                },
                Selector::Points { out, .. } => Positions::Listed(
                    part.projection
                        .order(i)
                        .unwrap_or(&[])
                        .iter()
                        .map(|&item| to_usize(out.get(item).copied().unwrap_or(u64::MAX)))
                        .collect::<Result<_>>()?,
                ),
            };
            Ok(Axis { extent: to_usize(extent)?, positions, cuts: part.projection.starts(i) })
        })
        .collect()
}
