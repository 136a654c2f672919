//! Values as stored elements.

use super::Source;
use super::types::{fill_into, integer, is_character};
use crate::convention::netcdf::cdl::Item;
use crate::dtype::{ByteOrder, DType};
use crate::error::{Error, Result};
use crate::model::write::Content;
use crate::shape::{element_count, to_usize};
use std::fmt;

/// A list of values that is being read.
pub(super) struct Values<'a> {
    source: &'a Source<'a>,
    /// Where the list begins.
    at: usize,
    /// How many values were taken from it.
    taken: usize,
}

impl<'a> Values<'a> {
    pub(super) fn new(source: &'a Source<'a>, at: usize) -> Self {
        Values { source, at, taken: 0 }
    }

    /// Fails at the limit of nesting.
    pub(super) fn check_depth(&self, depth: usize) -> Result<()> {
        self.source.limits.check_depth("braces of CDL", u32::try_from(depth).unwrap_or(u32::MAX))
    }

    /// An error at the value that was taken last.
    pub(super) fn wrong(&self, what: impl fmt::Display) -> Error {
        self.source.wrong(self.at, self.taken.saturating_sub(1), what)
    }

    /// An error at the value that comes next.
    pub(super) fn wrong_next(&self, what: impl fmt::Display) -> Error {
        self.source.wrong(self.at, self.taken, what)
    }

    /// One element. `fill` is what `_` stands for, if it is not netCDF's own fill value. A fixed element becomes its bytes
    /// as stored, another one an object of [`Content`](crate::model::write::Content).
    pub(super) fn element(
        &mut self,
        dtype: &DType,
        item: &Item,
        fill: Option<&[u8]>,
        depth: u32,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.source.limits.check_depth("types of CDL", depth)?;
        if *item == Item::Fill {
            self.taken += 1;
            return match fill {
                Some(fill) => {
                    out.extend_from_slice(fill);
                    Ok(())
                }
                None => fill_into(dtype, &self.source.limits, depth, out),
            };
        }
        match (dtype, item) {
            (DType::Compound { size, fields }, Item::List(items)) => {
                let (start, fixed) = (out.len(), dtype.is_fixed());
                for (i, field) in fields.iter().enumerate() {
                    if fixed {
                        out.resize(start.saturating_add(field.offset), 0);
                    }
                    match items.get(i) {
                        Some(item) => self.element(&field.dtype, item, None, depth + 1, out)?,
                        None => fill_into(&field.dtype, &self.source.limits, depth + 1, out)?,
                    }
                }
                if items.len() > fields.len() {
                    let text = format!("{} values for the {} members of a compound", items.len(), fields.len());
                    return Err(self.wrong_next(text));
                }
                if fixed {
                    out.resize(start.saturating_add(*size), 0);
                }
                Ok(())
            }
            (DType::Compound { .. }, _) => {
                Err(self.wrong_next("a compound is written in braces, {first, second, …}"))
            }
            (DType::Array { base, dims }, item) => {
                let items = match item {
                    Item::List(items) => items.as_slice(),
                    single => std::slice::from_ref(single),
                };
                let count = to_usize(element_count(dims)?)?;
                if is_character(base) {
                    let unit = dims.last().filter(|_| dims.len() > 1).copied();
                    return self.characters(items, unit.map(to_usize).transpose()?, Some(count), 0, out);
                }
                for i in 0..count {
                    match items.get(i) {
                        Some(item) => self.element(base, item, None, depth + 1, out)?,
                        None => fill_into(base, &self.source.limits, depth + 1, out)?,
                    }
                }
                if items.len() > count {
                    return Err(self.wrong_next(format!("{} values for a member of {count}", items.len())));
                }
                Ok(())
            }
            (DType::VarLen { base, .. }, Item::List(items)) => {
                let start = out.len();
                out.extend_from_slice(&[0; 8]);
                let count = if is_character(base) {
                    self.characters(items, None, None, 0, out)?;
                    out.len().saturating_sub(start + 8)
                } else {
                    for item in items {
                        self.element(base, item, None, depth + 1, out)?;
                    }
                    items.len()
                };
                if let Some(length) = out.get_mut(start..start + 8) {
                    length.copy_from_slice(&(count as u64).to_le_bytes());
                }
                Ok(())
            }
            (DType::VarLen { .. }, Item::Nil) => {
                self.taken += 1;
                out.extend_from_slice(&[0; 8]);
                Ok(())
            }
            (DType::VarLen { .. }, _) => {
                Err(self.wrong_next("a sequence of variable length is written in braces, {1, 2, …}"))
            }
            (_, Item::List(_)) => Err(self.wrong_next("braces where one value is expected")
                .hint("braces stand around compounds, sequences, and what lies along unlimited dimensions but the first")),
            (dtype, item) => {
                self.taken += 1;
                self.single(dtype, item, out)
            }
        }
    }

