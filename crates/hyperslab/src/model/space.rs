//! Selections of a dataspace as files store them (region references, virtual mappings).

use crate::shape::Coord;

/// A regular hyperslab: on each axis `count` blocks of `block` elements, `stride` apart, from `start`.
/// `None` as count or block: unlimited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hyperslab {
    /// First element on each axis.
    pub start: Coord,
    /// Distance between blocks.
    pub stride: Coord,
    /// Number of blocks.
    pub count: Vec<Option<u64>>,
    /// Elements in a block.
    pub block: Vec<Option<u64>>,
}

/// A stored selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpaceSelection {
    /// Nothing.
    None,
    /// Every element.
    All,
    /// Single elements, in order.
    Points(Vec<Coord>),
    /// A regular hyperslab.
    Regular(Hyperslab),
    /// Blocks as inclusive corner pairs, in stored order; elements in C order of their union.
    Blocks(Vec<(Coord, Coord)>),
}

impl Hyperslab {
    /// Blocks and elements in a block along `axis`; unlimited ones as far as an extent of `dim` reaches.
    fn along(&self, axis: usize, dim: u64) -> Option<(u64, u64, u64, u64)> {
        let start = *self.start.get(axis)?;
        let stride = (*self.stride.get(axis)?).max(1);
        let room = dim.saturating_sub(start);
        let block = self.block.get(axis)?.unwrap_or(room);
        let count = self.count.get(axis)?.unwrap_or_else(|| room.div_ceil(stride));
        Some((start, stride, count, block))
    }
}

impl SpaceSelection {
    /// The first and the last coordinate of the smallest box around the selection, in a dataset of extents `dims`.
    /// `None` if nothing is selected.
    pub fn bounds(&self, dims: &[u64]) -> Option<(Coord, Coord)> {
        match self {
            SpaceSelection::None => None,
            SpaceSelection::All if dims.contains(&0) => None,
            SpaceSelection::All => {
                Some((dims.iter().map(|_| 0).collect(), dims.iter().map(|&d| d - 1).collect()))
            }
            SpaceSelection::Points(points) => hull(points.iter().map(|p| (p, p))),
            SpaceSelection::Blocks(blocks) => hull(blocks.iter().map(|(low, high)| (low, high))),
            SpaceSelection::Regular(slab) => {
                let ends = (0..slab.start.len()).map(|axis| {
                    let (start, stride, count, block) =
                        slab.along(axis, dims.get(axis).copied().unwrap_or(0))?;
                    let last =
                        count.checked_sub(1)?.saturating_mul(stride).saturating_add(block.checked_sub(1)?);
                    Some((start, start.saturating_add(last)))
                });
                let ends: Vec<(u64, u64)> = ends.collect::<Option<_>>()?;
                Some((ends.iter().map(|e| e.0).collect(), ends.iter().map(|e| e.1).collect()))
            }
        }
    }

    /// Whether the selection goes on as far as the dataset does.
    pub fn is_unlimited(&self) -> bool {
        match self {
            SpaceSelection::Regular(slab) => slab.count.contains(&None) || slab.block.contains(&None),
            _ => false,
        }
    }

    /// How many elements are selected in a dataset of extents `dims`, at most 2^64 - 1.
    pub fn count(&self, dims: &[u64]) -> u64 {
        match self {
            SpaceSelection::None => 0,
            SpaceSelection::All => dims.iter().fold(1, |n, &d| d.saturating_mul(n)),
            SpaceSelection::Points(points) => points.len() as u64,
            // Stored blocks do not overlap.
            SpaceSelection::Blocks(blocks) => blocks.iter().fold(0, |n: u64, (low, high)| {
                let sides = low.iter().zip(high.iter()).map(|(l, h)| h.saturating_sub(*l).saturating_add(1));
                n.saturating_add(sides.fold(1, u64::saturating_mul))
            }),
            SpaceSelection::Regular(slab) => (0..slab.start.len()).fold(1, |n: u64, axis| {
                let sides = slab.along(axis, dims.get(axis).copied().unwrap_or(0));
                n.saturating_mul(sides.map_or(0, |(_, _, count, block)| count.saturating_mul(block)))
            }),
        }
    }
}

/// The smallest box around boxes.
fn hull<'a>(mut boxes: impl Iterator<Item = (&'a Coord, &'a Coord)>) -> Option<(Coord, Coord)> {
    let (mut low, mut high) = boxes.next().map(|(l, h)| (l.clone(), h.clone()))?;
    for (l, h) in boxes {
        low.iter_mut().zip(l.iter()).for_each(|(a, b)| *a = (*a).min(*b));
        high.iter_mut().zip(h.iter()).for_each(|(a, b)| *a = (*a).max(*b));
    }
    Some((low, high))
}
