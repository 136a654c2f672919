//! The `zarr` section: every group and array with its document's own words, and a hash of its elements.

use super::encode::{self, Digest, Encoder};
use super::{Describer, Map, error, head, memory_size};
use crate::json::Json;
use crate::output::Progress;
use hyperslab::array::{Item, Location};
use hyperslab::dtype::DType;
use hyperslab::json::Json as Document;
use hyperslab::model::{ChunkGrid, Column, Documents, Elements, NodeId, NodeKind};
use hyperslab::shape::{byte_count, element_count, to_usize};
use hyperslab::{Address, Array, Error, File, Object, OpenOptions, Result, Selection};
use std::collections::{BTreeMap, HashMap};

/// All nodes of a hierarchy, by path, the root's being empty.
pub(super) fn section(file: &File, address: &Address) -> Map {
    let mut nodes: BTreeMap<String, Json> = BTreeMap::new();
    let mut text = 0;
    let describer = Describer::new(file, HashMap::new());
    let mut progress = Progress::new("describing", None);
    for entry in file.walk() {
        let id = match entry.item {
            Item::Group(group, Err(e)) => {
                let _ = group;
                super::insert(&mut nodes, &mut text, path(&entry.path), Json::Map(error(e)));
                continue;
            }
            Item::Group(group, Ok(_)) => group.node().clone(),
            Item::Object(id, _) => id,
            Item::Fault(_, e) => {
                super::insert(&mut nodes, &mut text, path(&entry.path), Json::Map(error(e)));
                continue;
            }
            _ => continue,
        };
        progress.step(1);
        match node(&describer, &id, &entry.path) {
            // A folder that only its members make a group.
            Ok(None) => {}
            Ok(Some(own)) => super::insert(&mut nodes, &mut text, path(&entry.path), Json::Map(own)),
            Err(e) => super::insert(&mut nodes, &mut text, path(&entry.path), Json::Map(error(e))),
        }
    }
    let prefix = Location::folder_in_zip(address, &OpenOptions::default()).ok().flatten();
    Map::from([("nodes".to_string(), Json::Map(nodes)), ("prefix".into(), prefix.unwrap_or_default().into())])
}

/// A path without the first `/`.
fn path(path: &str) -> String {
    path.strip_prefix('/').unwrap_or(path).to_owned()
}

fn node(describer: &Describer<'_>, id: &NodeId, path: &str) -> Result<Option<Map>> {
    let hierarchy = describer.file.hierarchy();
    let Some(documents) = hierarchy.documents(id)? else { return Ok(None) };
    let mut own = Map::from([("zarr_format".to_string(), Json::from(u64::from(documents.version)))]);
    if let Err(e) = hierarchy.attributes(id) {
        own.append(&mut error(e));
    }
    own.insert("attrs".into(), plain(&documents.attributes));
    if hierarchy.kind(id)? == NodeKind::Group {
        own.insert("kind".into(), "group".into());
        return Ok(Some(own));
    }
    own.insert("kind".into(), "array".into());
    own.insert("codecs".into(), codecs(&documents));
    let member = |name: &str| documents.metadata.get(name).map_or(Json::Null, plain);
    own.insert("fill_value".into(), member("fill_value"));
    own.insert("order".into(), if documents.version == 2 { member("order") } else { Json::Null });
    own.insert("dimension_names".into(), member("dimension_names"));
    match describer.file.object(id, path) {
        Ok(Object::Array(array)) => describe(describer, &array, &documents, &mut own),
        Ok(_) => {}
        Err(e) => own.append(&mut error(e)),
    }
    Ok(Some(own))
}

fn describe(describer: &Describer<'_>, array: &Array, documents: &Documents, own: &mut Map) {
    let meta = array.meta();
    own.insert("dtype".into(), dtype(&meta.dtype).into());
    own.insert("shape".into(), Json::list(meta.space.dims().iter().copied()));
    let extents = |of: Option<&Document>| {
        let configuration = of?.get("configuration")?;
        configuration.get("chunk_shape").or_else(|| configuration.get("chunk_shapes")).cloned()
    };
    let outer = extents(documents.metadata.get("chunk_grid"));
    // Shards are called so if they are the only codec; the chunks are those of the first level.
    let inner = match documents.metadata.get("codecs").and_then(Document::as_list) {
        Some([only]) if only.get("name").and_then(Document::as_str) == Some("sharding_indexed") => {
            extents(Some(only))
        }
        _ => None,
    };
    let shards = outer.as_ref().filter(|_| inner.is_some());
    own.insert("shards".into(), shards.map_or(Json::Null, plain));
    let chunks = match (inner.or(outer), &meta.grid) {
        (Some(extents), _) => plain(&extents),
        (None, ChunkGrid::Regular(chunk)) => Json::list(chunk.iter().copied()),
        (None, _) => Json::Null,
    };
    own.insert("chunks".into(), chunks);
    own.insert("data".into(), Json::Map(data(describer, array).unwrap_or_else(error)));
}

