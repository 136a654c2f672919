//! From the coordinates of a chunk to the key of its object, and back.

use super::array::extension;
use crate::error::{Error, Result};
use crate::json::{Json, wrong_member};
use crate::shape::Coord;
use std::fmt::Write;

/// How keys of chunks are spelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyEncoding {
    path: Path,
    /// Stands behind each key (Zarr extension `suffix`).
    suffix: String,
}

/// The part of a key that tells the coordinates.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Path {
    /// Zarr 3's `default`, which begins with `c`, and `v2`, which does not. Between coordinates stands `/` or `.`.
    Separated { prefixed: bool, separator: char },
    /// Zarr extension `fanout`: the digits of each coordinate to this base as folders below `d0`, `d1` ...
    Fanout { base: u64 },
}

/// Encodings around each other that nobody needs.
const MAX_DEPTH: u32 = 8;

/// The children that a folder of `fanout` has at most, if nobody says.
const CHILDREN: u64 = 1001;

impl KeyEncoding {
    /// That of Zarr 2, and of Zarr 3 where it is called `v2`.
    pub(super) fn v2(separator: char) -> KeyEncoding {
        KeyEncoding { path: Path::Separated { prefixed: false, separator }, suffix: String::new() }
    }

    /// Zarr 3's `default`.
    pub(super) fn v3(separator: char) -> KeyEncoding {
        KeyEncoding { path: Path::Separated { prefixed: true, separator }, suffix: String::new() }
    }

    /// The member `chunk_key_encoding` of Zarr 3.
    pub(super) fn parse(spelled: &Json) -> Result<KeyEncoding> {
        Self::parse_at(spelled, 0)
    }

    fn parse_at(spelled: &Json, depth: u32) -> Result<KeyEncoding> {
        if depth > MAX_DEPTH {
            return Err(Error::limit("nesting of chunk key encodings", depth.into(), MAX_DEPTH.into()));
        }
        let (name, configuration) = extension(spelled, "chunk_key_encoding")?;
        let separator = |default| match configuration.get("separator") {
            None | Some(Json::Null) => Ok(default),
            Some(Json::Text(text)) if text == "/" => Ok('/'),
            Some(Json::Text(text)) if text == "." => Ok('.'),
            Some(other) => Err(wrong_member("separator", format_args!("{other} is neither . nor /"))),
        };
        match name {
            "default" => separator('/').map(KeyEncoding::v3),
            "v2" => separator('.').map(KeyEncoding::v2),
            "suffix" => {
                // The specification uses both spellings of the member.
                let base = configuration.get("base_encoding").or_else(|| configuration.get("base-encoding"));
                let base =
                    base.ok_or_else(|| wrong_member("base_encoding", "missing in the encoding suffix"))?;
                let own = configuration.get("suffix").and_then(Json::as_str);
                let own = own.ok_or_else(|| wrong_member("suffix", "no text in the encoding suffix"))?;
                let mut keys = Self::parse_at(base, depth + 1)?;
                keys.suffix.push_str(own);
                Ok(keys)
            }
            "fanout" => {
                let children = configuration.get("max_children").filter(|c| !c.is_null());
                let children = children.map_or(Some(CHILDREN), |c| c.as_u64().filter(|&n| n > 3));
                let children = children
                    .ok_or_else(|| wrong_member("max_children", "is no whole number greater than 3"))?;
                Ok(KeyEncoding { path: Path::Fanout { base: children - 1 }, suffix: String::new() })
            }
            other => Err(Error::unsupported(format_args!("the chunk key encoding {other:?}"))),
        }
    }

    /// The key of a chunk in the array at `path`.
    pub(super) fn key(&self, path: &str, coord: &[u64]) -> String {
        let mut key = String::with_capacity(path.len() + 2 + 6 * coord.len() + self.suffix.len());
        if !path.is_empty() {
            key.push_str(path);
            key.push('/');
        }
        // Writing into a string does not fail.
        match self.path {
            Path::Separated { prefixed, separator } => {
                if prefixed {
                    key.push('c');
                } else if coord.is_empty() {
                    key.push('0');
                }
                for (i, c) in coord.iter().enumerate() {
                    if prefixed || i > 0 {
                        key.push(separator);
                    }
                    let _ = write!(key, "{c}");
                }
            }
            Path::Fanout { base } => {
                for (axis, &c) in coord.iter().enumerate() {
                    let _ = write!(key, "d{axis}/");
                    for digit in digits(c, base) {
                        let _ = write!(key, "{digit}/");
                    }
                }
                key.push('c');
            }
        }
        key.push_str(&self.suffix);
        key
    }

    /// The coordinates in `rank` axes that a key says, without the path of the array; `None` if it is not that of a
    /// chunk.
    pub(super) fn coord(&self, name: &str, rank: usize) -> Option<Coord> {
        let rest = name.strip_suffix(self.suffix.as_str())?;
        let coord: Coord = match self.path {
            Path::Separated { .. } if rank == 0 => Coord::new(),
            Path::Separated { prefixed, separator } => {
                let rest = if prefixed { rest.strip_prefix('c')?.strip_prefix(separator)? } else { rest };
                rest.split(separator).map(|c| c.parse().ok()).collect::<Option<_>>()?
            }
            Path::Fanout { base } => {
                let mut coord = Coord::new();
                for part in rest.split('/') {
                    match part.parse::<u64>() {
                        Ok(digit) => {
                            let last = coord.last_mut()?;
                            *last = last.checked_mul(base)?.checked_add(digit)?;
                        }
                        Err(_) if part.starts_with('d') && coord.len() < rank => coord.push(0),
                        Err(_) => {}
                    }
                }
                coord
            }
        };
        // Whatever was taken for a part of it, it is the key only if that is how it is spelled.
        Some(coord).filter(|c| c.len() == rank && self.key("", c) == name)
    }

