//! An HDF5 file as the rest of the engine sees it.

use super::attribute;
use super::cache_image::Overlay;
use super::dataset::Dataset;
use super::file::Space;
use super::free_space;
use super::group;
use super::heap::GlobalHeap;
use super::idle;
use super::index::{self, Surroundings};
use super::message::extension::{self, BtreeK, CacheImage, FileSpace, SharedTableMessage};
use super::message::{dataspace, kind};
use super::object::{Header, Objects};
use super::parse::{Cursor, UNDEFINED};
use super::reference::{self, Ranks};
use super::superblock::{self, Superblock};
use crate::dtype::{DType, ReferenceKind};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::{
    ArrayMeta, AttributeEntry, ChunkGrid, ChunkOf, Fault, FileInfo, HeapRef, Hierarchy, Layout, Link, Links,
    NodeId, NodeKind, Reference, Retry, Stacked, Storage, Writer,
};
use crate::shape::Name;
use crate::source::{CachedSource, Latency, NearSource, Neighbours, Source, Traffic};
use bytes::Bytes;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// Files that this one names and that are kept open.
const NEIGHBOURS_KEPT: usize = 64;

/// Bytes of metadata blocks kept in memory.
const BLOCKS_KEPT: u64 = 64 << 20;

/// An open HDF5 file. `Send` and `Sync`: no lock is held while bytes are read.
#[derive(Debug)]
pub struct Hdf5 {
    superblock: Superblock,
    extension: Extension,
    space: Space,
    objects: Objects,
    heap: GlobalHeap,
    neighbours: Neighbours,
    /// Neighbours opened so far, by name.
    opened: Cache<Name, Arc<Hdf5>>,
    /// How it is read while it is written; `None` where it is read as it was when it was opened.
    retry: Option<Retry>,
    /// The identity of the source when it was opened.
    id: String,
}

/// What the superblock extension says.
#[derive(Debug, Default)]
struct Extension {
    shared: Option<SharedTableMessage>,
    btree_k: Option<BtreeK>,
    driver: Option<Name>,
    file_space: Option<FileSpace>,
    cache_image: Option<CacheImage>,
    /// All messages, for people.
    messages: Vec<&'static str>,
}

impl Hdf5 {
    /// Opens the HDF5 file in `source`, which reaches other files through `neighbours`.
    pub fn open(source: Arc<dyn Source>, neighbours: Neighbours, limits: Limits) -> Result<Arc<Hdf5>> {
        Hdf5::open_as(source, neighbours, limits, None)
    }

    /// The same for a file that may be written while it is read. It is read live if its superblock says that a SWMR writer
    /// has it open: the end of the file is where the source ends at the moment, nothing is kept from call to call, and
    /// what a writer can tear is read again. Otherwise it is read like any file. The files that it names are opened
    /// likewise, each as its own superblock says.
    pub fn open_live(source: Arc<dyn Source>, neighbours: Neighbours, limits: Limits) -> Result<Arc<Hdf5>> {
        Hdf5::open_again(source, neighbours, limits, Retry::new(true))
    }

    fn open_again(
        source: Arc<dyn Source>,
        neighbours: Neighbours,
        limits: Limits,
        retry: Retry,
    ) -> Result<Arc<Hdf5>> {
        // The superblock itself may be caught half written, when the writer opens or closes the file.
        let live = retry.with_live(true).run(|| match Superblock::find(source.as_ref())? {
            Some(offset) => Ok(Superblock::open(source.as_ref(), offset)?.is_live()),
            None => Ok(false),
        })?;
        let retry = retry.with_live(live);
        let open = || Hdf5::open_as(source.clone(), neighbours.clone(), limits.clone(), Some(retry.clone()));
        retry.run(open)
    }

