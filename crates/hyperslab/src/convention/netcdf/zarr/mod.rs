//! What the documents of a Zarr store say to netCDF: NCZarr in all its layouts, and the names of dimensions that others
//! write.
//!
//! | layout | written by netCDF-C | where it stands |
//! |---|---|---|
//! | 1 | 4.8.0 | documents of their own: `.nczarr`, `.nczgroup`, `.nczvar` (early: `.nczarray`), `.nczattr` |
//! | 2 | 4.8.1, 4.9.0 | `_NCZARR_GROUP` in `.zgroup`, `_NCZARR_ARRAY` in `.zarray`, `_NCZARR_ATTR` in `.zattrs` |
//! | 2 | 4.9.1, 4.9.2 | the same in lower case; dimensions may be unlimited |
//! | 2 | since 4.9.3 | all in `.zattrs`, members with longer names |
//! | 3 | drafts | the same in the attributes of `zarr.json` |
//! | none | others | `_ARRAY_DIMENSIONS` among the attributes; version 3: `dimension_names` |
//!
//! Members of all layouts are looked for in the attributes first, then in the document of the object; only the first
//! layout needs more documents.

mod attribute;
#[cfg(test)]
mod tests;

use super::kind::Type;
use crate::dtype::{ByteOrder, CharSet, DType, IntegerType, NetcdfType, StringPadding};
use crate::error::Result;
use crate::json::{Json, wrong_member};
use crate::model::{ArrayMeta, AttributeEntry, Dataspace, Dimension, Documents, Hierarchy, NodeId};
use crate::shape::Name;
use std::collections::HashMap;

/// A Zarr hierarchy.
pub(super) struct Zarr {
    layout: Layout,
    /// Whether netCDF-C wrote it, as NCZarr or not.
    by_netcdf: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Documents of their own.
    Documents,
    /// Members of the documents of Zarr.
    Members,
    /// Not NCZarr.
    Pure,
}

/// What NCZarr says of a group.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) dimensions: Vec<Dimension>,
    /// Its arrays, as they were made, if they are listed.
    pub(super) arrays: Option<Vec<Name>>,
    /// Its groups, as they were made, if they are listed.
    pub(super) groups: Option<Vec<Name>>,
}

impl Words {
    /// All members of the group that are listed.
    pub(super) fn members(&self) -> impl Iterator<Item = &Name> {
        self.arrays.iter().chain(&self.groups).flatten()
    }
}

/// What is known of the dimensions of an array.
#[derive(Debug, PartialEq)]
pub(super) enum Axes {
    /// Paths of dimensions: that of the group, and the name.
    Paths(Vec<Name>),
    /// Names; each stands for a dimension of the array's group, none for one without a name.
    Names(Vec<Option<Name>>),
}

/// Attributes that are part of how netCDF uses Zarr, at any place in a hierarchy.
const HIDDEN: [&str; 16] = [
    "_nczarr_attr",
    "_nczarr_attrs",
    "_nczarr_group",
    "_nczarr_array",
    "_nczarr_superblock",
    "_NCZARR_ATTR",
    "_NCZARR_GROUP",
    "_NCZARR_ARRAY",
    "_NCZARR_SUPERBLOCK",
    "_nczarr_default_maxstrlen",
    "_nczarr_maxstrlen",
    "_ARRAY_DIMENSIONS",
    "_NCProperties",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
];

/// The dimension of scalars where the layout has no other way to say that they are.
const SCALAR: &str = "_scalar_";

/// The member of the documents that has one of these names.
fn member<'a>(documents: &'a Documents, names: &[&str]) -> Option<&'a Json> {
    let of = |map: &'a Json| names.iter().find_map(|name| map.get(name));
    of(&documents.attributes).or_else(|| of(&documents.metadata)).filter(|found| !found.is_null())
}

/// The first of these members.
fn any<'a>(map: &'a Json, names: &[&str]) -> Option<&'a Json> {
    names.iter().find_map(|name| map.get(name)).filter(|found| !found.is_null())
}

fn texts(list: &Json, what: &str) -> Result<Vec<Name>> {
    let items = list.as_list().ok_or_else(|| wrong_member(what, "is no list of names"))?;
    let names = items.iter().map(|item| item.as_str().map(Name::from));
    names.collect::<Option<_>>().ok_or_else(|| wrong_member(what, "is no list of names"))
}

