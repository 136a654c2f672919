//! Writing: new files of any format, and edits of files that are there. All of it is a [`Transaction`], of which nothing is
//! seen before it is committed.

mod cdl;
mod elements;
mod fit;
mod format;
mod fresh;
#[cfg(test)]
mod hdf5_tests;
mod staged;
#[cfg(test)]
mod store_tests;
#[cfg(test)]
mod tests;

pub use cdl::Cdl;
pub(crate) use elements::content as content_of;
pub use fit::Fit;
pub use format::{CreateOptions, Format};

use crate::array::{Address, Array, File, Location, OpenOptions};
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::exec::encode::{EncodeOptions, EncodeStats, NewChunk, encode};
use crate::format::hdf5::superblock::Superblock;
use crate::format::hdf5::write::Hdf5Writer;
use crate::format::netcdf3;
use crate::format::zarr::write::{ZarrOptions, ZarrWriter};
use crate::model::Dataspace;
use crate::model::write::{
    ArraySpec, AttributeSpec, Change, Committed, Content, HierarchyWriter, ObjectPath, Support, WriteLayout,
};
use crate::source::store::ZipWriter;
use crate::source::write::{WriteFile, WriteOptions};
use crate::source::{DirectoryStore, Neighbours, Source};
use crate::staged::{StagedArray, Values};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a change is tried again.
const AGAIN: Duration = Duration::from_secs(30);

/// What became of the elements of an array in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is new, and nothing was written to it.
    Fresh,
    /// Something was written to it, or its extents changed.
    Written,
}

/// A set of changes of one file, of which nothing is seen before [`commit`](Transaction::commit). Dropped, nothing
/// happened.
#[derive(Debug)]
pub struct Transaction {
    writer: Box<dyn HierarchyWriter>,
    /// The file as it was before; `None` for a new one.
    before: Option<File>,
    states: HashMap<ObjectPath, State>,
    encode: EncodeOptions,
}

/// Begins a new file, or folder, or objects in a store, at an address. It is there once the transaction is committed.
///
/// Fails with [`ErrorKind::AlreadyExists`] if there is something that may not be overwritten.
pub fn create(address: impl Into<Address>, format: Format, options: &CreateOptions) -> Result<Transaction> {
    let address = address.into();
    let writer = format::writer(&address, format, options).context(|| format!("file {}", address.file))?;
    Ok(Transaction {
        writer,
        before: None,
        states: HashMap::new(),
        encode: EncodeOptions {
            threads: options.open.threads,
            cancel: options.open.cancel.clone(),
            batch: options.batch,
        },
    })
}

/// Begins to edit what is at an address.
pub fn edit(address: impl Into<Address>, options: &OpenOptions, write: &WriteOptions) -> Result<Transaction> {
    let address = address.into();
    let name = crate::array::file_name(&address);
    let (before, writer) = begin(&address, options, write).context(|| format!("file {name}"))?;
    Ok(Transaction {
        writer,
        before: Some(File::from_hierarchy(before, name, options)),
        states: HashMap::new(),
        encode: EncodeOptions { threads: options.threads, cancel: options.cancel.clone(), batch: None },
    })
}

/// Edits what is at an address: begins, runs `change`, and commits. Where another writer was faster ([`ErrorKind::Changed`]),
/// all of it is done again with what is there then, for half a minute.
pub fn change<T>(
    address: impl Into<Address>,
    options: &OpenOptions,
    write: &WriteOptions,
    mut change: impl FnMut(&mut Transaction) -> Result<T>,
) -> Result<T> {
    let address = address.into();
    let begun = Instant::now();
    // Different from one writer to the next, so that two of them do not meet again and again.
    let mut pause = Duration::from_millis(5 + u64::from(std::process::id() % 16));
    loop {
        let done = edit(address.clone(), options, write).and_then(|mut transaction| {
            let done = change(&mut transaction)?;
            transaction.commit().map(|_| done)
        });
        match done {
            Err(e) if e.kind() == ErrorKind::Changed && begun.elapsed() < AGAIN => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(500));
            }
            done => return done,
        }
    }
}

