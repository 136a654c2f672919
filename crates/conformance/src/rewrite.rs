//! A file written anew through a transaction, object by object: what a writer keeps is then for the reference libraries to
//! say.

use hyperslab::codec::Scratch;
use hyperslab::dtype::DType;
use hyperslab::model::write::{
    ArraySpec, AttributeSpec, Change, Content, EncodedChunk, FillSpec, FillTime, HierarchyWriter, LayoutSpec,
    LinkSpec, ObjectPath, WriteLayout,
};
use hyperslab::model::{
    ChunkGrid, ChunkRef, Dataspace, Elements, FillValue, Layout, LinkTarget, NodeId, NodeKind, Storage,
};
use hyperslab::shape::Coord;
use hyperslab::{Array, Error, File, Result};
use std::collections::HashMap;

/// Writes everything that is in `file` through `writer`, which is not committed. Gives what was left out, and why.
pub fn rewrite(file: &File, writer: &mut dyn HierarchyWriter) -> Result<Vec<String>> {
    let hierarchy = file.hierarchy().clone();
    // The first path on which each object is met.
    let mut known: HashMap<NodeId, ObjectPath> = HashMap::from([(hierarchy.root(), ObjectPath::root())]);
    let mut groups = vec![(hierarchy.root(), ObjectPath::root())];
    let mut objects = vec![(hierarchy.root(), ObjectPath::root())];
    let mut left_out = Vec::new();
    let (mut next, mut datasets, mut late) = (0, Vec::new(), Vec::new());
    while let Some((group, path)) = groups.get(next).cloned() {
        next += 1;
        let mut links = hierarchy.links(&group)?;
        if links.tracks_order {
            links.links.sort_by_key(|l| l.creation_order);
        } else {
            // A type is there before what is of it.
            let is_type = |node: &NodeId| hierarchy.kind(node).is_ok_and(|k| k == NodeKind::Datatype);
            links.links.sort_by_key(|l| !matches!(&l.target, LinkTarget::Hard(node) if is_type(node)));
        }
        for link in links.links {
            let here = path.join(link.name);
            match link.target {
                LinkTarget::Hard(node) => {
                    if let Some(there) = known.get(&node) {
                        let link = LinkSpec::Hard(there.clone());
                        writer.apply(Change::CreateLink { path: here, link })?;
                        continue;
                    }
                    let made = match hierarchy.kind(&node)? {
                        NodeKind::Group => {
                            groups.push((node.clone(), here.clone()));
                            writer.apply(Change::CreateGroup { path: here.clone() })
                        }
                        NodeKind::Datatype => {
                            let dtype = hierarchy.datatype(&node)?;
                            writer.apply(Change::CommitType { path: here.clone(), dtype })
                        }
                        NodeKind::Array => {
                            let (meta, _) = hierarchy.array(&node)?;
                            if meta.committed.as_ref().is_some_and(|n| !known.contains_key(n)) {
                                late.push((node, here));
                                continue;
                            }
                            let made = array(&*hierarchy, &node, &here, writer, &known);
                            if made.is_ok() {
                                datasets.push((node.clone(), here.clone()));
                            }
                            made
                        }
                    };
                    if let Err(e) = made {
                        left_out.push(format!("{here}: {e}"));
                        continue;
                    }
                    known.insert(node.clone(), here.clone());
                    objects.push((node, here));
                }
                LinkTarget::Soft(to) => {
                    writer.apply(Change::CreateLink { path: here, link: LinkSpec::Soft(to) })?;
                }
                LinkTarget::External { file, path } => {
                    let link = LinkSpec::External { file, path };
                    writer.apply(Change::CreateLink { path: here, link })?;
                }
                LinkTarget::UserDefined { class, .. } => {
                    left_out.push(format!("{here}: a link of class {class}"));
                }
            }
        }
    }
    // Of a type in a group that came later.
    for (node, here) in late {
        if let Some(there) = known.get(&node) {
            writer.apply(Change::CreateLink { path: here, link: LinkSpec::Hard(there.clone()) })?;
            continue;
        }
        match array(&*hierarchy, &node, &here, writer, &known) {
            Ok(()) => {
                datasets.push((node.clone(), here.clone()));
                known.insert(node.clone(), here.clone());
                objects.push((node, here));
            }
            Err(e) => left_out.push(format!("{here}: {e}")),
        }
    }
    let path_of = |node: &NodeId| known.get(node).cloned();
    for (node, path) in &objects {
        let object = file.object(node, path.to_string())?;
        for attribute in hierarchy.attributes(node)? {
            let attribute = attribute.map_err(|(_, e)| e)?;
            let done = content_of(&object, &attribute, &path_of).and_then(|content| {
                let attribute = AttributeSpec {
                    name: attribute.name.clone(),
                    dtype: attribute.dtype.clone(),
                    committed: attribute.committed.as_ref().and_then(&path_of),
                    space: attribute.space.clone(),
                    content,
                };
                writer.apply(Change::SetAttribute { object: path.clone(), attribute })
            });
            if let Err(e) = done {
                left_out.push(format!("{path}, attribute {}: {e}", attribute.name));
            }
        }
    }
    for (node, path) in datasets {
        let array = match file.object(&node, path.to_string())? {
            hyperslab::Object::Array(array) => array,
            _ => continue,
        };
        if let Err(e) = elements(&array, &path, writer, &path_of) {
            left_out.push(format!("{path}: {e}"));
        }
    }
    Ok(left_out)
}

