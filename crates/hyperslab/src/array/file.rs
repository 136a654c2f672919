//! Files, and how they are opened.

use super::fragment::Mode;
use super::group::{Group, Object};
use super::location::Location;
use super::walk::Walk;
use super::{Address, Array, OpenOptions, resolve};
use crate::convention::netcdf::{NetcdfView, Outlook};
use crate::error::{Context, ErrorKind, Result};
use crate::exec::{self, MissingChunks};
use crate::format::zarr::Consolidation;
use crate::model::{Fault, FileInfo, Hierarchy, NodeId};
use crate::select::Selection;
use crate::source::{Store, Traffic};
use std::collections::HashMap;
use std::sync::Arc;

/// An open file. Cheap to clone; may be used from any number of threads at once.
#[derive(Clone, Debug)]
pub struct File {
    hierarchy: Arc<dyn Hierarchy>,
    name: Arc<str>,
    options: Arc<OpenOptions>,
    /// Whether its address says that it is Zarr without what NCZarr adds.
    pure: bool,
}

/// Opens the file of an address. A path behind `::` is not looked at: see [`File::locate`].
///
/// Fails with [`ErrorKind::NotFound`] if there is no such file, with [`ErrorKind::Unsupported`] for formats, schemes and
/// modes that this crate does not have, and with the kinds that damage has.
pub fn open(address: impl Into<Address>) -> Result<File> {
    open_with(address, &OpenOptions::default())
}

/// Opens the file of an address with options.
pub fn open_with(address: impl Into<Address>, options: &OpenOptions) -> Result<File> {
    let address = address.into();
    let hierarchy = hierarchy(&address, options).map_err(|e| match e.kind() {
        ErrorKind::NotFound if address.file.ends_with(']') => {
            e.hint("a slice follows a path: FILE::/path[SLICE]")
        }
        _ => e,
    })?;
    let fragment = address.modes()?;
    fragment.check(hierarchy.info().format).map_err(|e| e.context(address.to_string()))?;
    let mut file = File::from_hierarchy(hierarchy, name(&address), options);
    file.pure = fragment.has(Mode::Zarr) || fragment.has(Mode::Xarray);
    Ok(file)
}

fn hierarchy(address: &Address, options: &OpenOptions) -> Result<Arc<dyn Hierarchy>> {
    let limits = options.limits.clone();
    match Location::open(address, options)? {
        Location::File(source, neighbours) => crate::format::open(source, neighbours, limits),
        Location::Store(store) => {
            let consolidation = match (address.modes()?.has(Mode::Consolidated), is_asked_for()) {
                (true, _) => Consolidation::Required,
                (false, true) => Consolidation::Preferred,
                (false, false) => Consolidation::WhereFar,
            };
            store_hierarchy(store, options, consolidation)
        }
    }
}

/// Whether the environment asks for consolidated metadata, as of netCDF-C: `NCZARR_CONSOLIDATED` is `true`, `yes` or a
/// number above zero.
fn is_asked_for() -> bool {
    let word = std::env::var("NCZARR_CONSOLIDATED").unwrap_or_default().trim().to_ascii_lowercase();
    matches!(word.as_str(), "true" | "yes") || word.parse::<u64>().is_ok_and(|n| n > 0)
}

/// The hierarchy in a store.
pub(super) fn store_hierarchy(
    store: Arc<dyn Store>,
    options: &OpenOptions,
    consolidation: Consolidation,
) -> Result<Arc<dyn Hierarchy>> {
    let (limits, registry) = (options.limits.clone(), options.registry.clone());
    let raise = options.missing == MissingChunks::Raise;
    crate::format::open_store_as(store, limits, registry, raise, consolidation)
}

/// What to call the file of an address in messages.
pub(crate) fn name(address: &Address) -> String {
    match address.scheme() {
        None => address.file.clone(),
        Some("file") => address.file.replacen("file://", "", 1),
        Some(_) => address.file.split('?').next().unwrap_or_default().to_owned(),
    }
}

