//! Extents, coordinates, checked size arithmetic, and names.

use crate::error::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::fmt;

/// The largest rank that any supported format allows.
pub const MAX_RANK: usize = 32;

/// A short vector of extents or coordinates, without allocation up to rank 4.
pub type Coord = SmallVec<[u64; 4]>;

/// Number of elements of `dims`; 1 for a scalar.
pub fn element_count(dims: &[u64]) -> Result<u64> {
    if dims.contains(&0) {
        return Ok(0);
    }
    dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).ok_or_else(|| {
        Error::new(ErrorKind::LimitExceeded, format!("the extents {dims:?} hold more than 2^64 elements"))
    })
}

/// Number of bytes of `dims` elements of `size` bytes.
pub fn byte_count(dims: &[u64], size: usize) -> Result<u64> {
    element_count(dims)?.checked_mul(size as u64).ok_or_else(|| {
        Error::new(ErrorKind::LimitExceeded, format!("the extents {dims:?} hold more than 2^64 bytes"))
    })
}

/// The one crossing from lengths in files to lengths in memory.
pub fn to_usize(n: u64) -> Result<usize> {
    usize::try_from(n)
        .ok()
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or_else(|| Error::limit("bytes in memory", n as u128, isize::MAX as u128))
}

/// Runs of elements of the box `count`, at `offset` in one box of `from` elements and at the origin of one of `to`: first
/// element there, first element here, and length. Those at the origin come in ascending order.
pub fn runs(from: &[u64], offset: &[u64], to: &[u64], count: &[u64]) -> Result<Runs> {
    // Axes behind this one are whole in both, so that a run goes over them.
    let mut split = count.len();
    let mut run = 1u64;
    while split > 0 {
        split -= 1;
        let (Some(&n), Some(&f), Some(&t)) = (count.get(split), from.get(split), to.get(split)) else {
            break;
        };
        run = run.saturating_mul(n);
        if n != f || n != t {
            break;
        }
    }
    let mut axes: SmallVec<[RunAxis; 4]> = SmallVec::new();
    let (mut first, mut step) = (0u64, (1u64, 1u64));
    for axis in (0..count.len()).rev() {
        let extent = |dims: &[u64]| dims.get(axis).copied().unwrap_or(1);
        first = first.saturating_add(extent(offset).saturating_mul(step.0));
        if axis < split {
            axes.push(RunAxis { at: 0, count: extent(count), step: (step.0 as usize, step.1 as usize) });
        }
        step = (step.0.saturating_mul(extent(from)), step.1.saturating_mul(extent(to)));
    }
    let left = to_usize(element_count(count.get(..split).unwrap_or(&[]))?)?;
    Ok(Runs { axes, left, next: (to_usize(first)?, 0), run: to_usize(run)? })
}

/// See [`runs`].
#[derive(Clone, Debug)]
pub struct Runs {
    /// The last axis first.
    axes: SmallVec<[RunAxis; 4]>,
    left: usize,
    next: (usize, usize),
    run: usize,
}

#[derive(Clone, Debug)]
struct RunAxis {
    at: u64,
    count: u64,
    /// Elements between neighbours in both boxes.
    step: (usize, usize),
}

impl Iterator for Runs {
    type Item = (usize, usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (from, to) = self.next;
        for axis in &mut self.axes {
            axis.at += 1;
            self.next.0 = self.next.0.wrapping_add(axis.step.0);
            self.next.1 = self.next.1.wrapping_add(axis.step.1);
            if axis.at < axis.count {
                break;
            }
            axis.at = 0;
            self.next.0 = self.next.0.wrapping_sub(axis.step.0.wrapping_mul(axis.count as usize));
            self.next.1 = self.next.1.wrapping_sub(axis.step.1.wrapping_mul(axis.count as usize));
        }
        Some((from, to, self.run))
    }
}

/// A name as stored: bytes, usually but not always UTF-8.
///
/// `Display` is lossless: the text, or `hex:` and the bytes in lowercase hex where they are not UTF-8.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Box<[u8]>);

impl Name {
    /// The bytes as stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, if the bytes are UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the form that `Display` writes.
    pub fn parse(text: &str) -> Name {
        if let Some(hex) = text.strip_prefix("hex:")
            && hex.len() % 2 == 0
            && hex.is_ascii()
        {
            let bytes: Option<Vec<u8>> =
                (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()).collect();
            if let Some(bytes) = bytes.filter(|b| std::str::from_utf8(b).is_err()) {
                return Name(bytes.into());
            }
        }
        Name::from(text)
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Name(bytes.into())
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name(text.as_bytes().into())
    }
}

impl From<Vec<u8>> for Name {
    fn from(bytes: Vec<u8>) -> Self {
        Name(bytes.into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) => f.write_str(text),
            None => {
                f.write_str("hex:")?;
                self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
            }
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests;
