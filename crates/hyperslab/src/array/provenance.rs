//! Whether the elements of an array are those whose hash its attributes state.

use super::Array;
use super::verify::stored_length;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{ChunkRef, Value};
use crate::select::{Item, Selection, Slice};
use sha2::{Digest, Sha256};

/// Bytes that are hashed at a time.
const SLAB_BYTES: u64 = 64 << 20;

/// Bytes that one stored byte may stand for where more are hashed than a result may have.
const MOST_EXPANSION: u64 = 1 << 16;

/// What an array's provenance attributes say of its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Whether the hash holds.
    pub verdict: Verdict,
    /// `_provenance_creator`: who made the data.
    pub creator: Option<String>,
    /// `_provenance_timestamp`: when.
    pub timestamp: Option<String>,
    /// `_provenance_source`: from what.
    pub source: Option<String>,
}

/// Whether the stated hash is that of the elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Ok,
    /// It is not.
    Mismatch {
        /// `_provenance_sha256`, lowercase.
        stated: String,
        /// The hash of the elements as stored, in lowercase hex.
        computed: String,
    },
    /// None is stated.
    NoHash,
}

/// SHA-256 in lowercase hex.
pub(super) fn hex(hash: &[u8]) -> String {
    hash.iter().map(|b| format!("{b:02x}")).collect()
}

impl Array {
    /// SHA-256 of all elements as stored, in lowercase hex. Reads a part at a time.
    fn hash(&self) -> Result<String> {
        self.check_worth()?;
        let mut hash = Sha256::new();
        let row = self.meta().chunk_shape().first().copied().unwrap_or(1);
        // Whole rows of chunks where they are chunked, so that none is decoded twice.
        let inner = self.shape().get(1..).unwrap_or(&[]).iter().fold(1u64, |n, &d| n.saturating_mul(d));
        let chunk_row = row.saturating_mul(inner);
        let wanted = SLAB_BYTES / (self.dtype().size() as u64).max(1);
        let elements = if chunk_row <= wanted { wanted - wanted % chunk_row.max(1) } else { wanted };
        let mut from = 0;
        while let Some((rows, selection)) = self.slab(from, elements.max(1)) {
            hash.update(&self.read_raw(selection)?.bytes);
            from += rows;
        }
        Ok(hex(&hash.finalize()))
    }

    /// An extent can claim any number of elements that were never stored: hashing them would not end.
    fn check_worth(&self) -> Result<()> {
        let size = self.dtype().size() as u64;
        let bytes = self.shape().iter().fold(size, |n, &d| n.saturating_mul(d));
        if bytes <= self.options().limits.output {
            return Ok(());
        }
        let mut stored = 0u64;
        let visit = &mut |_, chunk: ChunkRef| {
            stored = stored.saturating_add(stored_length(&chunk)?.unwrap_or(0));
            Ok(())
        };
        self.chunks(visit, &mut |_| ())?;
        let allowed = stored.saturating_mul(MOST_EXPANSION);
        if bytes > allowed {
            return Err(Error::limit(
                "bytes to hash, with those that were never stored",
                bytes.into(),
                allowed.into(),
            ));
        }
        Ok(())
    }

    /// The rows of the slowest axis from `from` on that hold about `elements` elements: their number, and the selection.
    fn slab(&self, from: u64, elements: u64) -> Option<(u64, Selection)> {
        let dims = self.shape();
        if self.meta().space.is_null() || dims.contains(&0) {
            return None;
        }
        let rows = dims.first().copied().unwrap_or(1);
        if from >= rows {
            return None;
        }
        let Some(inner) = dims.get(1..) else { return Some((1, Selection::all())) };
        let row = inner.iter().fold(1u64, |n, &d| n.saturating_mul(d));
        let count = (elements / row).max(1).min(rows - from);
        let edge = |at: u64| i64::try_from(at).ok();
        let slice = Slice { start: edge(from), stop: edge(from + count), step: 1 };
        Some((count, Selection::vectorised(vec![Item::Slice(slice)])))
    }
    /// Compares the SHA-256 of all elements as stored, in C order, with the attribute `_provenance_sha256`.
    ///
    /// Reads the whole array, a part at a time. Fails if it can't be read, or if the attribute is not 64 hexadecimal digits.
    pub fn verify_provenance(&self) -> Result<Provenance> {
        self.attempt(|| self.provenance())
    }

    fn provenance(&self) -> Result<Provenance> {
        let mut texts = [None, None, None, None];
        let names = ["sha256", "creator", "timestamp", "source"];
        for entry in self.attributes()? {
            let attribute = match entry {
                Ok(a) => a,
                Err((Some(name), e)) if name.as_bytes() == b"_provenance_sha256" => return Err(e),
                Err(_) => continue,
            };
            let suffix = attribute.name.as_str().and_then(|n| n.strip_prefix("_provenance_"));
            let place = names.iter().position(|n| Some(*n) == suffix);
            if let Some(text) = place.and_then(|i| texts.get_mut(i)) {
                *text = match self.attribute_value(&attribute)? {
                    Value::Text(text) => Some(text),
                    Value::Null => None,
                    other => Some(other.to_string()),
                };
            }
        }
        let [stated, creator, timestamp, source] = texts;
        let verdict = match stated {
            None => Verdict::NoHash,
            Some(stated) => {
                let stated = stated.trim().to_ascii_lowercase();
                if stated.len() != 64 || !stated.bytes().all(|b| b.is_ascii_hexdigit()) {
                    let text =
                        format!("_provenance_sha256 of {} is not a SHA-256 in hex: {stated:?}", self.path());
                    return Err(Error::new(ErrorKind::Corrupt, text));
                }
                let computed = self.hash()?;
                if computed == stated { Verdict::Ok } else { Verdict::Mismatch { stated, computed } }
            }
        };
        Ok(Provenance { verdict, creator, timestamp, source })
    }
}
