//! Everything in a file as netCDF sees it, as changes that make a file of netCDF; and what netCDF does not see.

use super::plan::fit_filters;
use super::report::Outcome;
use super::source::{NAMES, NO_VARIABLE, SCALES, Step, Steps, dimension_path};
use crate::array::{Array, Item, Object};
use crate::convention::netcdf::{Attribute, Group, NetcdfView, Type, Variable};
use crate::dtype::{CharSet, DType, Field, StringPadding};
use crate::error::{Error, Result};
use crate::model::write::{ArraySpec, Change, FillSpec, ObjectPath};
use crate::model::{self, Dataspace, Dimension, NodeId};
use crate::write::{Fit, Format};

/// Where a user-defined type is in the target.
fn type_path(view: &NetcdfView, number: usize) -> Option<ObjectPath> {
    let user = view.types().get(number)?;
    Some(ObjectPath::spelled(&view.groups().get(user.group)?.path).join(user.name.clone()))
}

/// A type as netCDF's libraries read all of it: texts of fixed length in it are arrays of characters.
fn worded(dtype: &DType) -> DType {
    match dtype {
        DType::Compound { size, fields } => {
            let field = |f: &Field| Field {
                dtype: match &f.dtype {
                    DType::String { size, charset, .. } if *size > 1 => {
                        let base = DType::String {
                            size: 1,
                            padding: StringPadding::NullTerminated,
                            charset: if *charset == CharSet::Utf8 { CharSet::Utf8 } else { CharSet::Ascii },
                        };
                        DType::Array { base: Box::new(base), dims: vec![*size as u64] }
                    }
                    other => worded(other),
                },
                ..f.clone()
            };
            DType::Compound { size: *size, fields: fields.iter().map(field).collect() }
        }
        DType::Array { base, dims } => DType::Array { base: Box::new(worded(base)), dims: dims.clone() },
        DType::VarLen { size, base } => DType::VarLen { size: *size, base: Box::new(worded(base)) },
        other => other.clone(),
    }
}

