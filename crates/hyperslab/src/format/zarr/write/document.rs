//! The document of a new array.

use super::codec;
use super::fill;
use super::notes::Notes;
use super::options::{Flavour, ZarrOptions};
use super::types;
use crate::dtype::{ByteOrder, DType, StringPadding};
use crate::error::{Context, Error, Result};
use crate::json::{Json, to_base64};
use crate::model::Dataspace;
use crate::model::write::{ArraySpec, Content, FillSpec, LayoutSpec, ShardSpec};
use crate::shape::{MAX_RANK, byte_count, element_count};

/// Bytes of a chunk that is chosen here.
const CHUNK: u64 = 4 << 20;

/// Bytes of a chunk for elements that may come.
const FEW: u64 = 64 << 10;

/// Bytes of a text of any length where netCDF wants all of them to have one.
pub(super) const TEXT: usize = 128;

/// A new array in the words of Zarr.
#[derive(Debug)]
pub(super) struct Described {
    /// Members of `.zarray`, or of `zarr.json` but for attributes and names of dimensions.
    pub(super) metadata: Vec<(String, Json)>,
    /// Names of dimensions without paths.
    pub(super) dimensions: Option<Vec<Json>>,
    /// Whether NCZarr has to be told that it is a scalar.
    pub(super) scalar: bool,
    pub(super) notes: Notes,
}

fn text(text: impl Into<String>) -> Json {
    Json::Text(text.into())
}

fn list(extents: &[u64]) -> Json {
    Json::List(extents.iter().map(|&n| Json::Integer(n.into())).collect())
}

fn named(name: &str, members: Vec<(&str, Json)>) -> Json {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Json::Map(vec![("name".into(), text(name)), ("configuration".into(), Json::Map(members))])
}

