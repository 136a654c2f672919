//! Attributes of JSON, typed as recorded; a value that is not of the recorded type is an error of its attribute. Where no
//! type is recorded: the smallest type of netCDF, from `int` on, that holds the value without loss.

use crate::dtype::{ByteOrder, CharSet, DType, IntegerType, StringPadding};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Json, base64};
use crate::model::{Attribute, Dataspace};
use std::fmt::{self, Write};

/// `inferred` is the attribute as Zarr alone tells it, `spelled` its value, `recorded` its type in NCZarr; `fill` is the
/// type of the elements that it stands for, if it does. Fails if the value is not of the recorded type.
pub(super) fn typed(
    inferred: Attribute,
    spelled: &Json,
    recorded: Option<&str>,
    fill: Option<&DType>,
) -> Result<Attribute> {
    let found = match (fill.and_then(|dtype| fill_value(dtype, spelled)), recorded) {
        (Some(found), _) => Some(found),
        (None, Some(recorded)) => Some(as_recorded(recorded, spelled)?),
        (None, None) => narrowed(&inferred, spelled),
    };
    let Some((dtype, space, data)) = found else { return Ok(inferred) };
    Ok(Attribute {
        name: inferred.name,
        dtype,
        space,
        data: data.into(),
        order: inferred.order,
        committed: None,
    })
}

/// The fill value of an array of numbers as the attribute `_FillValue`; `None` if it has none.
pub(super) fn fill(dtype: &DType, spelled: &Json) -> Option<Attribute> {
    let (dtype, space, data) = fill_value(dtype, spelled)?;
    Some(Attribute {
        name: "_FillValue".into(),
        dtype,
        space,
        data: data.into(),
        order: Some(u64::MAX),
        committed: None,
    })
}

type Stored = (DType, Dataspace, Vec<u8>);

fn list(count: usize) -> Dataspace {
    Dataspace::Simple { dims: vec![count as u64], max: vec![Some(count as u64)] }
}

fn text_type(size: usize) -> DType {
    DType::String { size: size.max(1), padding: StringPadding::NullPadded, charset: CharSet::Utf8 }
}

/// Text: one element of fixed size.
fn text(text: String) -> Stored {
    let space = if text.is_empty() { Dataspace::Null } else { Dataspace::Scalar };
    (text_type(text.len()), space, text.into_bytes())
}

/// A list of strings; see [`DType::of_texts`].
fn strings(texts: &[&str]) -> Option<Stored> {
    let (dtype, data) = DType::of_texts(texts)?;
    Some((dtype, list(texts.len()), data))
}

/// The items of a list, or the value alone.
fn items(spelled: &Json) -> &[Json] {
    spelled.as_list().unwrap_or(std::slice::from_ref(spelled))
}

/// Numbers of one type; `None` if one of them is not of it.
fn numbers(dtype: &DType, spelled: &Json) -> Option<Stored> {
    let values = items(spelled);
    let mut data = Vec::with_capacity(values.len().checked_mul(dtype.size())?);
    for value in values {
        data.extend(match (dtype, value) {
            (DType::Integer(_), Json::Float(v)) if v.fract() != 0.0 => return None,
            (DType::Integer(t), value) => t.spelled(value)?,
            (DType::Float(t), value) => t.spelled(value)?,
            _ => return None,
        });
    }
    Some((dtype.clone(), list(values.len()), data))
}

/// The value that stands for those never written, of the type of these. Floats may be spelled as the eight bytes of a
/// double in base 64, as xarray does it in version 3.
fn fill_value(dtype: &DType, spelled: &Json) -> Option<Stored> {
    numbers(dtype, spelled).or_else(|| match dtype {
        DType::Float(_) => {
            let bytes: [u8; 8] = base64(spelled.as_str()?)?.try_into().ok()?;
            numbers(dtype, &Json::Float(f64::from_le_bytes(bytes)))
        }
        _ => None,
    })
}

/// A value of a recorded type: a code of NumPy, or in the drafts of version 3 a name of Zarr's.
fn as_recorded(recorded: &str, spelled: &Json) -> Result<Stored> {
    let wrong = || {
        let text: String = spelled.to_string().chars().take(80).collect();
        Error::new(ErrorKind::Corrupt, format!("its value {text} is none of its recorded type {recorded:?}"))
    };
    let bare = recorded.trim_start_matches(['<', '>', '|', '=']);
    let is_text = recorded.starts_with('>') && bare == "S1" || matches!(bare, "U1" | "J0" | "char" | "json");
    let is_string = bare == "string"
        || bare
            .strip_prefix(['S', 'U', 'r'])
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    if is_text {
        return match spelled {
            Json::Text(value) => Ok(text(value.clone())),
            other => Ok(text(Text(other).to_string())),
        };
    }
    if is_string {
        let texts: Option<Vec<&str>> = items(spelled).iter().map(Json::as_str).collect();
        return texts.and_then(|texts| strings(&texts)).ok_or_else(wrong);
    }
    let dtype = DType::from_numpy(recorded).or_else(|| DType::from_zarr(recorded, ByteOrder::Little));
    let dtype = dtype.filter(|dtype| matches!(dtype, DType::Integer(_) | DType::Float(_)));
    let dtype = dtype.ok_or_else(|| Error::unsupported(format_args!("its recorded type {recorded:?}")))?;
    numbers(&dtype, spelled).ok_or_else(wrong)
}

/// The inferred value in netCDF's types: integers of four bytes where these hold all of them, truth values as bytes.
fn narrowed(inferred: &Attribute, spelled: &Json) -> Option<Stored> {
    let narrow =
        |size, signed| numbers(&DType::Integer(IntegerType::new(size, ByteOrder::Little, signed)), spelled);
    match (&inferred.dtype, spelled) {
        (_, Json::Null) => Some(text("null".into())),
        (_, Json::Text(value)) => Some(text(value.clone())),
        (dtype, _) if dtype.is_bool() => narrow(1, false),
        (DType::Integer(_), _) => narrow(4, true).or_else(|| narrow(4, false)),
        _ => None,
    }
}

/// JSON as netCDF-C writes it: a blank behind the commas and colons of objects, none in lists.
struct Text<'a>(&'a Json);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Json::List(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{}", if i > 0 { "," } else { "" }, Text(item))?;
                }
                f.write_char(']')
            }
            Json::Map(members) => {
                f.write_char('{')?;
                for (i, (name, value)) in members.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}{}: {}", Json::Text(name.clone()), Text(value))?;
                }
                f.write_char('}')
            }
            other => other.fmt(f),
        }
    }
}
