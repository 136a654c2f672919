//! The part of a description that shows the file as netCDF does.

use super::encode::{Digest, Encoder, hex};
use super::{Describer, LARGE, Map, error, head};
use crate::json::Json;
use crate::variable;
use bytes::Bytes;
use hyperslab::array::Fragment;
use hyperslab::convention::netcdf::{Attribute, Class, NetcdfView, Type, Variable};
use hyperslab::dtype::{DType, NetcdfType, Packing};
use hyperslab::model::{Column, Value};
use hyperslab::shape::{Name, element_count, to_usize};
use hyperslab::{Address, Error, File, OpenOptions, Result};
use std::path::Path;

/// Endings of the names of netCDF files.
const ENDINGS: [&str; 6] = ["nc", "nc4", "nc3", "ncd", "cdf", "ncdf"];

/// Whether an HDF5 file is taken as a netCDF file: by its name, or by what netCDF-4 leaves in it.
pub(crate) fn is_netcdf4(path: &Path, file: &File) -> bool {
    let named = path.extension().is_some_and(|e| ENDINGS.iter().any(|n| e.eq_ignore_ascii_case(n)));
    let marks = ["_NCProperties", "_nc3_strict"];
    named
        || file
            .root()
            .attributes()
            .is_ok_and(|list| list.iter().flatten().any(|a| marks.iter().any(|m| a.name == Name::from(*m))))
}

/// The whole section of a Zarr hierarchy, if it is NCZarr, or if one of netCDF's modes is asked for.
pub(super) fn of_zarr(file: &File, address: &Address, options: &OpenOptions) -> Option<Map> {
    let fragment = address.fragment.as_deref().and_then(|text| Fragment::parse(text).ok());
    let asked = fragment.is_some_and(|fragment| fragment.is_zarr());
    match file.netcdf() {
        Ok(view) => (asked || view.is_nczarr()).then(|| of(file, &view, options)),
        Err(e) => asked.then(|| error(e)),
    }
}

/// The whole section.
pub(super) fn section(file: &File, options: &OpenOptions) -> Map {
    match file.netcdf() {
        Ok(view) => of(file, &view, options),
        Err(e) => error(e),
    }
}

fn of(file: &File, view: &NetcdfView, options: &OpenOptions) -> Map {
    let netcdf = NetCdf { file, view, options };
    let mut top = netcdf.group(0);
    top.insert("kind".into(), Json::text(view.model()));
    top
}

struct NetCdf<'a> {
    file: &'a File,
    view: &'a NetcdfView,
    options: &'a OpenOptions,
}

