//! Dimension scales: how HDF5 datasets say which dimensions they have.
//!
//! A dataset with the attribute `CLASS = "DIMENSION_SCALE"` is a dimension. Unless its `NAME` says that it is nothing
//! else, it is also a variable. Other datasets list the scales of each of their axes in `DIMENSION_LIST`. netCDF-4 adds
//! hidden attributes: `_Netcdf4Dimid`, the number of a dimension, and `_Netcdf4Coordinates`, the numbers of the
//! dimensions of a variable.

use super::attribute::{find, integers, text};
use crate::model::{AttributeEntry, Column, Elements, Hierarchy, NodeId, Reference};
use crate::shape::{element_count, to_usize};

/// What the attributes of a dataset say about its axes.
#[derive(Debug)]
pub(super) enum Axes {
    /// Numbers of dimensions.
    Numbers(Vec<i64>),
    /// The scale of each axis.
    Scales(Vec<Option<NodeId>>),
    /// Nothing.
    Unknown,
}

/// How `NAME` begins of a dimension that is no variable.
const NO_VARIABLE: &[u8] = b"This is a netCDF dimension but not a netCDF variable";

/// Variables called like a dimension of theirs that is not their only one have this before their name.
pub(super) const PREFIX: &[u8] = b"_nc4_non_coord_";

/// Whether a dataset is a dimension scale.
pub(super) fn is_scale(attributes: &[AttributeEntry]) -> bool {
    find(attributes, "CLASS").and_then(text) == Some(b"DIMENSION_SCALE")
}

/// Whether a dimension scale is a variable too.
pub(super) fn is_variable(attributes: &[AttributeEntry]) -> bool {
    !find(attributes, "NAME").and_then(text).is_some_and(|name| name.starts_with(NO_VARIABLE))
}

/// The number of a dimension, where netCDF-4 wrote one.
pub(super) fn number(attributes: &[AttributeEntry]) -> Option<i64> {
    integers(find(attributes, "_Netcdf4Dimid")?)?.first().copied().filter(|&n| n >= 0)
}

/// What the attributes of a dataset of `rank` axes say about them.
pub(super) fn axes(
    hierarchy: &dyn Hierarchy,
    attributes: &[AttributeEntry],
    rank: usize,
    limit: u64,
) -> Axes {
    if let Some(numbers) = find(attributes, "_Netcdf4Coordinates").and_then(integers)
        && numbers.len() == rank
    {
        return Axes::Numbers(numbers);
    }
    match attached(hierarchy, attributes, rank, limit) {
        // The C library takes a first axis without scales as none having any.
        Some(scales) if scales.first().is_some_and(|s| s.is_some()) => Axes::Scales(scales),
        _ => Axes::Unknown,
    }
}

/// The scales in `DIMENSION_LIST`; of several on one axis the last one.
fn attached(
    hierarchy: &dyn Hierarchy,
    attributes: &[AttributeEntry],
    rank: usize,
    limit: u64,
) -> Option<Vec<Option<NodeId>>> {
    let list = find(attributes, "DIMENSION_LIST")?;
    let count = to_usize(element_count(list.space.dims()).ok()?).ok()?;
    if count != rank {
        return None;
    }
    let elements = Elements::decode(hierarchy, &list.dtype, list.data.clone(), count, limit).ok()?;
    let Column::Sequence { starts, items } = elements.column() else { return None };
    let Column::Reference(references) = items.as_ref() else { return None };
    let scale = |axis: usize| {
        let (from, to) = (*starts.get(axis)?, *starts.get(axis + 1)?);
        match references.get(from..to)?.last()? {
            Ok(Reference::Object(node)) => Some(node.clone()),
            _ => None,
        }
    };
    Some((0..rank).map(scale).collect())
}