/// Makes an array, without its elements.
fn array(
    hierarchy: &dyn hyperslab::model::Hierarchy,
    node: &NodeId,
    path: &ObjectPath,
    writer: &mut dyn HierarchyWriter,
    known: &HashMap<NodeId, ObjectPath>,
) -> Result<()> {
    let (meta, storage) = hierarchy.array(node)?;
    let mut spec = describe(&meta, &storage);
    spec.committed = meta.committed.as_ref().and_then(|n| known.get(n)).cloned();
    writer.apply(Change::CreateArray { path: path.clone(), spec: Box::new(spec) })
}

fn content_of(
    object: &hyperslab::Object,
    attribute: &hyperslab::model::Attribute,
    path_of: &dyn Fn(&NodeId) -> Option<ObjectPath>,
) -> Result<Content> {
    if attribute.dtype.is_fixed() {
        return Ok(Content::Fixed(attribute.data.clone()));
    }
    let count = attribute.data.len() / attribute.dtype.size();
    let (dtype, data) = (&attribute.dtype, attribute.data.clone());
    let elements = Elements::decode(object.hierarchy().as_ref(), dtype, data, count, 1 << 30)?;
    Content::of_elements(&attribute.dtype, &elements, path_of)
}

fn describe(meta: &hyperslab::model::ArrayMeta, storage: &Storage) -> ArraySpec {
    let mut spec = ArraySpec::new(meta.dtype.clone(), meta.space.clone());
    spec.layout = match (&meta.layout, &meta.grid, storage) {
        (Layout::Compact, ..) => LayoutSpec::Compact,
        (_, ChunkGrid::Regular(chunk), _) if !meta.space.is_null() => {
            LayoutSpec::Chunked { chunk: chunk.clone(), shard: None }
        }
        (_, _, Storage::Virtual(mappings)) => LayoutSpec::Virtual(mappings.to_vec()),
        _ => LayoutSpec::Contiguous,
    };
    spec.filters = meta.filters.clone();
    spec.fill = match &meta.fill {
        FillValue::Undefined => FillSpec::Undefined,
        FillValue::Value(bytes) if meta.dtype.is_fixed() => FillSpec::Value(Content::Fixed(bytes.clone())),
        _ => FillSpec::Default,
    };
    let note = meta.notes.iter().find(|(name, _)| *name == "fill time").map(|(_, text)| text.as_str());
    spec.fill_time = match note {
        Some("on allocation") => Some(FillTime::Allocation),
        Some("never") => Some(FillTime::Never),
        _ => Some(FillTime::IfSet),
    };
    if let (LayoutSpec::Contiguous | LayoutSpec::Compact, Dataspace::Simple { dims, max }) =
        (&spec.layout, &mut spec.space)
    {
        *max = dims.iter().map(|&d| Some(d)).collect();
    }
    spec
}

