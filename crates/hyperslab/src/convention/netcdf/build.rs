//! Building the view: one walk over all objects, then the dimensions of every variable.
//!
//! The order matters, since netCDF numbers dimensions as it meets them: the datasets and types of a group in the order
//! in which they were made (by name where that is not tracked), then its groups. Axes without a dimension get one
//! afterwards, innermost groups first. What Zarr says of names, types and order is asked of [`super::zarr`].

use super::attribute::{in_order, is_hidden, of};
use super::kind::{UserType, class_of, converted, presented, type_of};
use super::scale::{self, Axes, PREFIX};
use super::zarr::{self, Zarr};
use super::{Attribute, DataModel, Dimension, Group, LeftOut, NetcdfView, Outlook, Type, Variable, join};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::{
    ArrayMeta, AttributeEntry, Dataspace, Fault, Hierarchy, Link, LinkTarget, Links, NodeId, NodeKind,
    Storage,
};
use crate::shape::Name;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A variable before its dimensions are known.
struct Draft {
    group: usize,
    name: Name,
    path: String,
    node: NodeId,
    meta: ArrayMeta,
    storage: Storage,
    attributes: Vec<AttributeEntry>,
    axes: Found,
    /// Its type, where that of its elements does not tell.
    kind: Option<Type>,
}

/// What is known of the axes of a variable after the walk.
enum Found {
    /// It is the scale of this dimension.
    Coordinate(usize),
    /// Its attributes tell.
    Told(Axes),
    /// The format itself tells.
    Named(Vec<Option<Name>>),
    /// Documents of Zarr tell.
    Zarr(zarr::Axes),
}

pub(super) struct Builder<'a> {
    pub(super) hierarchy: &'a dyn Hierarchy,
    limits: &'a Limits,
    outlook: &'a Outlook<'a>,
    model: DataModel,
    zarr: Option<Zarr>,
    pub(super) groups: Vec<Group>,
    dimensions: Vec<Dimension>,
    pub(super) types: Vec<UserType>,
    /// Names in the root group, once somebody asked.
    pub(super) taken: Option<HashSet<Name>>,
    drafts: Vec<Draft>,
    /// Attributes of groups, which need all types before they can be told.
    of_groups: Vec<Vec<AttributeEntry>>,
    /// Groups met.
    seen: HashSet<NodeId>,
    /// The group that is looked into, and those around it, into which a link would lead for ever.
    around: Vec<NodeId>,
    /// How often a group was met again, which makes trees of a size that only the links tell.
    repeats: u32,
    /// Number of the next dimension that has none.
    next: i64,
    /// Dimensions by number.
    numbers: HashMap<i64, usize>,
    /// Dimensions by the dataset that stands for them.
    scales: HashMap<NodeId, usize>,
    /// Dimensions by group and name.
    names: HashMap<(usize, Name), usize>,
    /// Dimensions by group, length and whether they may grow, in order.
    lengths: HashMap<(usize, u64, bool), Vec<usize>>,
}

pub(super) fn build(
    hierarchy: Arc<dyn Hierarchy>,
    limits: &Limits,
    outlook: &Outlook<'_>,
) -> Result<NetcdfView> {
    let info = hierarchy.info();
    let model = match (info.format.starts_with("netCDF-3"), info.version) {
        (true, 1) => DataModel::Classic,
        (true, 2) => DataModel::Offset64,
        (true, _) => DataModel::Data64,
        (false, _) => DataModel::NetCdf4,
    };
    let mut builder = Builder {
        hierarchy: &*hierarchy,
        limits,
        outlook,
        model,
        zarr: Zarr::open(&*hierarchy, outlook.pure)?,
        groups: Vec::new(),
        dimensions: Vec::new(),
        types: Vec::new(),
        taken: None,
        drafts: Vec::new(),
        of_groups: Vec::new(),
        seen: HashSet::new(),
        around: Vec::new(),
        repeats: 0,
        next: 0,
        numbers: HashMap::new(),
        scales: HashMap::new(),
        names: HashMap::new(),
        lengths: HashMap::new(),
    };
    let root = hierarchy.root();
    let nczarr = builder.zarr.as_ref().is_some_and(Zarr::is_nczarr);
    builder.group(root, Name::from("/"), "/".into(), None, 0)?;
    let Builder { groups, dimensions, types, model, scales, .. } = builder.finish();
    Ok(NetcdfView { hierarchy, model, nczarr, groups, dimensions, types, scales })
}

