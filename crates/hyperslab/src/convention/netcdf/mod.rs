//! The netCDF data model over any hierarchy: groups, named dimensions, variables, typed attributes, user-defined types.
//!
//! What netCDF-C reports of a file is what [`NetcdfView`] reports. Where the C library gives up on a whole file because
//! of one object, the view leaves out that object and says so in [`Group::left_out`]. No elements are read.
//!
//! | where dimensions come from | of |
//! |---|---|
//! | the format itself | netCDF-3 ([`Hierarchy::dimensions`]) |
//! | dimension scales, and the hidden attributes that netCDF-4 adds | HDF5 |
//! | nobody: `phony_dim_N`, one for each length | HDF5 without scales |
//! | the documents of NCZarr | Zarr as netCDF-C writes it, in every layout |
//! | `dimension_names`, or the attribute `_ARRAY_DIMENSIONS`, in the group of the array | other Zarr |
//! | nobody: `_Anonymous_Dim_LENGTH`, one for each length, in the root group | Zarr without names |

mod attribute;
mod build;
pub mod cdl;
mod check;
mod kind;
mod name;
mod scale;
#[cfg(test)]
mod tests;
pub mod time;
mod zarr;

pub use attribute::Attribute;
pub use kind::{Class, Type, UserType};

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::{ArrayMeta, Dataspace, Hierarchy, NodeId, Storage};
use crate::shape::Name;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The kinds of netCDF files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataModel {
    /// CDF-1.
    Classic,
    /// CDF-2.
    Offset64,
    /// CDF-5.
    Data64,
    /// HDF5, with everything that netCDF-4 adds.
    NetCdf4,
    /// HDF5, restricted to what CDF-1 has.
    NetCdf4Classic,
}

impl DataModel {
    /// Whether the file is CDF-1, 2 or 5.
    pub fn is_netcdf3(self) -> bool {
        matches!(self, DataModel::Classic | DataModel::Offset64 | DataModel::Data64)
    }
}

/// The name that netCDF gives to the kind, such as `NETCDF3_64BIT_OFFSET`.
impl fmt::Display for DataModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataModel::Classic => "NETCDF3_CLASSIC",
            DataModel::Offset64 => "NETCDF3_64BIT_OFFSET",
            DataModel::Data64 => "NETCDF3_64BIT_DATA",
            DataModel::NetCdf4 => "NETCDF4",
            DataModel::NetCdf4Classic => "NETCDF4_CLASSIC",
        })
    }
}

/// A named extent that variables share.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// Its name.
    pub name: Name,
    /// Its length now; of an unlimited one, that of the longest variable.
    pub length: u64,
    /// Whether it may grow.
    pub unlimited: bool,
    /// The group that declares it.
    pub group: usize,
    /// Its number in the file, by which those of a group are ordered.
    pub(crate) id: i64,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: Name,
    /// The path of the array.
    pub path: String,
    /// The array.
    pub node: NodeId,
    /// Type of its elements.
    pub kind: Type,
    /// Its dimensions, slowest first, as places in [`NetcdfView::dimensions`].
    pub dimensions: Vec<usize>,
    /// The array's own extents, which along unlimited dimensions may be shorter, and the rest of what is known of it.
    pub meta: ArrayMeta,
    /// How to get at its elements.
    pub storage: Storage,
    /// Attributes in their order.
    pub attributes: Vec<Attribute>,
}

