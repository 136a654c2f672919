//! Elements of arrays in forms that need no Rust type: packed, as values, as text.

use super::{Array, RawData, ReadOptions};
use crate::dtype::{DType, Packing};
use crate::error::{Context, Error, Result};
use crate::exec::ReadStats;
use crate::model::{Attribute, Column, Elements, Value};
use crate::select::IntoSelection;
use crate::shape::{element_count, to_usize};

impl Array {
    /// Reads elements packed: little-endian, members without paddings; see [`Packing`].
    pub fn read_packed(&self, selection: impl IntoSelection) -> Result<RawData> {
        Ok(self.read_packed_with(selection, &ReadOptions::default())?.0)
    }

    /// Reads packed elements with options, and says what was done.
    pub fn read_packed_with(
        &self,
        selection: impl IntoSelection,
        options: &ReadOptions,
    ) -> Result<(RawData, ReadStats)> {
        let packing = Packing::new(self.dtype()).context(|| format!("array {}", self.path()))?;
        let (mut raw, stats) = self.read_raw_with(selection, options)?;
        if !packing.is_identity() {
            let mut packed = Vec::new();
            packing.pack(&raw.bytes, to_usize(element_count(&raw.shape)?)?, &mut packed)?;
            raw.bytes = packed;
        }
        Ok((raw, stats))
    }

    /// Reads elements of any type with everything that they point to.
    pub fn read_elements(&self, selection: impl IntoSelection) -> Result<(Vec<u64>, Elements)> {
        let selection = selection.into_selection()?;
        // Both together: what was read before may not be what the heap holds after.
        self.attempt(|| {
            let raw = self.read_raw(&selection)?;
            let elements =
                self.decode(&raw.dtype, raw.bytes.into(), to_usize(element_count(&raw.shape)?)?)?;
            Ok((raw.shape, elements))
        })
    }

    /// Takes stored elements that came from this array apart, with everything that they point to.
    pub fn decode(&self, dtype: &DType, stored: bytes::Bytes, count: usize) -> Result<Elements> {
        let limit = self.options().limits.output;
        self.attempt(|| Elements::decode(&**self.hierarchy(), dtype, stored.clone(), count, limit))
            .context(|| format!("array {}", self.path()))
    }

    /// Reads elements of any type as values, in C order.
    pub fn read_values(&self, selection: impl IntoSelection) -> Result<Vec<Value>> {
        self.read_elements(selection)?.1.values()
    }

    /// Reads text, of fixed or variable length, in C order; an unset string is empty. Text that is not UTF-8 has
    /// U+FFFD in place of what is not.
    pub fn read_strings(&self, selection: impl IntoSelection) -> Result<Vec<String>> {
        if !matches!(self.dtype(), DType::String { .. } | DType::VarString { .. }) {
            let text = format!("array {} holds {}, not text", self.path(), self.dtype());
            return Err(Error::invalid(text));
        }
        let (_, elements) = self.read_elements(selection)?;
        if let Column::Text(texts) = elements.column() {
            let text =
                |t: &Option<bytes::Bytes>| String::from_utf8_lossy(t.as_deref().unwrap_or(&[])).into_owned();
            return Ok(texts.iter().map(text).collect());
        }
        let text = |value| match value {
            Value::Text(text) => text,
            Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        };
        (0..elements.count()).map(|i| Ok(text(elements.value(i)?))).collect()
    }

    /// The value of one attribute.
    pub fn attribute(&self, name: &str) -> Result<Value> {
        super::node::attribute(&**self.hierarchy(), self.node(), self.path(), self.options(), name)
    }

    /// The value of an attribute that [`Array::attributes`] gave.
    pub fn attribute_value(&self, attribute: &Attribute) -> Result<Value> {
        super::node::attribute_value(&**self.hierarchy(), attribute, self.options().limits.output)
            .context(|| format!("attribute {} of {}", attribute.name, self.path()))
    }
}
