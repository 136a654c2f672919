//! What the document of an array says, in either version of the format.

use super::fill;
use super::key::KeyEncoding;
use super::rectilinear::Rectilinear;
use super::types::{self, Element, Variable};
use crate::codec::{FilterSpec, byte_order_missing};
use crate::dtype::{ByteOrder, DType};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Json, base64, wrong_member};
use crate::shape::MAX_RANK;

/// An array as its document describes it.
#[derive(Debug)]
pub(super) struct ArrayDocument {
    pub(super) shape: Vec<u64>,
    /// Extents of what one object holds; the largest ones if they differ.
    pub(super) chunk: Vec<u64>,
    /// How they differ, if they do.
    pub(super) rectilinear: Option<Rectilinear>,
    pub(super) element: Element,
    pub(super) fill: Fill,
    pub(super) keys: KeyEncoding,
    pub(super) codecs: Codecs,
    pub(super) dimension_names: Option<Vec<Option<String>>>,
}

/// The value of elements that were never written.
#[derive(Debug)]
pub(super) enum Fill {
    /// Nobody said.
    Undefined,
    /// One element as stored, or its bytes if it is of any length.
    Value(Vec<u8>),
}

/// How chunks are encoded.
#[derive(Debug, Default)]
pub(super) struct Codecs {
    /// Shards around the chunks, from the outermost.
    pub(super) shards: Vec<Shard>,
    /// For elements of any length, the order of the axes: which axis of the chunk each stored one is.
    pub(super) order: Option<Vec<usize>>,
    /// The stages of a chunk, in the order in which they encode. For elements of any length, those behind the list.
    pub(super) filters: Vec<FilterSpec>,
}

/// One level of shards.
#[derive(Debug)]
pub(super) struct Shard {
    /// Extents of the chunks in it, along the axes of the array.
    pub(super) chunk: Vec<u64>,
    /// The order of axes in which it holds them: which axis of the array each of its own is.
    pub(super) order: Vec<usize>,
    /// Stages of its index.
    pub(super) index: Vec<FilterSpec>,
    /// Whether the index comes first.
    pub(super) at_start: bool,
    /// Stages around the whole shard.
    pub(super) outer: Vec<FilterSpec>,
}

/// Nesting of shards that nobody needs.
const MAX_SHARDS: usize = 8;

fn extents(document: &Json, name: &str) -> Result<Vec<u64>> {
    let list = document.get(name).and_then(Json::as_list);
    let list = list.ok_or_else(|| wrong_member(name, "a list of extents is missing"))?;
    if list.len() > MAX_RANK {
        return Err(Error::limit("axes of an array", list.len() as u128, MAX_RANK as u128));
    }
    let extents: Option<Vec<u64>> = list.iter().map(Json::as_u64).collect();
    extents.ok_or_else(|| wrong_member(name, "an extent is no whole number"))
}

/// Extents of chunks for an array of `shape`; a chunk of nothing can only be of an array of nothing.
fn chunk_extents(document: &Json, name: &str, shape: &[u64]) -> Result<Vec<u64>> {
    let chunk = extents(document, name)?;
    if chunk.len() != shape.len() {
        let what = format!("{} axes, the array has {}", chunk.len(), shape.len());
        return Err(wrong_member(name, what));
    }
    if chunk.iter().zip(shape).any(|(&c, &d)| c == 0 && d > 0) {
        return Err(wrong_member(name, "a chunk without elements"));
    }
    Ok(chunk.into_iter().map(|c| c.max(1)).collect())
}

/// The value of an element of any length.
fn variable_fill(kind: Variable, spelled: &Json) -> Result<Vec<u8>> {
    let wrong = || Error::new(ErrorKind::Corrupt, format!("the fill value {spelled} is no element"));
    match (kind, spelled) {
        (_, broken) if broken.is_broken_text() => Err(wrong()),
        (Variable::Bytes, Json::Text(text)) => Ok(base64(text).unwrap_or_else(|| text.as_bytes().to_vec())),
        (Variable::Bytes, Json::List(items)) => {
            let bytes = items.iter().map(|b| b.as_u64().and_then(|b| u8::try_from(b).ok()));
            bytes.collect::<Option<_>>().ok_or_else(wrong)
        }
        (_, Json::Text(text)) => Ok(text.as_bytes().to_vec()),
        // NumPy's zero stands for the empty text.
        (_, other) if other.as_f64() == Some(0.0) => Ok(Vec::new()),
        (_, other) => Ok(other.to_string().into_bytes()),
    }
}

