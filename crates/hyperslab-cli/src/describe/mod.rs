//! `describe`: a whole file as canonical JSON. Equal content gives equal text, byte for byte.
//!
//! Every object is described under its first path: kind, links, type, extents, layout, filters, fill value, attributes,
//! and a SHA-256 of its elements in an encoding that knows no byte order and no padding ([`encode`]).

mod detect;
mod encode;
mod netcdf;
mod zarr;

use crate::args::Describe;
use crate::json::Json;
use crate::output::{Out, Outcome, Progress};
use detect::Detected;
use encode::{Digest, Encoder};
use hyperslab::array::Item;
use hyperslab::dtype::DType;
use hyperslab::model::{Attribute, ChunkGrid, Dataspace, FillValue, Layout, Links, NodeId};
use hyperslab::shape::{element_count, to_usize};
use hyperslab::{Array, Budget, Error, ErrorKind, File, Object, OpenOptions, Result, Selection};
pub(crate) use netcdf::is_netcdf4;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Arrays and attributes larger than this in memory are described without their data.
const LARGE: u64 = 64 << 20;

/// All text of one description.
const MAX_TEXT: usize = 256 << 20;

/// All variable-length data of one description. A sound file holds each sequence once; a hostile one repeats them.
const POINTED: u64 = 1 << 30;

type Map = BTreeMap<String, Json>;

/// Describes one file. False: it can't be opened at all, which its description says too.
pub(crate) fn run(arguments: &Describe, options: &OpenOptions, out: &mut Out) -> Outcome<bool> {
    let address = &arguments.file;
    let mut options = options.clone();
    // A description never needs more than one array of `LARGE` bytes; what a hostile file makes of it is bounded.
    options.limits.output = options.limits.output.min(4 * LARGE);
    options.limits.chunk = options.limits.chunk.min(4 * LARGE);
    options.limits.in_flight = options.limits.in_flight.min(LARGE);
    let open = || crate::output::open_at(address.clone(), &arguments.version, &options);
    // What a URL names says itself what it is.
    let far = address.scheme().map(|_| open()).transpose()?;
    let path = far.as_ref().map_or(address.local(), |file| Path::new(file.name()));
    let detected = far.as_ref().map_or_else(|| detect::detect(path), |file| Ok(Detected::of(file)))?;
    let open = || far.clone().map_or_else(open, Ok);
    let mut top = Map::new();
    let name = path.file_name().unwrap_or(path.as_os_str());
    top.insert("file".into(), Json::text(name.to_string_lossy()));
    top.insert("format".into(), detected.name().into());
    top.insert("reader".into(), Json::map([("hyperslab", Json::from(env!("CARGO_PKG_VERSION")))]));
    let mut opened = true;
    let section = match detected {
        Detected::Hdf5 { offset, version } => {
            let mut section = Map::new();
            section.insert("userblock".into(), offset.into());
            section.insert("superblock".into(), version.map(u64::from).into());
            match open() {
                Ok(file) => {
                    section.insert("objects".into(), objects(&file));
                    if netcdf::is_netcdf4(path, &file) {
                        top.insert("netcdf".into(), Json::Map(netcdf::section(&file, &options)));
                    }
                }
                Err(e) => {
                    opened = false;
                    section.insert("error".into(), Json::text(e));
                }
            }
            section
        }
        Detected::NetCdf3 => match open() {
            Ok(file) => netcdf::section(&file, &options),
            Err(e) => {
                opened = false;
                error(e)
            }
        },
        Detected::Zarr => match open() {
            Ok(file) => {
                if let Some(view) = netcdf::of_zarr(&file, address, &options) {
                    top.insert("netcdf".into(), Json::Map(view));
                }
                zarr::section(&file, address)
            }
            Err(e) => {
                opened = false;
                error(e)
            }
        },
        other => {
            opened = false;
            let text = match other {
                Detected::Unknown => "not a file of a known format".to_string(),
                _ => format!("not supported: the format {}", other.name()),
            };
            Map::from([("error".to_string(), Json::Text(text))])
        }
    };
    top.insert(detected.section().into(), Json::Map(section));
    if let Some(file) = far {
        arguments.stats.say(file.traffic());
    }
    out.line(Json::Map(top))?;
    Ok(opened)
}

fn error(e: impl std::fmt::Display) -> Map {
    Map::from([("error".to_string(), Json::text(e))])
}

