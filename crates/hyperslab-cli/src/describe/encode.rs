//! The encoding of elements whose hash `describe` prints: packed bytes for types of fixed size, JSON text for others.

use super::Describer;
use bytes::Bytes;
use hyperslab::dtype::{DType, Packing, ReferenceKind};
use hyperslab::model::{Column, Elements, NodeId, Reference, RegionSelection};
use hyperslab::{Error, ErrorKind, Result};
use sha2::{Digest as _, Sha256};

/// Lowercase hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    hex_into(bytes, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

fn hex_into(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]));
}

/// The hash and the first bytes of what is written to it.
#[derive(Default)]
pub(super) struct Digest {
    hash: Sha256,
    length: u64,
    head: Vec<u8>,
}

impl Digest {
    /// More than any head that is shown.
    const HEAD: usize = 512;

    pub(super) fn write(&mut self, bytes: &[u8]) {
        let room = Self::HEAD.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.length += bytes.len() as u64;
        self.hash.update(bytes);
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// The first bytes.
    pub(super) fn head(&self, length: usize) -> &[u8] {
        &self.head[..self.head.len().min(length)]
    }

    /// Everything written, if it is at most `limit` bytes (and `limit` not above [`Self::HEAD`]).
    pub(super) fn whole(&self, limit: usize) -> Option<&[u8]> {
        (self.length <= limit as u64).then_some(self.head.as_slice())
    }
}

/// How elements of one type are encoded; walks the columns of the elements in lockstep.
pub(super) enum Encoder {
    Raw { dtype: DType, packing: Packing },
    Text { dtype: DType, part: Part },
}

pub(super) enum Part {
    Fixed(Packing),
    Text,
    Sequence(Box<Part>),
    Compound(Vec<Part>),
    Array(Box<Part>),
    Reference(ReferenceKind),
}

/// Bytes that the elements of one slab may point to.
const SLAB_LIMIT: u64 = 64 << 20;

impl Encoder {
    pub(super) fn new(dtype: &DType) -> Result<Encoder> {
        let dtype = dtype.clone();
        Ok(if dtype.is_fixed() {
            let packing = Packing::new(&dtype)?;
            // Members that overlap make the packed element larger than the stored one.
            if packing.packed_size() > packing.stored_size().saturating_mul(8).max(1 << 20) {
                let sizes = (packing.packed_size() as u128, 8 * packing.stored_size() as u128);
                return Err(Error::limit("bytes of one packed element", sizes.0, sizes.1));
            }
            Encoder::Raw { dtype, packing }
        } else {
            let part = part(&dtype)?;
            Encoder::Text { dtype, part }
        })
    }

    /// Whether elements are encoded as bytes, not as text.
    pub(super) fn is_raw(&self) -> bool {
        matches!(self, Encoder::Raw { .. })
    }

    /// Encodes `count` stored elements; text is joined by commas, the first of which stands in front where others came
    /// before. Fails before anything is written if what they point to is too much at a time.
    pub(super) fn encode(
        &self,
        describer: &Describer<'_>,
        stored: Bytes,
        count: usize,
        follows: bool,
        digest: &mut Digest,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        match self {
            Encoder::Raw { packing, dtype } => {
                if packing.is_identity() && stored.len() == count.saturating_mul(dtype.size()) {
                    digest.write(&stored);
                } else {
                    packing.pack(&stored, count, &mut buffer)?;
                    digest.write(&buffer);
                }
            }
            Encoder::Text { dtype, part } => {
                // A single element may be longer than a slab of many.
                let limit = if count == 1 { 4 * SLAB_LIMIT } else { SLAB_LIMIT };
                let elements = Elements::decode(&**describer.file.hierarchy(), dtype, stored, count, limit)?;
                describer.pointed.charge(elements.heap_bytes())?;
                let mut text = Text { describer, digest, buffer, packed: Vec::new() };
                for i in 0..count {
                    if i > 0 || follows {
                        text.buffer.push(b',');
                    }
                    text.part(part, elements.column(), i)?;
                }
                text.flush();
            }
        }
        Ok(())
    }
}

fn part(dtype: &DType) -> Result<Part> {
    if dtype.is_fixed() {
        return Ok(Part::Fixed(Packing::new(dtype)?));
    }
    Ok(match dtype {
        DType::VarString { .. } => Part::Text,
        DType::VarLen { base, .. } => Part::Sequence(Box::new(part(base)?)),
        DType::Array { base, .. } => Part::Array(Box::new(part(base)?)),
        DType::Compound { fields, .. } => {
            Part::Compound(fields.iter().map(|f| part(&f.dtype)).collect::<Result<_>>()?)
        }
        DType::Reference { kind, .. } => Part::Reference(*kind),
        other => return Err(Error::unsupported(format!("elements of type {other}"))),
    })
}

/// Text on its way into a digest.
struct Text<'a> {
    describer: &'a Describer<'a>,
    digest: &'a mut Digest,
    buffer: Vec<u8>,
    packed: Vec<u8>,
}

