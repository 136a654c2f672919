//! `stat`: what the bytes of a file are for.

use crate::args::Stat;
use crate::json::Json;
use crate::output::{self, Failure, Out, Outcome};
use hyperslab::array::{Item, Location};
use hyperslab::model::{ChunkRef, NodeKind};
use hyperslab::source::{Neighbours, Source, Store, Visited};
use hyperslab::{Error, File, Object, OpenOptions};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// What was found.
#[derive(Default)]
struct Usage {
    length: u64,
    metadata: u64,
    live: u64,
    objects: u64,
    chunks: u64,
    /// Stored chunks by the power of two that is at least as large.
    sizes: BTreeMap<u32, (u64, u64)>,
    /// What could not be looked at.
    faults: Vec<String>,
}

impl Usage {
    fn chunk(&mut self, bytes: u64) {
        self.chunks += 1;
        let slot = self.sizes.entry(bytes.max(1).next_power_of_two().trailing_zeros()).or_default();
        *slot = (slot.0 + 1, slot.1.saturating_add(bytes));
    }
}

pub(crate) fn run(arguments: &Stat, options: &OpenOptions, out: &mut Out) -> Outcome<()> {
    let mut usage = Usage::default();
    match Location::open(&arguments.file, options)? {
        Location::File(source, neighbours) => of_file(source, neighbours, options, &mut usage)?,
        Location::Store(store) => of_store(arguments, &*store, options, &mut usage)?,
    }
    if arguments.json { print_json(arguments, &usage, out) } else { print_text(arguments, &usage, out) }
}

/// Visits every structure of a file; `data` is given where each chunk is.
fn visit(file: &File, usage: &mut Usage, data: &mut dyn FnMut(&ChunkRef) -> hyperslab::Result<Option<u64>>) {
    let mut faults = Vec::new();
    let mut say = |path: &str, e: &Error| {
        faults.push(if path.is_empty() { e.to_string() } else { format!("{path}: {e}") })
    };
    file.check(&mut |fault| say("", &fault.error));
    for entry in file.walk() {
        let is_object = match &entry.item {
            Item::Group(..) => true,
            Item::Object(_, kind) => *kind != NodeKind::Group,
            Item::Fault(_, e) => {
                say(&entry.path, e);
                false
            }
            _ => false,
        };
        if !is_object {
            continue;
        }
        usage.objects += 1;
        let object = match entry.open(file) {
            Ok(object) => object,
            Err(e) => {
                say(&entry.path, &e);
                continue;
            }
        };
        object.check(&mut |fault| say(&entry.path, &fault.error));
        for attribute in object.attributes().unwrap_or_default().into_iter().flatten() {
            if let Err(e) = object.attribute_value(&attribute) {
                say(&entry.path, &e);
            }
        }
        let Object::Array(array) = object else { continue };
        let mut found = |_, chunk: ChunkRef| {
            if let Some(bytes) = data(&chunk)? {
                usage.chunk(bytes);
            }
            Ok(())
        };
        let scanned = array.chunks(&mut found, &mut |fault| say(&entry.path, &fault.error));
        if let Err(e) = scanned {
            say(&entry.path, &e);
        }
        // What elements of variable length point to.
        if !array.dtype().is_fixed() {
            array.verify(&mut |fault| say(&entry.path, &fault.error));
        }
    }
    usage.faults = faults;
}

fn of_file(
    source: Arc<dyn Source>,
    neighbours: Neighbours,
    options: &OpenOptions,
    usage: &mut Usage,
) -> Outcome<()> {
    usage.length = source.len()?;
    let (name, visited) = (source.name(), Arc::new(Visited::new(source)));
    let own = visited.id()?;
    let hierarchy = hyperslab::format::open(visited.clone(), neighbours, options.limits.clone())?;
    let file = File::from_hierarchy(hierarchy, name, options);
    let mut data: Vec<(u64, u64)> = Vec::new();
    visit(&file, usage, &mut |chunk| match chunk {
        ChunkRef::Range { source, offset, length, .. } => {
            // External raw data is no part of this file.
            if source.id()? == own {
                data.push((*offset, offset.saturating_add(*length)));
            }
            Ok(Some(*length))
        }
        ChunkRef::Memory { bytes, .. } => Ok(Some(bytes.len() as u64)),
        _ => Ok(None),
    });
    let all = |ranges: &mut Vec<(u64, u64)>| {
        ranges.sort_unstable();
        let (mut sum, mut end) = (0u64, 0u64);
        for &(from, to) in ranges.iter() {
            let (from, to) = (from.max(end), to.min(usage.length));
            sum += to.saturating_sub(from);
            end = end.max(to);
        }
        sum
    };
    let live = all(&mut data);
    data.extend(visited.ranges());
    let used = all(&mut data);
    (usage.live, usage.metadata) = (live, used - live);
    Ok(())
}

