//! Names and text in CDL, and lines of limited length.

use crate::output::{Out, Outcome};

/// A name with a backslash before what CDL would take for something else.
pub(super) fn name(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    if name.first().is_some_and(u8::is_ascii_digit) {
        out.push(b'\\');
    }
    for &b in name {
        match b {
            b if b.is_ascii_control() => out.extend(format!("\\%{b:02x}").bytes()),
            b if b" !\"#$&'()*,:;<=>?[]\\^`{|}~".contains(&b) => out.extend([b'\\', b]),
            b => out.push(b),
        }
    }
    out
}

/// Without the NULs at its end.
pub(super) fn trimmed(text: &[u8]) -> &[u8] {
    let length = text.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    text.get(..length).unwrap_or(text)
}

fn escape(b: u8) -> Option<u8> {
    Some(match b {
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x0b => b'v',
        b'\\' | b'\'' | b'"' => b,
        _ => return None,
    })
}

/// Where text is printed, which decides what of it can stand there.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    /// An attribute of a file in which several strings are one text: a line ends with its newline.
    ClassicAttribute,
    /// Any other attribute, or a string.
    Whole,
    /// A row of a text variable: ASCII only, a line ends with its newline.
    Row,
    /// Text in a compound: ASCII only.
    Member,
}

/// Text in quotes. NULs at its end are not shown.
pub(super) fn quoted(text: &[u8], place: Place) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &b in trimmed(text) {
        match (escape(b), place) {
            (Some(_), Place::Member) => out.extend([b'\\', b]),
            (Some(b'n'), Place::ClassicAttribute) => out.extend(b"\\n\",\n\t\t\t\""),
            (Some(b'n'), Place::Row) => out.extend(b"\\n\",\n    \""),
            (Some(c), _) => out.extend([b'\\', c]),
            (None, Place::Row | Place::Member) if !(b' '..=b'~').contains(&b) => {
                out.extend(format!("\\{b:03o}").bytes());
            }
            (None, _) if b.is_ascii_control() => out.extend(format!("\\{b:03o}").bytes()),
            (None, _) => out.push(b),
        }
    }
    out.push(b'"');
    out
}

/// Lines of CDL on their way out.
pub(super) struct Lines<'a> {
    out: &'a mut Out,
    /// Blanks before every line.
    pub(super) indent: usize,
    /// Bytes on the current line, where tokens are counted.
    position: usize,
    /// Most bytes on a line.
    length: usize,
}

impl Lines<'_> {
    pub(super) fn new(out: &mut Out, length: usize) -> Lines<'_> {
        Lines { out, indent: 0, position: 0, length: length.saturating_sub(2) }
    }

    /// Bytes as they are.
    pub(super) fn put(&mut self, text: impl AsRef<[u8]>) -> Outcome<()> {
        self.out.write(text.as_ref())
    }

    /// The blanks at the start of a line.
    pub(super) fn start(&mut self) -> Outcome<()> {
        let blanks = " ".repeat(self.indent);
        self.put(blanks)
    }

    /// Says that the line has `position` bytes, not counting the blanks at its start.
    pub(super) fn at(&mut self, position: usize) {
        self.position = position + self.indent;
    }

    /// A token that is not broken, on a new line if it does not fit on this one.
    pub(super) fn token(&mut self, token: &[u8]) -> Outcome<()> {
        if token.len() + self.position > self.length && token.len() > 2 {
            self.put("\n")?;
            self.start()?;
            self.put("    ")?;
            self.at(4);
        }
        self.put(token)?;
        if token.last() == Some(&b'\n') {
            self.position = self.indent;
        } else {
            self.position += token.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let text = |n: &[u8]| String::from_utf8(name(n)).unwrap();
        assert_eq!(text(b"plain_1.2+3@x-/%"), "plain_1.2+3@x-/%");
        assert_eq!(text(b"2a b(c)"), "\\2a\\ b\\(c\\)");
        assert_eq!(text("é\u{1}".as_bytes()), "é\\%01");
    }

    #[test]
    fn text_is_escaped_by_place() {
        let text = |t: &[u8], place| String::from_utf8(quoted(t, place)).unwrap();
        assert_eq!(text(b"a\tb\0\0", Place::Whole), "\"a\\tb\"");
        assert_eq!(text(b"a\nb", Place::Whole), "\"a\\nb\"");
        assert_eq!(text(b"a\nb", Place::Row), "\"a\\n\",\n    \"b\"");
        assert_eq!(text("é".as_bytes(), Place::ClassicAttribute), "\"é\"");
        assert_eq!(text("é".as_bytes(), Place::Row), "\"\\303\\251\"");
        assert_eq!(text(b"'\x01", Place::Member), "\"\\'\\001\"");
    }
}
