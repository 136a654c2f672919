//! From elements as stored to elements as wanted.
//!
//! A [`Conversion`] is compiled once for a pair of types and then run over many elements. Values that the wanted type
//! cannot hold follow HDF5's rules: integers are clamped, fractions cut, NaN becomes the integer 0, and a float beyond
//! the largest finite one becomes infinite.

mod element;
mod fast;
mod number;
#[cfg(test)]
mod tests;

pub use element::{Element, Native};

use super::{ByteOrder, DType};
use crate::error::{Error, ErrorKind, Result};
use hyperslab_kernels::canvas::{Convert, Verbatim};
use hyperslab_kernels::swap_elements;
use number::Layout;

/// How elements get from the stored to the wanted form.
#[derive(Clone, Debug)]
pub struct Conversion {
    how: How,
    source: usize,
    target: usize,
    /// Whether elements are wanted in the other byte order than this machine's.
    swap_after: bool,
    /// Fails where a value changes.
    exact: Option<(Layout, Native)>,
}

#[derive(Clone, Debug)]
enum How {
    /// The bytes as they are.
    Verbatim,
    /// Each unit of this many bytes reversed.
    Swapped(usize),
    /// Numbers that the machine knows.
    Fast(fast::Run),
    /// Any other number.
    General(Layout, Native),
    /// Real and imaginary part, each its offset in the element.
    Pair(Box<[(usize, Conversion); 2]>),
}

impl Conversion {
    /// Elements of `size` bytes as they are stored.
    pub fn stored(size: usize) -> Conversion {
        Conversion { how: How::Verbatim, source: size, target: size, swap_after: false, exact: None }
    }

    /// From `dtype` to a type of this machine. With `exact`, a value that changes is an error of the read.
    pub fn new(dtype: &DType, wanted: Native, exact: bool) -> Result<Conversion> {
        if let Some(part) = wanted.complex_part() {
            let pair = parts(dtype).ok_or_else(|| no_way(dtype, wanted))?;
            let convert = |(offset, part_type): (usize, &DType)| {
                Ok::<_, Error>((offset, Conversion::new(part_type, part, exact)?))
            };
            let pair = [convert(pair[0])?, convert(pair[1])?];
            let half = part.size();
            let adjacent = pair[0].0 == 0 && pair[1].0 == half && dtype.size() == 2 * half;
            let how = match (&pair[0].1.how, &pair[1].1.how) {
                (How::Verbatim, How::Verbatim) if adjacent => How::Verbatim,
                (How::Swapped(_), How::Swapped(_)) if adjacent => How::Swapped(half),
                _ => How::Pair(Box::new(pair)),
            };
            return Ok(Conversion {
                how,
                source: dtype.size(),
                target: wanted.size(),
                swap_after: false,
                exact: None,
            });
        }
        let layout = Layout::of(dtype).ok_or_else(|| no_way(dtype, wanted))?;
        let how = match layout.machine() {
            Some((native, order)) => {
                let swapped = order == ByteOrder::Big && native.size() > 1;
                if native == wanted {
                    let swap = swapped != cfg!(target_endian = "big") && native.size() > 1;
                    if swap { How::Swapped(native.size()) } else { How::Verbatim }
                } else {
                    How::Fast(fast::run(native, wanted, swapped))
                }
            }
            None => {
                layout.check().map_err(|what| Error::unsupported(format!("{dtype}: {what}")))?;
                How::General(layout.clone(), wanted)
            }
        };
        Ok(Conversion {
            how,
            source: dtype.size(),
            target: wanted.size(),
            swap_after: false,
            exact: exact.then_some((layout, wanted)),
        })
    }

    /// From one stored form to another: equal types as they are, numbers by value.
    pub fn between(from: &DType, to: &DType) -> Result<Conversion> {
        if from == to {
            return Ok(Conversion::stored(from.size()));
        }
        let machine = Layout::of(to).and_then(|layout| layout.machine());
        let Some((native, order)) = machine.filter(|_| Layout::of(from).is_some()) else {
            return Err(Error::unsupported(format!("conversion of {from} to {to}")));
        };
        let mut conversion = Conversion::new(from, native, false)?;
        let native_order = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
        if native.size() > 1 && order != native_order {
            conversion.swap_after = true;
        }
        Ok(conversion)
    }

    /// Stored elements side by side, converted.
    pub fn convert(&self, stored: &[u8]) -> Result<Vec<u8>> {
        let count = stored.len() / self.source.max(1);
        let mut out = vec![0; count.saturating_mul(self.target)];
        self.run(stored, self.source, &mut out)?;
        Ok(out)
    }