impl File {
    /// A file whose objects come from `hierarchy`, called `name` in messages.
    pub fn from_hierarchy(
        hierarchy: Arc<dyn Hierarchy>,
        name: impl Into<String>,
        options: &OpenOptions,
    ) -> File {
        hierarchy.employ(Arc::new(exec::Threads(options.threads)));
        File { hierarchy, name: name.into().into(), options: Arc::new(options.clone()), pure: false }
    }

    /// The same file seen through another hierarchy.
    pub(crate) fn seen_through(&self, hierarchy: Arc<dyn Hierarchy>) -> File {
        File { hierarchy, ..self.clone() }
    }

    /// How it was opened.
    pub fn options(&self) -> &Arc<OpenOptions> {
        &self.options
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in the words of its format.
    pub fn info(&self) -> FileInfo {
        self.hierarchy.info()
    }

    /// What was asked of a server for it so far; nothing for a local file.
    pub fn traffic(&self) -> Traffic {
        self.hierarchy.traffic()
    }

    /// The objects behind it.
    pub fn hierarchy(&self) -> &Arc<dyn Hierarchy> {
        &self.hierarchy
    }

    /// The root group.
    pub fn root(&self) -> Group {
        Group::new(resolve::root(&self.hierarchy, &self.options))
    }

    /// The object at `path`: names joined by `/`, soft and external links followed. A name that is not UTF-8 is
    /// spelled `hex:` and its bytes in lowercase hex.
    pub fn get(&self, path: &str) -> Result<Object> {
        self.root().get(path).context(|| format!("file {}", self.name))
    }

    /// The group at `path`.
    pub fn group(&self, path: &str) -> Result<Group> {
        self.root().group(path).context(|| format!("file {}", self.name))
    }

    /// The array at `path`.
    pub fn array(&self, path: &str) -> Result<Array> {
        self.root().array(path).context(|| format!("file {}", self.name))
    }

    /// The object that an address names in this file, and which of its elements. An object whose name ends in brackets
    /// comes before a slice.
    pub fn locate(&self, address: &Address) -> Result<(Object, Selection)> {
        let literal = self.get(&address.path);
        let missing = literal.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound);
        // Where nothing can be listed, nobody knows of what does not say itself that it is there.
        let unknown = literal.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unsupported);
        match address.split_slice() {
            Some((path, slice)) if missing || unknown => {
                let object = self.get(path)?;
                let selection = Selection::parse(slice).context(|| format!("slice {slice}"))?;
                Ok((object, selection))
            }
            _ => Ok((literal?, Selection::all())),
        }
    }

    /// The file through the netCDF model. Virtual datasets are as long as their sources make them.
    pub fn netcdf(&self) -> Result<NetcdfView> {
        self.netcdf_view(false)
    }

    /// The same; with `name_types`, types that have no name get one.
    pub(crate) fn netcdf_view(&self, name_types: bool) -> Result<NetcdfView> {
        let extents = |node: &NodeId, path: &str| match self.object(node, path)? {
            Object::Array(array) => Ok(Some(array.meta().space.clone())),
            _ => Ok(None),
        };
        let outlook = Outlook { extents: &extents, pure: self.pure, name_types };
        NetcdfView::open(self.hierarchy.clone(), &self.options.limits, &outlook)
    }

    /// All objects, depth first.
    pub fn walk(&self) -> Walk {
        Walk::new(resolve::root(&self.hierarchy, &self.options))
    }

    /// All objects below a group, depth first, the group itself first.
    pub fn walk_from(&self, group: &Group) -> Walk {
        Walk::new(group.inner().clone())
    }

    /// The first path of every object that can be reached, which is its name.
    pub fn paths(&self) -> HashMap<NodeId, String> {
        let mut walk = self.walk();
        walk.by_ref().for_each(drop);
        walk.into_paths()
    }

    /// The object with this identity, called `path` in messages.
    pub fn object(&self, node: &NodeId, path: impl Into<String>) -> Result<Object> {
        Object::open(resolve::root(&self.hierarchy, &self.options).other(node.clone(), path.into()))
    }

    /// Verifies every structure that belongs to no object, and gives the faults to `fault`.
    pub fn check(&self, fault: &mut dyn FnMut(Fault)) {
        self.hierarchy.check(fault);
    }
}
