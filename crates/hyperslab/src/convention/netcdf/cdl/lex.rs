//! Words of CDL, each with its line and column.

use crate::error::{Error, Result};
use std::borrow::Cow;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or path, escapes resolved, and whether it was written without any.
    Name(String, bool),
    /// `dimensions:`, `variables:`, `types:`, `data:` or `group:`.
    Section(&'static str),
    /// An integer, and the type that its suffix says.
    Integer(i128, Option<&'static str>),
    Single(f32),
    Double(f64),
    Text(Vec<u8>),
    Char(u8),
    Opaque(Vec<u8>),
    /// One of `{}(),;=:*`.
    Mark(char),
    End,
}

const SECTIONS: [&str; 5] = ["dimensions", "variables", "types", "data", "group"];

/// Characters that stand in names only behind a backslash.
const SPECIAL: &str = " !\"#$%&'()*,:;<=>?[]\\^`{|}~";

/// The text of a file, to be taken apart.
pub(super) struct Text<'a> {
    text: Cow<'a, str>,
    /// Whether each character stands for one byte: CDL is UTF-8, but `ncdump` prints whatever bytes a file has.
    is_bytes: bool,
}

impl<'a> Text<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Text<'a> {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                Text { text: Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)), is_bytes: false }
            }
            Err(_) => {
                let text = bytes.iter().map(|&b| char::from(b)).collect();
                Text { text: Cow::Owned(text), is_bytes: true }
            }
        }
    }
}

