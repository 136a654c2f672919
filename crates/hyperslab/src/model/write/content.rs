//! Elements with everything that they point to, which mean the same in every format.

use super::ObjectPath;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Column, Elements, NodeId, Reference, RegionSelection};
use crate::shape::{Name, element_count};
use bytes::Bytes;

/// What a reference points to, by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The object.
    pub path: ObjectPath,
    /// Which part of it.
    pub part: TargetPart,
}

/// The part of an object that a reference points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPart {
    /// All of it.
    Object,
    /// Some elements of an array.
    Region(RegionSelection),
    /// An attribute.
    Attribute(Name),
}

/// Elements in C order, with everything that they point to.
///
/// An element of which some part is of variable length, or a reference, is an *object*: bytes that need no heap.
/// A text is its length, eight bytes little-endian, and its bytes; a sequence the number of its items and the items; a
/// reference eight bytes little-endian, 0 for none or else 1 + its place in `targets`; every other part is as stored;
/// members of a compound stand one after the other without paddings, as do items of an array. A text that is
/// none has the length [`Content::NONE`] and no bytes; where there is no such thing it is an empty one.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Elements of a fixed type as stored, one after the other.
    Fixed(Bytes),
    /// Objects.
    Objects {
        /// One for each element.
        elements: Vec<Bytes>,
        /// What references in them point to.
        targets: Vec<Target>,
    },
}

impl Content {
    /// The length of a text that is none: a pointer to nothing in HDF5, `NIL` in CDL.
    pub const NONE: u64 = u64::MAX;

    /// Elements that were read with everything that they point to. `path_of` gives the path of an object that a reference
    /// points to. Fails with [`ErrorKind::Unsupported`] for a reference to what has no path.
    pub fn of_elements(
        dtype: &DType,
        elements: &Elements,
        path_of: &dyn Fn(&NodeId) -> Option<ObjectPath>,
    ) -> Result<Content> {
        let mut lost = Losses::default();
        let content = Content::of_elements_in(dtype, elements, path_of, &mut lost)?;
        match lost.first {
            None => Ok(content),
            Some(e) => Err(e),
        }
    }

    /// The same for whoever can do without some references: those that are broken, and those to objects without a path,
    /// lead to nothing, and are counted.
    pub fn of_elements_in(
        dtype: &DType,
        elements: &Elements,
        path_of: &dyn Fn(&NodeId) -> Option<ObjectPath>,
        lost: &mut Losses,
    ) -> Result<Content> {
        if dtype.is_fixed() {
            if let Column::Fixed(column) = elements.column() {
                return Ok(Content::Fixed(Bytes::copy_from_slice(column.stored(0, elements.count()))));
            }
            return Err(Error::invalid(format!("elements of {dtype} that are not fixed")));
        }
        let mut encoder = Encoder { path_of, targets: Vec::new(), lost };
        let mut objects = Vec::with_capacity(elements.count().min(1 << 20));
        let mut bytes = Vec::new();
        for i in 0..elements.count() {
            bytes.clear();
            encoder.element(elements.column(), i, &mut bytes)?;
            objects.push(Bytes::copy_from_slice(&bytes));
        }
        Ok(Content::Objects { elements: objects, targets: encoder.targets })
    }

    /// One element that is a text.
    pub fn text(text: &[u8]) -> Content {
        Content::Objects { elements: vec![text_object(text)], targets: Vec::new() }
    }

    /// Texts of variable length.
    pub fn texts<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Content {
        Content::Objects { elements: texts.into_iter().map(text_object).collect(), targets: Vec::new() }
    }

    /// The object that stands for an element that nobody has written: empty texts and sequences, zeros, references to
    /// nothing.
    pub fn blank(dtype: &DType) -> Result<Bytes> {
        let mut out = Vec::new();
        blank_into(dtype, &mut out, 0)?;
        Ok(out.into())
    }

    /// Number of elements, of which each takes `size` bytes as stored if they are fixed.
    pub fn count(&self, size: usize) -> usize {
        match self {
            Content::Fixed(bytes) => bytes.len() / size.max(1),
            Content::Objects { elements, .. } => elements.len(),
        }
    }