type Begun = (Arc<dyn crate::model::Hierarchy>, Box<dyn HierarchyWriter>);

fn begin(address: &Address, options: &OpenOptions, write: &WriteOptions) -> Result<Begun> {
    let mut zarr = ZarrOptions::new(3);
    zarr.sync = write.sync;
    zarr.limits = options.limits.clone();
    zarr.registry = options.registry.clone();
    let path = Location::local_path(address);
    if let Some(path) = path.as_ref().filter(|path| path.is_dir()) {
        let store = DirectoryStore::open(path, &options.limits)?
            .with_locking(write.locking)
            .with_disk(write.disk.clone());
        let (before, writer) = ZarrWriter::edit(Arc::new(store), zarr)?;
        return Ok((before, Box::new(writer)));
    }
    if let Some(path) = path.as_ref().filter(|path| path.is_file()) {
        // Locked, and brought back to a whole state, before anything is read.
        let target = Arc::new(WriteFile::edit(path, write)?);
        let head = target.read_at(0, target.len()?.min(4))?;
        if netcdf3::Version::find(&head).is_some() {
            let (before, writer) = netcdf3::write::edit_file(target, &options.limits)?;
            return Ok((before, Box::new(writer)));
        }
        if Superblock::find(&*target)?.is_some() {
            // Its state before, whatever is written to it until the commit.
            let neighbours = Neighbours::of(path, &options.limits);
            let before = crate::format::open(target.before(), neighbours, options.limits.clone())?;
            let writer = Hdf5Writer::edit(target, options.limits.clone())?;
            return Ok((before, Box::new(writer)));
        }
    }
    match Location::open(address, options)? {
        Location::Store(store) => {
            let store: Arc<dyn crate::source::Store> = match path.filter(|path| path.is_file()) {
                Some(path) => Arc::new(ZipWriter::edit(path, &options.limits, write)?),
                None => store,
            };
            let (before, writer) = ZarrWriter::edit(store, zarr)?;
            Ok((before, Box::new(writer)))
        }
        Location::File(source, _) => Err(Error::unsupported(format_args!("editing {}", source.name()))),
    }
}

impl File {
    /// Begins a new Zarr hierarchy in a store of any kind: see [`create`].
    pub fn create_in(
        store: Arc<dyn crate::source::Store>,
        format: Format,
        options: &CreateOptions,
    ) -> Result<Transaction> {
        let writer = format::writer_in(store, format, options)?;
        let encode = EncodeOptions {
            threads: options.open.threads,
            cancel: options.open.cancel.clone(),
            batch: options.batch,
        };
        Ok(Transaction { writer, before: None, states: HashMap::new(), encode })
    }

    /// Begins to edit the Zarr hierarchy in a store of any kind.
    pub fn edit_in(store: Arc<dyn crate::source::Store>, options: &OpenOptions) -> Result<Transaction> {
        let mut zarr = ZarrOptions::new(3);
        zarr.limits = options.limits.clone();
        zarr.registry = options.registry.clone();
        let name = store.name();
        let (before, writer) = ZarrWriter::edit(store, zarr)?;
        Ok(Transaction {
            writer: Box::new(writer),
            before: Some(File::from_hierarchy(before, name, options)),
            states: HashMap::new(),
            encode: EncodeOptions { threads: options.threads, cancel: options.cancel.clone(), batch: None },
        })
    }
}

