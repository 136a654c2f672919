//! Words of CDL, each with its line and column.

use crate::error::{Error, Result};

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

#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Lexer<'a>> {
        let text = std::str::from_utf8(bytes).map_err(|e| {
            Error::invalid(format!("byte {}: CDL is UTF-8, and this is not", e.valid_up_to()))
        })?;
        Ok(Lexer { text: text.strip_prefix('\u{feff}').unwrap_or(text), at: 0 })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// An error at a place in the text.
    pub(super) fn wrong(&self, at: usize, what: impl std::fmt::Display) -> Error {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        Error::invalid(format!("line {line}, column {column}: {what}"))
    }

    /// Everything up to `{`, trimmed: the name of a dataset.
    pub(super) fn until_brace(&mut self) -> Result<String> {
        let length =
            self.rest().find('{').ok_or_else(|| self.wrong(self.at, "a { is missing behind the name"))?;
        let name = self.rest().get(..length).unwrap_or("").trim().to_owned();
        self.at += length;
        Ok(unescaped(&name))
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
                    _ => Token::Name(unescaped(word), plain),
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
                out.extend(c.encode_utf8(&mut [0; 4]).bytes());
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
            out.extend(plain.encode_utf8(&mut [0; 4]).bytes());
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
            return Ok(Token::Integer(if negative { -value } else { value }, kind));
        }
        let single = lower.strip_suffix('f');
        let number = single.or_else(|| lower.strip_suffix('d')).unwrap_or(&lower);
        let starts = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let value: f64 = number.parse().ok().filter(|_| starts).ok_or_else(bad)?;
        let token = match single {
            // Rounded once.
            Some(number) => Token::Single(number.parse().map_err(|_| bad())?),
            None => Token::Double(value),
        };
        Ok(if negative { negated(token) } else { token })
    }
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

/// A name without its backslashes; `\%41` is the byte 0x41.
fn unescaped(word: &str) -> String {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or("");
        if c != '\\' {
            out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let code = rest.strip_prefix('%').and_then(|r| u8::from_str_radix(r.get(..2)?, 16).ok());
        match (code, rest.chars().next()) {
            (Some(byte), _) => {
                out.push(byte);
                rest = rest.get(3..).unwrap_or("");
            }
            (None, Some(c)) => {
                out.extend(c.encode_utf8(&mut [0; 4]).bytes());
                rest = rest.get(c.len_utf8()..).unwrap_or("");
            }
            (None, None) => {}
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
