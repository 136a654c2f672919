//! Versions of arrays in an ordinary HDF5 file, laid out as by versioned-hdf5 (data versions 1 to 4).
//!
//! A group of the file holds `_version_data`: under `versions` a tree of objects for each version, and beside it for each array
//! one `raw_data` with all chunks that any version has, each distinct one once. An array of a version is a map from its
//! chunks to those. [`Versions`] finds versions, and [`Versions::file`] shows one as a file of its own, whose arrays are
//! read like all others.

mod delete;
mod index;
mod log;
mod metadata;
mod pick;
mod repack;
mod stage;
mod store;
mod survey;
mod table;
mod take;
#[cfg(test)]
mod tests;
mod time;
mod upkeep;
mod view;

pub use delete::delete_versions;
pub use log::{Change, Changed, Kind, LogEntry};
pub use metadata::{Metadata, modify_metadata};
pub use repack::repack;
pub use stage::{Parent, Stage, stage};
pub use time::Timestamp;
pub use upkeep::{Upkeep, UpkeepReport, rebuild_hash_tables, remove_unused_chunks};

use crate::array::{File, Group, Item, Object, near};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::{Hierarchy, LinkTarget, NodeId, NodeKind, Value};
use crate::shape::Name;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use view::{Raws, View};

/// The group that holds all versions of what lies in a group.
const STORE: &str = "_version_data";

/// The version that all others come from. It holds nothing.
const FIRST: &str = "__first_version__";

/// The layout that is written today.
const NEWEST: i128 = 4;

/// The versions of what lies in one group of a file. Cheap to clone; may be used from any number of threads at once.
///
/// Nothing is read in advance: opening costs the same with ten versions and with thousands.
#[derive(Clone, Debug)]
pub struct Versions {
    file: File,
    /// The path of the group that is versioned.
    place: String,
    /// The group `versions`.
    group: Group,
    data_version: u64,
    raws: Arc<Raws>,
}

/// One version.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// The version that it was made from; `None` if it was made from nothing.
    pub parent: Option<String>,
    /// When it was committed. Compared by its text, as the layout has it.
    pub time: Timestamp,
    node: NodeId,
}

/// In which order to list versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By the bytes of their names, as the file keeps them.
    Name,
    /// Oldest first; of the same time, a parent before what was made from it.
    Time,
    /// The current one first, then its parent, and so on. What the current one does not come from is left out.
    Graph,
}

impl Versions {
    /// The versions of a file: those of the root, or if it has none, of the one group that has some.
    ///
    /// Errors: `NotFound` if nothing is versioned, `InvalidArgument` if several groups are.
    pub fn open(file: &File) -> Result<Versions> {
        if holds_versions(file, &file.hierarchy().root())? {
            return Versions::open_at(file, "/");
        }
        let places = Versions::places(file)?;
        match places.as_slice() {
            [place] => Versions::open_at(file, place),
            [] => {
                let text = format!("no group of {} holds versions", file.name());
                Err(Error::new(ErrorKind::NotFound, text)
                    .hint(format!("there would be a group {STORE} in it")))
            }
            several => {
                let text = format!("several groups hold versions: {}", several.join(", "));
                Err(Error::invalid(text).hint("name the one that is meant"))
            }
        }
    }

