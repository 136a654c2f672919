//! Elements as comma-separated values (RFC 4180): one or two axes; the members of a compound are columns.

use super::Read;
use crate::json::Json;
use crate::output::{Failure, Out, Outcome};
use crate::words;
use hyperslab::dtype::DType;
use hyperslab::model::Value;

pub(super) fn write(read: &mut Read<'_>, out: &mut Out) -> Outcome<()> {
    let compound = matches!(read.array.dtype(), DType::Compound { .. });
    let most = if compound { 1 } else { 2 };
    if read.shape.len() > most {
        return Err(Failure::Other(format!(
            "the result has {} axes, but CSV has {most}; select less, such as '{}[0]'",
            read.shape.len(),
            read.array.path()
        )));
    }
    if compound {
        let mut names = Vec::new();
        columns(read.array.dtype(), String::new(), &mut names);
        row(out, names)?;
    }
    if read.is_null() {
        return Ok(());
    }
    let per_row = if read.shape.len() == 2 { read.shape[1].max(1) } else { 1 };
    let mut cells = Vec::new();
    let mut index = 0;
    read.values(|value| {
        flatten(value, compound, &mut cells);
        index += 1;
        if index % per_row == 0 {
            return row(out, std::mem::take(&mut cells));
        }
        Ok(())
    })
}

/// The names of all members, those of nested ones joined by a dot.
fn columns(dtype: &DType, prefix: String, names: &mut Vec<String>) {
    match dtype {
        DType::Compound { fields, .. } => {
            for field in fields {
                let dot = if prefix.is_empty() { "" } else { "." };
                columns(&field.dtype, format!("{prefix}{dot}{}", field.name), names);
            }
        }
        _ => names.push(prefix),
    }
}

pub(crate) fn flatten(value: Value, compound: bool, cells: &mut Vec<String>) {
    match value {
        Value::Compound(_, values) if compound => values.into_iter().for_each(|v| flatten(v, true, cells)),
        value => cells.push(cell(&value)),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Text(text) => text.clone(),
        Value::Complex(_) => value.to_string(),
        Value::List(_) => words::json(value).to_string(),
        Value::Half(_) | Value::Single(_) | Value::Double(_) => value.to_string(),
        other => match words::json(other) {
            Json::Text(text) => text,
            json => json.to_string(),
        },
    }
}

pub(crate) fn row(out: &mut Out, cells: Vec<String>) -> Outcome<()> {
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            out.print(",")?;
        }
        if cell.contains([',', '"', '\n', '\r']) {
            out.print(format_args!("\"{}\"", cell.replace('"', "\"\"")))?;
        } else {
            out.print(cell)?;
        }
    }
    out.line("")
}
