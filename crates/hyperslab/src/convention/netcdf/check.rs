//! Whether a file says the same of its dimensions wherever it says it. The view shows what it can all the same.

use super::attribute::{find, integers};
use super::scale;
use super::zarr::{Words, Zarr};
use super::{Group, NetcdfView, Variable};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::{AttributeEntry, NodeId};
use crate::shape::Name;
use std::collections::{HashMap, HashSet};

/// Takes the path of an object, of an attribute with `:` and its name, and what is wrong with it.
type Report<'a> = &'a mut dyn FnMut(&str, Error);

fn wrong(what: String) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}

impl NetcdfView {
    /// Reports what could not be shown because it is broken, and what contradicts itself: dimensions with one number,
    /// references to scales that lead nowhere, axes that are not as long as their dimensions, names that do not fit the
    /// axes. More is read than for a view.
    pub fn check(&self, limits: &Limits, report: &mut dyn FnMut(&str, Error)) {
        for left in self.groups().iter().flat_map(|g| &g.left_out) {
            if let Some(kind) = left.failed {
                let code = format!("{}: ", kind.code());
                let reason = left.reason.strip_prefix(&code).unwrap_or(&left.reason);
                report(&left.path, Error::new(kind, reason.to_owned()));
            }
        }
        let zarr = Zarr::open(&**self.hierarchy(), false).ok().flatten();
        let recorded = match &zarr {
            Some(zarr) => self.recorded(zarr, report),
            None => HashMap::new(),
        };
        self.check_numbers(report);
        for variable in self.groups().iter().flat_map(|g| &g.variables) {
            self.check_lengths(variable, &recorded, report);
            match &zarr {
                Some(zarr) => self.check_names(variable, zarr, report),
                None if self.model().is_netcdf3() => {}
                None => self.check_scales(variable, limits, report),
            }
        }
    }

    fn attributes_of(&self, node: &NodeId) -> Vec<AttributeEntry> {
        self.hierarchy().attributes(node).unwrap_or_default()
    }

    fn dimension_path(&self, place: usize) -> String {
        let found = self.dimensions().get(place).and_then(|d| Some((d, self.groups().get(d.group)?)));
        found.map(|(d, group)| super::join(&group.path, &d.name)).unwrap_or_default()
    }

    /// What NCZarr records as the lengths of unlimited dimensions; the view knows the longest array's. Members that it
    /// does not list are reported.
    fn recorded(&self, zarr: &Zarr, report: Report) -> HashMap<(usize, Name), u64> {
        let mut lengths = HashMap::new();
        for (place, group) in self.groups().iter().enumerate() {
            // What can't be read the view has said.
            let words = zarr.group(&**self.hierarchy(), &group.node).unwrap_or_default();
            self.check_listed(group, &words, report);
            lengths.extend(words.dimensions.into_iter().map(|d| ((place, d.name), d.length)));
        }
        lengths
    }

    /// NCZarr lists all members of a group: netCDF-C shows no others.
    fn check_listed(&self, group: &Group, words: &Words, report: Report) {
        let mut unlisted = |list: &Option<Vec<Name>>, members: &mut dyn Iterator<Item = (&Name, &str)>| {
            let Some(list) = list else { return };
            let list: HashSet<&Name> = list.iter().collect();
            for (_, path) in members.filter(|(name, _)| !list.contains(name)) {
                let what = format!("it is there, and NCZarr does not list it in group {}", group.path);
                report(path, wrong(what).hint("netCDF-C does not show it"));
            }
        };
        unlisted(&words.arrays, &mut group.variables.iter().map(|v| (&v.name, v.path.as_str())));
        let groups = group.groups.iter().filter_map(|&place| self.groups().get(place));
        unlisted(&words.groups, &mut groups.map(|g| (&g.name, g.path.as_str())));
    }

