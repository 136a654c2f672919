//! One part of a canvas, and how elements are placed in it.

use super::{Canvas, Positions};

/// What is done to elements on their way into the result.
pub trait Convert: Sync {
    /// What can go wrong.
    type Error;

    /// Bytes of one element before.
    fn source_size(&self) -> usize;

    /// Fills `target`, some whole elements, from elements at `source[0]`, `source[stride]`, `source[2 × stride]` …
    fn run(&self, source: &[u8], stride: usize, target: &mut [u8]) -> Result<(), Self::Error>;
}

/// Elements of `N` bytes as they are.
#[derive(Clone, Copy, Debug)]
pub struct Verbatim<const N: usize>;

impl<const N: usize> Convert for Verbatim<N> {
    type Error = std::convert::Infallible;

    fn source_size(&self) -> usize {
        N
    }

    #[inline(always)]
    fn run(&self, source: &[u8], stride: usize, target: &mut [u8]) -> Result<(), Self::Error> {
        if stride == N {
            target.copy_from_slice(&source[..target.len()]);
            return Ok(());
        }
        let mut at = 0;
        for element in target.chunks_exact_mut(N) {
            element.copy_from_slice(&source[at..at + N]);
            at += stride;
        }
        Ok(())
    }
}

/// Where the elements of a lane are in the source: a number of elements to be added up over the lanes.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Item *i* of the lane is `start + i × step` elements on.
    Even {
        /// Of the first item.
        start: usize,
        /// Distance.
        step: usize,
    },
    /// Item *i* of the lane is as far on as the *i*-th of these says.
    Listed(&'a [usize]),
}

/// Items of one axis to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    /// First item, counted on the whole axis.
    pub first: usize,
    /// Number of items.
    pub count: usize,
    /// Where they come from.
    pub input: Input<'a>,
}

/// Why elements could not be placed.
#[derive(Debug, PartialEq, Eq)]
pub enum PlaceError<E> {
    /// The lanes are not within the tile, or ask for more than the source has.
    Bounds,
    /// The conversion failed.
    Convert(E),
}

/// The right to write one tile of a canvas.
#[derive(Debug)]
pub struct Tile<'c> {
    canvas: &'c Canvas<'c>,
    /// First item and number of items on each axis.
    items: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug)]
enum Output<'a> {
    /// Distance in bytes.
    Even(isize),
    /// Positions, to be multiplied by a stride in bytes.
    Listed(&'a [usize], usize),
}

/// One loop of the placing.
#[derive(Clone, Copy, Debug)]
struct Loop<'a> {
    count: usize,
    /// In elements.
    input: Input<'a>,
    output: Output<'a>,
}

impl<'c> Tile<'c> {
    pub(super) fn new(canvas: &'c Canvas<'c>, items: Vec<(usize, usize)>) -> Self {
        Tile { canvas, items }
    }

    /// First item and number of items on each axis.
    pub fn items(&self) -> &[(usize, usize)] {
        &self.items
    }

