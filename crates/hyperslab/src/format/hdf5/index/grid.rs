//! The grid of chunks of one array, and the numbers that array-like indexes give to its chunks.

use crate::error::{Error, ErrorKind, Result};
use crate::shape::{Coord, byte_count};

/// Extents of an array and of its chunks.
#[derive(Clone, Debug)]
pub(in crate::format::hdf5) struct Grid {
    /// Current extents in elements.
    dims: Coord,
    /// Extents of a chunk in elements.
    chunk: Coord,
    /// Current extents in chunks.
    now: Coord,
    /// Maximum extents in chunks.
    max: Vec<Option<u64>>,
    /// Bytes of a decoded chunk.
    chunk_bytes: u64,
}

impl Grid {
    /// The grid of chunks of `chunk` elements of `element` bytes over `dims`, which may grow to `max`.
    pub(in crate::format::hdf5) fn new(
        dims: &[u64],
        max: &[Option<u64>],
        chunk: &[u64],
        element: u64,
    ) -> Result<Self> {
        if dims.len() != chunk.len() || dims.len() != max.len() {
            let text = format!("chunks of rank {} in an array of rank {}", chunk.len(), dims.len());
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        if chunk.contains(&0) {
            return Err(Error::new(ErrorKind::Corrupt, format!("chunk extents {chunk:?}")));
        }
        let chunk_bytes = byte_count(chunk, 1)?
            .checked_mul(element)
            .ok_or_else(|| Error::limit("bytes of a chunk", u128::MAX, u64::MAX.into()))?;
        let count = |(&d, &c): (&u64, &u64)| d.div_ceil(c);
        Ok(Grid {
            now: dims.iter().zip(chunk).map(count).collect(),
            max: max.iter().zip(chunk).map(|(&m, &c)| m.map(|m| m.div_ceil(c))).collect(),
            dims: dims.into(),
            chunk: chunk.into(),
            chunk_bytes,
        })
    }

    /// Number of axes.
    pub(in crate::format::hdf5) fn rank(&self) -> usize {
        self.chunk.len()
    }

    /// Extents of a chunk in elements.
    pub(in crate::format::hdf5) fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    /// Bytes of a decoded chunk.
    pub(in crate::format::hdf5) fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Whether `chunk` lies in the current extents.
    pub(in crate::format::hdf5) fn contains(&self, chunk: &[u64]) -> bool {
        chunk.len() == self.rank() && chunk.iter().zip(&self.now).all(|(c, n)| c < n)
    }

    /// Whether `chunk` reaches over the current extents.
    pub(in crate::format::hdf5) fn is_partial(&self, chunk: &[u64]) -> bool {
        chunk.iter().zip(&self.chunk).zip(&self.dims).any(|((&at, &size), &dim)| {
            at.checked_add(1).and_then(|n| n.checked_mul(size)).is_none_or(|end| end > dim)
        })
    }

    /// Number of chunks now; `None` if 2^64 or more.
    pub(in crate::format::hdf5) fn count(&self) -> Option<u64> {
        self.now.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
    }

    /// The number of `chunk` in C order. For grids whose `count` is known.
    pub(in crate::format::hdf5) fn number(&self, chunk: &[u64]) -> u64 {
        chunk.iter().zip(&self.now).fold(0u64, |n, (&at, &extent)| n.wrapping_mul(extent).wrapping_add(at))
    }

    /// The chunk with this number.
    pub(in crate::format::hdf5) fn chunk_of(&self, mut number: u64) -> Coord {
        let mut chunk: Coord = self.now.clone();
        for at in chunk.iter_mut().rev() {
            let extent = (*at).max(1);
            *at = number % extent;
            number /= extent;
        }
        chunk
    }

    /// Extents of the maximum grid, if all of them are fixed.
    pub(in crate::format::hdf5) fn fixed(&self) -> Result<Slots> {
        let extents: Option<Vec<u64>> = self.max.iter().copied().collect();
        match extents {
            Some(extents) => Slots::new(&extents, 0),
            None => {
                Err(Error::new(ErrorKind::Corrupt, "this chunk index is for arrays of fixed maximum extents"))
            }
        }
    }

    /// Extents of the maximum grid, if exactly one of them is unlimited.
    pub(in crate::format::hdf5) fn unlimited(&self) -> Result<Slots> {
        let mut axes = self.max.iter().enumerate().filter(|(_, m)| m.is_none()).map(|(i, _)| i);
        match (axes.next(), axes.next()) {
            (Some(axis), None) => {
                // How far the unlimited axis reaches matters to no other slot.
                let extents: Vec<u64> = self.max.iter().map(|m| m.unwrap_or(u64::MAX)).collect();
                Slots::new(&extents, axis)
            }
            _ => {
                Err(Error::new(ErrorKind::Corrupt, "this chunk index is for arrays of one unlimited extent"))
            }
        }
    }
}

/// The numbering of chunks in fixed and extensible arrays: C order over the *maximum* grid, with the unlimited axis in
/// front, so that the array grows without its chunks changing their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::format::hdf5) struct Slots {
    /// The axis that varies slowest.
    front: usize,
    /// Slots between neighbours on each axis.
    strides: Coord,
    /// Extents in chunks.
    extents: Coord,
}

impl Slots {
    fn new(extents: &[u64], front: usize) -> Result<Self> {
        let mut strides: Coord = extents.iter().map(|_| 1).collect();
        let mut stride = 1u64;
        let order = (0..extents.len()).rev().filter(|&axis| axis != front).chain([front]);
        for axis in order {
            if let (Some(s), Some(&extent)) = (strides.get_mut(axis), extents.get(axis)) {
                *s = stride;
                if axis != front {
                    stride = stride.checked_mul(extent).ok_or_else(|| {
                        Error::limit("chunks of the maximum extents", u128::MAX, u64::MAX.into())
                    })?;
                }
            }
        }
        Ok(Slots { front, strides, extents: extents.into() })
    }

    /// The slot of `chunk`; `None` at 2^64 or beyond the maximum extents.
    pub(in crate::format::hdf5) fn slot(&self, chunk: &[u64]) -> Option<u64> {
        let axes = chunk.iter().zip(&self.strides).zip(&self.extents);
        axes.into_iter().try_fold(0u64, |n, ((&at, &stride), &extent)| {
            if at >= extent { None } else { n.checked_add(at.checked_mul(stride)?) }
        })
    }

    /// The chunk of `slot`.
    pub(in crate::format::hdf5) fn chunk(&self, slot: u64) -> Coord {
        let axes = self.strides.iter().zip(&self.extents).enumerate();
        let place = |(axis, (&stride, &extent)): (usize, (&u64, &u64))| {
            // A stride or extent of 0 belongs to an array that cannot hold anything.
            let steps = slot.checked_div(stride).unwrap_or(0);
            if axis == self.front { steps } else { steps.checked_rem(extent).unwrap_or(0) }
        };
        axes.map(place).collect()
    }
}