    /// `_Netcdf4Dimid` is the number of one dimension.
    fn check_numbers(&self, report: Report) {
        let mut scales: Vec<(usize, &NodeId)> =
            self.scales.iter().map(|(node, &place)| (place, node)).collect();
        scales.sort_unstable_by_key(|(place, _)| *place);
        let mut known: HashMap<i64, usize> = HashMap::new();
        for (place, node) in scales {
            let Some(number) = scale::number(&self.attributes_of(node)) else { continue };
            if let Some(first) = known.insert(number, place) {
                let what = format!("_Netcdf4Dimid is {number}, as that of {}", self.dimension_path(first));
                report(&self.dimension_path(place), wrong(what));
            }
        }
    }

    /// Axes are as long as their dimensions; along unlimited ones they may be shorter.
    fn check_lengths(&self, variable: &Variable, recorded: &HashMap<(usize, Name), u64>, report: Report) {
        for (axis, (&place, &extent)) in
            variable.dimensions.iter().zip(variable.meta.space.dims()).enumerate()
        {
            let Some(d) = self.dimensions().get(place) else { continue };
            let length = match recorded.get(&(d.group, d.name.clone())) {
                Some(&length) => length,
                None => d.length,
            };
            if if d.unlimited { extent > length } else { extent != length } {
                let path = self.dimension_path(place);
                let what = format!("axis {axis} has {extent} elements, its dimension {path} has {length}");
                report(&variable.path, wrong(what));
            }
        }
    }

    /// As many names as axes.
    fn check_names(&self, variable: &Variable, zarr: &Zarr, report: Report) {
        let Ok(Some(documents)) = self.hierarchy().documents(&variable.node) else { return };
        let check = || -> Result<()> {
            // Of what NCZarr says is a scalar, Zarr knows one axis.
            let rank = self.hierarchy().array(&variable.node)?.0.space.dims().len();
            match documents.attributes.get("_ARRAY_DIMENSIONS").filter(|names| !names.is_null()) {
                None => Ok(()),
                Some(names) => match names.as_list() {
                    Some(list) if list.iter().all(|name| name.as_str().is_some()) => {
                        let named = list.len();
                        let scalar = zarr.is_nczarr() && rank == 1 && variable.dimensions.is_empty();
                        if named == rank || scalar && named == 0 {
                            return Ok(());
                        }
                        Err(wrong(format!(
                            "_ARRAY_DIMENSIONS names {named} dimensions, the array has {rank} axes"
                        )))
                    }
                    _ => Err(wrong("_ARRAY_DIMENSIONS is no list of names".to_owned())),
                },
            }
        };
        if let Err(e) = check() {
            report(&variable.path, e);
        }
    }

    /// `_Netcdf4Coordinates` names dimensions that there are; `DIMENSION_LIST` leads to scales.
    fn check_scales(&self, variable: &Variable, limits: &Limits, report: Report) {
        let attributes = self.attributes_of(&variable.node);
        let rank = variable.meta.space.dims().len();
        if let Some(numbers) = find(&attributes, "_Netcdf4Coordinates") {
            match integers(numbers) {
                Some(numbers) if numbers.len() == rank => {
                    for number in numbers {
                        if !self.dimensions().iter().any(|d| d.id == number) {
                            let what = format!(
                                "_Netcdf4Coordinates names the dimension {number}, which there is not"
                            );
                            report(&variable.path, wrong(what));
                        }
                    }
                }
                _ => {
                    let what = format!("_Netcdf4Coordinates has no {rank} numbers, one for each axis");
                    report(&variable.path, wrong(what));
                }
            }
        }
        match scale::attached(&**self.hierarchy(), &attributes, rank, limits.metadata) {
            Ok(None) => {}
            Ok(Some(axes)) => {
                for (axis, scales) in axes.into_iter().enumerate() {
                    for scale in scales {
                        let error = match scale {
                            Ok(node) if self.scales.contains_key(&node) => continue,
                            Ok(node) => wrong(format!("{node}, which is no dimension scale of the file")),
                            Err(e) => e,
                        };
                        let context = format!("DIMENSION_LIST of axis {axis} leads to");
                        report(&variable.path, error.context(context));
                    }
                }
            }
            Err(e) => report(&variable.path, e.context("DIMENSION_LIST")),
        }
    }
}
