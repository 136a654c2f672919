//! `info`: everything about a file or an object, in words.

use crate::args::Info;
use crate::json::Json;
use crate::ls;
use crate::output::{self, Out, Outcome, Style};
use crate::words::{self, Paths, Stored};
use hyperslab::array::{Array, Item};
use hyperslab::dtype::DType;
use hyperslab::model::{FillValue, LinkTarget};
use hyperslab::shape::{byte_count, element_count};
use hyperslab::{File, Object, OpenOptions};

type Lines = Vec<(String, String)>;

pub(crate) fn run(arguments: &Info, options: &OpenOptions, out: &mut Out) -> Outcome<()> {
    let address = &arguments.address;
    let file = crate::output::open_at(address.clone(), &arguments.version, options)?;
    let object = file.get(&address.path)?;
    let paths = Paths::new(&file);
    let mut lines = Lines::new();
    if address.path == "/" {
        about_file(&file, &mut lines);
    }
    about(&object, &paths, &mut lines);
    let attributes = match object.attributes() {
        Ok(entries) => entries.into_iter().map(|a| ls::attribute(&object, a, &paths)).collect(),
        Err(e) => vec![e.to_string()],
    };
    if arguments.json {
        let mut json = Vec::new();
        // Keys that occur more than once become lists.
        for (key, value) in lines {
            match json.iter_mut().find(|(k, _)| *k == key) {
                Some((_, Json::List(list))) => list.push(value.into()),
                Some((_, first)) => *first = Json::List(vec![first.clone(), value.into()]),
                None => json.push((key, Json::from(value))),
            }
        }
        json.push(("attributes".into(), Json::list(attributes)));
        arguments.stats.say(file.traffic());
        return out.line(Json::map(json));
    }
    let width = lines.iter().map(|(k, _)| k.chars().count()).max().unwrap_or(0);
    for (key, value) in lines {
        let pad = " ".repeat(width - key.chars().count());
        out.line(format_args!("{}{pad}  {value}", out.paint(Style::Bold, key)))?;
    }
    for attribute in attributes {
        out.line(format_args!("  {attribute}"))?;
    }
    arguments.stats.say(file.traffic());
    Ok(())
}

fn about_file(file: &File, lines: &mut Lines) {
    let mut add = |key: &str, value: String| lines.push((key.into(), value));
    let info = file.info();
    add("file", file.name().into());
    let version = if info.format == "HDF5" { "superblock version" } else { "version" };
    add("format", format!("{}, {version} {}", info.format, info.version));
    add("user block", if info.user_block == 0 { "none".into() } else { output::bytes(info.user_block) });
    for (key, value) in info.notes {
        add(key, value);
    }
    let mut counts = [("groups", 0u64), ("arrays", 0), ("datatypes", 0), ("links", 0), ("faults", 0)];
    for entry in file.walk() {
        let kind = match entry.item {
            Item::Group(_, links) => {
                counts[4].1 += u64::from(links.is_err());
                0
            }
            Item::Object(_, hyperslab::model::NodeKind::Datatype) => 2,
            Item::Object(..) => 1,
            Item::Fault(..) => 4,
            _ => 3,
        };
        counts[kind].1 += 1;
    }
    let counts: Vec<String> =
        counts.iter().filter(|(_, n)| *n > 0).map(|(k, n)| format!("{n} {k}")).collect();
    add("holds", counts.join(", "));
}

fn about(object: &Object, paths: &Paths<'_>, lines: &mut Lines) {
    lines.push(("path".into(), format!("{} ({})", object.path(), object.node())));
    match object {
        Object::Group(group) => {
            lines.push(("kind".into(), "group".into()));
            match group.links() {
                Ok(links) => {
                    let soft =
                        links.links.iter().filter(|l| !matches!(l.target, LinkTarget::Hard(_))).count();
                    let order = if links.tracks_order { ", order of creation tracked" } else { "" };
                    let text = format!("{} ({soft} of them not hard links){order}", links.links.len());
                    lines.push(("members".into(), text));
                    for fault in links.faults {
                        lines.push(("fault".into(), fault.error.to_string()));
                    }
                }
                Err(e) => lines.push(("fault".into(), e.to_string())),
            }
        }
        Object::Datatype(named) => {
            lines.push(("kind".into(), "named datatype".into()));
            dtype(named.dtype(), lines);
        }
        Object::Array(array) => about_array(array, paths, lines),
    }
}