    fn open_as(
        source: Arc<dyn Source>,
        neighbours: Neighbours,
        limits: Limits,
        retry: Option<Retry>,
    ) -> Result<Arc<Hdf5>> {
        limits.check_depth("files that name files", neighbours.depth())?;
        let Some(offset) = Superblock::find(source.as_ref())? else {
            return Err(Error::new(ErrorKind::Corrupt, "no HDF5 signature found"));
        };
        let superblock = Superblock::open(source.as_ref(), offset)?;
        let length = source.len()?;
        let id = source.id()?;
        superblock.check_driver(source.as_ref())?;
        // Its writer may have closed it since it was found live: it is still read anew each time.
        let growing = retry.as_ref().is_some_and(Retry::is_live);
        let live = growing || superblock.is_live() && source.hints().latency != Latency::Remote;
        // Metadata comes in small pieces; what is in memory already, or may change, is not kept twice.
        let (metadata, data): (Arc<dyn Source>, Arc<dyn Source>) = match source.hints().latency {
            Latency::Memory => (source.clone(), source.clone()),
            _ if live => (source.clone(), source.clone()),
            latency => {
                let cached = Arc::new(CachedSource::new(source.clone(), BLOCKS_KEPT)?);
                let near = || Arc::new(NearSource::new(cached.clone()));
                let data = if latency == Latency::Remote { near() } else { source.clone() };
                (cached, data)
            }
        };
        let limits = Arc::new(limits);
        let end = if growing { length } else { superblock.data_end(length) };
        let space = |metadata| {
            let space = Space::new(metadata, data.clone(), offset, end, superblock.sizes, limits.clone());
            if growing { space.growing() } else { space }
        };
        let mut objects = Objects::new(space(metadata.clone()), live);
        let extension = match superblock.extension {
            Some(address) => Extension::open(&objects, address).context(|| "superblock extension"),
            None => Ok(Extension::default()),
        };
        // One of several files is shorter than the whole that its superblock describes: the name of the driver that
        // spread it, in the extension, says more than that it is short.
        if !growing && !matches!(&extension, Err(e) if e.kind() == ErrorKind::Unsupported) {
            superblock.check_end(length)?;
        }
        let extension = extension?;
        if let Some(image) = extension.cache_image.filter(|image| image.address != UNDEFINED) {
            let overlay =
                Overlay::open(objects.space(), metadata, image).context(|| "superblock extension")?;
            objects = Objects::new(space(Arc::new(overlay)), live);
        }
        let space = objects.space().clone();
        if let Some(table) = extension.shared {
            objects.set_shared_table(table.address, table.indexes);
        }
        let heap = if live { GlobalHeap::live(space.clone()) } else { GlobalHeap::new(space.clone()) };
        let opened = Cache::new(NEIGHBOURS_KEPT);
        Ok(Arc::new(Hdf5 { superblock, extension, space, objects, heap, neighbours, opened, retry, id }))
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The object headers.
    pub(in crate::format::hdf5) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// B-tree K values that hold for the file.
    pub(in crate::format::hdf5) fn btree_k(&self) -> BtreeK {
        let usual = BtreeK { chunk: 32, group_internal: 16, group_leaf: 4 };
        match (self.extension.btree_k, self.superblock.btree_k) {
            (Some(k), _) => k,
            (None, Some((group_leaf, group_internal, chunk))) => {
                BtreeK { chunk: chunk.unwrap_or(usual.chunk), group_internal, group_leaf }
            }
            (None, None) => usual,
        }
    }

    /// Fails if the file has structures beside its objects that a change of these would make untrue.
    pub(in crate::format::hdf5) fn check_editable(&self) -> Result<()> {
        let extension = &self.extension;
        let space = extension.file_space.as_ref();
        let what = if extension.shared.is_some() {
            "a table of shared messages"
        } else if extension.cache_image.is_some() {
            "a metadata cache image"
        } else if space.is_some_and(|s| s.persistent || !s.managers.is_empty()) {
            "free-space managers that are kept in it"
        } else if space.is_some_and(|s| s.strategy == "paged") {
            "space that is managed in pages"
        } else if extension.driver.is_some() {
            "the word of a file driver"
        } else if extension.messages.contains(&kind::name(kind::FILE_SPACE)) && space.is_none() {
            "a file space message of a version that is not known"
        } else {
            return Ok(());
        };
        Err(Error::unsupported(format!("changing a file with {what}"))
            .hint("write it anew: hyperslab copy --repack, or h5repack"))
    }

    /// Whether the file in `source`, which was found where this one was, is this one: not another that took its place,
    /// and not changed, unless changes are followed.
    fn is_same(&self, source: &dyn Source) -> bool {
        match self.objects.is_live() {
            true => self.space.data().is_current().unwrap_or(false),
            false => source.id().is_ok_and(|id| id == self.id),
        }
    }

    fn surroundings<'a>(&'a self, space: &'a Space) -> Surroundings<'a> {
        let live = self.objects.is_live();
        Surroundings { space, heap: &self.heap, neighbours: &self.neighbours, live }
    }

    fn header(&self, node: &NodeId) -> Result<Arc<Header>> {
        match node {
            NodeId::Address(address) => self.objects.header(*address),
            _ => Err(Error::invalid(format!("{node} is not of an HDF5 file"))),
        }
    }
}

/// What a dataset says of itself.
fn meta(dataset: Dataset, grid: ChunkGrid, layout: Layout) -> Result<ArrayMeta> {
    let fill_element = dataset.fill_element()?;
    let notes = vec![
        ("layout message", format!("version {}", dataset.layout.version)),
        ("fill time", dataset.fill.time.to_string()),
        ("allocation time", dataset.fill.allocation.to_string()),
    ];
    let Dataset { dtype, committed, space, fill, filters, .. } = dataset;
    let committed = committed.map(NodeId::Address);
    Ok(ArrayMeta { dtype, committed, space, grid, layout, fill: fill.value, fill_element, filters, notes })
}

impl Extension {
    fn open(objects: &Objects, address: u64) -> Result<Extension> {
        let sizes = objects.space().sizes();
        let header = objects.header(address)?;
        let mut extension = Extension::default();
        for message in &header.messages {
            let c = message.cursor();
            match message.kind {
                kind::SHARED_TABLE => extension.shared = Some(SharedTableMessage::parse(c, sizes)?),
                kind::BTREE_K => extension.btree_k = Some(BtreeK::parse(c)?),
                kind::DRIVER_INFO => {
                    let name = extension::driver(c)?;
                    superblock::check_driver(name.as_bytes())?;
                    extension.driver = Some(name);
                }
                // What it says is of use to writers; a version that is not known does no harm.
                kind::FILE_SPACE => extension.file_space = FileSpace::parse(c, sizes).ok(),
                kind::CACHE_IMAGE => extension.cache_image = Some(CacheImage::parse(c, sizes)?),
                _ => {}
            }
            extension.messages.push(kind::name(message.kind));
        }
        Ok(extension)
    }
}

impl Ranks for Hdf5 {
    fn rank(&self, address: u64) -> Result<usize> {
        let header = self.objects.header(address)?;
        let message = header
            .find(kind::DATASPACE)
            .ok_or_else(|| header.corrupt("a region of an object that is not a dataset"))?;
        let message = self.objects.resolve(message)?;
        Ok(dataspace::parse(message.cursor(), self.space.sizes())?.dims().len())
    }
}

impl Hierarchy for Hdf5 {
    fn info(&self) -> FileInfo {
        let s = &self.superblock;
        let mut notes = vec![
            ("addresses", format!("{} bytes", s.sizes.offset)),
            ("lengths", format!("{} bytes", s.sizes.length)),
        ];
        if s.stored_base != s.offset {
            let text = format!(
                "{:#x} is stored, {:#x} is right: the user block was changed",
                s.stored_base, s.offset
            );
            notes.push(("base address", text));
        }
        notes.push(("end of file", format!("{} bytes", s.end)));
        if self.space.end() != s.end {
            notes.push(("length", format!("{} bytes", self.space.end())));
        }
        notes.push(("root group", format!("object header at {:#x}", s.root)));
        if let Some((leaf, internal, chunk)) = s.btree_k {
            let mut text = format!("groups {leaf} (leaf), {internal} (internal)");
            if let Some(chunk) = chunk {
                text.push_str(&format!(", chunks {chunk}"));
            }
            notes.push(("B-tree K", text));
        }
        if s.flags != 0 {
            let mut words = Vec::new();
            if s.is_open_for_writing() {
                words.push("open for writing, or not closed");
            }
            if s.is_live() {
                words.push("a single writer may be adding to it (SWMR)");
            }
            notes.push(("status", format!("flags {:#x}: {}", s.flags, words.join("; "))));
        }
        if let Some(driver) = &self.extension.driver {
            notes.push(("driver", driver.to_string()));
        }
        if let Some(k) = self.extension.btree_k {
            let text = format!(
                "groups {} (leaf), {} (internal), chunks {}",
                k.group_leaf, k.group_internal, k.chunk
            );
            notes.push(("B-tree K", text));
        }
        if let Some(space) = &self.extension.file_space {
            let mut text = format!("{}, threshold {} bytes", space.strategy, space.threshold);
            if let Some(page) = space.page_size {
                text.push_str(&format!(", pages of {page} bytes"));
            }
            if space.persistent {
                text.push_str(", free space is kept");
            }
            notes.push(("file space", text));
        }
        if self.extension.shared.is_some()
            && let Ok(Some(table)) = self.objects.shared_table()
        {
            notes.push(("shared messages", table.describe()));
        }
        if let Some(image) = self.extension.cache_image {
            notes.push(("metadata cache image", format!("{} bytes at {:#x}", image.length, image.address)));
        }
        if !self.extension.messages.is_empty() {
            notes.push(("superblock extension", self.extension.messages.join(", ")));
        }
        FileInfo { format: "HDF5", user_block: s.offset, version: s.version.into(), notes }
    }

