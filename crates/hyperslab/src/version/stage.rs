//! A version in the making, and its commit.

use super::store::{self, Store};
use super::view::{OF_VERSION, View};
use super::{FIRST, Timestamp, Version};
use crate::array::{Address, File, Item, OpenOptions};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::write::{ArraySpec, AttributeSpec, Change, Committed, Content, ObjectPath};
use crate::model::{ArrayMeta, Attribute, ChunkGrid, Elements, NodeId, NodeKind};
use crate::shape::{Name, element_count, to_usize};
use crate::source::write::WriteOptions;
use crate::staged::{StagedArray, Values};
use crate::write::{Transaction, edit};
use std::collections::BTreeMap;

/// Which version a new one begins as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parent {
    /// The current one; nothing if there is none yet.
    Current,
    /// The one with this name.
    Version(String),
    /// Nothing.
    Nothing,
}

/// A version in the making: the objects of its parent, to be changed. Nothing is seen of it before
/// [`commit`](Stage::commit); dropped, nothing happened.
#[derive(Debug)]
pub struct Stage {
    transaction: Transaction,
    pub(super) store: Store,
    name: String,
    parent: Option<Version>,
    time: Option<Timestamp>,
    make_current: bool,
    /// The parent, to be read.
    pub(super) before: Option<(File, View)>,
    /// By path, so that a group comes before what is in it.
    pub(super) objects: BTreeMap<ObjectPath, Object>,
    /// Those of the version itself, which no other one gets from it.
    pub(super) attributes: BTreeMap<Name, AttributeSpec>,
}

#[derive(Debug)]
pub(super) struct Object {
    pub(super) attributes: BTreeMap<Name, AttributeSpec>,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Group,
    /// An array that is as in the parent, attributes and all, and was not looked at.
    Kept(NodeId),
    Array(Box<Staged>),
}

/// An array of the version.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) meta: ArrayMeta,
    /// Of an array that is as in the parent: chunks in C order, and where they are stacked.
    pub(super) slots: Vec<(u64, u64)>,
    /// What was changed, once it was asked for.
    pub(super) array: Option<StagedArray>,
}

/// Begins a version called `name` of what is in the group at `group` of a local HDF5 file, as its parent is. The group, and
/// the place where versions are kept, are made if they are not there.
///
/// Errors: `AlreadyExists` for a name that is taken, by a version that was never committed too; `Unsupported` for data
/// versions below 4, whose tables of hashes are of no use.
pub fn stage(
    address: impl Into<Address>,
    group: &str,
    name: &str,
    parent: &Parent,
    options: &OpenOptions,
    write: &WriteOptions,
) -> Result<Stage> {
    let mut transaction = edit(address, options, write)?;
    let before = match transaction.before() {
        Some(file) if file.info().format == "HDF5" => file.clone(),
        _ => return Err(Error::unsupported(format!("versions in a file of {}", transaction.format()))),
    };
    if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | ".." | FIRST) {
        return Err(Error::invalid(format!("{name:?} is no name for a version")));
    }
    let (versions, store) = Store::open(&mut transaction, &before, group)?;
    if let Some(versions) = &versions
        && versions.find(name)?.is_some()
    {
        let text = format!("there is a version {name} of {} already", versions.place);
        return Err(Error::new(ErrorKind::AlreadyExists, text));
    }
    let parent = match (&versions, parent) {
        (_, Parent::Nothing) => None,
        (Some(versions), Parent::Current) => versions.current()?,
        (Some(versions), Parent::Version(name)) => Some(versions.get(name)?),
        (None, Parent::Current) => None,
        (None, Parent::Version(name)) => {
            return Err(Error::new(ErrorKind::NotFound, format!("no version {name}: there are none")));
        }
    };
    let mut stage = Stage {
        transaction,
        store,
        name: name.to_owned(),
        parent,
        time: None,
        make_current: true,
        before: None,
        objects: BTreeMap::new(),
        attributes: BTreeMap::new(),
    };
    if let (Some(versions), Some(parent)) = (&versions, &stage.parent) {
        let file = versions.file(parent);
        let inner = versions.file.hierarchy().clone();
        let view = View::new(inner, parent.node.clone(), versions.raws.clone());
        stage.objects = objects(&file).context(|| format!("version {}", parent.name))?;
        stage.before = Some((file, view));
    }
    Ok(stage)
}

