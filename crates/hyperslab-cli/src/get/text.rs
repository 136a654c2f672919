//! Elements for people: brackets and columns like NumPy's, summarised where there are many.

use super::slabs::{full, indices};
use super::{Read, nested};
use crate::output::{Out, Outcome};
use hyperslab::Selection;
use hyperslab::model::Value;
use hyperslab::select::{Item, List};

/// Results of more elements are summarised.
const MANY: usize = 1000;
/// Positions shown at each end of an axis of a summary.
const EDGE: u64 = 3;
/// Columns of a line.
const WIDTH: usize = 100;

pub(super) fn write(read: &mut Read<'_>, all: bool, out: &mut Out) -> Outcome<()> {
    if read.is_null() {
        return out.line("null");
    }
    let count = read.count()?;
    if count == 0 {
        return out.line(format_args!("[] of extents {}", crate::words::tuple(&read.shape)));
    }
    if all && count > 100 * MANY {
        return nested::write_as(read, out, |value| value.to_string());
    }
    let (shape, elided, values) = if count <= MANY || all {
        let values = read.values_of(read.selection.clone())?;
        (read.shape.clone(), vec![false; read.shape.len()], values)
    } else {
        summary(read)?
    };
    let plain = values.iter().all(|v| !matches!(v, Value::Compound(..) | Value::List(_)));
    let cells: Vec<String> = values.iter().map(Value::to_string).collect();
    let width = if plain { cells.iter().map(|c| c.chars().count()).max().unwrap_or(0) } else { 0 };
    let number = |v: &Value| v.as_f64().is_some() && !matches!(v, Value::Enum { .. });
    let numbers = values.iter().all(number);
    let table =
        Table { shape: &shape, elided: &elided, cells: &cells, width: width.min(WIDTH), numbers, plain };
    let mut text = String::new();
    table.level(0, 0, &mut text);
    out.line(text)
}

/// The corners of a result, read alone where the selection allows it.
fn summary(read: &mut Read<'_>) -> Outcome<(Vec<u64>, Vec<bool>, Vec<Value>)> {
    let elided: Vec<bool> = read.shape.iter().map(|&n| n > 2 * EDGE + 1).collect();
    let shape: Vec<u64> =
        read.shape.iter().zip(&elided).map(|(&n, &cut)| if cut { 2 * EDGE } else { n }).collect();
    let dims = read.array.shape().to_vec();
    if let Some(items) = full(&read.selection, dims.len()) {
        let mut axis = 0;
        let items = items.into_iter().map(|item| {
            let extent = dims.get(axis).copied().unwrap_or(0);
            axis += usize::from(!matches!(item, Item::NewAxis));
            let Item::Slice(slice) = &item else { return Ok(item) };
            let (start, step, count) = indices(slice, extent);
            if count <= 2 * EDGE + 1 {
                return Ok(item);
            }
            let picks = (0..EDGE).chain(count - EDGE..count).map(|i| start + step * i as i64);
            Ok(Item::List(List::new(vec![2 * EDGE], picks.collect())?))
        });
        let items = items.collect::<hyperslab::Result<Vec<_>>>()?;
        let values = read.values_of(Selection::outer(items))?;
        return Ok((shape, elided, values));
    }
    let values = read.values_of(read.selection.clone())?;
    let mut kept = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        let mut rest = index as u64;
        let mut keep = true;
        for (&n, &cut) in read.shape.iter().zip(&elided).rev() {
            let at = rest % n;
            rest /= n;
            keep &= !cut || at < EDGE || at >= n - EDGE;
        }
        if keep {
            kept.push(value);
        }
    }
    Ok((shape, elided, kept))
}

struct Table<'a> {
    shape: &'a [u64],
    elided: &'a [bool],
    cells: &'a [String],
    width: usize,
    numbers: bool,
    plain: bool,
}

impl Table<'_> {
    /// Writes the part from `axis` on whose first cell is `from`; gives the number of its cells. The rank is at most 32.
    fn level(&self, axis: usize, from: usize, text: &mut String) -> usize {
        let Some(&n) = self.shape.get(axis) else {
            let cell = self.cells.get(from).map_or("", String::as_str);
            text.push_str(cell);
            return 1;
        };
        let last = axis + 1 == self.shape.len();
        text.push('[');
        let mut done = 0;
        let mut column = axis + 1;
        for i in 0..n {
            let gap = self.elided.get(axis) == Some(&true) && i == EDGE;
            if last && self.plain {
                if gap {
                    self.separate(i > 0, 3, &mut column, axis, text);
                    text.push_str("...");
                }
                let cell = self.cells.get(from + done).map_or("", String::as_str);
                self.separate(i > 0, self.width, &mut column, axis, text);
                let pad = " ".repeat(self.width.saturating_sub(cell.chars().count()));
                let padded = if self.numbers { format!("{pad}{cell}") } else { format!("{cell}{pad}") };
                text.push_str(if i + 1 == n && !self.numbers { cell } else { &padded });
                done += 1;
            } else {
                let lines = "\n".repeat(if last { 1 } else { (self.shape.len() - axis - 1).min(2) });
                let indent = " ".repeat(axis + 1);
                if gap {
                    text.push_str(&format!("{lines}{indent}..."));
                }
                if i > 0 {
                    text.push_str(&format!("{lines}{indent}"));
                }
                done += self.level(axis + 1, from + done, text);
            }
        }
        text.push(']');
        done
    }

    /// A space, or a new line where the next cell would not fit.
    fn separate(&self, follows: bool, width: usize, column: &mut usize, axis: usize, text: &mut String) {
        if follows && *column + 1 + width > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(axis + 1));
            *column = axis + 1 + width;
        } else {
            if follows {
                text.push(' ');
            }
            *column += usize::from(follows) + width;
        }
    }
}
