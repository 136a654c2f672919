//! Elements in memory, and the one loop that copies them.

use super::object::Object;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::shape::to_usize;
use hyperslab_kernels::zeroed;
use smallvec::SmallVec;

/// How the elements of a type are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As stored, so many bytes each.
    Fixed(usize),
    /// As [`Object`]s: some part is of variable length.
    Objects,
}

impl Kind {
    pub(super) fn of(dtype: &DType) -> Kind {
        if super::object::is_variable(dtype) { Kind::Objects } else { Kind::Fixed(dtype.size()) }
    }
}

/// Elements of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cells {
    Fixed { size: usize, bytes: Vec<u8> },
    Objects(Vec<Object>),
}

/// Borrowed elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum View<'a> {
    Bytes(usize, &'a [u8]),
    Objects(&'a [Object]),
}

/// Borrowed elements to be written.
#[derive(Debug)]
pub(super) enum ViewMut<'a> {
    Bytes(usize, &'a mut [u8]),
    Objects(&'a mut [Object]),
}

impl Cells {
    /// `count` elements that nobody has written yet, if they fit into `limit` bytes.
    pub(super) fn new(kind: Kind, count: u64, limit: u64) -> Result<Cells> {
        let size = match kind {
            Kind::Fixed(size) => size,
            Kind::Objects => size_of::<Object>(),
        };
        let bytes = u128::from(count) * size as u128;
        if bytes > u128::from(limit) {
            return Err(Error::limit("bytes of a staged slab", bytes, limit.into())
                .hint("change less at a time, or raise Limits::output"));
        }
        let no_memory =
            || Error::new(ErrorKind::LimitExceeded, format!("no memory for a slab of {bytes} bytes"));
        let count = to_usize(count)?;
        Ok(match kind {
            Kind::Fixed(size) => {
                Cells::Fixed { size, bytes: zeroed(count.saturating_mul(size)).ok_or_else(no_memory)? }
            }
            Kind::Objects => {
                let mut objects = Vec::new();
                objects.try_reserve_exact(count).map_err(|_| no_memory())?;
                objects.resize(count, Object::new());
                Cells::Objects(objects)
            }
        })
    }

    pub(super) fn view(&self) -> View<'_> {
        match self {
            Cells::Fixed { size, bytes } => View::Bytes(*size, bytes),
            Cells::Objects(objects) => View::Objects(objects),
        }
    }

    pub(super) fn view_mut(&mut self) -> ViewMut<'_> {
        match self {
            Cells::Fixed { size, bytes } => ViewMut::Bytes(*size, bytes),
            Cells::Objects(objects) => ViewMut::Objects(objects),
        }
    }

    /// Bytes that they take in this array's own memory.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Cells::Fixed { bytes, .. } => bytes.len() as u64,
            Cells::Objects(objects) => {
                objects.iter().map(|o| (size_of::<Object>() + o.len()) as u64).sum::<u64>()
            }
        }
    }
}

impl View<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            View::Bytes(size, bytes) => bytes.len() / (*size).max(1),
            View::Objects(objects) => objects.len(),
        }
    }
}

impl<'a> ViewMut<'a> {
    fn len(&self) -> usize {
        match self {
            ViewMut::Bytes(size, bytes) => bytes.len() / (*size).max(1),
            ViewMut::Objects(objects) => objects.len(),
        }
    }

    /// Runs of `count` elements that start at these places, ascending and not overlapping. The last may be shorter.
    pub(super) fn runs(self, starts: &[usize], count: usize) -> Option<Vec<ViewMut<'a>>> {
        fn cut<'a, T>(mut rest: &'a mut [T], starts: &[usize], count: usize) -> Option<Vec<&'a mut [T]>> {
            let mut passed = 0;
            let mut runs = Vec::with_capacity(starts.len());
            for &start in starts {
                let (_, from) = rest.split_at_mut_checked(start.checked_sub(passed)?)?;
                let (run, after) = from.split_at_mut_checked(count.min(from.len()))?;
                passed = start + run.len();
                rest = after;
                runs.push(run);
            }
            Some(runs)
        }
        Some(match self {
            ViewMut::Bytes(size, bytes) => {
                let starts: Vec<usize> = starts.iter().map(|s| s.saturating_mul(size)).collect();
                let runs = cut(bytes, &starts, count.checked_mul(size)?)?;
                runs.into_iter().map(|run| ViewMut::Bytes(size, run)).collect()
            }
            ViewMut::Objects(objects) => {
                cut(objects, starts, count)?.into_iter().map(ViewMut::Objects).collect()
            }
        })
    }
}