/// All objects of a version. Arrays are found, and not read.
fn objects(file: &File) -> Result<BTreeMap<ObjectPath, Object>> {
    let mut objects = BTreeMap::new();
    for entry in file.walk() {
        let path = ObjectPath::parse(&entry.path)?;
        if path.is_root() {
            continue;
        }
        let object = match entry.item {
            Item::Group(group, links) => {
                links?;
                Object { attributes: attributes(file, group.node(), &path)?, body: Body::Group }
            }
            Item::Object(node, NodeKind::Array) => {
                Object { attributes: BTreeMap::new(), body: Body::Kept(node) }
            }
            _ => return Err(Error::unsupported(format!("{path}, a link or a datatype, in a new version"))),
        };
        objects.insert(path, object);
    }
    Ok(objects)
}

fn attributes(file: &File, node: &NodeId, path: &ObjectPath) -> Result<BTreeMap<Name, AttributeSpec>> {
    let mut attributes = BTreeMap::new();
    for attribute in file.hierarchy().attributes(node)? {
        let attribute = attribute.map_err(|(_, e)| e)?;
        let spec = spec(file, &attribute).context(|| format!("attribute {} of {path}", attribute.name))?;
        attributes.insert(attribute.name, spec);
    }
    Ok(attributes)
}

/// Looks at an array of the parent, if that was not done yet.
pub(super) fn load(object: &mut Object, before: Option<&(File, View)>, path: &ObjectPath) -> Result<()> {
    let (Body::Kept(node), Some((file, view))) = (&object.body, before) else { return Ok(()) };
    let Some((meta, map, raw)) = view.map(node)? else {
        return Err(Error::unsupported(format!("{path}, which is no map of chunks, in a new version")));
    };
    let filters = raw.meta().filters.clone();
    let grid = ChunkGrid::Regular(raw.meta().chunk_shape().to_vec());
    let meta = ArrayMeta { grid, filters, ..meta };
    let attributes = attributes(file, node, path)?;
    let body = Body::Array(Box::new(Staged { meta, slots: map.slots, array: None }));
    *object = Object { attributes, body };
    Ok(())
}

/// An attribute as it is written again.
pub(super) fn spec(file: &File, attribute: &Attribute) -> Result<AttributeSpec> {
    let count = if attribute.space.is_null() { 0 } else { to_usize(element_count(attribute.space.dims())?)? };
    let limit = file.options().limits.output;
    let hierarchy = &**file.hierarchy();
    let elements = Elements::decode(hierarchy, &attribute.dtype, attribute.data.clone(), count, limit)?;
    Ok(AttributeSpec {
        name: attribute.name.clone(),
        dtype: attribute.dtype.clone(),
        committed: None,
        space: attribute.space.clone(),
        content: Content::of_elements(&attribute.dtype, &elements, &|_| None)?,
    })
}

impl Stage {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it begins as; `None`: nothing.
    pub fn parent(&self) -> Option<&Version> {
        self.parent.as_ref()
    }

    /// Sets its time, which is that of the commit otherwise.
    pub fn set_time(&mut self, time: Timestamp) {
        self.time = Some(time);
    }

    /// Sets whether it becomes the current version, as it does by default.
    pub fn set_make_current(&mut self, make_current: bool) {
        self.make_current = make_current;
    }

    /// The paths of its arrays.
    pub fn arrays(&self) -> impl Iterator<Item = String> {
        let arrays = self.objects.iter().filter(|(_, object)| !matches!(object.body, Body::Group));
        arrays.map(|(path, _)| path.to_string())
    }

    /// An array of it, to be read, changed and resized.
    pub fn array(&mut self, path: &str) -> Result<&mut StagedArray> {
        let at = ObjectPath::parse(path)?;
        if let Some(object) = self.objects.get_mut(&at) {
            load(object, self.before.as_ref(), &at)?;
        }
        let Some(Object { body: Body::Array(staged), .. }) = self.objects.get_mut(&at) else {
            return Err(Error::new(ErrorKind::NotFound, format!("no array {path} in version {}", self.name)));
        };
        let array = match staged.array.take() {
            Some(array) => array,
            None => {
                self.store.staged(&at, &staged.meta, &staged.slots).context(|| format!("array {path}"))?
            }
        };
        Ok(staged.array.insert(array))
    }

