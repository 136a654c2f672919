//! Special attributes: how variables and the file are stored.

use super::text::{name, quoted};
use super::{Dump, Place, kind_text};
use crate::output::Outcome;
use hyperslab::array::Item;
use hyperslab::codec::FilterSpec;
use hyperslab::convention::netcdf::{DataModel, Variable};
use hyperslab::dtype::{ByteOrder, DType};
use hyperslab::json::Json;
use hyperslab::model::{ChunkGrid, FillValue, Layout, NodeKind};

/// Attributes of datasets by which the netCDF library knows its files.
const RESERVED: [&[u8]; 6] =
    [b"REFERENCE_LIST", b"CLASS", b"DIMENSION_LIST", b"NAME", b"_Netcdf4Dimid", b"_Netcdf4Coordinates"];

/// Filters that have an attribute of their own.
const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;

const SZIP: u16 = 4;
/// The bits of szip's mask that a user may choose: which of its two methods.
const SZIP_MASK: u32 = 4 | 32;

impl Dump<'_> {
    fn special(&mut self, owner: &[u8], key: &str, value: &[u8]) -> Outcome<()> {
        self.lines.start()?;
        self.lines.put("\t\t")?;
        self.lines.put(name(owner))?;
        self.lines.put(format!(":{key} = "))?;
        self.lines.put(value)?;
        self.lines.put(" ;\n")
    }

    /// Those of a variable.
    pub(super) fn specials(&mut self, variable: &Variable) -> Outcome<()> {
        if self.view.model().is_netcdf3() {
            return Ok(());
        }
        let owner = variable.name.as_bytes();
        let meta = &variable.meta;
        let word: &[u8] = match meta.layout {
            Layout::Chunked { .. } => b"\"chunked\"",
            Layout::Compact => b"\"compact\"",
            // What ncdump 4.9.0 says of virtual datasets.
            Layout::Virtual(_) => b"\"unknown\"",
            _ => b"\"contiguous\"",
        };
        self.special(owner, "_Storage", word)?;
        if let (Layout::Chunked { .. }, ChunkGrid::Regular(chunk)) = (&meta.layout, &meta.grid)
            && !chunk.is_empty()
        {
            let sizes: Vec<String> = chunk.iter().map(u64::to_string).collect();
            self.special(owner, "_ChunkSizes", sizes.join(", ").as_bytes())?;
        }
        let mut filters = Vec::new();
        // Two of HDF5's own come first for the netCDF library, whatever their places.
        let mut specs: Vec<&FilterSpec> = meta.filters.iter().collect();
        specs.sort_by_key(|spec| match spec {
            FilterSpec::Hdf5 { id: FLETCHER32, .. } => 0,
            FilterSpec::Hdf5 { id: SHUFFLE, .. } => 1,
            _ => 2,
        });
        for spec in specs {
            let (id, parameters) = match spec {
                FilterSpec::Hdf5 { id, parameters, .. } => (*id, parameters.clone()),
                FilterSpec::Zarr { name, configuration } => {
                    let level = configuration.get("level").and_then(Json::as_u64).unwrap_or(0);
                    match name.as_str() {
                        "zlib" => (DEFLATE, vec![level as u32]),
                        "shuffle" => (SHUFFLE, Vec::new()),
                        "fletcher32" => (FLETCHER32, Vec::new()),
                        // Among the codecs below.
                        _ => continue,
                    }
                }
                _ => continue,
            };
            match id {
                DEFLATE => {
                    let level = parameters.first().copied().unwrap_or(0).to_string();
                    self.special(owner, "_DeflateLevel", level.as_bytes())?;
                }
                SHUFFLE => self.special(owner, "_Shuffle", b"\"true\"")?,
                FLETCHER32 => self.special(owner, "_Fletcher32", b"\"true\"")?,
                id => {
                    let mut text = id.to_string();
                    // Of szip's parameters HDF5 itself adds bits to the mask, and all behind the second.
                    let mask = parameters.first().map(|mask| mask & SZIP_MASK);
                    let shown = mask.into_iter().chain(parameters.get(1).copied());
                    let parameters = if id == SZIP { shown.collect() } else { parameters.clone() };
                    parameters.iter().for_each(|p| text.push_str(&format!(",{p}")));
                    filters.push(text);
                }
            }
        }
        if !filters.is_empty() {
            self.special(owner, "_Filter", format!("\"{}\"", filters.join("|")).as_bytes())?;
        }
        if let Some(codecs) = self.codecs(variable)? {
            self.special(owner, "_Codecs", &quoted(codecs.to_string().as_bytes(), Place::Whole))?;
        }
        if meta.dtype.size() > 1
            && let DType::Integer(_) | DType::Float(_) = &meta.dtype
        {
            let order = match &meta.dtype {
                DType::Integer(t) => t.order,
                DType::Float(t) => t.order,
                _ => ByteOrder::Little,
            };
            let word: &[u8] = if order == ByteOrder::Big { b"\"big\"" } else { b"\"little\"" };
            self.special(owner, "_Endianness", word)?;
        }
        if !matches!(meta.fill, FillValue::Value(_)) {
            self.special(owner, "_NoFill", b"\"true\"")?;
        }
        Ok(())
    }

    /// The codecs of a Zarr array, as its document says; `None` if there are none.
    fn codecs(&self, variable: &Variable) -> Outcome<Option<Json>> {
        let Some(documents) = self.file.hierarchy().documents(&variable.node)? else { return Ok(None) };
        let list = |name: &str| documents.metadata.get(name).and_then(Json::as_list).unwrap_or(&[]);
        let compressor = documents.metadata.get("compressor").filter(|c| !c.is_null());
        let all: Vec<Json> =
            list("codecs").iter().chain(list("filters")).chain(compressor).cloned().collect();
        Ok(Some(Json::List(all)).filter(|list| *list != Json::List(Vec::new())))
    }

    /// Those of the file.
    pub(super) fn file_specials(&mut self) -> Outcome<()> {
        let model = self.view.model();
        if !model.is_netcdf3() {
            let hierarchy = self.file.hierarchy().clone();
            let all = hierarchy.attributes(&hierarchy.root())?;
            let properties = all.iter().flatten().find(|a| a.name.as_bytes() == b"_NCProperties");
            if let Some(a) = properties {
                self.special(b"", "_NCProperties", &quoted(&a.data, Place::Whole))?;
            }
            let info = self.file.info();
            let zarr = info.format == "Zarr";
            // Zarr has a superblock if the netCDF library wrote it, always of this version.
            let version = if zarr { 2 } else { info.version };
            if !zarr || properties.is_some() {
                self.special(b"", "_SuperblockVersion", version.to_string().as_bytes())?;
            }
            let own = if zarr { properties.is_some() } else { self.looks_like_netcdf4()? };
            self.special(b"", "_IsNetcdf4", if own { b"1" } else { b"0" })?;
        }
        self.special(b"", "_Format", format!("\"{}\"", kind_text(model)).as_bytes())
    }

    /// Whether the netCDF library takes the file for its own: a marked file of the classic model is not looked at
    /// further, which counts as no; else two reserved attributes of datasets are enough.
    fn looks_like_netcdf4(&self) -> Outcome<bool> {
        if self.view.model() == DataModel::NetCdf4Classic {
            return Ok(false);
        }
        let hierarchy = self.file.hierarchy().clone();
        let mut count = 0;
        for entry in self.file.walk() {
            if let Item::Object(node, NodeKind::Array) = &entry.item {
                let all = hierarchy.attributes(node).unwrap_or_default();
                count += all.iter().flatten().filter(|a| RESERVED.contains(&a.name.as_bytes())).count();
            }
            if count >= 2 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
