//! Dimension scales: how HDF5 datasets say which dimensions they have.
//!
//! A dataset with the attribute `CLASS = "DIMENSION_SCALE"` is a dimension. Unless its `NAME` says that it is nothing
//! else, it is also a variable. Other datasets list the scales of each of their axes in `DIMENSION_LIST`. netCDF-4 adds
//! hidden attributes: `_Netcdf4Dimid`, the number of a dimension, and `_Netcdf4Coordinates`, the numbers of the
//! dimensions of a variable.

use super::attribute::{find, integers, text};
use crate::error::{Error, ErrorKind, Result};
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
    let Ok(Some(attached)) = attached(hierarchy, attributes, rank, limit) else { return Axes::Unknown };
    let last = |scales: Vec<Result<NodeId>>| scales.into_iter().next_back()?.ok();
    let scales: Vec<Option<NodeId>> = attached.into_iter().map(last).collect();
    // The C library takes a first axis without scales as none having any.
    if scales.first().is_some_and(Option::is_some) { Axes::Scales(scales) } else { Axes::Unknown }
}

/// The scales of each axis in `DIMENSION_LIST`, of which the last one counts; `None` if there is no such attribute.
pub(super) fn attached(
    hierarchy: &dyn Hierarchy,
    attributes: &[AttributeEntry],
    rank: usize,
    limit: u64,
) -> Result<Option<Vec<Vec<Result<NodeId>>>>> {
    let Some(list) = find(attributes, "DIMENSION_LIST") else { return Ok(None) };
    let count = to_usize(element_count(list.space.dims())?)?;
    if count != rank {
        let what = format!("scales of {count} axes, the dataset has {rank}");
        return Err(Error::new(ErrorKind::Corrupt, what));
    }
    let elements = Elements::decode(hierarchy, &list.dtype, list.data.clone(), count, limit)?;
    let wrong = || Error::new(ErrorKind::Corrupt, "no lists of references to objects");
    let Column::Sequence { starts, items } = elements.column() else { return Err(wrong()) };
    let Column::Reference(references) = items.as_ref() else { return Err(wrong()) };
    let scales = |axis: usize| {
        let range =
            starts.get(axis).zip(starts.get(axis + 1)).and_then(|(from, to)| references.get(*from..*to));
        let one = |reference: &Result<Reference>| match reference {
            Ok(Reference::Object(node)) => Ok(node.clone()),
            Ok(_) => Err(Error::new(ErrorKind::Corrupt, "nothing")),
            Err(e) => Err(Error::new(e.kind(), e.message().to_owned())),
        };
        range.unwrap_or_default().iter().map(one).collect()
    };
    Ok(Some((0..rank).map(scales).collect()))
}