/// Where the items of a loop are, in elements from where the loop starts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Steps<'a> {
    /// Item *i* is `i × step` on.
    Even(isize),
    /// Item *i* is so many times the second number on as the *i*-th of these.
    Listed(&'a [usize], isize),
}

/// One loop of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop<'a> {
    pub(super) count: usize,
    pub(super) from: Steps<'a>,
    pub(super) to: Steps<'a>,
}

impl Steps<'_> {
    fn at(self, i: usize) -> isize {
        match self {
            Steps::Even(step) => (i as isize).wrapping_mul(step),
            Steps::Listed(list, scale) => (list.get(i).copied().unwrap_or(0) as isize).wrapping_mul(scale),
        }
    }

    /// The least and the greatest of `count` distances.
    fn bounds(self, count: usize) -> (i128, i128) {
        match self {
            Steps::Even(step) => {
                let last = step as i128 * count.saturating_sub(1) as i128;
                (last.min(0), last.max(0))
            }
            Steps::Listed(list, scale) => {
                let places = || list.iter().map(|&p| p as i128 * scale as i128);
                (places().min().unwrap_or(0), places().max().unwrap_or(0))
            }
        }
    }
}

impl<'a> Loop<'a> {
    /// A loop that steps evenly on both sides.
    pub(super) fn even(count: usize, from: isize, to: isize) -> Loop<'a> {
        Loop { count, from: Steps::Even(from), to: Steps::Even(to) }
    }

    /// This loop around `inner` as one, if one continues the other on both sides.
    fn fold(&self, inner: &Loop<'a>) -> Option<Loop<'a>> {
        let (Steps::Even(from), Steps::Even(to)) = (self.from, self.to) else { return None };
        let (Steps::Even(inner_from), Steps::Even(inner_to)) = (inner.from, inner.to) else { return None };
        let count = inner.count as isize;
        let continues =
            Some(from) == inner_from.checked_mul(count) && Some(to) == inner_to.checked_mul(count);
        continues.then(|| Loop { count: self.count.saturating_mul(inner.count), ..*inner })
    }
}

