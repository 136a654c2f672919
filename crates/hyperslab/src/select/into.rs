//! What converts into a selection: ranges, indices, lists, tuples of them, text.

use super::selection::{Item, List, Mask, Selection, Slice};
use crate::error::{Error, Result};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A whole axis, for tuples: `(0, All, 2..5)`. The same as `..`.
#[derive(Clone, Copy, Debug)]
pub struct All;

/// Every `step`-th element of a range: `Step(2..10, 3)`, `Step(.., -1)`.
#[derive(Clone, Copy, Debug)]
pub struct Step<R>(pub R, pub i64);

/// Something that stands for one item of a selection.
pub trait IntoItem {
    /// The item.
    fn into_item(self) -> Result<Item>;
}

/// Something that stands for a selection. Lists combine by NumPy's rules; see
/// [`Selection::with_mode`] and [`Selection::outer`] for the other way.
pub trait IntoSelection {
    /// The selection.
    fn into_selection(self) -> Result<Selection>;
}

fn slice(start: Option<i64>, stop: Option<i64>) -> Result<Item> {
    Ok(Item::Slice(Slice { start, stop, step: 1 }))
}

/// `..=-1` ends with the last element, which no exclusive end says.
fn after(last: i64) -> Option<i64> {
    if last == -1 { None } else { last.checked_add(1) }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl IntoItem for $t {
            fn into_item(self) -> Result<Item> {
                Ok(Item::Index(index(self)?))
            }
        }
        impl IntoItem for Range<$t> {
            fn into_item(self) -> Result<Item> {
                slice(Some(index(self.start)?), Some(index(self.end)?))
            }
        }
        impl IntoItem for RangeFrom<$t> {
            fn into_item(self) -> Result<Item> {
                slice(Some(index(self.start)?), None)
            }
        }
        impl IntoItem for RangeTo<$t> {
            fn into_item(self) -> Result<Item> {
                slice(None, Some(index(self.end)?))
            }
        }
        impl IntoItem for RangeInclusive<$t> {
            fn into_item(self) -> Result<Item> {
                slice(Some(index(*self.start())?), after(index(*self.end())?))
            }
        }
        impl IntoItem for RangeToInclusive<$t> {
            fn into_item(self) -> Result<Item> {
                slice(None, after(index(self.end)?))
            }
        }
        impl IntoItem for Vec<$t> {
            fn into_item(self) -> Result<Item> {
                (&self[..]).into_item()
            }
        }
        impl IntoItem for &[$t] {
            fn into_item(self) -> Result<Item> {
                let values: Result<Vec<i64>> = self.iter().map(|&v| index(v)).collect();
                Ok(Item::List(List::from(values?)))
            }
        }
        impl<const N: usize> IntoItem for [$t; N] {
            fn into_item(self) -> Result<Item> {
                (&self[..]).into_item()
            }
        }
    )*};
}

fn index<T: TryInto<i64> + std::fmt::Display + Copy>(value: T) -> Result<i64> {
    value
        .try_into()
        .map_err(|_| Error::invalid(format!("the index {value} does not fit 64 bits with a sign")))
}

integers!(i32, i64, u32, u64, usize, isize);

impl IntoItem for RangeFull {
    fn into_item(self) -> Result<Item> {
        Ok(Item::Slice(Slice::ALL))
    }
}

impl IntoItem for All {
    fn into_item(self) -> Result<Item> {
        Ok(Item::Slice(Slice::ALL))
    }
}

impl<R: IntoItem> IntoItem for Step<R> {
    fn into_item(self) -> Result<Item> {
        if self.1 == 0 {
            return Err(Error::invalid("the step of a slice is 0"));
        }
        match self.0.into_item()? {
            Item::Slice(s) => Ok(Item::Slice(Slice { step: self.1, ..s })),
            item => Err(Error::invalid(format!("{item} has no step"))),
        }
    }
}

impl IntoItem for Vec<bool> {
    fn into_item(self) -> Result<Item> {
        Ok(Item::Mask(Mask::from(self)))
    }
}

impl IntoItem for List {
    fn into_item(self) -> Result<Item> {
        Ok(Item::List(self))
    }
}

impl IntoItem for Mask {
    fn into_item(self) -> Result<Item> {
        Ok(Item::Mask(self))
    }
}

impl IntoItem for Slice {
    fn into_item(self) -> Result<Item> {
        Ok(Item::Slice(self))
    }
}

impl IntoItem for Item {
    fn into_item(self) -> Result<Item> {
        Ok(self)
    }
}

impl IntoSelection for Selection {
    fn into_selection(self) -> Result<Selection> {
        Ok(self)
    }
}

