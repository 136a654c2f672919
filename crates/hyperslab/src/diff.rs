//! Whether two files say the same, whatever their formats.

use crate::array::{Array, File, Item, Object};
use crate::error::{Error, Result};
use crate::exec::Cancel;
use crate::model::{Attribute, AttributeEntry, Dataspace, NodeId, NodeKind, Reference, Value};
use crate::plan::block_shape;
use crate::select::{Region, Selector};
use crate::shape::{Coord, element_count, to_usize};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Attributes by which formats say what others say otherwise.
const PLUMBING: [&str; 17] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "_NCProperties",
    "_ARRAY_DIMENSIONS",
    "_nczarr_attr",
    "_nczarr_attrs",
    "_nczarr_group",
    "_nczarr_array",
    "_nczarr_superblock",
    "_nczarr_maxstrlen",
    "_nczarr_default_maxstrlen",
];

/// Those of them that follow from others, or say who wrote the file: no two writers write the same.
const DERIVED: [&str; 4] = ["REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties"];

/// How the name of a dataset begins that stands for a dimension and nothing else; its length follows.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// What counts as the same.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DiffOptions {
    /// Numbers are the same if they differ by at most `atol + rtol · |b|`.
    pub rtol: f64,
    /// See `rtol`.
    pub atol: f64,
    /// Whether a NaN is the same as any other; those with the same bits always are.
    pub nan_equal: bool,
    /// Compare files of one format as those of different ones: values, not exact types, nor how dimensions are said.
    pub loose: bool,
    /// Stops the work.
    pub cancel: Option<Cancel>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path; of an attribute, that of its object with `:` and its name.
    pub path: String,
    /// What differs.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// What stands at a path.
#[derive(Debug, PartialEq)]
enum Thing {
    Node(NodeId, NodeKind),
    /// Another name of the object at a path.
    Name(String),
    Link(String),
}

/// Compares two files, object by object in the order of paths; every difference goes to `found`. Whether there was none.
///
/// Of files of different formats the words of each format for dimensions are not compared, nor exact types: values are.
/// An object that cannot be read is an error.
pub fn diff(a: &File, b: &File, options: &DiffOptions, found: &mut dyn FnMut(Difference)) -> Result<bool> {
    let (one, two) = (a.info(), b.info());
    // Versions of Zarr have words of their own for dimensions.
    let cross =
        options.loose || one.format != two.format || one.format == "Zarr" && one.version != two.version;
    let mut same = true;
    let mut report = |path: &str, what: String| {
        same = false;
        found(Difference { path: path.to_owned(), what });
    };
    let (mut left, mut right) = (things(a, cross)?, things(b, cross)?);
    lone(&mut left, &mut right);
    lone(&mut right, &mut left);
    let pair = Pair { a, b, options, cross, paths: [a.paths(), b.paths()] };
    let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    for path in names {
        match (left.get(path), right.get(path)) {
            // Types without a name get one where a format has no others.
            (Some(Thing::Node(_, NodeKind::Datatype)), None)
            | (None, Some(Thing::Node(_, NodeKind::Datatype)))
                if cross => {}
            (Some(_), None) if cross && is_copied(path, &left, &right) => {}
            (None, Some(_)) if cross && is_copied(path, &right, &left) => {}
            (Some(_), None) => report(path, format!("only in {}", a.name())),
            (None, Some(_)) => report(path, format!("only in {}", b.name())),
            (Some(Thing::Node(x, NodeKind::Group)), Some(Thing::Node(y, NodeKind::Group))) => {
                let (x, y) = (a.object(x, path.as_str())?, b.object(y, path.as_str())?);
                pair.attributes(path, attributes(&x)?, attributes(&y)?, &mut report)?;
            }
            (Some(Thing::Node(x, _)), Some(Thing::Node(y, _))) => {
                match (a.object(x, path.as_str())?, b.object(y, path.as_str())?) {
                    (Object::Array(x), Object::Array(y)) => {
                        pair.arrays(path, &x, &y, &mut report)?;
                        pair.attributes(path, x.attributes()?, y.attributes()?, &mut report)?;
                    }
                    (Object::Datatype(x), Object::Datatype(y)) => {
                        if !cross && x.dtype() != y.dtype() {
                            report(path, format!("type {} and {}", x.dtype(), y.dtype()));
                        }
                        pair.attributes(path, x.attributes()?, y.attributes()?, &mut report)?;
                    }
                    _ => report(path, "an object of another kind".into()),
                }
            }
            (x, y) if x == y => {}
            (Some(Thing::Link(x)), Some(Thing::Link(y))) => report(path, format!("{x} and {y}")),
            // The same object under a name that only one of them says is a second one.
            (Some(Thing::Name(_) | Thing::Node(..)), Some(Thing::Name(_) | Thing::Node(..))) if cross => {}
            _ => report(path, "a link to something else".into()),
        }
    }
    Ok(same)
}

