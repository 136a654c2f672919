//! The formats that can be written.

use crate::array::{Address, Location, OpenOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::format::hdf5::write::{Hdf5Options, Hdf5Writer, Libver};
use crate::format::netcdf3;
use crate::format::zarr::write::{Flavour, Place, ZarrOptions, ZarrWriter};
use crate::model::write::HierarchyWriter;
use crate::source::store::{NewDirectory, ZipWriter};
use crate::source::write::{WriteFile, WriteOptions};
use crate::source::{DirectoryStore, Store};
use std::fmt;
use std::sync::Arc;

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// HDF5.
    Hdf5,
    /// netCDF-4: HDF5 with netCDF's conventions.
    NetCdf4,
    /// netCDF-3, classic (CDF-1).
    NetCdf3,
    /// netCDF-3 with offsets of 64 bits (CDF-2).
    Cdf2,
    /// netCDF-3 with data of 64 bits (CDF-5).
    Cdf5,
    /// Zarr, version 2.
    Zarr2,
    /// Zarr, version 3.
    Zarr3,
    /// NCZarr: Zarr 2 with netCDF's model.
    NcZarr,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 8] = [
        Format::Hdf5,
        Format::NetCdf4,
        Format::NetCdf3,
        Format::Cdf2,
        Format::Cdf5,
        Format::Zarr2,
        Format::Zarr3,
        Format::NcZarr,
    ];

    /// Its name, such as `zarr3`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Hdf5 => "hdf5",
            Format::NetCdf4 => "netcdf4",
            Format::NetCdf3 => "netcdf3",
            Format::Cdf2 => "cdf2",
            Format::Cdf5 => "cdf5",
            Format::Zarr2 => "zarr2",
            Format::Zarr3 => "zarr3",
            Format::NcZarr => "nczarr",
        }
    }

    /// The format of a name.
    pub fn parse(name: &str) -> Result<Format> {
        let known = || Format::ALL.map(Format::name).join(", ");
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| Error::invalid(format!("no format is called {name:?}; there are {}", known())))
    }

    /// The format that the ending of a name tells: `.zarr`, `.zarr.zip`, `.h5`, `.hdf5`, `.nc`, `.nc4`; `None` for others.
    pub fn of_name(name: &str) -> Option<Format> {
        let name = name.trim_end_matches('/');
        if let Some(inner) = name.strip_suffix(".zip").or_else(|| name.strip_suffix(".ZIP")) {
            return Format::of_name(inner).filter(|format| format.is_zarr());
        }
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "zarr" => Some(Format::Zarr3),
            "nczarr" => Some(Format::NcZarr),
            "h5" | "hdf5" | "hdf" | "he5" => Some(Format::Hdf5),
            "nc" | "nc4" | "cdf" => Some(Format::NetCdf4),
            "nc3" => Some(Format::NetCdf3),
            _ => None,
        }
    }

    /// Whether its objects are in a store, and not in one file.
    pub fn is_zarr(self) -> bool {
        matches!(self, Format::Zarr2 | Format::Zarr3 | Format::NcZarr)
    }

    /// Whether it is of the netCDF model.
    pub fn is_netcdf(self) -> bool {
        !matches!(self, Format::Hdf5 | Format::Zarr2 | Format::Zarr3)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a new file is made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CreateOptions {
    /// Limits, codecs, threads, what stops the work, and how places that are far away are reached.
    pub open: OpenOptions,
    /// When it is made durable, whether it is locked, and whether it may take the place of another one.
    pub write: WriteOptions,
    /// Whether a Zarr hierarchy has consolidated metadata.
    pub consolidated: bool,
    /// What stands between coordinates in keys of Zarr.
    pub separator: Option<char>,
    /// Whether keys of Zarr 3 are spelled as in version 2.
    pub v2_keys: bool,
    /// How an HDF5 file is written. netCDF-4 files track order, whatever it says.
    pub hdf5: Hdf5Options,
    /// Bytes of elements that are encoded at a time.
    pub batch: Option<u64>,
}

impl Default for CreateOptions {
    fn default() -> Self {
        CreateOptions {
            open: OpenOptions::default(),
            write: WriteOptions::default(),
            consolidated: true,
            separator: None,
            v2_keys: false,
            hdf5: Hdf5Options::default(),
            batch: None,
        }
    }
}

impl CreateOptions {
    /// The defaults.
    pub fn new() -> Self {
        CreateOptions::default()
    }

    /// Sets whether it may take the place of what is there.
    #[must_use]
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.write.overwrite = overwrite;
        self
    }

    fn hdf5(&self, format: Format) -> Hdf5Options {
        let options = self.hdf5.clone();
        match format {
            // The structures that netCDF's own libraries choose, unless others are asked for.
            Format::NetCdf4 if options.libver == Libver::default() => {
                options.with_libver(Hdf5Options::netcdf4().libver).with_track_order(true)
            }
            Format::NetCdf4 => options.with_track_order(true),
            _ => options,
        }
    }

    fn zarr(&self, format: Format) -> ZarrOptions {
        let mut options = ZarrOptions::new(if format == Format::Zarr3 { 3 } else { 2 });
        options.flavour = if format == Format::NcZarr { Flavour::NcZarr } else { Flavour::Plain };
        options.consolidated = self.consolidated;
        options.separator = self.separator;
        options.v2_keys = self.v2_keys;
        options.sync = self.write.sync;
        options.limits = self.open.limits.clone();
        options.registry = self.open.registry.clone();
        options
    }
}

