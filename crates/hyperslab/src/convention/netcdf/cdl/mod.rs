//! CDL, the text form of netCDF files: from text to a model, with no file involved.
//!
//! The language is that of `ncgen`, which `ncdump` and `hyperslab dump` write: types, dimensions, variables, attributes,
//! data and groups. Each part knows where it stands, in bytes. Special attributes (`_FillValue`, `_ChunkSizes`, …) are attributes like others here; whether a value
//! fits its type is for whoever writes a file of it.

mod lex;
mod parse;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::limits::Limits;

/// A file as CDL has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dataset {
    /// What follows `netcdf`.
    pub name: String,
    /// The root group, without a name.
    pub root: Group,
}

/// A group, its members in the order in which they stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// User-defined types.
    pub types: Vec<UserType>,
    /// Dimensions.
    pub dimensions: Vec<Dimension>,
    /// Variables with their attributes.
    pub variables: Vec<Variable>,
    /// Its own attributes.
    pub attributes: Vec<Attribute>,
    /// Values of variables.
    pub data: Vec<Data>,
    /// Groups in it.
    pub groups: Vec<Group>,
}

/// A user-defined type; other types are named as in CDL, `int` or `/group/name`.
#[derive(Clone, Debug, PartialEq)]
pub enum UserType {
    /// Named values of an integer type.
    Enum {
        /// Where it stands.
        at: usize,
        /// Its name.
        name: String,
        /// Type of the values.
        base: String,
        /// Names and values.
        members: Vec<(String, i128)>,
    },
    /// Bytes without meaning.
    Opaque {
        /// Where it stands.
        at: usize,
        /// Its name.
        name: String,
        /// Their number.
        size: u64,
    },
    /// Sequences of any length.
    VarLen {
        /// Where it stands.
        at: usize,
        /// Its name.
        name: String,
        /// Type of an element.
        base: String,
    },
    /// Named members.
    Compound {
        /// Where it stands.
        at: usize,
        /// Its name.
        name: String,
        /// Name, type and extents of each.
        fields: Vec<(String, String, Vec<u64>)>,
    },
}

impl UserType {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            UserType::Enum { name, .. }
            | UserType::Opaque { name, .. }
            | UserType::VarLen { name, .. }
            | UserType::Compound { name, .. } => name,
        }
    }

    /// Where it stands in the text.
    pub fn at(&self) -> usize {
        match self {
            UserType::Enum { at, .. }
            | UserType::Opaque { at, .. }
            | UserType::VarLen { at, .. }
            | UserType::Compound { at, .. } => *at,
        }
    }
}

/// A named extent.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// Its length; `None`: unlimited.
    pub length: Option<u64>,
    /// Where it stands.
    pub at: usize,
}

/// A variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Name of its type.
    pub kind: String,
    /// Names or paths of its dimensions, slowest first.
    pub dimensions: Vec<String>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Where it stands.
    pub at: usize,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Name of its type, where that is written.
    pub kind: Option<String>,
    /// Its values.
    pub values: Vec<Item>,
    /// Where these begin.
    pub at: usize,
}

/// Values of a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Its name, or its path.
    pub variable: String,
    /// Its values.
    pub values: Vec<Item>,
    /// Where these begin.
    pub at: usize,
}

/// A value, or a list of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An integer, with the type that its suffix says: `b`, `s`, `ub`, `us`, `u`, `ll`, `ull`.
    Integer(i128, Option<&'static str>),
    /// A number of type `float`.
    Single(f32),
    /// A number of type `double`.
    Double(f64),
    /// Text in quotes, its escapes resolved.
    Text(Vec<u8>),
    /// A character between single quotes.
    Char(u8),
    /// Bytes as hexadecimal digits behind `0x`.
    Opaque(Vec<u8>),
    /// `_`: the fill value.
    Fill,
    /// `NIL`: no string.
    Nil,
    /// A name: a member of an enumeration.
    Name(String),
    /// `{ … }`.
    List(Vec<Item>),
}

/// Line and column of the `n`-th value, braces not counted, of those that begin at byte `at` of the text: what `at` of the
/// parts of a [`Dataset`] is for. Of a place behind the last value, that of the last.
pub fn place(text: &[u8], at: usize, n: usize) -> (usize, usize) {
    lex::place(text, at, n)
}

/// Of each value from byte `at` of the text on, whether it goes on with the one before: a row of characters with a newline
/// in it, which `ncdump` prints as several texts.
pub(crate) fn continued(text: &[u8], at: usize) -> Vec<bool> {
    lex::continued(text, at)
}

/// Reads CDL: UTF-8, or any other bytes between quotes.
///
/// Fails with [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), line and column where the text is not CDL,
/// and at the limit of nesting. Memory is a small multiple of the length of the text.
pub fn parse(text: &[u8], limits: &Limits) -> Result<Dataset> {
    parse::dataset(text, limits)
}
