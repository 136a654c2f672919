//! Copies of whole files, from any format to any: streamed, with a report of what is kept, what is said in other words, and
//! what is lost.

mod codec;
mod data;
mod plan;
mod report;
mod scatter;
mod source;
#[cfg(test)]
mod tests;

pub use codec::parse_codecs;
pub use report::{Entry, Outcome, Report};

use crate::array::{Address, Array, File};
use crate::codec::FilterSpec;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::write::{Change, LayoutSpec, Support};
use crate::write::{CreateOptions, Format, Transaction, create};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// Extents of chunks or shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extents {
    /// As the format does it best.
    Auto,
    /// Along dimensions of these names, or axes of these numbers; others stay as they are.
    Dimensions(Vec<(String, u64)>),
}

impl Extents {
    /// Reads `auto`, or `time=1,lat=100`.
    pub fn parse(text: &str) -> Result<Extents> {
        if text == "auto" {
            return Ok(Extents::Auto);
        }
        let pair = |part: &str| {
            let (name, extent) = part.split_once('=')?;
            Some((name.trim().to_owned(), extent.trim().parse().ok().filter(|&n: &u64| n > 0)?))
        };
        let pairs: Option<Vec<_>> = text.split(',').map(pair).collect();
        pairs.map(Extents::Dimensions).ok_or_else(|| {
            Error::invalid(format!("{text:?} says no extents")).hint("write auto, or DIMENSION=EXTENT,…")
        })
    }
}

/// How a copy is made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyOptions {
    /// How the new file is made.
    pub create: CreateOptions,
    /// Extents of chunks; by default those of the source.
    pub chunks: Option<Extents>,
    /// Extents of shards (Zarr 3); by default none.
    pub shards: Option<Extents>,
    /// Codecs; by default those of the source.
    pub codecs: Option<Vec<FilterSpec>>,
    /// Only the objects at these paths, and what is below and above them; empty: all.
    pub only: Vec<String>,
    /// Bytes of elements in memory, about.
    pub memory: u64,
    /// A folder for what does not fit into memory; by default that of the system for temporary files.
    pub scratch: Option<PathBuf>,
    /// Fail, with nothing written, if something would be lost.
    pub strict: bool,
    /// Say what would become of everything, and write nothing.
    pub dry_run: bool,
}

impl Default for CopyOptions {
    fn default() -> Self {
        CopyOptions {
            create: CreateOptions::default(),
            chunks: None,
            shards: None,
            codecs: None,
            only: Vec::new(),
            memory: 512 << 20,
            scratch: None,
            strict: false,
            dry_run: false,
        }
    }
}

/// Copies `source` to an address. What the format has no words for is left out and in the report; with
/// [`CopyOptions::strict`] that is an error, and nothing is written.
pub fn copy(
    source: &File,
    target: impl Into<Address>,
    format: Format,
    options: &CopyOptions,
) -> Result<Report> {
    let transaction = create(target, format, &options.create)?;
    copy_to(source, transaction, format, options)
}

/// The same to a transaction that has just begun.
pub fn copy_to(
    source: &File,
    mut transaction: Transaction,
    format: Format,
    options: &CopyOptions,
) -> Result<Report> {
    let name = || format!("file {}", source.name());
    let (steps, mut report) = source::steps(source, format, options).context(name)?;
    let mut arrays = Vec::new();
    let mut gone: BTreeSet<String> = BTreeSet::new();
    let mut changes = Vec::new();
    for step in steps {
        if gone.iter().any(|path| step.object == *path || step.object.starts_with(&format!("{path}/"))) {
            // What it belongs to is in the report already.
            continue;
        }
        let (change, outcome) = judge(&transaction, step.change).context(|| step.name.clone())?;
        if matches!(outcome, Outcome::Dropped(_)) {
            if step.makes {
                gone.insert(step.object.clone());
            }
        } else {
            // What is made of other arrays has no elements of its own.
            let is_virtual = matches!(&change, Change::CreateArray { spec, .. }
                if matches!(spec.layout, LayoutSpec::Virtual(_)));
            if let Some(array) = step.array.filter(|_| !is_virtual) {
                arrays.push((step.object.clone(), array));
            }
            changes.push(change);
        }
        report.add(step.name, step.what, outcome);
    }
    if options.strict
        && let Some(lost) = report.entries.iter().find(|e| matches!(e.outcome, Outcome::Dropped(_)))
    {
        let count = report.dropped();
        let text = format!(
            "{count} of the objects and attributes would be lost, such as {} ({})",
            lost.name, lost.outcome
        );
        return Err(Error::new(ErrorKind::Unsupported, text)
            .context(name())
            .hint("copy without --strict, or to another format"));
    }
    if options.dry_run {
        return Ok(report);
    }
    for change in changes {
        transaction.apply(change).context(name)?;
    }
    let pointing = arrays.iter().any(|(_, array): &(String, Array)| !array.dtype().is_fixed());
    let paths = if pointing { source.paths() } else { HashMap::new() };
    for (path, array) in arrays {
        let stats = data::copy(&array, &mut transaction, &path, options, &paths).context(name)?;
        report.stats.add(&stats);
    }
    report.committed = transaction.commit()?;
    Ok(report)
}

/// What becomes of a change; filters that cannot be written are left out rather than the array.
fn judge(transaction: &Transaction, change: Change) -> Result<(Change, Outcome)> {
    let support = transaction.support(&change)?;
    let Support::Dropped(why) = support else { return Ok((change, Outcome::of(support))) };
    let Change::CreateArray { path, spec } = &change else { return Ok((change, Outcome::Dropped(why))) };
    if spec.filters.is_empty() && matches!(spec.layout, LayoutSpec::Auto) {
        return Ok((change, Outcome::Dropped(why)));
    }
    let mut plain = spec.clone();
    plain.filters.clear();
    let again = Change::CreateArray { path: path.clone(), spec: plain.clone() };
    if let support @ (Support::Kept | Support::Mapped(_)) = transaction.support(&again)? {
        return Ok((again, Outcome::of(support).and(format!("without its filters: {why}"))));
    }
    plain.layout = LayoutSpec::Auto;
    let again = Change::CreateArray { path: path.clone(), spec: plain };
    if let support @ (Support::Kept | Support::Mapped(_)) = transaction.support(&again)? {
        return Ok((again, Outcome::of(support).and(format!("stored in another way: {why}"))));
    }
    Ok((change, Outcome::Dropped(why)))
}