    fn root(&self) -> NodeId {
        NodeId::Address(self.superblock.root)
    }

    fn kind(&self, node: &NodeId) -> Result<NodeKind> {
        self.objects.kind(&*self.header(node)?)
    }

    fn links(&self, group: &NodeId) -> Result<Links> {
        group::links(&self.objects, &*self.header(group)?)
    }

    fn link(&self, group: &NodeId, name: &Name) -> Result<Option<Link>> {
        group::link(&self.objects, &*self.header(group)?, name)
    }

    fn attributes(&self, node: &NodeId) -> Result<Vec<AttributeEntry>> {
        attribute::attributes(&self.objects, &*self.header(node)?)
    }

    fn array(&self, node: &NodeId) -> Result<(ArrayMeta, Storage)> {
        let dataset = Dataset::parse(&self.objects, &*self.header(node)?)?;
        // Each array has a budget of its own: a file may be open for long, and its arrays be opened any number of times.
        let space = self.space.scoped();
        let (grid, layout, storage) =
            index::open(self.surroundings(&space), &dataset).context(|| "data layout")?;
        Ok((meta(dataset, grid, layout)?, storage))
    }

    fn stacked(&self, node: &NodeId, chunk_of: ChunkOf<'_>) -> Result<Option<Stacked>> {
        let dataset = Dataset::parse(&self.objects, &*self.header(node)?)?;
        let space = self.space.scoped();
        let found =
            index::stacked(self.surroundings(&space), &dataset, chunk_of).context(|| "data layout")?;
        let Some(found) = found else { return Ok(None) };
        let layout = Layout::Virtual(found.slots.len());
        let meta = meta(dataset, ChunkGrid::Regular(found.chunk), layout)?;
        Ok(Some(Stacked { meta, source: found.source, slots: found.slots }))
    }