/// Documents of which a folder with a hierarchy has one.
const DOCUMENTS: [&str; 4] = ["zarr.json", ".zgroup", ".zarray", ".zmetadata"];

/// Whether a store at a path is to be a zip file.
pub(super) fn is_zip(path: &std::path::Path, address: &Address) -> bool {
    let fragment = address.fragment.as_deref().unwrap_or_default();
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("zip"))
        || fragment.split(['=', ',', '&']).any(|word| word == "zip")
}

/// A writer of a new file at an address.
pub(super) fn writer(
    address: &Address,
    format: Format,
    options: &CreateOptions,
) -> Result<Box<dyn HierarchyWriter>> {
    if !format.is_zarr() {
        let path = Location::local_path(address);
        let path = path.ok_or_else(|| {
            Error::unsupported(format_args!("writing {format} to {address}"))
                .hint("write it to a local file, and copy that")
        })?;
        let version = match format {
            Format::NetCdf3 => netcdf3::Version::Classic,
            Format::Cdf2 => netcdf3::Version::Offset64,
            Format::Cdf5 => netcdf3::Version::Data64,
            _ => {
                let target = Arc::new(WriteFile::create(path, &options.write)?);
                let limits = options.open.limits.clone();
                return Ok(Box::new(Hdf5Writer::create(target, options.hdf5(format), limits)?));
            }
        };
        return Ok(Box::new(netcdf3::write::create(path, version, &options.write)?));
    }
    match Location::local_path(address) {
        Some(path) => {
            if is_zip(&path, address) {
                let mut zip = ZipWriter::create(&path, &options.open.limits, &options.write)?;
                // netCDF-C looks for everything in a folder that is called as the file is.
                if format == Format::NcZarr
                    && let Some(name) = path.file_name().and_then(|name| name.to_str())
                {
                    zip = zip.with_prefix(name)?;
                }
                return Ok(Box::new(ZarrWriter::create(Place::Store(Arc::new(zip)), options.zarr(format))?));
            }
            check_replaceable(&path, options)?;
            let folder = NewDirectory::create(path, &options.write, &options.open.limits)?;
            Ok(Box::new(ZarrWriter::create(Place::Directory(folder), options.zarr(format))?))
        }
        None => writer_in(Location::new_store(address, &options.open)?, format, options),
    }
}

/// Fails for a folder that would be overwritten and holds something else than a hierarchy: that is hardly meant.
fn check_replaceable(path: &std::path::Path, options: &CreateOptions) -> Result<()> {
    if !options.write.overwrite || !path.is_dir() {
        return Ok(());
    }
    let store = DirectoryStore::open(path, &options.open.limits)?;
    let listing = store.search("")?;
    let is_empty = listing.objects.is_empty() && listing.prefixes.is_empty();
    if is_empty || listing.objects.iter().any(|name| DOCUMENTS.contains(&name.as_str())) {
        return Ok(());
    }
    let text = format!("{} is a folder that holds no Zarr hierarchy, and is not overwritten", path.display());
    Err(Error::new(ErrorKind::AlreadyExists, text).hint("choose another name, or remove it yourself"))
}

/// A writer of a new hierarchy in a store.
pub(super) fn writer_in(
    store: Arc<dyn Store>,
    format: Format,
    options: &CreateOptions,
) -> Result<Box<dyn HierarchyWriter>> {
    if !format.is_zarr() {
        return Err(Error::unsupported(format_args!("writing {format} to a store of objects")));
    }
    let place = if options.write.overwrite { Place::Replace(store) } else { Place::Store(store) };
    Ok(Box::new(ZarrWriter::create(place, options.zarr(format))?))
}
