//! What every object has: an identity in a file, a path, attributes.

use super::OpenOptions;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::{Attribute, AttributeEntry, Elements, Hierarchy, Link, Links, NodeId, NodeKind, Value};
use crate::shape::{Name, element_count, to_usize};
use std::sync::Arc;

/// Runs a whole operation on a file, again where somebody who writes the file has torn it.
pub(super) fn whole<T>(hierarchy: &dyn Hierarchy, work: impl FnMut() -> Result<T>) -> Result<T> {
    let mut work = work;
    match hierarchy.retry() {
        Some(retry) => retry.run(work),
        None => work(),
    }
}

/// All attributes of an object. Those that are torn are read again; after the last attempt they are errors in their places.
pub(super) fn attributes(hierarchy: &dyn Hierarchy, id: &NodeId) -> Result<Vec<AttributeEntry>> {
    let Some(retry) = hierarchy.retry() else { return hierarchy.attributes(id) };
    retry.run_until(
        || hierarchy.attributes(id),
        |done| match done {
            Ok(entries) => entries.iter().any(|entry| matches!(entry, Err((_, e)) if e.is_torn())),
            Err(e) => e.is_torn(),
        },
    )
}

/// All links of a group. Those that are torn are read again; after the last attempt they are faults.
pub(super) fn links(hierarchy: &dyn Hierarchy, id: &NodeId) -> Result<Links> {
    let Some(retry) = hierarchy.retry() else { return hierarchy.links(id) };
    retry.run_until(
        || hierarchy.links(id),
        |done| match done {
            Ok(links) => links.faults.iter().any(|fault| fault.error.is_torn()),
            Err(e) => e.is_torn(),
        },
    )
}

/// An object of a file, whatever its kind.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) hierarchy: Arc<dyn Hierarchy>,
    pub(crate) id: NodeId,
    pub(crate) path: String,
    pub(crate) options: Arc<OpenOptions>,
}

impl Node {
    /// An object of the same file.
    pub(crate) fn other(&self, id: NodeId, path: String) -> Node {
        Node { id, path, ..self.clone() }
    }

    pub(crate) fn kind(&self) -> Result<NodeKind> {
        whole(&*self.hierarchy, || self.hierarchy.kind(&self.id))
    }

    pub(crate) fn link(&self, name: &Name) -> Result<Option<Link>> {
        whole(&*self.hierarchy, || self.hierarchy.link(&self.id, name))
    }

    pub(crate) fn attributes(&self) -> Result<Vec<AttributeEntry>> {
        attributes(&*self.hierarchy, &self.id).context(|| format!("attributes of {}", self.path))
    }

    pub(crate) fn attribute_value(&self, attribute: &Attribute) -> Result<Value> {
        attribute_value(&*self.hierarchy, attribute, self.options.limits.output)
            .context(|| format!("attribute {} of {}", attribute.name, self.path))
    }

    pub(crate) fn attribute(&self, name: &str) -> Result<Value> {
        attribute(&*self.hierarchy, &self.id, &self.path, &self.options, name)
    }
}

/// The value of the attribute called `name` of an object.
pub(super) fn attribute(
    hierarchy: &dyn Hierarchy,
    id: &NodeId,
    path: &str,
    options: &OpenOptions,
    name: &str,
) -> Result<Value> {
    let wanted = Name::parse(name);
    let frame = || format!("attribute {name} of {path}");
    let mut names = Vec::new();
    for entry in attributes(hierarchy, id).context(|| format!("attributes of {path}"))? {
        match entry {
            Ok(a) if a.name == wanted => {
                return attribute_value(hierarchy, &a, options.limits.output).context(frame);
            }
            Ok(a) => names.push(a.name.to_string()),
            Err((Some(n), e)) if n == wanted => return Err(e.context(frame())),
            Err(_) => {}
        }
    }
    let there = super::resolve::near(name, &names);
    Err(Error::new(ErrorKind::NotFound, format!("{path} has no attribute {name}")).hint(there))
}

/// All elements of an attribute as one value: `Null` for a null dataspace, nested lists otherwise.
pub(crate) fn attribute_value(hierarchy: &dyn Hierarchy, a: &Attribute, limit: u64) -> Result<Value> {
    if a.space.is_null() {
        return Ok(Value::Null);
    }
    let dims = a.space.dims();
    let count = to_usize(element_count(dims)?)?;
    whole(hierarchy, || {
        let elements = Elements::decode(hierarchy, &a.dtype, a.data.clone(), count, limit)?;
        Ok(Value::nest(dims, elements.values()?))
    })
}