impl Steps<'_> {
    /// Everything as netCDF sees it.
    pub(super) fn netcdf(&mut self) -> Result<()> {
        let view = self.file.netcdf_view(self.format == Format::NetCdf4)?;
        for group in view.groups() {
            if !self.wants(&group.path) {
                continue;
            }
            let path = ObjectPath::spelled(&group.path);
            if path.is_root() {
                self.report.add("/".into(), "group", Outcome::Kept);
            } else {
                self.push(&group.path, "group", Change::CreateGroup { path: path.clone() }, None, None);
            }
            self.told.insert(group.path.clone());
            self.types(&view, group);
            self.dimensions(&view, group, &path);
            for attribute in &group.attributes {
                self.netcdf_attribute(&view, (&group.path, &group.path), &group.node, attribute);
            }
            for variable in &group.variables {
                if self.wants(&variable.path) {
                    self.netcdf_variable(&view, &path, variable);
                }
            }
            for left in group
                .left_out
                .iter()
                .filter(|left| !self.told.contains(&left.path))
                .cloned()
                .collect::<Vec<_>>()
            {
                if !self.wants(left.path.split(':').next().unwrap_or_default()) {
                    continue;
                }
                let what = if left.path.contains(':') { "attribute" } else { "object" };
                self.told.insert(left.path.clone());
                self.lost(left.path, what, left.reason);
            }
        }
        self.unseen()
    }

    fn dimensions(&mut self, view: &NetcdfView, group: &Group, path: &ObjectPath) {
        for dimension in group.dimensions.iter().filter_map(|&d| view.dimensions().get(d)) {
            let (name, length, unlimited) = (dimension.name.clone(), dimension.length, dimension.unlimited);
            let at = path.join(name.clone()).to_string();
            let dimension = Dimension { name, length, unlimited };
            let change = Change::CreateDimension { group: path.clone(), dimension };
            self.steps.push(Step::of(&group.path, at, "dimension", change));
        }
    }

    /// The types of a group, those that are part of others first.
    fn types(&mut self, view: &NetcdfView, group: &Group) {
        let mut left: Vec<usize> = group.types.clone();
        let mut done: Vec<usize> = Vec::new();
        while !left.is_empty() {
            let waits = |&place: &usize| {
                let parts = view.types().get(place).map(|t| parts(&t.dtype)).unwrap_or_default();
                let known = parts.iter().filter_map(|part| match view.type_of(part) {
                    Some(Type::User(i)) if i != place => Some(i),
                    _ => None,
                });
                known.into_iter().any(|i| left.contains(&i))
            };
            // Types that wait for each other there are none; if there are, they come as they stand.
            let next = left.iter().position(|place| !waits(place)).unwrap_or(0);
            done.push(left.remove(next));
        }
        for place in done {
            let (Some(user), Some(path)) = (view.types().get(place), type_path(view, place)) else {
                continue;
            };
            let at = path.to_string();
            self.told.insert(at.clone());
            if !user.invented && !self.wants(&at) {
                continue;
            }
            let dtype = worded(&user.dtype);
            let mut note = user.invented.then(|| "a name for a type that had none".to_owned());
            if dtype != user.dtype {
                let more = "texts of fixed length as arrays of characters";
                note = Some(note.map_or(more.to_owned(), |note| format!("{note}; {more}")));
            }
            let node = (!user.invented).then(|| self.node_at(&at)).flatten();
            let change = Change::CommitType { path, dtype };
            self.push(&at, "type", change, None, note);
            if let Some(node) = node {
                let Ok(Object::Datatype(named)) = self.file.object(&node, at.as_str()) else { continue };
                self.attributes(&at, named.attributes(), |_| true);
            }
        }
    }

    /// The object that stands at a path by its first link.
    fn node_at(&self, path: &str) -> Option<NodeId> {
        self.paths.iter().find(|(_, at)| *at == path).map(|(node, _)| node.clone())
    }

    /// An attribute of the object at one path, which is to be at the other.
    fn netcdf_attribute(
        &mut self,
        view: &NetcdfView,
        (from, at): (&str, &str),
        node: &NodeId,
        attribute: &Attribute,
    ) {
        self.told.insert(format!("{from}:{}", attribute.name));
        let mut stored = attribute.stored.clone();
        let own = self.stored_attribute(node, &attribute.name);
        let mut committed = None;
        let mut note = None;
        if let Some(own) =
            own.as_ref().filter(|own| own.dtype.size() == stored.dtype.size() || stored.dtype.is_fixed())
            && !matches!(stored.dtype, DType::String { .. })
            && own.dtype != stored.dtype
        {
            note = Some(format!("numbers of type {} as {}", own.dtype, stored.dtype));
        }
        if self.format == Format::NetCdf4 {
            // Blanks that fill a text up are for HDF5 to know.
            if let (DType::String { size, .. }, Some(own)) = (&stored.dtype, own)
                && own.dtype.size() == *size
            {
                stored.dtype = own.dtype;
            }
            if let Type::User(place) = attribute.kind {
                committed = view.types().get(place).map(|t| worded(&t.dtype)).zip(type_path(view, place));
            }
        }
        self.attribute_of(at, &stored, committed, note);
    }

    fn stored_attribute(&self, node: &NodeId, name: &crate::shape::Name) -> Option<model::Attribute> {
        let entries = self.file.hierarchy().attributes(node).ok()?;
        entries.into_iter().flatten().find(|a| a.name == *name)
    }

    fn netcdf_variable(&mut self, view: &NetcdfView, group: &ObjectPath, variable: &Variable) {
        let to = group.join(variable.name.clone());
        let at = to.to_string();
        self.told.insert(variable.path.clone());
        match self.variable_spec(view, variable) {
            Ok((array, spec, note)) => {
                let change = Change::CreateArray { path: to, spec: Box::new(spec) };
                self.push(&at, "array", change, Some(array), note);
            }
            Err(e) => {
                self.lost(at, "array", e.to_string());
                // Its attributes are lost with it.
                for attribute in &variable.attributes {
                    self.told.insert(format!("{}:{}", variable.path, attribute.name));
                }
                return;
            }
        }
        for attribute in &variable.attributes {
            self.netcdf_attribute(view, (&variable.path, &at), &variable.node, attribute);
        }
    }

    fn variable_spec(
        &self,
        view: &NetcdfView,
        variable: &Variable,
    ) -> Result<(Array, ArraySpec, Option<String>)> {
        let Object::Array(array) = self.file.object(&variable.node, variable.path.as_str())? else {
            return Err(Error::invalid(format!("{} is no array", variable.path)));
        };
        let mut dims = view.shape(variable);
        let own = variable.meta.space.dims();
        if self.format == Format::NetCdf4 && own.len() == dims.len() {
            // Along an unlimited dimension a variable may be shorter than others.
            dims = own.to_vec();
        }
        let max = variable.dimensions.iter().filter_map(|&d| view.dimensions().get(d));
        let max = max.map(|d| if d.unlimited { None } else { Some(d.length) }).collect();
        let mut notes = Vec::new();
        if array.meta().space.is_null() {
            notes.push("a scalar of the fill value, where there was no element at all".to_owned());
        }
        let space = match dims.is_empty() {
            true => Dataspace::Scalar,
            false => Dataspace::Simple { dims, max },
        };
        let axes = variable.dimensions.iter().map(|&d| dimension_path(view, d)).collect();
        let (mut spec, more) = self.spec(&array, &space, axes)?;
        notes.extend(more);
        // Of its elements, what netCDF takes them for.
        let mut dtype = spec.dtype.clone();
        if variable.meta.dtype.size() == dtype.size() && variable.meta.dtype.is_fixed() {
            dtype = variable.meta.dtype.clone();
        }
        if let (Type::User(place), Format::NetCdf4) = (variable.kind, self.format)
            && let Some(user) = view.types().get(place)
        {
            let wanted = worded(&user.dtype);
            if Fit::new(&spec.dtype, &wanted).is_ok() {
                dtype = wanted;
                spec.committed = type_path(view, place);
            }
            if user.invented {
                notes.push(format!("its type is called {}", user.name));
            }
        }
        if dtype != spec.dtype {
            if let FillSpec::Value(fill) = &spec.fill {
                spec.fill = FillSpec::Value(Fit::new(&spec.dtype, &dtype)?.run(fill.clone())?);
            }
            if array.dtype().is_fixed() && !matches!(variable.kind, Type::User(_)) {
                notes.push(format!("numbers of type {} as {dtype}", spec.dtype));
            }
            spec.dtype = dtype;
            if self.options.codecs.is_none() {
                notes.extend(fit_filters(&array, &mut spec, self.format));
            }
        }
        Ok((array, spec, (!notes.is_empty()).then(|| notes.join("; "))))
    }

    /// What netCDF does not show, object by object.
    fn unseen(&mut self) -> Result<()> {
        let own = |names: &[&str], name: &str| names.contains(&name);
        for entry in self.file.walk() {
            let path = entry.path.clone();
            if !self.wants(&path) {
                continue;
            }
            let told = self.told.contains(&path);
            let (what, outcome) = match &entry.item {
                Item::HardLink(first) if told => ("link", Outcome::Mapped(format!("a copy of {first}"))),
                Item::HardLink(first) => ("link", Outcome::Dropped(format!("another name of {first}"))),
                Item::SoftLink(target) if told => ("link", Outcome::Mapped(format!("a copy of {target}"))),
                _ if told && !matches!(entry.item, Item::Group(..) | Item::Object(..)) => continue,
                Item::SoftLink(target) => ("link", Outcome::Dropped(format!("a soft link to {target}"))),
                Item::ExternalLink(file, target) => {
                    ("link", Outcome::Dropped(format!("an external link to {target} in {file}")))
                }
                Item::UserLink(class, _) => ("link", Outcome::Dropped(format!("a link of class {class}"))),
                Item::Fault(_, e) => ("object", Outcome::Dropped(e.to_string())),
                Item::Group(..) | Item::Object(..) => {
                    let object = entry.open(self.file);
                    if !told {
                        let (what, outcome) = match &object {
                            Ok(Object::Array(array)) if self.is_only_dimension(array) => {
                                ("array", Outcome::Mapped("a dimension without a variable".into()))
                            }
                            Ok(Object::Array(_)) => {
                                ("array", Outcome::Dropped("no variable of netCDF".into()))
                            }
                            Ok(Object::Datatype(named)) => {
                                let why =
                                    format!("a named datatype {}, which netCDF does not know", named.dtype());
                                ("type", Outcome::Dropped(why))
                            }
                            Ok(Object::Group(_)) => ("group", Outcome::Dropped("no group of netCDF".into())),
                            Err(e) => ("object", Outcome::Dropped(e.to_string())),
                        };
                        let gone = matches!(outcome, Outcome::Dropped(_));
                        self.report.add(path.clone(), what, outcome);
                        if gone {
                            continue;
                        }
                    }
                    let entries = match &object {
                        Ok(Object::Array(array)) => array.attributes(),
                        Ok(Object::Group(group)) => group.attributes(),
                        _ => continue,
                    };
                    let is_scale = match &object {
                        Ok(Object::Array(array)) => self.class_is_scale(array),
                        _ => false,
                    };
                    for attribute in entries.iter().flatten().flatten() {
                        let name = attribute.name.to_string();
                        let at = format!("{path}:{name}");
                        if self.told.contains(&at) || !told && !own(&SCALES, &name) {
                            continue;
                        }
                        let plain =
                            matches!(name.as_str(), "CLASS" | "NAME") && !is_scale || name == "_nc3_strict";
                        if plain && self.format == Format::NetCdf4 {
                            // netCDF hides them, wherever they are; HDF5 knows them all the same.
                            self.attribute_of(&path, attribute, None, None);
                        } else if !plain && (own(&SCALES, &name) || own(&NAMES, &name)) {
                            let how = "netCDF's own words for dimensions and files".to_owned();
                            self.report.add(at, "attribute", Outcome::Mapped(how));
                        } else {
                            self.lost(at, "attribute", "no attribute of netCDF".into());
                        }
                    }
                    continue;
                }
            };
            self.report.add(path, what, outcome);
        }
        Ok(())
    }

    /// Whether a dataset stands for a dimension and nothing else.
    pub(super) fn is_only_dimension(&self, array: &Array) -> bool {
        let name = array.attribute("NAME");
        self.class_is_scale(array)
            && matches!(&name, Ok(v) if v.as_str().is_some_and(|n| n.starts_with(NO_VARIABLE)))
    }
}

/// The types that are parts of one, one step down.
fn parts(dtype: &DType) -> Vec<DType> {
    let item = |dtype: &DType| match dtype {
        DType::Array { base, .. } => (**base).clone(),
        other => other.clone(),
    };
    match dtype {
        DType::Compound { fields, .. } => fields.iter().map(|f| item(&f.dtype)).collect(),
        DType::VarLen { base, .. } => vec![item(base)],
        _ => Vec::new(),
    }
}
