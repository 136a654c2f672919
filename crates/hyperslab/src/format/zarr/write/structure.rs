//! Structural changes.

use super::super::node::{NAMES, folder_of_document};
use super::array::ArrayState;
use super::node::{Node, set};
use super::notes::Notes;
use super::options::{Flavour, ZarrOptions};
use super::{ZarrWriter, attribute, chunk, document, is_below, key_of, nczarr};
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::json::{Json, to_base64};
use crate::model::write::{ArraySpec, AttributeSpec, Change, LinkSpec, ObjectPath, Support};
use crate::model::{Dimension, NodeKind};
use crate::shape::{Name, element_count};

/// What would become of a change.
pub(super) fn support(change: &Change, options: &ZarrOptions) -> Result<Support> {
    let judged = |result: Result<Notes>| match result {
        Ok(notes) => Ok(notes.support()),
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(Support::Dropped(e.message().to_owned())),
        Err(e) => Err(e),
    };
    let named = |path: &ObjectPath| judged(key_of(path).map(|_| Notes::default()));
    let nczarr = options.flavour == Flavour::NcZarr;
    match change {
        Change::CreateGroup { path }
        | Change::CopyObject { to: path, .. }
        | Change::Rename { to: path, .. } => named(path),
        Change::CreateArray { path, spec } => {
            judged(key_of(path).and_then(|_| Ok(document::array(spec, options)?.notes)))
        }
        Change::SetAttribute { attribute, .. } => {
            judged(spelled(attribute, options, None).map(|(_, notes)| notes))
        }
        Change::CreateDimension { dimension, .. } if dimension.unlimited && !nczarr => {
            Ok(Support::Mapped("a dimension that may grow, as all can".into()))
        }
        Change::CreateDimension { .. }
        | Change::DeleteAttribute { .. }
        | Change::Delete { .. }
        | Change::Resize { .. } => Ok(Support::Kept),
        Change::CommitType { .. } => Ok(Support::Dropped("named types in Zarr".into())),
        Change::CreateLink { link, .. } => Ok(Support::Dropped(no_link(link))),
        Change::Restack(_) => Ok(Support::Dropped("virtual datasets in Zarr".into())),
    }
}

fn no_link(link: &LinkSpec) -> String {
    match link {
        LinkSpec::Hard(_) => "a second name of an object in Zarr",
        LinkSpec::Soft(_) => "soft links in Zarr",
        LinkSpec::External { .. } => "external links in Zarr",
    }
    .into()
}

/// Makes a change.
pub(super) fn apply(writer: &mut ZarrWriter, change: Change) -> Result<()> {
    match change {
        Change::CreateGroup { path } => {
            let key = vacant(writer, &path)?;
            let mut group = Node::group(writer.options.version);
            if writer.is_nczarr() {
                group.words = Some(nczarr::Words::default());
            }
            insert(writer, key, group)
        }
        Change::CreateDimension { group, dimension } => create_dimension(writer, &group, dimension),
        Change::CreateArray { path, spec } => {
            create_array(writer, &path, &spec).context(|| format!("array {path}"))
        }
        Change::SetAttribute { object, attribute } => {
            let name = attribute.name.clone();
            set_attribute(writer, &object, &attribute).context(|| format!("attribute {name} of {object}"))
        }
        Change::DeleteAttribute { object, name } => {
            let node = writer.node(&key_of(&object)?)?;
            let before = node.attributes.len();
            node.attributes.retain(|(n, _)| n.as_bytes() != name.as_bytes());
            if node.attributes.len() == before {
                return Err(Error::new(ErrorKind::NotFound, format!("{object} has no attribute {name}")));
            }
            if let Some(words) = &mut node.words {
                words.types.retain(|(n, _)| n.as_bytes() != name.as_bytes());
            }
            node.changed = true;
            Ok(())
        }
        Change::CommitType { .. } => Err(Error::unsupported("named types in Zarr")),
        Change::CreateLink { link, .. } => Err(Error::unsupported(no_link(&link))),
        Change::Delete { path } => {
            let key = key_of(&path)?;
            if path.is_root() {
                return Err(Error::invalid("the root cannot be removed"));
            }
            writer.node(&key)?;
            remove(writer, &key)
        }
        Change::Rename { from, to } => move_object(writer, &from, &to, true),
        Change::CopyObject { from, to } => move_object(writer, &from, &to, false),
        Change::Resize { array, shape } => {
            resize(writer, &key_of(&array)?, &shape).context(|| format!("array {array}"))
        }
        Change::Restack(_) => Err(Error::unsupported("virtual datasets in Zarr")),
    }
}

