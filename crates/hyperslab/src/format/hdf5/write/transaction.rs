//! A transaction: the objects that it knows, how they hang together, and the changes that are made to them.

use super::disk::Disk;
use super::global::GlobalHeap;
use super::group::{GroupK, Table};
use super::load::Reading;
use super::message::Style;
use super::object::{Array, Attribute, AttributeValue, Body, Group, Id, Link, Object, Target};
use super::{Hdf5Options, Libver};
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::write::{AttributeSpec, Change, LinkSpec, ObjectPath};
use crate::shape::{Coord, Name, element_count};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Soft links that one path may lead through.
const MAX_LINKS: u32 = 64;

/// Bytes of the first block of a header whose address is needed before it is known what it will hold.
const RESERVED: u64 = 320;

/// Bytes of a message in a header of version 1, which are a multiple of eight below 2^16. The reference library has no place
/// for larger attributes of such objects either.
const MAX_MESSAGE: usize = 65_528;

/// A transaction on one file.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) disk: Disk,
    pub(super) options: Hdf5Options,
    pub(super) limits: Limits,
    pub(super) objects: Vec<Object>,
    /// Objects of the file by the addresses of their headers.
    pub(super) by_address: HashMap<u64, Id>,
    pub(super) root: Id,
    pub(super) heap: GlobalHeap,
    /// The file as it is, if there is one.
    pub(super) reading: Option<Reading>,
    pub(super) group_k: GroupK,
    /// Half the number of chunks in a node of a version 1 B-tree.
    pub(super) chunk_k: u16,
    /// The symbol table of the root group, where it has one.
    pub(super) root_table: Option<Table>,
    /// Chunks of implicit indexes that were written.
    pub(super) written: HashMap<Id, BTreeSet<Coord>>,
    /// Arrays of the file whose hash was taken back, if they had one.
    pub(super) unhashed: HashSet<Id>,
    /// The number that the next dimension gets.
    pub(super) next_dimension: Option<i32>,
    /// Chunks written so far.
    pub(super) chunks: u64,
}

fn missing(path: &ObjectPath) -> Error {
    Error::new(ErrorKind::NotFound, format!("{path}: there is no such object"))
}

