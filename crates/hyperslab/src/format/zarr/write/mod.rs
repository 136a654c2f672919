//! Writes Zarr, versions 2 and 3, and NCZarr: a [`HierarchyWriter`] over a store.

mod array;
mod attribute;
mod chunk;
mod codec;
mod document;
mod fill;
mod intent;
mod nczarr;
mod node;
mod notes;
mod options;
mod shard;
mod stage;
mod structure;
mod types;

pub use options::{Flavour, ZarrOptions};
pub use stage::recover;
pub(super) use stage::{check_finished, leftovers};

use super::Zarr;
use super::node::{self as stored, Consolidated, NAMES};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::json::Json;
use crate::model::write::{
    Change, Committed, Content, EncodedChunk, HierarchyWriter, ObjectPath, Support, WriteLayout,
};
use crate::model::{Dimension, Hierarchy, NodeKind};
use crate::source::store::{NewDirectory, Store, check_key};
use array::ArrayState;
use bytes::Bytes;
use chunk::OpenShards;
use node::{Members, Node};
use stage::Stage;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A transaction on a Zarr hierarchy.
#[derive(Debug)]
pub struct ZarrWriter {
    stage: Stage,
    options: ZarrOptions,
    /// Nodes by path as far as they were looked at; `None`: there is none.
    nodes: BTreeMap<String, Option<Node>>,
    arrays: HashMap<String, Arc<ArrayState>>,
    /// Dimensions by path, of hierarchies that do not keep them.
    dimensions: BTreeMap<ObjectPath, Dimension>,
    shards: OpenShards,
    /// Consolidated metadata, if it is kept: what was there before.
    consolidated: Option<Consolidated>,
    by_netcdf: bool,
    chunks: u64,
}

/// Where a new hierarchy goes.
#[derive(Debug)]
pub enum Place {
    /// A folder.
    Directory(NewDirectory),
    /// An empty store.
    Store(Arc<dyn Store>),
    /// A store, the objects of which go when the new hierarchy is committed.
    Replace(Arc<dyn Store>),
}

impl ZarrWriter {
    /// Begins a new hierarchy, of which there is the root group.
    pub fn create(place: Place, options: ZarrOptions) -> Result<ZarrWriter> {
        if !matches!(options.version, 2 | 3) {
            return Err(Error::invalid(format!("there is no version {} of Zarr", options.version)));
        }
        if options.flavour == Flavour::NcZarr && options.version != 2 {
            return Err(
                Error::unsupported("NCZarr of version 3, which nobody has released").hint("write version 2")
            );
        }
        if !matches!(options.separator, None | Some('.' | '/')) {
            return Err(Error::invalid("coordinates in keys are separated by . or /"));
        }
        let stage = match place {
            Place::Directory(folder) => {
                let store: Arc<dyn Store> = folder.store().clone();
                Stage::create(store, Some(folder), options.sync)
            }
            Place::Store(store) => {
                // Any object may be read as a chunk of what is written.
                let found = store.search("")?;
                let mut names = found.objects.iter().chain(&found.prefixes);
                if let Some(name) = names.find(|name| *name != stage::FOLDER) {
                    let text = format!("{} is not empty: it has {name}", store.name());
                    return Err(Error::new(ErrorKind::AlreadyExists, text));
                }
                Stage::create(store, None, options.sync)
            }
            Place::Replace(store) => {
                let mut stage = Stage::edit(store, options.sync)?;
                stage.clear()?;
                stage
            }
        };
        let mut root = Node::group(options.version);
        if options.flavour == Flavour::NcZarr {
            root.words = Some(nczarr::Words::default());
        }
        let nodes = BTreeMap::from([(String::new(), Some(root))]);
        let consolidated = options.consolidated.then(Consolidated::default);
        Ok(ZarrWriter {
            stage,
            options,
            nodes,
            arrays: HashMap::new(),
            dimensions: BTreeMap::new(),
            shards: OpenShards::default(),
            consolidated,
            by_netcdf: false,
            chunks: 0,
        })
    }

    /// Begins a transaction on the hierarchy in a store, with what it is before. Other writers are kept out as far as the
    /// store can do so; `options` say how, and how chunks are encoded: what is written is of the version that is there.
    pub fn edit(store: Arc<dyn Store>, options: ZarrOptions) -> Result<(Arc<dyn Hierarchy>, ZarrWriter)> {
        let name = store.name();
        let stage = Stage::edit(store, options.sync).context(|| &name)?;
        let before = Zarr::open(stage.before().clone(), &options.limits, options.registry.clone(), false);
        let before = before.context(|| &name)?;
        let mut writer = ZarrWriter {
            stage,
            options,
            nodes: BTreeMap::new(),
            arrays: HashMap::new(),
            dimensions: BTreeMap::new(),
            shards: OpenShards::default(),
            consolidated: None,
            by_netcdf: false,
            chunks: 0,
        };
        writer.look_at_root().context(|| &name)?;
        Ok((before, writer))
    }

