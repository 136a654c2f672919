//! Stages as documents of both versions spell them.

use crate::codec::{BindContext, FilterSpec, Registry, SPELLINGS, Spelling};
use crate::dtype::DType;
use crate::error::{Context, Error, Result};
use crate::json::Json;

/// Codecs that make elements of elements; all others make bytes of bytes.
const OF_ELEMENTS: [&str; 7] =
    ["astype", "bitround", "delta", "fixedscaleoffset", "packbits", "quantize", "transpose"];

/// Codecs that make bytes of elements, in place of `bytes`.
const TO_BYTES: [&str; 1] = ["pcodec"];

/// What Zarr 2 calls the compressor; only one of these stands there.
const COMPRESSORS: [&str; 9] = ["blosc", "bz2", "gzip", "lz4", "lzma", "pcodec", "szip", "zlib", "zstd"];

/// A stage in the words of Zarr: its id and configuration, those of Zarr 2.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stage {
    pub(super) id: &'static str,
    pub(super) members: Vec<(String, Json)>,
}

/// Stages of an array with these elements, in the words of Zarr 2. Those that are not known here, or are only read, are
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
pub(super) fn stages(filters: &[FilterSpec], dtype: &DType, chunk: &[u64]) -> Result<Vec<Stage>> {
    let stages: Vec<Stage> = filters.iter().map(|spec| stage(spec, dtype)).collect::<Result<_>>()?;
    // What a codec does not take is said now, not when the first chunk comes.
    let chunk: Vec<u64> = chunk.iter().map(|&c| c.max(1)).collect();
    let chunk_bytes = crate::shape::byte_count(&chunk, dtype.size())?;
    let context = BindContext { dtype, chunk: &chunk, chunk_bytes };
    let specs: Vec<FilterSpec> = stages.iter().map(Stage::spec).collect();
    Registry::default().pipeline(&specs, &context)?.check(0)?;
    Ok(stages)
}

fn stage(spec: &FilterSpec, dtype: &DType) -> Result<Stage> {
    let zarr = spec.to_zarr()?;
    let FilterSpec::Zarr { name, configuration } = &zarr else {
        return Err(Error::unsupported("a filter that has no name in Zarr"));
    };
    let spelling = known(name).ok_or_else(|| Error::unsupported(format_args!("the codec {name:?}")))?;
    if !spelling.encodes {
        return Err(Error::unsupported(format_args!("writing with the codec {name:?}, which is only read"))
            .hint("choose another codec, such as zstd"));
    }
    let mut members = configuration.as_map().unwrap_or(&[]).to_vec();
    members.retain(|(name, _)| name != "id");
    let mut set = |name: &str, value: Json| match members.iter_mut().find(|(n, _)| n == name) {
        Some((_, old)) => *old = value,
        None => members.push((name.to_owned(), value)),
    };
    let missing = |name: &str| configuration.get(name).is_none_or(Json::is_null);
    let integer = |value: i128| Json::Integer(value);
    match spelling.id {
        // Readers do not know the elements of a stage of bytes, so that their size is always said.
        "shuffle" | "bitshuffle" => {
            let size = configuration.get("elementsize");
            let number = size.and_then(|s| s.as_u64().or_else(|| s.as_str()?.parse().ok())).unwrap_or(0);
            if number == 0 {
                set("elementsize", integer(dtype.size() as i128));
            }
        }
        "blosc" => {
            for (name, value) in [("clevel", 5), ("blocksize", 0)] {
                if missing(name) {
                    set(name, integer(value));
                }
            }
            if missing("cname") {
                set("cname", Json::Text("lz4".into()));
            }
            let shuffle = match configuration.get("shuffle") {
                Some(Json::Text(word)) => match word.as_str() {
                    "noshuffle" => 0,
                    "shuffle" => 1,
                    "bitshuffle" => 2,
                    other => {
                        return Err(crate::json::wrong_member(
                            "shuffle",
                            format_args!("{other:?} is no way"),
                        ));
                    }
                },
                Some(number) => match number.as_integer() {
                    // NumPy's way to leave the choice: bits of single bytes, bytes of all others.
                    Some(-1) => 1 + i128::from(dtype.size() == 1),
                    Some(way @ 0..=2) => way,
                    _ => {
                        return Err(crate::json::wrong_member("shuffle", format_args!("{number} is no way")));
                    }
                },
                None => 1,
            };
            set("shuffle", integer(shuffle));
            if missing("typesize") {
                set("typesize", integer(dtype.size().min(255) as i128));
            }
        }
        "zstd" => {
            if missing("level") {
                set("level", integer(0));
            }
            if missing("checksum") {
                set("checksum", Json::Bool(false));
            }
        }
        "zlib" | "bz2" if missing("level") => set("level", integer(1)),
        "gzip" if missing("level") => set("level", integer(5)),
        "delta" if missing("dtype") => set("dtype", super::types::v2(dtype)?),
        _ => {}
    }
    Ok(Stage { id: spelling.id, members })
}

/// The codec of a name in any spelling.
fn known(name: &str) -> Option<&'static Spelling> {
    let bare = name.strip_prefix("numcodecs.").unwrap_or(name);
    let format = ["bytes", "endian", "json2", "sharding_indexed", "vlen-bytes", "vlen-utf8"];
    SPELLINGS.iter().find(|s| s.id == bare && !format.contains(&s.id))
}

