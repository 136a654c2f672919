//! `get`: elements of an array, on stdout or in a file.
//!
//! Large results are read in slabs along their outermost axis, so that memory holds a slab and not the result.

pub(crate) mod csv;
mod nested;
mod npy;
mod slabs;
#[cfg(test)]
mod tests;
mod text;

use crate::args::{Format, Get};
use crate::output::{self, Failure, Out, Outcome, Progress};
use crate::words::{self, Paths};
use hyperslab::array::{Array, RawData};
use hyperslab::dtype::Packing;
use hyperslab::model::{Elements, Value};
use hyperslab::shape::{byte_count, element_count, to_usize};
use hyperslab::{Address, Error, File, Limits, Object, OpenOptions, ReadOptions, ReadStats, Selection};
use slabs::Slabs;
use std::io::IsTerminal;
use std::path::Path;

pub(crate) fn run(arguments: &Get, options: &OpenOptions, stdout: &mut Out) -> Outcome<()> {
    let address = &arguments.address;
    let file = crate::output::open_at(address.clone(), &arguments.version, options)?;
    let (array, selection) = array(&file, address)?;
    let format =
        arguments.format.unwrap_or_else(|| arguments.output.as_deref().map_or(Format::Text, by_name));
    let mut read = Read::new(&file, &array, selection, options)?;
    // Only a person who looks is served with less than was asked for.
    let looks = arguments.output.is_none() && std::io::stdout().is_terminal();
    let all = arguments.all || !(arguments.short || looks);
    let mut write = |out: &mut Out| match format {
        Format::Text => text::write(&mut read, all, out),
        Format::Csv => csv::write(&mut read, out),
        Format::Json => nested::write(&mut read, out),
        Format::Npy => npy::write(&mut read, out),
        Format::Raw => raw(&mut read, out),
    };
    match &arguments.output {
        Some(path) => {
            let mut out = Out::file(path)?;
            write(&mut out)?;
            out.finish()?;
        }
        None => write(stdout)?,
    }
    if arguments.stats.stats {
        output::say(read.stats);
    }
    arguments.stats.say(file.traffic());
    Ok(())
}

/// The array that an address names, and which of its elements.
pub(crate) fn array(file: &File, address: &Address) -> Outcome<(Array, Selection)> {
    match file.locate(address)? {
        (Object::Array(array), selection) => Ok((array, selection)),
        (Object::Group(group), _) => Err(Failure::Other(format!(
            "{} is a group; list its members with: hyperslab ls '{}::{}'",
            group.path(),
            address.file,
            group.path()
        ))),
        (Object::Datatype(named), _) => {
            Err(Failure::Other(format!("{} is a named datatype: {}", named.path(), named.dtype())))
        }
    }
}

/// The format that the name of a file asks for.
fn by_name(path: &Path) -> Format {
    match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("csv") => Format::Csv,
        Some("json") => Format::Json,
        Some("npy") => Format::Npy,
        Some("raw" | "bin" | "dat") => Format::Raw,
        _ => Format::Text,
    }
}

/// A read on its way: what is wanted, and what was done so far.
pub(crate) struct Read<'a> {
    pub(crate) array: &'a Array,
    pub(crate) selection: Selection,
    /// Extents of the result.
    pub(crate) shape: Vec<u64>,
    pub(crate) stats: ReadStats,
    paths: Paths<'a>,
    options: &'a OpenOptions,
}

