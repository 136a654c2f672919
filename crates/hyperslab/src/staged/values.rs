//! Elements that come from or go to the caller.

use super::cells::{Cells, Kind, View};
use super::object::{self, Object};
use crate::array::{ArrayData, RawData};
use crate::dtype::{Conversion, DType, Element, Native, StringPadding};
use crate::error::{Error, Result};
use crate::model::Value;
use crate::shape::{element_count, to_usize};
use hyperslab_kernels::canvas::Convert;
use hyperslab_kernels::{bytes_of, bytes_of_mut, zeroed};
use std::borrow::Cow;

/// Elements to be written: a number, a text, or an array of them. Made with `into()` from numbers, slices, texts,
/// [`ArrayData`], [`RawData`] and [`Block`], or with [`Values::new`].
#[derive(Clone, Debug)]
pub struct Values<'a> {
    shape: Vec<u64>,
    content: Content<'a>,
}

#[derive(Clone, Debug)]
enum Content<'a> {
    Stored(DType, Cow<'a, [u8]>),
    Objects(DType, &'a [Object]),
    Texts(Vec<&'a str>),
}

impl<'a> Values<'a> {
    /// Elements in C order of `shape`.
    pub fn new<T: Element>(shape: &[u64], elements: &'a [T]) -> Result<Values<'a>> {
        if element_count(shape)? != elements.len() as u64 {
            return Err(Error::invalid(format!("{} elements for a shape of {shape:?}", elements.len())));
        }
        Ok(Values { shape: shape.to_vec(), content: native(elements) })
    }

    /// Texts in C order of `shape`.
    pub fn texts(shape: &[u64], texts: &[&'a str]) -> Result<Values<'a>> {
        if element_count(shape)? != texts.len() as u64 {
            return Err(Error::invalid(format!("{} texts for a shape of {shape:?}", texts.len())));
        }
        Ok(Values { shape: shape.to_vec(), content: Content::Texts(texts.to_vec()) })
    }

    /// Elements of any type as stored, in C order of `shape`.
    pub fn stored(shape: &[u64], dtype: &DType, bytes: &'a [u8]) -> Result<Values<'a>> {
        if object::is_variable(dtype) {
            return Err(Error::invalid(format!("stored elements of {dtype} are only references")));
        }
        if element_count(shape)?.checked_mul(dtype.size() as u64) != Some(bytes.len() as u64) {
            return Err(Error::invalid(format!("{} bytes for {shape:?} elements of {dtype}", bytes.len())));
        }
        Ok(Values { shape: shape.to_vec(), content: Content::Stored(dtype.clone(), Cow::Borrowed(bytes)) })
    }

    /// Its extents.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type that an array of these would have.
    pub(super) fn dtype(&self) -> DType {
        match &self.content {
            Content::Stored(dtype, _) | Content::Objects(dtype, _) => dtype.clone(),
            Content::Texts(_) => DType::VarString {
                size: 16,
                padding: StringPadding::NullTerminated,
                charset: crate::dtype::CharSet::Utf8,
            },
        }
    }

    /// The elements as an array of `dtype` stores them; `None` for those of variable length.
    pub(crate) fn stored_as(&self, dtype: &DType) -> Result<Option<Cow<'_, [u8]>>> {
        Ok(match self.cells(dtype)? {
            Converted::Bytes(_, bytes) if dtype.is_fixed() => Some(bytes),
            _ => None,
        })
    }

    /// The elements as those of an array of `dtype`.
    pub(super) fn cells(&self, dtype: &DType) -> Result<Converted<'_>> {
        let unfit = |from: &dyn std::fmt::Display| {
            Error::invalid(format!("{from} cannot be written to an array of {dtype}"))
        };
        match (&self.content, Kind::of(dtype)) {
            (Content::Stored(from, bytes), Kind::Fixed(size)) => {
                if from == dtype {
                    return Ok(Converted::Bytes(size, Cow::Borrowed(bytes)));
                }
                let conversion = Conversion::between(from, dtype).map_err(|_| unfit(from))?;
                check_fit(from, bytes, dtype)?;
                if conversion.is_verbatim() {
                    return Ok(Converted::Bytes(size, Cow::Borrowed(bytes)));
                }
                let mut target = vec![0; bytes.len() / from.size().max(1) * size];
                conversion.run(bytes, from.size(), &mut target)?;
                Ok(Converted::Bytes(size, Cow::Owned(target)))
            }
            (Content::Objects(from, objects), Kind::Objects) => {
                let texts = matches!((from, dtype), (DType::VarString { .. }, DType::VarString { .. }));
                if from != dtype && !texts {
                    return Err(unfit(from));
                }
                Ok(Converted::Objects(Cow::Borrowed(objects)))
            }
            (Content::Texts(texts), Kind::Objects) if matches!(dtype, DType::VarString { .. }) => {
                Ok(Converted::Objects(texts.iter().map(|t| object::text(t)).collect()))
            }
            (Content::Texts(texts), Kind::Fixed(size)) => {
                let mut bytes = Vec::with_capacity(texts.len().saturating_mul(size));
                texts.iter().try_for_each(|t| fixed_text(dtype, t, &mut bytes))?;
                Ok(Converted::Bytes(size, Cow::Owned(bytes)))
            }
            (Content::Stored(from, _) | Content::Objects(from, _), _) => Err(unfit(from)),
            (Content::Texts(_), _) => Err(unfit(&"text")),
        }
    }
}

/// Fails for the first number that does not fit integers of type `to`: out of their range, not finite. What stands behind
/// the point of others is cut off.
fn check_fit(from: &DType, bytes: &[u8], to: &DType) -> Result<()> {
    let whole = |dtype: &DType| match dtype {
        DType::Integer(t) if t.is_whole() && t.size <= 8 => Some((t.signed, 8 * t.size as u32)),
        _ => None,
    };
    let Some((signed, bits)) = whole(to) else { return Ok(()) };
    let (low, high) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    let unfit = |i: usize, value: &dyn std::fmt::Display| {
        let at =
            if bytes.len() > from.size() { format!(", element {i} of the values,") } else { String::new() };
        Error::invalid(format!("{value}{at} does not fit {to}, which holds {low} to {high}"))
            .hint("give values of the range of the array, or make one of a wider type")
    };
    let numbers = |native: Native| Conversion::new(from, native, false)?.convert(bytes);
    match (from, whole(from)) {
        (_, Some((from_signed, from_bits))) => {
            if from_signed == signed && from_bits <= bits || !from_signed && signed && from_bits < bits {
                return Ok(());
            }
            let native = if from_signed { Native::I64 } else { Native::U64 };
            let numbers = numbers(native)?;
            let value = |bytes: &[u8; 8]| match from_signed {
                true => i128::from(i64::from_ne_bytes(*bytes)),
                false => i128::from(u64::from_ne_bytes(*bytes)),
            };
            let mut all = numbers.as_chunks().0.iter().map(value).enumerate();
            match all.find(|(_, value)| !(low..=high).contains(value)) {
                Some((i, value)) => Err(unfit(i, &value)),
                None => Ok(()),
            }
        }
        (DType::Float(_), _) => {
            let numbers = numbers(Native::F64)?;
            // Both are powers of two, or one less.
            let (low, end) = (low as f64, (high + 1) as f64);
            let mut all = numbers.as_chunks().0.iter().map(|b| f64::from_ne_bytes(*b)).enumerate();
            match all.find(|(_, value)| !(value.trunc() >= low && value.trunc() < end)) {
                Some((i, value)) => Err(unfit(i, &value)),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// One text as an element of a string type of fixed size.
fn fixed_text(dtype: &DType, text: &str, out: &mut Vec<u8>) -> Result<()> {
    let too_long =
        |size: usize| Error::invalid(format!("the text {text:?} does not fit into {size} bytes of {dtype}"));
    match dtype {
        DType::String { size, padding, .. } => {
            // Terminated text needs its NUL, except that HDF5 and h5py let it fill the element too.
            if text.len() > *size {
                return Err(too_long(*size));
            }
            let pad = if *padding == StringPadding::SpacePadded { b' ' } else { 0 };
            out.extend_from_slice(text.as_bytes());
            out.resize(out.len() + (size - text.len()), pad);
        }
        DType::Utf32 { length, order } => {
            if text.chars().count() > *length {
                return Err(too_long(length.saturating_mul(4)));
            }
            let end = out.len() + length.saturating_mul(4);
            for c in text.chars() {
                let big = *order == crate::dtype::ByteOrder::Big;
                out.extend(if big { (c as u32).to_be_bytes() } else { (c as u32).to_le_bytes() });
            }
            out.resize(end, 0);
        }
        _ => return Err(Error::invalid(format!("text cannot be written to an array of {dtype}"))),
    }
    Ok(())
}

/// Elements as an array holds them.
#[derive(Debug)]
pub(super) enum Converted<'a> {
    Bytes(usize, Cow<'a, [u8]>),
    Objects(Cow<'a, [Object]>),
}

impl Converted<'_> {
    pub(super) fn view(&self) -> View<'_> {
        match self {
            Converted::Bytes(size, bytes) => View::Bytes(*size, bytes),
            Converted::Objects(objects) => View::Objects(objects),
        }
    }

    pub(super) fn into_cells(self) -> Cells {
        match self {
            Converted::Bytes(size, bytes) => Cells::Fixed { size, bytes: bytes.into_owned() },
            Converted::Objects(objects) => Cells::Objects(objects.into_owned()),
        }
    }
}

fn native<T: Element>(elements: &[T]) -> Content<'_> {
    let bytes = match T::raw(elements) {
        Cow::Borrowed(raw) => Cow::Borrowed(bytes_of(raw)),
        Cow::Owned(raw) => Cow::Owned(bytes_of(&raw).to_vec()),
    };
    Content::Stored(T::NATIVE.dtype(), bytes)
}

impl<T: Element> From<T> for Values<'static> {
    fn from(number: T) -> Self {
        let bytes = bytes_of(&T::raw(&[number])).to_vec();
        Values { shape: Vec::new(), content: Content::Stored(T::NATIVE.dtype(), Cow::Owned(bytes)) }
    }
}

impl<'a, T: Element> From<&'a [T]> for Values<'a> {
    fn from(elements: &'a [T]) -> Self {
        Values { shape: vec![elements.len() as u64], content: native(elements) }
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Values<'a> {
    fn from(elements: &'a Vec<T>) -> Self {
        Values::from(elements.as_slice())
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Values<'a> {
    fn from(elements: &'a [T; N]) -> Self {
        Values::from(elements.as_slice())
    }
}

/// The elements of an [`ArrayData`] in C order; as many as its shape says.
impl<'a, T: Element> TryFrom<&'a ArrayData<T>> for Values<'a> {
    type Error = Error;

    fn try_from(data: &'a ArrayData<T>) -> Result<Self> {
        Values::new(&data.shape, &data.data)
    }
}

impl<'a> TryFrom<&'a RawData> for Values<'a> {
    type Error = Error;

    fn try_from(data: &'a RawData) -> Result<Self> {
        Values::stored(&data.shape, &data.dtype, &data.bytes)
    }
}

impl<'a> From<&'a str> for Values<'a> {
    fn from(text: &'a str) -> Self {
        Values { shape: Vec::new(), content: Content::Texts(vec![text]) }
    }
}

impl<'a> From<&[&'a str]> for Values<'a> {
    fn from(texts: &[&'a str]) -> Self {
        Values { shape: vec![texts.len() as u64], content: Content::Texts(texts.to_vec()) }
    }
}

impl<'a> From<&'a Block> for Values<'a> {
    fn from(block: &'a Block) -> Self {
        let content = match &block.cells {
            Cells::Fixed { bytes, .. } => Content::Stored(block.dtype.clone(), Cow::Borrowed(bytes)),
            Cells::Objects(objects) => Content::Objects(block.dtype.clone(), objects),
        };
        Values { shape: block.shape.clone(), content }
    }
}

/// Elements of any type in memory, in C order, with everything that they point to.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub(super) shape: Vec<u64>,
    pub(super) dtype: DType,
    pub(super) cells: Cells,
}