impl Transaction {
    /// What is written, such as `Zarr 3`.
    pub fn format(&self) -> &'static str {
        self.writer.format()
    }

    /// The file as it was before; `None` for a new one.
    pub fn before(&self) -> Option<&File> {
        self.before.as_ref()
    }

    /// Sets how chunks are encoded.
    #[must_use]
    pub fn with_encoding(mut self, options: EncodeOptions) -> Self {
        self.encode = options;
        self
    }

    /// What would become of a change in this format.
    pub fn support(&self, change: &Change) -> Result<Support> {
        self.writer.support(change)
    }

    /// Makes a structural change.
    pub fn apply(&mut self, change: Change) -> Result<()> {
        self.check()?;
        let change_of = match &change {
            Change::CreateArray { path, .. } => Some((path.clone(), State::Fresh)),
            Change::Resize { array, .. } => Some((array.clone(), State::Written)),
            Change::Restack(restack) => Some((restack.stack.clone(), State::Written)),
            _ => None,
        };
        let gone = match &change {
            Change::Delete { path } | Change::Rename { from: path, .. } => Some(path.clone()),
            _ => None,
        };
        let copied = match &change {
            Change::CopyObject { to, .. } | Change::Rename { to, .. } => Some(to.clone()),
            _ => None,
        };
        self.writer.apply(change)?;
        if let Some(gone) = gone {
            self.states.retain(|path, _| path.below(&gone).is_none());
            // What was there before is not what is there now.
            self.states.insert(gone, State::Written);
        }
        if let Some(copied) = copied {
            self.states.insert(copied, State::Written);
        }
        if let Some((path, state)) = change_of {
            // The extents of one that nobody wrote to may change.
            let fresh = self.states.get(&path) == Some(&State::Fresh);
            self.states.insert(path, if fresh { State::Fresh } else { state });
        }
        Ok(())
    }

    /// A new group; those above it are there.
    pub fn create_group(&mut self, path: &str) -> Result<()> {
        self.apply(Change::CreateGroup { path: ObjectPath::parse(path)? })
    }

    /// A new array of nothing but its fill value.
    pub fn create_array(&mut self, path: &str, spec: ArraySpec) -> Result<()> {
        self.apply(Change::CreateArray { path: ObjectPath::parse(path)?, spec: Box::new(spec) })
    }

    /// Sets an attribute: a number, a text, or a list of them. A new value takes the place of the old one.
    pub fn set_attribute<'a>(
        &mut self,
        object: &str,
        name: &str,
        value: impl Into<Values<'a>>,
    ) -> Result<()> {
        let attribute = attribute(name, value)?;
        self.apply(Change::SetAttribute { object: ObjectPath::parse(object)?, attribute })
    }

    /// How chunks of an array are encoded, as the array is in this transaction.
    pub fn layout(&self, array: &str) -> Result<WriteLayout> {
        self.layout_of(&ObjectPath::parse(array)?)
    }

    /// The same for an array that may be called what nobody would call it in text.
    pub(crate) fn layout_of(&self, array: &ObjectPath) -> Result<WriteLayout> {
        self.writer.layout(array)
    }

    /// Writes chunks of an array as they come. Each replaces what is there: see [`stage`](Self::stage) for parts of
    /// chunks.
    pub fn write_chunks(
        &mut self,
        array: &ObjectPath,
        chunks: &mut dyn Iterator<Item = Result<NewChunk>>,
    ) -> Result<EncodeStats> {
        self.states.insert(array.clone(), State::Written);
        encode(&mut *self.writer, array, chunks, &self.encode)
    }

    /// An array of the file as it was before, to be changed in memory and written with [`write`](Self::write).
    pub fn stage(&self, path: &str) -> Result<StagedArray> {
        let at = ObjectPath::parse(path)?;
        if self.states.contains_key(&at) {
            return Err(written(&at));
        }
        let before = self.before.as_ref();
        let before =
            before.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no array {path} yet")))?;
        let array = before.array(path)?;
        if matches!(array.meta().grid, crate::model::ChunkGrid::Regular(_)) {
            return StagedArray::over(&array);
        }
        // In the pieces in which it is written.
        StagedArray::over_chunked(&array, &self.writer.layout(&at)?.chunk)
    }

    /// Writes what is changed in `array` to the array at a path, of which it is staged, or all of it to another one. Its
    /// extents become those of `array`.
    ///
    /// An array is written once in a transaction: what was staged before does not know what came after.
    pub fn write(&mut self, path: &str, array: &StagedArray) -> Result<EncodeStats> {
        let at = ObjectPath::parse(path)?;
        let state = self.states.get(&at).copied();
        if state == Some(State::Written) {
            return Err(written(&at));
        }
        let stats = staged::write(self, &at, array, state == Some(State::Fresh))?;
        self.states.insert(at, State::Written);
        Ok(stats)
    }

    /// Writes elements to a selection of an array: one that is there, or one that was made in this transaction.
    pub fn set<'a>(
        &mut self,
        path: &str,
        selection: impl crate::select::IntoSelection,
        values: impl Into<Values<'a>>,
    ) -> Result<EncodeStats> {
        let at = ObjectPath::parse(path)?;
        if self.states.get(&at) == Some(&State::Fresh) {
            let (selection, values) = (selection.into_selection()?, values.into());
            let stats = fresh::write(self, &at, &selection, &values).context(|| format!("array {path}"))?;
            self.states.insert(at, State::Written);
            return Ok(stats);
        }
        let mut staged = self.stage(path)?;
        staged.set(selection, values).context(|| format!("array {path}"))?;
        self.write(path, &staged)
    }

    /// Makes everything durable and visible, all or nothing.
    pub fn commit(self) -> Result<Committed> {
        self.check()?;
        self.writer.commit()
    }

    /// Fails if the work is to stop.
    fn check(&self) -> Result<()> {
        self.encode.cancel.as_ref().map_or(Ok(()), crate::exec::Cancel::check)
    }

    /// The array at a path as it was before.
    fn array_before(&self, path: &ObjectPath) -> Option<Array> {
        self.before.as_ref()?.array(&path.to_string()).ok()
    }
}

