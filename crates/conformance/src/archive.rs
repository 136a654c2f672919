//! Zip files of Zarr stores, taken apart and put together, so that damage reaches documents, shards and chunks behind the
//! checksums of the archive.

use crate::rng::Rng;

/// One entry that is stored as it is.
#[derive(Clone, Debug)]
pub struct Entry {
    name: String,
    data: Vec<u8>,
}

/// Whether a file is a zip file.
pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let field = bytes.get(at..at.checked_add(width)?)?;
    Some(field.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b)))
}

/// The stored entries of a sound zip file, and the offsets of all records.
pub fn entries(bytes: &[u8]) -> (Vec<Entry>, Vec<usize>) {
    let (mut entries, mut places) = (Vec::new(), Vec::new());
    let end = (0..bytes.len().saturating_sub(21)).rev().find(|&at| bytes[at..].starts_with(b"PK\x05\x06"));
    let Some(end) = end else { return (entries, vec![0]) };
    places.push(end);
    let mut at = number(bytes, end + 16, 4).unwrap_or(0);
    while bytes.get(at..).is_some_and(|rest| rest.starts_with(b"PK\x01\x02")) {
        places.push(at);
        let field = |offset, width| number(bytes, at + offset, width).unwrap_or(0);
        let (method, length, name, extra, comment, local) =
            (field(10, 2), field(24, 4), field(28, 2), field(30, 2), field(32, 2), field(42, 4));
        places.push(local);
        let start = local
            + 30
            + number(bytes, local + 26, 2).unwrap_or(0)
            + number(bytes, local + 28, 2).unwrap_or(0);
        let text = bytes.get(at + 46..at + 46 + name).and_then(|name| std::str::from_utf8(name).ok());
        if let (0, Some(name), Some(data)) = (method, text, bytes.get(start..start + length)) {
            places.push(start);
            entries.push(Entry { name: name.to_owned(), data: data.to_vec() });
        }
        at += 46 + name + extra + comment;
    }
    (entries, places)
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// A zip file of these entries.
pub fn pack(entries: &[Entry]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(crc32(&entry.data).to_le_bytes());
        common.extend([(entry.data.len() as u32).to_le_bytes(); 2].concat());
        common.extend((entry.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(entry.name.as_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(entry.name.as_bytes());
        out.extend(&entry.data);
    }
    let (count, start) = ((entries.len() as u16).to_le_bytes(), out.len() as u32);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, count].concat());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// What to write in place of a value of a document.
const TOKENS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "7",
    "255",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "340282366920938463463374607431768211456",
    "1e400",
    "0.5",
    "NaN",
    "Infinity",
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "\"\"",
    "[1]",
    "[0]",
    "[[[]]]",
    "[1000000000,1000000000]",
    "\"\\ud800\"",
    "\"<f8\"",
    "\"|O\"",
    "\"V8\"",
    "\"<U1000000000\"",
    "\"F\"",
    "\"sharding_indexed\"",
    "\"transpose\"",
    "\"vlen-utf8\"",
    "\"numcodecs.pcodec\"",
    "\"blosc\"",
    "\"/\"",
    "{\"id\":\"zlib\"}",
    "]",
    "}",
    ",",
    ":",
];

/// Where values and punctuation of a document begin and end.
fn tokens(text: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let start = at;
        at += match text[at] {
            b'"' => text[at + 1..].iter().position(|&b| b == b'"').map_or(text.len() - at, |n| n + 2),
            b' ' | b'\n' | b'\t' | b'\r' => {
                at += 1;
                continue;
            }
            b'[' | b']' | b'{' | b'}' | b',' | b':' => 1,
            _ => text[at..].iter().position(|b| b" \n,]}:".contains(b)).unwrap_or(text.len() - at).max(1),
        };
        found.push((start, at));
    }
    found
}

/// Damages one entry: a document by its words, anything else by its bytes, most often where an index of a shard may be.
pub fn mutate(entries: &mut Vec<Entry>, rng: &mut Rng) -> String {
    if entries.is_empty() {
        return "nothing".into();
    }
    let which = rng.below(entries.len());
    let documents: Vec<usize> = (0..entries.len())
        .filter(|&i| {
            entries[i].name.ends_with("zarr.json")
                || entries[i].name.rsplit('/').next().is_some_and(|n| n.starts_with(".z"))
        })
        .collect();
    let which = if rng.chance(60) && !documents.is_empty() { rng.pick(&documents) } else { which };
    if rng.chance(3) {
        return format!("without {}", entries.remove(which).name);
    }
    let is_document = documents.contains(&which);
    let Entry { name, data } = &mut entries[which];
    if data.is_empty() {
        return format!("empty {name}");
    }
    if is_document {
        let found = tokens(data);
        let (start, end) = rng.pick(&found);
        let word = match rng.below(8) {
            0 => Vec::new(),
            1 => {
                let (start, end) = rng.pick(&found);
                data[start..end].to_vec()
            }
            2 => {
                let depth = rng.pick(&[100, 127, 128, 129, 5000]);
                [b"[".repeat(depth), b"]".repeat(depth)].concat()
            }
            _ => rng.pick(TOKENS).as_bytes().to_vec(),
        };
        let story = format!("{name}[{start}..{end}] = {:.30}", String::from_utf8_lossy(&word));
        data.splice(start..end, word);
        return story;
    }
    let length = data.len();
    let at = match rng.below(3) {
        0 => rng.below(length.min(64)),
        1 => length - 1 - rng.below(length.min(64)),
        _ => rng.below(length),
    };
    match rng.below(5) {
        0 => data.truncate(at),
        1 => data[at] ^= 1 << rng.below(8),
        2 => {
            let value =
                rng.pick(&[0, 1, length as u64, u64::MAX, u64::MAX - 1, 1 << 40, 1 << 63, 0xffff_ffff]);
            let width = rng.pick(&[4, 8]).min(length - at);
            data[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        3 => data.extend_from_slice(&[0; 40]),
        _ => data[at] = rng.pick(&[0, 1, 2, 0x7f, 0x80, 0xff]),
    }
    format!("{name} at {at:#x}")
}