/// All objects of a file, by path.
fn objects(file: &File) -> Json {
    // References are encoded as paths, so all paths must be known before the first element is read.
    let mut walk = file.walk();
    let mut found: Vec<(String, NodeId, Map)> = Vec::new();
    let mut objects: BTreeMap<String, Json> = BTreeMap::new();
    let mut text = 0;
    for entry in walk.by_ref() {
        let kind = |kind: &str| ("kind".to_string(), Json::from(kind));
        let own = match entry.item {
            Item::Group(group, links) => {
                found.push((entry.path, group.node().clone(), self::links(links.as_deref())));
                continue;
            }
            Item::Object(id, _) => {
                found.push((entry.path, id, Map::new()));
                continue;
            }
            Item::HardLink(first) => Map::from([kind("hardlink"), ("target".into(), first.into())]),
            Item::SoftLink(target) => Map::from([kind("softlink"), ("target".into(), (&target).into())]),
            Item::ExternalLink(file, target) => Map::from([
                kind("extlink"),
                ("file".into(), (&file).into()),
                ("target".into(), (&target).into()),
            ]),
            Item::UserLink(class, _) => Map::from([kind("udlink"), ("type".into(), u64::from(class).into())]),
            Item::Fault(_, e) => Map::from([kind("error"), ("error".into(), Json::text(e))]),
            _ => {
                Map::from([kind("error"), ("error".into(), "an item that this program does not know".into())])
            }
        };
        insert(&mut objects, &mut text, entry.path, Json::Map(own));
    }
    let describer = Describer::new(file, walk.into_paths());
    let mut progress = Progress::new("describing", Some(found.len() as u64));
    for (path, id, own) in found {
        let described = describer.object(&path, &id, own);
        insert(&mut objects, &mut text, path, Json::Map(described));
        progress.step(1);
    }
    Json::Map(objects)
}

/// Adds one object as text, or an error once there is too much of it.
fn insert(objects: &mut BTreeMap<String, Json>, text: &mut usize, path: String, object: Json) {
    let mut object = object.to_string();
    if *text > MAX_TEXT {
        let e = Error::limit("text of one description in bytes", *text as u128, MAX_TEXT as u128);
        object = Json::Map(error(e)).to_string();
    }
    *text += object.len();
    objects.insert(path, Json::Raw(object));
}

/// What a group says of its links.
fn links(links: Result<&Links, &Error>) -> Map {
    let mut own = Map::new();
    match links {
        Ok(links) => {
            own.insert("nlinks".into(), (links.links.len() as u64).into());
            if links.tracks_order {
                let mut ordered: Vec<_> = links.links.iter().collect();
                ordered.sort_by_key(|l| l.creation_order);
                own.insert("corder".into(), Json::list(ordered.iter().map(|l| &l.name)));
            }
            if let Some(fault) = links.faults.first() {
                own.insert("links_error".into(), Json::text(&fault.error));
            }
        }
        Err(e) => {
            own.insert("nlinks".into(), 0.into());
            own.insert("links_error".into(), Json::text(e));
        }
    }
    own
}

/// Describes the objects of one file.
struct Describer<'a> {
    file: &'a File,
    paths: HashMap<NodeId, String>,
    /// Bytes of variable-length data, each as often as it is pointed to.
    pointed: Budget,
    /// Extents of arrays that region references point into.
    shapes: RefCell<HashMap<NodeId, Option<Vec<u64>>>>,
}