/// An attribute that is a number, a text, or a list of them.
pub(crate) fn attribute<'a>(name: &str, value: impl Into<Values<'a>>) -> Result<AttributeSpec> {
    let value = crate::staged::Block::from_values(&value.into())?;
    let shape = value.shape().to_vec();
    let space = match shape.as_slice() {
        [] => Dataspace::Scalar,
        dims => Dataspace::Simple { dims: dims.to_vec(), max: dims.iter().map(|&d| Some(d)).collect() },
    };
    Ok(AttributeSpec {
        name: name.into(),
        dtype: value.dtype().clone(),
        committed: None,
        space,
        content: elements::content(value),
    })
}

fn written(path: &ObjectPath) -> Error {
    Error::invalid(format!("array {path} was changed in this transaction already"))
        .hint("commit it, and begin another one")
}

impl StagedArray {
    /// Writes what is changed to the array at a path of a transaction: see [`Transaction::write`].
    pub fn commit_to(&self, transaction: &mut Transaction, path: &str) -> Result<EncodeStats> {
        transaction.write(path, self)
    }
}

impl ArraySpec {
    /// An array of these extents, which cannot grow in formats with a maximum.
    pub fn simple(dtype: DType, shape: &[u64]) -> ArraySpec {
        let space = match shape {
            [] => Dataspace::Scalar,
            dims => Dataspace::Simple { dims: dims.to_vec(), max: dims.iter().map(|&d| Some(d)).collect() },
        };
        ArraySpec::new(dtype, space)
    }

    /// In chunks of these extents.
    #[must_use]
    pub fn with_chunk(mut self, chunk: &[u64]) -> ArraySpec {
        self.layout = crate::model::write::LayoutSpec::Chunked { chunk: chunk.to_vec(), shard: None };
        self
    }

    /// With the fill value of these bytes as stored.
    #[must_use]
    pub fn with_fill(mut self, stored: &[u8]) -> ArraySpec {
        let content = Content::Fixed(stored.to_vec().into());
        self.fill = crate::model::write::FillSpec::Value(content);
        self
    }
}
