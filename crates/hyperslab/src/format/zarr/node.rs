//! The documents of groups and arrays, from a store or from consolidated metadata.

use crate::error::{Context, Error, ErrorKind, Result};
use crate::json::{Json, wrong_member};
use crate::model::{Documents, NodeKind};
use crate::source::store::{Get, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names of the documents of an object.
pub(super) const NAMES: [&str; 4] = ["zarr.json", ".zarray", ".zgroup", ".zattrs"];

/// A group or array.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) documents: Documents,
    /// Why the attributes can't be read, if they can't.
    pub(super) attributes: Result<(), Error>,
}

/// The key of a name in the folder `path`.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

/// Whether a key is that of a document that makes its folder a group or array.
pub(super) fn folder_of_document(key: &str) -> Option<&str> {
    let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
    NAMES[..3].contains(&name).then_some(folder)
}

/// The documents in the folders `paths`, in one batch, each of at most `limit` bytes: for each what is there, or `None`.
pub(super) fn read(store: &dyn Store, paths: &[String], limit: u64) -> Vec<Result<Option<Node>>> {
    let gets: Vec<Get> =
        paths.iter().flat_map(|p| NAMES.map(|name| Get::whole(join(p, name)).within(limit))).collect();
    let mut answers = store.get_many(&gets).into_iter();
    let mut next =
        || answers.next().unwrap_or_else(|| Err(Error::new(ErrorKind::Io, "the store gave no answer")));
    paths
        .iter()
        .map(|path| {
            let documents = NAMES.map(|name| {
                let bytes = next()?;
                bytes.map(|bytes| Json::parse(&bytes).context(|| join(path, name))).transpose()
            });
            Node::new(documents)
        })
        .collect()
}

impl Node {
    /// From the documents of a folder, in the order of [`NAMES`].
    pub(super) fn new([v3, array, group, attributes]: [Result<Option<Json>>; 4]) -> Result<Option<Node>> {
        if let Some(metadata) = v3? {
            return Node::v3(metadata).map(Some);
        }
        let (kind, metadata) = match (array?, group?) {
            (Some(array), _) => (NodeKind::Array, array),
            (None, Some(group)) => (NodeKind::Group, group),
            (None, None) => return Ok(None),
        };
        let version = metadata.get("zarr_format").and_then(Json::as_integer);
        if version != Some(2) {
            return Err(wrong_member("zarr_format", "is not 2"));
        }
        let (attributes, fault) = match attributes {
            Ok(Some(map @ Json::Map(_))) => (map, Ok(())),
            Ok(None) => (Json::Map(Vec::new()), Ok(())),
            Ok(Some(_)) => {
                (Json::Map(Vec::new()), Err(Error::new(ErrorKind::Corrupt, ".zattrs holds no object")))
            }
            Err(e) => (Json::Map(Vec::new()), Err(e)),
        };
        Ok(Some(Node { kind, documents: Documents { version: 2, metadata, attributes }, attributes: fault }))
    }

    /// From `zarr.json`.
    pub(super) fn v3(metadata: Json) -> Result<Node> {
        if metadata.get("zarr_format").and_then(Json::as_integer) != Some(3) {
            return Err(wrong_member("zarr_format", "is not 3"));
        }
        let kind = match metadata.get("node_type").and_then(Json::as_str) {
            Some("group") => NodeKind::Group,
            Some("array") => NodeKind::Array,
            _ => return Err(wrong_member("node_type", "is neither group nor array")),
        };
        let (attributes, fault) = match metadata.get("attributes") {
            Some(map @ Json::Map(_)) => (map.clone(), Ok(())),
            None => (Json::Map(Vec::new()), Ok(())),
            Some(_) => (Json::Map(Vec::new()), Err(wrong_member("attributes", "is no object"))),
        };
        Ok(Node { kind, documents: Documents { version: 3, metadata, attributes }, attributes: fault })
    }
}

/// All documents of a hierarchy in one: `.zmetadata`, or a member of the root's `zarr.json`.
#[derive(Debug, Default)]
pub(super) struct Consolidated {
    /// By path.
    pub(super) nodes: BTreeMap<String, [Option<Json>; 4]>,
}

impl Consolidated {
    /// From the document `.zmetadata`.
    pub(super) fn v2(document: &Json) -> Result<Consolidated> {
        if document.get("zarr_consolidated_format").and_then(Json::as_integer) != Some(1) {
            return Err(wrong_member("zarr_consolidated_format", "is not 1"));
        }
        let members = document.get("metadata").and_then(Json::as_map);
        let members = members.ok_or_else(|| wrong_member("metadata", "is no object"))?;
        let mut nodes: BTreeMap<String, [Option<Json>; 4]> = BTreeMap::new();
        for (key, document) in members {
            let key = key.trim_start_matches('/');
            let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
            if let Some(at) = NAMES.iter().position(|n| *n == name) {
                nodes.entry(folder.to_owned()).or_default()[at] = Some(document.clone());
            }
        }
        Ok(Consolidated { nodes })
    }

    /// From the root's `zarr.json`; `None` if it holds none.
    pub(super) fn v3(root: &Json) -> Option<Result<Consolidated>> {
        let inline = root.get("consolidated_metadata").filter(|c| !c.is_null())?;
        let members = inline.get("metadata").and_then(Json::as_map);
        let kind = inline.get("kind").and_then(Json::as_str).unwrap_or("inline");
        Some(match members {
            _ if kind != "inline" => {
                Err(Error::unsupported(format_args!("consolidated metadata of kind {kind:?}")))
            }
            None => Err(wrong_member("consolidated_metadata", "holds no documents")),
            Some(members) => {
                let node = |(path, document): &(String, Json)| {
                    (path.trim_matches('/').to_owned(), [Some(document.clone()), None, None, None])
                };
                let mut nodes: BTreeMap<_, _> = members.iter().map(node).collect();
                nodes.insert(String::new(), [Some(root.clone()), None, None, None]);
                Ok(Consolidated { nodes })
            }
        })
    }

    /// The node at `path`; `None` if there is no such.
    pub(super) fn node(&self, path: &str) -> Result<Option<Node>> {
        match self.nodes.get(path) {
            Some(documents) => Node::new(documents.clone().map(Ok)),
            None => Ok(None),
        }
    }

    /// The names of the nodes right below `path`, and of folders with nodes in them.
    pub(super) fn children(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .nodes
            .keys()
            .filter_map(|p| {
                if path.is_empty() { Some(p.as_str()) } else { p.strip_prefix(path)?.strip_prefix('/') }
            })
            .filter(|rest| !rest.is_empty())
            .map(|rest| rest.split('/').next().unwrap_or(rest).to_owned())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A node that is read once.
pub(super) type Shared = Option<Arc<Node>>;
