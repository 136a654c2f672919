//! Everything in a file as changes that make it.

use super::CopyOptions;
use super::plan::{filters_of, layout_of, own_mappings};
use super::report::{Outcome, Report};
use crate::array::{Array, Entry, File, Item, Object};
use crate::convention::netcdf::{NetcdfView, Variable};
use crate::error::{Context, Error, Result};
use crate::model::write::{
    ArraySpec, AttributeSpec, Change, Content, FillSpec, LayoutSpec, LinkSpec, ObjectPath,
};
use crate::model::{Attribute, AttributeEntry, Dataspace, Dimension, Elements, FillValue, NodeId, NodeKind};
use crate::shape::{element_count, to_usize};
use crate::write::Format;
use std::collections::HashMap;

/// One change.
#[derive(Debug)]
pub(super) struct Step {
    /// The path of the object that it is of.
    pub(super) object: String,
    /// What to call it.
    pub(super) name: String,
    pub(super) what: &'static str,
    pub(super) change: Change,
    /// Whether the object is there only by this.
    pub(super) makes: bool,
    /// The array whose elements are to be copied.
    pub(super) array: Option<Array>,
}

/// Attributes by which HDF5 and netCDF say what dimensions are.
const SCALES: [&str; 8] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "_NCProperties",
];

/// Those of Zarr.
const NAMES: [&str; 6] = [
    "_ARRAY_DIMENSIONS",
    "_nczarr_attr",
    "_nczarr_attrs",
    "_nczarr_group",
    "_nczarr_array",
    "_nczarr_superblock",
];

/// The beginning of the name of a dimension scale without a variable.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// What is collected.
struct Steps<'a> {
    file: &'a File,
    options: &'a CopyOptions,
    format: Format,
    steps: Vec<Step>,
    /// Attributes and links, which come after all objects that they may lead to.
    later: Vec<Step>,
    report: Report,
    paths: HashMap<NodeId, String>,
}

/// The changes that make what is in `file`, and a report of what there is no change for.
pub(super) fn steps(file: &File, format: Format, options: &CopyOptions) -> Result<(Vec<Step>, Report)> {
    let mut steps = Steps {
        file,
        options,
        format,
        steps: Vec::new(),
        later: Vec::new(),
        report: Report::default(),
        paths: file.paths(),
    };
    if format.is_netcdf() {
        steps.netcdf()?
    } else {
        steps.objects()?
    }
    steps.steps.append(&mut steps.later);
    Ok((steps.steps, steps.report))
}

/// The dimensions of a view by path, and those of each array.
fn dimension_path(view: &NetcdfView, number: usize) -> Option<ObjectPath> {
    let dimension = view.dimensions().get(number)?;
    let group = ObjectPath::parse(&view.groups().get(dimension.group)?.path).ok()?;
    Some(group.join(dimension.name.clone()))
}