impl Stage {
    /// As the registry takes it.
    fn spec(&self) -> FilterSpec {
        FilterSpec::Zarr { name: self.id.to_owned(), configuration: Json::Map(self.members.clone()) }
    }

    /// As Zarr 2 spells it.
    fn v2(&self) -> Json {
        let mut members = vec![("id".to_owned(), Json::Text(self.id.into()))];
        // The elements of Blosc are those of the array.
        members
            .extend(self.members.iter().filter(|(n, _)| !(self.id == "blosc" && n == "typesize")).cloned());
        Json::Map(members)
    }

    /// As Zarr 3 spells it.
    fn v3(&self) -> Result<Json> {
        let example = SPELLINGS.iter().find(|s| s.id == self.id).map_or("", |s| s.v3);
        let name = Json::parse(example.as_bytes())
            .ok()
            .and_then(|example| example.get("name").and_then(Json::as_str).map(str::to_owned))
            .ok_or_else(|| Error::unsupported(format_args!("the codec {} in Zarr 3", self.id)))?;
        let mut members = self.members.clone();
        if self.id == "blosc" {
            for (name, value) in &mut members {
                if name == "shuffle" {
                    let word = match value.as_integer() {
                        Some(0) => "noshuffle",
                        Some(2) => "bitshuffle",
                        _ => "shuffle",
                    };
                    *value = Json::Text(word.into());
                }
            }
        }
        let name = ("name".to_owned(), Json::Text(name));
        // Some readers want it where it says nothing, too.
        Ok(Json::Map(vec![name, ("configuration".to_owned(), Json::Map(members))]))
    }
}

/// `filters`, `compressor` and `order` of Zarr 2. `variable`: the codec that makes a list of elements of any length.
pub(super) fn v2(
    stages: &[Stage],
    variable: Option<&str>,
    rank: usize,
) -> Result<(Json, Json, &'static str)> {
    let mut order = "C";
    let mut stages = stages.to_vec();
    if let Some(first) = stages.first().filter(|s| s.id == "transpose") {
        if variable.is_some() || !is_reversed(first, rank) {
            return Err(Error::unsupported("axes in another order than C and F in Zarr 2").hint("use Zarr 3"));
        }
        order = "F";
        stages.remove(0);
    }
    if stages.iter().any(|s| s.id == "transpose") {
        return Err(
            Error::unsupported("a transposition that is not the first stage, in Zarr 2").hint("use Zarr 3")
        );
    }
    let compressor = match stages.last() {
        Some(last) if COMPRESSORS.contains(&last.id) => stages.pop().map_or(Json::Null, |s| s.v2()),
        _ => Json::Null,
    };
    let mut filters: Vec<Json> = Vec::new();
    if let Some(id) = variable {
        filters.push(Json::Map(vec![("id".into(), Json::Text(id.into()))]));
    }
    filters.extend(stages.iter().map(Stage::v2));
    let filters = if filters.is_empty() { Json::Null } else { Json::List(filters) };
    Ok((filters, compressor, order))
}

fn is_reversed(stage: &Stage, rank: usize) -> bool {
    match stage.members.iter().find(|(name, _)| name == "order").map(|(_, order)| order) {
        Some(Json::Text(word)) => word == "F",
        Some(Json::List(axes)) => {
            let axes: Option<Vec<u64>> = axes.iter().map(Json::as_u64).collect();
            axes.is_some_and(|axes| axes.into_iter().eq((0..rank as u64).rev()))
        }
        _ => false,
    }
}

/// `codecs` of Zarr 3. `variable` as in [`v2`]; `endian`: the byte order, of elements that have one.
pub(super) fn v3(stages: &[Stage], variable: Option<&str>, endian: Option<&str>) -> Result<Vec<Json>> {
    let of_elements = stages.iter().take_while(|s| OF_ELEMENTS.contains(&s.id)).count();
    let (before, behind) = stages.split_at(of_elements);
    if let Some(late) = behind.iter().find(|s| OF_ELEMENTS.contains(&s.id)) {
        let text = format_args!("the codec {} behind one that makes bytes, in Zarr 3", late.id);
        return Err(Error::unsupported(text));
    }
    if variable.is_some() && !before.is_empty() {
        return Err(Error::unsupported("codecs of elements before elements of any length"));
    }
    let mut codecs: Vec<Json> = before.iter().map(Stage::v3).collect::<Result<_>>()?;
    let named = |name: &str, members: Vec<(String, Json)>| {
        let name = ("name".to_owned(), Json::Text(name.to_owned()));
        match members.is_empty() {
            true => Json::Map(vec![name]),
            false => Json::Map(vec![name, ("configuration".to_owned(), Json::Map(members))]),
        }
    };
    match (variable, behind.first()) {
        (Some(id), _) => codecs.push(named(id, Vec::new())),
        (None, Some(first)) if TO_BYTES.contains(&first.id) => {}
        _ => {
            let endian = endian.map(|e| ("endian".to_owned(), Json::Text(e.to_owned())));
            codecs.push(named("bytes", endian.into_iter().collect()));
        }
    }
    for (i, stage) in behind.iter().enumerate() {
        if i > 0 && TO_BYTES.contains(&stage.id) {
            return Err(Error::unsupported(format_args!("the codec {} behind others of bytes", stage.id)));
        }
        codecs.push(stage.v3().context(|| format!("codec {}", stage.id))?);
    }
    Ok(codecs)
}
