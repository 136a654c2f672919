//! Elements that are stored as they are need not all be read: which byte ranges hold the wanted ones.

use crate::error::{Error, ErrorKind, Result};
use crate::select::{ChunkPart, Piece};
use crate::source::{ByteRange, ReadHints};
use std::ops::Range;

/// A range of a source, and which wanted elements it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What is read.
    pub range: ByteRange,
    /// Which element of the chunk is the first in the range.
    pub base: usize,
    /// Of each piece of the chunk's part, which items (counted from the piece's first) are in the range. Empty: all.
    pub windows: Vec<Range<usize>>,
}

/// The ranges to read for one chunk whose `length` bytes, elements of `size` bytes, start at `offset` of its source.
///
/// Pieces are taken from the fastest axis outwards. As long as the bytes between neighbouring items are worth reading
/// through, all items of the piece go into one range; the first piece with wider gaps, or with more items than the
/// longest useful range takes, is cut, and the pieces outside of it are walked item by item.
pub(super) fn spans(
    part: &ChunkPart<'_>,
    size: usize,
    offset: u64,
    length: u64,
    hints: &ReadHints,
) -> Result<Vec<Span>> {
    let pieces = &part.pieces;
    let mut low = 0usize;
    // Elements from the first to the last of the pieces that are inside, and where the first is.
    let mut extent = 1usize;
    let mut level = pieces.len();
    let mut blocks: Vec<Range<usize>> = Vec::new();
    while level > 0 {
        let piece = &pieces[level - 1];
        let cut = cut(piece, extent, size, hints);
        if let [all] = cut.as_slice() {
            extent += piece.inside(all.end - 1) - piece.inside(all.start);
            low += piece.inside(0);
            level -= 1;
        } else {
            blocks = cut;
            break;
        }
    }
    let inner = pieces.len() - level;
    let Some((cut, outer)) = pieces[..level].split_last() else {
        return Ok(vec![span(low, extent, size, offset, length, all(pieces))?]);
    };
    let rows: usize = outer.iter().map(Piece::count).product();
    let mut spans = Vec::new();
    spans.try_reserve(rows.saturating_mul(blocks.len())).map_err(|_| {
        Error::limit("ranges of one read", rows as u128 * blocks.len() as u128, u32::MAX as u128)
    })?;
    let mut items = vec![0usize; outer.len()];
    for _ in 0..rows {
        let row: usize = items.iter().zip(outer).map(|(&i, piece)| piece.inside(i)).sum();
        for block in &blocks {
            let (first, last) = (cut.inside(block.start), cut.inside(block.end - 1));
            let mut windows: Vec<Range<usize>> = items.iter().map(|&i| i..i + 1).collect();
            windows.push(block.clone());
            windows.extend(pieces[pieces.len() - inner..].iter().map(|p| 0..p.count()));
            spans.push(span(low + row + first, last - first + extent, size, offset, length, windows)?);
        }
        for (i, piece) in items.iter_mut().zip(outer).rev() {
            *i += 1;
            if *i < piece.count() {
                break;
            }
            *i = 0;
        }
    }
    Ok(spans)
}

fn all(pieces: &[Piece<'_>]) -> Vec<Range<usize>> {
    pieces.iter().map(|p| 0..p.count()).collect()
}

fn span(
    base: usize,
    extent: usize,
    size: usize,
    offset: u64,
    length: u64,
    windows: Vec<Range<usize>>,
) -> Result<Span> {
    let wanted = (base as u64).checked_add(extent as u64).and_then(|n| n.checked_mul(size as u64));
    match wanted {
        Some(end) if end <= length && offset.checked_add(end).is_some() => {
            let range = ByteRange::new(offset + (base * size) as u64, (extent * size) as u64);
            Ok(Span { range, base, windows })
        }
        _ => Err(Error::new(
            ErrorKind::Corrupt,
            format!(
                "{length} bytes are stored where element {} is wanted",
                (base as u128) + extent as u128 - 1
            ),
        )),
    }
}

/// The items of a piece cut into runs, each worth one range; each item covers `extent` elements.
fn cut(piece: &Piece<'_>, extent: usize, size: usize, hints: &ReadHints) -> Vec<Range<usize>> {
    let count = piece.count();
    let most = (hints.max_merged / size.max(1) as u64).max(1);
    let gap = hints.gap / size.max(1) as u64;
    if let Piece::Even { step, .. } = piece {
        // How many items one range takes.
        let take = if count > 1 && step.saturating_sub(extent) as u64 > gap {
            1
        } else if *step == 0 {
            count
        } else {
            let room = most.saturating_sub(extent as u64) / *step as u64;
            count.min(1 + usize::try_from(room).unwrap_or(usize::MAX - 1))
        };
        return (0..count).step_by(take.max(1)).map(|i| i..count.min(i + take)).collect();
    }
    let mut cuts: Vec<Range<usize>> = Vec::new();
    for i in 0..count {
        if let Some(last) = cuts.last_mut() {
            let distance = piece.inside(i) - piece.inside(i - 1);
            let whole = piece.inside(i) - piece.inside(last.start) + extent;
            if distance.saturating_sub(extent) as u64 <= gap && whole as u64 <= most {
                last.end = i + 1;
                continue;
            }
        }
        cuts.push(i..i + 1);
    }
    cuts
}
