//! JSON documents as Zarr stores hold them: RFC 8259, and `NaN`, `Infinity` and `-Infinity` as Python writes them.
//!
//! Integers keep all their digits up to 128 bits, members of objects their order. What Rust has no value for is kept as it
//! is spelled ([`Json::Verbatim`]), so that nothing is taken for something else.

use crate::error::{Error, ErrorKind, Result};
use std::fmt::{self, Write};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without fraction and exponent.
    Integer(i128),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A number that is beyond all doubles, or text with half of a surrogate pair, which is no Unicode: as the document
    /// spells it.
    Verbatim(Box<str>),
    /// An array.
    List(Vec<Json>),
    /// An object, its members in stored order.
    Map(Vec<(String, Json)>),
}

/// Nesting that no document needs.
const MAX_DEPTH: u32 = 128;

impl Json {
    /// Reads a document; nothing but white space may follow it.
    pub fn parse(text: &[u8]) -> Result<Json> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0)?;
        parser.space();
        match parser.peek() {
            None => Ok(value),
            Some(_) => Err(parser.wrong("more follows the document")),
        }
    }

    /// The member called `name`; of several the last, as in Python.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Map(members) => members.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text of a text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of an integer; of a float without fraction too.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Json::Integer(v) => Some(*v),
            Json::Float(v) if v.fract() == 0.0 && v.abs() < 9e15 => Some(*v as i128),
            _ => None,
        }
    }

    /// The value of an integer that fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_integer().and_then(|v| u64::try_from(v).ok())
    }

    /// The value of a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Json::Integer(v) => Some(*v as f64),
            Json::Float(v) => Some(*v),
            Json::Verbatim(spelled) => spelled.parse().ok().filter(|v: &f64| v.is_finite()),
            _ => None,
        }
    }

    /// Whether it is text that is no Unicode.
    pub fn is_broken_text(&self) -> bool {
        matches!(self, Json::Verbatim(spelled) if spelled.starts_with('"'))
    }

    /// The value of a truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(v) => Some(*v),
            _ => None,
        }
    }

    /// The items of an array.
    pub fn as_list(&self) -> Option<&[Json]> {
        match self {
            Json::List(items) => Some(items),
            _ => None,
        }
    }

    /// The members of an object.
    pub fn as_map(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Map(members) => Some(members),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    #[cold]
    fn wrong(&self, what: impl fmt::Display) -> Error {
        Error::corrupt("JSON document", self.at as u64, format!("{what}"))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `token` if it comes next.
    fn take(&mut self, token: &str) -> bool {
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(token.as_bytes()));
        if found {
            self.at += token.len();
        }
        found
    }

    fn value(&mut self, depth: u32) -> Result<Json> {
        if depth > MAX_DEPTH {
            return Err(Error::limit("nesting of JSON", depth.into(), MAX_DEPTH.into()));
        }
        self.space();
        match self.peek() {
            None => Err(self.wrong("the document ends where a value is wanted")),
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => {
                let start = self.at;
                Ok(match self.text()? {
                    Some(text) => Json::Text(text),
                    None => Json::Verbatim(self.since(start).into()),
                })
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => {
                let words = [
                    ("null", Json::Null),
                    ("true", Json::Bool(true)),
                    ("false", Json::Bool(false)),
                    ("NaN", Json::Float(f64::NAN)),
                    ("Infinity", Json::Float(f64::INFINITY)),
                ];
                for (word, value) in words {
                    if self.take(word) {
                        return Ok(value);
                    }
                }
                Err(self.wrong("this starts no value"))
            }
        }
    }

    fn list(&mut self, depth: u32) -> Result<Json> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.take("]") {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take("]") {
                return Ok(Json::List(items));
            }
            if !self.take(",") {
                return Err(self.wrong("neither , nor ] follows an item"));
            }
        }
    }

    fn map(&mut self, depth: u32) -> Result<Json> {
        self.at += 1;
        let mut members = Vec::new();
        self.space();
        if self.take("}") {
            return Ok(Json::Map(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.wrong("no name where a member is wanted"));
            }
            let name = self.text()?;
            let name = name.ok_or_else(|| self.wrong("half of a surrogate pair in the name of a member"))?;
            self.space();
            if !self.take(":") {
                return Err(self.wrong("no : follows the name of a member"));
            }
            members.push((name, self.value(depth + 1)?));
            self.space();
            if self.take("}") {
                return Ok(Json::Map(members));
            }
            if !self.take(",") {
                return Err(self.wrong("neither , nor } follows a member"));
            }
        }
    }

    fn number(&mut self) -> Result<Json> {
        if self.take("-Infinity") {
            return Ok(Json::Float(f64::NEG_INFINITY));
        }
        let start = self.at;
        while matches!(self.peek(), Some(b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = self.since(start);
        let whole = !text.contains(['.', 'e', 'E']);
        if let Some(value) = text.parse::<i128>().ok().filter(|_| whole) {
            return Ok(Json::Integer(value));
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && !whole => Ok(Json::Float(value)),
            Ok(_) => Ok(Json::Verbatim(text.into())),
            Err(_) => Err(self.wrong(format_args!("{text} is no number"))),
        }
    }

    /// What was read since `start`, which is UTF-8.
    fn since(&self, start: usize) -> &str {
        self.text.get(start..self.at).and_then(|t| std::str::from_utf8(t).ok()).unwrap_or("")
    }

    /// A text; `None` if there is half of a surrogate pair in it.
    fn text(&mut self) -> Result<Option<String>> {
        self.at += 1;
        let mut out = Vec::new();
        let mut is_unicode = true;
        loop {
            let Some(byte) = self.peek() else { return Err(self.wrong("the document ends in a text")) };
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => match self.escape()? {
                    Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => is_unicode = false,
                },
                other => out.push(other),
            }
        }
        let text = String::from_utf8(out).map_err(|_| self.wrong("text that is not UTF-8"))?;
        Ok(is_unicode.then_some(text))
    }

    /// An escaped character; `None` for half of a surrogate pair.
    fn escape(&mut self) -> Result<Option<char>> {
        let byte = self.peek();
        self.at += 1;
        Ok(Some(match byte {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let mut code = self.hex()?;
                if (0xd800..0xdc00).contains(&code) && self.take("\\u") {
                    let low = self.hex()?;
                    let pair = (0xdc00..0xe000).contains(&low);
                    code = if pair { 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) } else { u32::MAX };
                }
                return Ok(char::from_u32(code));
            }
            _ => return Err(self.wrong("an escape that there is not")),
        }))
    }

    fn hex(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).and_then(|t| std::str::from_utf8(t).ok());
        let code = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = code.and_then(|d| u32::from_str_radix(d, 16).ok());
        let code = code.ok_or_else(|| self.wrong("no four hex digits after \\u"))?;
        self.at += 4;
        Ok(code)
    }
}