fn data(describer: &Describer<'_>, array: &Array) -> Result<Map> {
    let meta = array.meta();
    let dims = meta.space.dims();
    if memory_size(&meta.dtype).saturating_mul(element_count(dims)?) > super::LARGE {
        return Ok(Map::from([("skipped".to_string(), "large".into())]));
    }
    let count = to_usize(element_count(dims)?)?;
    byte_count(dims, meta.dtype.size())?;
    let raw = array.read_raw(Selection::all())?;
    let bytes = bytes::Bytes::from(raw.bytes);
    let mut digest = Digest::default();
    let fixed = meta.dtype.is_fixed();
    if fixed {
        Encoder::new(&meta.dtype)?.encode(describer, bytes, count, false, &mut digest)?;
    } else {
        let limit = array.options().limits.output;
        let elements = Elements::decode(&**describer.file.hierarchy(), &meta.dtype, bytes, count, limit)?;
        let each = texts(elements.column(), count)?;
        digest.write(b"[");
        for (i, text) in each.into_iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let text = text.map_or("null".to_owned(), |t| format!("\"s:{}\"", encode::hex(&t)));
            digest.write(format!("{comma}{text}").as_bytes());
        }
        digest.write(b"]");
    }
    Ok(Map::from([
        ("raw".to_string(), Json::Bool(fixed)),
        ("n".into(), (count as u64).into()),
        ("bytes".into(), digest.length().into()),
        ("sha256".into(), digest.sha256().into()),
        ("head".into(), head(&digest, fixed).into()),
    ]))
}

/// The bytes of each element of any length.
fn texts(column: &Column, count: usize) -> Result<Vec<Option<Vec<u8>>>> {
    match column {
        Column::Text(texts) => Ok(texts.iter().map(|t| t.as_ref().map(|t| t.to_vec())).collect()),
        Column::Sequence { starts, items } => match &**items {
            Column::Fixed(items) => {
                let bounds = starts.windows(2).take(count);
                Ok(bounds.map(|b| Some(items.stored(b[0], b[1]).to_vec())).collect())
            }
            _ => Err(Error::unsupported("sequences of such elements")),
        },
        _ => Err(Error::unsupported("such elements of any length")),
    }
}

/// The type in memory: no byte order.
fn dtype(dtype: &DType) -> String {
    match dtype {
        other if other.is_bool() => "bool".into(),
        DType::Integer(t) => format!("{}{}", if t.signed { 'i' } else { 'u' }, 8 * t.size),
        DType::Float(t) => format!("f{}", 8 * t.size),
        DType::Complex { base } => format!("complex<{}>", self::dtype(base)),
        DType::String { size, .. } => format!("bytes{size}"),
        DType::Utf32 { length, .. } => format!("ucs4:{length}"),
        DType::Opaque { size, .. } => format!("raw{size}"),
        DType::DateTime(_) => {
            let text = dtype.to_string();
            text.trim_end_matches("le").trim_end_matches("be").to_owned()
        }
        DType::VarString { .. } => "vstr".into(),
        DType::VarLen { .. } => "vbytes".into(),
        DType::Array { base, dims } => {
            let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
            format!("array[{}]<{}>", dims.join(","), self::dtype(base))
        }
        DType::Compound { fields, .. } => {
            let fields: Vec<String> =
                fields.iter().map(|f| format!("{}:{}", Json::from(&f.name), self::dtype(&f.dtype))).collect();
            format!("compound{{{}}}", fields.join(","))
        }
        other => other.to_string(),
    }
}

/// The names of all codecs, in the order in which they encode.
fn codecs(documents: &Documents) -> Json {
    let metadata = &documents.metadata;
    if documents.version == 3 {
        return names(metadata.get("codecs"), 0);
    }
    let filters = metadata.get("filters").and_then(Document::as_list).unwrap_or(&[]);
    let compressor = metadata.get("compressor").filter(|c| c.as_map().is_some_and(|m| !m.is_empty()));
    let id = |codec: &Document| codec.get("id").map_or(Json::Null, plain);
    Json::List(filters.iter().chain(compressor).map(id).collect())
}

fn names(list: Option<&Document>, depth: u32) -> Json {
    if depth > 32 {
        return Json::Null;
    }
    let name = |codec: &Document| {
        let name = codec.as_str().or_else(|| codec.get("name").and_then(Document::as_str));
        match name {
            Some("sharding_indexed") => {
                let inner = codec.get("configuration").and_then(|c| c.get("codecs"));
                Json::map([("sharding_indexed", names(inner, depth + 1))])
            }
            Some(name) => name.into(),
            None => Json::Null,
        }
    };
    Json::List(list.and_then(Document::as_list).unwrap_or(&[]).iter().map(name).collect())
}

/// A document in canonical form; floats that are no numbers as text.
fn plain(value: &Document) -> Json {
    match value {
        Document::Null => Json::Null,
        Document::Bool(v) => Json::Bool(*v),
        Document::Integer(v) => Json::Number(*v),
        Document::Float(v) if !v.is_finite() => Json::Text(value.to_string()),
        Document::Float(_) => Json::Raw(value.to_string()),
        Document::Text(text) => text.as_str().into(),
        Document::Verbatim(spelled) => Json::Raw(spelled.to_string()),
        Document::List(items) => Json::List(items.iter().map(plain).collect()),
        Document::Map(members) => Json::Map(members.iter().map(|(k, v)| (k.clone(), plain(v))).collect()),
    }
}