/// The key of a path at which there is nothing, in a group that is there.
fn vacant(writer: &mut ZarrWriter, path: &ObjectPath) -> Result<String> {
    let key = key_of(path)?;
    let Some((parent, _)) = path.split() else {
        return Err(Error::new(ErrorKind::AlreadyExists, "the root is there from the start"));
    };
    let group = writer.node(&key_of(&parent)?)?;
    if group.kind != NodeKind::Group {
        return Err(Error::invalid(format!("{parent} is no group")));
    }
    if writer.find(&key)?.is_some() {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("{path} is there already")));
    }
    Ok(key)
}

/// Puts a new node at its place, and its name among those of its group.
fn insert(writer: &mut ZarrWriter, key: String, new: Node) -> Result<()> {
    let (parent, name) = key.rsplit_once('/').unwrap_or(("", &key));
    let (parent, name, kind) = (parent.to_owned(), name.to_owned(), new.kind);
    let version = writer.options.version;
    let group = writer.node(&parent)?;
    if let Some(words) = &mut group.words {
        if kind == NodeKind::Array {
            words.arrays.push(name)
        } else {
            words.groups.push(name)
        }
        group.changed = true;
    }
    if group.version != version && new.version == version {
        return Err(Error::invalid("groups of version 2 and 3 in one hierarchy"));
    }
    writer.nodes.insert(key, Some(new));
    Ok(())
}

fn create_dimension(writer: &mut ZarrWriter, group: &ObjectPath, dimension: Dimension) -> Result<()> {
    let path = group.join(dimension.name.clone());
    let exists = || Error::new(ErrorKind::AlreadyExists, format!("the dimension {path} is there already"));
    let node = writer.node(&key_of(group)?)?;
    if node.kind != NodeKind::Group {
        return Err(Error::invalid(format!("{group} is no group")));
    }
    match &mut node.words {
        Some(words) => {
            if dimension.name.as_str().is_none_or(|name| name.is_empty() || name.contains('/')) {
                return Err(Error::unsupported(format_args!("the name {} of a dimension", dimension.name)));
            }
            if words.dimensions.iter().any(|d| d.name == dimension.name) {
                return Err(exists());
            }
            words.dimensions.push(dimension);
            node.changed = true;
        }
        None => {
            if writer.dimensions.contains_key(&path) {
                return Err(exists());
            }
            writer.dimensions.insert(path, dimension);
        }
    }
    Ok(())
}