    /// A value of a type without parts.
    fn single(&self, dtype: &DType, item: &Item, out: &mut Vec<u8>) -> Result<()> {
        match (dtype, item) {
            (DType::Integer(t), item) => {
                let value = match item {
                    Item::Integer(value, _) => *value,
                    // A character is a byte with a sign.
                    Item::Char(byte) => i128::from(byte.cast_signed()),
                    Item::Single(value) => self.whole(f64::from(*value))?,
                    Item::Double(value) => self.whole(*value)?,
                    Item::Text(text) => match text_number(text, |text| text.parse().ok()) {
                        Some(value) => value,
                        None => return Err(self.no_number(text)),
                    },
                    other => return Err(self.unfit(other, "an integer")),
                };
                let stored = integer(t, value).ok_or_else(|| {
                    let (size, sign) = (8 * t.size, if t.signed { "signed" } else { "unsigned" });
                    self.wrong(format!("{value} does not fit a {sign} integer of {size} bits"))
                })?;
                out.extend_from_slice(&stored);
            }
            (DType::Float(t), item) => {
                let (single, double) = match item {
                    Item::Integer(value, _) => (*value as f32, *value as f64),
                    Item::Char(byte) => (f32::from(byte.cast_signed()), f64::from(byte.cast_signed())),
                    Item::Single(value) => (*value, f64::from(*value)),
                    Item::Double(value) => (*value as f32, *value),
                    Item::Text(text) => match text_number(text, |text| text.parse::<f64>().ok()) {
                        Some(value) => (value as f32, value),
                        None => return Err(self.no_number(text)),
                    },
                    other => return Err(self.unfit(other, "a number")),
                };
                let big = t.order == ByteOrder::Big;
                if t.size == 4 {
                    if single.is_infinite() && !double.is_infinite() {
                        return Err(self.wrong(format!("{double:e} does not fit a float")));
                    }
                    out.extend_from_slice(&if big { single.to_be_bytes() } else { single.to_le_bytes() });
                } else {
                    out.extend_from_slice(&if big { double.to_be_bytes() } else { double.to_le_bytes() });
                }
            }
            (DType::VarString { .. }, Item::Text(text)) => self.text(text, out)?,
            (DType::VarString { .. }, Item::Char(byte)) => self.text(&[*byte], out)?,
            (DType::VarString { .. }, Item::Nil) => out.extend_from_slice(&Content::NONE.to_le_bytes()),
            (DType::Enum { base, members }, Item::Name(name)) => {
                let last = name.rsplit('/').next().unwrap_or(name);
                let named = |wanted: &str| members.iter().find(|m| m.name.as_bytes() == wanted.as_bytes());
                let member = named(name).or_else(|| named(last));
                match member {
                    Some(member) if member.value.len() == base.size() => out.extend_from_slice(&member.value),
                    _ => return Err(self.wrong(format!("{name} is no member of the enumeration"))),
                }
            }
            (DType::Enum { base, .. }, item) => self.single(base, item, out)?,
            (DType::Opaque { size, .. }, Item::Opaque(bytes)) => {
                let rest = size.checked_sub(bytes.len());
                let rest = rest.ok_or_else(|| {
                    self.wrong(format!("{} bytes for an opaque type of {size}", bytes.len()))
                })?;
                out.extend_from_slice(bytes);
                out.resize(out.len().saturating_add(rest), 0);
            }
            (DType::String { .. }, item) => out.push(self.character(item)?),
            (_, other) => return Err(self.unfit(other, "a value of this type")),
        }
        Ok(())
    }