impl Text<'_> {
    fn flush(&mut self) {
        self.digest.write(&self.buffer);
        self.buffer.clear();
    }

    /// Packed elements `from..to` in hex, in quotes.
    fn fixed(&mut self, packing: &Packing, column: &Column, from: usize, to: usize) -> Result<()> {
        let Column::Fixed(fixed) = column else { return Err(mismatch()) };
        self.packed.clear();
        packing.pack(fixed.stored(from, to), to - from, &mut self.packed)?;
        self.buffer.push(b'"');
        // In pieces, so that a long sequence is not held thrice.
        for piece in self.packed.chunks(1 << 16) {
            hex_into(piece, &mut self.buffer);
            self.digest.write(&self.buffer);
            self.buffer.clear();
        }
        self.buffer.push(b'"');
        Ok(())
    }

    fn list(&mut self, part: &Part, items: &Column, from: usize, to: usize) -> Result<()> {
        self.buffer.push(b'[');
        for i in from..to {
            if i > from {
                self.buffer.push(b',');
            }
            self.part(part, items, i)?;
        }
        self.buffer.push(b']');
        Ok(())
    }

    fn part(&mut self, part: &Part, column: &Column, index: usize) -> Result<()> {
        if self.buffer.len() > 1 << 16 {
            self.flush();
        }
        match (part, column) {
            (Part::Fixed(packing), _) => self.fixed(packing, column, index, index + 1)?,
            (Part::Text, Column::Text(texts)) => match texts.get(index).ok_or_else(mismatch)? {
                Some(text) => {
                    self.buffer.extend_from_slice(b"\"s:");
                    hex_into(text, &mut self.buffer);
                    self.buffer.push(b'"');
                }
                None => self.buffer.extend_from_slice(b"null"),
            },
            (Part::Sequence(part), Column::Sequence { starts, items }) => {
                let Some(&[from, to]) = starts.get(index..index + 2) else { return Err(mismatch()) };
                match part.as_ref() {
                    Part::Fixed(packing) => self.fixed(packing, items, from, to)?,
                    part => self.list(part, items, from, to)?,
                }
            }
            (Part::Array(part), Column::Array { count, items, .. }) => {
                let from = index.saturating_mul(*count);
                self.list(part, items, from, from.saturating_add(*count))?;
            }
            (Part::Compound(parts), Column::Compound { columns, .. }) => {
                self.buffer.push(b'[');
                for (i, (part, column)) in parts.iter().zip(columns).enumerate() {
                    if i > 0 {
                        self.buffer.push(b',');
                    }
                    self.part(part, column, index)?;
                }
                self.buffer.push(b']');
            }
            (Part::Reference(kind), Column::Reference(references)) => {
                let reference = references.get(index).ok_or_else(mismatch)?;
                let text = reference.as_ref().ok().and_then(|r| self.describer.reference(*kind, r));
                self.buffer.extend_from_slice(text.as_deref().unwrap_or("\"err\"").as_bytes());
            }
            _ => return Err(mismatch()),
        }
        Ok(())
    }
}

fn mismatch() -> Error {
    Error::new(ErrorKind::Corrupt, "elements do not have the columns of their type")
}

impl Describer<'_> {
    /// A reference as JSON text; `None` if what it points to can't be opened.
    fn reference(&self, kind: ReferenceKind, reference: &Reference) -> Option<String> {
        let standard = kind == ReferenceKind::Standard;
        Some(match reference {
            Reference::Null => "null".into(),
            Reference::Object(id) if standard => format!("[\"object\",{}]", self.path(id)?),
            Reference::Object(id) => self.path(id)?,
            Reference::Region(id, region) if standard => format!("[\"region\",{}]", self.region(id, region)?),
            Reference::Region(id, region) => format!("[{}]", self.region(id, region)?),
            Reference::Attribute(id, name) => {
                format!("[\"attr\",{},\"s:{}\"]", self.path(id)?, hex(name.as_bytes()))
            }
        })
    }

    /// The first path of an object, `p:?` if it is there but no link leads to it.
    fn path(&self, id: &NodeId) -> Option<String> {
        match self.paths.get(id) {
            Some(path) => Some(format!("\"p:{}\"", hex(path.as_bytes()))),
            None => self.file.object(id, id.to_string()).ok().map(|_| "\"p:?\"".into()),
        }
    }

    fn region(&self, id: &NodeId, region: &RegionSelection) -> Option<String> {
        let path = self.path(id)?;
        let mut shapes = self.shapes.borrow_mut();
        let dims = shapes
            .entry(id.clone())
            .or_insert_with(|| match self.file.object(id, id.to_string()) {
                Ok(hyperslab::Object::Array(array)) => Some(array.shape().to_vec()),
                _ => None,
            })
            .clone()?;
        // An unlimited selection has no number of elements, which the HDF5 library gives as -1.
        if region.selection.is_unlimited() {
            return Some(format!("{path},-1,[],[]"));
        }
        let count = region.selection.count(&dims);
        let list = |corner: &[u64]| {
            let corner: Vec<String> = corner.iter().map(u64::to_string).collect();
            format!("[{}]", corner.join(","))
        };
        let (low, high) = match region.selection.bounds(&dims).filter(|_| count > 0) {
            Some((low, high)) => (list(&low), list(&high)),
            None => ("[]".into(), "[]".into()),
        };
        Some(format!("{path},{count},{low},{high}"))
    }
}
