//! What references point to.

use super::{NodeId, SpaceSelection};
use crate::shape::Name;

/// A resolved reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Points nowhere.
    Null,
    /// An object of this file.
    Object(NodeId),
    /// Some elements of a dataset.
    Region(NodeId, RegionSelection),
    /// An attribute of an object.
    Attribute(NodeId, Name),
}

/// The elements that a region reference selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSelection {
    /// Rank of the dataset.
    pub rank: usize,
    /// Its selection.
    pub selection: SpaceSelection,
}