fn dtype(dtype: &DType, lines: &mut Lines) {
    lines.push(("type".into(), words::dtype(dtype, 160)));
    let size = if dtype.is_fixed() { "" } else { ", pointing elsewhere" };
    lines.push(("element".into(), format!("{} bytes{size}", dtype.size())));
    match dtype {
        DType::Compound { fields, .. } => {
            for field in fields {
                let text =
                    format!("{}: {} at byte {}", field.name, words::dtype(&field.dtype, 160), field.offset);
                lines.push(("member".into(), text));
            }
        }
        DType::Enum { base, members } => {
            for member in members {
                let value = match base.as_ref() {
                    DType::Integer(t) => t.value(&member.value).to_string(),
                    _ => format!("{:02x?}", member.value),
                };
                lines.push(("name".into(), format!("{} = {value}", member.name)));
            }
        }
        _ => {}
    }
}

fn about_array(array: &Array, paths: &Paths<'_>, lines: &mut Lines) {
    let meta = array.meta();
    lines.push(("kind".into(), "array".into()));
    dtype(&meta.dtype, lines);
    let mut add = |key: &str, value: String| lines.push((key.into(), value));
    add("shape", words::shape(&meta.space));
    let count = if meta.space.is_null() { Ok(0) } else { element_count(meta.space.dims()) };
    let bytes = byte_count(meta.space.dims(), meta.dtype.size());
    match (count, bytes) {
        (Ok(0), _) => add("elements", "none".into()),
        (Ok(n), Ok(bytes)) => add("elements", format!("{n}, {}", output::bytes(bytes))),
        (Err(e), _) | (_, Err(e)) => add("elements", e.to_string()),
    }
    add("layout", words::layout(array));
    let stored = Stored::of(array);
    if let Some(chunk) = words::chunk_shape(array) {
        let bytes = byte_count(chunk, meta.dtype.size()).unwrap_or(u64::MAX);
        add("chunk", format!("{}, {}", words::tuple(chunk), output::bytes(bytes)));
        let grid = meta.space.dims().iter().zip(chunk).map(|(d, c)| d.div_ceil((*c).max(1)));
        let all = grid.fold(1u64, u64::saturating_mul);
        add("chunks", format!("{} stored of {all}", stored.chunks));
    }
    if let Some(runs) = words::runs(array) {
        add("chunks of", meta.grid.to_string());
        let along = runs.iter().map(|runs| runs.iter().fold(0, |n: u64, run| n.saturating_add(run.1)));
        add("chunks", format!("{} stored of {}", stored.chunks, along.fold(1u64, u64::saturating_mul)));
    }
    let ratio = stored.ratio(array).filter(|_| !meta.filters.is_empty());
    let ratio = ratio.map(|r| format!(", {r:.2} times smaller than decoded")).unwrap_or_default();
    add("stored", format!("{}{ratio}", output::bytes(stored.bytes)));
    if let Some(e) = &stored.fault {
        add("fault", e.to_string());
    }
    for spec in &meta.filters {
        if let hyperslab::codec::FilterSpec::Zarr { name, configuration } = spec {
            add("codec", format!("{name} {configuration}"));
        }
        let hyperslab::codec::FilterSpec::Hdf5 { flags, parameters, .. } = spec else { continue };
        let optional = if flags & 1 == 1 { ", may be skipped" } else { "" };
        add("filter", format!("{}, parameters {parameters:?}{optional}", words::filter(spec)));
    }
    let fill = match &meta.fill {
        FillValue::Undefined => "undefined".into(),
        FillValue::Default => "default (zeros)".into(),
        FillValue::Value(element) => {
            match array.decode(&meta.dtype, element.clone(), 1).and_then(|e| e.value(0)) {
                Ok(value) => paths.named(value).to_string(),
                Err(e) => e.to_string(),
            }
        }
    };
    add("fill value", fill);
    for (key, value) in &meta.notes {
        add(key, value.clone());
    }
}