    fn datatype(&self, node: &NodeId) -> Result<DType> {
        let header = self.header(node)?;
        match header.find(kind::DATATYPE) {
            Some(message) => self.objects.datatype(message),
            None => Err(header.corrupt("no datatype message")),
        }
    }

    fn heap_ref(&self, stored: &[u8]) -> Result<Option<(u64, HeapRef)>> {
        let mut c = Cursor::new(stored, "variable-length element", 0);
        let count = u64::from(c.u32()?);
        let address = c.address(self.space.sizes())?;
        let index = c.u32()?;
        if address == 0 || address == UNDEFINED {
            return Ok(None);
        }
        Ok(Some((count, HeapRef { address, index })))
    }

    fn heap_objects(&self, refs: &[HeapRef]) -> Result<Vec<Bytes>> {
        self.heap.objects(refs)
    }

    fn reference(&self, kind: ReferenceKind, stored: &[u8]) -> Result<Reference> {
        reference::resolve(&self.space, &self.heap, self, kind, stored)
    }

    fn neighbour(&self, file: &Name) -> Result<Option<Arc<dyn Hierarchy>>> {
        let known = self.opened.get(file);
        if let (Some(found), None) = (&known, &self.retry) {
            return Ok(Some(found.clone()));
        }
        let Some(found) = self.neighbours.find(file)? else { return Ok(None) };
        if let Some(known) = known.filter(|known| known.is_same(found.source.as_ref())) {
            return Ok(Some(known));
        }
        let limits = self.space.limits().as_ref().clone();
        let opened = match &self.retry {
            Some(retry) => Hdf5::open_again(found.source, found.neighbours, limits, retry.clone()),
            None => Hdf5::open(found.source, found.neighbours, limits),
        };
        let opened = opened.context(|| format!("file {file}"))?;
        self.opened.insert(file.clone(), opened.clone());
        Ok(Some(opened))
    }

