//! The text form of selections: NumPy's subscripts.

use super::selection::{Item, List, Mask, Selection, Slice};
use crate::error::{Error, Result};
use crate::shape::MAX_RANK;
use std::str::FromStr;

impl Selection {
    /// Reads NumPy's subscript syntax, with or without the outer brackets: `[0, 2:10:3, ..., [5, 1, 1], None]`.
    ///
    /// Lists may nest (arrays of indices) or hold `True` and `False` (masks). Lists combine as in NumPy: one list picks
    /// along its axis, several are broadcast and picked from point by point.
    pub fn parse(text: &str) -> Result<Selection> {
        let inner = strip_brackets(text.trim());
        let mut p = Parser { text: inner, at: 0 };
        let mut items = Vec::new();
        p.space();
        if p.rest().is_empty() || p.rest() == "()" {
            return Ok(Selection::all());
        }
        loop {
            items.push(p.item()?);
            p.space();
            match p.peek() {
                None => break,
                Some(b',') => {
                    p.at += 1;
                    p.space();
                    if p.peek().is_none() {
                        break; // A trailing comma, as Python allows.
                    }
                }
                Some(_) => return Err(p.wrong("a comma or the end is wanted")),
            }
        }
        Ok(Selection::vectorised(items))
    }
}

impl FromStr for Selection {
    type Err = Error;
    fn from_str(text: &str) -> Result<Selection> {
        Selection::parse(text)
    }
}

/// Takes the outer brackets off, if the first bracket is closed by the last.
fn strip_brackets(text: &str) -> &str {
    let mut depth = 0usize;
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && i + 1 < text.len() {
                    return text;
                }
            }
            _ if depth == 0 => return text,
            _ => {}
        }
    }
    text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

/// A list on its way: numbers and booleans are not mixed.
#[derive(Default)]
struct Leaves {
    numbers: Vec<i64>,
    booleans: Vec<bool>,
}

impl Leaves {
    fn len(&self) -> usize {
        self.numbers.len() + self.booleans.len()
    }
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn wrong(&self, wanted: &str) -> Error {
        Error::invalid(format!("selection \"{}\": {wanted} at character {}", self.text, self.at + 1))
            .hint("an example is [0, 2:10:3, ..., [5, 1, 1]]")
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn number(&mut self) -> Result<Option<i64>> {
        self.space();
        let start = self.at;
        if matches!(self.peek(), Some(b'-' | b'+')) {
            self.at += 1;
        }
        let digits = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == digits {
            self.at = start;
            return Ok(None);
        }
        let number = self.text.get(start..self.at).and_then(|t| t.parse().ok());
        number.map(Some).ok_or_else(|| {
            self.at = start;
            self.wrong("an integer of 64 bits is wanted")
        })
    }

    fn item(&mut self) -> Result<Item> {
        self.space();
        if self.eat("...") {
            return Ok(Item::Ellipsis);
        }
        for word in ["None", "newaxis", "np.newaxis"] {
            if self.eat(word) {
                return Ok(Item::NewAxis);
            }
        }
        if self.peek() == Some(b'[') {
            return self.list();
        }
        if let Some(value) = self.boolean() {
            return Ok(Item::Mask(Mask::new(Vec::new(), vec![value])?));
        }
        let start = self.number()?;
        self.space();
        if !self.eat(":") {
            return start.map(Item::Index).ok_or_else(|| self.wrong("an index, slice or list is wanted"));
        }
        let stop = self.number()?;
        self.space();
        let step = if self.eat(":") { self.number()?.unwrap_or(1) } else { 1 };
        if step == 0 {
            return Err(self.wrong("a step other than 0 is wanted"));
        }
        Ok(Item::Slice(Slice { start, stop, step }))
    }

    fn boolean(&mut self) -> Option<bool> {
        [("True", true), ("true", true), ("False", false), ("false", false)]
            .into_iter()
            .find(|(word, _)| self.eat(word))
            .map(|(_, value)| value)
    }

    fn list(&mut self) -> Result<Item> {
        let mut leaves = Leaves::default();
        let mut shape = Vec::new();
        self.nested(&mut leaves, &mut shape, 0)?;
        let shape: Vec<u64> = shape.into_iter().map(|n| n.unwrap_or(0)).collect();
        Ok(if leaves.booleans.is_empty() {
            Item::List(List::new(shape, leaves.numbers)?)
        } else {
            Item::Mask(Mask::new(shape, leaves.booleans)?)
        })
    }

    /// Reads one list at `depth`; all lists of a depth have the same length, held in `shape`.
    fn nested(&mut self, leaves: &mut Leaves, shape: &mut Vec<Option<u64>>, depth: usize) -> Result<()> {
        if depth >= MAX_RANK {
            return Err(self.wrong("at most 32 levels of lists are wanted"));
        }
        if shape.len() == depth {
            if leaves.len() > 0 {
                return Err(self.wrong("a list of even depth is wanted"));
            }
            shape.push(None);
        }
        self.at += 1; // The bracket that the caller saw.
        let mut length = 0;
        loop {
            self.space();
            if self.eat("]") {
                break;
            }
            if length > 0 {
                if !self.eat(",") {
                    return Err(self.wrong("a comma or ] is wanted"));
                }
                self.space();
                if self.eat("]") {
                    break;
                }
            }
            if self.peek() == Some(b'[') {
                self.nested(leaves, shape, depth + 1)?;
            } else if shape.len() > depth + 1 {
                return Err(self.wrong("a list of even depth is wanted"));
            } else if let Some(value) = self.boolean() {
                leaves.booleans.push(value);
            } else {
                let value = self.number()?.ok_or_else(|| self.wrong("an integer is wanted"))?;
                leaves.numbers.push(value);
            }
            if !leaves.numbers.is_empty() && !leaves.booleans.is_empty() {
                return Err(self.wrong("either integers or booleans are wanted"));
            }
            length += 1;
        }
        match &mut shape[depth] {
            Some(known) if *known != length => Err(self.wrong("lists of equal length are wanted")),
            known => {
                *known = Some(length);
                Ok(())
            }
        }
    }
}
