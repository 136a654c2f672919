//! Groups and arrays of a transaction, and their documents.

use super::super::node::{NAMES, Node as Stored};
use super::nczarr::Words;
use crate::error::Result;
use crate::json::Json;
use crate::model::NodeKind;
use bytes::Bytes;

/// Members of an object of JSON, in order.
pub(super) type Members = Vec<(String, Json)>;

/// A group or array as the transaction has made it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) version: u8,
    /// The document without attributes and consolidated metadata.
    pub(super) metadata: Members,
    /// Attributes, without those in which NCZarr keeps its words.
    pub(super) attributes: Members,
    /// What NCZarr says of it.
    pub(super) words: Option<Words>,
    /// Whether there was a document of attributes before (version 2).
    pub(super) had_attributes: bool,
    pub(super) changed: bool,
}

/// Sets a member, in its place if it is there.
pub(super) fn set(members: &mut Members, name: &str, value: Json) {
    match members.iter_mut().find(|(n, _)| n == name) {
        Some((_, old)) => *old = value,
        None => members.push((name.to_owned(), value)),
    }
}

impl Node {
    /// A new one.
    pub(super) fn new(kind: NodeKind, version: u8, metadata: Members) -> Node {
        Node {
            kind,
            version,
            metadata,
            attributes: Vec::new(),
            words: None,
            had_attributes: false,
            changed: true,
        }
    }

    /// A new group.
    pub(super) fn group(version: u8) -> Node {
        let mut metadata = vec![("zarr_format".to_owned(), Json::Integer(version.into()))];
        if version == 3 {
            metadata.push(("node_type".into(), Json::Text("group".into())));
        }
        Node::new(NodeKind::Group, version, metadata)
    }

    /// One that is stored.
    pub(super) fn of_stored(stored: Stored, nczarr: bool) -> Result<Node> {
        stored.attributes?;
        let documents = stored.documents;
        let mut metadata = documents.metadata.as_map().unwrap_or(&[]).to_vec();
        metadata.retain(|(name, _)| {
            documents.version == 2 || name != "attributes" && name != "consolidated_metadata"
        });
        let mut attributes = documents.attributes.as_map().unwrap_or(&[]).to_vec();
        let words = if nczarr { Words::take(&mut attributes)? } else { None };
        let had_attributes = !attributes.is_empty() || words.is_some();
        Ok(Node {
            kind: stored.kind,
            version: documents.version,
            metadata,
            attributes,
            words,
            had_attributes,
            changed: false,
        })
    }

    /// The documents by name, with what the reader makes of them; the one that makes it a node comes last.
    pub(super) fn documents(&self, is_root: bool) -> Vec<(&'static str, Json)> {
        let mut attributes = self.attributes.clone();
        if let Some(words) = &self.words {
            words.put(&mut attributes, self.kind, is_root);
        }
        let attributes = valid(Json::Map(attributes));
        let mut metadata = self.metadata.clone();
        if self.version == 3 {
            metadata.push(("attributes".into(), attributes));
            return vec![(NAMES[0], valid(Json::Map(metadata)))];
        }
        let own = if self.kind == NodeKind::Array { NAMES[1] } else { NAMES[2] };
        let metadata = (own, valid(Json::Map(metadata)));
        let empty = attributes.as_map().is_none_or(<[_]>::is_empty);
        if empty && !self.had_attributes && self.words.is_none() {
            return vec![metadata];
        }
        vec![(NAMES[3], attributes), metadata]
    }
}

/// The bytes of a document.
pub(super) fn bytes(document: &Json) -> Bytes {
    document.to_string().into_bytes().into()
}

/// Numbers that JSON has no spelling for, as words.
fn valid(value: Json) -> Json {
    match value {
        Json::Float(v) if !v.is_finite() => super::fill::number(v),
        Json::List(items) => Json::List(items.into_iter().map(valid).collect()),
        Json::Map(members) => Json::Map(members.into_iter().map(|(n, v)| (n, valid(v))).collect()),
        other => other,
    }
}
