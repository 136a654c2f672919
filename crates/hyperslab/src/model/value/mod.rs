//! Elements as values, for text, JSON and attributes.
//!
//! Stored elements of any type are first taken apart into columns ([`Elements`]): one for each part of the type, with
//! all variable-length data of a part fetched in one batch. A [`Value`] is one element, put together from its columns.

mod elements;
mod fixed;
#[cfg(test)]
mod tests;

pub use elements::{Column, Elements, FixedColumn};
use fixed::Decoder;

use super::Reference;
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Name;
use bytes::Bytes;
use std::fmt::{self, Write};
use std::sync::Arc;

/// One element, decoded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing was stored: an unset string, a null reference.
    Null,
    /// An integer, bit field or time.
    Integer(i128),
    /// An unsigned integer beyond the range of `Integer`.
    Unsigned(u128),
    /// An IEEE 754 binary16.
    Half(half::f16),
    /// An IEEE 754 binary32.
    Single(f32),
    /// An IEEE 754 binary64, and what any other layout rounds to.
    Double(f64),
    /// A member of an enumeration of two members called `FALSE` and `TRUE`.
    Bool(bool),
    /// A member of any other enumeration; without a name if none has this value.
    Enum {
        /// Its name.
        name: Option<Name>,
        /// Its value.
        value: i128,
    },
    /// Text, without its padding.
    Text(String),
    /// Text that is not UTF-8, opaque elements, and integers wider than 128 bits, as stored.
    Bytes(Bytes),
    /// A sequence or an array, the latter as nested lists.
    List(Vec<Value>),
    /// The members of a compound: names and values in stored order.
    Compound(Arc<[Name]>, Vec<Value>),
    /// Real and imaginary part.
    Complex(Box<[Value; 2]>),
    /// Where a reference points.
    Reference(Box<Reference>),
    /// A reference that can't be followed, with the reason.
    Broken(String),
}

impl Value {
    /// The value of one stored element of a type without references and parts of variable length.
    pub fn fixed(dtype: &DType, stored: &[u8]) -> Result<Value> {
        Decoder::new(dtype)?.value(stored)
    }

    /// The text of a text value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of an integer, Boolean or enumeration.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Value::Integer(v) | Value::Enum { value: v, .. } => Some(*v),
            Value::Unsigned(v) => i128::try_from(*v).ok(),
            Value::Bool(v) => Some(i128::from(*v)),
            _ => None,
        }
    }

    /// The value of any number as the nearest `f64`.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Half(v) => Some(v.to_f64()),
            Value::Single(v) => Some(f64::from(*v)),
            Value::Double(v) => Some(*v),
            Value::Unsigned(v) => Some(*v as f64),
            other => other.as_integer().map(|v| v as f64),
        }
    }

    /// The member called `name` of a compound.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Compound(names, values) => {
                names.iter().position(|n| n.as_bytes() == name.as_bytes()).and_then(|i| values.get(i))
            }
            _ => None,
        }
    }

    /// Folds a flat list of elements in C order into lists nested as `dims` says; a scalar has no dims.
    pub fn nest(dims: &[u64], flat: Vec<Value>) -> Value {
        let mut level = flat;
        if dims.is_empty() && level.len() == 1 {
            return level.swap_remove(0);
        }
        // From the innermost axis outwards; the lists of the outermost axis are the result itself.
        for &d in dims.iter().skip(1).rev() {
            let d = usize::try_from(d).unwrap_or(usize::MAX);
            if d == 0 {
                return Value::List(Vec::new());
            }
            let mut rest = level.into_iter().peekable();
            let mut lists = Vec::new();
            while rest.peek().is_some() {
                lists.push(Value::List(rest.by_ref().take(d).collect()));
            }
            level = lists;
        }
        Value::List(level)
    }
}

/// The shortest decimal that reads back as the same binary16.
fn half_text(v: half::f16) -> String {
    let wide = v.to_f32();
    (0..6)
        .filter_map(|digits| format!("{wide:.digits$e}").parse::<f32>().ok())
        .find(|short| half::f16::from_f32(*short) == v)
        .map_or_else(|| format!("{wide:?}"), |short| format!("{short:?}"))
}

/// Text in double quotes, with the usual escapes.
fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            c if c.is_control() => write!(f, "{}", c.escape_default())?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// Values as people read them: text in quotes, lists in brackets, compounds in braces.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Integer(v) => write!(f, "{v}"),
            Value::Unsigned(v) => write!(f, "{v}"),
            Value::Half(v) => f.write_str(&half_text(*v)),
            Value::Single(v) => write!(f, "{v:?}"),
            Value::Double(v) => write!(f, "{v:?}"),
            Value::Bool(v) => write!(f, "{v}"),
            Value::Enum { name: Some(name), .. } => write!(f, "{name}"),
            Value::Enum { name: None, value } => write!(f, "{value}"),
            Value::Text(text) => quoted(f, text),
            Value::Bytes(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
            }
            Value::List(values) => {
                f.write_char('[')?;
                for (i, v) in values.iter().enumerate() {
                    write!(f, "{}{v}", if i > 0 { ", " } else { "" })?;
                }
                f.write_char(']')
            }
            Value::Compound(names, values) => {
                f.write_char('{')?;
                for (i, (name, v)) in names.iter().zip(values).enumerate() {
                    write!(f, "{}{name}: {v}", if i > 0 { ", " } else { "" })?;
                }
                f.write_char('}')
            }
            Value::Complex(parts) => {
                let [re, im] = parts.as_ref();
                let im = im.to_string();
                let plus = if im.starts_with('-') { "" } else { "+" };
                write!(f, "{re}{plus}{im}j")
            }
            Value::Reference(reference) => write!(f, "{reference}"),
            Value::Broken(why) => write!(f, "<broken reference: {why}>"),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Null => f.write_str("null"),
            Reference::Object(node) => write!(f, "<{node}>"),
            Reference::Region(node, region) => {
                write!(f, "<region of {node}")?;
                match region.selection.bounds(&[]) {
                    Some((low, high)) if !low.is_empty() => {
                        write!(f, ", {:?} to {:?}>", low.as_slice(), high.as_slice())
                    }
                    _ => f.write_str(">"),
                }
            }
            Reference::Attribute(node, name) => write!(f, "<attribute {name:?} of {node}>"),
        }
    }
}