/// An object of nothing.
fn empty(dtype: &DType) -> Vec<u8> {
    match dtype {
        dtype if dtype.is_fixed() => vec![0; dtype.size()],
        DType::Compound { fields, .. } => fields.iter().flat_map(|f| empty(&f.dtype)).collect(),
        DType::Array { base, dims } => {
            let count = dims.iter().product::<u64>() as usize;
            (0..count).flat_map(|_| empty(base)).collect()
        }
        _ => vec![0; 8],
    }
}

fn elements(
    array: &Array,
    path: &ObjectPath,
    writer: &mut dyn HierarchyWriter,
    path_of: &dyn Fn(&NodeId) -> Option<ObjectPath>,
) -> Result<()> {
    let meta = array.meta();
    if meta.space.is_null() || matches!(array.storage(), Storage::Virtual(_)) || array.shape().contains(&0) {
        return Ok(());
    }
    let layout = writer.layout(path)?;
    if matches!(meta.grid, ChunkGrid::Regular(_)) && array.dtype().is_fixed() {
        // As they are stored.
        let mut chunks = Vec::new();
        let visit = &mut |coord: Coord, chunk: ChunkRef| {
            let ChunkRef::Range { source, offset, length, mask } = chunk else {
                return Err(Error::unsupported("a chunk that is not in the file"));
            };
            let mut bytes = vec![0; length as usize];
            source.read_into(offset, &mut bytes)?;
            chunks.push(EncodedChunk { coord, bytes: Some(bytes.into()), mask });
            Ok(())
        };
        let mut fault = None;
        array.chunks(visit, &mut |f| fault = Some(f.error))?;
        if let Some(e) = fault {
            return Err(e);
        }
        // Any order will do.
        chunks.reverse();
        return chunks.chunks(100).try_for_each(|some| writer.write_chunks(path, some.to_vec()));
    }
    let grid = layout.grid();
    let mut scratch = Scratch::default();
    for number in 0..layout.count()? {
        let mut coord: Coord = grid.as_slice().into();
        let mut rest = number;
        for c in coord.iter_mut().rev() {
            let extent = *c;
            *c = rest % extent;
            rest /= extent;
        }
        let bytes = chunk_bytes(array, &layout, &coord, path, writer, path_of)?;
        let mut encoded = Vec::new();
        let mask = match layout.pipeline.is_empty() {
            true => {
                encoded = bytes;
                0
            }
            false => layout.pipeline.encode(&bytes, &mut encoded, &mut scratch)?,
        };
        let chunk = EncodedChunk { coord, bytes: Some(encoded.into()), mask };
        writer.write_chunks(path, vec![chunk])?;
    }
    Ok(())
}

/// The elements of one chunk in front of the pipeline, filled up at the edge.
fn chunk_bytes(
    array: &Array,
    layout: &WriteLayout,
    coord: &[u64],
    path: &ObjectPath,
    writer: &mut dyn HierarchyWriter,
    path_of: &dyn Fn(&NodeId) -> Option<ObjectPath>,
) -> Result<Vec<u8>> {
    let (start, valid, extent) = (layout.start_of(coord), layout.valid_of(coord), layout.extent_of(coord));
    let text: Vec<String> = start.iter().zip(&valid).map(|(s, n)| format!("{s}:{}", s + n)).collect();
    let text = if text.is_empty() { "...".to_owned() } else { text.join(",") };
    if array.dtype().is_fixed() {
        // Whole pieces of what is not chunked, which are never filled up.
        return Ok(array.read_raw(text.as_str())?.bytes);
    }
    let (_, elements) = array.read_elements(text.as_str())?;
    let Content::Objects { elements, targets } = Content::of_elements(array.dtype(), &elements, path_of)?
    else {
        return Err(Error::invalid("objects wanted"));
    };
    let mut objects = Vec::new();
    let mut given = elements.into_iter();
    let count: u64 = extent.iter().product();
    for number in 0..count {
        let (mut rest, mut inside) = (number, true);
        for (&n, &v) in extent.iter().zip(&valid).rev() {
            inside &= rest % n < v;
            rest /= n;
        }
        let next = if inside { given.next() } else { None };
        objects.push(next.unwrap_or_else(|| empty(array.dtype()).into()));
    }
    Ok(writer.flatten(path, &Content::Objects { elements: objects, targets })?.to_vec())
}
