//! A selection as the caller wrote it.

use crate::error::{Error, Result};
use crate::shape::element_count;
use std::fmt;

/// `start:stop:step` with Python's meaning: ends may be open, negative, or outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// First index; open: the first in the direction of the step.
    pub start: Option<i64>,
    /// The index before which it ends; open: after the last.
    pub stop: Option<i64>,
    /// Distance, never 0.
    pub step: i64,
}

impl Slice {
    /// The whole axis.
    pub const ALL: Slice = Slice { start: None, stop: None, step: 1 };

    /// First index, step and count on an axis of `extent` elements, as Python's `slice.indices`.
    pub(super) fn indices(&self, extent: u64) -> (i128, i128, u64) {
        let (n, step) = (extent as i128, self.step as i128);
        // An axis runs from `low` to `high` in the direction of the step.
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let clamp = |at: i64| {
            let at = at as i128;
            (if at < 0 { at + n } else { at }).clamp(low, high)
        };
        let start = self.start.map_or(if step > 0 { low } else { high }, clamp);
        let stop = self.stop.map_or(if step > 0 { high } else { low }, clamp);
        let (distance, step_size) = if step > 0 { (stop - start, step) } else { (start - stop, -step) };
        let count = if distance <= 0 { 0 } else { (distance - 1) / step_size + 1 };
        // At most `extent`, so it fits.
        (start, step, count as u64)
    }
}

/// An array of indices, negative ones counted from the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    shape: Vec<u64>,
    values: Vec<i64>,
}

impl List {
    /// Indices in C order of `shape`.
    pub fn new(shape: Vec<u64>, values: Vec<i64>) -> Result<Self> {
        check_shape(&shape, values.len())?;
        Ok(List { shape, values })
    }

    /// Its extents.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Its indices in C order.
    pub fn values(&self) -> &[i64] {
        &self.values
    }
}

impl From<Vec<i64>> for List {
    fn from(values: Vec<i64>) -> Self {
        List { shape: vec![values.len() as u64], values }
    }
}

/// An array of booleans over as many axes as it has, with their extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    shape: Vec<u64>,
    values: Vec<bool>,
}

impl Mask {
    /// Booleans in C order of `shape`.
    pub fn new(shape: Vec<u64>, values: Vec<bool>) -> Result<Self> {
        check_shape(&shape, values.len())?;
        Ok(Mask { shape, values })
    }

    /// Its extents.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Its booleans in C order.
    pub fn values(&self) -> &[bool] {
        &self.values
    }
}

impl From<Vec<bool>> for Mask {
    fn from(values: Vec<bool>) -> Self {
        Mask { shape: vec![values.len() as u64], values }
    }
}

fn check_shape(shape: &[u64], length: usize) -> Result<()> {
    if element_count(shape)? != length as u64 {
        return Err(Error::invalid(format!("{length} values do not fill the shape {shape:?}")));
    }
    Ok(())
}

/// One item of a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// One index; the axis is not in the result.
    Index(i64),
    /// Evenly spaced indices.
    Slice(Slice),
    /// Any indices.
    List(List),
    /// The indices at which the mask is true; covers as many axes as the mask has.
    Mask(Mask),
    /// As many whole axes as are not named by the other items. At most one; left out, it stands at the end.
    Ellipsis,
    /// An axis of extent 1 that only the result has.
    NewAxis,
}

/// How several lists and masks combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// NumPy's rules: lists and masks are broadcast against each other and picked from point by point. Where they are
    /// separated by other items, the axes of the points come first in the result.
    #[default]
    Vectorised,
    /// Each list or mask picks along its own axis (Zarr's and xarray's outer indexing).
    Outer,
}

/// What is wanted of an array: items for its axes, from the slowest.
///
/// `Display` writes the form that [`Selection::parse`] reads.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selection {
    items: Vec<Item>,
    mode: Mode,
}

impl Selection {
    /// The whole array.
    pub fn all() -> Self {
        Selection::default()
    }

    /// Items combined by NumPy's rules; see [`Mode::Vectorised`].
    pub fn vectorised(items: impl Into<Vec<Item>>) -> Self {
        Selection { items: items.into(), mode: Mode::Vectorised }
    }

    /// Items each along its own axis; see [`Mode::Outer`].
    pub fn outer(items: impl Into<Vec<Item>>) -> Self {
        Selection { items: items.into(), mode: Mode::Outer }
    }

    /// The same items combined in another way.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Its items.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// How its lists and masks combine.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

fn nested<T>(
    f: &mut fmt::Formatter<'_>,
    shape: &[u64],
    values: &[T],
    one: &impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    let Some((&extent, inner)) = shape.split_first() else {
        return values.first().map_or(Ok(()), |v| one(f, v));
    };
    f.write_str("[")?;
    let part = if extent == 0 { 0 } else { values.len() / extent as usize };
    for i in 0..extent as usize {
        f.write_str(if i > 0 { ", " } else { "" })?;
        nested(f, inner, values.get(i * part..(i + 1) * part).unwrap_or(&[]), one)?;
    }
    f.write_str("]")
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Index(i) => write!(f, "{i}"),
            Item::Slice(s) => {
                s.start.map_or(Ok(()), |v| write!(f, "{v}"))?;
                f.write_str(":")?;
                s.stop.map_or(Ok(()), |v| write!(f, "{v}"))?;
                if s.step != 1 { write!(f, ":{}", s.step) } else { Ok(()) }
            }
            Item::List(l) => nested(f, &l.shape, &l.values, &|f, v| write!(f, "{v}")),
            Item::Mask(m) => {
                nested(f, &m.shape, &m.values, &|f, &v| f.write_str(if v { "True" } else { "False" }))
            }
            Item::Ellipsis => f.write_str("..."),
            Item::NewAxis => f.write_str("None"),
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.items.is_empty() {
            return f.write_str("[...]");
        }
        f.write_str("[")?;
        for (i, item) in self.items.iter().enumerate() {
            write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("]")
    }
}
