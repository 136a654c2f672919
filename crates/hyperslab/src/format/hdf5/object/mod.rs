//! Object headers (specification, IV.A): versions 1 and 2, continued anywhere in the file.

mod header;
mod shared;
#[cfg(test)]
mod tests;

pub use header::{Header, Times};
pub use shared::{IndexKind as SharedIndexKind, SharedTable};

use super::file::Space;
use super::message::attribute::{AttributeInfo, Part};
use super::message::link::{LinkInfo, SymbolTable};
use super::message::shared::Shared;
use super::message::{Message, datatype, kind};
use crate::dtype::DType;
use crate::error::{Context, Error, Result};
use crate::model::NodeKind;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::{Arc, OnceLock};

/// Bytes of parsed object headers kept in memory.
const CACHED: u64 = 64 << 20;

/// What a header takes at least; tells the cache how many to expect.
const USUAL: u64 = 512;

/// The object headers of one file, parsed once each.
#[derive(Debug)]
pub struct Objects {
    space: Space,
    /// `None` while the file may change.
    cache: Option<Cache<u64, Arc<Header>, Bulk>>,
    /// Where the shared message table is and how many indexes it has.
    shared: OnceLock<(u64, u8)>,
    table: OnceLock<Arc<SharedTable>>,
}

#[derive(Clone, Debug)]
struct Bulk;

impl Weighter<u64, Arc<Header>> for Bulk {
    fn weight(&self, _: &u64, header: &Arc<Header>) -> u64 {
        header.memory()
    }
}

impl Objects {
    /// The objects in `space`; nothing is kept between calls if the file is `live`.
    pub fn new(space: Space, live: bool) -> Self {
        let cache = (!live).then(|| Cache::with_weighter((CACHED / USUAL) as usize, CACHED, Bulk));
        Objects { space, cache, shared: OnceLock::new(), table: OnceLock::new() }
    }

    /// Whether the file may change, so that nothing is kept.
    pub fn is_live(&self) -> bool {
        self.cache.is_none()
    }

    /// Where they are.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Says where the shared message table is (from the superblock extension).
    pub fn set_shared_table(&self, address: u64, indexes: u8) {
        // Said once, at opening.
        let _ = self.shared.set((address, indexes));
    }

    /// The shared message table, where the file has one.
    pub fn shared_table(&self) -> Result<Option<Arc<SharedTable>>> {
        let Some(&(address, indexes)) = self.shared.get() else { return Ok(None) };
        if let Some(table) = self.table.get() {
            return Ok(Some(table.clone()));
        }
        let table = Arc::new(SharedTable::open(&self.space.scoped(), address, indexes)?);
        Ok(Some(if self.cache.is_some() { self.table.get_or_init(|| table).clone() } else { table }))
    }

    /// The header at `address`.
    pub fn header(&self, address: u64) -> Result<Arc<Header>> {
        let Some(cache) = &self.cache else {
            return Header::open(&self.space.scoped(), address).map(Arc::new);
        };
        if let Some(header) = cache.get(&address) {
            return Ok(header);
        }
        let header = Arc::new(Header::open(&self.space.scoped(), address)?);
        cache.insert(address, header.clone());
        Ok(header)
    }

    /// Brings the headers at `addresses` into the block cache, and what they lead to: one batch a level, where a request
    /// takes long.
    pub fn prefetch(&self, addresses: &[u64]) {
        let known = |address: &&u64| self.cache.as_ref().is_some_and(|cache| cache.peek(*address).is_some());
        if !self.space.is_remote() {
            return;
        }
        let addresses: Vec<u64> = addresses.iter().filter(|a| !known(a)).copied().collect();
        self.space.prefetch(addresses.iter().map(|&address| (address, header::USUAL)));
        let space = self.space.scoped();
        let begun: Vec<_> = addresses.iter().filter_map(|&a| Header::begin(&space, a).ok()).collect();
        space.prefetch(begun.iter().flat_map(|(_, continuations)| continuations.iter().copied()));
        // What does not lie in the headers: heaps and trees of attributes and links.
        let mut places = Vec::new();
        let headers: Vec<_> = addresses.iter().filter_map(|&address| self.header(address).ok()).collect();
        for header in &headers {
            let sizes = space.sizes();
            for message in &header.messages {
                let (heap, tree) = match message.kind {
                    kind::ATTRIBUTE_INFO => match AttributeInfo::parse(message.cursor(), sizes) {
                        Ok(info) => (info.heap, info.names),
                        Err(_) => continue,
                    },
                    kind::LINK_INFO => match LinkInfo::parse(message.cursor(), sizes) {
                        Ok(info) => (info.heap, info.names),
                        Err(_) => continue,
                    },
                    kind::SYMBOL_TABLE => match SymbolTable::parse(message.cursor(), sizes) {
                        Ok(table) => (table.heap, table.btree),
                        Err(_) => continue,
                    },
                    _ => continue,
                };
                places.extend([(heap, header::USUAL), (tree, header::USUAL)]);
            }
        }
        space.prefetch(places);
    }

    /// What the object is.
    pub fn kind(&self, header: &Header) -> Result<NodeKind> {
        let has = |kind| header.find(kind).is_some();
        if has(kind::SYMBOL_TABLE) || has(kind::LINK_INFO) {
            Ok(NodeKind::Group)
        } else if has(kind::DATATYPE) && has(kind::DATASPACE) {
            Ok(NodeKind::Array)
        } else if has(kind::DATATYPE) {
            Ok(NodeKind::Datatype)
        } else {
            Err(header.corrupt("neither a group, nor a dataset, nor a datatype"))
        }
    }

    /// The message itself where it is shared, else a copy.
    pub fn resolve(&self, message: &Message) -> Result<Message> {
        if !message.is_shared() {
            return Ok(message.clone());
        }
        let mut c = message.cursor();
        match Shared::parse(&mut c, self.space.sizes())? {
            Shared::Heap(id) => self.shared_message(message.kind, &id),
            Shared::Object(address) => {
                let name = kind::name(message.kind);
                let header = self.header(address).context(|| format!("shared {name}"))?;
                let found = header.find(message.kind).cloned();
                let found = found.ok_or_else(|| header.corrupt(format!("no {name}, which others share")))?;
                if found.is_shared() {
                    // The reference library does not write this; following it could go round in circles.
                    return Err(header.corrupt(format!("a shared {name} that is shared itself")));
                }
                Ok(found)
            }
        }
    }

    /// A message in the heap of the shared message table.
    pub fn shared_message(&self, kind: u16, id: &[u8; 8]) -> Result<Message> {
        let name = kind::name(kind);
        match self.shared_table()? {
            Some(table) => table.message(kind, id).context(|| format!("shared {name}")),
            None => Err(Error::corrupt(name, 0, "shared through a table that the file does not have")),
        }
    }

    /// The part of an attribute message, resolved as `resolve` does.
    pub fn resolve_part(&self, kind: u16, part: &Part) -> Result<Message> {
        let flags = if part.shared { 0x02 } else { 0 };
        let bytes = part.bytes.clone();
        self.resolve(&Message { kind, flags, creation_order: None, bytes, offset: part.offset })
    }

    /// The element type in a datatype message.
    pub fn datatype(&self, message: &Message) -> Result<DType> {
        let resolved;
        let message = if message.is_shared() {
            resolved = self.resolve(message)?;
            &resolved
        } else {
            message
        };
        datatype::parse(&mut message.cursor(), self.space.limits())
    }
}
