//! The least format that holds what CDL says.

use super::special::{is_of_netcdf4, is_special, text_of};
use super::types::{atomic, primitive};
use crate::convention::netcdf::cdl::{Attribute, Dataset, Group, Item};
use crate::dtype::{ByteOrder, NetcdfType};
use crate::error::Result;
use crate::write::Format;
use crate::write::cdl::attribute::kind_of_numbers;

/// What `_Format` says, if there is one; `Err` with its text if it is no format.
pub(super) fn said(root: &Group) -> std::result::Result<Option<(Format, &Attribute)>, (&Attribute, String)> {
    let Some(attribute) = root.attributes.iter().find(|a| a.name == "_Format") else { return Ok(None) };
    let text = text_of(attribute).unwrap_or_default();
    let format = match text.as_str() {
        "classic" | "netCDF classic" => Format::NetCdf3,
        "64-bit offset" | "64-bit-offset" => Format::Cdf2,
        "cdf5" | "cdf-5" | "64-bit data" | "64-bit-data" => Format::Cdf5,
        "netCDF-4" | "netCDF4" | "netCDF-4 classic model" => Format::NetCdf4,
        _ => return Err((attribute, text)),
    };
    Ok(Some((format, attribute)))
}

/// Whether it is to be netCDF-4 with no more than classic netCDF has.
pub(super) fn is_classic_model(root: &Group) -> bool {
    let format = root.attributes.iter().find(|a| a.name == "_Format");
    format.and_then(text_of).is_some_and(|text| text == "netCDF-4 classic model")
}

/// What of a text classic netCDF has not, and where it stands; `None` for nothing.
pub(super) fn beyond_classic(dataset: &Dataset) -> Option<(usize, String)> {
    let root = &dataset.root;
    if let Some(group) = root.groups.first() {
        return Some((0, format!("the group {}", group.name)));
    }
    if let Some(user) = root.types.first() {
        return Some((user.at(), format!("the type {}", user.name())));
    }
    let mut unlimited = root.dimensions.iter().filter(|d| d.length.is_none());
    if let Some(second) = unlimited.nth(1) {
        return Some((second.at, format!("{}, a second unlimited dimension,", second.name)));
    }
    let classic = |kind: &str| {
        matches!(kind, "char" | "byte" | "short" | "int" | "long" | "integer" | "float" | "real" | "double")
    };
    if let Some(v) = root.variables.iter().find(|v| !classic(&v.kind)) {
        return Some((v.at, format!("{}, a variable of type {},", v.name, v.kind)));
    }
    let mut attributes = root.attributes.iter().chain(root.variables.iter().flat_map(|v| &v.attributes));
    attributes.find_map(|a| {
        let kind = a.kind.as_deref().or_else(|| kind_of_numbers(&a.values)).unwrap_or("char");
        let special = is_special(a, true) || is_special(a, false);
        (!special && !classic(kind)).then(|| (a.at, format!("{}, an attribute of type {kind},", a.name)))
    })
}

/// The least of classic netCDF, CDF-2, CDF-5 and netCDF-4 that holds everything.
pub(super) fn least(dataset: &Dataset) -> Result<Format> {
    let root = &dataset.root;
    let unlimited = root.dimensions.iter().filter(|d| d.length.is_none()).count();
    let is_unlimited = |name: &String| root.dimensions.iter().any(|d| d.name == *name && d.length.is_none());
    let mut attributes = root.attributes.iter().chain(root.variables.iter().flat_map(|v| &v.attributes));
    let texts = |a: &Attribute| {
        let listed =
            |item: &Item| matches!(item, Item::List(_) | Item::Name(_) | Item::Opaque(_) | Item::Nil);
        a.kind.as_deref().is_some_and(|kind| kind == "string" || primitive(kind, ByteOrder::Big).is_none())
            || a.values.iter().any(listed)
    };
    let rich = !root.groups.is_empty()
        || !root.types.is_empty()
        || unlimited > 1
        || root.dimensions.iter().any(|d| d.length == Some(0))
        || root.variables.iter().any(|v| {
            v.kind == "string"
                || primitive(&v.kind, ByteOrder::Big).is_none()
                || v.dimensions.iter().skip(1).any(is_unlimited)
                || v.attributes.iter().any(is_of_netcdf4)
        })
        || attributes.clone().any(|a| a.name != "_Format" && texts(a));
    if rich {
        return Ok(Format::NetCdf4);
    }
    let new = |kind: NetcdfType| {
        use NetcdfType::{Int64, UByte, UInt, UInt64, UShort};
        matches!(kind, UByte | UShort | UInt | Int64 | UInt64)
    };
    let named = |word: &str| primitive(word, ByteOrder::Big).as_ref().and_then(atomic).is_some_and(new);
    let attribute = |a: &Attribute| match &a.kind {
        Some(kind) => named(kind),
        None => kind_of_numbers(&a.values).is_some_and(named),
    };
    // The length of an array; records are counted apart.
    let bytes = |v: &crate::convention::netcdf::cdl::Variable| {
        let size = primitive(&v.kind, ByteOrder::Big).map_or(1, |t| t.size() as u64);
        v.dimensions.iter().fold(size, |n, name| {
            let length = root.dimensions.iter().find(|d| d.name == *name).and_then(|d| d.length);
            n.saturating_mul(length.unwrap_or(1))
        })
    };
    let long = |length: Option<u64>| length.is_some_and(|n| n > i32::MAX as u64);
    if root.variables.iter().any(|v| named(&v.kind) || bytes(v) > u64::from(u32::MAX) - 3)
        || attributes.any(attribute)
        || root.dimensions.iter().any(|d| long(d.length))
    {
        return Ok(Format::Cdf5);
    }
    let total = root.variables.iter().fold(0u64, |n, v| n.saturating_add(bytes(v)));
    // Room for the header, and for every record that is given.
    let given: u64 = root.data.iter().map(|d| d.values.len() as u64).sum();
    let total = total.saturating_add(given.saturating_mul(8)).saturating_add(1 << 24);
    Ok(if total > i32::MAX as u64 { Format::Cdf2 } else { Format::NetCdf3 })
}
