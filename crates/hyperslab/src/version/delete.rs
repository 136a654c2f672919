//! Versions that are removed, with what only they use.

use super::survey::{self, Kept};
use super::upkeep::{Scope, Upkeep};
use super::{FIRST, Timestamp, Version, Versions};
use crate::array::{Address, OpenOptions, near};
use crate::error::{Error, ErrorKind, Result};
use crate::model::write::Change;
use crate::source::write::WriteOptions;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Removes versions of a local HDF5 file, and the chunks that no other version uses. What came from one of them comes from
/// its parent then; where the current version goes, the nearest one before it that stays is the current one.
///
/// `pick` says which, by name, of the versions as they are when nobody else can change them; those that were never committed
/// may be among them. `group` is the group that is versioned; `None`: that of the file. Nothing happens before the
/// [`commit`](Upkeep::commit).
///
/// Errors: `NotFound` for a name that is not there; `Unsupported` for data versions below 4, and for maps that are not whole
/// chunks.
pub fn delete_versions(
    address: impl Into<Address>,
    group: Option<&str>,
    pick: impl FnOnce(&Versions) -> Result<Vec<String>>,
    open: &OpenOptions,
    write: &WriteOptions,
) -> Result<Upkeep> {
    let mut upkeep = Upkeep::begin(address, group, open, write)?;
    upkeep.newest()?;
    let mut names = pick(&upkeep.versions)?;
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let all = survey::versions(&upkeep.versions)?;
    let known: Vec<String> = all.iter().map(|version| version.name.clone()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        let text = format!("no version {name} of {}", upkeep.versions.place());
        return Err(Error::new(ErrorKind::NotFound, text).hint(near(name, &known)));
    }
    let (gone, stay): (Vec<Kept>, Vec<Kept>) =
        all.into_iter().partition(|version| seen.contains(&version.name));
    let mut paths = BTreeSet::new();
    for version in &gone {
        survey::filled(&upkeep.versions, version, &mut paths)?;
    }
    upkeep.tidy(&stay, Some(&paths), Scope::Unused)?;
    upkeep.unlink(&gone, &stay)?;
    upkeep.report.deleted = names;
    Ok(upkeep)
}

impl Upkeep {
    /// Removes groups of versions, and lets others come from what these came from.
    fn unlink(&mut self, gone: &[Kept], stay: &[Kept]) -> Result<()> {
        let parents: HashMap<&str, &str> =
            gone.iter().map(|version| (version.name.as_str(), version.found.parent.as_str())).collect();
        let circle = || {
            let text = format!("versions of {}: they come from each other in a circle", self.versions.place);
            Error::new(ErrorKind::Corrupt, text)
        };
        let ancestor = |mut name: String| {
            for _ in 0..=parents.len() {
                match parents.get(name.as_str()) {
                    // From nothing.
                    Some(&"") => name = FIRST.to_owned(),
                    Some(&parent) => name = parent.to_owned(),
                    None => return Ok(name),
                }
            }
            Err(circle())
        };
        let mut relinked = Vec::new();
        for version in stay.iter().filter(|version| parents.contains_key(version.found.parent.as_str())) {
            relinked.push((&version.name, ancestor(version.found.parent.clone())?));
        }
        let current = self.versions.group.attribute("current_version")?;
        let current = current.as_str().filter(|name| parents.contains_key(name));
        let current = current.map(|name| ancestor(name.to_owned())).transpose()?;
        for (name, parent) in relinked {
            let at = survey::place_of(&self.store, name);
            self.transaction.set_attribute(&at.to_string(), "prev_version", parent.as_str())?;
        }
        for version in gone {
            self.transaction.apply(Change::Delete { path: survey::place_of(&self.store, &version.name) })?;
        }
        if let Some(current) = current {
            let versions = self.store.join("versions");
            self.transaction.set_attribute(&versions.to_string(), "current_version", current.as_str())?;
        }
        Ok(())
    }
}

impl Versions {
    /// The versions that were committed before a time, oldest first.
    pub fn before(&self, time: &Timestamp) -> Result<Vec<Version>> {
        let mut versions = self.list(super::Order::Time)?;
        versions.retain(|version| version.time < *time);
        Ok(versions)
    }

    /// All versions but the `count` newest ones, oldest first. The current one is never among them.
    pub fn all_but(&self, count: usize) -> Result<Vec<Version>> {
        let current = self.current()?.map(|version| version.name);
        let mut versions = self.list(super::Order::Time)?;
        versions.truncate(versions.len().saturating_sub(count));
        versions.retain(|version| current.as_ref() != Some(&version.name));
        Ok(versions)
    }
}
