//! Everything in a file as changes that make it.

use super::plan::{filters_of, fit_filters, layout_of, own_mappings};
use super::report::{Outcome, Report};
use super::{CopyOptions, Extents};
use crate::array::{Array, Entry, File, Item, Object};
use crate::convention::netcdf::NetcdfView;
use crate::dtype::{CharSet, DType, StringPadding};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::write::{
    ArraySpec, AttributeSpec, Change, Content, FillSpec, LayoutSpec, LinkSpec, Losses, ObjectPath,
};
use crate::model::{Attribute, AttributeEntry, Dataspace, Elements, FillValue, NodeId, NodeKind, Value};
use crate::shape::{element_count, to_usize};
use crate::write::{Fit, Format};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// One change.
#[derive(Debug)]
pub(super) struct Step {
    /// The path of the object that it is of.
    pub(super) object: String,
    /// What to call it.
    pub(super) name: String,
    pub(super) what: &'static str,
    pub(super) make: Make,
    /// Whether the object is there only by this.
    pub(super) makes: bool,
    /// The array whose elements are to be copied.
    pub(super) array: Option<Array>,
    /// In which other words it is kept, as far as that is known.
    pub(super) note: Option<String>,
}

/// What a step makes.
#[derive(Debug)]
pub(super) enum Make {
    Change(Change),
    /// An attribute as stored, and the type that it is to have where it has a name in the target. What its references
    /// lead to is known when all objects are.
    Attribute(Box<Attribute>, Option<(DType, ObjectPath)>),
}

impl Step {
    /// A change of an object that is there by another one.
    pub(super) fn of(object: &str, name: String, what: &'static str, change: Change) -> Step {
        let make = Make::Change(change);
        Step { object: object.to_owned(), name, what, make, makes: false, array: None, note: None }
    }
}

/// Attributes by which HDF5 and netCDF say what dimensions are.
pub(super) const SCALES: [&str; 8] = [
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
pub(super) const NAMES: [&str; 6] = [
    "_ARRAY_DIMENSIONS",
    "_nczarr_attr",
    "_nczarr_attrs",
    "_nczarr_group",
    "_nczarr_array",
    "_nczarr_superblock",
];

/// The beginning of the name of a dimension scale without a variable.
pub(super) const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// Where HDF5 keeps names of axes without scales.
const LABELS: &str = "DIMENSION_LABELS";

/// Where an array goes that is all that a Zarr store holds, in a file with a group at its root.
const ALONE: &str = "/array";

/// What is collected.
pub(super) struct Steps<'a> {
    pub(super) file: &'a File,
    pub(super) options: &'a CopyOptions,
    pub(super) format: Format,
    pub(super) steps: Vec<Step>,
    /// Attributes and links, which come after all objects that they may lead to.
    pub(super) later: Vec<Step>,
    pub(super) report: Report,
    pub(super) paths: HashMap<NodeId, String>,
    /// Paths of objects, and of attributes with `:` and the name, that were dealt with.
    pub(super) told: HashSet<String>,
    /// Names and numbers of the axes that arrays have.
    pub(super) axes: RefCell<HashSet<String>>,
}

/// The changes that make what is in `file`, and a report of what there is no change for.
pub(super) fn steps(
    file: &File,
    format: Format,
    options: &CopyOptions,
) -> Result<(Vec<Step>, Report, HashMap<NodeId, String>)> {
    let mut steps = Steps {
        file,
        options,
        format,
        steps: Vec::new(),
        later: Vec::new(),
        report: Report::default(),
        paths: file.paths(),
        told: HashSet::new(),
        axes: RefCell::default(),
    };
    if format.is_netcdf() {
        steps.netcdf()?
    } else {
        steps.objects()?
    }
    steps.steps.append(&mut steps.later);
    steps.check()?;
    Ok((steps.steps, steps.report, steps.paths))
}

