//! The data section: rows along the last axis.

use super::Dump;
use super::text::{Place, name, quoted};
use super::value::{Own, is_fill, number, string};
use crate::args::Language;
use crate::output::{Failure, Outcome, say};
use crate::variable;
use bytes::Bytes;
use hyperslab::convention::netcdf::time::Times;
use hyperslab::convention::netcdf::{Type, Variable};
use hyperslab::dtype::NetcdfType;
use hyperslab::model::{Elements, Value};
use hyperslab::shape::to_usize;
use hyperslab::{Error, ErrorKind, Result};

/// Bytes of a variable in memory at a time, as stored.
const SLAB: u64 = 32 << 20;

/// A variable on its way out.
struct Rows<'a> {
    variable: &'a Variable,
    shape: Vec<u64>,
    /// Whether each axis may grow, which is shown by braces unless it is the first.
    braced: Vec<bool>,
    own: Own,
    times: Option<Times>,
    fill: Option<Value>,
    /// Rows from the `from`-th to the `to`-th along the first axis.
    slab: Option<(u64, u64, Part)>,
}

/// Some elements in memory.
enum Part {
    Text(Bytes),
    Elements(Elements),
}

impl Dump<'_> {
    pub(super) fn data(&mut self, group: usize, variable: &Variable) -> Outcome<()> {
        let shape = self.view.shape(variable);
        if shape.contains(&0) {
            return Ok(());
        }
        let is_unlimited = |&d: &usize| self.view.dimensions().get(d).is_some_and(|d| d.unlimited);
        let mut braced: Vec<bool> = variable.dimensions.iter().map(is_unlimited).collect();
        if let Some(first) = braced.first_mut() {
            *first = false;
        }
        let attribute = |key: &str| variable.attributes.iter().find(|a| a.name.as_bytes() == key.as_bytes());
        let format =
            attribute("C_format").filter(|a| a.kind == Type::Atomic(NetcdfType::Char) && a.length < 100);
        let format = format.map(|a| String::from_utf8_lossy(&a.stored.data).into_owned());
        let own = self.formats.of(variable.kind, format.as_deref());
        let times = self.times(group, variable);
        let mut rows = Rows { variable, shape, braced, own, times, fill: None, slab: None };
        // What can't be read is told before the name appears.
        let ready = rows.fill(self).and_then(|fill| {
            rows.fill = fill;
            rows.load(self, 0)
        });
        if let Err(e) = ready {
            self.complete = false;
            say(format!("hyperslab: variable {}: {e}", variable.path));
            self.lines.put("\n")?;
            self.lines.start()?;
            return self.lines.put(format!("// not shown: {}: {e}\n", variable.name));
        }
        self.lines.put("\n")?;
        self.lines.start()?;
        self.lines.put(" ")?;
        self.lines.put(name(variable.name.as_bytes()))?;
        if rows.shape.len() <= 1 {
            self.lines.put(" = ")?;
            self.lines.at(variable.name.as_bytes().len() + 4);
        } else {
            self.lines.put(" =\n  ")?;
            self.lines.at(2);
        }
        let mut corner = vec![0; rows.shape.len()];
        match rows.print(self, 0, &mut corner, 0) {
            Err(Failure::Library(e)) => {
                self.complete = false;
                say(format!("hyperslab: variable {}: {e}", variable.path));
                self.lines.put(format!("\n// not shown from here on: {e}\n"))
            }
            other => other,
        }
    }
}