    /// Fails unless these are `count` elements of `dtype`.
    pub fn check(&self, dtype: &DType, count: u64) -> Result<()> {
        let fits = match self {
            Content::Fixed(bytes) => {
                dtype.is_fixed() && count.checked_mul(dtype.size() as u64) == Some(bytes.len() as u64)
            }
            Content::Objects { elements, .. } => !dtype.is_fixed() && elements.len() as u64 == count,
        };
        if fits {
            return Ok(());
        }
        Err(Error::invalid(format!("content that is not {count} elements of {dtype}")))
    }
}

/// Types do not nest deeper.
const MAX_DEPTH: u32 = 128;

fn blank_into(dtype: &DType, out: &mut Vec<u8>, depth: u32) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting of datatypes", depth.into(), MAX_DEPTH.into()));
    }
    match dtype {
        DType::VarString { .. } | DType::VarLen { .. } | DType::Reference { .. } => {
            out.extend_from_slice(&[0; 8]);
        }
        DType::Compound { fields, .. } if !dtype.is_fixed() => {
            fields.iter().try_for_each(|f| blank_into(&f.dtype, out, depth + 1))?;
        }
        DType::Array { base, dims } if !dtype.is_fixed() => {
            (0..element_count(dims)?).try_for_each(|_| blank_into(base, out, depth + 1))?;
        }
        fixed => out.resize(out.len().saturating_add(fixed.size()), 0),
    }
    Ok(())
}

fn text_object(text: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(8 + text.len());
    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text);
    bytes.into()
}

/// References that lead nowhere in a copy.
#[derive(Debug, Default)]
pub struct Losses {
    /// How many could not be read, or led to nothing.
    pub broken: u64,
    /// How many led to objects that have no path.
    pub homeless: u64,
    /// What was wrong with the first one.
    first: Option<Error>,
}

struct Encoder<'a> {
    path_of: &'a dyn Fn(&NodeId) -> Option<ObjectPath>,
    targets: Vec<Target>,
    lost: &'a mut Losses,
}

impl Encoder<'_> {
    fn element(&mut self, column: &Column, i: usize, out: &mut Vec<u8>) -> Result<()> {
        let missing = || Error::new(ErrorKind::OutOfBounds, format!("there is no element {i}"));
        match column {
            Column::Fixed(fixed) => out.extend_from_slice(fixed.stored(i, i.saturating_add(1))),
            Column::Text(texts) => {
                let text = texts.get(i).ok_or_else(missing)?.as_deref();
                let length = text.map_or(Content::NONE, |text| text.len() as u64);
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(text.unwrap_or(&[]));
            }
            Column::Sequence { starts, items } => {
                let Some(&[from, to]) = starts.get(i..i.saturating_add(2)) else { return Err(missing()) };
                out.extend_from_slice(&(to.saturating_sub(from) as u64).to_le_bytes());
                (from..to).try_for_each(|item| self.element(items, item, out))?;
            }
            Column::Compound { columns, .. } => columns.iter().try_for_each(|c| self.element(c, i, out))?,
            Column::Array { count, items, .. } => {
                let from = i.saturating_mul(*count);
                (from..from.saturating_add(*count)).try_for_each(|item| self.element(items, item, out))?;
            }
            Column::Reference(references) => {
                let number = match references.get(i).ok_or_else(missing)? {
                    Ok(Reference::Null) => 0,
                    Ok(reference) => match self.target(reference) {
                        Ok(target) => {
                            self.targets.push(target);
                            self.targets.len() as u64
                        }
                        Err(e) => {
                            self.lost.homeless += 1;
                            self.lost.first.get_or_insert(e);
                            0
                        }
                    },
                    Err(e) => {
                        let text = format_args!("writing a broken reference ({e})");
                        self.lost.broken += 1;
                        self.lost.first.get_or_insert(Error::unsupported(text));
                        0
                    }
                };
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        Ok(())
    }

    fn target(&self, reference: &Reference) -> Result<Target> {
        let (node, part) = match reference {
            Reference::Null => return Err(Error::invalid("a reference to nothing has no target")),
            Reference::Object(node) => (node, TargetPart::Object),
            Reference::Region(node, region) => (node, TargetPart::Region(region.clone())),
            Reference::Attribute(node, name) => (node, TargetPart::Attribute(name.clone())),
        };
        let path = (self.path_of)(node).ok_or_else(|| {
            Error::unsupported(format_args!("writing a reference to {node}, which has no path"))
        })?;
        Ok(Target { path, part })
    }
}