    /// The versions of what lies in the group at `path`.
    pub fn open_at(file: &File, path: &str) -> Result<Versions> {
        if file.hierarchy().retry().is_some() {
            return Err(Error::unsupported(format!("versions of {}, which is being written", file.name())));
        }
        let group = file.group(path)?;
        let place = group.path().to_owned();
        let group = group.group(&format!("{STORE}/versions")).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                Error::new(ErrorKind::NotFound, format!("the group {place} holds no versions"))
                    .hint(format!("there would be a group {STORE}/versions in it"))
            }
            _ => e,
        })?;
        let data_version = match group.attribute("data_version") {
            Ok(value) => value.as_integer().unwrap_or(-1),
            Err(e) if e.kind() == ErrorKind::NotFound => 1,
            Err(e) => return Err(e),
        };
        match data_version {
            1..=NEWEST => {}
            n @ 5.. => {
                return Err(Error::unsupported(format!("data version {n} of the versions in {place}")));
            }
            _ => {
                let text = format!("the versions in {place} have a data_version that is no number");
                return Err(Error::new(ErrorKind::Corrupt, text));
            }
        }
        let raws = Arc::new(Raws::new(file.clone()));
        Ok(Versions { file: file.clone(), place, group, data_version: data_version as u64, raws })
    }

    /// The paths of all groups of a file that hold versions. Walks the whole file, but not what is in versions.
    pub fn places(file: &File) -> Result<Vec<String>> {
        let mut places = Vec::new();
        let mut open = vec![file.root()];
        let mut seen = HashSet::from([file.hierarchy().root()]);
        while let Some(group) = open.pop() {
            for link in group.links()?.links {
                let LinkTarget::Hard(id) = &link.target else { continue };
                if !seen.insert(id.clone())
                    || link.name.as_bytes() == b"versions" && group.path().ends_with(STORE)
                {
                    continue;
                }
                let slash = if group.path() == "/" { "" } else { "/" };
                let path = format!("{}{slash}{}", group.path(), link.name);
                if link.name.as_bytes() == STORE.as_bytes() {
                    if holds_versions(file, group.node())? {
                        places.push(group.path().to_owned());
                    }
                    continue;
                }
                // What is damaged holds no versions that can be read.
                if let Ok(Object::Group(below)) = file.object(id, path) {
                    open.push(below);
                }
            }
        }
        places.sort();
        Ok(places)
    }

    /// The path of the group whose content is versioned.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The file.
    pub fn base(&self) -> &File {
        &self.file
    }

    /// The layout: 1 to 4. Tables of hashes of 1 to 3 are of no use, and are not used.
    pub fn data_version(&self) -> u64 {
        self.data_version
    }

    /// The current version, on which the next one is based by default; `None` if there is none yet.
    ///
    /// Where the writer of a version died in its commit, the file names that one as current: the last one before it that
    /// was committed is given.
    pub fn current(&self) -> Result<Option<Version>> {
        let value = self.group.attribute("current_version")?;
        let mut name = match value.as_str() {
            Some(text) => text.to_owned(),
            None => return Err(self.corrupt("its current_version is no text")),
        };
        let mut seen = HashSet::new();
        while seen.insert(name.clone()) {
            if name == FIRST {
                return Ok(None);
            }
            let Some(found) = self.find(&name)? else {
                return Err(self.corrupt(format!("the current version {name} is not there")));
            };
            match found.version {
                Some(version) => return Ok(Some(version)),
                None => name = found.parent,
            }
        }
        Err(self.circle())
    }

    /// The version with this name. One that was not committed counts as not there.
    pub fn get(&self, name: &str) -> Result<Version> {
        let missing = |why: &str| {
            let error = Error::new(ErrorKind::NotFound, format!("no version {name} of {}{why}", self.place));
            let names: Vec<String> = self.names().unwrap_or_default();
            error.hint(near(name, &names))
        };
        match self.find(name)? {
            _ if name == FIRST || name.is_empty() => Err(missing("")),
            Some(Found { version: Some(version), .. }) => Ok(version),
            Some(_) => Err(missing(": it was never committed")),
            None => Err(missing("")),
        }
    }

    /// The version that is `back` versions before the current one: 0 is the current one, 1 its parent.
    pub fn back(&self, back: u64) -> Result<Version> {
        let current = self.current()?;
        let mut version = current
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no version of {} yet", self.place)))?;
        let mut seen = HashSet::new();
        for step in 0..back {
            if !seen.insert(version.name.clone()) {
                return Err(self.circle());
            }
            let Some(parent) = &version.parent else {
                let text = format!("no version {back} before the current one: there are {step}");
                return Err(Error::new(ErrorKind::NotFound, text));
            };
            version = self.get(parent).context(|| format!("parent of version {}", version.name))?;
        }
        Ok(version)
    }

    /// The newest version that is not newer than `time`; of several with the same time, the one made last.
    pub fn at_time(&self, time: &Timestamp) -> Result<Version> {
        let versions = self.list(Order::Time)?;
        let oldest = versions.first().map(|v| v.time.to_string());
        versions.into_iter().rfind(|v| v.time <= *time).ok_or_else(|| {
            let error = Error::new(ErrorKind::NotFound, format!("no version of {} by {time}", self.place));
            match oldest {
                Some(oldest) => error.hint(format!("the first one is of {oldest}")),
                None => error,
            }
        })
    }

    /// The version that `text` says: a name, `0` or `-N` (versions before the current one), or a time in UTC.
    pub fn pick(&self, text: &str) -> Result<Version> {
        pick::pick(self, text)
    }

    /// All committed versions.
    pub fn list(&self, order: Order) -> Result<Vec<Version>> {
        if order == Order::Graph {
            let mut versions = Vec::new();
            let mut seen = HashSet::new();
            let mut next = self.current()?;
            while let Some(version) = next {
                if !seen.insert(version.name.clone()) {
                    return Err(self.circle());
                }
                // A parent that was deleted by hand ends the line.
                next = match &version.parent {
                    Some(name) => self.find(name)?.and_then(|found| found.version),
                    None => None,
                };
                versions.push(version);
            }
            return Ok(versions);
        }
        let mut versions = Vec::new();
        for name in self.names()? {
            versions.extend(self.find(&name)?.and_then(|found| found.version));
        }
        if order == Order::Time {
            let depths = self.depths(&versions);
            versions.sort_by(|a, b| a.time.cmp(&b.time).then(depths.get(&a.name).cmp(&depths.get(&b.name))));
        }
        Ok(versions)
    }

    /// How many versions each one comes from.
    fn depths(&self, versions: &[Version]) -> HashMap<String, usize> {
        let parents: HashMap<&str, Option<&str>> =
            versions.iter().map(|v| (v.name.as_str(), v.parent.as_deref())).collect();
        let mut depths: HashMap<String, usize> = HashMap::new();
        for version in versions {
            let mut line = Vec::new();
            let mut at = Some(version.name.as_str());
            // A circle is as long as there are versions at most.
            while let Some(name) =
                at.filter(|name| !depths.contains_key(*name) && line.len() <= versions.len())
            {
                line.push(name);
                at = parents.get(name).copied().flatten();
            }
            let mut depth = at.and_then(|name| depths.get(name)).copied().unwrap_or(0);
            for name in line.into_iter().rev() {
                depth += 1;
                depths.insert(name.to_owned(), depth);
            }
        }
        depths
    }

    /// The names of versions that were begun and not committed.
    pub fn uncommitted(&self) -> Result<Vec<String>> {
        let mut names = self.names()?;
        let mut kept = Vec::new();
        for name in names.drain(..) {
            if self.find(&name)?.is_some_and(|found| found.version.is_none()) {
                kept.push(name);
            }
        }
        Ok(kept)
    }

    /// One version as a file: its root is the content of the group as it was. Read-only; its arrays are ordinary ones.
    ///
    /// What the layout adds is left out: the attributes `raw_data` and `chunks` of arrays, and those by which a version
    /// knows its parent and time.
    pub fn file(&self, version: &Version) -> File {
        let inner = self.file.hierarchy().clone();
        let view: Arc<dyn Hierarchy> = Arc::new(View::new(inner, version.node.clone(), self.raws.clone()));
        self.file.seen_through(view)
    }

    /// The names of all versions, committed or not, sorted by their bytes.
    fn names(&self) -> Result<Vec<String>> {
        let links = self.group.links()?;
        if let Some(fault) = links.faults.into_iter().next() {
            return Err(fault.error);
        }
        Ok(links.links.iter().map(|link| link.name.to_string()).filter(|name| name != FIRST).collect())
    }

    fn find(&self, name: &str) -> Result<Option<Found>> {
        let frame = || format!("version {name} of {}", self.place);
        let hierarchy = self.file.hierarchy();
        let link = hierarchy.link(self.group.node(), &Name::parse(name)).context(frame)?;
        let Some(LinkTarget::Hard(node)) = link.map(|link| link.target) else { return Ok(None) };
        let Object::Group(group) = self.file.object(&node, format!("{}/{name}", self.group.path()))? else {
            return Ok(None);
        };
        let mut known: HashMap<String, Value> = HashMap::new();
        for attribute in group.attributes()? {
            match attribute {
                Ok(a) if matches!(a.name.as_bytes(), b"committed" | b"prev_version" | b"timestamp") => {
                    let value = group.attribute_value(&a)?;
                    known.insert(a.name.to_string(), value);
                }
                _ => {}
            }
        }
        let text = |key: &str| known.get(key).and_then(Value::as_str).map(str::to_owned);
        let parent = text("prev_version").unwrap_or_else(|| FIRST.to_owned());
        if known.get("committed").and_then(Value::as_integer).unwrap_or(0) == 0 {
            return Ok(Some(Found { parent, node, version: None }));
        }
        let time =
            text("timestamp").ok_or_else(|| self.corrupt("a version without a timestamp")).context(frame)?;
        let version = Version {
            name: name.to_owned(),
            parent: Some(parent.clone()).filter(|p| p != FIRST && !p.is_empty()),
            time: Timestamp::stored(time),
            node: node.clone(),
        };
        Ok(Some(Found { parent, node, version: Some(version) }))
    }

    fn circle(&self) -> Error {
        self.corrupt("its versions come from each other in a circle")
    }

    fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Corrupt, format!("versions of {}: {what}", self.place))
    }
}

/// A group among the versions.
#[derive(Debug)]
struct Found {
    parent: String,
    node: NodeId,
    /// `None` if it was not committed.
    version: Option<Version>,
}

/// Whether a group holds versions.
fn holds_versions(file: &File, group: &NodeId) -> Result<bool> {
    let hierarchy = file.hierarchy();
    let Some(link) = hierarchy.link(group, &Name::from(STORE))? else { return Ok(false) };
    let LinkTarget::Hard(store) = link.target else { return Ok(false) };
    if hierarchy.kind(&store)? != NodeKind::Group {
        return Ok(false);
    }
    Ok(hierarchy.link(&store, &Name::from("versions"))?.is_some())
}

/// The arrays of a version, with their paths in it, in the order of a walk.
fn arrays(file: &File) -> impl Iterator<Item = (String, NodeId)> {
    file.walk().filter_map(|entry| match entry.item {
        Item::Object(id, NodeKind::Array) => Some((entry.path, id)),
        _ => None,
    })
}