/// The document on one line, non-finite floats as `NaN`, `Infinity` and `-Infinity`.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(v) => write!(f, "{v}"),
            Json::Integer(v) => write!(f, "{v}"),
            Json::Float(v) if v.is_nan() => f.write_str("NaN"),
            Json::Float(v) if v.is_infinite() => f.write_str(if *v < 0.0 { "-Infinity" } else { "Infinity" }),
            Json::Float(v) => write!(f, "{v:?}"),
            Json::Text(text) => quoted(f, text),
            Json::Verbatim(spelled) => f.write_str(spelled),
            Json::List(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_char(']')
            }
            Json::Map(members) => {
                f.write_char('{')?;
                for (i, (name, value)) in members.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    quoted(f, name)?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if (c as u32) < 0x20 => write!(f, "\\u{:04x}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// The error for a member that is missing or of another kind than it must be.
#[cold]
pub fn wrong_member(name: &str, what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{name:?}: {what}"))
}

/// Bytes in base 64 (RFC 4648, section 4, padded).
pub fn to_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, &b| bits << 8 | u32::from(b)) << (8 * (3 - group.len()));
        for i in 0..4 {
            let digit = DIGITS.get((bits >> (18 - 6 * i) & 63) as usize).copied().unwrap_or(b'=');
            text.push(if i <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Decodes base 64 (RFC 4648, section 4, padded), in which documents spell bytes. `None`: it is none.
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for c in digits.bytes() {
        bits = bits << 6 | u32::from(digit(c)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> String {
        Json::parse(text.as_bytes()).unwrap().to_string()
    }

    #[test]
    fn documents_are_read_as_python_reads_them() {
        assert_eq!(round(r#" {"b": [1, 2.0, -3e2], "a": null} "#), r#"{"b":[1,2.0,-300.0],"a":null}"#);
        assert_eq!(round("[NaN,Infinity,-Infinity]"), "[NaN,Infinity,-Infinity]");
        assert_eq!(round("18446744073709551615"), "18446744073709551615");
        assert_eq!(round(r#""\u00e9\ud83d\ude00\n""#), "\"é😀\\n\"");
        // What has no value of its own stays as it is.
        for text in [r#"["a\ud800",1]"#, r#""\ude00\ud83d""#, r#""\ud83d\u0041""#, "1e400", "-1e400"] {
            assert_eq!(round(text), text);
        }
        let long = "1".repeat(60);
        assert_eq!(Json::parse(long.as_bytes()).unwrap(), Json::Verbatim(long.into()));
        let twice = Json::parse(br#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(twice.get("a"), Some(&Json::Integer(2)));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let deep = "[".repeat(1000);
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "1 2",
            "tru",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "{\"\\ud800\":1}",
            "-",
            &deep,
        ] {
            assert!(Json::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Json::parse(b"\"\xff\"").is_err());
    }
}