#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    is_bytes: bool,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a Text<'_>) -> Lexer<'a> {
        Lexer { text: &text.text, is_bytes: text.is_bytes, at: 0 }
    }

    /// Adds a character of the text to bytes.
    fn push(&self, c: char, out: &mut Vec<u8>) {
        match u8::try_from(u32::from(c)) {
            Ok(byte) if self.is_bytes => out.push(byte),
            _ => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }

    /// A name without its backslashes; `\%41` is the byte 0x41.
    fn unescaped(&self, at: usize, word: &str) -> Result<String> {
        let mut out = Vec::with_capacity(word.len());
        let mut rest = word;
        while let Some(c) = rest.chars().next() {
            rest = rest.get(c.len_utf8()..).unwrap_or("");
            if c != '\\' {
                self.push(c, &mut out);
                continue;
            }
            let code = rest.strip_prefix('%').and_then(|r| u8::from_str_radix(r.get(..2)?, 16).ok());
            match (code, rest.chars().next()) {
                (Some(byte), _) => {
                    out.push(byte);
                    rest = rest.get(3..).unwrap_or("");
                }
                (None, Some(c)) => {
                    self.push(c, &mut out);
                    rest = rest.get(c.len_utf8()..).unwrap_or("");
                }
                (None, None) => {}
            }
        }
        String::from_utf8(out).map_err(|_| self.wrong(at, "a name that is not UTF-8"))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// An error at a place in the text.
    pub(super) fn wrong(&self, at: usize, what: impl std::fmt::Display) -> Error {
        let (line, column) = line_and_column(self.text, at);
        Error::invalid(format!("line {line}, column {column}: {what}"))
    }

    /// Everything up to `{`, trimmed: the name of a dataset.
    pub(super) fn until_brace(&mut self) -> Result<String> {
        let length =
            self.rest().find('{').ok_or_else(|| self.wrong(self.at, "a { is missing behind the name"))?;
        let name = self.rest().get(..length).unwrap_or("").trim().to_owned();
        let name = self.unescaped(self.at, &name);
        self.at += length;
        name
    }

    /// Passes over blanks and comments.
    fn skip(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            self.at += blanks;
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(inner) = rest.strip_prefix("/*") {
                let length =
                    inner.find("*/").ok_or_else(|| self.wrong(self.at, "a comment without an end"))?;
                self.at += length + 4;
            } else {
                return Ok(());
            }
        }
    }

    /// The next word, and where it begins.
    pub(super) fn next(&mut self) -> Result<(usize, Token)> {
        self.skip()?;
        let start = self.at;
        let rest = self.rest();
        let token = match self.peek() {
            None => Token::End,
            Some('"') => Token::Text(self.quoted('"')?),
            Some('\'') => match self.quoted('\'')?.as_slice() {
                [byte] => Token::Char(*byte),
                _ => return Err(self.wrong(start, "not one character between single quotes")),
            },
            Some(c) if c.is_ascii_digit() || "+-.".contains(c) => self.number(start)?,
            Some(c) if "{}(),;=:*".contains(c) => {
                self.at += 1;
                Token::Mark(c)
            }
            Some(_) => {
                let word =
                    word(rest).ok_or_else(|| self.wrong(start, "a character that has no place here"))?;
                self.at += word.len();
                let plain = !word.contains('\\');
                match (float(word), SECTIONS.iter().find(|s| **s == word)) {
                    (Some(token), _) => token,
                    (None, Some(section)) if self.peek() == Some(':') => {
                        self.at += 1;
                        Token::Section(section)
                    }
                    _ => Token::Name(self.unescaped(start, word)?, plain),
                }
            }
        };
        Ok((start, token))
    }

    /// Text between quotes, with the escapes of C.
    fn quoted(&mut self, quote: char) -> Result<Vec<u8>> {
        let start = self.at;
        self.at += 1;
        let mut out = Vec::new();
        let open = |lexer: &Self| lexer.wrong(start, format!("a {quote} without its second"));
        loop {
            let c = self.peek().ok_or_else(|| open(self))?;
            self.at += c.len_utf8();
            if c == quote {
                return Ok(out);
            }
            if c != '\\' {
                self.push(c, &mut out);
                continue;
            }
            let escape = self.peek().ok_or_else(|| open(self))?;
            let digits = |radix, most: usize, text: &str| {
                text.chars().take(most).take_while(|c: &char| c.is_digit(radix)).count()
            };
            let rest = self.rest();
            let (radix, from, length) = match escape {
                '0'..='7' => (8, 0, digits(8, 3, rest)),
                'x' | 'X' => (16, 1, digits(16, 2, rest.get(1..).unwrap_or(""))),
                _ => (0, 0, 0),
            };
            if radix > 0 {
                let code = rest.get(from..from + length).and_then(|d| u32::from_str_radix(d, radix).ok());
                let byte = code.and_then(|code| u8::try_from(code).ok());
                out.push(byte.ok_or_else(|| self.wrong(self.at, "an escape that is no byte"))?);
                self.at += from + length;
                continue;
            }
            self.at += escape.len_utf8();
            let plain = match escape {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                // A line that goes on.
                '\n' => continue,
                other => other,
            };
            self.push(plain, &mut out);
        }
    }

    fn number(&mut self, start: usize) -> Result<Token> {
        let rest = self.rest();
        let unsigned = rest.trim_start_matches(['+', '-']);
        let sign = rest.len() - unsigned.len();
        let exponent = |i: usize| {
            let before = i.checked_sub(1).and_then(|i| unsigned.as_bytes().get(i));
            before.is_some_and(|b| b.eq_ignore_ascii_case(&b'e')) && !is_hexadecimal(unsigned)
        };
        let length = unsigned
            .char_indices()
            .find(|&(i, c)| !(c.is_ascii_alphanumeric() || c == '.' || "+-".contains(c) && exponent(i)))
            .map_or(unsigned.len(), |(i, _)| i);
        let text = unsigned.get(..length).unwrap_or("");
        self.at += sign + length;
        let negative = rest.starts_with('-');
        let bad = || self.wrong(start, format!("{:?} is no number", rest.get(..sign + length).unwrap_or("")));
        if sign > 1 {
            return Err(bad());
        }
        if let Some(token) = float(text) {
            return Ok(if negative { negated(token) } else { token });
        }
        let lower = text.to_ascii_lowercase();
        if is_hexadecimal(text) && !lower.ends_with(['u', 's', 'l']) {
            return hexadecimal(&lower).filter(|_| sign == 0).ok_or_else(bad);
        }
        let digits = lower.trim_end_matches(['b', 's', 'u', 'l']);
        let decimal = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty();
        if decimal || is_hexadecimal(digits) {
            let digits = if is_hexadecimal(text) { lower.trim_end_matches(['s', 'u', 'l']) } else { digits };
            let kind = match lower.get(digits.len()..).unwrap_or("") {
                "" => None,
                "b" => Some("byte"),
                "s" => Some("short"),
                "l" => Some("int"),
                "ll" => Some("int64"),
                "ub" => Some("ubyte"),
                "us" => Some("ushort"),
                "u" | "ul" => Some("uint"),
                "ull" => Some("uint64"),
                _ => return Err(bad()),
            };
            let octal = digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b < b'8');
            let value = match digits.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16),
                None => i128::from_str_radix(digits, if octal { 8 } else { 10 }),
            };
            let value = value.map_err(|_| bad())?;
            if negative && value == 0 && kind.is_none() {
                // Floating-point numbers have a zero of each sign.
                return Ok(Token::Double(-0.0));
            }
            return Ok(Token::Integer(if negative { -value } else { value }, kind));
        }
        let single = lower.strip_suffix('f');
        let number = single.or_else(|| lower.strip_suffix('d')).unwrap_or(&lower);
        let starts = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let value: f64 = number.parse().ok().filter(|_| starts).ok_or_else(bad)?;
        let value = if value.is_infinite() { largest(number).ok_or_else(bad)? } else { value };
        let token = match single {
            // Rounded once.
            Some(number) => Token::Single(number.parse().map_err(|_| bad())?),
            None => Token::Double(value),
        };
        Ok(if negative { negated(token) } else { token })
    }
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    (before.matches('\n').count() + 1, column)
}