    fn retry(&self) -> Option<&Retry> {
        self.retry.as_ref()
    }

    fn writer(&self) -> Result<Writer> {
        let look = || {
            let now = Superblock::open(self.space.data().as_ref(), self.superblock.offset)?;
            let then = &self.superblock;
            if (now.version, now.root, now.extension) != (then.version, then.root, then.extension) {
                let text = "another file was written over it: its superblock has another root";
                return Err(Error::new(ErrorKind::Changed, text).at("superblock", now.offset));
            }
            // One that is closed is as long as it says; a SWMR writer has it so when it closes it.
            let whole = self.objects.is_live() || self.space.data().len()? == now.end;
            Ok(match now.version {
                _ if now.is_live() => Writer::Swmr,
                _ if now.is_open_for_writing() => Writer::Alone,
                3.. if whole => Writer::None,
                // Writers of older files leave no word.
                _ if whole => Writer::Silent,
                _ => Writer::Unknown,
            })
        };
        match &self.retry {
            Some(retry) => retry.run(look),
            None => look(),
        }
    }

    fn traffic(&self) -> Traffic {
        self.space.traffic()
    }

    fn check(&self, fault: &mut dyn FnMut(Fault)) {
        let mut report = |error: Error| fault(Fault { object: None, error });
        // Superblock and extension were verified when the file was opened.
        match self.objects.shared_table() {
            Ok(Some(table)) => table.check(&mut report),
            Ok(None) => {}
            Err(e) => report(e),
        }
        for &manager in self.extension.file_space.iter().flat_map(|space| &space.managers) {
            if let Err(e) = free_space::check(&self.space, manager) {
                report(e.context("file space"));
            }
        }
    }

    fn check_node(&self, node: &NodeId, fault: &mut dyn FnMut(Fault)) {
        // A header that cannot be read has said so to others.
        if let Ok(header) = self.header(node) {
            idle::check(&self.space, &header, &mut |error| {
                fault(Fault { object: Some(node.clone()), error })
            });
        }
    }
}
