//! Types, extents, storage and values in words.

use crate::json::Json;
use hyperslab::array::Array;
use hyperslab::codec::{FilterSpec, filter_name};
use hyperslab::dtype::DType;
use hyperslab::model::{ChunkGrid, ChunkRef, Dataspace, Layout, NodeId, Reference, Value};
use hyperslab::shape::{Name, byte_count};
use hyperslab::{Error, File};
use std::cell::OnceCell;
use std::collections::HashMap;

/// A type in at most `width` characters.
pub(crate) fn dtype(dtype: &DType, width: usize) -> String {
    let full = dtype.to_string();
    if full.chars().count() <= width {
        return full;
    }
    match dtype {
        DType::Compound { fields, .. } => format!("compound of {} members", fields.len()),
        DType::Enum { base, members } => format!("enum<{base}> of {} names", members.len()),
        _ => full.chars().take(width.saturating_sub(3)).chain("...".chars()).collect(),
    }
}

/// Extents as a tuple, with the maximum where it differs: `(365/inf, 180)`.
pub(crate) fn shape(space: &Dataspace) -> String {
    match space {
        Dataspace::Null => "null".into(),
        Dataspace::Scalar => "()".into(),
        Dataspace::Simple { dims, max } => {
            tuple(dims.iter().enumerate().map(|(axis, d)| match max.get(axis) {
                Some(None) => format!("{d}/inf"),
                Some(Some(m)) if m != d => format!("{d}/{m}"),
                _ => d.to_string(),
            }))
        }
    }
}

/// `(1, 2)`, and `(1,)` for a single one.
pub(crate) fn tuple<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|i| i.to_string()).collect();
    match items.as_slice() {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    }
}

/// `deflate(4)`: name and the parameter that people set, where there is one.
pub(crate) fn filter(spec: &FilterSpec) -> String {
    if let FilterSpec::Zarr { name, configuration } = spec {
        let level =
            ["level", "clevel"].iter().find_map(|n| configuration.get(n)).and_then(|l| l.as_integer());
        return level.map_or(name.clone(), |level| format!("{name}({level})"));
    }
    let FilterSpec::Hdf5 { id, name, parameters, .. } = spec else { return format!("{spec:?}") };
    let known = match filter_name(*id) {
        Some(known) => known.to_string(),
        None if !name.is_empty() => format!("{name} [{id}]"),
        None => format!("filter {id}"),
    };
    match (*id, parameters.as_slice()) {
        // Compression level, block size.
        (1 | 307 | 32015, [level, ..]) => format!("{known}({level})"),
        _ => known,
    }
}

/// All filters, in the order in which they encode.
pub(crate) fn filters(array: &Array) -> String {
    array.meta().filters.iter().map(filter).collect::<Vec<_>>().join(", ")
}

/// What is stored of an array.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// Chunks that are there.
    pub(crate) chunks: u64,
    /// Their encoded bytes.
    pub(crate) bytes: u64,
    /// The first thing wrong with the index.
    pub(crate) fault: Option<Error>,
}

impl Stored {
    /// Counts all stored chunks of an array.
    pub(crate) fn of(array: &Array) -> Stored {
        let mut stored = Stored::default();
        let mut fault = None;
        let scanned = array.chunks(
            &mut |_, chunk| {
                let length = match chunk {
                    ChunkRef::Range { length, .. } => length,
                    ChunkRef::Memory { bytes, .. } => bytes.len() as u64,
                    ChunkRef::Object { store, key } => match store.len(&key)? {
                        Some(length) => length,
                        None => return Ok(()),
                    },
                    _ => return Ok(()),
                };
                stored.chunks += 1;
                stored.bytes = stored.bytes.saturating_add(length);
                Ok(())
            },
            &mut |f| {
                fault.get_or_insert(f.error);
            },
        );
        stored.fault = fault.or(scanned.err());
        stored
    }

    /// How many times smaller the stored chunks are than what they decode to.
    pub(crate) fn ratio(&self, array: &Array) -> Option<f64> {
        if runs(array).is_some() {
            // Chunks are of different lengths.
            return None;
        }
        let chunk = byte_count(array.meta().chunk_shape(), array.dtype().size()).ok()?;
        let decoded = chunk.checked_mul(self.chunks)?;
        (self.bytes > 0 && self.fault.is_none()).then(|| decoded as f64 / self.bytes as f64)
    }
}

/// How an array is stored.
pub(crate) fn layout(array: &Array) -> String {
    match &array.meta().layout {
        Layout::Compact => "compact, in the object header".into(),
        Layout::Contiguous => "contiguous".into(),
        Layout::External(1) => "contiguous, in an external file".into(),
        Layout::External(n) => format!("contiguous, over {n} external files"),
        Layout::Chunked { index } => format!("chunked, index: {index}"),
        Layout::Virtual(1) => "virtual, of one mapping".into(),
        Layout::Virtual(n) => format!("virtual, of {n} mappings"),
        other => format!("{other:?}"),
    }
}