/// What a spec becomes. What cannot be is [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
pub(super) fn array(spec: &ArraySpec, options: &ZarrOptions) -> Result<Described> {
    let mut notes = Notes::default();
    let nczarr = options.flavour == Flavour::NcZarr;
    let (mut shape, max) = match &spec.space {
        Dataspace::Null => {
            return Err(Error::unsupported("arrays without elements (null dataspace) in Zarr"));
        }
        Dataspace::Scalar => (Vec::new(), Vec::new()),
        Dataspace::Simple { dims, max } => (dims.clone(), max.clone()),
    };
    if shape.len() > MAX_RANK {
        return Err(Error::limit("axes of an array", shape.len() as u128, MAX_RANK as u128));
    }
    if max.iter().zip(&shape).any(|(max, &d)| *max != Some(d)) && !nczarr {
        notes.mapped("extents without a maximum");
    }
    if spec.committed.is_some() {
        notes.mapped("a type without its name");
    }
    if spec.fill_time.is_some() || spec.allocation_time.is_some() {
        // When storage is written is not a question in Zarr, and nothing that a reader sees.
    }
    let mut dtype = match nczarr {
        true => netcdf_type(&spec.dtype, &mut notes)?,
        false => types::storable(&spec.dtype, &mut notes)?,
    };
    if options.version == 3 {
        let order = dtype.order().unwrap_or(ByteOrder::Little);
        let uniform = types::with_order(&dtype, order);
        if uniform != dtype {
            notes.mapped("all numbers in one byte order");
            dtype = uniform;
        }
    }
    let scalar = nczarr && shape.is_empty();
    if scalar {
        shape.push(1);
    }
    let (chunk, shard) = chunks(spec, &shape, &max, &dtype)?;
    let outer = shard.as_ref().map_or(&chunk, |s| &s.extents);
    check_extents(outer, &dtype, options)?;
    let variable = match &dtype {
        DType::VarString { .. } => Some("vlen-utf8"),
        DType::VarLen { .. } => Some("vlen-bytes"),
        _ => None,
    };
    let stages = match variable {
        // Codecs see bytes then.
        Some(_) => codec::stages(&spec.filters, &DType::Opaque { size: 1, tag: Default::default() }, &[])?,
        None => codec::stages(&spec.filters, &dtype, &chunk)?,
    };
    let fill = fill_value(spec, &dtype, options, &mut notes)?;
    let (metadata, dimensions) = match options.version {
        2 => {
            if shard.is_some() {
                return Err(
                    Error::unsupported("shards in Zarr 2").hint("write Zarr 3, or chunks without shards")
                );
            }
            let (filters, compressor, order) = codec::v2(&stages, variable, shape.len())?;
            let code = match &dtype {
                DType::String { size: 1, .. } if nczarr => text(">S1"),
                dtype => types::v2(dtype)?,
            };
            let mut members = vec![
                ("zarr_format", Json::Integer(2)),
                ("shape", list(&shape)),
                ("chunks", list(&chunk)),
                ("dtype", code),
                ("fill_value", fill),
                ("order", text(order)),
                ("compressor", compressor),
                ("filters", filters),
            ];
            if options.separator == Some('/') {
                members.push(("dimension_separator", text("/")));
            }
            (members, names(spec))
        }
        _ => {
            let endian = match dtype.order() {
                Some(ByteOrder::Big) => Some("big"),
                Some(_) => Some("little"),
                None => None,
            };
            let inner = codec::v3(&stages, variable, endian).context(|| "codecs")?;
            let codecs = match &shard {
                None => inner,
                Some(shard) => {
                    let endian = Json::Map(vec![("endian".into(), text("little"))]);
                    let bytes =
                        Json::Map(vec![("name".into(), text("bytes")), ("configuration".into(), endian)]);
                    let sum = Json::Map(vec![("name".into(), text("crc32c"))]);
                    vec![named(
                        "sharding_indexed",
                        vec![
                            ("chunk_shape", list(&chunk)),
                            ("codecs", Json::List(inner)),
                            ("index_codecs", Json::List(vec![bytes, sum])),
                            ("index_location", text(if shard.index_at_start { "start" } else { "end" })),
                        ],
                    )]
                }
            };
            let (name, separator) = match options.v2_keys {
                true => ("v2", options.separator.unwrap_or('.')),
                false => ("default", options.separator.unwrap_or('/')),
            };
            let keys = named(name, vec![("separator", text(separator.to_string()))]);
            let members = vec![
                ("zarr_format", Json::Integer(3)),
                ("node_type", text("array")),
                ("shape", list(&shape)),
                ("data_type", types::v3(&dtype)?),
                ("chunk_grid", named("regular", vec![("chunk_shape", list(outer))])),
                ("chunk_key_encoding", keys),
                ("fill_value", fill),
                ("codecs", Json::List(codecs)),
            ];
            (members, names(spec))
        }
    };
    let metadata = metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Described { metadata, dimensions, scalar, notes })
}

/// Names of dimensions, without those of the groups that they are in.
fn names(spec: &ArraySpec) -> Option<Vec<Json>> {
    let name = |dimension: &Option<crate::model::write::ObjectPath>| match dimension {
        Some(path) => path.names().last().map_or(Json::Null, |name| text(name.to_string())),
        None => Json::Null,
    };
    let names: Vec<Json> = spec.dimensions.iter().map(name).collect();
    names.iter().any(|n| !n.is_null()).then_some(names)
}

/// The types that netCDF-C knows in Zarr. With one of another type it opens nothing of the whole store.
fn netcdf_type(dtype: &DType, notes: &mut Notes) -> Result<DType> {
    if dtype.is_bool() {
        notes.mapped("truth values as bytes");
        return Ok(DType::Integer(crate::dtype::IntegerType::new(1, ByteOrder::Little, true)));
    }
    if let DType::VarString { charset, .. } = dtype {
        notes.mapped(format!("texts of any length as texts of at most {TEXT} bytes"));
        return Ok(DType::String { size: TEXT, padding: StringPadding::NullPadded, charset: *charset });
    }
    let stored = types::storable(dtype, notes)?;
    match &stored {
        DType::Integer(_) | DType::String { .. } => Ok(stored),
        DType::Float(t) if t.size >= 4 => Ok(stored),
        _ => Err(Error::unsupported(format_args!("elements of type {dtype} in NCZarr"))
            .hint("write Zarr without netCDF's additions")),
    }
}