    /// Bytes of one element as wanted.
    pub fn target_size(&self) -> usize {
        self.target
    }

    /// Whether the bytes stay as they are.
    pub fn is_verbatim(&self) -> bool {
        matches!(self.how, How::Verbatim) && !self.swap_after
    }

    /// Turns stored elements into wanted ones where they lie, if that is possible.
    pub fn in_place(&self, elements: &mut [u8]) -> bool {
        match self.how {
            How::Verbatim => {}
            How::Swapped(size) => swap_elements(elements, size),
            _ => return false,
        }
        if self.swap_after {
            swap_elements(elements, self.target);
        }
        true
    }

    /// Whether [`in_place`](Self::in_place) works.
    pub fn is_in_place(&self) -> bool {
        matches!(self.how, How::Verbatim | How::Swapped(_))
    }

    fn check(
        &self,
        layout: &Layout,
        wanted: Native,
        source: &[u8],
        stride: usize,
        target: &[u8],
    ) -> Result<()> {
        let wanted_layout = wanted.layout();
        for (i, after) in target.chunks_exact(self.target).enumerate() {
            let before = layout.number(source.get(i * stride..).unwrap_or(&[]));
            let same = match wanted {
                Native::Bool => before.is(0) || before.is(1),
                _ => before == wanted_layout.number(after),
            };
            if !same {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("the stored value {before} has no exact {wanted}"),
                )
                .hint("read without `exact` to clamp and round, or ask for another type"));
            }
        }
        Ok(())
    }
}

fn no_way(dtype: &DType, wanted: Native) -> Error {
    Error::invalid(format!("{dtype} does not convert to {wanted}")).hint("read the elements as stored")
}

/// Offsets and types of the real and imaginary part of a complex element, native or as a compound of two numbers.
fn parts(dtype: &DType) -> Option<[(usize, &DType); 2]> {
    match dtype {
        DType::Complex { base } => Some([(0, base), (base.size(), base)]),
        DType::Compound { fields, .. } => match fields.as_slice() {
            [re, im] if Layout::of(&re.dtype).is_some() && Layout::of(&im.dtype).is_some() => {
                Some([(re.offset, &re.dtype), (im.offset, &im.dtype)])
            }
            _ => None,
        },
        _ => None,
    }
}

impl Convert for Conversion {
    type Error = Error;

    fn source_size(&self) -> usize {
        self.source
    }

    fn run(&self, source: &[u8], stride: usize, target: &mut [u8]) -> Result<()> {
        match &self.how {
            How::Verbatim | How::Swapped(_) => {
                copy(self.source, source, stride, target);
                self.in_place(target);
            }
            How::Fast(run) => run(source, stride, target),
            How::General(layout, wanted) => {
                for (i, element) in target.chunks_exact_mut(self.target).enumerate() {
                    let number = layout.number(source.get(i * stride..).unwrap_or(&[]));
                    number.store(*wanted, layout.rounding(), element);
                }
            }
            How::Pair(pair) => {
                let half = self.target / 2;
                for (i, element) in target.chunks_exact_mut(self.target).enumerate() {
                    let (re, im) = element.split_at_mut(half);
                    for ((offset, conversion), part) in pair.iter().zip([re, im]) {
                        let at = source.get(i * stride + offset..).unwrap_or(&[]);
                        conversion.run(at, conversion.source, part)?;
                    }
                }
            }
        }
        if self.swap_after && !self.is_in_place() {
            swap_elements(target, self.target);
        }
        match &self.exact {
            Some((layout, wanted)) if !self.is_in_place() => {
                self.check(layout, *wanted, source, stride, target)
            }
            _ => Ok(()),
        }
    }
}

/// Copies elements of `size` bytes.
fn copy(size: usize, source: &[u8], stride: usize, target: &mut [u8]) {
    let done = match size {
        1 => Verbatim::<1>.run(source, stride, target),
        2 => Verbatim::<2>.run(source, stride, target),
        4 => Verbatim::<4>.run(source, stride, target),
        8 => Verbatim::<8>.run(source, stride, target),
        16 => Verbatim::<16>.run(source, stride, target),
        _ => {
            for (i, element) in target.chunks_exact_mut(size).enumerate() {
                if let Some(from) = source.get(i * stride..i * stride + size) {
                    element.copy_from_slice(from);
                }
            }
            Ok(())
        }
    };
    match done {
        Ok(()) => {}
        Err(never) => match never {},
    }
}