/// Chunk extents, for chunked arrays.
pub(crate) fn chunk_shape(array: &Array) -> Option<&[u64]> {
    match (&array.meta().layout, &array.meta().grid) {
        (Layout::Chunked { .. }, ChunkGrid::Regular(chunk)) => Some(chunk),
        _ => None,
    }
}

/// For each axis the extents of chunks and how many there are of each in a row, where they differ.
pub(crate) fn runs(array: &Array) -> Option<&[Vec<(u64, u64)>]> {
    match &array.meta().grid {
        ChunkGrid::Rectilinear { runs, .. } => Some(runs),
        _ => None,
    }
}

/// The same as Zarr spells it: for each axis pairs of an extent and a count.
pub(crate) fn runs_json(runs: &[Vec<(u64, u64)>]) -> Json {
    let run = |&(extent, count): &(u64, u64)| Json::list([extent, count]);
    Json::List(runs.iter().map(|runs| Json::List(runs.iter().map(run).collect())).collect())
}

/// Names for what references point to; the walk that finds them is made when the first one is met.
pub(crate) struct Paths<'a> {
    file: &'a File,
    paths: OnceCell<HashMap<NodeId, String>>,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(file: &'a File) -> Paths<'a> {
        Paths { file, paths: OnceCell::new() }
    }

    fn path(&self, node: &NodeId) -> String {
        let paths = self.paths.get_or_init(|| self.file.paths());
        paths.get(node).cloned().unwrap_or_else(|| format!("<{node}>"))
    }

    fn reference(&self, reference: &Reference) -> String {
        match reference {
            Reference::Null => "null".into(),
            Reference::Object(node) => self.path(node),
            Reference::Attribute(node, name) => format!("{}@{name}", self.path(node)),
            Reference::Region(node, region) => {
                let path = self.path(node);
                let dims = match self.file.object(node, path.as_str()) {
                    Ok(hyperslab::Object::Array(array)) => array.shape().to_vec(),
                    _ => Vec::new(),
                };
                let count = region.selection.count(&dims);
                match region.selection.bounds(&dims) {
                    Some((low, high)) => {
                        let sides =
                            low.iter().zip(&high).map(|(l, h)| format!("{l}:{}", h.saturating_add(1)));
                        let slice = sides.collect::<Vec<_>>().join(", ");
                        let inside =
                            high.iter().zip(&low).fold(1u64, |n, (h, l)| n.saturating_mul(h - l + 1));
                        let part = if count == inside {
                            String::new()
                        } else {
                            format!(" ({count} elements of it)")
                        };
                        format!("{path}[{slice}]{part}")
                    }
                    None => format!("{path} (no elements)"),
                }
            }
        }
    }

    /// The value with each reference replaced by the name of what it points to (as a nameable constant: an
    /// enumeration's member prints as its bare name).
    pub(crate) fn named(&self, value: Value) -> Value {
        match value {
            Value::Reference(reference) => {
                Value::Enum { name: Some(Name::from(self.reference(&reference).as_str())), value: 0 }
            }
            Value::List(items) => Value::List(items.into_iter().map(|v| self.named(v)).collect()),
            Value::Compound(names, items) => {
                Value::Compound(names, items.into_iter().map(|v| self.named(v)).collect())
            }
            other => other,
        }
    }
}

/// A value as JSON: exact integers, text as text, compounds as objects, complex numbers as pairs; NaN and infinities as
/// text, and bytes as `hex:` and their digits.
pub(crate) fn json(value: &Value) -> Json {
    let float = |v: f64, text: String| {
        if v.is_nan() {
            Json::from("NaN")
        } else if v.is_infinite() {
            Json::from(if v > 0.0 { "Infinity" } else { "-Infinity" })
        } else {
            Json::Raw(text)
        }
    };
    match value {
        Value::Null => Json::Null,
        Value::Integer(v) => Json::Number(*v),
        Value::Unsigned(_) => Json::Raw(value.to_string()),
        Value::Half(v) => float(v.to_f64(), value.to_string()),
        Value::Single(v) => float(f64::from(*v), value.to_string()),
        Value::Double(v) => float(*v, value.to_string()),
        Value::Bool(v) => Json::Bool(*v),
        Value::Enum { name: Some(name), .. } => name.into(),
        Value::Enum { name: None, value } => Json::Number(*value),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => {
            Json::Text(format!("hex:{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()))
        }
        Value::List(items) => Json::List(items.iter().map(json).collect()),
        Value::Complex(parts) => Json::List(parts.iter().map(json).collect()),
        // As stored, not sorted: the order of members means something.
        Value::Compound(names, items) => {
            let members = names.iter().zip(items).map(|(n, v)| format!("{}:{}", Json::from(n), json(v)));
            Json::Raw(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
        }
        other => Json::text(other),
    }
}
