//! Lists of elements of any length as the bytes of a chunk: numcodecs' `vlen-utf8`, `vlen-bytes` and `json2`, of which
//! Zarr 3 has the first two. They stand where other arrays have their fixed elements, so they are no stage of a
//! [`Pipeline`](super::Pipeline).

use super::spelling::Spelling;
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use crate::shape::{element_count, to_usize};
use bytes::Bytes;
use std::fmt::Write;

/// Kinds of elements of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vlen {
    /// UTF-8 (`vlen-utf8`).
    Text,
    /// Bytes (`vlen-bytes`).
    Bytes,
    /// Any JSON value: text as it is, others as JSON (`json2`).
    Json,
}

const fn spelling(id: &'static str, numcodecs: &'static str, v3: &'static str) -> Spelling {
    Spelling { id, numcodecs, v3, hdf5: None, json: None, encodes: true }
}

/// In Zarr.
pub(super) const UTF8: Spelling = spelling("vlen-utf8", r#"{"id":"vlen-utf8"}"#, r#"{"name":"vlen-utf8"}"#);

/// In Zarr.
pub(super) const BYTES: Spelling =
    spelling("vlen-bytes", r#"{"id":"vlen-bytes"}"#, r#"{"name":"vlen-bytes"}"#);

/// In Zarr 2.
pub(super) const JSON: Spelling = spelling("json2", r#"{"id":"json2","encoding":"utf-8"}"#, "");

fn corrupt(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, what.into())
}

impl Vlen {
    /// The kind of a codec; `None` for other codecs.
    pub fn of(id: &str) -> Option<Vlen> {
        match id {
            "vlen-utf8" => Some(Vlen::Text),
            "vlen-bytes" => Some(Vlen::Bytes),
            "json2" => Some(Vlen::Json),
            _ => None,
        }
    }

    /// The elements of a chunk in stored order; how many is for the caller to check.
    pub fn decode(self, bytes: &Bytes) -> Result<Vec<Bytes>> {
        match self {
            Vlen::Json => json_values(bytes),
            Vlen::Text | Vlen::Bytes => values(bytes),
        }
    }

    /// The bytes of a chunk of these extents, from its elements in C order. `json2` takes all of them as texts.
    pub fn encode(self, values: &[impl AsRef<[u8]>], extents: &[u64]) -> Result<Vec<u8>> {
        if element_count(extents)? != values.len() as u64 {
            let text = format!("{} elements for a chunk of {extents:?}", values.len());
            return Err(Error::invalid(text));
        }
        let is_text = |v: &[u8]| self == Vlen::Bytes || std::str::from_utf8(v).is_ok();
        if let Some(at) = values.iter().position(|v| !is_text(v.as_ref())) {
            return Err(Error::invalid(format!("element {at} of a chunk of texts is not UTF-8")));
        }
        if self == Vlen::Json {
            return to_json(values, extents);
        }
        let word = |n: usize| {
            // Numcodecs takes lengths as signed.
            let n = i32::try_from(n).map_err(|_| Error::invalid("2 GiB or more in one element or chunk"))?;
            Ok::<_, Error>(n.to_le_bytes())
        };
        let mut out = word(values.len())?.to_vec();
        for value in values {
            out.extend(word(value.as_ref().len())?);
            out.extend_from_slice(value.as_ref());
        }
        Ok(out)
    }
}

/// The list of numcodecs and Zarr 3: the number of values, then each behind its length, in 4 bytes little-endian.
fn values(bytes: &Bytes) -> Result<Vec<Bytes>> {
    let cut = || corrupt("a list of elements of any length is cut short");
    let word = |at: usize| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or_else(cut)?;
        to_usize(u64::from(u32::from_le_bytes(*word)))
    };
    let count = word(0)?;
    // Each takes four bytes at least.
    if count > bytes.len() / 4 {
        return Err(cut());
    }
    let mut list = Vec::with_capacity(count);
    let mut at = 4;
    for _ in 0..count {
        let length = word(at)?;
        let end = (at + 4).checked_add(length).filter(|&end| end <= bytes.len()).ok_or_else(cut)?;
        list.push(bytes.slice(at + 4..end));
        at = end;
    }
    Ok(list)
}

/// Whether all values of a chunk of `json2` are texts, so that texts can take their place.
pub fn json_is_of_texts(bytes: &[u8]) -> Result<bool> {
    let document = Json::parse(bytes)?;
    let mut level: Vec<&Json> = match document.as_list() {
        Some([values @ .., _, _]) => values.iter().collect(),
        _ => return Err(corrupt("json2: no list of values, type and extents")),
    };
    // Lists within it are axes.
    while level.iter().any(|v| v.as_list().is_some()) {
        if level.iter().any(|v| v.as_list().is_none()) {
            return Ok(false);
        }
        level = level.into_iter().flat_map(|v| v.as_list().unwrap_or(&[])).collect();
    }
    Ok(level.iter().all(|v| v.as_str().is_some()))
}

/// Numcodecs' `json2`: a list of the values, nested as the extents say, and behind them the type and the extents.
fn json_values(bytes: &[u8]) -> Result<Vec<Bytes>> {
    let document = Json::parse(bytes)?;
    let wrong = || corrupt("json2: no list of values, type and extents");
    let [values @ .., _, extents] = document.as_list().ok_or_else(wrong)? else { return Err(wrong()) };
    let rank = extents.as_list().ok_or_else(wrong)?.len();
    let mut level: Vec<&Json> = values.iter().collect();
    for _ in 1..rank {
        level = level.into_iter().flat_map(|v| v.as_list().unwrap_or(&[])).collect();
    }
    let text = |v: &Json| match v {
        Json::Text(text) => Ok(text.clone()),
        broken if broken.is_broken_text() => Err(corrupt(format!("json2: the text {broken} is no Unicode"))),
        other => Ok(other.to_string()),
    };
    level.into_iter().map(|v| Ok(Bytes::from(text(v)?.into_bytes()))).collect()
}

/// The same the other way round, in ASCII as Python writes it.
fn to_json(values: &[impl AsRef<[u8]>], extents: &[u64]) -> Result<Vec<u8>> {
    let counts: Vec<usize> = extents.iter().map(|&n| to_usize(n)).collect::<Result<_>>()?;
    let mut out = String::from("[");
    for (i, value) in values.iter().enumerate() {
        // Lists begin where all coordinates behind them are zero, and end where these are the last.
        let within = |axes: &mut dyn Iterator<Item = &usize>| axes.fold(1usize, |n, &c| n.saturating_mul(c));
        let sizes: Vec<usize> = (1..counts.len()).map(|axis| within(&mut counts.iter().skip(axis))).collect();
        if i > 0 {
            out.push(',');
        }
        sizes.iter().filter(|&&n| i.is_multiple_of(n)).for_each(|_| out.push('['));
        // Checked before.
        quoted(&mut out, std::str::from_utf8(value.as_ref()).unwrap_or_default());
        sizes.iter().filter(|&&n| (i + 1).is_multiple_of(n)).for_each(|_| out.push(']'));
    }
    if !values.is_empty() {
        out.push(',');
    }
    let list: Vec<String> = extents.iter().map(u64::to_string).collect();
    // Writing into a string does not fail.
    let _ = write!(out, "\"|O\",[{}]]", list.join(","));
    Ok(out.into_bytes())
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(out, "\\u{unit:04x}");
            }),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What numcodecs 0.16 makes of the same values.
    #[test]
    fn chunks_are_as_numcodecs_writes_them() {
        let hex = |bytes: Vec<u8>| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let texts = ["a", "", "é", "d\0e"];
        let utf8 = Vlen::Text.encode(&texts, &[2, 2]).unwrap();
        assert_eq!(hex(utf8.clone()), "0400000001000000610000000002000000c3a903000000640065");
        let bytes: [&[u8]; 3] = [b"a", b"", b"\xff\0"];
        assert_eq!(hex(Vlen::Bytes.encode(&bytes, &[3]).unwrap()), "0300000001000000610000000002000000ff00");
        let json = Vlen::Json.encode(&texts, &[2, 2]).unwrap();
        assert_eq!(json, br#"[["a",""],["\u00e9","d\u0000e"],"|O",[2,2]]"#);
        let scalar = Vlen::Json.encode(&["x\"\u{7f}😀"], &[]).unwrap();
        assert_eq!(scalar, br#"["x\"\u007f\ud83d\ude00","|O",[]]"#);
        for (kind, encoded) in [(Vlen::Text, utf8), (Vlen::Json, json)] {
            assert_eq!(kind.decode(&encoded.into()).unwrap(), texts);
        }
        let cube = ["0", "1", "2", "3", "4", "5", "6", "7"];
        let json = Vlen::Json.encode(&cube, &[2, 2, 2]).unwrap();
        assert!(json.starts_with(br#"[[["0","1"],["2","3"]],[["4""#), "{}", json.escape_ascii());
        assert_eq!(Vlen::Json.decode(&json.into()).unwrap(), cube);
        assert_eq!(Vlen::Json.encode(&[] as &[&str], &[0]).unwrap(), br#"["|O",[0]]"#);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        assert!(Vlen::Text.encode(&[b"\xff"], &[1]).is_err());
        assert!(Vlen::Json.encode(&[b"\xff"], &[1]).is_err());
        assert!(Vlen::Bytes.encode(&["a"], &[2]).is_err());
        let broken = br#"["\ud800","|O",[1]]"#.to_vec();
        assert_eq!(Vlen::Json.decode(&broken.into()).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
