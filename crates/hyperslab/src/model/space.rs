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
