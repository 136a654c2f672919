//! Elements as nested JSON arrays.

use super::Read;
use crate::output::{Out, Outcome};
use crate::words;
use hyperslab::model::Value;

pub(super) fn write(read: &mut Read<'_>, out: &mut Out) -> Outcome<()> {
    write_as(read, out, |value| words::json(value).to_string())
}

/// Nested lists of elements in any spelling, written as they are read.
pub(super) fn write_as(read: &mut Read<'_>, out: &mut Out, spell: impl Fn(&Value) -> String) -> Outcome<()> {
    if read.is_null() {
        return out.line("null");
    }
    let shape = read.shape.clone();
    if shape.contains(&0) {
        return out.line(empty(&shape));
    }
    // Elements below one position of each axis: a list opens where their count divides the index.
    let mut strides = Vec::new();
    let mut below = 1u64;
    for &extent in shape.iter().rev() {
        below = below.saturating_mul(extent);
        strides.push(below);
    }
    let mut index = 0u64;
    read.values(|value| {
        if index > 0 {
            out.print(",")?;
        }
        let opens = strides.iter().take_while(|s| index.is_multiple_of(**s)).count();
        out.print("[".repeat(opens))?;
        out.print(spell(&value))?;
        index += 1;
        let closes = strides.iter().take_while(|s| index.is_multiple_of(**s)).count();
        out.print("]".repeat(closes))
    })?;
    out.line("")
}

/// Lists down to the first axis without elements; too many of them are one empty list.
fn empty(shape: &[u64]) -> String {
    let mut text = "[]".to_string();
    let outer = shape.iter().take_while(|&&n| n > 0);
    for &n in outer.collect::<Vec<_>>().into_iter().rev() {
        let repeated = usize::try_from(n).ok().filter(|n| n.saturating_mul(text.len()) < 1 << 20);
        let Some(repeated) = repeated else { return "[]".into() };
        text = format!("[{}]", vec![text; repeated].join(","));
    }
    text
}
