//! CDL, the text form of netCDF files: from text to a model, with no file involved.
//!
//! The language is that of `ncgen`, which `ncdump` and `hyperslab dump` write: types, dimensions, variables, attributes,
//! data and groups. Special attributes (`_FillValue`, `_ChunkSizes`, …) are attributes like others here; whether a value
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
    /// Values by the variable, which may be named by a path.
    pub data: Vec<(String, Vec<Item>)>,
    /// Groups in it.
    pub groups: Vec<Group>,
}

/// A user-defined type; other types are named as in CDL, `int` or `/group/name`.
#[derive(Clone, Debug, PartialEq)]
pub enum UserType {
    /// Named values of an integer type.
    Enum {
        /// Its name.
        name: String,
        /// Type of the values.
        base: String,
        /// Names and values.
        members: Vec<(String, i128)>,
    },
    /// Bytes without meaning.
    Opaque {
        /// Its name.
        name: String,
        /// Their number.
        size: u64,
    },
    /// Sequences of any length.
    VarLen {
        /// Its name.
        name: String,
        /// Type of an element.
        base: String,
    },
    /// Named members.
    Compound {
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
}

/// A named extent.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// Its length; `None`: unlimited.
    pub length: Option<u64>,
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

/// Reads CDL.
///
/// Fails with [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), line and column where the text is not CDL,
/// and at the limit of nesting. Memory is a small multiple of the length of the text.
pub fn parse(text: &[u8], limits: &Limits) -> Result<Dataset> {
    parse::dataset(text, limits)
}