fn fill_of(element: &Element, spelled: Option<&Json>) -> Result<Fill> {
    let spelled = spelled.unwrap_or(&Json::Null);
    Ok(match element {
        Element::Variable(_) if spelled.is_null() => Fill::Undefined,
        Element::Variable(kind) => Fill::Value(variable_fill(*kind, spelled)?),
        Element::Fixed(dtype) => fill::element(dtype, spelled)?.map_or(Fill::Undefined, Fill::Value),
    })
}

fn text<'a>(document: &'a Json, name: &str) -> Option<&'a str> {
    document.get(name).and_then(Json::as_str)
}

/// A filter or compressor of Zarr 2: its `id`, and all other members.
fn v2_codec(spelled: &Json) -> Result<FilterSpec> {
    let id = text(spelled, "id")
        .ok_or_else(|| wrong_member("id", format_args!("missing in the codec {spelled}")))?;
    let others = spelled.as_map().unwrap_or(&[]).iter().filter(|(name, _)| name != "id");
    Ok(FilterSpec::Zarr { name: id.to_owned(), configuration: Json::Map(others.cloned().collect()) })
}

/// Whether the elements are text of NCZarr before netCDF-C 4.9.1, which calls a byte of it one of UTF-32.
pub(super) fn may_be_old_text(document: &Json) -> bool {
    text(document, "dtype").is_some_and(|code| code.len() == 3 && code.ends_with("U1"))
}

/// Whether the mark `_NCProperties` is of a netCDF-C that calls bytes of text UTF-32, also in what is not NCZarr: 4.9.0
/// and those before.
pub(super) fn is_of_old_text(mark: &str) -> bool {
    let version = mark.split(',').find_map(|part| part.trim().strip_prefix("netcdf="));
    let number = |part: &str| {
        let digits = part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse::<u32>().ok()
    };
    let parts: Option<Vec<u32>> = version.and_then(|v| v.split('.').take(3).map(number).collect());
    parts.is_some_and(|parts| !parts.is_empty() && parts < vec![4, 9, 1])
}

/// The document `.zarray`. `of_nczarr`: something else says that an old NCZarr wrote it.
pub(super) fn v2(document: &Json, of_nczarr: bool) -> Result<ArrayDocument> {
    let shape = extents(document, "shape")?;
    let chunk = chunk_extents(document, "chunks", &shape)?;
    let mut filters = Vec::new();
    match document.get("filters") {
        None | Some(Json::Null) => {}
        Some(Json::List(list)) => filters = list.iter().map(v2_codec).collect::<Result<_>>()?,
        Some(other) => return Err(wrong_member("filters", format_args!("{other} is no list"))),
    }
    if let Some(compressor) = document.get("compressor").filter(|c| !c.is_null()) {
        filters.push(v2_codec(compressor)?);
    }
    let spelled = document.get("dtype").ok_or_else(|| wrong_member("dtype", "missing"))?;
    let element = match spelled.as_str() {
        Some("|O" | "O" | "<O" | ">O") => {
            let kind = match filters.first() {
                Some(FilterSpec::Zarr { name, .. }) => Variable::of(name),
                _ => None,
            };
            let Some(kind) = kind else {
                let name = match filters.first() {
                    Some(FilterSpec::Zarr { name, .. }) => name.as_str(),
                    _ => "no codec",
                };
                return Err(Error::unsupported(format_args!("objects (dtype O) encoded by {name}")));
            };
            filters.remove(0);
            Element::Variable(kind)
        }
        Some(_) if may_be_old_text(document) && (of_nczarr || document.get("_NCZARR_ARRAY").is_some()) => {
            Element::Fixed(types::v2(&Json::Text("|S1".into()), 0)?)
        }
        _ => Element::Fixed(types::v2(spelled, 0)?),
    };
    let mut codecs = Codecs { filters, ..Codecs::default() };
    match text(document, "order") {
        None | Some("C") => {}
        Some("F") if shape.len() > 1 => match element {
            Element::Variable(_) => codecs.order = Some((0..shape.len()).rev().collect()),
            Element::Fixed(_) => {
                let configuration = Json::Map(vec![("order".into(), Json::Text("F".into()))]);
                codecs.filters.insert(0, FilterSpec::Zarr { name: "transpose".into(), configuration });
            }
        },
        Some("F") => {}
        Some(other) => return Err(wrong_member("order", format_args!("{other:?} is neither C nor F"))),
    }
    let separator = match text(document, "dimension_separator") {
        None | Some(".") => '.',
        Some("/") => '/',
        Some(other) => {
            return Err(wrong_member("dimension_separator", format_args!("{other:?} is neither . nor /")));
        }
    };
    let fill = fill_of(&element, document.get("fill_value"))?;
    let keys = KeyEncoding::v2(separator);
    let (rectilinear, dimension_names) = (None, None);
    Ok(ArrayDocument { shape, chunk, rectilinear, element, fill, keys, codecs, dimension_names })
}

