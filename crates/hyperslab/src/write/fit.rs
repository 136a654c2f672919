//! Elements of one type as those of the type that a writer stores.

use crate::dtype::{DType, Recode, StringPadding};
use crate::error::{Error, Result};
use crate::model::write::Content;
use bytes::Bytes;

/// How content of one type becomes content of another that holds the same values.
#[derive(Clone, Debug)]
pub struct Fit(How);

#[derive(Clone, Debug)]
enum How {
    Same,
    Recode(Recode),
    /// Texts of any length as texts of so many bytes with NULs behind.
    Texts(usize),
    /// Texts of fixed size as texts of any length.
    Free(usize, StringPadding),
}

/// Whether objects of one type are the very bytes that they are of another.
fn is_alike(from: &DType, to: &DType, depth: u32) -> bool {
    let alike = |a: &DType, b: &DType| is_alike(a, b, depth + 1);
    match (from, to) {
        _ if depth > 128 => false,
        _ if from.is_fixed() && to.is_fixed() => {
            Recode::new(from, to).is_ok_and(|recode| recode.is_identity())
        }
        (DType::VarString { .. }, DType::VarString { .. }) => true,
        (DType::VarLen { base: a, .. }, DType::VarLen { base: b, .. }) => alike(a, b),
        (DType::Reference { kind: a, .. }, DType::Reference { kind: b, .. }) => a == b,
        (DType::Array { base: a, dims }, DType::Array { base: b, dims: others }) => {
            dims == others && alike(a, b)
        }
        (DType::Compound { fields: a, .. }, DType::Compound { fields: b, .. }) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name && alike(&a.dtype, &b.dtype))
        }
        _ => false,
    }
}

impl Fit {
    /// From one type to another; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where values might be lost.
    pub fn new(from: &DType, to: &DType) -> Result<Fit> {
        Ok(Fit(match (from, to) {
            _ if from == to || !from.is_fixed() && is_alike(from, to, 0) => How::Same,
            (DType::VarString { .. }, DType::String { size, padding, .. })
                if *padding != StringPadding::SpacePadded =>
            {
                How::Texts(*size)
            }
            (DType::String { size, padding, .. }, DType::VarString { .. }) => How::Free(*size, *padding),
            _ if !from.is_fixed() || !to.is_fixed() => {
                return Err(Error::unsupported(format_args!("elements of {from} as {to}")));
            }
            _ => {
                let recode = Recode::new(from, to)?;
                if recode.is_identity() { How::Same } else { How::Recode(recode) }
            }
        }))
    }

    /// Whether nothing changes.
    pub fn is_identity(&self) -> bool {
        matches!(self.0, How::Same)
    }

    /// The content as that of the other type.
    pub fn run(&self, content: Content) -> Result<Content> {
        match (&self.0, content) {
            (How::Recode(recode), Content::Fixed(bytes)) => Ok(Content::Fixed(recode.run(&bytes)?.into())),
            (How::Texts(size), Content::Objects { elements, .. }) => {
                let mut bytes = Vec::with_capacity(elements.len().saturating_mul(*size));
                for element in &elements {
                    let text = element.get(8..).unwrap_or(&[]);
                    if text.len() > *size {
                        let text =
                            format_args!("a text of {} bytes where there is room for {size}", text.len());
                        return Err(Error::unsupported(text));
                    }
                    bytes.extend_from_slice(text);
                    bytes.resize(bytes.len() + (size - text.len()), 0);
                }
                Ok(Content::Fixed(bytes.into()))
            }
            (How::Free(size, padding), Content::Fixed(bytes)) => {
                let text = |raw: &[u8]| -> Bytes {
                    let end = match padding {
                        StringPadding::NullTerminated => {
                            raw.iter().position(|&b| b == 0).unwrap_or(raw.len())
                        }
                        StringPadding::NullPadded => raw.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1),
                        StringPadding::SpacePadded => {
                            raw.iter().rposition(|&b| b != b' ').map_or(0, |i| i + 1)
                        }
                    };
                    let mut object = (end as u64).to_le_bytes().to_vec();
                    object.extend_from_slice(raw.get(..end).unwrap_or(raw));
                    object.into()
                };
                let elements = bytes.chunks_exact((*size).max(1)).map(text).collect();
                Ok(Content::Objects { elements, targets: Vec::new() })
            }
            (_, content) => Ok(content),
        }
    }
}