/// An object or attribute that the view does not show.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Its path; of an attribute, that of its object with `:` and its name.
    pub path: String,
    /// What it is, or why it can't be read.
    pub reason: String,
    /// How reading it failed; `None` if netCDF has no word for it.
    pub failed: Option<ErrorKind>,
}

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name; `/` for the root group.
    pub name: Name,
    /// Its path.
    pub path: String,
    /// The group itself.
    pub node: NodeId,
    /// The group around it, as a place in [`NetcdfView::groups`].
    pub parent: Option<usize>,
    /// Dimensions that it declares, in order, as places in [`NetcdfView::dimensions`].
    pub dimensions: Vec<usize>,
    /// Types that it defines, as places in [`NetcdfView::types`].
    pub types: Vec<usize>,
    /// Its variables in order.
    pub variables: Vec<Variable>,
    /// Groups in it, in order.
    pub groups: Vec<usize>,
    /// Attributes in their order.
    pub attributes: Vec<Attribute>,
    /// What is not shown.
    pub left_out: Vec<LeftOut>,
}

/// What a view asks of whoever opened the hierarchy.
pub(crate) struct Outlook<'a> {
    /// The extents of a virtual dataset (by identity and path), if they are not those that its file records.
    pub(crate) extents: &'a dyn Fn(&NodeId, &str) -> Result<Option<Dataspace>>,
    /// Whether what NCZarr adds to Zarr is passed over.
    pub(crate) pure: bool,
    /// Whether types without a name get one, rather than that what is of them is left out.
    pub(crate) name_types: bool,
}

/// A file or store through the eyes of netCDF.
#[derive(Debug)]
pub struct NetcdfView {
    hierarchy: Arc<dyn Hierarchy>,
    model: DataModel,
    nczarr: bool,
    groups: Vec<Group>,
    dimensions: Vec<Dimension>,
    types: Vec<UserType>,
    /// Dimensions by the dataset that stands for them.
    scales: HashMap<NodeId, usize>,
}

/// The path of a member of a group.
fn join(group: &str, name: &Name) -> String {
    if group.ends_with('/') { format!("{group}{name}") } else { format!("{group}/{name}") }
}

impl NetcdfView {
    /// Looks at all objects of `hierarchy`, for [`File::netcdf`](crate::File::netcdf). Faults of single objects are in
    /// [`Group::left_out`].
    pub(crate) fn open(
        hierarchy: Arc<dyn Hierarchy>,
        limits: &Limits,
        outlook: &Outlook<'_>,
    ) -> Result<NetcdfView> {
        build::build(hierarchy, limits, outlook)
    }

    /// What it looks at.
    pub fn hierarchy(&self) -> &Arc<dyn Hierarchy> {
        &self.hierarchy
    }

    /// The kind of file.
    pub fn model(&self) -> DataModel {
        self.model
    }

    /// Whether it is a Zarr hierarchy with what netCDF-C adds to it.
    pub fn is_nczarr(&self) -> bool {
        self.nczarr
    }

    /// All groups; the first is the root, and a group comes after the one around it.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The root group.
    pub fn root(&self) -> Result<&Group> {
        self.groups.first().ok_or_else(|| Error::invalid("a view without groups"))
    }

    /// All dimensions.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// All user-defined types.
    pub fn types(&self) -> &[UserType] {
        &self.types
    }

    /// The extents of a variable, which are those of its dimensions.
    pub fn shape(&self, variable: &Variable) -> Vec<u64> {
        variable.dimensions.iter().filter_map(|&d| self.dimensions.get(d)).map(|d| d.length).collect()
    }

    /// What a variable's elements are that were never written: one stored element.
    pub fn fill(&self, variable: &Variable) -> Vec<u8> {
        if !variable.meta.fill_element.is_empty() {
            return variable.meta.fill_element.to_vec();
        }
        kind::default_fill(&variable.meta.dtype, variable.kind)
    }

    /// The name of a type, as in CDL.
    pub fn type_name(&self, kind: Type) -> String {
        match kind {
            Type::User(i) => self.types.get(i).map(|t| t.name.to_string()).unwrap_or_default(),
            atomic => atomic.word().to_string(),
        }
    }

    /// The netCDF type of elements stored as `dtype`; `None` if netCDF has none for them.
    pub fn type_of(&self, dtype: &crate::dtype::DType) -> Option<Type> {
        kind::type_of(dtype, &self.types)
    }
}