/// The dimensions of a view by path, and those of each array.
pub(super) fn dimension_path(view: &NetcdfView, number: usize) -> Option<ObjectPath> {
    let dimension = view.dimensions().get(number)?;
    let group = ObjectPath::spelled(&view.groups().get(dimension.group)?.path);
    Some(group.join(dimension.name.clone()))
}

impl Steps<'_> {
    /// Fails if something is asked for that is not there.
    fn check(&self) -> Result<()> {
        for only in &self.options.only {
            let inside = |at: &str| {
                let (at, only) = (at.trim_matches('/'), only.trim_matches('/'));
                only.is_empty()
                    || at.strip_prefix(only).is_some_and(|r| r.is_empty() || r.starts_with(['/', ':']))
            };
            let there =
                self.steps.iter().map(|step| &step.name).chain(self.report.entries.iter().map(|e| &e.name));
            if !there.into_iter().any(|at| inside(at)) {
                return Err(Error::new(ErrorKind::NotFound, format!("there is no object {only} to copy"))
                    .hint("hyperslab ls lists them"));
            }
        }
        let axes = self.axes.borrow();
        for extents in [&self.options.chunks, &self.options.shards].into_iter().flatten() {
            let Extents::Dimensions(pairs) = extents else { continue };
            if let Some((name, _)) = pairs.iter().find(|(name, _)| !axes.contains(name)) {
                let mut known: Vec<&str> = axes.iter().map(String::as_str).collect();
                known.sort_unstable();
                known.truncate(20);
                return Err(Error::invalid(format!("no array that is copied has an axis {name}"))
                    .hint(format!("there are {}", known.join(", "))));
            }
        }
        Ok(())
    }

    /// Whether an object is wanted: it, or something below or above it, is named.
    pub(super) fn wants(&self, path: &str) -> bool {
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

    pub(super) fn lost(&mut self, name: String, what: &'static str, why: String) {
        self.report.add(name, what, Outcome::Dropped(why));
    }

    /// All objects by the links that lead to them.
    fn objects(&mut self) -> Result<()> {
        let to_zarr = self.format.is_zarr();
        let from_zarr = self.file.info().format == "Zarr";
        // What netCDF calls dimensions, Zarr can say.
        let by_name = self.options.chunks.is_some() || self.options.shards.is_some();
        let view = if to_zarr || from_zarr || by_name { self.file.netcdf().ok() } else { None };
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
                    let path = ObjectPath::spelled(&entry.path);
                    if !path.is_root() {
                        self.push(
                            &entry.path,
                            "group",
                            Change::CreateGroup { path: path.clone() },
                            None,
                            None,
                        );
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
                    self.array_at(&entry, known, to_zarr, from_zarr)?;
                }
                Item::Object(_, _) => match entry.open(file) {
                    Ok(Object::Datatype(named)) => {
                        let path = ObjectPath::spelled(&entry.path);
                        let change = Change::CommitType { path, dtype: named.dtype().clone() };
                        self.push(&entry.path, "type", change, None, None);
                        self.attributes(&entry.path, named.attributes(), |_| true);
                    }
                    Ok(_) => {}
                    Err(e) => self.lost(entry.path.clone(), "object", e.to_string()),
                },
                Item::HardLink(first) => {
                    let link = LinkSpec::Hard(ObjectPath::spelled(first));
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
        let change = Change::CreateLink { path: ObjectPath::spelled(path), link };
        self.later.push(Step::of(path, path.to_owned(), "link", change));
        Ok(())
    }

    pub(super) fn push(
        &mut self,
        path: &str,
        what: &'static str,
        change: Change,
        array: Option<Array>,
        note: Option<String>,
    ) {
        let step = Step::of(path, path.to_owned(), what, change);
        self.steps.push(Step { makes: true, array, note, ..step });
    }

    fn array_at(
        &mut self,
        entry: &Entry,
        mut axes: Vec<Option<ObjectPath>>,
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
        let is_alone = entry.path == "/";
        let at = if is_alone { ALONE } else { entry.path.as_str() };
        let path = ObjectPath::spelled(at);
        let labelled = to_zarr && !from_zarr && axes.iter().all(Option::is_none);
        if labelled && let Some((group, _)) = path.split() {
            let labels = self.labels(&array);
            axes = labels.into_iter().map(|label| Some(group.join(label?.as_str()))).collect();
        }
        let named = axes.iter().any(Option::is_some);
        let names = if named { axes.clone() } else { Vec::new() };
        match self.spec(&array, &array.meta().space.clone(), names) {
            Ok((mut spec, mut notes)) => {
                if self.format == Format::Hdf5 {
                    if let Some(mappings) = own_mappings(&array, self.options, |path| self.wants(path)) {
                        spec.layout = LayoutSpec::Virtual(mappings);
                        spec.filters.clear();
                    }
                    spec.committed = array.meta().committed.as_ref().and_then(|node| self.path_of(node));
                }
                if is_alone {
                    notes.push("called array, in a group at the root".to_owned());
                }
                let note = (!notes.is_empty()).then(|| notes.join("; "));
                let change = Change::CreateArray { path, spec: Box::new(spec) };
                self.push(at, "array", change, Some(array.clone()), note);
            }
            Err(e) => {
                self.lost(at.to_owned(), "array", e.to_string());
                return Ok(());
            }
        }
        if from_zarr && named && self.format == Format::Hdf5 {
            self.label(at, &axes);
        }
        let scale = self.class_is_scale(&array);
        let hides = |name: &str| {
            let of_scales =
                !from_zarr && SCALES.contains(&name) && (scale || !matches!(name, "CLASS" | "NAME"));
            let of_labels = labelled && named && name == LABELS;
            let of_zarr = from_zarr && NAMES.contains(&name) && (named || name != "_ARRAY_DIMENSIONS");
            to_zarr && (of_scales || of_labels) || of_zarr
        };
        let names = match array.attributes() {
            Ok(entries) => entries.iter().flatten().map(|a| a.name.to_string()).collect(),
            Err(_) => Vec::new(),
        };
        let (hidden, names): (Vec<String>, Vec<String>) = names.into_iter().partition(|name| hides(name));
        for name in hidden {
            let how = "names of dimensions".to_owned();
            self.report.add(format!("{at}:{name}"), "attribute", Outcome::Mapped(how));
        }
        self.attributes(at, array.attributes(), |name| names.iter().any(|n| n == name));
        Ok(())
    }

    /// What HDF5 calls the axes of an array of which no scales tell.
    fn labels(&self, array: &Array) -> Vec<Option<String>> {
        let Ok(Value::List(labels)) = array.attribute(LABELS) else { return Vec::new() };
        if labels.len() != array.shape().len() {
            return Vec::new();
        }
        labels
            .iter()
            .map(|label| label.as_str().filter(|label| !label.is_empty()).map(str::to_owned))
            .collect()
    }

    /// Says the names of axes as HDF5's dimension scales interface does where there are no scales.
    fn label(&mut self, at: &str, axes: &[Option<ObjectPath>]) {
        let name = |axis: &Option<ObjectPath>| match axis.as_ref().and_then(|path| path.names().last()) {
            Some(name) => name.as_bytes().to_vec(),
            None => Vec::new(),
        };
        let names: Vec<Vec<u8>> = axes.iter().map(name).collect();
        let length = names.len() as u64;
        let attribute = AttributeSpec {
            name: LABELS.into(),
            dtype: DType::VarString {
                size: 16,
                padding: StringPadding::NullTerminated,
                charset: CharSet::Utf8,
            },
            committed: None,
            space: Dataspace::Simple { dims: vec![length], max: vec![Some(length)] },
            content: Content::texts(names.iter().map(Vec::as_slice)),
        };
        let change = Change::SetAttribute { object: ObjectPath::spelled(at), attribute };
        let mut step = Step::of(at, format!("{at}:{LABELS}"), "dimension", change);
        step.note = Some("names of dimensions, as labels".to_owned());
        self.later.push(step);
    }

    pub(super) fn class_is_scale(&self, array: &Array) -> bool {
        matches!(array.attribute("CLASS"), Ok(value) if value.as_str() == Some("DIMENSION_SCALE"))
    }

    /// What an array of these extents is to be, and what of it is said in other words.
    pub(super) fn spec(
        &self,
        array: &Array,
        space: &Dataspace,
        axes: Vec<Option<ObjectPath>>,
    ) -> Result<(ArraySpec, Vec<String>)> {
        let meta = array.meta();
        // An array whose elements nobody can read is lost, and better known to be before anything is written.
        array.pipeline()?.check(0)?;
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
        let mut known = self.axes.borrow_mut();
        known.extend((0..space.dims().len()).map(|axis| axis.to_string()));
        known.extend(
            spec.dimensions.iter().flatten().filter_map(|path| Some(path.names().last()?.to_string())),
        );
        drop(known);
        let (layout, mut notes) = layout_of(array, &spec, self.format, self.options)?;
        spec.layout = layout;
        if self.format == Format::Hdf5 {
            // Its dimension scales are arrays and attributes like others.
            spec.dimensions.clear();
        }
        if self.options.codecs.is_none() {
            notes.extend(fit_filters(array, &mut spec, self.format));
        }
        Ok((spec, notes))
    }

    fn path_of(&self, node: &NodeId) -> Option<ObjectPath> {
        self.paths.get(node).map(|path| ObjectPath::spelled(path))
    }

    pub(super) fn attributes(
        &mut self,
        path: &str,
        entries: Result<Vec<AttributeEntry>>,
        keep: impl Fn(&str) -> bool,
    ) {
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
        let committed = match &attribute.committed {
            Some(node) if self.format == Format::Hdf5 => {
                self.path_of(node).map(|path| (attribute.dtype.clone(), path))
            }
            _ => None,
        };
        self.attribute_of(path, attribute, committed, None);
    }

    /// An attribute of the object at a path, to be of a type with a name.
    pub(super) fn attribute_of(
        &mut self,
        path: &str,
        attribute: &Attribute,
        committed: Option<(DType, ObjectPath)>,
        note: Option<String>,
    ) {
        let name = format!("{path}:{}", attribute.name);
        let make = Make::Attribute(Box::new(attribute.clone()), committed);
        let object = path.to_owned();
        self.later.push(Step { object, name, what: "attribute", make, makes: false, array: None, note });
    }
}

/// What makes an attribute. `path_of` gives the path of an object in the target; references to others lead nowhere there,
/// and are counted.
pub(super) fn attribute_change(
    file: &File,
    limit: u64,
    object: &str,
    attribute: &Attribute,
    committed: Option<(DType, ObjectPath)>,
    path_of: &dyn Fn(&NodeId) -> Option<ObjectPath>,
    lost: &mut Losses,
) -> Result<Change> {
    let count = if attribute.space.is_null() { 0 } else { to_usize(element_count(attribute.space.dims())?)? };
    let hierarchy = &**file.hierarchy();
    let elements = Elements::decode(hierarchy, &attribute.dtype, attribute.data.clone(), count, limit)?;
    let content = Content::of_elements_in(&attribute.dtype, &elements, path_of, lost)
        .context(|| format!("attribute {}", attribute.name))?;
    let (mut dtype, mut content, mut name) = (attribute.dtype.clone(), content, None);
    if let Some((wanted, path)) = committed
        && let Ok(fit) = Fit::new(&dtype, &wanted)
    {
        (content, dtype, name) = (fit.run(content)?, wanted, Some(path));
    }
    let attribute = AttributeSpec {
        name: attribute.name.clone(),
        dtype,
        committed: name,
        space: attribute.space.clone(),
        content,
    };
    Ok(Change::SetAttribute { object: ObjectPath::spelled(object), attribute })
}
