//! A version of what another file holds.

use super::stage::{Body, Object, Stage, load, spec};
use super::view::{OF_ARRAY, OF_VERSION};
use crate::array::{Array, File};
use crate::dtype::DType;
use crate::error::{Context, Error, Result};
use crate::model::write::{AttributeSpec, ObjectPath};
use crate::model::{NodeId, Value};
use crate::shape::Name;
use crate::staged::{Block, Values};
use std::collections::{BTreeMap, HashMap};

/// Attributes by which HDF5 and netCDF say which dimensions arrays have: they lead to other objects of their file.
const SCALES: [&[u8]; 6] = [
    b"DIMENSION_LIST",
    b"REFERENCE_LIST",
    b"_Netcdf4Dimid",
    b"_Netcdf4Coordinates",
    b"_nc3_strict",
    b"_NCProperties",
];

/// The beginning of the name of a dimension that no variable has.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// Where h5py keeps names of axes.
const LABELS: &str = "DIMENSION_LABELS";

impl Stage {
    /// Makes it what another file of any format holds: arrays that are not there are removed, others get its extents,
    /// attributes, and those elements that differ. Chunks that are the same are not stored again. Names of dimensions
    /// are kept as labels of axes.
    ///
    /// Errors: `Unsupported` for scalars, links, named datatypes, and types that the layout has not.
    pub fn take(&mut self, file: &File) -> Result<()> {
        let mut objects = BTreeMap::new();
        let mut own = BTreeMap::new();
        let names = dimensions(file);
        for entry in file.walk() {
            let path = ObjectPath::parse(&entry.path)?;
            let opened = entry.open(file).context(|| format!("object {path}"))?;
            let array = match &opened {
                crate::Object::Array(array) => Some(array),
                _ => None,
            };
            let is_scale = array.is_some_and(is_scale);
            if is_scale && array.is_some_and(is_only_dimension) {
                continue;
            }
            let mut attributes: BTreeMap<Name, AttributeSpec> = BTreeMap::new();
            for attribute in opened.attributes()? {
                let attribute = attribute.map_err(|(_, e)| e)?;
                let name = attribute.name.as_bytes();
                if SCALES.contains(&name) || is_scale && matches!(name, b"CLASS" | b"NAME") {
                    continue;
                }
                let is_taken = match &opened {
                    crate::Object::Array(_) => OF_ARRAY.contains(&name),
                    _ => path.is_root() && OF_VERSION.contains(&name),
                };
                if is_taken {
                    let what = format!(
                        "the attribute {} of {path}, which the layout of versions has",
                        attribute.name
                    );
                    return Err(Error::unsupported(what));
                }
                let spec =
                    spec(file, &attribute).context(|| format!("attribute {} of {path}", attribute.name))?;
                attributes.insert(attribute.name, spec);
            }
            if path.is_root() {
                own = attributes;
                continue;
            }
            let body = match opened {
                crate::Object::Group(_) => Body::Group,
                crate::Object::Array(array) => {
                    if let Some(names) = names.get(array.node())
                        && !attributes.contains_key(&Name::from(LABELS))
                    {
                        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
                        let labels = Values::texts(&[texts.len() as u64], &texts)?;
                        attributes.insert(Name::from(LABELS), crate::write::attribute(LABELS, labels)?);
                    }
                    if let Some(object) = self.objects.get_mut(&path) {
                        load(object, self.before.as_ref(), &path)?;
                    }
                    let old = match self.objects.get(&path).map(|object| &object.body) {
                        Some(Body::Array(staged)) => Some(&**staged),
                        _ => None,
                    };
                    let taken = self.store.taken(&path, old, &array);
                    Body::Array(Box::new(taken.context(|| format!("array {path}"))?))
                }
                crate::Object::Datatype(_) => {
                    return Err(Error::unsupported(format!("{path}, a named datatype, in versions")));
                }
            };
            objects.insert(path, Object { attributes, body });
        }
        self.objects = objects;
        self.attributes = own;
        Ok(())
    }
}

/// The names of dimensions of arrays that have some.
fn dimensions(file: &File) -> HashMap<NodeId, Vec<String>> {
    let mut names = HashMap::new();
    // What netCDF cannot show has no dimensions.
    let Ok(view) = file.netcdf() else { return names };
    for variable in view.groups().iter().flat_map(|group| &group.variables) {
        let name = |&d: &usize| view.dimensions().get(d).map(|d| d.name.to_string()).unwrap_or_default();
        let own: Vec<String> = variable.dimensions.iter().map(name).collect();
        let is_made_up =
            |name: &String| name.starts_with("phony_dim_") || name.starts_with("_Anonymous_Dim_");
        if !own.is_empty() && !own.iter().any(is_made_up) {
            names.insert(variable.node.clone(), own);
        }
    }
    names
}

fn is_scale(array: &Array) -> bool {
    matches!(array.attribute("CLASS"), Ok(value) if value.as_str() == Some("DIMENSION_SCALE"))
}

/// Whether a scale stands for a dimension and nothing else.
fn is_only_dimension(array: &Array) -> bool {
    matches!(array.attribute("NAME"), Ok(v) if v.as_str().is_some_and(|name| name.starts_with(NO_VARIABLE)))
}

pub(super) fn is_text(dtype: &DType) -> bool {
    matches!(dtype, DType::String { .. } | DType::VarString { .. })
}

/// The texts of a block. What is no text is an error, never something like it.
pub(super) fn texts(block: &Block) -> Result<Vec<String>> {
    let text = |i| match block.value(i)? {
        Value::Text(text) => Ok(text),
        _ => Err(Error::unsupported(format!("bytes that are no UTF-8 as another type of text, element {i}"))),
    };
    (0..block.len()).map(text).collect()
}
