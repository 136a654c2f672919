//! From elements with everything that they point to, to stored bytes: variable-length parts go to the global heap, and
//! references become addresses.

use super::encoder::Encoder;
use super::object::{Id, Value};
use super::transaction::Transaction;
use super::{global, selection};
use crate::dtype::{DType, ReferenceKind};
use crate::error::{Error, ErrorKind, Result};
use crate::model::write::{Content, TargetPart};
use crate::shape::to_usize;
use bytes::Bytes;

/// The bytes of one object, taken from the front.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(n) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(Error::invalid("an element that is shorter than its type says")),
        }
    }

    fn number(&mut self) -> Result<u64> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b)))
    }
}

impl Transaction {
    /// Content with its targets found.
    pub(super) fn value(&mut self, dtype: &DType, count: u64, content: &Content) -> Result<Value> {
        content.check(dtype, count)?;
        match content {
            Content::Fixed(bytes) => Ok(Value::Fixed(bytes.clone())),
            Content::Objects { elements, targets } => {
                let found = targets
                    .iter()
                    .map(|t| {
                        let id = self.find(&t.path).map_err(|e| e.context("the target of a reference"))?;
                        Ok((id, t.part.clone()))
                    })
                    .collect::<Result<Vec<_>>>()?;
                let value = Value::Objects { elements: elements.clone(), targets: found };
                check(dtype, &value)?;
                Ok(value)
            }
        }
    }

    /// Elements as stored. Objects that they point to go to the heap.
    pub(super) fn flatten(&mut self, dtype: &DType, value: &Value) -> Result<Bytes> {
        let (elements, targets) = match value {
            Value::Fixed(bytes) => return Ok(bytes.clone()),
            Value::Objects { elements, targets } => (elements, targets),
        };
        let mut out = Encoder::new(self.disk.sizes());
        for element in elements {
            if element.is_empty() {
                // Nobody said anything of it, as at the edge of a chunk: zeros, which is unset.
                out.zeros(dtype.size());
                continue;
            }
            let mut reader = Reader { rest: element };
            self.element(dtype, &mut reader, targets, &mut out)?;
        }
        Ok(out.finish().into())
    }

    /// Appends one element. Types are nested no deeper than the limit of types says, which the type was checked against.
    fn element(
        &mut self,
        dtype: &DType,
        from: &mut Reader<'_>,
        targets: &[(Id, TargetPart)],
        out: &mut Encoder,
    ) -> Result<()> {
        if dtype.is_fixed() {
            out.put(from.take(dtype.size())?);
            return Ok(());
        }
        let start = out.len();
        match dtype {
            DType::VarString { .. } => {
                let length = from.number()?;
                if length == Content::NONE {
                    global::element(out, 0, None);
                } else {
                    let length = to_usize(length)?;
                    // An empty text is one, and not none: it has an object without bytes.
                    let place = self.heap.insert(&mut self.disk, from.take(length)?)?;
                    global::element(out, count_of(length)?, Some(place));
                }
            }
            DType::VarLen { base, .. } => {
                let count = to_usize(from.number()?)?;
                let mut items = Encoder::new(out.sizes());
                for _ in 0..count {
                    self.element(base, from, targets, &mut items)?;
                }
                self.heap_element(items.as_bytes(), count, out)?;
            }
            DType::Compound { size, fields } => {
                let mut members: Vec<(usize, Vec<u8>)> = Vec::with_capacity(fields.len());
                for field in fields {
                    let mut member = Encoder::new(out.sizes());
                    self.element(&field.dtype, from, targets, &mut member)?;
                    members.push((field.offset, member.finish()));
                }
                let mut bytes = vec![0; *size];
                for (offset, member) in members {
                    let place = bytes.get_mut(offset..offset.saturating_add(member.len()));
                    let place = place.ok_or_else(|| Error::invalid("a member beyond its compound"))?;
                    place.copy_from_slice(&member);
                }
                out.put(&bytes);
            }
            DType::Array { base, dims } => {
                let count = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d));
                for _ in 0..count {
                    self.element(base, from, targets, out)?;
                }
            }
            DType::Reference { kind, size } => {
                let number = from.number()?;
                let target = match number.checked_sub(1) {
                    None => None,
                    Some(i) => {
                        let target = usize::try_from(i).ok().and_then(|i| targets.get(i));
                        Some(target.ok_or_else(|| Error::invalid(format!("there is no target {number}")))?)
                    }
                };
                if let Some((id, part)) = target {
                    self.reference(*kind, *id, part, out)?;
                }
                let written = out.len() - start;
                if written > *size {
                    return Err(Error::unsupported(format!(
                        "a reference in {size} bytes, {written} are needed"
                    )));
                }
                out.zeros(*size - written);
            }
            _ => return Err(Error::unsupported(format!("elements of type {dtype}"))),
        }
        // What an element takes is fixed; what of it is not used is zero.
        let written = out.len() - start;
        match dtype.size().checked_sub(written) {
            Some(rest) => out.zeros(rest),
            None => return Err(Error::unsupported(format!("an element of {dtype} in {written} bytes"))),
        };
        Ok(())
    }

    fn heap_element(&mut self, bytes: &[u8], count: usize, out: &mut Encoder) -> Result<()> {
        let items = count_of(count)?;
        let place = match bytes.is_empty() {
            true => None,
            false => Some(self.heap.insert(&mut self.disk, bytes)?),
        };
        global::element(out, items, place);
        Ok(())
    }

    /// Appends a reference (specification, IV.A.2.d, class 7; and "reference encoding" of HDF5 1.12).
    fn reference(&mut self, kind: ReferenceKind, id: Id, part: &TargetPart, out: &mut Encoder) -> Result<()> {
        let address = self.address_of(id)?;
        let early = self.options.libver <= super::Libver::V18;
        let wrong = |what: &str| Err(Error::unsupported(format!("{what} as a reference of another kind")));
        match (kind, part) {
            (ReferenceKind::Object, TargetPart::Object) => {
                out.address(address);
            }
            (ReferenceKind::Region, TargetPart::Region(region)) => {
                let mut object = Encoder::new(out.sizes());
                object.address(address);
                selection::encode(&mut object, &region.selection, early)?;
                let place = self.heap.insert(&mut self.disk, object.as_bytes())?;
                out.address(place.address).u32(place.index);
            }
            (ReferenceKind::Standard, part) => {
                let mut object = Encoder::new(out.sizes());
                let class = match part {
                    TargetPart::Object => {
                        // Type, flags, token.
                        out.u8(2).u8(0).u8(8).u64(address);
                        return Ok(());
                    }
                    TargetPart::Region(region) => {
                        let mut stored = Encoder::new(out.sizes());
                        selection::encode(&mut stored, &region.selection, early)?;
                        object.u8(8).u64(address).u32(stored.len() as u32).u32(region.rank as u32);
                        object.put(stored.as_bytes());
                        3
                    }
                    TargetPart::Attribute(name) => {
                        let length = u16::try_from(name.as_bytes().len()).map_err(|_| {
                            Error::unsupported("a reference to an attribute with a long name")
                        })?;
                        object.u8(8).u64(address).u16(length).put(name.as_bytes());
                        4
                    }
                };
                let place = self.heap.insert(&mut self.disk, object.as_bytes())?;
                out.u8(class).u8(0).u32(object.len() as u32).address(place.address).u32(place.index);
            }
            (_, TargetPart::Object) => return wrong("an object"),
            (_, TargetPart::Region(_)) => return wrong("a region"),
            (_, TargetPart::Attribute(_)) => return wrong("an attribute"),
        }
        Ok(())
    }
}