/// Where each constant of a statement begins, from `at` on.
fn constants(text: &Text<'_>, at: usize) -> impl Iterator<Item = usize> {
    let mut lexer = Lexer { at, ..Lexer::new(text) };
    std::iter::from_fn(move || {
        loop {
            match lexer.next() {
                Ok((_, Token::Mark(';') | Token::End)) | Err(_) => return None,
                Ok((_, Token::Mark(_) | Token::Section(_))) => {}
                Ok((start, _)) => return Some(start),
            }
        }
    })
}

/// Line and column of the `n`-th constant from `at` on.
pub(super) fn place(text: &[u8], at: usize, n: usize) -> (usize, usize) {
    let text = Text::new(text);
    let found = constants(&text, at).take(n.saturating_add(1)).last().unwrap_or(at);
    line_and_column(&text.text, found)
}

/// Of each constant from `at` on, whether it goes on with the one before: as `ncdump` breaks rows of characters behind
/// a newline, on a line that is indented further than that on which the row begins.
pub(super) fn continued(text: &[u8], at: usize) -> Vec<bool> {
    const DEEPER: &str = "\\n\",\n    ";
    let text = Text::new(text);
    let indent = |at: usize| {
        let line = text.text.get(..at).unwrap_or("").rsplit('\n').next().unwrap_or("");
        line.len() - line.trim_start_matches(' ').len()
    };
    let mut row = at;
    let mut all = Vec::new();
    for start in constants(&text, at) {
        let before = text.text.get(..start).unwrap_or("");
        let goes_on = before.ends_with(DEEPER) && indent(row) < 4;
        if !goes_on {
            row = start;
        }
        all.push(goes_on);
    }
    all
}

/// The largest number, if this is that one rounded up to fewer digits, as `ncdump` prints it.
fn largest(number: &str) -> Option<f64> {
    let (mantissa, _) = number.split_once('e')?;
    let digits = mantissa.chars().filter(char::is_ascii_digit).count();
    let printed = format!("{:.*e}", digits.checked_sub(1)?, f64::MAX);
    (printed == number.replace("e+", "e")).then_some(f64::MAX)
}

fn negated(token: Token) -> Token {
    match token {
        Token::Single(v) => Token::Single(-v),
        Token::Double(v) => Token::Double(-v),
        other => other,
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

fn hexadecimal(lower: &str) -> Option<Token> {
    let digits = lower.get(2..)?;
    let value = |c: u8| (c as char).to_digit(16);
    let mut out = Vec::with_capacity(digits.len().div_ceil(2));
    // An odd digit at the end is followed by a zero.
    for pair in digits.as_bytes().chunks(2) {
        let (high, low) = (value(*pair.first()?)?, pair.get(1).map_or(Some(0), |&c| value(c))?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(Token::Opaque(out))
}

/// The words for numbers that are none, or not finite.
fn float(word: &str) -> Option<Token> {
    Some(match word {
        "NaN" | "nan" => Token::Double(f64::NAN),
        "NaNf" | "nanf" => Token::Single(f32::NAN),
        "Infinity" | "infinity" | "Inf" | "inf" => Token::Double(f64::INFINITY),
        "Infinityf" | "infinityf" | "Inff" | "inff" => Token::Single(f32::INFINITY),
        _ => return None,
    })
}

/// The name or path at the start of `text`.
fn word(text: &str) -> Option<&str> {
    let mut escaped = false;
    let end = text.char_indices().find(|&(_, c)| {
        let inside = escaped || c == '\\' || !(SPECIAL.contains(c) || c.is_ascii_control());
        escaped = c == '\\' && !escaped;
        !inside
    });
    let word = text.get(..end.map_or(text.len(), |(i, _)| i)).filter(|word| !word.is_empty())?;
    // A comment ends a word, a single slash is a part of a path.
    let word = word.get(..word.find("//").or_else(|| word.find("/*")).unwrap_or(word.len()))?;
    Some(word).filter(|word| !word.is_empty())
}