impl NetCdf<'_> {
    fn group(&self, place: usize) -> Map {
        let Some(group) = self.view.groups().get(place) else { return Map::new() };
        let dims = group.dimensions.iter().filter_map(|&d| self.view.dimensions().get(d)).map(|d| {
            let own = Json::map([("size", Json::from(d.length)), ("unlimited", Json::Bool(d.unlimited))]);
            (d.name.to_string(), own)
        });
        let types = group.types.iter().filter_map(|&t| self.view.types().get(t)).filter_map(|t| {
            let class = match t.class {
                Class::Compound => "compound",
                Class::Enum => "enum",
                Class::VarLen => "vlen",
                Class::Opaque => return None,
            };
            Some((t.name.to_string(), Json::from(class)))
        });
        let vars = group.variables.iter().map(|v| (v.name.to_string(), Json::Map(self.variable(v))));
        let groups = group.groups.iter().filter_map(|&g| {
            let name = self.view.groups().get(g)?.name.to_string();
            Some((name, Json::Map(self.group(g))))
        });
        Map::from([
            ("dims".to_string(), Json::map(dims)),
            ("types".into(), Json::map(types)),
            ("vars".into(), Json::map(vars)),
            ("groups".into(), Json::map(groups)),
            ("attrs".into(), self.attributes(&group.attributes)),
        ])
    }

    fn attributes(&self, list: &[Attribute]) -> Json {
        Json::map(list.iter().map(|a| {
            let own = self.attribute(a).unwrap_or_else(error);
            (a.name.to_string(), Json::Map(own))
        }))
    }

    fn attribute(&self, a: &Attribute) -> Result<Map> {
        let text = |bytes: &[u8]| {
            let bytes: Vec<u8> = bytes.iter().copied().filter(|&b| b != 0).collect();
            Json::text(String::from_utf8_lossy(&bytes))
        };
        let limit = self.options.limits.output;
        if a.kind == Type::Atomic(NetcdfType::Char) && a.name.as_bytes() == b"_FillValue" {
            // The reference takes this one as bytes.
            let value = hex(&a.stored.data);
            return Ok(Map::from([
                ("type".to_string(), "char".into()),
                ("n".into(), 1.into()),
                ("hex".into(), value.into()),
            ]));
        }
        if a.kind == Type::Atomic(NetcdfType::Char) {
            return Ok(Map::from([("text".to_string(), Json::List(vec![text(&a.stored.data)]))]));
        }
        if a.kind == Type::String {
            let elements = a.elements(&**self.file.hierarchy(), limit)?;
            let list = match elements.column() {
                Column::Text(texts) => texts.iter().map(|t| text(t.as_deref().unwrap_or(&[]))).collect(),
                Column::Fixed(column) => {
                    let one = |i| column.stored(i, i + 1).split(|&b| b == 0).next().map(text);
                    (0..elements.count()).filter_map(one).collect()
                }
                _ => Vec::new(),
            };
            return Ok(Map::from([("text".to_string(), Json::List(list))]));
        }
        let packing = Packing::new(&a.stored.dtype)?;
        let mut packed = Vec::new();
        packing.pack(&a.stored.data, a.count()?, &mut packed)?;
        let own = match a.kind {
            Type::User(_) if matches!(a.stored.dtype, DType::Compound { .. }) => "compound".to_string(),
            kind => self.word(kind),
        };
        let mut digest = Digest::default();
        digest.write(&packed);
        let (key, value) = match digest.whole(64) {
            Some(bytes) => ("hex", hex(bytes)),
            None => ("sha256", digest.sha256()),
        };
        Ok(Map::from([
            ("type".to_string(), own.into()),
            ("n".into(), a.length.into()),
            (key.into(), value.into()),
        ]))
    }

    /// The name of an atomic type, of an enumeration that of its integer type.
    fn word(&self, kind: Type) -> String {
        match kind {
            Type::User(i) => match self.view.types().get(i).map(|t| &t.dtype) {
                Some(DType::Enum { base, .. }) => {
                    self.view.type_of(base).map(|k| k.word().to_string()).unwrap_or_default()
                }
                _ => self.view.type_name(kind),
            },
            kind => kind.word().to_string(),
        }
    }

    fn variable(&self, v: &Variable) -> Map {
        let dims = v.dimensions.iter().filter_map(|&d| self.view.dimensions().get(d)).map(|d| &d.name);
        let kind = match v.kind {
            Type::User(i) => match self.view.types().get(i) {
                Some(t) => {
                    let class = match t.class {
                        Class::Compound => "compound",
                        Class::Enum => "enum",
                        Class::VarLen => "vlen",
                        Class::Opaque => "opaque",
                    };
                    format!("{class}:{}", t.name)
                }
                None => String::new(),
            },
            kind => kind.word().to_string(),
        };
        let data = self.data(v).unwrap_or_else(error);
        Map::from([
            ("type".to_string(), kind.into()),
            ("dims".into(), Json::list(dims)),
            ("shape".into(), Json::list(self.view.shape(v))),
            ("attrs".into(), self.attributes(&v.attributes)),
            ("data".into(), Json::Map(data)),
        ])
    }

    fn data(&self, v: &Variable) -> Result<Map> {
        let count = element_count(&self.view.shape(v))?;
        let item = match v.kind {
            Type::String => 16,
            _ if matches!(v.meta.dtype, DType::VarLen { .. }) => 16,
            _ => v.meta.dtype.size() as u64,
        };
        if item.saturating_mul(count) > LARGE {
            return Ok(Map::from([("skipped".to_string(), "large".into())]));
        }
        let count = to_usize(count)?;
        let stored =
            if count == 0 { Bytes::new() } else { variable::read(self.file, self.view, v, 0..u64::MAX)? };
        let mut digest = Digest::default();
        let raw = match (v.kind, &v.meta.dtype) {
            (Type::String, dtype) => {
                self.strings(dtype, stored, count, &mut digest)?;
                false
            }
            (_, dtype @ DType::VarLen { base, .. }) if base.is_fixed() => {
                let describer = Describer::plain(self.file);
                digest.write(b"[");
                Encoder::new(dtype)?.encode(&describer, stored, count, false, &mut digest)?;
                digest.write(b"]");
                false
            }
            (_, dtype) if dtype.is_fixed() => {
                let describer = Describer::plain(self.file);
                Encoder::new(dtype)?.encode(&describer, stored, count, false, &mut digest)?;
                true
            }
            (_, dtype) => return Err(Error::unsupported(format!("a canonical form of {dtype}"))),
        };
        Ok(Map::from([
            ("raw".to_string(), Json::Bool(raw)),
            ("bytes".into(), digest.length().into()),
            ("sha256".into(), digest.sha256().into()),
            ("head".into(), head(&digest, raw).into()),
        ]))
    }

    /// Strings of either kind, up to their first NUL; an unset one is empty.
    fn strings(&self, dtype: &DType, stored: Bytes, count: usize, digest: &mut Digest) -> Result<()> {
        let limit = self.options.limits.output;
        let elements =
            hyperslab::model::Elements::decode(&**self.file.hierarchy(), dtype, stored, count, limit)?;
        digest.write(b"[");
        for i in 0..count {
            let wide;
            let text = match elements.column() {
                Column::Text(texts) => texts.get(i).and_then(|t| t.as_deref()).unwrap_or(&[]),
                Column::Fixed(_) if matches!(dtype, DType::Utf32 { .. }) => {
                    wide = match elements.value(i)? {
                        Value::Text(text) => text,
                        other => return Err(Error::unsupported(format!("text {other}"))),
                    };
                    wide.as_bytes()
                }
                Column::Fixed(column) => column.stored(i, i + 1).split(|&b| b == 0).next().unwrap_or(&[]),
                _ => &[],
            };
            let comma = if i > 0 { "," } else { "" };
            digest.write(format!("{comma}\"s:{}\"", hex(text)).as_bytes());
        }
        digest.write(b"]");
        Ok(())
    }
}
