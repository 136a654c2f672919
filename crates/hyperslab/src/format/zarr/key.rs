//! From the coordinates of a chunk to the key of its object, and back.

use crate::shape::Coord;
use std::fmt::Write;

/// How keys of chunks are spelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyEncoding {
    /// Begins with `c` (Zarr 3's `default`), or not (Zarr 2).
    pub(super) prefixed: bool,
    /// Stands between coordinates: `/` or `.`.
    pub(super) separator: char,
}

impl KeyEncoding {
    /// The key of a chunk in the array at `path`.
    pub(super) fn key(&self, path: &str, coord: &[u64]) -> String {
        let mut key = String::with_capacity(path.len() + 2 + 6 * coord.len());
        if !path.is_empty() {
            key.push_str(path);
            key.push('/');
        }
        if self.prefixed {
            key.push('c');
        } else if coord.is_empty() {
            key.push('0');
        }
        for (i, c) in coord.iter().enumerate() {
            if self.prefixed || i > 0 {
                key.push(self.separator);
            }
            // Writing into a string does not fail.
            let _ = write!(key, "{c}");
        }
        key
    }

    /// The coordinates in `rank` axes that a key says, without the path of the array; `None` if it is not that of a
    /// chunk.
    pub(super) fn coord(&self, name: &str, rank: usize) -> Option<Coord> {
        let mut rest = name;
        if self.prefixed {
            rest = rest.strip_prefix('c')?;
            if rank > 0 {
                rest = rest.strip_prefix(self.separator)?;
            }
        }
        if rank == 0 {
            return (rest == if self.prefixed { "" } else { "0" }).then(Coord::new);
        }
        let coord: Option<Coord> = rest.split(self.separator).map(|c| c.parse().ok()).collect();
        coord.filter(|c| c.len() == rank && self.key("", c) == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_coordinates_are_the_same() {
        for (prefixed, separator, coord, key) in [
            (true, '/', &[1, 20, 3][..], "c/1/20/3"),
            (true, '.', &[1, 2], "c.1.2"),
            (true, '/', &[], "c"),
            (false, '.', &[1, 2], "1.2"),
            (false, '/', &[0, 7], "0/7"),
            (false, '.', &[], "0"),
        ] {
            let encoding = KeyEncoding { prefixed, separator };
            assert_eq!(encoding.key("", coord), key);
            assert_eq!(encoding.key("a/b", coord), format!("a/b/{key}"));
            assert_eq!(encoding.coord(key, coord.len()).as_deref(), Some(coord));
            // The key of a scalar is that of the first chunk along one axis too.
            assert_eq!(encoding.coord(key, coord.len() + 2), None);
        }
        let encoding = KeyEncoding { prefixed: false, separator: '.' };
        for name in [".zarray", "1.02", "1.+2", "1.", "1.2.3", "zarr.json"] {
            assert_eq!(encoding.coord(name, 2), None, "{name}");
        }
    }
}
