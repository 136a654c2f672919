//! Copies of whole files, from any format to any: streamed, with a report of what is kept, what is said in other words, and
//! what is lost.

mod codec;
mod data;
mod netcdf;
mod plan;
mod report;
mod scatter;
mod source;
#[cfg(test)]
mod tests;

pub use codec::parse_codecs;
pub use report::{Entry, Outcome, Report};

use crate::array::{Address, File};
use crate::codec::FilterSpec;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::NodeId;
use crate::model::write::{Change, Content, FillSpec, LayoutSpec, LinkSpec, Losses, ObjectPath, Support};
use crate::write::{CreateOptions, Format, Transaction, create};
use source::{Make, attribute_change};
use std::collections::{BTreeSet, HashSet};
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
    check(format, options)?;
    let (steps, mut report, paths) = source::steps(source, format, options).context(name)?;
    let limit = options.create.open.limits.output;
    let mut arrays = Vec::new();
    let mut gone: BTreeSet<String> = BTreeSet::new();
    let mut made: HashSet<String> = HashSet::from(["/".to_owned()]);
    let mut changes = Vec::new();
    for step in steps {
        if gone.iter().any(|path| step.object == *path || step.object.starts_with(&format!("{path}/"))) {
            // What it belongs to is in the report already.
            continue;
        }
        if step.what == "attribute" && !made.contains(&step.object) {
            continue;
        }
        // By now all objects are known.
        let path_of =
            |node: &NodeId| paths.get(node).filter(|at| made.contains(*at)).map(|at| ObjectPath::spelled(at));
        let mut lost = Losses::default();
        let change = match step.make {
            Make::Change(change) => Ok(change),
            Make::Attribute(attribute, committed) => {
                let committed = committed.filter(|(_, path)| made.contains(&path.to_string()));
                attribute_change(source, limit, &step.object, &attribute, committed, &path_of, &mut lost)
            }
        };
        let judged = change.and_then(|change| judge(&transaction, change, &made));
        let (change, outcome) = match judged.context(|| step.name.clone()) {
            Ok(judged) => judged,
            Err(e) => {
                report.add(step.name, step.what, Outcome::Dropped(e.to_string()));
                if step.makes {
                    gone.insert(step.object);
                }
                continue;
            }
        };
        let outcome = match step.note {
            Some(note) => outcome.and(note),
            None => outcome,
        };
        if matches!(outcome, Outcome::Dropped(_)) {
            if step.makes {
                gone.insert(step.object);
            }
            report.add(step.name, step.what, outcome);
            continue;
        }
        if step.makes {
            made.insert(step.object.clone());
        }
        // What is made of other arrays has no elements of its own.
        let is_virtual = matches!(&change, Change::CreateArray { spec, .. }
            if matches!(spec.layout, LayoutSpec::Virtual(_)));
        if let Some(array) = step.array.filter(|_| !is_virtual) {
            arrays.push((step.object, array, report.entries.len()));
        }
        changes.push(change);
        report.add(step.name, step.what, outcome);
        report.lose(None, &lost);
    }
    strict(source, &report, options)?;
    if options.dry_run {
        return Ok(report);
    }
    // A fill value that refers to objects has to wait for them.
    let waits = |change: &Change| match change {
        Change::CreateArray { spec, .. } => u8::from(
            matches!(&spec.fill, FillSpec::Value(Content::Objects { targets, .. }) if !targets.is_empty()),
        ),
        Change::CreateGroup { .. } | Change::CreateDimension { .. } | Change::CommitType { .. } => 0,
        _ => 2,
    };
    changes.sort_by_key(waits);
    for mut change in changes {
        if let Change::CreateArray { spec, .. } = &mut change
            && let FillSpec::Value(Content::Objects { targets, .. }) = &spec.fill
            && !targets.iter().all(|target| made.contains(&target.path.to_string()))
        {
            spec.fill = FillSpec::Default;
        }
        transaction.apply(change).context(name)?;
    }
    let path_of =
        |node: &NodeId| paths.get(node).filter(|at| made.contains(*at)).map(|at| ObjectPath::spelled(at));
    for (path, array, entry) in arrays {
        let (stats, lost) =
            data::copy(&array, &mut transaction, &path, (format, options), &path_of).context(name)?;
        report.stats.add(&stats);
        report.lose(Some(entry), &lost);
    }
    // References in elements are known only now.
    strict(source, &report, options)?;
    report.committed = transaction.commit()?;
    Ok(report)
}

/// Fails if something is asked of a format that it has not.
fn check(format: Format, options: &CopyOptions) -> Result<()> {
    let is_classic = matches!(format, Format::NetCdf3 | Format::Cdf2 | Format::Cdf5);
    let asked = [
        ("--chunks", options.chunks.is_some() && is_classic, "chunks"),
        ("--codec", options.codecs.as_ref().is_some_and(|c| !c.is_empty()) && is_classic, "codecs"),
        ("--shards", options.shards.is_some() && format != Format::Zarr3, "shards"),
    ];
    match asked.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
        None => Ok(()),
        Some((option, _, what)) => Err(Error::unsupported(format_args!("{what} in {format}"))
            .hint(format!("leave out {option}, or copy to another format, such as zarr3"))),
    }
}

/// Fails if something is lost that must not be.
fn strict(source: &File, report: &Report, options: &CopyOptions) -> Result<()> {
    let lost = report.entries.iter().find(|e| matches!(e.outcome, Outcome::Dropped(_)));
    let Some(lost) = lost.filter(|_| options.strict) else { return Ok(()) };
    let text = format!(
        "{} of the objects and attributes would be lost, such as {} ({})",
        report.dropped(),
        lost.name,
        lost.outcome
    );
    Err(Error::new(ErrorKind::Unsupported, text)
        .context(format!("file {}", source.name()))
        .hint("copy without --strict, or to another format"))
}

/// What becomes of a change; filters that cannot be written are left out rather than the array.
fn judge(transaction: &Transaction, mut change: Change, made: &HashSet<String>) -> Result<(Change, Outcome)> {
    if let Change::CreateArray { spec, .. } = &mut change {
        // Of a type whose name is not in the copy, but which is no other for it.
        spec.committed = spec.committed.take().filter(|path| made.contains(&path.to_string()));
    }
    if let Change::CreateLink { link: LinkSpec::Hard(target), .. } = &change
        && !made.contains(&target.to_string())
    {
        return Ok((
            change.clone(),
            Outcome::Dropped(format!("another name of {target}, which is not in the copy")),
        ));
    }
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