fn create_array(writer: &mut ZarrWriter, path: &ObjectPath, spec: &ArraySpec) -> Result<()> {
    let key = vacant(writer, path)?;
    let described = document::array(spec, &writer.options)?;
    let mut new = Node::new(NodeKind::Array, writer.options.version, described.metadata);
    let dims = spec.space.dims();
    if !spec.dimensions.is_empty() && spec.dimensions.len() != dims.len() {
        let text = format!("{} dimensions of an array of {} axes", spec.dimensions.len(), dims.len());
        return Err(Error::invalid(text));
    }
    if writer.is_nczarr() {
        let mut references = Vec::new();
        let mut names = Vec::new();
        for (axis, &length) in dims.iter().enumerate() {
            let dimension = match spec.dimensions.get(axis).cloned().flatten() {
                Some(path) => {
                    fits(writer, &path, length)?;
                    path
                }
                None => anonymous(writer, length)?,
            };
            names.push(Json::Text(dimension.names().last().map(Name::to_string).unwrap_or_default()));
            references.push(dimension.to_string());
        }
        if described.scalar {
            names.push(Json::Text("_scalar_".into()));
        }
        new.attributes.push(("_ARRAY_DIMENSIONS".into(), Json::List(names)));
        new.words = Some(nczarr::Words { references, scalar: described.scalar, ..Default::default() });
    } else {
        for (path, &length) in spec.dimensions.iter().zip(dims) {
            if let Some(declared) = path.as_ref().and_then(|path| writer.dimensions.get(path))
                && declared.length != length
                && !declared.unlimited
            {
                let text =
                    format!("an axis of {length} for the dimension {} of {}", declared.name, declared.length);
                return Err(Error::invalid(text));
            }
        }
        match (described.dimensions, writer.options.version) {
            (Some(names), 3) => new.metadata.push(("dimension_names".into(), Json::List(names))),
            // A name for each axis, or none at all.
            (Some(names), _) if !names.iter().any(Json::is_null) => {
                new.attributes.push(("_ARRAY_DIMENSIONS".into(), Json::List(names)));
            }
            // xarray opens no array without.
            (None, 2) if dims.is_empty() => {
                new.attributes.push(("_ARRAY_DIMENSIONS".into(), Json::List(Vec::new())));
            }
            _ => {}
        }
    }
    // What somebody left there would be read as chunks.
    if !writer.stage.is_new() {
        for left in writer.stage.list(&key)? {
            writer.stage.remove(&left)?;
        }
    }
    // What was written must be what is read.
    let state = ArrayState::new(&new, writer.by_netcdf, &writer.options)?;
    element_count(&state.layout.grid())?;
    insert(writer, key.clone(), new)?;
    writer.arrays.insert(key, std::sync::Arc::new(state));
    Ok(())
}

/// The node and place of a dimension that NCZarr keeps.
fn dimension_mut<'a>(writer: &'a mut ZarrWriter, path: &ObjectPath) -> Result<(&'a mut Node, usize)> {
    let missing = || Error::new(ErrorKind::NotFound, format!("there is no dimension {path}"));
    let (group, name) = path.split().ok_or_else(missing)?;
    let node = writer.node(&key_of(&group)?)?;
    let at = node.words.as_ref().and_then(|w| w.dimensions.iter().position(|d| d.name == *name));
    let at = at.ok_or_else(missing)?;
    Ok((node, at))
}

/// Checks that an axis is as long as its dimension; makes one longer that may grow.
fn fits(writer: &mut ZarrWriter, path: &ObjectPath, length: u64) -> Result<()> {
    let (node, at) = dimension_mut(writer, path)?;
    let Some(dimension) = node.words.as_mut().and_then(|w| w.dimensions.get_mut(at)) else { return Ok(()) };
    if dimension.length != length {
        let text = format!("an axis of {length} for the dimension {path} of {}", dimension.length);
        return Err(Error::invalid(text).hint("all arrays that share a dimension have its length in NCZarr"));
    }
    Ok(())
}

/// A dimension without a name, of the root.
fn anonymous(writer: &mut ZarrWriter, length: u64) -> Result<ObjectPath> {
    let name = Name::from(format!("_Anonymous_Dim_{length}").as_str());
    let root = writer.node("")?;
    if let Some(words) = &mut root.words
        && !words.dimensions.iter().any(|d| d.name == name)
    {
        words.dimensions.push(Dimension { name: name.clone(), length, unlimited: false });
        root.changed = true;
    }
    Ok(ObjectPath::root().join(name))
}

/// An attribute as JSON. `dtype`: of the array that it is of, if it is of one.
fn spelled(spec: &AttributeSpec, options: &ZarrOptions, dtype: Option<&DType>) -> Result<(Json, Notes)> {
    let mut notes = Notes::default();
    if spec.name.as_str().is_none() {
        return Err(Error::unsupported(format_args!("the name {} of an attribute in Zarr", spec.name)));
    }
    let nczarr = options.flavour == Flavour::NcZarr;
    let mut value = attribute::value(spec, nczarr, &mut notes)?;
    if nczarr {
        if attribute::nczarr_type(spec).is_none() {
            return Err(Error::unsupported(format_args!("attributes of type {} in NCZarr", spec.dtype)));
        }
        // Its type is recorded.
        notes = Notes::default();
    } else if options.version == 3 && spec.name.as_bytes() == b"_FillValue" {
        value = fill_attribute(value, dtype);
    }
    Ok((value, notes))
}

