//! Attributes as netCDF has them: a type, and a list of values.

use super::kind::{Type, UserType, converted, presented, type_of, value};
use crate::dtype::{DType, NetcdfType, StringPadding};
use crate::error::Result;
use crate::model::{self, AttributeEntry, Dataspace, Elements, Hierarchy};
use crate::shape::{Name, element_count, to_usize};

/// An attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: Name,
    /// Type of a value.
    pub kind: Type,
    /// Number of values; of text, number of bytes.
    pub length: u64,
    /// The attribute as stored. Text is one element of fixed size; other values are elements.
    pub stored: model::Attribute,
}

impl Attribute {
    /// Number of stored elements: text is one of them.
    pub fn count(&self) -> Result<usize> {
        if self.stored.space.is_null() {
            return Ok(0);
        }
        to_usize(element_count(self.stored.space.dims())?)
    }

    /// The stored values, decoded.
    pub fn elements(&self, hierarchy: &dyn Hierarchy, limit: u64) -> Result<Elements> {
        Elements::decode(hierarchy, &self.stored.dtype, self.stored.data.clone(), self.count()?, limit)
    }
}

/// Attributes that are part of how netCDF-4 uses HDF5, wherever they are.
const HIDDEN: [&[u8]; 8] = [
    b"REFERENCE_LIST",
    b"CLASS",
    b"DIMENSION_LIST",
    b"NAME",
    b"_Netcdf4Dimid",
    b"_Netcdf4Coordinates",
    b"_NCProperties",
    b"_nc3_strict",
];

/// Whether an attribute is hidden from users of HDF5 files.
pub(super) fn is_hidden(name: &Name) -> bool {
    HIDDEN.contains(&name.as_bytes())
}

/// Sorts the attributes of an object as they were made.
pub(super) fn in_order(mut entries: Vec<AttributeEntry>) -> Vec<AttributeEntry> {
    entries.sort_by_key(|e| e.as_ref().map_or(u64::MAX, |a| a.order.unwrap_or(u64::MAX)));
    entries
}

/// An attribute in the eyes of netCDF, or why there is none.
pub(super) fn of(mut stored: model::Attribute, types: &[UserType]) -> Result<Attribute, String> {
    if let Some(shown) = presented(&stored.dtype) {
        let values = converted(&stored.data, &stored.dtype, &shown).map_err(|e| e.to_string())?;
        (stored.dtype, stored.data) = (shown, values.into());
    }
    // netCDF knows no blanks that are padding.
    if let DType::String { padding: padding @ StringPadding::SpacePadded, .. } = &mut stored.dtype {
        *padding = StringPadding::NullPadded;
    }
    let dims = stored.space.dims();
    let count = match &stored.space {
        Dataspace::Null => 0,
        _ => element_count(dims).map_err(|e| e.to_string())?,
    };
    let (kind, length) = match &stored.dtype {
        DType::VarString { .. } => (Type::String, count),
        // One string is text; a list of them is a list of strings.
        DType::String { size, .. } => match &stored.space {
            Dataspace::Null => (Type::Atomic(NetcdfType::Char), 0),
            Dataspace::Scalar => (Type::Atomic(NetcdfType::Char), *size as u64),
            Dataspace::Simple { .. } => (Type::String, count),
        },
        dtype => {
            let kind = type_of(dtype, types).ok_or_else(|| format!("an attribute of type {dtype}"))?;
            if dims.len() > 1 {
                return Err(format!("an attribute of {} dimensions", dims.len()));
            }
            (kind, count)
        }
    };
    Ok(Attribute { name: stored.name.clone(), kind, length, stored })
}

/// The attribute called `name`.
pub(super) fn find<'a>(entries: &'a [AttributeEntry], name: &str) -> Option<&'a model::Attribute> {
    entries.iter().flatten().find(|a| a.name.as_bytes() == name.as_bytes())
}

/// The text of an attribute of fixed size, up to its first NUL.
pub(super) fn text(attribute: &model::Attribute) -> Option<&[u8]> {
    match attribute.dtype {
        DType::String { size, .. } => {
            let bytes = attribute.data.get(..size)?;
            bytes.split(|&b| b == 0).next()
        }
        _ => None,
    }
}

/// The values of an attribute of whole integers.
pub(super) fn integers(attribute: &model::Attribute) -> Option<Vec<i64>> {
    match &attribute.dtype {
        DType::Integer(t) if t.size > 0 => {
            attribute.data.chunks_exact(t.size).map(|b| i64::try_from(value(b, t)?).ok()).collect()
        }
        _ => None,
    }
}