impl<'a> Read<'a> {
    fn new(
        file: &'a File,
        array: &'a Array,
        selection: Selection,
        options: &'a OpenOptions,
    ) -> Outcome<Read<'a>> {
        let region =
            selection.resolve(array.shape(), &options.limits).map_err(|e| e.context(array.path()))?;
        let shape = region.shape().to_vec();
        // Slabs keep memory small, but nobody wants the terabytes that a few bytes of a file can claim.
        let (total, allowed) = (byte_count(&shape, array.dtype().size())?, most(options));
        if total > allowed {
            let error = Error::limit("bytes of the result", total.into(), allowed.into());
            return Err(error.hint("raise --max-memory, or select less").context(array.path()).into());
        }
        let (stats, paths) = (ReadStats::default(), Paths::new(file));
        Ok(Read { array, selection, shape, stats, paths, options })
    }

    /// Whether there is nothing at all, not even an empty array.
    pub(crate) fn is_null(&self) -> bool {
        self.array.meta().space.is_null()
    }

    /// Number of elements of the result.
    pub(crate) fn count(&self) -> Outcome<usize> {
        Ok(if self.is_null() { 0 } else { to_usize(element_count(&self.shape)?)? })
    }

    /// Reads one selection as stored.
    pub(crate) fn raw(&mut self, selection: Selection) -> Outcome<RawData> {
        let (raw, stats) = self.array.read_raw_with(selection, &ReadOptions::default())?;
        self.stats.add(&stats);
        Ok(raw)
    }

    /// Reads the whole result in slabs, in C order.
    pub(crate) fn slabs(&mut self, mut slab: impl FnMut(&Read<'a>, RawData) -> Outcome<()>) -> Outcome<()> {
        let size = self.array.dtype().size();
        let slabs = Slabs::new(
            &self.selection,
            self.array.shape(),
            words::chunk_shape(self.array),
            size,
            self.limit(),
        );
        let mut progress = Progress::new("reading", Some(slabs.len()));
        for selection in slabs {
            let raw = self.raw(selection)?;
            slab(self, raw)?;
            progress.step(1);
        }
        Ok(())
    }

    /// Reads the whole result in slabs, and gives the elements one after the other.
    pub(crate) fn values(&mut self, mut value: impl FnMut(Value) -> Outcome<()>) -> Outcome<()> {
        self.slabs(|read, raw| {
            let elements = read.decode(raw)?;
            (0..elements.count()).try_for_each(|i| value(read.paths.named(elements.value(i)?)))
        })
    }

    /// Takes stored elements apart.
    pub(crate) fn decode(&self, raw: RawData) -> Outcome<Elements> {
        let count = to_usize(element_count(&raw.shape)?)?;
        Ok(self.array.decode(&raw.dtype, raw.bytes.into(), count)?)
    }

    /// All elements of a selection as values, references by name.
    pub(crate) fn values_of(&mut self, selection: Selection) -> Outcome<Vec<Value>> {
        let raw = self.raw(selection)?;
        let elements = self.decode(raw)?;
        (0..elements.count()).map(|i| Ok(self.paths.named(elements.value(i)?))).collect()
    }

    /// The largest result that may be held in memory.
    pub(crate) fn limit(&self) -> u64 {
        self.options.limits.output
    }
}

/// The largest result that is written: one larger than memory goes in slabs, so a low limit does not lower this.
fn most(options: &OpenOptions) -> u64 {
    options.limits.output.max(Limits::default().output)
}

/// Packed elements.
fn raw(read: &mut Read<'_>, out: &mut Out) -> Outcome<()> {
    let packing = packing(read.array)?;
    if read.is_null() {
        return Ok(());
    }
    let mut packed = Vec::new();
    read.slabs(|_, raw| {
        if packing.is_identity() {
            return out.write(&raw.bytes);
        }
        packed.clear();
        packing.pack(&raw.bytes, to_usize(element_count(&raw.shape)?)?, &mut packed)?;
        out.write(&packed)
    })
}

pub(crate) fn packing(array: &Array) -> Outcome<Packing> {
    Ok(Packing::new(array.dtype()).map_err(|e| match e.kind() {
        hyperslab::ErrorKind::InvalidArgument => Error::unsupported(format!(
            "elements of type {} as bytes, since they point elsewhere",
            words::dtype(array.dtype(), 80)
        ))
        .hint("use --format json"),
        _ => e,
    })?)
}