impl Transaction {
    pub(super) fn style(&self) -> Style<'_> {
        Style { libver: self.options.libver, limits: &self.limits }
    }

    pub(super) fn object(&self, id: Id) -> Result<&Object> {
        self.objects.get(id.0).ok_or_else(|| Error::invalid("an object that the transaction does not know"))
    }

    pub(super) fn object_mut(&mut self, id: Id) -> Result<&mut Object> {
        self.objects
            .get_mut(id.0)
            .ok_or_else(|| Error::invalid("an object that the transaction does not know"))
    }

    pub(super) fn group_mut(&mut self, id: Id) -> Result<&mut Group> {
        match &mut self.object_mut(id)?.body {
            Body::Group(group) => Ok(group),
            _ => Err(Error::new(ErrorKind::InvalidArgument, "the object is not a group")),
        }
    }

    pub(super) fn group(&self, id: Id) -> Result<&Group> {
        match &self.object(id)?.body {
            Body::Group(group) => Ok(group),
            _ => Err(Error::new(ErrorKind::InvalidArgument, "the object is not a group")),
        }
    }

    pub(super) fn array(&self, id: Id) -> Result<&Array> {
        match &self.object(id)?.body {
            Body::Array(array) => Ok(array),
            _ => Err(Error::new(ErrorKind::InvalidArgument, "the object is not an array")),
        }
    }

    pub(super) fn array_mut(&mut self, id: Id) -> Result<&mut Array> {
        match &mut self.object_mut(id)?.body {
            Body::Array(array) => Ok(array),
            _ => Err(Error::new(ErrorKind::InvalidArgument, "the object is not an array")),
        }
    }

    pub(super) fn add(&mut self, object: Object) -> Id {
        self.objects.push(object);
        Id(self.objects.len() - 1)
    }

    /// The object that a target leads to, if it is one of this file.
    fn follow(&mut self, target: &Target) -> Result<Option<Id>> {
        match target {
            Target::Object(id) => Ok(Some(*id)),
            Target::Address(address) => self.load(*address).map(Some),
            _ => Ok(None),
        }
    }

    /// The object called `name` in a group. The link is known by its object from then on.
    pub(super) fn child(&mut self, group: Id, name: &Name) -> Result<Option<Target>> {
        let Some(target) = self.group(group)?.links.get(name).map(|l| l.target.clone()) else {
            return Ok(None);
        };
        if let Target::Address(address) = target {
            let id = self.load(address)?;
            let group = self.group_mut(group)?;
            group.links.get_mut(name).into_iter().for_each(|l| l.target = Target::Object(id));
            return Ok(Some(Target::Object(id)));
        }
        Ok(Some(target))
    }

    /// The object at a path; soft links on the way are followed.
    pub(super) fn find(&mut self, path: &ObjectPath) -> Result<Id> {
        let mut here = vec![self.root];
        let mut todo: Vec<Name> = path.names().iter().rev().cloned().collect();
        let mut links = 0;
        while let Some(name) = todo.pop() {
            let Some(&group) = here.last() else { return Err(missing(path)) };
            if name.as_bytes() == b"." {
                continue;
            }
            let target = match self.child(group, &name) {
                Ok(target) => target.ok_or_else(|| missing(path))?,
                Err(e) => return Err(e.context(format!("path {path}"))),
            };
            match target {
                Target::Object(id) => here.push(id),
                Target::Soft(to) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Error::limit("soft links on a path", links.into(), MAX_LINKS.into()));
                    }
                    if to.as_bytes().starts_with(b"/") {
                        here.truncate(1);
                    }
                    let names = to.as_bytes().split(|&b| b == b'/').filter(|n| !n.is_empty());
                    let names: Vec<Name> = names.map(Name::from).collect();
                    todo.extend(names.into_iter().rev());
                }
                Target::External { .. } => {
                    return Err(Error::unsupported(format!("{path}: changing what lies in another file")));
                }
                _ => return Err(missing(path)),
            }
        }
        here.last().copied().ok_or_else(|| missing(path))
    }

    /// The group and the name of a path at which something new is to be.
    pub(super) fn place_for(&mut self, path: &ObjectPath) -> Result<(Id, Name)> {
        let Some((group, name)) = path.split() else {
            return Err(Error::new(ErrorKind::AlreadyExists, "the root group is there from the start"));
        };
        if name.is_empty() || name.as_bytes().iter().any(|&b| b == 0 || b == b'/') || name.as_bytes() == b"."
        {
            return Err(Error::invalid(format!("{name:?} is no name of a link in HDF5")));
        }
        let group = self.find(&group)?;
        if self.group(group).context(|| path.to_string())?.links.contains_key(name) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("{path} exists")));
        }
        self.check_editable(group)?;
        Ok((group, name.clone()))
    }

    /// Adds a link, in a place that is known to be free.
    pub(super) fn link(
        &mut self,
        (group, name): (Id, Name),
        target: Target,
        order: Option<i64>,
    ) -> Result<()> {
        if let Target::Object(id) = target {
            self.refer(id, 1)?;
        }
        let group = self.group_mut(group)?;
        let order = order.unwrap_or(group.next);
        group.next = group.next.max(order.saturating_add(1));
        group.links.insert(name, Link { target, order });
        group.dirty = true;
        Ok(())
    }

    /// Counts users of an object, one more or one less. Gives how many there are then.
    pub(super) fn refer(&mut self, id: Id, by: i32) -> Result<u32> {
        let object = self.object_mut(id)?;
        object.references = object.references.saturating_add_signed(by);
        object.references_dirty = true;
        Ok(object.references)
    }

    /// The address of an object. One that has none yet gets it, with room that does for most.
    pub(super) fn address_of(&mut self, id: Id) -> Result<u64> {
        if let Some((address, _)) = self.object(id)?.place {
            return Ok(address);
        }
        let place = (self.disk.allocate(RESERVED, 8)?, RESERVED);
        self.object_mut(id)?.place = Some(place);
        Ok(place.0)
    }

    /// A committed type, which must be `dtype`.
    pub(super) fn committed(&mut self, path: Option<&ObjectPath>, dtype: &DType) -> Result<Option<Id>> {
        let Some(path) = path else { return Ok(None) };
        let id = self.find(path)?;
        match &self.object(id)?.body {
            Body::Datatype(own) if own == dtype => Ok(Some(id)),
            Body::Datatype(own) => Err(Error::invalid(format!("{path} is the type {own}, not {dtype}"))),
            _ => Err(Error::invalid(format!("{path} is no committed type"))),
        }
    }

    /// Makes a structural change.
    pub(super) fn apply(&mut self, change: Change) -> Result<()> {
        match change {
            Change::CreateGroup { path } => {
                let place = self.place_for(&path)?;
                let tracks = self.options.track_order;
                let group = Group { tracks, dirty: true, ..Group::default() };
                let id = self.add(Object::new(Body::Group(group), tracks));
                self.link(place, Target::Object(id), None)
            }
            Change::CreateDimension { group, dimension } => self.create_dimension(&group, &dimension),
            Change::CreateArray { path, spec } => {
                self.create_array(&path, &spec).context(|| format!("array {path}"))
            }
            Change::CommitType { path, dtype } => {
                let place = self.place_for(&path)?;
                let dtype = self.adapted(&dtype);
                self.check_type(&dtype)?;
                let tracks = self.options.track_order;
                let id = self.add(Object::new(Body::Datatype(dtype), tracks));
                self.link(place, Target::Object(id), None)
            }
            Change::SetAttribute { object, attribute } => {
                let name = attribute.name.clone();
                self.set_attribute(&object, attribute).context(|| format!("attribute {name} of {object}"))
            }
            Change::DeleteAttribute { object, name } => self.delete_attribute(&object, &name),
            Change::CreateLink { path, link } => self.create_link(&path, link),
            Change::Delete { path } => self.delete(&path),
            Change::Rename { from, to } => self.rename(&from, &to),
            Change::CopyObject { from, to } => self.copy_object(&from, &to),
            Change::Resize { array, shape } => {
                self.resize(&array, &shape).context(|| format!("array {array}"))
            }
            Change::Restack(restack) => self.restack(&restack).context(|| format!("array {}", restack.stack)),
        }
    }

    /// Fails unless the type can be stored.
    pub(super) fn check_type(&self, dtype: &DType) -> Result<()> {
        let mut out = super::encoder::Encoder::new(self.disk.sizes());
        super::message::dtype(&mut out, dtype, self.style())?;
        check_pointers(dtype, self.disk.sizes().offset)
    }

    fn set_attribute(&mut self, object: &ObjectPath, spec: AttributeSpec) -> Result<()> {
        let id = self.find(object)?;
        let AttributeSpec { name, dtype, committed, space, content } = spec;
        if name.is_empty() || name.as_bytes().contains(&0) {
            return Err(Error::invalid("an attribute has a name, without NUL"));
        }
        let dtype = self.adapted(&dtype);
        self.check_type(&dtype)?;
        self.check_editable(id)?;
        let mut out = super::encoder::Encoder::new(self.disk.sizes());
        super::message::dataspace(&mut out, &space, self.style())?;
        let count = if space.is_null() { 0 } else { element_count(space.dims())? };
        let value = self.value(&dtype, count, &content)?;
        let committed = self.committed(committed.as_ref(), &dtype)?;
        if self.object(id)?.stored.as_ref().is_some_and(|s| s.prefix.version == 1) {
            let mut message = super::encoder::Encoder::new(self.disk.sizes());
            super::message::dtype(&mut message, &dtype, self.style())?;
            // Eight bytes in front of three parts, each filled up to a multiple of eight.
            let parts = [name.as_bytes().len() + 1, message.len(), out.len()];
            let head: usize = 8 + parts.iter().map(|n| n.next_multiple_of(8)).sum::<usize>();
            let bytes = value.count(dtype.size()).saturating_mul(dtype.size()).saturating_add(head);
            if bytes > MAX_MESSAGE {
                let text = format!(
                    "an attribute of {bytes} bytes on an object with a header of version 1, {MAX_MESSAGE} are possible"
                );
                return Err(Error::unsupported(text).hint("write the file anew for HDF5 1.8 or later"));
            }
        }
        self.put_attribute(id, name, AttributeValue::New { dtype, committed, space, value })
    }

    /// Sets an attribute that was checked.
    pub(super) fn put_attribute(&mut self, id: Id, name: Name, what: AttributeValue) -> Result<()> {
        self.load_attributes(id)?;
        if let AttributeValue::New { committed: Some(user), .. } = &what {
            self.refer(*user, 1)?;
        }
        let object = self.object_mut(id)?;
        object.attributes_dirty = true;
        let mut old = None;
        match object.attributes.iter_mut().find(|a| a.name == name) {
            Some(there) => old = Some(std::mem::replace(&mut there.what, what)),
            None => {
                let order = object.next_attribute;
                object.next_attribute += 1;
                object.attributes.push(Attribute { name, order, what });
            }
        }
        self.forget_attribute(old.as_ref())
    }

    /// Gives up what an attribute used.
    pub(super) fn forget_attribute(&mut self, what: Option<&AttributeValue>) -> Result<()> {
        if let Some(
            AttributeValue::New { committed: Some(id), .. }
            | AttributeValue::Kept { committed: Some(id), .. },
        ) = what
        {
            self.unlink(*id)?;
        }
        Ok(())
    }

    fn delete_attribute(&mut self, object: &ObjectPath, name: &Name) -> Result<()> {
        let id = self.find(object)?;
        self.check_editable(id)?;
        self.load_attributes(id)?;
        let there = self.object(id)?.attributes.iter().position(|a| a.name == *name);
        let Some(i) = there else {
            return Err(Error::new(ErrorKind::NotFound, format!("{object} has no attribute {name}")));
        };
        let object = self.object_mut(id)?;
        let old = object.attributes.remove(i);
        object.attributes_dirty = true;
        self.forget_attribute(Some(&old.what))
    }

    fn create_link(&mut self, path: &ObjectPath, link: LinkSpec) -> Result<()> {
        let place = self.place_for(path)?;
        let target = match link {
            LinkSpec::Hard(to) => {
                let id = self.find(&to)?;
                self.check_editable(id)?;
                Target::Object(id)
            }
            LinkSpec::Soft(to) => Target::Soft(to),
            LinkSpec::External { file, path } => Target::External { file, path },
        };
        let texts: &[&Name] = match &target {
            Target::Soft(to) => &[to],
            Target::External { file, path } => &[file, path],
            _ => &[],
        };
        if texts.iter().any(|t| t.is_empty() || t.as_bytes().contains(&0) || t.as_bytes().len() > 0x7fff) {
            return Err(Error::invalid(format!(
                "{path}: a link leads to a text of 1 to 32767 bytes, without NUL"
            )));
        }
        self.link(place, target, None)
    }

    fn split(&mut self, path: &ObjectPath) -> Result<(Id, Name)> {
        let Some((group, name)) = path.split() else {
            return Err(Error::invalid("the root group can be neither moved nor removed"));
        };
        let id = self.find(&group)?;
        self.check_editable(id)?;
        if self.child(id, name)?.is_none() {
            return Err(missing(path));
        }
        Ok((id, name.clone()))
    }

    fn delete(&mut self, path: &ObjectPath) -> Result<()> {
        let (group, name) = self.split(path)?;
        if let Some(Target::Object(id)) = self.child(group, &name)? {
            self.check_removable(id)?;
        }
        let group = self.group_mut(group)?;
        let Some(link) = group.links.remove(&name) else { return Err(missing(path)) };
        group.dirty = true;
        match link.target {
            Target::Object(id) => self.unlink(id),
            _ => Ok(()),
        }
    }

    /// One user of an object less. Without any it is gone, with what only it leads to.
    pub(super) fn unlink(&mut self, id: Id) -> Result<()> {
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            if self.refer(id, -1)? > 0 {
                continue;
            }
            self.load_attributes(id)?;
            let object = self.object_mut(id)?;
            let attributes = std::mem::take(&mut object.attributes);
            let mut below = Vec::new();
            match &mut object.body {
                Body::Group(group) => {
                    below.extend(std::mem::take(&mut group.links).into_values().map(|l| l.target));
                }
                Body::Array(array) => todo.extend(array.committed.take()),
                Body::Datatype(_) => {}
            }
            for target in below {
                todo.extend(self.follow(&target)?);
            }
            todo.extend(attributes.iter().filter_map(|a| match &a.what {
                AttributeValue::New { committed, .. } | AttributeValue::Kept { committed, .. } => *committed,
            }));
            self.release(id)?;
        }
        Ok(())
    }

    fn rename(&mut self, from: &ObjectPath, to: &ObjectPath) -> Result<()> {
        let (group, name) = self.split(from)?;
        if to.below(from).is_some() {
            return Err(Error::invalid(format!("{from} cannot be moved into itself")));
        }
        let (new_group, new_name) = self.place_for(to)?;
        // Also by other names: whoever moves a group below itself loses it.
        if let Some(Target::Object(id)) = self.child(group, &name)?
            && self.reaches(id, new_group)?
        {
            return Err(Error::invalid(format!("{from} cannot be moved into itself")));
        }
        let old = self.group_mut(group)?;
        let Some(link) = old.links.remove(&name) else { return Err(missing(from)) };
        old.dirty = true;
        // Within a group a link keeps its place.
        let order = (group == new_group).then_some(link.order);
        let new = self.group_mut(new_group)?;
        let order = order.unwrap_or(new.next);
        new.next = new.next.max(order.saturating_add(1));
        new.links.insert(new_name, Link { target: link.target, order });
        new.dirty = true;
        Ok(())
    }

    /// Whether a walk over hard links leads from one object to another.
    fn reaches(&mut self, from: Id, to: Id) -> Result<bool> {
        let (mut todo, mut seen) = (vec![from], HashSet::new());
        while let Some(id) = todo.pop() {
            if id == to {
                return Ok(true);
            }
            if !seen.insert(id) {
                continue;
            }
            let Body::Group(group) = &self.object(id)?.body else { continue };
            let targets: Vec<Target> = group.links.values().map(|l| l.target.clone()).collect();
            for target in targets {
                todo.extend(self.follow(&target)?);
            }
        }
        Ok(false)
    }

    /// Whether groups are of the old style.
    pub(super) fn is_early(&self) -> bool {
        self.options.libver == Libver::Earliest
    }
}

/// Fails unless elements that point elsewhere have the bytes that this file's addresses need.
fn check_pointers(dtype: &DType, offset: u8) -> Result<()> {
    let offset = usize::from(offset);
    let wrong = |size: usize, wanted: usize| match size == wanted {
        true => Ok(()),
        false => Err(Error::unsupported(format!("{dtype} in {size} bytes, HDF5 has {wanted} here"))),
    };
    match dtype {
        DType::VarString { size, .. } => wrong(*size, 8 + offset),
        DType::VarLen { size, base } => {
            wrong(*size, 8 + offset)?;
            check_pointers(base, offset as u8)
        }
        DType::Reference { size, kind } => match kind {
            crate::dtype::ReferenceKind::Object => wrong(*size, offset),
            crate::dtype::ReferenceKind::Region => wrong(*size, offset + 4),
            crate::dtype::ReferenceKind::Standard if *size >= 18 => Ok(()),
            crate::dtype::ReferenceKind::Standard => wrong(*size, 18),
        },
        DType::Compound { fields, .. } => {
            fields.iter().try_for_each(|f| check_pointers(&f.dtype, offset as u8))
        }
        DType::Array { base, .. } => check_pointers(base, offset as u8),
        _ => Ok(()),
    }
}