/// Whether what stands at a path of one file is below a second name of a group, and at the first one in the other file:
/// where there are no links, there are copies.
fn is_copied(path: &str, here: &BTreeMap<String, Thing>, there: &BTreeMap<String, Thing>) -> bool {
    path.match_indices('/').any(|(i, _)| {
        let (group, rest) = path.split_at(i);
        match there.get(group) {
            Some(Thing::Name(first)) => {
                let first = format!("{}{rest}", first.trim_end_matches('/'));
                here.contains_key(&first) || is_copied(&first, here, there)
            }
            _ => false,
        }
    })
}

/// An array that is all that a store holds is one called `array` where there has to be a group.
fn lone(one: &mut BTreeMap<String, Thing>, other: &mut BTreeMap<String, Thing>) {
    let is = |things: &BTreeMap<String, Thing>, path: &str, wanted: NodeKind| matches!(things.get(path), Some(Thing::Node(_, kind)) if *kind == wanted);
    if is(one, "/", NodeKind::Array)
        && is(other, "/", NodeKind::Group)
        && is(other, "/array", NodeKind::Array)
    {
        other.remove("/");
        if let Some(array) = one.remove("/") {
            one.insert("/array".into(), array);
        }
    }
}

fn is_zarr(file: &File) -> bool {
    file.info().format == "Zarr"
}

fn attributes(object: &Object) -> Result<Vec<AttributeEntry>> {
    match object {
        Object::Group(group) => group.attributes(),
        Object::Array(array) => array.attributes(),
        Object::Datatype(named) => named.attributes(),
    }
}

/// Everything in a file by path.
fn things(file: &File, cross: bool) -> Result<BTreeMap<String, Thing>> {
    let mut things = BTreeMap::new();
    for entry in file.walk() {
        let thing = match &entry.item {
            Item::Group(group, links) => {
                if let Err(e) = links {
                    return Err(Error::new(e.kind(), e.message().to_owned()).context(entry.path));
                }
                Thing::Node(group.node().clone(), NodeKind::Group)
            }
            Item::Object(node, kind) => {
                if cross && *kind == NodeKind::Array && is_only_dimension(file, node, &entry.path) {
                    continue;
                }
                Thing::Node(node.clone(), *kind)
            }
            Item::HardLink(first) => Thing::Name(first.clone()),
            Item::SoftLink(target) => Thing::Link(format!("a soft link to {target}")),
            Item::ExternalLink(file, path) => Thing::Link(format!("an external link to {file}::{path}")),
            Item::UserLink(class, data) => Thing::Link(format!("a link of class {class} with {data:?}")),
            Item::Fault(_, e) => return Err(Error::new(e.kind(), e.message().to_owned()).context(entry.path)),
        };
        things.insert(entry.path, thing);
    }
    Ok(things)
}

/// Whether a dataset of HDF5 stands for a dimension of netCDF and nothing else.
fn is_only_dimension(file: &File, node: &NodeId, path: &str) -> bool {
    matches!(file.object(node, path), Ok(Object::Array(array)) if stands_for_dimension(&array))
}

fn stands_for_dimension(array: &Array) -> bool {
    let name = array.attribute("NAME");
    matches!(name, Ok(v) if v.as_str().is_some_and(|n| n.starts_with(NO_VARIABLE)))
}

struct Pair<'a> {
    a: &'a File,
    b: &'a File,
    options: &'a DiffOptions,
    cross: bool,
    paths: [HashMap<NodeId, String>; 2],
}

type Reporter<'r> = dyn FnMut(&str, String) + 'r;