impl Describer<'_> {
    /// A describer of elements that hold no references.
    fn plain(file: &File) -> Describer<'_> {
        Describer::new(file, HashMap::new())
    }

    fn new(file: &File, paths: HashMap<NodeId, String>) -> Describer<'_> {
        let pointed = Budget::new("variable-length data of one description in bytes", POINTED);
        Describer { file, paths, pointed, shapes: RefCell::default() }
    }

    fn object(&self, path: &str, id: &NodeId, mut own: Map) -> Map {
        let object = match self.file.object(id, path) {
            Ok(object) => object,
            Err(e) => return Map::from([("kind".into(), "error".into()), ("error".into(), Json::text(e))]),
        };
        let mut attrs = Map::new();
        match object.attributes() {
            Ok(entries) => {
                for entry in entries {
                    match entry {
                        Ok(a) => {
                            attrs.insert(a.name.to_string(), Json::Map(self.attribute(&a)));
                        }
                        Err((Some(name), e)) => {
                            attrs.insert(name.to_string(), Json::Map(error(e)));
                        }
                        Err((None, e)) => {
                            own.insert("attrs_error".into(), Json::text(e));
                        }
                    }
                }
            }
            Err(e) => {
                own.insert("attrs_error".into(), Json::text(e));
            }
        }
        own.insert("attrs".into(), Json::Map(attrs));
        let kind = match &object {
            Object::Group(_) => "group",
            Object::Datatype(named) => {
                own.insert("dtype".into(), Json::text(named.dtype()));
                "datatype"
            }
            Object::Array(array) => {
                self.array(array, &mut own);
                "dataset"
            }
        };
        own.insert("kind".into(), kind.into());
        own
    }

    fn attribute(&self, a: &Attribute) -> Map {
        let mut own =
            Map::from([("dtype".to_string(), Json::text(&a.dtype)), ("shape".into(), shape(&a.space))]);
        if a.space.is_null() {
            return own;
        }
        let digest = element_count(a.space.dims()).and_then(|count| {
            if memory_size(&a.dtype).saturating_mul(count) > LARGE {
                return Ok(None);
            }
            let encoder = Encoder::new(&a.dtype)?;
            let mut digest = Digest::default();
            let slab = |from: usize, to: usize| {
                let size = a.dtype.size();
                let bytes =
                    from.checked_mul(size).zip(to.checked_mul(size)).filter(|(_, end)| *end <= a.data.len());
                bytes.map(|(start, end)| a.data.slice(start..end)).ok_or_else(|| {
                    Error::new(ErrorKind::Corrupt, "the attribute holds fewer elements than it says")
                })
            };
            self.elements(&encoder, &a.dtype, to_usize(count)?, slab, &mut digest)?;
            Ok(Some((encoder.is_raw(), digest)))
        });
        match digest {
            Ok(Some((true, digest))) => match digest.whole(64) {
                Some(bytes) => own.insert("raw".into(), encode::hex(bytes).into()),
                None => own.insert("sha256".into(), digest.sha256().into()),
            },
            Ok(Some((false, digest))) => match digest.whole(256) {
                Some(text) => own.insert("json".into(), Json::text(String::from_utf8_lossy(text))),
                None => {
                    own.insert("mode".into(), "json".into());
                    own.insert("sha256".into(), digest.sha256().into())
                }
            },
            Ok(None) => own.insert("skipped".into(), "large".into()),
            Err(e) => own.insert("error".into(), Json::text(e)),
        };
        own
    }

    fn array(&self, array: &Array, own: &mut Map) {
        let meta = array.meta();
        own.insert("dtype".into(), Json::text(&meta.dtype));
        own.insert("shape".into(), shape(&meta.space));
        own.insert(
            "maxshape".into(),
            match &meta.space {
                Dataspace::Simple { max, .. } => Json::list(max.iter().copied()),
                other => shape(other),
            },
        );
        let layout = match &meta.layout {
            Layout::Compact => "compact",
            Layout::Contiguous => "contiguous",
            Layout::External(files) => {
                own.insert("external".into(), (*files as u64).into());
                "contiguous"
            }
            Layout::Chunked { .. } => "chunked",
            Layout::Virtual(mappings) => {
                own.insert("virtual".into(), (*mappings as u64).into());
                "virtual"
            }
            _ => "unknown",
        };
        own.insert("layout".into(), layout.into());
        if let (Layout::Chunked { .. }, ChunkGrid::Regular(chunk)) = (&meta.layout, &meta.grid) {
            own.insert("chunks".into(), Json::list(chunk.iter().copied()));
        } else if let Some(runs) = crate::words::runs(array) {
            own.insert("chunks".into(), crate::words::runs_json(runs));
        }
        if !meta.filters.is_empty() {
            own.insert("filters".into(), Json::List(meta.filters.iter().map(filter).collect()));
        }
        own.insert("fill".into(), self.fill(array));
        let data = match self.data(array) {
            Ok(data) => data,
            Err(e) => error(e),
        };
        own.insert("data".into(), Json::Map(data));
    }

    fn fill(&self, array: &Array) -> Json {
        let meta = array.meta();
        let element = match &meta.fill {
            FillValue::Undefined => return "undefined".into(),
            FillValue::Default => return "default".into(),
            FillValue::Value(element) => element,
        };
        let described = (|| {
            let encoder = Encoder::new(&meta.dtype)?;
            let mut digest = Digest::default();
            encoder.encode(self, element.clone(), 1, false, &mut digest)?;
            let (key, value) = match (encoder.is_raw(), digest.whole(if encoder.is_raw() { 64 } else { 256 }))
            {
                (true, Some(bytes)) => ("raw", encode::hex(bytes)),
                (false, Some(text)) => ("json", String::from_utf8_lossy(text).into_owned()),
                (_, None) => ("sha256", digest.sha256()),
            };
            Ok::<_, Error>(Json::map([(key, Json::from(value))]))
        })();
        described.unwrap_or_else(|e| Json::Map(error(e)))
    }

    fn data(&self, array: &Array) -> Result<Map> {
        let meta = array.meta();
        if meta.space.is_null() {
            return Ok(Map::from([("null".to_string(), Json::Bool(true))]));
        }
        let count = element_count(meta.space.dims())?;
        if memory_size(&meta.dtype).saturating_mul(count) > LARGE {
            return Ok(Map::from([("skipped".to_string(), "large".into())]));
        }
        let encoder = Encoder::new(&meta.dtype)?;
        let raw = array.read_raw(Selection::all())?;
        let size = raw.dtype.size();
        let bytes = bytes::Bytes::from(raw.bytes);
        let count = to_usize(count)?;
        let mut digest = Digest::default();
        let slab = |from: usize, to: usize| {
            let range = from.saturating_mul(size)..to.saturating_mul(size);
            if range.end > bytes.len() {
                return Err(Error::new(ErrorKind::Corrupt, "fewer elements were read than there are"));
            }
            Ok(bytes.slice(range))
        };
        self.elements(&encoder, &raw.dtype, count, slab, &mut digest)?;
        let mut own = Map::from([
            ("raw".to_string(), Json::Bool(encoder.is_raw())),
            ("n".into(), (count as u64).into()),
            ("bytes".into(), digest.length().into()),
            ("sha256".into(), digest.sha256().into()),
            ("head".into(), head(&digest, encoder.is_raw()).into()),
        ]);
        if let DType::Float(t) = &raw.dtype
            && !t.is_ieee()
            && count as u64 <= LARGE / 8
        {
            let mut doubles = Digest::default();
            for element in bytes.chunks_exact(size.max(1)) {
                let value = t.value(element);
                let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
                doubles.write(&bits.to_le_bytes());
            }
            let json = [("sha256", doubles.sha256().into()), ("head", head(&doubles, true).into())];
            own.insert("as_f64".into(), Json::map(json));
        }
        Ok(own)
    }

    /// Encodes `count` elements, a slab at a time, so that what they point to is never in memory all at once.
    fn elements(
        &self,
        encoder: &Encoder,
        dtype: &DType,
        count: usize,
        slab: impl Fn(usize, usize) -> Result<bytes::Bytes>,
        digest: &mut Digest,
    ) -> Result<()> {
        let mut each = if encoder.is_raw() { ((1 << 20) / dtype.size().max(1)).max(1) } else { 1 << 14 };
        if !encoder.is_raw() {
            digest.write(b"[");
        }
        let mut from = 0;
        while from < count {
            let to = count.min(from.saturating_add(each));
            match encoder.encode(self, slab(from, to)?, to - from, from > 0, digest) {
                Ok(()) => from = to,
                // Long sequences: fewer of them at a time. Nothing was written yet.
                Err(e) if e.kind() == ErrorKind::LimitExceeded && !encoder.is_raw() && to - from > 1 => {
                    each = (each / 8).max(1);
                }
                Err(e) => return Err(e),
            }
        }
        if !encoder.is_raw() {
            digest.write(b"]");
        }
        Ok(())
    }
}