/// Copies one element for each combination of the loops' items, the first of them outermost: from `from_at` on in `from`
/// to `to_at` on in `to`.
pub(super) fn copy(
    from: View<'_>,
    from_at: usize,
    to: &mut ViewMut<'_>,
    to_at: usize,
    loops: &[Loop<'_>],
) -> Result<()> {
    if loops.iter().any(|l| l.count == 0) {
        return Ok(());
    }
    let mut folded: SmallVec<[Loop<'_>; 4]> = SmallVec::new();
    for next in loops {
        if next.count == 1
            && let (Steps::Even(_), Steps::Even(_)) = (next.from, next.to)
        {
            continue;
        }
        match folded.last().and_then(|outer| outer.fold(next)) {
            Some(one) => {
                folded.pop();
                folded.push(one);
            }
            None => folded.push(*next),
        }
    }
    let inside = |at: usize, length: usize, side: &dyn Fn(&Loop<'_>) -> (i128, i128)| {
        let (low, high) =
            folded.iter().map(side).fold((at as i128, at as i128), |(low, high), b| (low + b.0, high + b.1));
        low >= 0 && high < length as i128
    };
    let listed = |steps: Steps<'_>, count: usize| match steps {
        Steps::Even(_) => true,
        Steps::Listed(list, _) => list.len() == count,
    };
    if !folded.iter().all(|l| listed(l.from, l.count) && listed(l.to, l.count))
        || !inside(from_at, from.len(), &|l| l.from.bounds(l.count))
        || !inside(to_at, to.len(), &|l| l.to.bounds(l.count))
    {
        return Err(Error::invalid("a transfer of a plan lies outside of its slabs"));
    }
    let (from_at, to_at) = (from_at as isize, to_at as isize);
    match (from, to) {
        (View::Bytes(size, from), ViewMut::Bytes(same, to)) if size == *same => {
            walk(&folded, from_at, to_at, &mut |f, fs, t, ts, n| match size {
                1 => run::<1>(from, f, fs, to, t, ts, n),
                2 => run::<2>(from, f, fs, to, t, ts, n),
                4 => run::<4>(from, f, fs, to, t, ts, n),
                8 => run::<8>(from, f, fs, to, t, ts, n),
                16 => run::<16>(from, f, fs, to, t, ts, n),
                _ => run_sized(size, from, f, fs, to, t, ts, n),
            });
            Ok(())
        }
        (View::Objects(from), ViewMut::Objects(to)) => {
            walk(&folded, from_at, to_at, &mut |f, fs, t, ts, n| {
                for i in 0..n {
                    if let (Some(source), Some(target)) =
                        (from.get((f + fs.at(i)) as usize), to.get_mut((t + ts.at(i)) as usize))
                    {
                        target.clone_from(source);
                    }
                }
            });
            Ok(())
        }
        _ => Err(Error::invalid("a transfer between elements of different sizes")),
    }
}

/// Runs the loops; the innermost one is given to `run` whole. As deep as there are axes.
fn walk<'a>(
    loops: &[Loop<'a>],
    from: isize,
    to: isize,
    run: &mut impl FnMut(isize, Steps<'a>, isize, Steps<'a>, usize),
) {
    match loops {
        [] => run(from, Steps::Even(1), to, Steps::Even(1), 1),
        [one] => run(from, one.from, to, one.to, one.count),
        [one, inner @ ..] => {
            for i in 0..one.count {
                walk(inner, from + one.from.at(i), to + one.to.at(i), run);
            }
        }
    }
}

/// Copies `n` elements of `N` bytes. All places are known to be inside.
#[inline(always)]
fn run<const N: usize>(
    from: &[u8],
    f: isize,
    fs: Steps<'_>,
    to: &mut [u8],
    t: isize,
    ts: Steps<'_>,
    n: usize,
) {
    let (start, target) = (f as usize * N, t as usize * N);
    match (fs, ts) {
        (Steps::Even(1), Steps::Even(1)) => {
            to[target..target + n * N].copy_from_slice(&from[start..start + n * N]);
        }
        // One element everywhere.
        (Steps::Even(0), Steps::Even(1)) => {
            let Some(element) = from.get(start..).and_then(|f| f.first_chunk::<N>()) else { return };
            for slot in to[target..target + n * N].chunks_exact_mut(N) {
                slot.copy_from_slice(element);
            }
        }
        _ => {
            for i in 0..n {
                let (a, b) = ((f + fs.at(i)) as usize * N, (t + ts.at(i)) as usize * N);
                to[b..b + N].copy_from_slice(&from[a..a + N]);
            }
        }
    }
}

/// The same for any size.
#[allow(clippy::too_many_arguments)]
fn run_sized(
    size: usize,
    from: &[u8],
    f: isize,
    fs: Steps<'_>,
    to: &mut [u8],
    t: isize,
    ts: Steps<'_>,
    n: usize,
) {
    if let (Steps::Even(1), Steps::Even(1)) = (fs, ts) {
        let (start, target) = (f as usize * size, t as usize * size);
        to[target..target + n * size].copy_from_slice(&from[start..start + n * size]);
        return;
    }
    for i in 0..n {
        let (a, b) = ((f + fs.at(i)) as usize * size, (t + ts.at(i)) as usize * size);
        to[b..b + size].copy_from_slice(&from[a..a + size]);
    }
}