impl Block {
    /// Its extents.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of its elements.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.cells.view().len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as stored; `None` if some part of them is of variable length.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.cells {
            Cells::Fixed { bytes, .. } => Some(bytes),
            Cells::Objects(_) => None,
        }
    }

    /// The elements as stored, or, if some part of them is of variable length, as
    /// [`Content`](crate::model::write::Content) holds them.
    pub(crate) fn into_elements(self) -> std::result::Result<Vec<u8>, Vec<Object>> {
        match self.cells {
            Cells::Fixed { bytes, .. } => Ok(bytes),
            Cells::Objects(objects) => Err(objects),
        }
    }

    /// The elements as `T`; those that it cannot hold are clamped, as by [`Array::read`](crate::Array::read).
    pub fn to<T: Element>(&self) -> Result<ArrayData<T>> {
        let bytes = self.bytes().ok_or_else(|| no_numbers(&self.dtype, T::NATIVE))?;
        let conversion = Conversion::new(&self.dtype, T::NATIVE, false)?;
        let count = to_usize(element_count(&self.shape)?)?;
        let mut raw = zeroed::<T::Raw>(count).ok_or_else(|| {
            Error::new(crate::ErrorKind::LimitExceeded, format!("no memory for {count} elements"))
        })?;
        conversion.run(bytes, self.dtype.size(), bytes_of_mut(&mut raw))?;
        Ok(ArrayData { shape: self.shape.clone(), data: T::from_raw(raw) })
    }

    /// Element `i` in C order. References mean something only in their file: an element with one is its stored bytes.
    pub fn value(&self, i: usize) -> Result<Value> {
        let missing = || Error::new(crate::ErrorKind::OutOfBounds, format!("there is no element {i}"));
        match &self.cells {
            Cells::Fixed { size, bytes } => {
                let from = i.checked_mul(*size).ok_or_else(missing)?;
                let stored = bytes.get(from..).and_then(|b| b.get(..*size)).ok_or_else(missing)?;
                if !self.dtype.is_fixed() {
                    return Ok(Value::Bytes(bytes::Bytes::copy_from_slice(stored)));
                }
                Value::fixed(&self.dtype, stored)
            }
            Cells::Objects(objects) => object::value(&self.dtype, objects.get(i).ok_or_else(missing)?),
        }
    }

    /// The elements of a string type in C order. Text that is not UTF-8 has U+FFFD in place of what is not.
    pub fn texts(&self) -> Result<Vec<String>> {
        let text = |i| match self.value(i)? {
            Value::Text(text) => Ok(text),
            Value::Bytes(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            _ => Err(Error::invalid(format!("{} is not text", self.dtype))),
        };
        match &self.cells {
            Cells::Objects(objects) if matches!(self.dtype, DType::VarString { .. }) => {
                Ok(objects.iter().map(|o| String::from_utf8_lossy(object::as_text(o)).into_owned()).collect())
            }
            _ => (0..self.len()).map(text).collect(),
        }
    }
}

pub(super) fn no_numbers(dtype: &DType, wanted: Native) -> Error {
    Error::invalid(format!("{dtype} does not convert to {wanted}"))
}

impl Block {
    /// A copy of the elements.
    pub fn from_values(values: &Values<'_>) -> Result<Block> {
        let dtype = values.dtype();
        let cells = values.cells(&dtype)?.into_cells();
        Ok(Block { shape: values.shape.clone(), dtype, cells })
    }

    /// Stored elements, taken over as they are.
    pub fn from_raw(data: RawData) -> Result<Block> {
        Values::stored(&data.shape, &data.dtype, &data.bytes)?;
        let cells = Cells::Fixed { size: data.dtype.size(), bytes: data.bytes };
        Ok(Block { shape: data.shape, dtype: data.dtype, cells })
    }
}