    /// Finds out of which version and flavour the hierarchy is.
    fn look_at_root(&mut self) -> Result<()> {
        if self.stage.get(".nczarr")?.is_some() {
            return Err(older());
        }
        let root = self.load("", false)?;
        let Some(root) = root else {
            // Only folders with nodes in them: each of the version that they are of.
            self.options.flavour = Flavour::Plain;
            return Ok(());
        };
        if nczarr::is_older(&root.metadata, &root.attributes) {
            return Err(older());
        }
        self.by_netcdf = root.attributes.iter().any(|(name, _)| name == "_NCProperties");
        self.options.version = root.version;
        let marked = nczarr::is_marked(&root.attributes);
        if marked && root.version == 3 {
            return Err(Error::unsupported("editing drafts of NCZarr in version 3"));
        }
        self.options.flavour = if marked { Flavour::NcZarr } else { Flavour::Plain };
        self.consolidated = match root.version {
            3 => {
                let bytes = self.stage.get(NAMES[0])?.unwrap_or_default();
                Consolidated::v3(&Json::parse(&bytes)?).transpose()?
            }
            _ => match self.stage.get(".zmetadata")? {
                Some(bytes) => Some(Consolidated::v2(&Json::parse(&bytes)?)?),
                None => None,
            },
        };
        Ok(())
    }

    fn is_nczarr(&self) -> bool {
        self.options.flavour == Flavour::NcZarr
    }

    /// Reads the documents of a node as the transaction has made them.
    fn load(&self, path: &str, nczarr: bool) -> Result<Option<Node>> {
        let document = |name: &str| {
            let key = stored::join(path, name);
            let bytes = self.stage.get(&key)?;
            bytes.map(|bytes| Json::parse(&bytes).context(|| key)).transpose()
        };
        let node = stored::Node::new(NAMES.map(document))?;
        let node = node.map(|node| Node::of_stored(node, nczarr)).transpose();
        node.context(|| format!("object /{path}"))
    }

    /// The node at a path, if there is one. A folder without documents but with nodes in it counts as a group.
    fn find(&mut self, path: &str) -> Result<Option<&mut Node>> {
        if !self.nodes.contains_key(path) {
            let mut found = self.load(path, self.is_nczarr())?;
            if found.is_none() && self.holds_nodes(path)? {
                let mut group = Node::group(self.options.version);
                group.changed = false;
                found = Some(group);
            }
            self.nodes.insert(path.to_owned(), found);
        }
        Ok(self.nodes.get_mut(path).and_then(Option::as_mut))
    }

    fn holds_nodes(&self, path: &str) -> Result<bool> {
        let made = self.nodes.iter().any(|(p, node)| node.is_some() && is_below(p, path));
        if made || self.stage.is_new() {
            return Ok(made);
        }
        let gone = |folder: &str| matches!(self.nodes.get(folder), Some(None));
        let keys = self.stage.list(path)?;
        let mut folders = keys.iter().filter_map(|key| stored::folder_of_document(key));
        Ok(folders.any(|folder| folder != path && !gone(folder)))
    }

    /// The node at a path, which is there.
    fn node(&mut self, path: &str) -> Result<&mut Node> {
        match self.find(path)? {
            Some(node) => Ok(node),
            None => Err(Error::new(ErrorKind::NotFound, format!("there is no object /{path}"))),
        }
    }

    /// What is needed to write chunks of an array.
    fn array(&self, path: &str) -> Result<Arc<ArrayState>> {
        if let Some(known) = self.arrays.get(path) {
            return Ok(known.clone());
        }
        let loaded;
        let node = match self.nodes.get(path) {
            Some(known) => known.as_ref(),
            None => {
                loaded = self.load(path, self.is_nczarr())?;
                loaded.as_ref()
            }
        };
        match node {
            Some(node) if node.kind == NodeKind::Array => {
                Ok(Arc::new(ArrayState::new(node, self.by_netcdf, &self.options)?))
            }
            Some(_) => Err(Error::invalid(format!("/{path} is no array"))),
            None => Err(Error::new(ErrorKind::NotFound, format!("there is no array /{path}"))),
        }
    }

    /// All documents that changed, those of the root last.
    fn documents(&self) -> Vec<(String, Bytes)> {
        let mut documents = Vec::new();
        let mut fresh: BTreeMap<String, Option<Members>> = BTreeMap::new();
        let changed = |node: &Option<Node>| node.as_ref().is_none_or(|n| n.changed);
        // In order, the root comes first, and so is last in the other.
        for (path, node) in self.nodes.iter().rev() {
            if !changed(node) {
                continue;
            }
            let Some(node) = node else {
                fresh.insert(path.clone(), None);
                continue;
            };
            let own = node.documents(path.is_empty());
            let members = own.iter().map(|(name, json)| ((*name).to_owned(), json.clone())).collect();
            fresh.insert(path.clone(), Some(members));
            documents.extend(own.into_iter().map(|(name, json)| (stored::join(path, name), json)));
        }
        if let Some(consolidated) = self.consolidated.as_ref().filter(|_| !fresh.is_empty()) {
            consolidate(consolidated, &fresh, self.options.version, &mut documents);
        }
        documents.into_iter().map(|(key, json)| (key, node::bytes(&json))).collect()
    }
}

