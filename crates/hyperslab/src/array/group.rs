//! Groups, named datatypes, and objects of any kind.

use super::node::{self, Node};
use super::{Array, resolve};
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::{Attribute, AttributeEntry, Fault, Hierarchy, Links, NodeId, NodeKind, Value};
use std::sync::Arc;

/// An object of a file.
#[derive(Clone, Debug)]
pub enum Object {
    /// A group of links.
    Group(Group),
    /// A dataset or variable.
    Array(Array),
    /// A committed (named) datatype.
    Datatype(NamedType),
}

impl Object {
    pub(super) fn open(node: Node) -> Result<Object> {
        let kind = node.kind().context(|| format!("object {}", node.path))?;
        Ok(match kind {
            NodeKind::Group => Object::Group(Group { node }),
            NodeKind::Array => Object::Array(Array::new(node.hierarchy, node.id, node.path, node.options)?),
            NodeKind::Datatype => Object::Datatype(NamedType::open(node)?),
        })
    }

    /// The path by which it was found.
    pub fn path(&self) -> &str {
        match self {
            Object::Group(g) => g.path(),
            Object::Array(a) => a.path(),
            Object::Datatype(t) => t.path(),
        }
    }

    /// Its identity in the file: equal for all its hard links.
    pub fn node(&self) -> &NodeId {
        match self {
            Object::Group(g) => g.node(),
            Object::Array(a) => a.node(),
            Object::Datatype(t) => &t.node.id,
        }
    }

    /// The file it lies in.
    pub fn hierarchy(&self) -> &Arc<dyn Hierarchy> {
        match self {
            Object::Group(g) => &g.node.hierarchy,
            Object::Array(a) => a.hierarchy(),
            Object::Datatype(t) => &t.node.hierarchy,
        }
    }

    /// What it is.
    pub fn kind(&self) -> NodeKind {
        match self {
            Object::Group(_) => NodeKind::Group,
            Object::Array(_) => NodeKind::Array,
            Object::Datatype(_) => NodeKind::Datatype,
        }
    }

    /// Verifies the structures of the object that nothing else reads, and gives the faults to `fault`.
    pub fn check(&self, fault: &mut dyn FnMut(Fault)) {
        self.hierarchy().check_node(self.node(), fault);
    }

    /// All attributes, sorted by the bytes of their names.
    pub fn attributes(&self) -> Result<Vec<AttributeEntry>> {
        match self {
            Object::Group(g) => g.attributes(),
            Object::Array(a) => a.attributes(),
            Object::Datatype(t) => t.attributes(),
        }
    }

    /// The value of an attribute that [`Object::attributes`] gave.
    pub fn attribute_value(&self, attribute: &Attribute) -> Result<Value> {
        match self {
            Object::Group(g) => g.attribute_value(attribute),
            Object::Array(a) => a.attribute_value(attribute),
            Object::Datatype(t) => t.node.attribute_value(attribute),
        }
    }
}

/// A group: links to other objects, and attributes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Group {
    node: Node,
}

impl Group {
    pub(super) fn new(node: Node) -> Group {
        Group { node }
    }

    pub(super) fn inner(&self) -> &Node {
        &self.node
    }

    /// The path by which it was found.
    pub fn path(&self) -> &str {
        &self.node.path
    }

    /// Its identity in the file.
    pub fn node(&self) -> &NodeId {
        &self.node.id
    }

    /// Its links, sorted by the bytes of their names; none is followed.
    pub fn links(&self) -> Result<Links> {
        node::links(&*self.node.hierarchy, &self.node.id)
            .context(|| format!("links of group {}", self.node.path))
    }

    /// What its links lead to, soft and external ones followed, sorted by the bytes of their names. What can't be
    /// opened is an error in its place.
    pub fn children(&self) -> Result<Vec<(String, Result<Object>)>> {
        let links = self.links()?.links;
        Ok(links
            .into_iter()
            .map(|link| {
                // The link's own name is one component, whatever bytes it holds.
                let object = resolve::resolve(&self.node, link.name.as_bytes()).and_then(Object::open);
                (link.name.to_string(), object)
            })
            .collect())
    }

    /// The object at `path` from here, or from the root if it begins with `/`.
    pub fn get(&self, path: &str) -> Result<Object> {
        Object::open(resolve::resolve(&self.node, path.as_bytes())?)
    }

    /// The group at `path`.
    pub fn group(&self, path: &str) -> Result<Group> {
        match self.get(path)? {
            Object::Group(group) => Ok(group),
            other => Err(wrong_kind(&other, "a group")),
        }
    }

    /// The array at `path`.
    pub fn array(&self, path: &str) -> Result<Array> {
        match self.get(path)? {
            Object::Array(array) => Ok(array),
            other => Err(wrong_kind(&other, "an array")),
        }
    }

    /// All attributes, sorted by the bytes of their names.
    pub fn attributes(&self) -> Result<Vec<AttributeEntry>> {
        self.node.attributes()
    }

    /// The value of one attribute.
    pub fn attribute(&self, name: &str) -> Result<Value> {
        self.node.attribute(name)
    }

    /// The value of an attribute that [`Group::attributes`] gave.
    pub fn attribute_value(&self, attribute: &Attribute) -> Result<Value> {
        self.node.attribute_value(attribute)
    }
}

pub(super) fn wrong_kind(object: &Object, wanted: &str) -> Error {
    let kind = match object.kind() {
        NodeKind::Group => "a group",
        NodeKind::Array => "an array",
        NodeKind::Datatype => "a named datatype",
    };
    Error::new(ErrorKind::InvalidArgument, format!("{} is {kind}, not {wanted}", object.path()))
}

/// A committed datatype. Cheap to clone.
#[derive(Clone, Debug)]
pub struct NamedType {
    node: Node,
    dtype: Arc<DType>,
}

impl NamedType {
    fn open(node: Node) -> Result<NamedType> {
        let dtype = node::whole(&*node.hierarchy, || node.hierarchy.datatype(&node.id))
            .context(|| format!("named datatype {}", node.path))?;
        Ok(NamedType { node, dtype: Arc::new(dtype) })
    }

    /// The path by which it was found.
    pub fn path(&self) -> &str {
        &self.node.path
    }

    /// The type.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// All attributes, sorted by the bytes of their names.
    pub fn attributes(&self) -> Result<Vec<AttributeEntry>> {
        self.node.attributes()
    }

    /// The value of one attribute.
    pub fn attribute(&self, name: &str) -> Result<Value> {
        self.node.attribute(name)
    }
}