/// Name and configuration of an extension of Zarr 3: an object, or the name alone.
pub(super) fn extension<'a>(spelled: &'a Json, what: &str) -> Result<(&'a str, &'a Json)> {
    static NOTHING: Json = Json::Map(Vec::new());
    let name = spelled.as_str().or_else(|| text(spelled, "name"));
    let name = name.ok_or_else(|| wrong_member(what, format_args!("{spelled} has no name")))?;
    Ok((name, spelled.get("configuration").unwrap_or(&NOTHING)))
}

/// The document `zarr.json` of an array.
pub(super) fn v3(document: &Json) -> Result<ArrayDocument> {
    check_understood(document)?;
    let shape = extents(document, "shape")?;
    let grid = document.get("chunk_grid").ok_or_else(|| wrong_member("chunk_grid", "missing"))?;
    let (chunk, rectilinear) = match extension(grid, "chunk_grid")? {
        ("regular", configuration) => (chunk_extents(configuration, "chunk_shape", &shape)?, None),
        ("rectilinear", configuration) => {
            let grid = Rectilinear::parse(configuration, &shape)?;
            (grid.largest(), (!grid.is_regular()).then_some(grid))
        }
        (other, _) => return Err(Error::unsupported(format_args!("the chunk grid {other:?}"))),
    };
    if let Some(transformers) = document.get("storage_transformers").and_then(Json::as_list)
        && let Some(first) = transformers.first()
    {
        let name = extension(first, "storage_transformers")?.0;
        return Err(Error::unsupported(format_args!("the storage transformer {name:?}")));
    }
    let keys = match document.get("chunk_key_encoding") {
        None => KeyEncoding::v3('/'),
        Some(spelled) => KeyEncoding::parse(spelled)?,
    };
    let list = codec_list(document)?;
    let spelled = document.get("data_type").ok_or_else(|| wrong_member("data_type", "missing"))?;
    let (codecs, order) = v3_codecs(list, &chunk)?;
    let element = types::v3(spelled, order.unwrap_or(ByteOrder::Little), 0)?;
    if let (Element::Fixed(dtype), None) = (&element, order)
        && dtype.has_order()
    {
        return Err(byte_order_missing(dtype).context("codec bytes"));
    }
    let spelled = document.get("fill_value").ok_or_else(|| wrong_member("fill_value", "missing"))?;
    let fill = fill_of(&element, Some(spelled))?;
    let dimension_names = match document.get("dimension_names") {
        Some(Json::List(names)) if names.len() == shape.len() => {
            Some(names.iter().map(|n| n.as_str().map(str::to_owned)).collect())
        }
        None | Some(Json::Null) => None,
        Some(other) => {
            let text = format_args!("{other} for an array of rank {}", shape.len());
            return Err(wrong_member("dimension_names", text));
        }
    };
    Ok(ArrayDocument { shape, chunk, rectilinear, element, fill, keys, codecs, dimension_names })
}

/// What is not known here is not read as if it were not there, unless it says that it may be (Zarr 3, "Array metadata").
fn check_understood(document: &Json) -> Result<()> {
    const KNOWN: [&str; 12] = [
        "zarr_format",
        "node_type",
        "shape",
        "data_type",
        "chunk_grid",
        "chunk_key_encoding",
        "fill_value",
        "codecs",
        "attributes",
        "storage_transformers",
        "dimension_names",
        "consolidated_metadata",
    ];
    for (name, value) in document.as_map().unwrap_or(&[]) {
        let may_be_ignored = matches!(value.get("must_understand"), Some(Json::Bool(false)));
        if !KNOWN.contains(&name.as_str()) && !may_be_ignored {
            return Err(Error::unsupported(format_args!("the extension {name:?}, which must be understood")));
        }
    }
    Ok(())
}

