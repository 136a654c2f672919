//! How a hierarchy is written.

use crate::codec::Registry;
use crate::limits::Limits;
use crate::source::write::SyncPolicy;

/// What is written beside the documents of Zarr itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Flavour {
    /// Names of dimensions as xarray knows them: `_ARRAY_DIMENSIONS` in version 2, `dimension_names` in version 3.
    #[default]
    Plain,
    /// NCZarr of netCDF-C since 4.9.3 (version 2 only): dimensions, types of attributes, the order of members.
    NcZarr,
}

/// How a new hierarchy is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ZarrOptions {
    /// The version of the format: 2 or 3.
    pub version: u8,
    /// What is written beside.
    pub flavour: Flavour,
    /// Whether all documents are written once more, into one of the root. One that is there is always kept fresh.
    pub consolidated: bool,
    /// What stands between coordinates in keys of chunks, `.` or `/`: by default `.` in version 2 and `/` in version 3.
    pub separator: Option<char>,
    /// Whether keys of version 3 are spelled as in version 2.
    pub v2_keys: bool,
    /// When what was written is made durable.
    pub sync: SyncPolicy,
    /// Budgets.
    pub limits: Limits,
    /// The codecs.
    pub registry: Registry,
}

impl ZarrOptions {
    /// The defaults of a version.
    pub fn new(version: u8) -> ZarrOptions {
        ZarrOptions {
            version,
            flavour: Flavour::Plain,
            consolidated: true,
            separator: None,
            v2_keys: false,
            sync: SyncPolicy::default(),
            limits: Limits::default(),
            registry: Registry::default(),
        }
    }
}