/// Groups with several links are shown so often in all.
const REPEATS: u32 = 1000;

/// What an array by itself is called, which has no name in its store.
const ALONE: &str = "array";

impl Builder<'_> {
    fn leave_out(&mut self, group: usize, path: String, reason: String, failed: Option<ErrorKind>) {
        if let Some(group) = self.groups.get_mut(group) {
            group.left_out.push(LeftOut { path, reason, failed });
        }
    }

    fn fail(&mut self, group: usize, path: String, error: &Error) {
        self.leave_out(group, path, error.to_string(), Some(error.kind()));
    }

    /// Adds a group and everything in it.
    fn group(
        &mut self,
        node: NodeId,
        name: Name,
        path: String,
        parent: Option<usize>,
        depth: u32,
    ) -> Result<()> {
        self.limits.check_depth("groups", depth)?;
        let here = self.groups.len();
        let words = match &self.zarr {
            Some(zarr) => zarr.group(self.hierarchy, &node),
            None => Ok(zarr::Words::default()),
        };
        let links = match self.hierarchy.kind(&node) {
            // A Zarr array by itself is the only variable of a file.
            Ok(NodeKind::Array) if parent.is_none() => {
                let target = LinkTarget::Hard(node.clone());
                let link = Link { name: Name::from(ALONE), target, creation_order: None };
                Ok(Links { links: vec![link], tracks_order: false, faults: Vec::new() })
            }
            _ => match (self.hierarchy.links(&node), &words) {
                // What cannot be listed, as on a web server, NCZarr lists itself.
                (Err(e), Ok(words))
                    if e.kind() == ErrorKind::Unsupported && words.members().next().is_some() =>
                {
                    Ok(self.named(&node, words))
                }
                (links, _) => links.context(|| format!("links of group {path}")),
            },
        };
        let links = match (links, parent) {
            (Err(e), None) => return Err(e),
            (Err(e), Some(parent)) => {
                self.fail(parent, path, &e);
                return Ok(());
            }
            (Ok(links), _) => links,
        };
        let own = match &self.zarr {
            Some(_) if self.is_alone(&node) => Ok(Vec::new()),
            Some(zarr) => zarr.attributes(self.hierarchy, &node, None),
            None => self.hierarchy.attributes(&node),
        };
        self.groups.push(Group {
            name,
            path: path.clone(),
            node: node.clone(),
            parent,
            dimensions: Vec::new(),
            types: Vec::new(),
            variables: Vec::new(),
            groups: Vec::new(),
            attributes: Vec::new(),
            left_out: Vec::new(),
        });
        if let Some(parent) = parent.and_then(|p| self.groups.get_mut(p)) {
            parent.groups.push(here);
        }
        let own = own.unwrap_or_else(|e| vec![Err((None, e))]);
        let strict = own.iter().flatten().any(|a| a.name.as_bytes() == b"_nc3_strict");
        if parent.is_none() && strict && self.model == DataModel::NetCdf4 {
            self.model = DataModel::NetCdf4Classic;
        }
        self.of_groups.push(in_order(own));
        for d in self.hierarchy.dimensions(&node)? {
            self.dimension(here, d.name, d.length, d.unlimited, None, None);
        }
        for fault in &links.faults {
            self.fail(here, path.clone(), &fault.error);
        }
        let words = words.unwrap_or_else(|e| {
            self.fail(here, path.clone(), &e.context("NCZarr"));
            zarr::Words::default()
        });
        for d in &words.dimensions {
            self.dimension(here, d.name.clone(), d.length, d.unlimited, None, None);
        }
        let links = self.listed(here, &path, ordered(links), &words);
        let mut groups = Vec::new();
        for link in links {
            let path = join(&path, &link.name);
            let node = match self.target(&node, &link.target) {
                Ok(Ok(node)) => node,
                Ok(Err(what)) => {
                    self.leave_out(here, path, what, None);
                    continue;
                }
                Err(e) => {
                    self.fail(here, path, &e);
                    continue;
                }
            };
            match self.hierarchy.kind(&node) {
                Ok(NodeKind::Group) => groups.push((node, link.name, path)),
                Ok(NodeKind::Datatype) => self.named_type(here, node, link.name, path),
                Ok(NodeKind::Array) => {
                    let path = if self.is_alone(&node) { "/".into() } else { path };
                    if let Err(e) = self.array(here, node, link.name, &path) {
                        self.fail(here, path, &e);
                    }
                }
                Err(e) => self.fail(here, path, &e),
            }
        }
        self.seen.insert(node.clone());
        self.around.push(node);
        for (node, name, path) in groups {
            // A group with several links is in several places, as for the C library.
            let again = self.seen.contains(&node);
            self.repeats += u32::from(again);
            if self.around.contains(&node) || again && self.repeats > REPEATS {
                self.leave_out(here, path, "another link to a group that is shown".into(), None);
            } else if let Err(e) = self.group(node, name, path.clone(), Some(here), depth + 1) {
                self.fail(here, path, &e);
            }
        }
        self.around.pop();
        Ok(())
    }

    /// Whether an array is all that there is.
    fn is_alone(&self, node: &NodeId) -> bool {
        *node == self.hierarchy.root() && self.hierarchy.kind(node).is_ok_and(|kind| kind == NodeKind::Array)
    }

    /// The links of a group to what NCZarr lists, each looked up by its name.
    fn named(&self, group: &NodeId, words: &zarr::Words) -> Links {
        let mut links = Links::default();
        for name in words.members() {
            match self.hierarchy.link(group, name) {
                Ok(found) => links.links.extend(found),
                Err(error) => {
                    links.faults.push(Fault { object: None, error: error.context(name.to_string()) })
                }
            }
        }
        links
    }

    /// Links in the order in which NCZarr lists them; others follow. What it lists and is not there is told.
    fn listed(&mut self, group: usize, path: &str, mut links: Vec<Link>, words: &zarr::Words) -> Vec<Link> {
        let order: HashMap<&Name, usize> = words.members().enumerate().map(|(i, name)| (name, i)).collect();
        links.sort_by_key(|link| order.get(&link.name).copied().unwrap_or(usize::MAX));
        let there: HashSet<&Name> = links.iter().map(|link| &link.name).collect();
        for name in words.members().filter(|name| !there.contains(name)) {
            self.leave_out(
                group,
                join(path, name),
                "NCZarr lists it, and it is not there".into(),
                Some(ErrorKind::Corrupt),
            );
        }
        links
    }

    /// The object that a link leads to, or a word for a link that leads nowhere netCDF goes.
    fn target(&self, group: &NodeId, target: &LinkTarget) -> Result<Result<NodeId, String>> {
        match target {
            LinkTarget::Hard(node) => Ok(Ok(node.clone())),
            LinkTarget::Soft(path) => match self.follow(group, path)? {
                Some(node) => Ok(Ok(node)),
                None => Ok(Err(format!("a soft link to {path}"))),
            },
            LinkTarget::External { file, path } => Ok(Err(format!("an external link to {path} in {file}"))),
            LinkTarget::UserDefined { class, .. } => Ok(Err(format!("a user-defined link of class {class}"))),
        }
    }

    /// Follows a path through hard and soft links of this file. `None`: it ends elsewhere, or in nothing.
    fn follow(&self, group: &NodeId, path: &Name) -> Result<Option<NodeId>> {
        let mut node = group.clone();
        let mut rest: Vec<Name> = Vec::new();
        let mut hops = 0;
        let mut push = |rest: &mut Vec<Name>, path: &Name| {
            let parts: Vec<_> = path.as_bytes().split(|&b| b == b'/').collect();
            rest.extend(parts.iter().rev().filter(|p| !p.is_empty() && **p != b".").map(|p| Name::from(*p)));
            hops += 1;
            hops <= self.limits.link_hops
        };
        if path.as_bytes().first() == Some(&b'/') {
            node = self.hierarchy.root();
        }
        push(&mut rest, path);
        while let Some(name) = rest.pop() {
            let Some(link) = self.hierarchy.link(&node, &name)? else { return Ok(None) };
            match link.target {
                LinkTarget::Hard(next) => node = next,
                LinkTarget::Soft(path) => {
                    if path.as_bytes().first() == Some(&b'/') {
                        node = self.hierarchy.root();
                    }
                    if !push(&mut rest, &path) {
                        let most = self.limits.link_hops;
                        return Err(Error::limit("links followed", u128::from(most) + 1, most.into()));
                    }
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    fn named_type(&mut self, group: usize, node: NodeId, name: Name, path: String) {
        match self.hierarchy.datatype(&node) {
            Ok(dtype) => match class_of(&dtype) {
                Some(class) => {
                    let place = self.types.len();
                    self.types.push(UserType { name, group, class, dtype, invented: false });
                    if let Some(group) = self.groups.get_mut(group) {
                        group.types.push(place);
                    }
                }
                None => self.leave_out(group, path, format!("a named datatype {dtype}"), None),
            },
            Err(e) => self.fail(group, path, &e),
        }
    }

    fn dimension(
        &mut self,
        group: usize,
        name: Name,
        length: u64,
        unlimited: bool,
        number: Option<i64>,
        scale: Option<NodeId>,
    ) -> usize {
        // A length of zero is netCDF's word for unlimited.
        let unlimited = unlimited || length == 0;
        let place = self.dimensions.len();
        let id = number.unwrap_or(self.next);
        self.next = self.next.max(id.saturating_add(1));
        self.numbers.insert(id, place);
        if let Some(node) = &scale {
            self.scales.entry(node.clone()).or_insert(place);
        }
        self.names.entry((group, name.clone())).or_insert(place);
        self.lengths.entry((group, length, unlimited)).or_default().push(place);
        self.dimensions.push(Dimension { name, length, unlimited, group, id });
        if let Some(group) = self.groups.get_mut(group) {
            group.dimensions.push(place);
        }
        place
    }

    fn array(&mut self, group: usize, node: NodeId, name: Name, path: &str) -> Result<()> {
        let (mut meta, storage) = self.hierarchy.array(&node).context(|| format!("array {path}"))?;
        if matches!(storage, Storage::Virtual(_))
            && let Some(space) = (self.outlook.extents)(&node, path)?
        {
            meta.space = space;
        }
        if let Some(shown) = presented(&meta.dtype) {
            meta.fill_element = match meta.fill_element.is_empty() {
                true => meta.fill_element,
                false => converted(&meta.fill_element, &meta.dtype, &shown)?.into(),
            };
            meta.dtype = shown;
        }
        if let Some(zarr) = &self.zarr {
            let words = zarr.array(self.hierarchy, &node, &mut meta);
            let (kind, axes) = words.context(|| format!("array {path}"))?;
            let entries = zarr.attributes(self.hierarchy, &node, Some(&meta.dtype));
            let attributes = in_order(entries.unwrap_or_else(|e| vec![Err((None, e))]));
            let (path, axes) = (path.to_owned(), Found::Zarr(axes));
            self.drafts.push(Draft { group, name, path, node, meta, storage, attributes, axes, kind });
            return Ok(());
        }
        let entries = self.hierarchy.attributes(&node).unwrap_or_else(|e| vec![Err((None, e))]);
        let attributes = in_order(entries);
        let axes = match self.hierarchy.dimension_names(&node)? {
            Some(names) => Found::Named(names),
            None if scale::is_scale(&attributes) && !meta.space.dims().is_empty() => {
                let length = meta.space.dims().first().copied().unwrap_or(0);
                let number = scale::number(&attributes);
                let unlimited = may_grow(&meta.space, 0);
                let place =
                    self.dimension(group, name.clone(), length, unlimited, number, Some(node.clone()));
                if !scale::is_variable(&attributes) {
                    return Ok(());
                }
                Found::Coordinate(place)
            }
            None => {
                let rank = meta.space.dims().len();
                Found::Told(scale::axes(self.hierarchy, &attributes, rank, self.limits.metadata))
            }
        };
        let name = match name.as_bytes().strip_prefix(PREFIX).filter(|rest| !rest.is_empty()) {
            Some(rest) if !self.model.is_netcdf3() => Name::from(rest),
            _ => name,
        };
        let (path, kind) = (path.to_owned(), None);
        self.drafts.push(Draft { group, name, path, node, meta, storage, attributes, axes, kind });
        Ok(())
    }

    /// Gives every variable its type, attributes and dimensions.
    fn finish(mut self) -> Self {
        if self.outlook.name_types {
            for place in 0..self.types.len() {
                if let Some(UserType { name, dtype, .. }) = self.types.get(place).cloned() {
                    self.name_parts(&dtype, &name);
                }
            }
        }
        for (group, entries) in std::mem::take(&mut self.of_groups).into_iter().enumerate() {
            let path = self.groups.get(group).map(|g| g.path.clone()).unwrap_or_default();
            let attributes = self.attributes(group, &path, entries);
            if let Some(group) = self.groups.get_mut(group) {
                group.attributes = attributes;
            }
        }
        // Variables of a group stand together, in order, and inner groups come first.
        let mut of_group: Vec<Vec<Draft>> = self.groups.iter().map(|_| Vec::new()).collect();
        for draft in std::mem::take(&mut self.drafts) {
            if let Some(list) = of_group.get_mut(draft.group) {
                list.push(draft);
            }
        }
        for group in self.inner_first() {
            for draft in of_group.get_mut(group).map(std::mem::take).unwrap_or_default() {
                let kind = match draft.kind.or_else(|| type_of(&draft.meta.dtype, &self.types)) {
                    None if self.outlook.name_types => self.name_type(&draft.meta.dtype, &draft.name),
                    known => known,
                };
                match kind {
                    Some(kind) => {
                        let path = draft.path.clone();
                        if let Err(e) = self.variable(group, kind, draft) {
                            self.fail(group, path, &e);
                        }
                    }
                    None => {
                        let what = format!("an array of type {}", draft.meta.dtype);
                        self.leave_out(group, draft.path, what, None);
                    }
                }
            }
        }
        self.measure();
        let ids: Vec<i64> = self.dimensions.iter().map(|d| d.id).collect();
        for group in &mut self.groups {
            group.dimensions.sort_by_key(|&d| ids.get(d).copied());
        }
        self
    }

    /// All groups, those in a group before it, in order.
    fn inner_first(&self) -> Vec<usize> {
        let mut out = Vec::new();
        let mut open = vec![(0, 0)];
        while let Some((group, next)) = open.pop() {
            match self.groups.get(group).and_then(|g| g.groups.get(next)) {
                Some(&inner) => open.extend([(group, next + 1), (inner, 0)]),
                None => out.push(group),
            }
        }
        out
    }

    fn attributes(&mut self, group: usize, path: &str, entries: Vec<AttributeEntry>) -> Vec<Attribute> {
        let mut out = Vec::new();
        for entry in entries {
            match entry {
                Ok(a) if !self.model.is_netcdf3() && self.zarr.is_none() && is_hidden(&a.name) => {}
                Ok(a) => {
                    let path = format!("{path}:{}", a.name);
                    if self.outlook.name_types {
                        self.name_type(&a.dtype, &a.name);
                    }
                    match of(a, &self.types) {
                        Ok(attribute) => out.push(attribute),
                        Err(what) => self.leave_out(group, path, what, None),
                    }
                }
                Err((name, e)) => {
                    let name = name.map(|n| format!(":{n}")).unwrap_or_default();
                    self.fail(group, format!("{path}{name}"), &e);
                }
            }
        }
        out
    }

    fn variable(&mut self, group: usize, kind: Type, draft: Draft) -> Result<()> {
        let Draft { name, path, node, meta, storage, attributes, axes, .. } = draft;
        let extents = meta.space.dims().to_vec();
        let mut dimensions: Vec<Option<usize>> = match axes {
            Found::Coordinate(place) if extents.len() == 1 => vec![Some(place)],
            Found::Coordinate(place) => {
                match scale::axes(self.hierarchy, &attributes, extents.len(), self.limits.metadata) {
                    Axes::Numbers(numbers) => numbers.iter().map(|n| self.numbers.get(n).copied()).collect(),
                    _ => std::iter::once(Some(place)).chain(extents.iter().skip(1).map(|_| None)).collect(),
                }
            }
            Found::Told(Axes::Numbers(numbers)) => {
                numbers.iter().map(|n| self.numbers.get(n).copied()).collect()
            }
            Found::Told(Axes::Scales(scales)) => {
                scales.iter().map(|s| self.scales.get(s.as_ref()?).copied()).collect()
            }
            Found::Told(Axes::Unknown) => extents.iter().map(|_| None).collect(),
            Found::Named(names) => {
                let names = names.iter().zip(&extents).enumerate();
                let named = names.map(|(axis, (name, &length))| {
                    let name = name.as_ref()?;
                    Some(self.named_dimension(group, name, length, may_grow(&meta.space, axis)))
                });
                named.collect()
            }
            Found::Zarr(zarr::Axes::Paths(paths)) => {
                let found = paths.iter().zip(&extents).map(|(path, &length)| self.referred(path, length));
                found.map(|place| place.map(Some)).collect::<Result<_>>()?
            }
            Found::Zarr(zarr::Axes::Names(names)) => {
                let named = names.iter().zip(&extents);
                named.map(|(name, &length)| Some(self.local(group, name.as_ref(), length))).collect()
            }
        };
        dimensions.resize(extents.len(), None);
        let mut chosen = Vec::with_capacity(dimensions.len());
        for (axis, dimension) in dimensions.into_iter().enumerate() {
            let length = extents.get(axis).copied().unwrap_or(0);
            chosen.push(match dimension {
                Some(place) => place,
                None => self.phony(group, length, may_grow(&meta.space, axis), &chosen),
            });
        }
        let attributes = self.attributes(group, &path, attributes);
        let variable = Variable { name, path, node, kind, dimensions: chosen, meta, storage, attributes };
        if let Some(group) = self.groups.get_mut(group) {
            group.variables.push(variable);
        }
        Ok(())
    }

    /// The dimension with this path, for an axis of `length`.
    fn referred(&self, path: &Name, length: u64) -> Result<usize> {
        let text = path.as_bytes();
        let cut = text.iter().rposition(|&b| b == b'/').unwrap_or(0);
        let (within, last) = (text.get(..cut.max(1)).unwrap_or(b"/"), text.get(cut..).unwrap_or_default());
        let last = Name::from(last.strip_prefix(b"/").unwrap_or(last));
        let group = self.groups.iter().position(|g| g.path.as_bytes() == within);
        let place = group.and_then(|group| self.names.get(&(group, last)).copied());
        let place = place
            .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("its dimension {path} is not declared")))?;
        match self.dimensions.get(place) {
            Some(d) if !d.unlimited && d.length != length => Err(Error::new(
                ErrorKind::Corrupt,
                format!("its dimension {path} has length {}, the array {length}", d.length),
            )),
            _ => Ok(place),
        }
    }

    /// The dimension of a group with this name and length, made if there is none. Where the name is one of another
    /// length, the length is made a part of it; without a name it is one of the root group that all may share.
    fn local(&mut self, group: usize, name: Option<&Name>, length: u64) -> usize {
        let anonymous = || Name::from(format!("_Anonymous_Dim_{length}").as_str());
        let (group, mut name) = name.map_or_else(|| (0, anonymous()), |name| (group, name.clone()));
        loop {
            match self.names.get(&(group, name.clone())) {
                None => return self.dimension(group, name, length, false, None, None),
                Some(&place) if self.dimensions.get(place).is_some_and(|d| d.length == length) => {
                    return place;
                }
                Some(_) => {
                    let longer = [name.as_bytes(), b"_", length.to_string().as_bytes()].concat();
                    name = Name::from(longer.as_slice());
                }
            }
        }
    }

    /// The dimension called `name` in a group or the ones around it, made if there is none.
    fn named_dimension(&mut self, group: usize, name: &Name, length: u64, unlimited: bool) -> usize {
        let mut scope = Some(group);
        while let Some(g) = scope {
            if let Some(&place) = self.names.get(&(g, name.clone())) {
                return place;
            }
            scope = self.groups.get(g).and_then(|g| g.parent);
        }
        self.dimension(group, name.clone(), length, unlimited, None, None)
    }

    /// A dimension of this length that the variable has not on another axis, made if there is none.
    fn phony(&mut self, group: usize, length: u64, unlimited: bool, used: &[usize]) -> usize {
        let there = self.lengths.get(&(group, length, unlimited));
        if let Some(place) = there.and_then(|list| list.iter().find(|place| !used.contains(place))) {
            return *place;
        }
        let name = Name::from(format!("phony_dim_{}", self.next).as_str());
        self.dimension(group, name, length, unlimited, None, None)
    }

    /// An unlimited dimension is as long as the longest variable.
    fn measure(&mut self) {
        if self.model.is_netcdf3() {
            return;
        }
        // NCZarr records the length, which no variable may have reached.
        for d in self.dimensions.iter_mut().filter(|d| d.unlimited && self.zarr.is_none()) {
            d.length = 0;
        }
        for variable in self.groups.iter().flat_map(|g| &g.variables) {
            for (&place, &length) in variable.dimensions.iter().zip(variable.meta.space.dims()) {
                if let Some(d) = self.dimensions.get_mut(place)
                    && d.unlimited
                {
                    d.length = d.length.max(length);
                }
            }
        }
    }
}

fn may_grow(space: &Dataspace, axis: usize) -> bool {
    matches!(space, Dataspace::Simple { max, .. } if max.get(axis) == Some(&None))
}

/// Links as they were made, or by name where that is not known.
fn ordered(links: Links) -> Vec<Link> {
    let mut list = links.links;
    if links.tracks_order {
        list.sort_by_key(|l| l.creation_order);
    }
    list
}