impl IntoSelection for &Selection {
    fn into_selection(self) -> Result<Selection> {
        Ok(self.clone())
    }
}

impl IntoSelection for Result<Selection> {
    fn into_selection(self) -> Result<Selection> {
        self
    }
}

impl FromIterator<Item> for Selection {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        Selection::vectorised(items.into_iter().collect::<Vec<Item>>())
    }
}

impl IntoSelection for &str {
    fn into_selection(self) -> Result<Selection> {
        Selection::parse(self)
    }
}

/// The whole array, of any rank.
impl IntoSelection for RangeFull {
    fn into_selection(self) -> Result<Selection> {
        Ok(Selection::all())
    }
}

/// The whole array, of any rank; also the one element of a scalar.
impl IntoSelection for () {
    fn into_selection(self) -> Result<Selection> {
        Ok(Selection::all())
    }
}

impl IntoSelection for Vec<Item> {
    fn into_selection(self) -> Result<Selection> {
        Ok(Selection::vectorised(self))
    }
}

macro_rules! singles {
    ($($t:ty),*) => {$(
        impl IntoSelection for $t {
            fn into_selection(self) -> Result<Selection> {
                Ok(Selection::vectorised(vec![self.into_item()?]))
            }
        }
    )*};
}
singles!(
    i32,
    i64,
    u32,
    u64,
    usize,
    isize,
    Item,
    List,
    Mask,
    Slice,
    Vec<bool>,
    Vec<i64>,
    Vec<u64>,
    Vec<usize>,
    Range<i32>,
    Range<i64>,
    Range<u64>,
    Range<usize>,
    RangeFrom<i32>,
    RangeFrom<i64>,
    RangeFrom<u64>,
    RangeFrom<usize>,
    RangeTo<i32>,
    RangeTo<i64>,
    RangeTo<u64>,
    RangeTo<usize>
);

impl<R: IntoItem> IntoSelection for Step<R> {
    fn into_selection(self) -> Result<Selection> {
        Ok(Selection::vectorised(vec![self.into_item()?]))
    }
}

macro_rules! tuples {
    ($($name:ident),+) => {
        impl<$($name: IntoItem),+> IntoSelection for ($($name,)+) {
            fn into_selection(self) -> Result<Selection> {
                #[allow(non_snake_case)]
                let ($($name,)+) = self;
                Ok(Selection::vectorised(vec![$($name.into_item()?),+]))
            }
        }
    };
}
tuples!(A);
tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);
tuples!(A, B, C, D, E);
tuples!(A, B, C, D, E, F);
tuples!(A, B, C, D, E, F, G);
tuples!(A, B, C, D, E, F, G, H);

/// A selection written like a subscript: items separated by commas, a step after a semicolon, `...` for the ellipsis,
/// `None` for a new axis. It is a `Result`, which every call that takes a selection takes too.
///
/// ```
/// use hyperslab::s;
/// # fn read(_: impl hyperslab::select::IntoSelection) {}
/// read(s![0, 2..10;3]);
/// let selection = s![0, 2..10;3, ..., vec![5, 1, 1]]?;
/// assert_eq!(selection.to_string(), "[0, 2:10:3, ..., [5, 1, 1]]");
/// # Ok::<(), hyperslab::Error>(())
/// ```
#[macro_export]
macro_rules! s {
    (@items [$($done:tt)*]) => {
        <Vec<$crate::Result<$crate::select::Item>>>::from([$($done)*])
            .into_iter()
            .collect::<$crate::Result<$crate::select::Selection>>()
    };
    (@items [$($done:tt)*] ... $(, $($rest:tt)*)?) => {
        $crate::s!(@items [$($done)* Ok($crate::select::Item::Ellipsis),] $($($rest)*)?)
    };
    (@items [$($done:tt)*] None $(, $($rest:tt)*)?) => {
        $crate::s!(@items [$($done)* Ok($crate::select::Item::NewAxis),] $($($rest)*)?)
    };
    (@items [$($done:tt)*] $item:expr ; $step:expr $(, $($rest:tt)*)?) => {
        $crate::s!(@items [$($done)*
            $crate::select::IntoItem::into_item($crate::select::Step($item, $step)),] $($($rest)*)?)
    };
    (@items [$($done:tt)*] $item:expr $(, $($rest:tt)*)?) => {
        $crate::s!(@items [$($done)* $crate::select::IntoItem::into_item($item),] $($($rest)*)?)
    };
    ($($items:tt)*) => {
        $crate::s!(@items [] $($items)*)
    };
}