    /// Whether keys of chunks in `rank` axes lie in a folder that is called so, without the path of the array.
    pub(super) fn is_folder(&self, name: &str, rank: usize) -> bool {
        let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        match self.path {
            Path::Separated { prefixed, separator: '/' } => {
                let mut parts = name.split('/');
                if prefixed && parts.next() != Some("c") {
                    return false;
                }
                let parts: Vec<&str> = parts.collect();
                parts.len() < rank && parts.into_iter().all(number)
            }
            Path::Separated { .. } => false,
            Path::Fanout { .. } => {
                name.split('/').all(|part| number(part.strip_prefix('d').unwrap_or(part)))
                    && name.starts_with("d0")
            }
        }
    }
}

/// The digits of a number to a base of more than 1, the most significant first.
fn digits(mut number: u64, base: u64) -> Vec<u64> {
    let mut digits = Vec::new();
    loop {
        digits.push(number % base.max(2));
        number /= base.max(2);
        if number == 0 {
            break;
        }
    }
    digits.reverse();
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(spelled: &str) -> KeyEncoding {
        KeyEncoding::parse(&Json::parse(spelled.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn keys_and_coordinates_are_the_same() {
        const DEFAULT: &str = r#""default""#;
        const DOTS: &str = r#"{"name":"default","configuration":{"separator":"."}}"#;
        const V2: &str = r#"{"name":"v2"}"#;
        const SLASHES: &str = r#"{"name":"v2","configuration":{"separator":"/"}}"#;
        const SUFFIX: &str =
            r#"{"name":"suffix","configuration":{"suffix":".tiff","base-encoding":{"name":"default"}}}"#;
        const TWICE: &str = r#"{"name":"suffix","configuration":{"suffix":".zip","base_encoding":{"name":"suffix",
            "configuration":{"suffix":".shard","base_encoding":"v2"}}}}"#;
        const FANOUT: &str = r#"{"name":"fanout","configuration":{"max_children":101}}"#;
        for (encoding, coord, key) in [
            (DEFAULT, &[1, 20, 3][..], "c/1/20/3"),
            (DOTS, &[1, 2], "c.1.2"),
            (DEFAULT, &[], "c"),
            (V2, &[1, 2], "1.2"),
            (SLASHES, &[0, 7], "0/7"),
            (V2, &[], "0"),
            (SUFFIX, &[1, 2], "c/1/2.tiff"),
            (SUFFIX, &[], "c.tiff"),
            (TWICE, &[1, 2], "1.2.shard.zip"),
            (FANOUT, &[], "c"),
            (FANOUT, &[123], "d0/1/23/c"),
            (FANOUT, &[1234, 5, 67890], "d0/12/34/d1/5/d2/6/78/90/c"),
            (r#""fanout""#, &[0, 1000], "d0/0/d1/1/0/c"),
        ] {
            let encoding = keys(encoding);
            assert_eq!(encoding.key("", coord), key);
            assert_eq!(encoding.key("a/b", coord), format!("a/b/{key}"));
            assert_eq!(encoding.coord(key, coord.len()).as_deref(), Some(coord), "{key}");
            // The key of a scalar is that of the first chunk along one axis too.
            assert_eq!(encoding.coord(key, coord.len() + 2), None);
        }
        for name in [".zarray", "1.02", "1.+2", "1.", "1.2.3", "zarr.json"] {
            assert_eq!(keys(V2).coord(name, 2), None, "{name}");
        }
        for name in ["d0/1/d1/100/c", "d0/01/d1/2/c", "d0/1/x/d1/2/c", "d1/1/d0/2/c", "d0/1/d1/2"] {
            assert_eq!(keys(FANOUT).coord(name, 2), None, "{name}");
        }
    }

    #[test]
    fn folders_of_chunks_are_known() {
        for (encoding, name, is) in [
            (r#""default""#, "c", true),
            (r#""default""#, "c/0", true),
            (r#""default""#, "c/0/1", false),
            (r#""default""#, "zarr.json", false),
            (r#""v2""#, "0", false),
            (r#"{"name":"v2","configuration":{"separator":"/"}}"#, "0", true),
            (r#"{"name":"v2","configuration":{"separator":"/"}}"#, ".zattrs", false),
            (r#""fanout""#, "d0/1", true),
            (r#""fanout""#, "d0/1/d1/0/c", false),
        ] {
            assert_eq!(keys(encoding).is_folder(name, 2), is, "{encoding} {name}");
        }
    }

    #[test]
    fn wrong_encodings_are_refused() {
        let mut deep = r#""default""#.to_owned();
        for _ in 0..12 {
            deep = format!(r#"{{"name":"suffix","configuration":{{"suffix":"x","base_encoding":{deep}}}}}"#);
        }
        for (spelled, code) in [
            (r#""template""#, "E_UNSUPPORTED"),
            (r#"{"name":"default","configuration":{"separator":"-"}}"#, "E_CORRUPT"),
            (r#"{"name":"suffix","configuration":{"suffix":".tiff"}}"#, "E_CORRUPT"),
            (r#"{"name":"suffix","configuration":{"base_encoding":"v2"}}"#, "E_CORRUPT"),
            (r#"{"name":"fanout","configuration":{"max_children":3}}"#, "E_CORRUPT"),
            (&deep, "E_LIMIT"),
        ] {
            let e = KeyEncoding::parse(&Json::parse(spelled.as_bytes()).unwrap()).unwrap_err();
            assert_eq!(e.code(), code, "{spelled}");
        }
    }
}