/// Extents of a chunk and of a shard.
fn chunks(
    spec: &ArraySpec,
    shape: &[u64],
    max: &[Option<u64>],
    dtype: &DType,
) -> Result<(Vec<u64>, Option<ShardSpec>)> {
    match &spec.layout {
        LayoutSpec::Chunked { chunk, shard } => {
            let mut chunk = chunk.clone();
            // A scalar of NCZarr has one axis here.
            if chunk.is_empty() && shape.len() == 1 && spec.space.dims().is_empty() {
                chunk.push(1);
            }
            if chunk.len() != shape.len() || chunk.contains(&0) {
                return Err(Error::invalid(format!("chunks of {chunk:?} for an array of {shape:?}")));
            }
            if let Some(shard) = shard {
                let whole = shard.extents.iter().zip(&chunk).all(|(s, c)| *s > 0 && s.is_multiple_of(*c));
                if shard.extents.len() != chunk.len() || !whole {
                    let text =
                        format!("shards of {:?} are not made of whole chunks of {chunk:?}", shard.extents);
                    return Err(Error::invalid(text));
                }
            }
            Ok((chunk, shard.clone()))
        }
        LayoutSpec::Auto | LayoutSpec::Compact | LayoutSpec::Contiguous => {
            Ok((chosen(shape, max, dtype.size().max(1) as u64), None))
        }
        LayoutSpec::Virtual(_) | LayoutSpec::Stacked { .. } => {
            Err(Error::unsupported("virtual datasets in Zarr"))
        }
        LayoutSpec::External(_) => Err(Error::unsupported("elements in other files in Zarr")),
    }
}

/// Chunks of up to 4 MiB: whole rows of the last axes as far as they fit. Along an axis that may grow they are as long as
/// 64 KiB are, if there is not as much yet.
fn chosen(shape: &[u64], max: &[Option<u64>], size: u64) -> Vec<u64> {
    let (mut room, mut few) = ((CHUNK / size).max(1), (FEW / size).max(1));
    let mut chunk = vec![1u64; shape.len()];
    for (axis, (slot, &d)) in chunk.iter_mut().zip(shape).enumerate().rev() {
        let grows = max.get(axis).is_some_and(|m| *m != Some(d));
        let wanted = if grows { d.max(few) } else { d };
        *slot = wanted.min(room).max(1);
        room /= *slot;
        few /= *slot;
    }
    chunk
}

fn check_extents(chunk: &[u64], dtype: &DType, options: &ZarrOptions) -> Result<()> {
    element_count(chunk)?;
    let bytes = byte_count(chunk, dtype.size())?;
    if bytes > options.limits.chunk {
        return Err(Error::limit("bytes of a chunk", bytes.into(), options.limits.chunk.into()));
    }
    Ok(())
}

fn fill_value(spec: &ArraySpec, dtype: &DType, options: &ZarrOptions, notes: &mut Notes) -> Result<Json> {
    let nczarr = options.flavour == Flavour::NcZarr;
    let zeros = || match dtype {
        DType::VarString { .. } | DType::VarLen { .. } => text(""),
        dtype => fill::spelled(dtype, &vec![0; dtype.size()], options.version, nczarr),
    };
    match &spec.fill {
        FillSpec::Undefined if options.version == 2 => Ok(Json::Null),
        FillSpec::Undefined => {
            notes.mapped("a fill value of zero in place of none");
            Ok(zeros())
        }
        // xarray takes a fill value of version 2 for one that stands for what is missing.
        FillSpec::Default if options.version == 2 && !nczarr && !spec.dimensions.is_empty() => Ok(Json::Null),
        FillSpec::Default => Ok(zeros()),
        FillSpec::Value(content) => {
            content.check(&spec.dtype, 1).context(|| "fill value")?;
            match content {
                Content::Fixed(stored) => {
                    let stored = crate::dtype::Recode::new(&spec.dtype, dtype)?.run(stored)?;
                    Ok(fill::spelled(dtype, &stored, options.version, nczarr))
                }
                Content::Objects { elements, .. } => {
                    let bytes = elements.first().and_then(|e| e.get(8..)).unwrap_or(&[]);
                    match (dtype, std::str::from_utf8(bytes)) {
                        (DType::VarLen { .. }, _) => Ok(text(to_base64(bytes))),
                        (_, Ok(value)) => Ok(text(value)),
                        (_, Err(_)) => Err(Error::unsupported("a fill value of text that is not UTF-8")),
                    }
                }
            }
        }
    }
}