impl Zarr {
    /// `None`: the hierarchy is of another format. `pure`: what NCZarr says is passed over.
    pub(super) fn open(hierarchy: &dyn Hierarchy, pure: bool) -> Result<Option<Zarr>> {
        if hierarchy.info().format != "Zarr" {
            return Ok(None);
        }
        let root = hierarchy.root();
        let documents = hierarchy.documents(&root)?;
        let by_netcdf = documents.as_ref().is_some_and(|d| d.attributes.get("_NCProperties").is_some());
        let layout = match documents {
            Some(documents) if !pure => {
                let names = ["_nczarr_superblock", "_NCZARR_SUPERBLOCK"];
                if member(&documents, &names).is_some() {
                    Layout::Members
                } else if documents.version == 2 && hierarchy.document(&root, ".nczarr")?.is_some() {
                    Layout::Documents
                } else {
                    Layout::Pure
                }
            }
            _ => Layout::Pure,
        };
        Ok(Some(Zarr { layout, by_netcdf }))
    }

    /// Whether netCDF-C wrote it as NCZarr.
    pub(super) fn is_nczarr(&self) -> bool {
        self.layout != Layout::Pure
    }

    /// What NCZarr says of an object: a member, or in the first layout a document of its own.
    fn own(
        &self,
        hierarchy: &dyn Hierarchy,
        node: &NodeId,
        documents: &Documents,
        members: &[&str],
        files: &[&str],
    ) -> Result<Option<Json>> {
        if self.layout != Layout::Documents {
            return Ok(member(documents, members).cloned());
        }
        for file in files {
            if let Some(found) = hierarchy.document(node, file)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// What is said of a group. Nothing is said of one in a store that is not NCZarr.
    pub(super) fn group(&self, hierarchy: &dyn Hierarchy, node: &NodeId) -> Result<Words> {
        let mut words = Words::default();
        let Some(documents) = hierarchy.documents(node)?.filter(|_| self.is_nczarr()) else {
            return Ok(words);
        };
        let own =
            self.own(hierarchy, node, &documents, &["_nczarr_group", "_NCZARR_GROUP"], &[".nczgroup"])?;
        let Some(own) = own else { return Ok(words) };
        if let Some(found) = any(&own, &["dimensions", "dims"]) {
            words.dimensions = dimensions(found)?;
        }
        if let Some(found) = any(&own, &["arrays", "vars"]) {
            words.arrays = Some(texts(found, "arrays")?);
        }
        if let Some(found) = any(&own, &["groups", "subgroups"]) {
            words.groups = Some(texts(found, "groups")?);
        }
        Ok(words)
    }

    /// What is said of an array, which puts right what Zarr says of its type and extents.
    pub(super) fn array(
        &self,
        hierarchy: &dyn Hierarchy,
        node: &NodeId,
        meta: &mut ArrayMeta,
    ) -> Result<(Option<Type>, Axes)> {
        let rank = meta.space.dims().len();
        let unknown = Axes::Names(vec![None; rank]);
        let Some(documents) = hierarchy.documents(node)? else { return Ok((None, unknown)) };
        let own = self.own(
            hierarchy,
            node,
            &documents,
            &["_nczarr_array", "_NCZARR_ARRAY"],
            &[".nczvar", ".nczarray"],
        )?;
        let kind = self.kind(&documents, own.as_ref(), meta);
        let names = match hierarchy.dimension_names(node)?.filter(|names| names.iter().any(Option::is_some)) {
            Some(names) => Some(names),
            None => array_dimensions(&documents),
        };
        let one = meta.space.dims() == [1];
        if let Some(own) = own.filter(|_| self.is_nczarr()) {
            let references = match any(&own, &["dimension_references", "dimrefs"]) {
                Some(found) => Some(texts(found, "dimension_references")?),
                None => None,
            };
            let flag = own.get("scalar").is_some_and(|v| v.as_f64() != Some(0.0) && *v != Json::Bool(false));
            let word = own.get("storage").and_then(Json::as_str) == Some("scalar");
            let none = references.as_ref().is_some_and(Vec::is_empty);
            if one && (flag || word || none) {
                meta.space = Dataspace::Scalar;
                return Ok((kind, Axes::Paths(Vec::new())));
            }
            if let Some(references) = references {
                if references.len() != rank {
                    let what = format!("{} dimensions of an array of {rank} axes", references.len());
                    return Err(wrong_member("dimension_references", what));
                }
                return Ok((kind, Axes::Paths(references)));
            }
        }
        Ok(match names {
            Some(names) if one && names == [Some(Name::from(SCALAR))] => {
                meta.space = Dataspace::Scalar;
                (kind, Axes::Names(Vec::new()))
            }
            Some(names) if names.len() == rank => (kind, Axes::Names(names)),
            _ => (kind, unknown),
        })
    }

    /// The type of an array's elements, where that of Zarr does not tell: text is of one byte (`>S1`, in older layouts
    /// `<U1`) or of any length, and truth values are bytes.
    fn kind(&self, documents: &Documents, own: Option<&Json>, meta: &mut ArrayMeta) -> Option<Type> {
        let alias = own.and_then(|own| any(own, &["nczarr_type", "type_alias"])).and_then(Json::as_str);
        let code = documents.metadata.get("dtype").and_then(Json::as_str).unwrap_or("");
        match &meta.dtype {
            dtype if dtype.is_bool() => {
                meta.dtype = DType::Integer(IntegerType::new(1, ByteOrder::Little, false));
                Some(Type::Atomic(NetcdfType::UByte))
            }
            DType::Integer(t) if t.size == 1 && alias == Some("char") => {
                meta.dtype = character();
                Some(Type::Atomic(NetcdfType::Char))
            }
            DType::String { size: 1, .. }
                if alias == Some("char") || code == ">S1" || code.ends_with("U1") =>
            {
                meta.dtype = character();
                Some(Type::Atomic(NetcdfType::Char))
            }
            DType::String { .. } | DType::Utf32 { .. } | DType::VarString { .. } => Some(Type::String),
            _ => None,
        }
    }

    /// The attributes of an object in the order of its document, typed as recorded. `dtype` is that of the elements of
    /// an array, which `_FillValue` has. xarray keeps this one in the fill value of Zarr 2, to which netCDF-C gives its
    /// own default.
    pub(super) fn attributes(
        &self,
        hierarchy: &dyn Hierarchy,
        node: &NodeId,
        dtype: Option<&DType>,
    ) -> Result<Vec<AttributeEntry>> {
        let inferred = hierarchy.attributes(node)?;
        let Some(documents) = hierarchy.documents(node)? else { return Ok(inferred) };
        let members = ["_nczarr_attr", "_nczarr_attrs", "_NCZARR_ATTR"];
        let own = self.own(hierarchy, node, &documents, &members, &[".nczattr"])?;
        let types = own.as_ref().and_then(|own| any(own, &["types", "attribute_types"]));
        // One look at each list, however long it is.
        let spellings: HashMap<&str, &Json> = members_of(&documents.attributes);
        let types: HashMap<&str, &Json> = types.map(members_of).unwrap_or_default();
        let typed = inferred.into_iter().filter_map(|entry| {
            let entry = match entry {
                Ok(a) if HIDDEN.iter().any(|name| name.as_bytes() == a.name.as_bytes()) => return None,
                Ok(a) => a,
                failed => return Some(failed),
            };
            let name = entry.name.as_str().unwrap_or_default();
            let Some(&spelled) = spellings.get(name) else { return Some(Ok(entry)) };
            let recorded = types.get(name).and_then(|word| word.as_str());
            let dtype = dtype.filter(|_| name == "_FillValue");
            let name = entry.name.clone();
            Some(attribute::typed(entry, spelled, recorded, dtype).map_err(|e| (Some(name), e)))
        });
        let mut typed: Vec<AttributeEntry> = typed.collect();
        if let (Some(dtype), Some(spelled)) = (dtype, documents.metadata.get("fill_value"))
            && documents.version == 2
            && !self.is_nczarr()
            && !self.by_netcdf
            && array_dimensions(&documents).is_some()
            && documents.attributes.get("_FillValue").is_none()
        {
            typed.extend(attribute::fill(dtype, spelled).map(Ok));
        }
        Ok(typed)
    }
}

/// The members of an object by name; of several with one name the last, as everywhere.
fn members_of(object: &Json) -> HashMap<&str, &Json> {
    object.as_map().unwrap_or(&[]).iter().map(|(name, value)| (name.as_str(), value)).collect()
}

/// A byte of text.
fn character() -> DType {
    DType::String { size: 1, padding: StringPadding::NullPadded, charset: CharSet::Utf8 }
}

/// The names in `_ARRAY_DIMENSIONS`.
fn array_dimensions(documents: &Documents) -> Option<Vec<Option<Name>>> {
    let names = documents.attributes.get("_ARRAY_DIMENSIONS")?.as_list()?;
    Some(names.iter().map(|name| name.as_str().map(Name::from)).collect())
}

/// Dimensions by name, as a length or as `{"size", "unlimited"}`; or a list of these with their names.
fn dimensions(found: &Json) -> Result<Vec<Dimension>> {
    let one = |name: &str, said: &Json| {
        let length = said.as_u64().or_else(|| said.get("size").and_then(Json::as_u64));
        let length = length.ok_or_else(|| wrong_member(name, "a dimension without length"))?;
        let unlimited = said.get("unlimited");
        let unlimited =
            unlimited.is_some_and(|v| *v == Json::Bool(true) || v.as_f64().is_some_and(|v| v != 0.0));
        Ok(Dimension { name: Name::from(name), length, unlimited })
    };
    match found {
        Json::Map(members) => members.iter().map(|(name, said)| one(name, said)).collect(),
        Json::List(items) => {
            let named = items.iter().map(|item| match item.get("name").and_then(Json::as_str) {
                Some(name) => one(name, item),
                None => Err(wrong_member("dimensions", "a dimension without a name")),
            });
            named.collect()
        }
        _ => Err(wrong_member("dimensions", "neither an object nor a list")),
    }
}