/// xarray spells the fill value of floats in version 3 as the eight bytes of a double in base 64.
fn fill_attribute(value: Json, dtype: Option<&DType>) -> Json {
    if !matches!(dtype, Some(DType::Float(_))) {
        return value;
    }
    let one = match &value {
        Json::List(items) if items.len() == 1 => items.first(),
        other => Some(other),
    };
    let number = match one {
        Some(Json::Text(word)) => match word.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        other => other.and_then(Json::as_f64),
    };
    number.map_or(value.clone(), |v| Json::Text(to_base64(&v.to_le_bytes())))
}

fn set_attribute(writer: &mut ZarrWriter, object: &ObjectPath, spec: &AttributeSpec) -> Result<()> {
    let key = key_of(object)?;
    let is_array = writer.node(&key)?.kind == NodeKind::Array;
    let dtype = if is_array { Some(writer.array(&key)?.layout.dtype.clone()) } else { None };
    let (value, _) = spelled(spec, &writer.options, dtype.as_ref())?;
    let name = spec.name.to_string();
    let nczarr = writer.is_nczarr();
    if nczarr && (nczarr::is_reserved(&name) || name == "_ARRAY_DIMENSIONS") {
        return Err(Error::invalid(format!("{name} is what NCZarr itself keeps")));
    }
    let node = writer.node(&key)?;
    let value = match value {
        // A truth value is a byte there.
        Json::Bool(v) if nczarr => Json::Integer(v.into()),
        other => other,
    };
    // In front of the names of dimensions, which come last.
    let at =
        node.attributes.iter().position(|(n, _)| n == "_ARRAY_DIMENSIONS").unwrap_or(node.attributes.len());
    match node.attributes.iter_mut().find(|(n, _)| *n == name) {
        Some((_, old)) => *old = value,
        None => node.attributes.insert(at, (name.clone(), value)),
    }
    if let (Some(words), Some(code)) = (&mut node.words, attribute::nczarr_type(spec)) {
        words.set_type(&name, &code);
    }
    node.changed = true;
    Ok(())
}

/// Removes a node and all below it.
fn remove(writer: &mut ZarrWriter, key: &str) -> Result<()> {
    for object in writer.stage.list(key)? {
        if let Some(folder) = folder_of_document(&object).filter(|f| *f == key || is_below(f, key)) {
            writer.nodes.insert(folder.to_owned(), None);
        }
        writer.stage.remove(&object)?;
    }
    let gone: Vec<String> = writer.nodes.keys().filter(|p| *p == key || is_below(p, key)).cloned().collect();
    for path in gone {
        writer.shards.forget(&path);
        writer.arrays.remove(&path);
        writer.nodes.insert(path, None);
    }
    let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
    let group = writer.node(parent)?;
    if let Some(words) = &mut group.words {
        words.arrays.retain(|n| n != name);
        words.groups.retain(|n| n != name);
        group.changed = true;
    }
    Ok(())
}

fn move_object(writer: &mut ZarrWriter, from: &ObjectPath, to: &ObjectPath, is_rename: bool) -> Result<()> {
    if from.is_root() || to.below(from).is_some() {
        return Err(Error::invalid(format!("{from} cannot go to {to}, which is in it")));
    }
    let source = key_of(from)?;
    if writer.find(&source)?.is_none() {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no object {from}")));
    }
    let target = vacant(writer, to)?;
    chunk::flush(writer, None)?;
    // Documents that are not written yet go with it.
    let mut keys = writer.stage.list(&source)?;
    keys.retain(|key| !key.rsplit('/').next().is_some_and(|name| NAMES.contains(&name)));
    let mut paths: Vec<String> = vec![source.clone()];
    for object in writer.stage.list(&source)? {
        paths.extend(folder_of_document(&object).filter(|f| is_below(f, &source)).map(str::to_owned));
    }
    paths.extend(writer.nodes.keys().filter(|p| is_below(p, &source)).cloned());
    paths.sort();
    paths.dedup();
    let moved = |key: &str| format!("{target}{}", key.get(source.len()..).unwrap_or(""));
    for path in paths {
        let Some(node) = writer.find(&path)?.cloned() else { continue };
        let mut node = Node { changed: true, ..node };
        if let Some(words) = &mut node.words {
            // Dimensions that go with a group are found at another path.
            let prefix = format!("/{source}/");
            for reference in &mut words.references {
                if let Some(rest) = reference.strip_prefix(&prefix) {
                    *reference = format!("/{target}/{rest}");
                }
            }
        }
        let at = moved(&path);
        if path == source {
            insert(writer, at, node)?
        } else {
            drop(writer.nodes.insert(at, Some(node)))
        };
    }
    for key in keys {
        if let Some(bytes) = writer.stage.get(&key)? {
            writer.stage.put(&moved(&key), bytes)?;
        }
    }
    if is_rename { remove(writer, &source) } else { Ok(()) }
}