    /// If the lanes' elements follow one another both in the source and in the result: which element of the source is
    /// the first, and the bytes of the result.
    pub fn run(&mut self, lanes: &[Lane<'_>]) -> Option<(usize, &mut [u8])> {
        let element = self.canvas.element;
        let (first, loops, start) = self.loops(lanes)?;
        let count = match loops.as_slice() {
            [] => 1,
            [Loop { count, input: Input::Even { step: 1, .. }, output: Output::Even(step) }]
                if *step == element as isize =>
            {
                *count
            }
            _ => return None,
        };
        // SAFETY: `loops` made the loops from lanes within this tile; their elements follow one another from `start`, and
        // the tile, whose alone they are, is borrowed exclusively.
        Some((first, unsafe { std::slice::from_raw_parts_mut(self.canvas.out.add(start), count * element) }))
    }

    /// Places one element for each combination of the lanes' items; one lane for each axis of the canvas. `source` starts
    /// with the element that has number `base` in the lanes' inputs.
    pub fn place<C: Convert>(
        &mut self,
        lanes: &[Lane<'_>],
        source: &[u8],
        base: usize,
        convert: &C,
    ) -> Result<(), PlaceError<C::Error>> {
        if lanes.iter().any(|l| l.count == 0) && lanes.len() == self.items.len() {
            return Ok(());
        }
        let (first, loops, start) = self.loops(lanes).ok_or(PlaceError::Bounds)?;
        let size = convert.source_size();
        let most = loops.iter().try_fold(first, |n, one| {
            n.checked_add(match one.input {
                Input::Even { step, .. } => step.checked_mul(one.count - 1)?,
                Input::Listed(list) => list.iter().copied().max().unwrap_or(0),
            })
        });
        let least = loops.iter().try_fold(first, |n, one| match one.input {
            Input::Even { .. } => Some(n),
            Input::Listed(list) => n.checked_add(list.iter().copied().min().unwrap_or(0)),
        });
        let end = most.and_then(|n| n.checked_sub(base)?.checked_add(1)?.checked_mul(size));
        if end.is_none_or(|end| end > source.len()) || least.is_none_or(|least| least < base) {
            return Err(PlaceError::Bounds);
        }
        let walk = Walk { source, base, size, element: self.canvas.element, convert };
        // SAFETY: `loops` made the loops from lanes within this tile, `start` is the offset of their first element.
        unsafe { walk.go(&loops, first, self.canvas.out.add(start)) }.map_err(PlaceError::Convert)
    }

    /// The loops over `lanes`, outermost first, neighbours folded into one where they are evenly spaced; the first
    /// element in the source, in elements; the first byte in the result. `None` if the lanes leave the tile.
    fn loops<'l>(&'l self, lanes: &[Lane<'l>]) -> Option<(usize, Vec<Loop<'l>>, usize)> {
        if lanes.len() != self.items.len() {
            return None;
        }
        let (mut first, mut start) = (0usize, 0usize);
        let mut loops: Vec<Loop<'l>> = Vec::with_capacity(lanes.len());
        for (i, lane) in lanes.iter().enumerate() {
            let (from, count) = self.items[i];
            let end = lane.first.checked_add(lane.count)?;
            if lane.count == 0 || lane.first < from || end > from + count {
                return None;
            }
            let stride = self.canvas.strides[i];
            let output = match &self.canvas.axes[i].positions {
                Positions::Even { start: position, step, .. } => {
                    // Both are positions of items of this axis, which are known to be within the result.
                    let at = *position as isize + lane.first as isize * *step;
                    start += at as usize * stride;
                    Output::Even(*step * stride as isize)
                }
                Positions::Listed(list) => Output::Listed(list.get(lane.first..end)?, stride),
            };
            let input = match lane.input {
                Input::Even { start, step } => {
                    first = first.checked_add(start)?;
                    Input::Even { start: 0, step }
                }
                Input::Listed(list) => {
                    if list.len() != lane.count {
                        return None;
                    }
                    Input::Listed(list)
                }
            };
            let next = Loop { count: lane.count, input, output };
            match next {
                Loop { count: 1, input: Input::Even { .. }, output: Output::Even(_) } => {}
                _ => match loops.last_mut().and_then(|outer| outer.fold(&next)) {
                    Some(folded) => {
                        loops.pop();
                        loops.push(folded);
                    }
                    None => loops.push(next),
                },
            }
        }
        Some((first, loops, start))
    }
}

impl<'a> Loop<'a> {
    /// This loop around `inner` as one loop, if both step evenly and one continues the other.
    fn fold(&self, inner: &Loop<'a>) -> Option<Loop<'a>> {
        match (self, inner) {
            (
                Loop { input: Input::Even { step: outer, .. }, output: Output::Even(outer_out), .. },
                Loop { count, input: Input::Even { step, .. }, output: Output::Even(out) },
            ) if Some(*outer) == step.checked_mul(*count) && *outer_out == out * *count as isize => {
                Some(Loop { count: self.count.checked_mul(*count)?, ..*inner })
            }
            _ => None,
        }
    }
}

struct Walk<'a, C> {
    source: &'a [u8],
    base: usize,
    size: usize,
    element: usize,
    convert: &'a C,
}

impl<C: Convert> Walk<'_, C> {
    /// Runs the loops with the first element at `from` (in elements) of the source and at `to` of the result.
    ///
    /// # Safety
    /// `to` and the loops' outputs stay within elements of one tile that the caller holds.
    unsafe fn go(&self, loops: &[Loop<'_>], from: usize, to: *mut u8) -> Result<(), C::Error> {
        let (one, inner) = match loops {
            [] => {
                // SAFETY: one element of the tile.
                let target = unsafe { std::slice::from_raw_parts_mut(to, self.element) };
                return self.convert.run(&self.source[(from - self.base) * self.size..], self.size, target);
            }
            [one, inner @ ..] => (one, inner),
        };
        if inner.is_empty()
            && let (Input::Even { step, .. }, Output::Even(out)) = (one.input, one.output)
            && out == self.element as isize
        {
            // SAFETY: the elements of this loop follow one another and are all of the tile.
            let target = unsafe { std::slice::from_raw_parts_mut(to, one.count * self.element) };
            return self.convert.run(
                &self.source[(from - self.base) * self.size..],
                step * self.size,
                target,
            );
        }
        for i in 0..one.count {
            let from = from
                + match one.input {
                    Input::Even { step, .. } => i * step,
                    Input::Listed(list) => list[i],
                };
            // SAFETY: the offset of an item of this loop, hence within the tile.
            let to = unsafe {
                match one.output {
                    Output::Even(out) => to.offset(i as isize * out),
                    Output::Listed(list, stride) => to.add(list[i] * stride),
                }
            };
            // SAFETY: passed on.
            unsafe { self.go(inner, from, to) }?;
        }
        Ok(())
    }
}