/// Whether a path is below another one.
fn is_below(path: &str, group: &str) -> bool {
    match group {
        "" => !path.is_empty(),
        group => path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/')),
    }
}

fn older() -> Error {
    Error::unsupported("editing NCZarr as netCDF-C wrote it before 4.9.3")
        .hint("copy it: hyperslab copy SRC DST --to nczarr")
}

/// Puts fresh documents into the consolidated ones, and these where they belong.
fn consolidate(
    before: &Consolidated,
    fresh: &BTreeMap<String, Option<Members>>,
    version: u8,
    documents: &mut Vec<(String, Json)>,
) {
    let mut nodes: BTreeMap<&str, Members> = BTreeMap::new();
    for (path, stored) in &before.nodes {
        let named = NAMES.iter().zip(stored);
        let members = named.filter_map(|(name, json)| Some(((*name).to_owned(), json.clone()?))).collect();
        nodes.insert(path, members);
    }
    for (path, made) in fresh {
        match made {
            Some(members) => nodes.insert(path, members.clone()),
            None => nodes.remove(path.as_str()),
        };
    }
    let text = |t: &str| Json::Text(t.to_owned());
    if version == 2 {
        let mut members = Vec::new();
        for (path, named) in nodes {
            members.extend(named.into_iter().map(|(name, json)| (stored::join(path, &name), json)));
        }
        let document = Json::Map(vec![
            ("metadata".into(), Json::Map(members)),
            ("zarr_consolidated_format".into(), Json::Integer(1)),
        ]);
        // In front of what makes the root a node.
        let last = documents.iter().position(|(key, _)| key == NAMES[2]).unwrap_or(documents.len());
        documents.insert(last, (".zmetadata".into(), document));
        return;
    }
    let root = nodes.get("").and_then(|named| named.first()).map(|(_, json)| json.clone());
    let members: Members = nodes
        .into_iter()
        .filter(|(path, _)| !path.is_empty())
        .filter_map(|(path, named)| Some((path.to_owned(), named.into_iter().next()?.1)))
        .collect();
    let inline = Json::Map(vec![
        ("kind".into(), text("inline")),
        ("must_understand".into(), Json::Bool(false)),
        ("metadata".into(), Json::Map(members)),
    ]);
    let Some(Json::Map(mut root)) = root else { return };
    root.retain(|(name, _)| name != "consolidated_metadata");
    root.push(("consolidated_metadata".into(), inline));
    documents.retain(|(key, _)| key != NAMES[0]);
    documents.push((NAMES[0].to_owned(), Json::Map(root)));
}

/// The key of a path: names that Zarr may have.
fn key_of(path: &ObjectPath) -> Result<String> {
    let mut key = String::new();
    for name in path.names() {
        let text = name.as_str().ok_or_else(|| {
            Error::unsupported(format_args!("the name {name}, which is not UTF-8, in Zarr"))
        })?;
        let refused = text.bytes().all(|b| b == b'.')
            || text.starts_with("__")
            || NAMES.contains(&text)
            || matches!(text, ".zmetadata" | stage::FOLDER);
        if refused || check_key(text).is_err() {
            return Err(Error::unsupported(format_args!("the name {text:?} in Zarr")));
        }
        key = stored::join(&key, text);
    }
    Ok(key)
}

impl HierarchyWriter for ZarrWriter {
    fn format(&self) -> &'static str {
        match (self.options.flavour, self.options.version) {
            (Flavour::NcZarr, _) => "NCZarr",
            (_, 2) => "Zarr 2",
            _ => "Zarr 3",
        }
    }

    fn support(&self, change: &Change) -> Result<Support> {
        structure::support(change, &self.options)
    }

    fn apply(&mut self, change: Change) -> Result<()> {
        structure::apply(self, change)
    }

    fn layout(&self, array: &ObjectPath) -> Result<WriteLayout> {
        Ok(self.array(&key_of(array)?)?.layout.clone())
    }

    fn flatten(&mut self, array: &ObjectPath, content: &Content) -> Result<Bytes> {
        let state = self.array(&key_of(array)?)?;
        let (Content::Objects { elements, .. }, Some(variable)) = (content, &state.variable) else {
            return Err(Error::invalid(format!("elements of {array} that are not of any length")));
        };
        // A text or bytes: the length, eight bytes, and what it is the length of.
        let values: Vec<&[u8]> = elements.iter().map(|e| e.get(8..).unwrap_or(&[])).collect();
        Ok(variable.kind.encode(&values, &state.layout.chunk)?.into())
    }

    fn write_chunks(&mut self, array: &ObjectPath, chunks: Vec<EncodedChunk>) -> Result<()> {
        let path = key_of(array)?;
        let state = self.array(&path)?;
        self.arrays.insert(path.clone(), state.clone());
        self.chunks += chunks.len() as u64;
        chunk::write(self, &path, &state, chunks)
    }

    fn commit(mut self: Box<Self>) -> Result<Committed> {
        chunk::flush(&mut self, None)?;
        let documents = self.documents();
        let chunks = self.chunks;
        let bytes = self.stage.commit(documents)?;
        Ok(Committed { bytes, chunks })
    }
}