fn resize(writer: &mut ZarrWriter, key: &str, shape: &[u64]) -> Result<()> {
    let node = writer.node(key)?;
    if node.kind != NodeKind::Array {
        return Err(Error::invalid("only arrays have extents"));
    }
    let words = node.words.clone();
    let state = writer.array(key)?;
    let old = state.layout.shape.clone();
    if shape.len() != old.len() || words.as_ref().is_some_and(|w| w.scalar) {
        return Err(Error::invalid(format!("extents {shape:?} for an array of {old:?}")));
    }
    element_count(shape)?;
    let Some(words) = words.filter(|_| writer.is_nczarr()) else {
        return resize_one(writer, key, &state, shape);
    };
    // All arrays that share a dimension have its length.
    for (axis, reference) in words.references.iter().enumerate() {
        let (Some(&length), Some(&before)) = (shape.get(axis), old.get(axis)) else { continue };
        if length == before {
            continue;
        }
        let path = ObjectPath::parse(reference)?;
        let (node, at) = dimension_mut(writer, &path)?;
        if let Some(dimension) = node.words.as_mut().and_then(|w| w.dimensions.get_mut(at)) {
            if !dimension.unlimited {
                return Err(Error::invalid(format!("the dimension {path} is not unlimited")));
            }
            dimension.length = length;
            node.changed = true;
        }
        for other in arrays_below(writer, &path)? {
            let Some(sharing) = writer.node(&other)?.words.clone() else { continue };
            let state = writer.array(&other)?;
            let mut extents = state.layout.shape.clone();
            for (slot, used) in extents.iter_mut().zip(&sharing.references) {
                if used == reference {
                    *slot = length;
                }
            }
            resize_one(writer, &other, &state, &extents)?;
        }
    }
    Ok(())
}

/// The arrays that can see a dimension.
fn arrays_below(writer: &mut ZarrWriter, dimension: &ObjectPath) -> Result<Vec<String>> {
    let (group, _) = dimension.split().ok_or_else(|| Error::invalid("a dimension without a name"))?;
    let group = key_of(&group)?;
    let mut paths: Vec<String> = writer.nodes.keys().filter(|p| is_below(p, &group)).cloned().collect();
    for key in writer.stage.list(&group)? {
        paths.extend(folder_of_document(&key).filter(|f| is_below(f, &group)).map(str::to_owned));
    }
    paths.sort();
    paths.dedup();
    let mut arrays = Vec::new();
    for path in paths {
        if writer.find(&path)?.is_some_and(|node| node.kind == NodeKind::Array) {
            arrays.push(path);
        }
    }
    Ok(arrays)
}

fn resize_one(writer: &mut ZarrWriter, key: &str, state: &ArrayState, shape: &[u64]) -> Result<()> {
    if shape == state.layout.shape {
        return Ok(());
    }
    chunk::flush(writer, Some(key))?;
    chunk::trim(writer, key, state, shape)?;
    let extents = Json::List(shape.iter().map(|&n| Json::Integer(n.into())).collect());
    let node = writer.node(key)?;
    set(&mut node.metadata, "shape", extents);
    node.changed = true;
    writer.arrays.remove(key);
    Ok(())
}