impl Rows<'_> {
    /// The value that is shown as `_`.
    fn fill(&self, dump: &Dump<'_>) -> Result<Option<Value>> {
        let v = self.variable;
        let own = v.attributes.iter().find(|a| a.name.as_bytes() == b"_FillValue");
        if let Some(a) = own.filter(|a| a.kind == v.kind && a.length == 1) {
            let elements = a.elements(&**dump.file.hierarchy(), dump.file_limit())?;
            return elements.value(0).map(Some);
        }
        Ok(match v.kind {
            Type::Atomic(NetcdfType::Short) => Some(Value::Integer(-32767)),
            Type::Atomic(NetcdfType::Int) => Some(Value::Integer(-2147483647)),
            Type::Atomic(NetcdfType::Float) => Some(Value::Single(9.969_21e36)),
            Type::Atomic(NetcdfType::Double) => Some(Value::Double(9.969_209_968_386_869e36)),
            Type::Atomic(NetcdfType::UShort) => Some(Value::Integer(65535)),
            Type::Atomic(NetcdfType::UInt) => Some(Value::Integer(4294967295)),
            Type::Atomic(NetcdfType::Int64) => Some(Value::Integer(-9223372036854775806)),
            Type::Atomic(NetcdfType::UInt64) => Some(Value::Integer(18446744073709551614)),
            Type::String => Some(Value::Text(String::new())),
            _ => None,
        })
    }

    /// Reads the slab that holds row `first` along the first axis.
    fn load(&mut self, dump: &Dump<'_>, first: u64) -> Result<()> {
        if self.slab.as_ref().is_some_and(|(from, to, _)| (*from..*to).contains(&first)) {
            return Ok(());
        }
        self.slab = None;
        let size = self.variable.meta.dtype.size();
        let rest = self.shape.iter().skip(1).fold(size as u64, |n, &d| n.saturating_mul(d)).max(1);
        let length = self.shape.first().copied().unwrap_or(1);
        let mut to = length.min(first.saturating_add((SLAB / rest).max(1)));
        let stored = loop {
            match variable::read(dump.file, dump.view, self.variable, first..to) {
                // Of a file that is cut, what is there is shown.
                Err(e) if e.kind() == ErrorKind::Truncated && to - first > 1 => {
                    to = first + (to - first).div_ceil(2);
                }
                read => break read?,
            }
        };
        let count = to_usize((to - first).saturating_mul(rest) / (size.max(1) as u64))?;
        let part = match self.variable.kind {
            Type::Atomic(NetcdfType::Char) => Part::Text(stored),
            _ => {
                let dtype = &self.variable.meta.dtype;
                let limit = dump.file_limit();
                Part::Elements(Elements::decode(&**dump.file.hierarchy(), dtype, stored, count, limit)?)
            }
        };
        self.slab = Some((first, to, part));
        Ok(())
    }

    /// The place in the slab of the row at `corner`.
    fn place(&self, corner: &[u64]) -> Result<usize> {
        let from = self.slab.as_ref().map_or(0, |(from, ..)| *from);
        let mut place = 0u64;
        for (axis, (&at, &length)) in corner.iter().zip(&self.shape).enumerate() {
            let at = if axis == 0 { at - from.min(at) } else { at };
            place = place.saturating_mul(length).saturating_add(at);
        }
        to_usize(place)
    }

    fn print(
        &mut self,
        dump: &mut Dump<'_>,
        level: usize,
        corner: &mut Vec<u64>,
        pending: usize,
    ) -> Outcome<()> {
        let mut pending = pending;
        if level > 0 && self.braced.get(level).copied().unwrap_or(false) {
            dump.lines.token(b"{")?;
            pending += 1;
        }
        if corner.len() > level + 1 {
            let length = self.shape.get(level).copied().unwrap_or(0);
            for i in 0..length {
                if let Some(at) = corner.get_mut(level) {
                    *at = i;
                }
                let pending = if i + 1 == length { pending } else { 0 };
                self.print(dump, level + 1, corner, pending)?;
            }
            if let Some(at) = corner.get_mut(level) {
                *at = 0;
            }
            return Ok(());
        }
        self.row(dump, corner, pending)
    }

    fn row(&mut self, dump: &mut Dump<'_>, corner: &[u64], pending: usize) -> Outcome<()> {
        let rank = corner.len();
        let length = self.shape.last().copied().unwrap_or(1);
        if rank > 1
            && let Some(language) = dump.arguments.brief
        {
            self.brief(dump, corner, language)?;
        }
        let full = dump.arguments.full;
        // Of one axis the row may be longer than a slab.
        let chunked = rank == 1;
        let mut last = Vec::new();
        if self.variable.kind == Type::Atomic(NetcdfType::Char) {
            let mut text = Vec::new();
            if chunked {
                let mut at = 0;
                while at < length {
                    self.load(dump, at)?;
                    let Some((_, to, Part::Text(part))) = &self.slab else { return Err(lost().into()) };
                    text.extend_from_slice(part);
                    at = *to;
                }
            } else {
                self.load(dump, corner.first().copied().unwrap_or(0))?;
                let start = self.place(corner)?;
                let Some((_, _, Part::Text(part))) = &self.slab else { return Err(lost().into()) };
                let end = start.saturating_add(to_usize(length)?);
                text.extend_from_slice(part.get(start..end).ok_or_else(lost)?);
            }
            dump.lines.put(quoted(&text, Place::Row))?;
        } else {
            let mut at = corner.to_vec();
            for i in 0..length {
                if let Some(inner) = at.last_mut() {
                    *inner = i;
                }
                self.load(dump, at.first().copied().unwrap_or(0))?;
                let place = self.place(&at)?;
                let mut token = self.element(dump, place)?;
                if i + 1 == length {
                    last = token;
                } else if let Some(language) = full {
                    token.extend(b", ");
                    dump.lines.put(token)?;
                    self.annotate(dump, corner, i, language)?;
                } else {
                    token.extend(b", ");
                    dump.lines.token(&token)?;
                }
            }
        }
        last.extend(std::iter::repeat_n(b'}', pending));
        let outer = corner.iter().zip(&self.shape).take(rank.saturating_sub(1));
        let is_last = outer.into_iter().all(|(at, length)| at + 1 == *length);
        if let Some(language) = full {
            dump.lines.put(last)?;
            dump.lines.put(if is_last { ";" } else { "," })?;
            return self.annotate(dump, corner, length.saturating_sub(1), language);
        }
        dump.lines.token(&last)?;
        if is_last {
            dump.lines.token(b" ;")?;
            dump.lines.token(b"\n")
        } else {
            dump.lines.token(b",\n")?;
            dump.lines.token(b"  ")
        }
    }

    fn element(&self, dump: &Dump<'_>, place: usize) -> Result<Vec<u8>> {
        let Some((_, _, Part::Elements(elements))) = &self.slab else { return Err(lost()) };
        let value = elements.value(place)?;
        if self.fill.as_ref().is_some_and(|fill| is_fill(fill, &value)) {
            return Ok(b"_".to_vec());
        }
        if let Some(text) = self.times.as_ref().and_then(|times| times.text(number(&value)?)) {
            return Ok(format!("\"{text}\"").into_bytes());
        }
        Ok(match (self.variable.kind, &value) {
            (Type::String, Value::Text(text)) => string(text.as_bytes()),
            (Type::String, Value::Bytes(bytes)) => string(bytes),
            (Type::String, _) => b"NIL".to_vec(),
            (Type::User(_), value) => dump.formats.value(dump.view, &self.variable.meta.dtype, value),
            (_, value) => dump.formats.element(&self.own, value).into_bytes(),
        })
    }

    /// Names a row in a comment.
    fn brief(&self, dump: &mut Dump<'_>, corner: &[u64], language: Language) -> Outcome<()> {
        let length = self.shape.last().copied().unwrap_or(0);
        let outer = &corner[..corner.len().saturating_sub(1)];
        let mut text = String::new();
        match language {
            Language::C => {
                outer.iter().for_each(|at| text.push_str(&format!("{at},")));
                text.push_str(&if length == 1 { "0".to_string() } else { format!(" 0-{}", length - 1) });
            }
            Language::F => {
                text.push_str(&if length == 1 { "1".to_string() } else { format!("1-{length} ") });
                outer.iter().rev().for_each(|at| text.push_str(&format!(",{}", at + 1)));
            }
        }
        dump.lines.put("// ")?;
        dump.lines.put(name(self.variable.name.as_bytes()))?;
        dump.lines.put(format!("({text})\n"))?;
        dump.lines.start()?;
        dump.lines.put("    ")?;
        dump.lines.at(4);
        Ok(())
    }

    /// Names an element in a comment.
    fn annotate(&self, dump: &mut Dump<'_>, corner: &[u64], i: u64, language: Language) -> Outcome<()> {
        let outer = &corner[..corner.len().saturating_sub(1)];
        let mut parts: Vec<String> = Vec::new();
        match language {
            Language::C => {
                parts.extend(outer.iter().map(u64::to_string));
                parts.push(i.to_string());
            }
            Language::F => {
                parts.push((i + 1).to_string());
                parts.extend(outer.iter().rev().map(|at| (at + 1).to_string()));
            }
        }
        dump.lines.put("  // ")?;
        dump.lines.put(name(self.variable.name.as_bytes()))?;
        dump.lines.put(format!("({})\n    ", parts.join(",")))
    }
}

fn lost() -> Error {
    Error::new(hyperslab::ErrorKind::Corrupt, "fewer elements were read than there are")
}