/// The codecs that the document `zarr.json` of an array lists.
fn codec_list(document: &Json) -> Result<&[Json]> {
    let list = document.get("codecs").and_then(Json::as_list);
    list.ok_or_else(|| wrong_member("codecs", "missing"))
}

/// What the codecs of the document are for chunks with these extents.
pub(super) fn codecs_for(document: &Json, chunk: &[u64]) -> Result<Codecs> {
    Ok(v3_codecs(codec_list(document)?, chunk)?.0)
}

/// About how many bytes the codecs of the document need in memory.
pub(super) fn codecs_memory(document: &Json) -> Result<u64> {
    let length = codec_list(document)?.iter().map(|c| c.to_string().len()).fold(0, usize::saturating_add);
    Ok((length as u64).saturating_mul(16))
}

/// The codecs of chunks with these extents, and the byte order of their elements; `None` if none is said where one may
/// have to be.
fn v3_codecs(list: &[Json], chunk: &[u64]) -> Result<(Codecs, Option<ByteOrder>)> {
    let mut codecs = Codecs::default();
    let mut list = list.to_vec();
    let mut chunk = chunk.to_vec();
    // What the stages so far made of the axes: which axis of the array each one is.
    let mut order: Vec<usize> = (0..chunk.len()).collect();
    // Down to the chunks that are not shards.
    while let Some(at) =
        list.iter().position(|c| extension(c, "codecs").is_ok_and(|(n, _)| n == "sharding_indexed"))
    {
        if codecs.shards.len() >= MAX_SHARDS {
            return Err(Error::limit("nesting of shards", MAX_SHARDS as u128 + 1, MAX_SHARDS as u128));
        }
        for spelled in list.iter().take(at) {
            let natural = Some((0..chunk.len()).collect());
            let turned = transposed(&v3_codec(spelled)?, natural, chunk.len(), "shards")?;
            order = turned.iter().filter_map(|&axis| order.get(axis).copied()).collect();
            chunk = turned.iter().filter_map(|&axis| chunk.get(axis).copied()).collect();
        }
        let outer = list.iter().skip(at + 1).map(v3_codec).collect::<Result<_>>()?;
        let (_, configuration) = list.get(at).map_or(Ok(("", &Json::Null)), |c| extension(c, "codecs"))?;
        let inner = chunk_extents(configuration, "chunk_shape", &chunk)?;
        if chunk.iter().zip(&inner).any(|(shard, chunk)| !shard.is_multiple_of(*chunk)) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("shards of {chunk:?} are not made of whole chunks of {inner:?}"),
            ));
        }
        let index = match configuration.get("index_codecs").and_then(Json::as_list) {
            Some(list) => list.iter().map(index_codec).collect::<Result<_>>()?,
            None => Vec::new(),
        };
        let at_start = match text(configuration, "index_location") {
            None | Some("end") => false,
            Some("start") => true,
            Some(other) => {
                return Err(wrong_member(
                    "index_location",
                    format_args!("{other:?} is neither start nor end"),
                ));
            }
        };
        let within = configuration.get("codecs").and_then(Json::as_list);
        let within = within.ok_or_else(|| wrong_member("codecs", "missing in sharding_indexed"))?.to_vec();
        let mut along = inner.clone();
        for (&axis, &extent) in order.iter().zip(&inner) {
            if let Some(slot) = along.get_mut(axis) {
                *slot = extent;
            }
        }
        codecs.shards.push(Shard { chunk: along, order: order.clone(), index, at_start, outer });
        (chunk, list) = (inner, within);
    }
    let mut only_transposed = true;
    let mut axes: Option<Vec<usize>> = None;
    if !order.iter().copied().eq(0..order.len()) {
        let list = order.iter().map(|&axis| Json::Integer(axis as i128)).collect();
        let configuration = Json::Map(vec![("order".into(), Json::List(list))]);
        codecs.filters.push(FilterSpec::Zarr { name: "transpose".into(), configuration });
    }
    // A codec that comes before `bytes` makes elements of its own, whose order `bytes` says for itself.
    let mut order = Some(ByteOrder::Little);
    for spelled in &list {
        let (name, configuration) = extension(spelled, "codecs")?;
        match name {
            "bytes" | "endian" if only_transposed => {
                // The byte order is that of the type; there is nothing left to do.
                order = match configuration.get("endian") {
                    None | Some(Json::Null) => None,
                    Some(Json::Text(endian)) if endian == "little" => Some(ByteOrder::Little),
                    Some(Json::Text(endian)) if endian == "big" => Some(ByteOrder::Big),
                    Some(other) => {
                        let text = format_args!("{other} is neither little nor big");
                        return Err(wrong_member("endian", text));
                    }
                };
                only_transposed = false;
            }
            "vlen-utf8" | "vlen-bytes" => {
                for filter in codecs.filters.drain(..) {
                    axes = Some(transposed(&filter, axes, chunk.len(), "elements of any length")?);
                }
                only_transposed = false;
            }
            "transpose" if !only_transposed => {
                return Err(wrong_member(
                    "codecs",
                    "a transpose after the codec that makes bytes of elements",
                ));
            }
            other => {
                only_transposed &= other == "transpose";
                codecs.filters.push(v3_codec(spelled)?);
            }
        }
    }
    if only_transposed {
        return Err(wrong_member("codecs", "none of them makes bytes of elements"));
    }
    codecs.order = axes;
    Ok((codecs, order))
}

