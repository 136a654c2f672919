//! Elements of any type, taken apart into columns.

use super::fixed::text;
use super::{Decoder, Value};
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Budget;
use crate::model::{HeapRef, Hierarchy, Reference};
use crate::shape::{Name, to_usize};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// Elements with everything that they point to.
#[derive(Debug)]
pub struct Elements {
    count: usize,
    heap_bytes: u64,
    column: Column,
}

/// One part of every element.
#[derive(Debug)]
#[non_exhaustive]
pub enum Column {
    /// Parts of a fixed type, as stored, one after the other.
    Fixed(FixedColumn),
    /// Variable-length strings up to their first NUL; `None` where nothing is stored.
    Text(Vec<Option<Bytes>>),
    /// Sequences: those of element *i* are `starts[i]..starts[i + 1]` of `items`.
    Sequence {
        /// Where each sequence starts, and where the last one ends.
        starts: Vec<usize>,
        /// The items of all sequences.
        items: Box<Column>,
    },
    /// Compounds: a column for each member.
    Compound {
        /// Names of the members.
        names: Arc<[Name]>,
        /// Their columns.
        columns: Vec<Column>,
    },
    /// Arrays of `count` items each.
    Array {
        /// Extents of one.
        dims: Vec<u64>,
        /// Items in one.
        count: usize,
        /// The items of all arrays.
        items: Box<Column>,
    },
    /// References, each resolved or with the reason why not.
    Reference(Vec<Result<Reference>>),
}

/// A column of a fixed type.
#[derive(Debug)]
pub struct FixedColumn {
    dtype: DType,
    size: usize,
    stored: Bytes,
    decoder: Decoder,
}

impl FixedColumn {
    /// The type.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// The stored bytes of elements `from..to`.
    pub fn stored(&self, from: usize, to: usize) -> &[u8] {
        let at = |i: usize| i.saturating_mul(self.size).min(self.stored.len());
        self.stored.get(at(from)..at(to)).unwrap_or(&[])
    }
}

impl Elements {
    /// Takes `count` stored elements of type `dtype` apart. Variable-length data is read in batches, and all of it
    /// together takes at most `limit` bytes.
    pub fn decode(
        hierarchy: &dyn Hierarchy,
        dtype: &DType,
        stored: Bytes,
        count: usize,
        limit: u64,
    ) -> Result<Elements> {
        let budget = Budget::new("variable-length data in bytes", limit);
        let decode = Decode { hierarchy, budget };
        let column = decode.column(dtype, stored, count, 0)?;
        Ok(Elements { count, heap_bytes: decode.budget.used(), column })
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of variable-length data that they point to, as often as they do.
    pub fn heap_bytes(&self) -> u64 {
        self.heap_bytes
    }

    /// The column of whole elements.
    pub fn column(&self) -> &Column {
        &self.column
    }

    /// Element `index` as a value.
    pub fn value(&self, index: usize) -> Result<Value> {
        self.column.value(index)
    }

    /// All elements as values, in C order.
    pub fn values(&self) -> Result<Vec<Value>> {
        (0..self.count).map(|i| self.column.value(i)).collect()
    }
}

impl Column {
    /// Part `index` as a value.
    pub fn value(&self, index: usize) -> Result<Value> {
        let missing = || Error::new(ErrorKind::OutOfBounds, format!("there is no element {index}"));
        Ok(match self {
            Column::Fixed(column) => column.decoder.value(column.stored(index, index + 1))?,
            Column::Text(texts) => match texts.get(index).ok_or_else(missing)? {
                Some(bytes) => text(bytes),
                None => Value::Null,
            },
            Column::Sequence { starts, items } => match starts.get(index..index + 2) {
                Some(&[from, to]) => Value::List((from..to).map(|i| items.value(i)).collect::<Result<_>>()?),
                _ => return Err(missing()),
            },
            Column::Compound { names, columns } => {
                Value::Compound(names.clone(), columns.iter().map(|c| c.value(index)).collect::<Result<_>>()?)
            }
            Column::Array { dims, count, items } => {
                let from = index.saturating_mul(*count);
                let flat = (from..from.saturating_add(*count)).map(|i| items.value(i));
                Value::nest(dims, flat.collect::<Result<_>>()?)
            }
            Column::Reference(references) => match references.get(index).ok_or_else(missing)? {
                Ok(Reference::Null) => Value::Null,
                Ok(reference) => Value::Reference(Box::new(reference.clone())),
                Err(e) => Value::Broken(e.to_string()),
            },
        })
    }
}

struct Decode<'a> {
    hierarchy: &'a dyn Hierarchy,
    budget: Budget,
}

/// What each variable-length element says about itself.
struct Pointers {
    /// Count of items and place in `objects`, for each element.
    elements: Vec<Option<(u64, usize)>>,
    /// The bytes of each distinct heap object.
    objects: Vec<Bytes>,
}

