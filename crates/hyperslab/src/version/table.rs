//! Tables of hashes, read and written as a whole.

use super::store::{self, ROW, TABLE_CHUNK, row_type};
use crate::array::File;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::encode::{ChunkData, NewChunk};
use crate::model::write::{Change, Content, ObjectPath};
use crate::staged::Digest;
use crate::write::Transaction;
use bytes::Bytes;

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) digest: Digest,
    /// First row of the chunk in its stack, and the one behind its last within the array.
    pub(super) rows: (u64, u64),
}

/// The rows of a table that count.
pub(super) fn read(file: &File, path: &ObjectPath) -> Result<Vec<Row>> {
    let table = file.array(&path.to_string())?;
    let wrong = |what: &str| Error::new(ErrorKind::Corrupt, format!("{path}: {what}"));
    if table.dtype() != &row_type() {
        return Err(wrong("not the element type of a table of hashes"));
    }
    let count = table.attribute("largest_index")?.as_integer().and_then(|n| u64::try_from(n).ok());
    let count = count.ok_or_else(|| wrong("its largest_index is no number"))?;
    if count > table.shape().first().copied().unwrap_or(0) {
        return Err(wrong("fewer rows than its largest_index"));
    }
    let stored = table.read_raw(format!("0:{count}").as_str())?;
    let number = |row: &[u8], at: usize| {
        let bytes = row.get(at..at + 8).and_then(|b| b.first_chunk());
        bytes.and_then(|b| u64::try_from(i64::from_le_bytes(*b)).ok())
    };
    let rows = stored.bytes.chunks_exact(ROW).map(|row| {
        let rows = number(row, 32).zip(number(row, 40));
        let mut digest = Digest::default();
        for (part, bytes) in digest.iter_mut().zip(row.chunks_exact(8)) {
            *part = bytes.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
        }
        Ok(Row { digest, rows: rows.ok_or_else(|| wrong("a chunk that begins before the first one"))? })
    });
    rows.collect()
}

/// Writes a table anew, in the place of the one that is there if there `is_old`.
pub(super) fn write(
    transaction: &mut Transaction,
    path: &ObjectPath,
    rows: &[Row],
    is_old: bool,
) -> Result<()> {
    if is_old {
        transaction.apply(Change::Delete { path: path.clone() })?;
    }
    store::create_table(transaction, path)?;
    if rows.is_empty() {
        return Ok(());
    }
    let count = rows.len() as u64;
    transaction.apply(Change::Resize { array: path.clone(), shape: vec![count] })?;
    let mut chunks = rows.chunks(TABLE_CHUNK as usize).zip(0u64..).map(|(rows, number)| {
        let mut bytes = Vec::with_capacity(rows.len() * ROW);
        for row in rows {
            row.digest.iter().for_each(|part| bytes.extend_from_slice(&part.to_ne_bytes()));
            bytes.extend_from_slice(&row.rows.0.to_le_bytes());
            bytes.extend_from_slice(&row.rows.1.to_le_bytes());
        }
        let data = ChunkData::Elements(Content::Fixed(Bytes::from(bytes)));
        Ok(NewChunk { coord: [number].into_iter().collect(), data })
    });
    transaction.write_chunks(path, &mut chunks)?;
    let count = i64::try_from(count).map_err(|_| Error::invalid("a table of more than 2^63 rows"))?;
    transaction.set_attribute(&path.to_string(), "largest_index", count)
}