    /// Sets elements of an array.
    pub fn set<'a>(
        &mut self,
        path: &str,
        selection: impl crate::select::IntoSelection,
        values: impl Into<Values<'a>>,
    ) -> Result<()> {
        self.array(path)?.set(selection, values).context(|| format!("array {path}"))
    }

    /// Adds rows to an array: it grows along its first axis.
    pub fn append<'a>(&mut self, path: &str, rows: impl Into<Values<'a>>) -> Result<()> {
        let rows = rows.into();
        let array = self.array(path)?;
        let mut shape = array.shape().to_vec();
        let before = shape.clone();
        let (Some(length), Some((&more, rest))) = (shape.first_mut(), rows.shape().split_first()) else {
            return Err(Error::invalid(format!("array {path}: one value is no row")));
        };
        if before.get(1..) != Some(rest) {
            let text = format!("array {path}: rows of {rest:?} for an array of {before:?}");
            return Err(Error::invalid(text));
        }
        let start = *length;
        *length = start.checked_add(more).ok_or_else(|| Error::invalid("more rows than 2^64"))?;
        let end = *length;
        // A copy shares everything; what fails leaves the array as it was.
        let mut grown = array.copy();
        grown.resize(&shape)?;
        grown.set(format!("{start}:{end}").as_str(), rows).context(|| format!("array {path}"))?;
        *array = grown;
        Ok(())
    }

    /// A new group, and those above it.
    pub fn create_group(&mut self, path: &str) -> Result<()> {
        let at = self.free(path)?;
        self.make_groups(&at)
    }

    /// A new array of nothing but its fill value, and the groups above it. `spec` says its type, extents, chunk, filters and
    /// fill value. If an older version had an array at this path, all but the extents have to be as they were.
    pub fn create_array(&mut self, path: &str, spec: &ArraySpec) -> Result<()> {
        let at = self.free(path)?;
        let meta = store::meta(spec).context(|| format!("array {path}"))?;
        if at.names().first().is_some_and(|name| name.as_bytes() == b"versions") {
            return Err(Error::invalid(format!("{path}: the layout of versions needs the name versions")));
        }
        let array = self.store.staged(&at, &meta, &[]).context(|| format!("array {path}"))?;
        if let Some((group, _)) = at.split() {
            self.make_groups(&group)?;
        }
        let body = Body::Array(Box::new(Staged { meta, slots: Vec::new(), array: Some(array) }));
        self.objects.insert(at, Object { attributes: BTreeMap::new(), body });
        Ok(())
    }

    /// Removes an object, with everything in it.
    pub fn delete(&mut self, path: &str) -> Result<()> {
        let at = ObjectPath::parse(path)?;
        if !self.objects.contains_key(&at) {
            return Err(self.missing(path));
        }
        self.objects.retain(|path, _| path.below(&at).is_none());
        Ok(())
    }

    /// Sets an attribute of an array or a group, or of the version itself if `path` is the root.
    pub fn set_attribute<'a>(&mut self, path: &str, name: &str, value: impl Into<Values<'a>>) -> Result<()> {
        let at = ObjectPath::parse(path)?;
        let spec = crate::write::attribute(name, value)?;
        if at.is_root() {
            if OF_VERSION.contains(&name.as_bytes()) {
                return Err(Error::invalid(format!(
                    "the layout of versions needs the attribute {name} for itself"
                )));
            }
            self.attributes.insert(Name::from(name), spec);
            return Ok(());
        }
        let missing = self.missing(path);
        let object = self.objects.get_mut(&at).ok_or(missing)?;
        load(object, self.before.as_ref(), &at)?;
        if matches!(object.body, Body::Array(_)) && matches!(name, "raw_data" | "chunks") {
            return Err(Error::invalid(format!(
                "the layout of versions needs the attribute {name} for itself"
            )));
        }
        object.attributes.insert(Name::from(name), spec);
        Ok(())
    }

    /// Removes an attribute.
    pub fn delete_attribute(&mut self, path: &str, name: &str) -> Result<()> {
        let at = ObjectPath::parse(path)?;
        let missing = self.missing(path);
        let attributes = match at.is_root() {
            true => &mut self.attributes,
            false => {
                let object = self.objects.get_mut(&at).ok_or(missing)?;
                load(object, self.before.as_ref(), &at)?;
                &mut object.attributes
            }
        };
        match attributes.remove(&Name::from(name)) {
            Some(_) => Ok(()),
            None => Err(Error::new(ErrorKind::NotFound, format!("{path} has no attribute {name}"))),
        }
    }

    /// Makes it durable and visible, all or nothing. It is the current version from then on, unless that was not wanted.
    pub fn commit(mut self) -> Result<Committed> {
        let (name, store) = (self.name.clone(), &mut self.store);
        let frame = || format!("version {name}");
        let at = store.versions().join(name.as_str());
        let transaction = &mut self.transaction;
        transaction.apply(Change::CreateGroup { path: at.clone() }).context(frame)?;
        for (path, object) in &mut self.objects {
            let here: ObjectPath = at.names().iter().chain(path.names()).cloned().collect();
            if let (Body::Kept(_), Some(parent)) = (&object.body, &self.parent) {
                // As it is, byte by byte; what cannot be copied so is written anew.
                let from = store.versions().join(parent.name.as_str());
                let from = from.names().iter().chain(path.names()).cloned().collect();
                match transaction.apply(Change::CopyObject { from, to: here.clone() }) {
                    Ok(()) => continue,
                    Err(e) if e.kind() == ErrorKind::Unsupported => {
                        load(object, self.before.as_ref(), path).context(frame)?;
                    }
                    Err(e) => return Err(e.context(format!("object {path}")).context(frame())),
                }
            }
            match &mut object.body {
                Body::Kept(_) => Err(Error::invalid("an array of no parent")),
                Body::Group => transaction.apply(Change::CreateGroup { path: here.clone() }),
                Body::Array(staged) => store.write(transaction, path, &here, staged.as_parts()),
            }
            .context(|| format!("object {path}"))
            .context(frame)?;
            for attribute in object.attributes.values() {
                transaction
                    .apply(Change::SetAttribute { object: here.clone(), attribute: attribute.clone() })?;
            }
        }
        for attribute in self.attributes.values() {
            transaction.apply(Change::SetAttribute { object: at.clone(), attribute: attribute.clone() })?;
        }
        let place = at.to_string();
        let parent = self.parent.as_ref().map_or(FIRST, |parent| parent.name.as_str());
        transaction.set_attribute(&place, "prev_version", parent)?;
        transaction.apply(Change::SetAttribute { object: at, attribute: store::committed() })?;
        let time = match self.time {
            Some(time) => time,
            None => Timestamp::now()?,
        };
        transaction.set_attribute(&place, "timestamp", time.as_str())?;
        if self.make_current {
            transaction.set_attribute(
                &self.store.versions().to_string(),
                "current_version",
                name.as_str(),
            )?;
        }
        self.transaction.commit().context(frame)
    }

    /// The path of an object that is not there yet, and whose groups are groups.
    fn free(&self, path: &str) -> Result<ObjectPath> {
        let at = ObjectPath::parse(path)?;
        if at.is_root() || self.objects.contains_key(&at) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("there is a {path} already")));
        }
        let mut group = ObjectPath::root();
        for name in at.names() {
            if let Some(Object { body: Body::Array(_) | Body::Kept(_), .. }) = self.objects.get(&group) {
                return Err(Error::invalid(format!("{group} is an array, and holds no {path}")));
            }
            group = group.join(name.clone());
        }
        Ok(at)
    }

    fn make_groups(&mut self, path: &ObjectPath) -> Result<()> {
        let mut at = ObjectPath::root();
        for name in path.names() {
            at = at.join(name.clone());
            let group = || Object { attributes: BTreeMap::new(), body: Body::Group };
            self.objects.entry(at.clone()).or_insert_with(group);
        }
        Ok(())
    }

    fn missing(&self, path: &str) -> Error {
        Error::new(ErrorKind::NotFound, format!("no {path} in version {}", self.name))
    }
}

impl Staged {
    fn as_parts(&mut self) -> store::Parts<'_> {
        store::Parts { meta: &self.meta, slots: &self.slots, array: self.array.as_mut() }
    }
}
