//! File formats: each a [`Hierarchy`], some metadata and a chunk index. Nothing else.

pub mod hdf5;
pub mod netcdf3;
#[cfg(test)]
mod tests;
pub mod zarr;

use crate::codec::Registry;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::{Hierarchy, Retry};
use crate::source::{ByteRange, Neighbours, Source, Store};
use hdf5::hierarchy::Hdf5;
use hdf5::superblock::Superblock;
use netcdf3::NetCdf3;
use netcdf3::header::Version;
use std::sync::Arc;
use zarr::{Consolidation, Zarr};

/// Opens what is in `source`, whatever its name, by its content. Files that it names are found through `neighbours`.
pub fn open(source: Arc<dyn Source>, neighbours: Neighbours, limits: Limits) -> Result<Arc<dyn Hierarchy>> {
    open_as(source, neighbours, limits, false)
}

/// The same for a file that may be written while it is read; see [`Hdf5::open_live`]. Other formats do not say whether
/// they are being written, and are opened as by [`open`].
pub fn open_live(
    source: Arc<dyn Source>,
    neighbours: Neighbours,
    limits: Limits,
) -> Result<Arc<dyn Hierarchy>> {
    open_as(source, neighbours, limits, true)
}

fn open_as(
    source: Arc<dyn Source>,
    neighbours: Neighbours,
    limits: Limits,
    live: bool,
) -> Result<Arc<dyn Hierarchy>> {
    let name = source.name();
    let look = || {
        let head = source.read(&[ByteRange::new(0, source.len()?.min(8))])?.pop().unwrap_or_default();
        let hdf5 = Superblock::find(source.as_ref()).context(|| &name)?.is_some();
        Ok((head, hdf5))
    };
    let (head, hdf5) = Retry::new(live).run(look)?;
    let head = head.as_ref();
    if Version::find(head).is_some() {
        let file: Arc<dyn Hierarchy> = NetCdf3::open(source, &limits).context(|| &name)?;
        return Ok(file);
    }
    if hdf5 {
        let open = if live { Hdf5::open_live } else { Hdf5::open };
        let file: Arc<dyn Hierarchy> = open(source, neighbours, limits).context(|| &name)?;
        return Ok(file);
    }
    Err(unknown(head).context(name))
}

/// Opens what is in `store`: a Zarr hierarchy.
pub fn open_store(store: Arc<dyn Store>, limits: Limits) -> Result<Arc<dyn Hierarchy>> {
    open_store_with(store, limits, Registry::default(), false)
}

/// The same with the codecs that indexes of shards and elements of any length may use; if `raise`, chunks of such elements
/// that were never written are errors. What other chunks need is said when they are read.
pub fn open_store_with(
    store: Arc<dyn Store>,
    limits: Limits,
    registry: Registry,
    raise: bool,
) -> Result<Arc<dyn Hierarchy>> {
    open_store_as(store, limits, registry, raise, Consolidation::default())
}

/// The same, with a word about consolidated metadata.
pub(crate) fn open_store_as(
    store: Arc<dyn Store>,
    limits: Limits,
    registry: Registry,
    raise: bool,
    consolidation: Consolidation,
) -> Result<Arc<dyn Hierarchy>> {
    let name = store.name();
    let file: Arc<dyn Hierarchy> =
        Zarr::open_as(store, &limits, registry, raise, consolidation).context(|| name)?;
    Ok(file)
}

/// The error for a file that starts with `head` and is not of a format that can be read.
fn unknown(head: &[u8]) -> Error {
    let what = match head {
        [] => return Error::new(ErrorKind::Truncated, "the file is empty"),
        [b'P', b'K', 3, 4, ..] => "zip files without a Zarr document in them",
        [0x0e, 0x03, 0x13, 0x01, ..] => "HDF4 files",
        [b'G', b'R', b'I', b'B', ..] => "GRIB files",
        _ => {
            return Error::new(
                ErrorKind::Unsupported,
                format!("not a format that is known here: it starts with \"{}\"", head.escape_ascii()),
            );
        }
    };
    Error::unsupported(what)
}