impl Pair<'_> {
    fn attributes(
        &self,
        path: &str,
        a: Vec<AttributeEntry>,
        b: Vec<AttributeEntry>,
        report: &mut Reporter<'_>,
    ) -> Result<()> {
        let by_name = |entries: Vec<AttributeEntry>| -> Result<BTreeMap<String, Attribute>> {
            let mut named = BTreeMap::new();
            for entry in entries {
                let attribute = entry.map_err(|(name, e)| {
                    e.context(format!("attribute {} of {path}", name.unwrap_or_default()))
                })?;
                let name = attribute.name.to_string();
                let hidden: &[&str] = if self.cross { &PLUMBING } else { &DERIVED };
                if !hidden.contains(&name.as_str()) {
                    named.insert(name, attribute);
                }
            }
            Ok(named)
        };
        let (a, b) = (by_name(a)?, by_name(b)?);
        let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for name in names {
            let at = format!("{path}:{name}");
            match (a.get(name), b.get(name)) {
                // Zarr has a place of its own for it.
                (Some(_), None) if name == "_FillValue" && self.cross && is_zarr(self.b) => {}
                (None, Some(_)) if name == "_FillValue" && self.cross && is_zarr(self.a) => {}
                (Some(_), None) => report(&at, format!("only in {}", self.a.name())),
                (None, Some(_)) => report(&at, format!("only in {}", self.b.name())),
                (Some(x), Some(y)) => {
                    // Zarr has no types of attributes.
                    if !self.cross && self.a.info().format != "Zarr" && x.dtype != y.dtype {
                        report(&at, format!("type {} and {}", x.dtype, y.dtype));
                    }
                    let (x, y) = (value(self.a, x)?, value(self.b, y)?);
                    let plain = |value: &Value| match name.as_str() {
                        "_FillValue" if self.cross => double(flat(value)),
                        "NAME" if value.as_str().is_some_and(|n| n.starts_with(NO_VARIABLE)) => {
                            Value::Text(NO_VARIABLE.into())
                        }
                        _ => flat(value),
                    };
                    if !self.same(&plain(&x), &plain(&y)) {
                        report(&at, format!("{x} and {y}"));
                    }
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    fn arrays(&self, path: &str, a: &Array, b: &Array, report: &mut Reporter<'_>) -> Result<()> {
        if stands_for_dimension(a) && stands_for_dimension(b) {
            // Of an unlimited one nobody need say how long it is.
            let (x, y) = (&a.meta().space, &b.meta().space);
            let grows =
                |space: &Dataspace| matches!(space, Dataspace::Simple { max, .. } if max.contains(&None));
            if grows(x) != grows(y) || !grows(x) && x.dims() != y.dims() {
                report(path, format!("a dimension of {:?} and {:?}", x.dims(), y.dims()));
            }
            return Ok(());
        }
        if !self.cross && a.dtype() != b.dtype() {
            report(path, format!("type {} and {}", a.dtype(), b.dtype()));
        }
        let (x, y) = (a.shape(), b.shape());
        let one = |shape: &[u64]| shape.is_empty() || shape == [1];
        let scalars = self.cross && one(x) && one(y);
        if a.meta().space.is_null() != b.meta().space.is_null() || x != y && !scalars {
            report(path, format!("shape {x:?} and {y:?}"));
            return Ok(());
        }
        if a.meta().space.is_null() || element_count(x)? == 0 {
            return Ok(());
        }
        let size = a.dtype().size().max(b.dtype().size()).max(1);
        let block = block_shape(x, size);
        let (mut differ, mut first) = (0u64, None);
        let mut start: Option<Coord> = Some(x.iter().map(|_| 0).collect());
        while let Some(at) = start {
            if let Some(cancel) = &self.options.cancel {
                cancel.check()?;
            }
            let extent: Vec<u64> = at.iter().zip(&block).zip(x).map(|((s, n), d)| (*n).min(d - s)).collect();
            self.block(a, b, &at, &extent, scalars, &mut differ, &mut first)?;
            start = next(&at, &block, x);
        }
        if let Some((at, x, y)) = first {
            let total = element_count(a.shape())?;
            report(path, format!("{differ} of {total} elements differ, first at {at:?}: {x} and {y}"));
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn block(
        &self,
        a: &Array,
        b: &Array,
        start: &Coord,
        extent: &[u64],
        scalars: bool,
        differ: &mut u64,
        first: &mut Option<(Vec<u64>, Value, Value)>,
    ) -> Result<()> {
        let region = |array: &Array| {
            if scalars {
                return Ok(Region::all(array.shape()));
            }
            let sides = start.iter().zip(extent).enumerate();
            let selectors = sides.map(|(axis, (&s, &n))| Selector::range(axis, s, 1, n)).collect();
            Region::new(array.shape().to_vec(), selectors, extent.to_vec(), extent.to_vec())
        };
        let options = crate::array::ReadOptions::new();
        let (x, y) = (a.read_region(region(a)?, &options)?, b.read_region(region(b)?, &options)?);
        if a.dtype() == b.dtype() && a.dtype().is_fixed() && x.bytes == y.bytes {
            return Ok(());
        }
        let count = to_usize(element_count(&x.shape)?)?;
        let (x, y) =
            (a.decode(a.dtype(), x.bytes.into(), count)?, b.decode(b.dtype(), y.bytes.into(), count)?);
        for i in 0..count {
            let (v, w) = (x.value(i)?, y.value(i)?);
            if !self.same(&v, &w) {
                *differ += 1;
                if first.is_none() {
                    let mut rest = i as u64;
                    let mut at: Vec<u64> = start.to_vec();
                    for (slot, n) in at.iter_mut().zip(extent).rev() {
                        *slot += rest % (*n).max(1);
                        rest /= (*n).max(1);
                    }
                    *first = Some((at, v, w));
                }
            }
        }
        Ok(())
    }

    /// Whether two values are the same.
    fn same(&self, a: &Value, b: &Value) -> bool {
        match (a, b) {
            // A text and its characters.
            (Value::Text(text), Value::List(list)) | (Value::List(list), Value::Text(text)) if self.cross => {
                let bytes = |v: &Value| match v {
                    Value::Text(text) => Some(text.as_bytes().to_vec()),
                    Value::Bytes(bytes) => Some(bytes.to_vec()),
                    _ => None,
                };
                let parts: Option<Vec<Vec<u8>>> = list.iter().map(bytes).collect();
                // What is behind the end of the text is no part of it.
                let parts =
                    parts.map(|p| p.into_iter().take_while(|c| !c.is_empty()).collect::<Vec<_>>().concat());
                parts.is_some_and(|parts| parts.trim_ascii_end() == text.as_bytes().trim_ascii_end())
            }
            (Value::List(x), Value::List(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(x, y)| self.same(x, y))
            }
            (Value::Compound(names, x), Value::Compound(others, y)) => {
                names == others && x.iter().zip(y).all(|(x, y)| self.same(x, y))
            }
            (Value::Complex(x), Value::Complex(y)) => x.iter().zip(y.iter()).all(|(x, y)| self.same(x, y)),
            (Value::Reference(x), Value::Reference(y)) => self.same_reference(x, y),
            // Nothing stored is an empty text.
            (Value::Null, Value::Text(text)) | (Value::Text(text), Value::Null) => text.is_empty(),
            (Value::Text(x), Value::Bytes(y)) | (Value::Bytes(y), Value::Text(x)) => {
                x.as_bytes() == y.as_ref()
            }
            _ => match (a.as_integer(), b.as_integer(), a.as_f64(), b.as_f64()) {
                (Some(x), Some(y), ..) if x == y => true,
                (Some(_), Some(_), Some(x), Some(y)) => {
                    self.near(x, y) && (self.options.atol > 0.0 || self.options.rtol > 0.0)
                }
                (_, _, Some(x), Some(y)) => {
                    x == y
                        || x.to_bits() == y.to_bits()
                        || (self.options.nan_equal || self.cross) && x.is_nan() && y.is_nan()
                        || self.near(x, y)
                }
                _ => a == b,
            },
        }
    }

    fn near(&self, x: f64, y: f64) -> bool {
        (x - y).abs() <= self.options.atol + self.options.rtol * y.abs()
    }

    fn same_reference(&self, a: &Reference, b: &Reference) -> bool {
        let [left, right] = &self.paths;
        let same = |x: &NodeId, y: &NodeId| left.get(x).is_some() && left.get(x) == right.get(y);
        match (a, b) {
            (Reference::Null, Reference::Null) => true,
            (Reference::Object(x), Reference::Object(y)) => same(x, y),
            (Reference::Region(x, r), Reference::Region(y, s)) => same(x, y) && r == s,
            (Reference::Attribute(x, r), Reference::Attribute(y, s)) => same(x, y) && r == s,
            _ => false,
        }
    }
}

/// The next block in C order.
fn next(at: &Coord, block: &[u64], shape: &[u64]) -> Option<Coord> {
    let mut next = at.clone();
    for axis in (0..next.len()).rev() {
        let (slot, &by, &d) = (next.get_mut(axis)?, block.get(axis)?, shape.get(axis)?);
        *slot = slot.saturating_add(by.max(1));
        if *slot < d {
            return Some(next);
        }
        *slot = 0;
    }
    None
}

/// The value of an attribute.
fn value(file: &File, attribute: &Attribute) -> Result<Value> {
    if attribute.space.is_null() {
        return Ok(Value::Null);
    }
    file.root().attribute_value(attribute)
}

/// The number in a text that is the eight bytes of a double in base 64, as xarray spells fill values in Zarr 3.
fn double(value: Value) -> Value {
    let bytes = value.as_str().and_then(crate::json::base64).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(value, |bytes| Value::Double(f64::from_le_bytes(bytes)))
}

/// A list of one value as the value, and no list in a list: formats differ in that.
fn flat(value: &Value) -> Value {
    match value {
        Value::List(items) if items.len() == 1 => items.first().map_or(Value::Null, flat),
        Value::List(items) if items.iter().any(|i| matches!(i, Value::List(_))) => {
            let mut all = Vec::new();
            for item in items {
                match flat(item) {
                    Value::List(more) => all.extend(more),
                    one => all.push(one),
                }
            }
            Value::List(all)
        }
        other => other.clone(),
    }
}