    /// Characters. Of rows of `unit` characters each text takes whole ones, otherwise texts stand one after the other;
    /// single characters always do. With `total` exactly so many, `fill` behind them.
    pub(super) fn characters(
        &mut self,
        items: &[Item],
        unit: Option<usize>,
        total: Option<usize>,
        fill: u8,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        let row = unit.unwrap_or(1).max(1);
        let whole = |out: &mut Vec<u8>| {
            let length = out.len().saturating_sub(start).next_multiple_of(row);
            out.resize(start.saturating_add(length), fill);
        };
        for item in items {
            match item {
                Item::Text(text) => {
                    self.taken += 1;
                    whole(out);
                    out.extend_from_slice(text);
                    if text.is_empty() && unit.is_some() {
                        out.resize(out.len().saturating_add(row), fill);
                    }
                    whole(out);
                }
                Item::Fill => {
                    self.taken += 1;
                    whole(out);
                    out.resize(out.len().saturating_add(row), fill);
                }
                Item::List(_) => {
                    return Err(self.wrong_next("braces where characters are expected"));
                }
                item => {
                    self.taken += 1;
                    out.push(self.character(item)?);
                }
            }
            if let Some(total) = total
                && out.len().saturating_sub(start) > total
            {
                return Err(self.wrong(format!("more characters than the {total} that there is room for")));
            }
        }
        if let Some(total) = total {
            out.resize(start.saturating_add(total), fill);
        }
        Ok(())
    }

    /// One character.
    fn character(&self, item: &Item) -> Result<u8> {
        match item {
            Item::Char(byte) => Ok(*byte),
            Item::Text(text) => match text.as_slice() {
                [] => Ok(0),
                [byte] => Ok(*byte),
                _ => Err(self.wrong(format!("{} characters where there is room for one", text.len()))),
            },
            Item::Integer(value, _) => u8::try_from(*value)
                .ok()
                .or_else(|| i8::try_from(*value).ok().map(i8::cast_unsigned))
                .ok_or_else(|| self.wrong(format!("{value} is no character"))),
            other => Err(self.unfit(other, "a character")),
        }
    }

    /// A text of any length.
    fn text(&self, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if text.contains(&0) {
            let error = self.wrong("a string with a NUL in it, which would end it");
            return Err(error.hint("use a char variable or attribute for such bytes"));
        }
        out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        out.extend_from_slice(text);
        Ok(())
    }

    fn whole(&self, value: f64) -> Result<i128> {
        // Beyond this every number is whole, and none of them fits an integer.
        if value.trunc() == value && value.abs() < 1e30 {
            return Ok(value as i128);
        }
        Err(self.wrong(format!("{value} is no integer")).hint("ncgen would cut it off; write what is meant"))
    }

    fn no_number(&self, text: &[u8]) -> Error {
        let text = String::from_utf8_lossy(text);
        self.wrong(format!("the text {text:?} where a number is expected")).hint(
            "a text is a time, as ncdump -t prints it, where the variable has units such as \"days since 2000-01-01\"",
        )
    }

    fn unfit(&self, item: &Item, wanted: &str) -> Error {
        let what = match item {
            Item::Integer(..) => "an integer",
            Item::Single(_) | Item::Double(_) => "a floating-point number",
            Item::Text(_) => "a text",
            Item::Char(_) => "a character",
            Item::Opaque(_) => "bytes in hexadecimal digits",
            Item::Fill => "a fill value",
            Item::Nil => "NIL",
            Item::Name(_) => "a name",
            Item::List(_) => "a list in braces",
        };
        self.wrong(format!("{what} where {wanted} is expected"))
    }
}

/// The number that a text is, all of it.
fn text_number<T>(text: &[u8], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    parse(std::str::from_utf8(text).ok()?.trim())
}
