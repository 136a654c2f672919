//! What a user holds: files, groups, arrays.

mod address;
#[allow(clippy::module_inception)]
mod array;
mod content;
mod file;
mod flag;
mod fragment;
mod group;
mod live;
mod location;
#[cfg(feature = "ndarray")]
mod ndarray;
mod node;
mod options;
mod provenance;
mod resolve;
#[cfg(test)]
mod tests;
mod tiles;
mod verify;
mod virtual_plan;
mod virtual_region;
mod virtual_selection;
mod walk;

pub use address::Address;
pub use array::{Array, ArrayData, RawData};
pub(crate) use file::name as file_name;
pub use file::{File, open, open_with};
pub use flag::{Cleared, clear_writer_flags, is_being_written};
pub use fragment::{Fragment, Mode};
pub use group::{Group, NamedType, Object};
pub(crate) use live::Origin;
pub use live::{open_swmr, open_swmr_with};
pub use location::Location;
pub(crate) use node::attribute_value;
pub use options::{OpenOptions, ReadOptions};
pub use provenance::{Provenance, Verdict};
pub(crate) use resolve::near;
pub use verify::Verified;
pub use walk::{Entry, Item, Walk};