/// A number of items as an element has it.
fn count_of(count: usize) -> Result<u32> {
    u32::try_from(count)
        .map_err(|_| Error::unsupported(format!("{count} items in one element of variable length")))
}

/// Fails unless the objects are whole and nothing is behind them, and references lead to targets of their kind.
fn check(dtype: &DType, value: &Value) -> Result<()> {
    let Value::Objects { elements, targets } = value else { return Ok(()) };
    for element in elements.iter().filter(|element| !element.is_empty()) {
        let mut reader = Reader { rest: element };
        walk(dtype, &mut reader, targets)?;
        if !reader.rest.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "an element that is longer than its type says",
            ));
        }
    }
    Ok(())
}

fn walk(dtype: &DType, from: &mut Reader<'_>, targets: &[(Id, TargetPart)]) -> Result<()> {
    if dtype.is_fixed() {
        return from.take(dtype.size()).map(|_| ());
    }
    match dtype {
        DType::VarString { .. } => {
            let length = from.number()?;
            if length == Content::NONE { Ok(()) } else { from.take(to_usize(length)?).map(|_| ()) }
        }
        DType::VarLen { base, .. } => {
            let count = from.number()?;
            if u32::try_from(count).is_err() {
                return Err(Error::unsupported(format!("{count} items in one element of variable length")));
            }
            (0..count).try_for_each(|_| walk(base, from, targets))
        }
        DType::Compound { fields, .. } => fields.iter().try_for_each(|f| walk(&f.dtype, from, targets)),
        DType::Array { base, dims } => {
            let count = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d));
            (0..count).try_for_each(|_| walk(base, from, targets))
        }
        DType::Reference { kind, .. } => {
            let Some(i) = from.number()?.checked_sub(1) else { return Ok(()) };
            let target = usize::try_from(i).ok().and_then(|i| targets.get(i));
            match (kind, target.map(|(_, part)| part)) {
                (_, None) => Err(Error::invalid(format!("there is no target {i}"))),
                (ReferenceKind::Object, Some(TargetPart::Object))
                | (ReferenceKind::Region, Some(TargetPart::Region(_)))
                | (ReferenceKind::Standard, Some(_)) => Ok(()),
                (kind, Some(part)) => Err(Error::unsupported(format!("{part:?} as a reference {kind:?}"))),
            }
        }
        _ => Err(Error::unsupported(format!("elements of type {dtype}"))),
    }
}