fn of_store(arguments: &Stat, store: &dyn Store, options: &OpenOptions, usage: &mut Usage) -> Outcome<()> {
    let file = output::open(arguments.file.clone(), options)?;
    let mut seen = HashSet::new();
    let mut live = 0u64;
    visit(&file, usage, &mut |chunk| match chunk {
        ChunkRef::Object { key, store } => {
            let length = store.len(key)?;
            if seen.insert(key.to_string()) {
                live += length.unwrap_or(0);
            }
            Ok(length)
        }
        // Inner chunks of a shard, of which the index belongs to the data too.
        ChunkRef::Range { length, source, .. } => {
            if seen.insert(source.name()) {
                live += source.len()?;
            }
            Ok(Some(*length))
        }
        _ => Ok(None),
    });
    usage.live = live;
    for key in store.list("")? {
        let length = store.len(&key)?.unwrap_or(0);
        usage.length += length;
        let name = key.rsplit('/').next().unwrap_or(&key);
        // Documents of Zarr and NCZarr.
        if name.starts_with(".z") || name.starts_with(".nc") || name == "zarr.json" {
            usage.metadata += length;
        }
    }
    Ok(())
}

fn dead(usage: &Usage) -> u64 {
    usage.length.saturating_sub(usage.live).saturating_sub(usage.metadata)
}

fn print_text(arguments: &Stat, usage: &Usage, out: &mut Out) -> Outcome<()> {
    let share = |n: u64| 100.0 * n as f64 / usage.length.max(1) as f64;
    out.line(format_args!("{}: {} bytes, {} objects", arguments.file, usage.length, usage.objects))?;
    for (what, n) in [("live", usage.live), ("metadata", usage.metadata), ("dead", dead(usage))] {
        out.line(format_args!("{what:<9} {n:>15}  {:5.1} %  {}", share(n), output::bytes(n)))?;
    }
    out.line(format_args!("chunks    {:>15}", usage.chunks))?;
    let most = usage.sizes.values().map(|slot| slot.0).max().unwrap_or(1).max(1);
    for (power, (count, bytes)) in &usage.sizes {
        let bar = "#".repeat((count * 40).div_ceil(most) as usize);
        let limit = output::bytes(1u64.checked_shl(*power).unwrap_or(u64::MAX));
        out.line(format_args!("  up to {limit:>9}  {count:>9}  {:>9}  {bar}", output::bytes(*bytes)))?;
    }
    for fault in usage.faults.iter().take(20) {
        output::say(format_args!("not looked at: {fault}"));
    }
    match usage.faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::Other(format!(
            "{} structures could not be looked at: see `check`",
            usage.faults.len()
        ))),
    }
}

fn print_json(arguments: &Stat, usage: &Usage, out: &mut Out) -> Outcome<()> {
    let sizes = usage.sizes.iter().map(|(power, (count, bytes))| {
        let limit = 1u64.checked_shl(*power).unwrap_or(u64::MAX);
        Json::map([("up_to", limit.into()), ("chunks", (*count).into()), ("bytes", (*bytes).into())])
    });
    out.line(Json::map([
        ("file", Json::text(&arguments.file)),
        ("bytes", usage.length.into()),
        ("live", usage.live.into()),
        ("metadata", usage.metadata.into()),
        ("dead", dead(usage).into()),
        ("objects", usage.objects.into()),
        ("chunks", usage.chunks.into()),
        ("sizes", Json::list(sizes)),
        ("faults", Json::list(usage.faults.iter().map(String::as_str))),
    ]))
}