impl Steps<'_> {
    /// Whether an object is wanted: it, or something below or above it, is named.
    fn wants(&self, path: &str) -> bool {
        let is_in = |inner: &str, outer: &str| {
            let outer = outer.trim_matches('/');
            let inner = inner.trim_matches('/');
            outer.is_empty()
                || inner == outer
                || inner.strip_prefix(outer).is_some_and(|r| r.starts_with('/'))
        };
        self.options.only.is_empty()
            || self.options.only.iter().any(|only| is_in(path, only) || is_in(only, path))
    }

    fn lost(&mut self, name: String, what: &'static str, why: String) {
        self.report.add(name, what, Outcome::Dropped(why));
    }

    /// All objects by the links that lead to them.
    fn objects(&mut self) -> Result<()> {
        let to_zarr = self.format.is_zarr();
        let from_zarr = self.file.info().format == "Zarr";
        // What netCDF calls dimensions, Zarr can say.
        let view = if to_zarr { self.file.netcdf().ok() } else { None };
        let mut axes: HashMap<NodeId, Vec<Option<ObjectPath>>> = HashMap::new();
        if let Some(view) = &view {
            for variable in view.groups().iter().flat_map(|g| &g.variables) {
                let named = |&d: &usize| {
                    let path = dimension_path(view, d)?;
                    // Dimensions that nobody named have made-up names.
                    let name = path.names().last()?.to_string();
                    (!name.starts_with("phony_dim_") && !name.starts_with("_Anonymous_Dim_")).then_some(path)
                };
                axes.insert(variable.node.clone(), variable.dimensions.iter().map(named).collect());
            }
        }
        let file = self.file;
        for entry in file.walk() {
            if !self.wants(&entry.path) {
                continue;
            }
            match &entry.item {
                Item::Group(group, links) => {
                    let links = links.as_ref().map_err(|e| Error::new(e.kind(), e.message().to_owned()))?;
                    if let Some(fault) = links.faults.first() {
                        let text = format!("a link that cannot be read: {}", fault.error);
                        self.lost(entry.path.clone(), "link", text);
                    }
                    let path = ObjectPath::parse(&entry.path)?;
                    if !path.is_root() {
                        self.push(&entry.path, "group", Change::CreateGroup { path: path.clone() }, None);
                    } else {
                        self.report.add("/".into(), "group", Outcome::Kept);
                    }
                    let keep = |name: &str| match from_zarr {
                        true => !NAMES.contains(&name),
                        false => !(to_zarr && SCALES[4..].contains(&name)),
                    };
                    self.attributes(&entry.path, group.attributes(), keep);
                }
                Item::Object(node, NodeKind::Array) => {
                    let known = axes.get(node).cloned().unwrap_or_default();
                    let named = known.iter().any(Option::is_some);
                    self.array_at(&entry, known, named, to_zarr, from_zarr)?;
                }
                Item::Object(_, _) => match entry.open(file) {
                    Ok(Object::Datatype(named)) => {
                        let path = ObjectPath::parse(&entry.path)?;
                        let change = Change::CommitType { path, dtype: named.dtype().clone() };
                        self.push(&entry.path, "type", change, None);
                        self.attributes(&entry.path, named.attributes(), |_| true);
                    }
                    Ok(_) => {}
                    Err(e) => self.lost(entry.path.clone(), "object", e.to_string()),
                },
                Item::HardLink(first) => {
                    let link = LinkSpec::Hard(ObjectPath::parse(first)?);
                    self.link(&entry.path, link)?;
                }
                Item::SoftLink(target) => self.link(&entry.path, LinkSpec::Soft(target.clone()))?,
                Item::ExternalLink(file, path) => {
                    let link = LinkSpec::External { file: file.clone(), path: path.clone() };
                    self.link(&entry.path, link)?;
                }
                Item::UserLink(class, _) => {
                    self.lost(entry.path.clone(), "link", format!("a link of class {class}"));
                }
                Item::Fault(_, e) => self.lost(entry.path.clone(), "object", e.to_string()),
            }
        }
        Ok(())
    }

    fn link(&mut self, path: &str, link: LinkSpec) -> Result<()> {
        let change = Change::CreateLink { path: ObjectPath::parse(path)?, link };
        self.later.push(Step {
            object: path.to_owned(),
            name: path.to_owned(),
            what: "link",
            change,
            makes: false,
            array: None,
        });
        Ok(())
    }

    fn push(&mut self, path: &str, what: &'static str, change: Change, array: Option<Array>) {
        let path = path.to_owned();
        self.steps.push(Step { object: path.clone(), name: path, what, change, makes: true, array });
    }

    fn array_at(
        &mut self,
        entry: &Entry,
        axes: Vec<Option<ObjectPath>>,
        named: bool,
        to_zarr: bool,
        from_zarr: bool,
    ) -> Result<()> {
        let array = match entry.open(self.file) {
            Ok(Object::Array(array)) => array,
            Ok(_) => return Ok(()),
            Err(e) => {
                self.lost(entry.path.clone(), "array", e.to_string());
                return Ok(());
            }
        };
        if to_zarr && !from_zarr && self.is_only_dimension(&array) {
            let how = "a dimension without a variable, by the names of axes".to_owned();
            self.report.add(entry.path.clone(), "array", Outcome::Mapped(how));
            return Ok(());
        }
        let names = if named && to_zarr { axes } else { Vec::new() };
        match self.spec(&array, &array.meta().space.clone(), names) {
            Ok(mut spec) => {
                if self.format == Format::Hdf5
                    && let Some(mappings) = own_mappings(&array, self.options, |path| self.wants(path))
                {
                    spec.layout = LayoutSpec::Virtual(mappings);
                    spec.filters.clear();
                }
                let path = ObjectPath::parse(&entry.path)?;
                let change = Change::CreateArray { path, spec: Box::new(spec) };
                self.push(&entry.path, "array", change, Some(array.clone()));
            }
            Err(e) => {
                self.lost(entry.path.clone(), "array", e.to_string());
                return Ok(());
            }
        }
        let scale = self.class_is_scale(&array);
        let hides = |name: &str| {
            let of_scales =
                !from_zarr && SCALES.contains(&name) && (scale || !matches!(name, "CLASS" | "NAME"));
            let of_zarr = from_zarr && NAMES.contains(&name) && (named || name != "_ARRAY_DIMENSIONS");
            to_zarr && of_scales || of_zarr
        };
        let names = match array.attributes() {
            Ok(entries) => entries.iter().flatten().map(|a| a.name.to_string()).collect(),
            Err(_) => Vec::new(),
        };
        let (hidden, names): (Vec<String>, Vec<String>) = names.into_iter().partition(|name| hides(name));
        for name in hidden {
            let how = "names of dimensions".to_owned();
            self.report.add(format!("{}:{name}", entry.path), "attribute", Outcome::Mapped(how));
        }
        self.attributes(&entry.path, array.attributes(), |name| names.iter().any(|n| n == name));
        Ok(())
    }

    fn class_is_scale(&self, array: &Array) -> bool {
        matches!(array.attribute("CLASS"), Ok(value) if value.as_str() == Some("DIMENSION_SCALE"))
    }

    /// Whether a dataset stands for a dimension and nothing else.
    fn is_only_dimension(&self, array: &Array) -> bool {
        let name = array.attribute("NAME");
        self.class_is_scale(array)
            && matches!(&name, Ok(v) if v.as_str().is_some_and(|n| n.starts_with(NO_VARIABLE)))
    }

    fn spec(&self, array: &Array, space: &Dataspace, axes: Vec<Option<ObjectPath>>) -> Result<ArraySpec> {
        let meta = array.meta();
        let mut spec = ArraySpec::new(meta.dtype.clone(), space.clone());
        spec.fill = match &meta.fill {
            FillValue::Undefined => FillSpec::Undefined,
            FillValue::Default => FillSpec::Default,
            FillValue::Value(stored) => {
                let elements = array.decode(array.dtype(), stored.clone(), 1)?;
                let content = Content::of_elements(array.dtype(), &elements, &|node| self.path_of(node))?;
                FillSpec::Value(content)
            }
        };
        spec.dimensions = axes;
        spec.filters = match (&self.options.codecs, self.format) {
            (_, Format::NetCdf3 | Format::Cdf2 | Format::Cdf5) => Vec::new(),
            (Some(codecs), _) if !space.dims().is_empty() => codecs.clone(),
            (Some(_), _) => Vec::new(),
            (None, _) => filters_of(array),
        };
        spec.layout = layout_of(array, &spec, self.options)?;
        Ok(spec)
    }

    fn path_of(&self, node: &NodeId) -> Option<ObjectPath> {
        self.paths.get(node).and_then(|path| ObjectPath::parse(path).ok())
    }

    fn attributes(&mut self, path: &str, entries: Result<Vec<AttributeEntry>>, keep: impl Fn(&str) -> bool) {
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(e) => return self.lost(path.to_owned(), "attributes", e.to_string()),
        };
        // In the order in which they were made.
        entries.sort_by_key(|entry| entry.as_ref().ok().and_then(|a| a.order));
        for entry in entries {
            match entry {
                Ok(attribute) if !keep(&attribute.name.to_string()) => {}
                Ok(attribute) => self.attribute(path, &attribute),
                Err((name, e)) => {
                    let name = name.map(|n| n.to_string()).unwrap_or_default();
                    self.lost(format!("{path}:{name}"), "attribute", e.to_string());
                }
            }
        }
    }

    fn attribute(&mut self, path: &str, attribute: &Attribute) {
        let name = format!("{path}:{}", attribute.name);
        match self.attribute_spec(path, attribute) {
            Ok(change) => self.later.push(Step {
                object: path.to_owned(),
                name,
                what: "attribute",
                change,
                makes: false,
                array: None,
            }),
            Err(e) => self.lost(name, "attribute", e.to_string()),
        }
    }

    fn attribute_spec(&self, path: &str, attribute: &Attribute) -> Result<Change> {
        let count =
            if attribute.space.is_null() { 0 } else { to_usize(element_count(attribute.space.dims())?)? };
        let hierarchy = &**self.file.hierarchy();
        let limit = self.options.create.open.limits.output;
        let elements = Elements::decode(hierarchy, &attribute.dtype, attribute.data.clone(), count, limit)?;
        let content = Content::of_elements(&attribute.dtype, &elements, &|node| self.path_of(node))
            .context(|| format!("attribute {}", attribute.name))?;
        let attribute = AttributeSpec {
            name: attribute.name.clone(),
            dtype: attribute.dtype.clone(),
            committed: None,
            space: attribute.space.clone(),
            content,
        };
        Ok(Change::SetAttribute { object: ObjectPath::parse(path)?, attribute })
    }

    /// Everything as netCDF sees it.
    fn netcdf(&mut self) -> Result<()> {
        let view = self.file.netcdf()?;
        for group in view.groups() {
            if !self.wants(&group.path) {
                continue;
            }
            let path = ObjectPath::parse(&group.path)?;
            if path.is_root() {
                self.report.add("/".into(), "group", Outcome::Kept);
            } else {
                self.push(&group.path, "group", Change::CreateGroup { path: path.clone() }, None);
            }
            for dimension in group.dimensions.iter().filter_map(|&d| view.dimensions().get(d)) {
                let (name, length, unlimited) =
                    (dimension.name.clone(), dimension.length, dimension.unlimited);
                let at = path.join(name.clone()).to_string();
                let dimension = Dimension { name, length, unlimited };
                let change = Change::CreateDimension { group: path.clone(), dimension };
                self.steps.push(Step {
                    object: group.path.clone(),
                    name: at,
                    what: "dimension",
                    change,
                    makes: false,
                    array: None,
                });
            }
            for attribute in &group.attributes {
                self.attribute(&group.path, &attribute.stored);
            }
            for left in &group.left_out {
                self.lost(left.path.clone(), "object", left.reason.clone());
            }
            for variable in &group.variables {
                if !self.wants(&variable.path) {
                    continue;
                }
                let at = path.join(variable.name.clone()).to_string();
                match self.variable(&view, variable) {
                    Ok((array, spec)) => {
                        let change = Change::CreateArray {
                            path: path.join(variable.name.clone()),
                            spec: Box::new(spec),
                        };
                        self.push(&at, "array", change, Some(array));
                    }
                    Err(e) => {
                        self.lost(at, "array", e.to_string());
                        continue;
                    }
                }
                for attribute in &variable.attributes {
                    self.attribute(&at, &attribute.stored);
                }
            }
        }
        Ok(())
    }

    fn variable(&self, view: &NetcdfView, variable: &Variable) -> Result<(Array, ArraySpec)> {
        let Object::Array(array) = self.file.object(&variable.node, variable.path.as_str())? else {
            return Err(Error::invalid(format!("{} is no array", variable.path)));
        };
        let dims = view.shape(variable);
        let max = variable.dimensions.iter().filter_map(|&d| view.dimensions().get(d));
        let max = max.map(|d| if d.unlimited { None } else { Some(d.length) }).collect();
        let space = match dims.is_empty() {
            true => Dataspace::Scalar,
            false => Dataspace::Simple { dims, max },
        };
        let axes = variable.dimensions.iter().map(|&d| dimension_path(view, d)).collect();
        let mut spec = self.spec(&array, &space, axes)?;
        // Of its elements, what netCDF takes them for.
        if variable.meta.dtype.size() == spec.dtype.size() && variable.meta.dtype.is_fixed() {
            spec.dtype = variable.meta.dtype.clone();
        }
        Ok((array, spec))
    }
}