fn head(digest: &Digest, raw: bool) -> String {
    if raw { encode::hex(digest.head(32)) } else { String::from_utf8_lossy(digest.head(120)).into_owned() }
}

fn shape(space: &Dataspace) -> Json {
    match space {
        Dataspace::Null => Json::Null,
        space => Json::list(space.dims().iter().copied()),
    }
}

fn filter(spec: &hyperslab::codec::FilterSpec) -> Json {
    match spec {
        hyperslab::codec::FilterSpec::Hdf5 { id, flags, parameters, .. } => Json::map([
            ("id", Json::from(u64::from(*id))),
            ("flags", u64::from(*flags).into()),
            ("cd", Json::list(parameters.iter().map(|&p| u64::from(p)))),
        ]),
        other => Json::text(format!("{other:?}")),
    }
}

/// The size of one element in the memory of the HDF5 library, where pointers take the place of what is stored.
fn memory_size(dtype: &DType) -> u64 {
    use hyperslab::dtype::ReferenceKind;
    match dtype {
        DType::VarString { .. } => 8,
        DType::VarLen { .. } => 16,
        DType::Reference { kind: ReferenceKind::Object, .. } => 8,
        DType::Reference { kind: ReferenceKind::Region, .. } => 12,
        DType::Reference { kind: ReferenceKind::Standard, .. } => 64,
        DType::Array { base, dims } => dims.iter().fold(memory_size(base), |n, &d| n.saturating_mul(d)),
        DType::Compound { size, fields } => fields.iter().fold(*size as u64, |n, f| {
            n.saturating_sub(f.dtype.size() as u64).saturating_add(memory_size(&f.dtype))
        }),
        other => other.size() as u64,
    }
}
