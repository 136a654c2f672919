//! Fewer, longer requests.

use super::ByteRange;

/// One request that serves several wanted ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// What to ask for.
    pub range: ByteRange,
    /// Which of the wanted ranges it serves.
    pub serves: std::ops::Range<usize>,
}

/// Joins neighbours of `wanted`, which is sorted by offset, where at most `gap` bytes lie between them and the joined
/// range is at most `most` long. Ranges may overlap. None is cut: one longer than `most` stays alone.
pub fn merge(wanted: &[ByteRange], gap: u64, most: u64) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::new();
    for (i, range) in wanted.iter().enumerate() {
        // Ranges that end beyond 2^64 fail when they are read; here they only must not be joined.
        let end = range.offset.saturating_add(range.length);
        if let Some(last) = merged.last_mut() {
            let last_end = last.range.offset.saturating_add(last.range.length);
            let joined = end.max(last_end) - last.range.offset;
            let near = range.offset >= last.range.offset && range.offset <= last_end.saturating_add(gap);
            if near && (joined <= most || joined == last.range.length) && range.end().is_some() {
                last.range.length = joined;
                last.serves.end = i + 1;
                continue;
            }
        }
        merged.push(Merged { range: *range, serves: i..i + 1 });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(wanted: &[(u64, u64)], gap: u64, most: u64) -> Vec<(u64, u64, usize)> {
        let wanted: Vec<ByteRange> = wanted.iter().map(|&(o, l)| ByteRange::new(o, l)).collect();
        let all = merge(&wanted, gap, most);
        assert_eq!(
            all.iter().flat_map(|m| m.serves.clone()).collect::<Vec<_>>(),
            (0..wanted.len()).collect::<Vec<_>>()
        );
        all.into_iter().map(|m| (m.range.offset, m.range.length, m.serves.len())).collect()
    }

    #[test]
    fn near_neighbours_are_joined_up_to_a_length() {
        assert_eq!(merged(&[(0, 4), (4, 4), (10, 2)], 0, 100), [(0, 8, 2), (10, 2, 1)]);
        assert_eq!(merged(&[(0, 4), (4, 4), (10, 2)], 2, 100), [(0, 12, 3)]);
        assert_eq!(merged(&[(0, 4), (4, 4), (8, 4)], 0, 8), [(0, 8, 2), (8, 4, 1)]);
        assert_eq!(merged(&[(0, 40), (2, 4), (2, 4), (40, 1)], 0, 8), [(0, 40, 3), (40, 1, 1)]);
        assert_eq!(merged(&[(5, 1), (u64::MAX, 7)], u64::MAX, u64::MAX), [(5, 1, 1), (u64::MAX, 7, 1)]);
        assert_eq!(merged(&[], 0, 0), []);
    }
}