impl Decode<'_> {
    fn column(&self, dtype: &DType, stored: Bytes, count: usize, depth: u32) -> Result<Column> {
        if depth > 256 {
            return Err(Error::limit("nesting of datatypes", depth.into(), 256));
        }
        let size = dtype.size();
        let wanted = size.checked_mul(count);
        if wanted.is_none_or(|wanted| wanted > stored.len()) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("{count} elements of {size} bytes wanted, {} bytes there", stored.len()),
            ));
        }
        if dtype.is_fixed() {
            let decoder = Decoder::new(dtype)?;
            return Ok(Column::Fixed(FixedColumn { dtype: dtype.clone(), size, stored, decoder }));
        }
        let elements = || stored.chunks_exact(size.max(1)).take(count);
        match dtype {
            DType::VarString { .. } => {
                let pointers = self.follow(elements())?;
                Ok(Column::Text(
                    pointers.elements.iter().map(|p| self.string(*p, &pointers.objects)).collect(),
                ))
            }
            DType::VarLen { base, .. } => {
                let pointers = self.follow(elements())?;
                let (starts, bytes) = self.sequences(&pointers, base.size())?;
                let items = starts.last().copied().unwrap_or(0);
                let items = Box::new(self.column(base, bytes.into(), items, depth + 1)?);
                Ok(Column::Sequence { starts, items })
            }
            DType::Compound { fields, .. } => {
                let columns = fields.iter().map(|field| {
                    let part = self.gather(&stored, size, count, field.offset, field.dtype.size())?;
                    self.column(&field.dtype, part, count, depth + 1)
                        .context(|| format!("member {}", field.name))
                });
                Ok(Column::Compound {
                    names: fields.iter().map(|f| f.name.clone()).collect(),
                    columns: columns.collect::<Result<_>>()?,
                })
            }
            DType::Array { base, dims } => {
                let one = to_usize(crate::shape::element_count(dims)?)?;
                let all = one.checked_mul(count).ok_or_else(|| {
                    Error::new(ErrorKind::LimitExceeded, "arrays of more elements than fit into memory")
                })?;
                let items = Box::new(self.column(base, stored.clone(), all, depth + 1)?);
                Ok(Column::Array { dims: dims.clone(), count: one, items })
            }
            DType::Reference { kind, .. } => {
                Ok(Column::Reference(elements().map(|e| self.hierarchy.reference(*kind, e)).collect()))
            }
            other => Err(Error::unsupported(format!("elements of type {other}"))),
        }
    }

    /// Reads all heap objects that `elements` point to in one batch, each distinct one once.
    fn follow<'e>(&self, elements: impl Iterator<Item = &'e [u8]>) -> Result<Pointers> {
        let mut known: HashMap<HeapRef, usize> = HashMap::new();
        let mut refs = Vec::new();
        let mut pointers = Vec::new();
        for element in elements {
            pointers.push(match self.hierarchy.heap_ref(element)? {
                // An empty one needs no look at the heap.
                Some((0, _)) => Some((0, usize::MAX)),
                Some((count, heap)) => {
                    let place = *known.entry(heap).or_insert_with(|| {
                        refs.push(heap);
                        refs.len() - 1
                    });
                    Some((count, place))
                }
                None => None,
            });
        }
        let objects = if refs.is_empty() { Vec::new() } else { self.hierarchy.heap_objects(&refs)? };
        if objects.len() != refs.len() {
            return Err(Error::new(ErrorKind::Io, "not all heap objects were answered"));
        }
        objects.iter().try_for_each(|o| self.budget.charge(o.len() as u64))?;
        Ok(Pointers { elements: pointers, objects })
    }

    /// One string: at most its stored length, up to the first NUL.
    fn string(&self, pointer: Option<(u64, usize)>, objects: &[Bytes]) -> Option<Bytes> {
        let (count, place) = pointer?;
        if count == 0 {
            return Some(Bytes::new());
        }
        if count == HeapRef::WHOLE {
            return objects.get(place).cloned();
        }
        let object = objects.get(place).filter(|o| !o.is_empty())?;
        let length = usize::try_from(count).unwrap_or(usize::MAX).min(object.len());
        let end = object.iter().take(length).position(|&b| b == 0).unwrap_or(length);
        Some(object.slice(..end))
    }

    /// The items of all sequences, one after the other, and where each sequence starts.
    fn sequences(&self, pointers: &Pointers, size: usize) -> Result<(Vec<usize>, Vec<u8>)> {
        let mut starts = Vec::with_capacity(pointers.elements.len() + 1);
        let (mut total, mut bytes) = (0usize, Vec::new());
        for pointer in &pointers.elements {
            starts.push(total);
            let Some((count, place)) = *pointer else { continue };
            let object = pointers.objects.get(place).map(Bytes::as_ref).unwrap_or(&[]);
            if object.is_empty() {
                continue;
            }
            let items = match count {
                HeapRef::WHOLE => object.len() / size.max(1),
                count => to_usize(count)?,
            };
            let part = items.checked_mul(size).and_then(|n| object.get(..n)).ok_or_else(|| {
                Error::new(
                    ErrorKind::Corrupt,
                    format!("a sequence of {count} × {size} bytes in a heap object of {}", object.len()),
                )
            })?;
            self.budget.charge(part.len().max(items) as u64)?;
            bytes.extend_from_slice(part);
            total = total.saturating_add(items);
        }
        starts.push(total);
        Ok((starts, bytes))
    }

    /// One member of every compound, side by side.
    fn gather(&self, stored: &Bytes, size: usize, count: usize, at: usize, length: usize) -> Result<Bytes> {
        if at == 0 && length == size {
            return Ok(stored.clone());
        }
        let outside = || Error::new(ErrorKind::Corrupt, "a member lies outside of its compound");
        let end = at.checked_add(length).filter(|&end| end <= size).ok_or_else(outside)?;
        let mut out = Vec::with_capacity(length.saturating_mul(count).min(stored.len()));
        for element in stored.chunks_exact(size.max(1)).take(count) {
            out.extend_from_slice(element.get(at..end).ok_or_else(outside)?);
        }
        Ok(out.into())
    }
}