fn v3_codec(spelled: &Json) -> Result<FilterSpec> {
    let (name, configuration) = extension(spelled, "codecs")?;
    Ok(FilterSpec::Zarr { name: name.to_owned(), configuration: configuration.clone() })
}

/// A stage of a shard's index. GDAL and zarr-python take its numbers as little-endian if nobody says, and its offsets are
/// checked in any case.
fn index_codec(spelled: &Json) -> Result<FilterSpec> {
    let codec = v3_codec(spelled)?;
    match codec {
        FilterSpec::Zarr { name, configuration }
            if name == "bytes" && configuration.get("endian").is_none_or(Json::is_null) =>
        {
            let configuration = Json::Map(vec![("endian".into(), Json::Text("little".into()))]);
            Ok(FilterSpec::Zarr { name, configuration })
        }
        other => Ok(other),
    }
}

/// The order of axes after one more transposition, the only stage that may stand before `what`.
fn transposed(
    filter: &FilterSpec,
    before: Option<Vec<usize>>,
    rank: usize,
    what: &str,
) -> Result<Vec<usize>> {
    let before = before.unwrap_or_else(|| (0..rank).collect());
    let FilterSpec::Zarr { name, configuration } = filter else {
        return Err(Error::unsupported("HDF5 filters in Zarr arrays"));
    };
    let order: Vec<usize> = match configuration.get("order") {
        _ if name != "transpose" => {
            return Err(Error::unsupported(format_args!("the codec {name:?} before {what}")));
        }
        Some(Json::Text(text)) if text == "F" => (0..rank).rev().collect(),
        Some(Json::List(axes)) => {
            axes.iter().filter_map(|a| a.as_u64().and_then(|a| usize::try_from(a).ok())).collect()
        }
        _ => (0..rank).collect(),
    };
    let axes: Vec<usize> = order.iter().filter_map(|&a| before.get(a).copied()).collect();
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) {
        return Err(wrong_member("order", format_args!("{order:?} does not order {rank} axes")));
    }
    Ok(axes)
}

impl ArrayDocument {
    /// The type that the model knows.
    pub(super) fn dtype(&self) -> DType {
        self.element.dtype()
    }

    /// netCDF-C prints its default for doubles, 15 × 2^119, with six digits, and reads it as what it was.
    pub(super) fn mend_default_fill(&mut self) {
        const DEFAULT: f64 = 9.969_209_968_386_869e36;
        if let (Element::Fixed(DType::Float(t)), Fill::Value(bytes)) = (&self.element, &mut self.fill)
            && t.size == 8
            && t.value(bytes) == 9.96921e36
        {
            *bytes = if t.order == ByteOrder::Big { DEFAULT.to_be_bytes() } else { DEFAULT.to_le_bytes() }
                .to_vec();
        }
    }
}
