//! Attributes of any type.

use super::types::{character, is_character, resolve, text};
use super::value::Values;
use super::{Known, Place};
use crate::convention::netcdf::cdl::{Attribute, Item};
use crate::dtype::{CharSet, DType, StringPadding};
use crate::error::Result;
use crate::model::Dataspace;
use crate::model::write::{AttributeSpec, Content, ObjectPath};
use crate::shape::Name;

/// The type of numbers that nobody named: the widest that one of them says, or a wider one if they do not fit; `None` for
/// what are no numbers.
pub(super) fn kind_of_numbers(values: &[Item]) -> Option<&'static str> {
    const ORDER: [&str; 8] = ["byte", "ubyte", "short", "ushort", "int", "uint", "int64", "uint64"];
    let (mut widest, mut single, mut low, mut high) = (0, false, 0i128, 0i128);
    for item in values {
        match item {
            Item::Double(_) => return values.iter().all(is_number).then_some("double"),
            Item::Single(_) => single = true,
            Item::Char(byte) => low = low.min(i128::from(byte.cast_signed())),
            Item::Integer(value, kind) => {
                let kind = kind.unwrap_or("int");
                widest = widest.max(ORDER.iter().position(|k| *k == kind).unwrap_or(4));
                (low, high) = (low.min(*value), high.max(*value));
            }
            _ => return None,
        }
    }
    if single {
        return Some("float");
    }
    let fits = |kind: &str| {
        let (bits, signed) = match kind {
            "byte" => (8, true),
            "ubyte" => (8, false),
            "short" => (16, true),
            "ushort" => (16, false),
            "int" => (32, true),
            "uint" => (32, false),
            "int64" => (64, true),
            _ => (64, false),
        };
        if signed {
            low >= -(1i128 << (bits - 1)) && high < 1i128 << (bits - 1)
        } else {
            low >= 0 && high < 1i128 << bits
        }
    };
    let all = ORDER.get(widest).into_iter().chain(["int", "int64", "uint64"].iter());
    // None fits: the value that is too large is told where it is stored.
    Some(all.copied().find(|kind| fits(kind)).unwrap_or("int64"))
}

fn is_number(item: &Item) -> bool {
    matches!(item, Item::Double(_) | Item::Single(_) | Item::Integer(..) | Item::Char(_))
}

/// The type of the values of an attribute.
fn kind_of(
    attribute: &Attribute,
    known: &[Known],
    places: &[Place<'_>],
    group: usize,
) -> Result<(DType, Option<ObjectPath>)> {
    if let Some(kind) = &attribute.kind {
        return resolve(known, places, group, kind, attribute.at);
    }
    if attribute.values.iter().all(|item| matches!(item, Item::Text(_))) {
        return Ok((character(), None));
    }
    if attribute.values.iter().all(|item| matches!(item, Item::Nil)) {
        return Ok((text(), None));
    }
    match kind_of_numbers(&attribute.values) {
        Some(kind) => resolve(known, places, group, kind, attribute.at),
        None => {
            let what = format!("the values of the attribute {} have no common type", attribute.name);
            let error = places.get(group).map(|place| place.wrong(attribute.at, 0, &what));
            Err(error
                .unwrap_or_else(|| crate::error::Error::invalid(what))
                .hint(format!("write the type in front: TYPE :{} = …", attribute.name)))
        }
    }
}

/// The attribute as it is written. With `dtype` it is one element of that type: a fill value.
pub(super) fn attribute(
    attribute: &Attribute,
    of: Option<(&DType, Option<&ObjectPath>)>,
    known: &[Known],
    places: &[Place<'_>],
    group: usize,
) -> Result<AttributeSpec> {
    let place = places.get(group).ok_or_else(|| crate::error::Error::invalid("a group that is none"))?;
    let (dtype, committed) = match of {
        Some((dtype, committed)) => (dtype.clone(), committed.cloned()),
        None => kind_of(attribute, known, places, group)?,
    };
    let name = Name::from(attribute.name.as_str());
    let mut values = Values::new(place.source, attribute.at);
    let list = |n: u64| Dataspace::Simple { dims: vec![n], max: vec![Some(n)] };
    if is_character(&dtype) {
        let mut all = Vec::new();
        // A fill value is one character, however it is written.
        let total = of.map(|_| 1);
        values.characters(&attribute.values, None, total, 0, &mut all)?;
        let charset = if all.is_ascii() { CharSet::Ascii } else { CharSet::Utf8 };
        let (size, space) =
            if all.is_empty() { (1, Dataspace::Null) } else { (all.len(), Dataspace::Scalar) };
        let dtype = DType::String { size, padding: StringPadding::NullTerminated, charset };
        let content = Content::Fixed(all.into());
        return Ok(AttributeSpec { name, dtype, committed, space, content });
    }
    let mut fixed = Vec::new();
    let mut objects = Vec::new();
    for item in &attribute.values {
        if dtype.is_fixed() {
            values.element(&dtype, item, None, 0, &mut fixed)?;
        } else {
            let mut object = Vec::new();
            values.element(&dtype, item, None, 0, &mut object)?;
            objects.push(object.into());
        }
    }
    let count = attribute.values.len();
    if of.is_some() && count != 1 {
        return Err(place.wrong(attribute.at, 1, format!("{count} fill values where there is room for one")));
    }
    let space = if count == 0 { Dataspace::Null } else { list(count as u64) };
    let content = if dtype.is_fixed() {
        Content::Fixed(fixed.into())
    } else {
        Content::Objects { elements: objects, targets: Vec::new() }
    };
    Ok(AttributeSpec { name, dtype, committed, space, content })
}
