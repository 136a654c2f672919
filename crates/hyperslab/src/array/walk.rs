//! All objects of a file, each once.

use super::group::{Group, Object};
use super::node::Node;
use super::resolve::join;
use crate::error::{Context, Error, Result};
use crate::limits::Budget;
use crate::model::{Link, LinkTarget, Links, NodeId, NodeKind};
use crate::shape::Name;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// One link met on a walk, and what it leads to.
#[derive(Debug)]
pub struct Entry {
    /// The path: that of the group, and the name of the link.
    pub path: String,
    /// What is there.
    pub item: Item,
}

/// What a walk finds at a path.
#[derive(Debug)]
#[non_exhaustive]
pub enum Item {
    /// A group that the walk had not met before, with its links, or the reason why they can't be listed.
    Group(Group, Result<Arc<Links>>),
    /// An array or datatype that the walk had not met before; [`Entry::open`] opens it.
    Object(NodeId, NodeKind),
    /// Another link to the object that was first met at this path.
    HardLink(String),
    /// A soft link, not followed, with its target.
    SoftLink(Name),
    /// An external link, not followed: the file, and the path in it.
    ExternalLink(Name, Name),
    /// A link of a class that only its owner knows.
    UserLink(u8, Bytes),
    /// An object of which not even the kind can be told.
    Fault(NodeId, Error),
}

impl Entry {
    /// Opens the object or group at this entry. Fails for links, and where the object is damaged.
    pub fn open(&self, file: &super::File) -> Result<Object> {
        match &self.item {
            Item::Group(group, _) => Ok(Object::Group(group.clone())),
            Item::Object(id, _) => file.object(id, self.path.as_str()),
            _ => Err(Error::invalid(format!("{} is a link", self.path))),
        }
    }
}

/// A walk over the objects below a group: depth first, a group before its members, links sorted by the bytes of their
/// names. The first path of an object is its name; soft and external links are not followed.
///
/// Memory is bounded by the number of objects, depth by nothing: nesting costs no stack.
#[derive(Debug)]
pub struct Walk {
    start: Option<Node>,
    /// Groups that are open: their path, their links, and the next one to take.
    open: Vec<(Node, Arc<Links>, usize)>,
    seen: HashMap<NodeId, String>,
    budget: Budget,
}

impl Walk {
    pub(super) fn new(start: Node) -> Walk {
        // Paths of deeply nested objects are long: all of them together are bounded like other metadata.
        let budget = Budget::new("paths of all objects in bytes", start.options.limits.metadata / 4);
        Walk { start: Some(start), open: Vec::new(), seen: HashMap::new(), budget }
    }

    /// The first path of each object met so far.
    pub fn paths(&self) -> &HashMap<NodeId, String> {
        &self.seen
    }

    /// The walk's end: the first path of every object.
    pub fn into_paths(self) -> HashMap<NodeId, String> {
        self.seen
    }

    fn object(&mut self, node: Node) -> Entry {
        let path = node.path.clone();
        if let Some(first) = self.seen.get(&node.id) {
            return Entry { path, item: Item::HardLink(first.clone()) };
        }
        if let Err(e) = self.budget.charge(path.len() as u64 + 64) {
            return Entry { path, item: Item::Fault(node.id, e) };
        }
        let kind = match node.kind().context(|| format!("object {path}")) {
            Ok(kind) => kind,
            Err(e) => return Entry { path, item: Item::Fault(node.id, e) },
        };
        self.seen.insert(node.id.clone(), path.clone());
        if kind != NodeKind::Group {
            return Entry { path, item: Item::Object(node.id, kind) };
        }
        let group = Group::new(node.clone());
        let links = group.links().map(Arc::new);
        if let Ok(links) = &links {
            self.open.push((node, links.clone(), 0));
        }
        Entry { path, item: Item::Group(group, links) }
    }

    fn link(&mut self, group: &Node, link: &Link) -> Entry {
        let path = join(&group.path, &link.name);
        let item = match &link.target {
            LinkTarget::Hard(id) => return self.object(group.other(id.clone(), path)),
            LinkTarget::Soft(target) => Item::SoftLink(target.clone()),
            LinkTarget::External { file, path } => Item::ExternalLink(file.clone(), path.clone()),
            LinkTarget::UserDefined { class, data } => Item::UserLink(*class, data.clone()),
        };
        Entry { path, item }
    }
}

impl Iterator for Walk {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if let Some(start) = self.start.take() {
            return Some(self.object(start));
        }
        loop {
            let (group, links, next) = self.open.last_mut()?;
            match links.links.get(*next) {
                Some(_) => {
                    let (group, links, at) = (group.clone(), links.clone(), *next);
                    *next += 1;
                    let link = links.links.get(at)?;
                    return Some(self.link(&group, link));
                }
                None => {
                    self.open.pop();
                }
            }
        }
    }
}
