//! `follow`: new rows, as they come.

use crate::args::{Follow, RowFormat};
use crate::get::{csv, packing};
use crate::json::Json;
use crate::output::{self, Failure, Out, Outcome};
use crate::words;
use hyperslab::follow::{Event, FollowOptions, FollowStats, From, Part, Rows, Stop};
use hyperslab::model::Value;
use hyperslab::{Cancel, Error, OpenOptions};
use std::time::Duration;

/// Follows arrays; false if rows were announced that never came.
pub(crate) fn run(arguments: &Follow, options: &OpenOptions, out: &mut Out) -> Outcome<bool> {
    if let Some(at) = &arguments.version.at {
        let text = format!("following the version {at}: what was committed does not change");
        return Err(hyperslab::Error::unsupported(text).into());
    }
    let address = &arguments.address;
    let mut paths: Vec<&str> = arguments.datasets.iter().map(String::as_str).collect();
    if !paths.is_empty() && address.path != "/" {
        paths.insert(0, &address.path);
    }
    let cancel = Cancel::new();
    let stop = cancel.clone();
    ctrlc::set_handler(move || stop.cancel())
        .map_err(|e| Failure::Other(format!("cannot wait for signals: {e}")))?;
    let interrupted = cancel.clone();
    let mut wanted = FollowOptions::new()
        .with_from(arguments.from)
        .with_interval(Duration::from_millis(arguments.interval))
        .with_cancel(cancel)
        .with_open(options.clone());
    wanted.idle = arguments.idle_timeout;
    wanted.settle = arguments.settle;
    wanted.rows = arguments.rows;
    let mut follow = hyperslab::follow::follow(address.clone(), &paths, wanted)?;
    let mut written = 0;
    let done = follow.by_ref().try_for_each(|event| {
        match event? {
            Event::Rows(rows) => written += write(&rows, arguments.format, &interrupted, out)?,
            Event::Shrunk { path, from, to } => {
                let on = match arguments.from {
                    From::Row(row) if row > to => format!("waiting for row {row}"),
                    _ => "going on from its new end".into(),
                };
                output::say(format_args!("note: {path} has {to} rows, it had {from}; {on}"));
            }
            Event::Replaced { left } => {
                let lost = match left {
                    0 => String::new(),
                    n => format!("; {n} rows that the old one announced were not written"),
                };
                let from = if let From::Row(row) = arguments.from { row } else { 0 };
                output::say(format_args!(
                    "note: another file took the place of {}, or it is written anew{lost}; going on from its row {from}",
                    address.file
                ));
            }
            _ => {}
        }
        Ok(())
    });
    let mut stats = follow.stats();
    if !matches!(done, Err(Failure::ClosedPipe)) {
        stats.waiting += stats.rows.saturating_sub(written);
        stats.rows = written;
        output::say(summary(&stats, follow.fault()));
    }
    done.map(|()| stats.stop != Some(Stop::Idle) || stats.waiting == 0)
}

/// What was done, in one line.
fn summary(stats: &FollowStats, fault: Option<&Error>) -> String {
    let ms = |d: Duration| format!("{:.1} ms", d.as_secs_f64() * 1e3);
    let waiting = match (stats.waiting, stats.unwanted) {
        (0, 0) => String::new(),
        (0, n) => format!(", {n} more not asked for"),
        (n, _) if stats.stop == Some(Stop::Cancelled) => format!(", {n} announced and not printed"),
        (n, _) => format!(", {n} announced and not written as far as can be told"),
    };
    let fault = match fault {
        Some(e) => format!("; the last look failed: {e}"),
        None if stats.stop == Some(Stop::Idle) && stats.waiting > 0 => {
            "; if their writer is done and fill is what it wrote, --settle S gives them after S seconds"
                .into()
        }
        None => String::new(),
    };
    let stop = match stats.stop {
        Some(Stop::Closed) => "the writer closed the file",
        Some(Stop::Idle) => "nothing came any more",
        Some(Stop::Rows) => "all wanted rows came",
        Some(Stop::Cancelled) => "interrupted",
        Some(Stop::Failed) | None => "failed",
    };
    format!(
        "{} rows{waiting}, {} retries, delay p50 {}, p99 {}: {stop}{fault}",
        stats.rows,
        stats.retries,
        ms(stats.delay_p50),
        ms(stats.delay_p99)
    )
}

/// Writes rows until it is interrupted, gives each to its reader at once, and says how many.
fn write(rows: &Rows, format: RowFormat, interrupted: &Cancel, out: &mut Out) -> Outcome<u64> {
    for row in 0..rows.count {
        if interrupted.is_cancelled() {
            return Ok(row);
        }
        match format {
            RowFormat::Raw => {
                for part in &rows.parts {
                    out.write(&packed(part, row)?)?;
                }
            }
            RowFormat::Csv => {
                let mut cells = Vec::new();
                for part in &rows.parts {
                    values(part, row)?.into_iter().for_each(|value| csv::flatten(value, true, &mut cells));
                }
                csv::row(out, cells)?;
            }
            RowFormat::Json => {
                let own = rows.parts.iter().map(|part| nested(part, row)).collect::<Outcome<Vec<Value>>>()?;
                // A line is an array, also of one array of one axis.
                let line = match (&rows.parts[..], &own[..]) {
                    ([part], [row]) if part.shape.len() > 1 => words::json(row),
                    _ => Json::list(own.iter().map(words::json)),
                };
                out.line(line)?;
            }
            RowFormat::Text => {
                let cells = rows.parts.iter().map(|part| Ok(nested(part, row)?.to_string()));
                out.line(cells.collect::<Outcome<Vec<String>>>()?.join("  "))?;
            }
        }
        out.flush()?;
    }
    Ok(rows.count)
}

/// Elements of one row.
fn per_row(part: &Part) -> u64 {
    part.shape.iter().skip(1).product()
}

/// The elements of a row, in C order.
fn values(part: &Part, row: u64) -> Outcome<Vec<Value>> {
    let count = per_row(part);
    let at = |i: u64| usize::try_from(i).unwrap_or(usize::MAX);
    (at(row * count)..at((row + 1) * count)).map(|i| Ok(part.elements.value(i)?)).collect()
}

/// A row as one value: nested lists.
fn nested(part: &Part, row: u64) -> Outcome<Value> {
    Ok(Value::nest(part.shape.get(1..).unwrap_or(&[]), values(part, row)?))
}

/// A row, packed.
fn packed(part: &Part, row: u64) -> Outcome<Vec<u8>> {
    let packing = packing(&part.array)?;
    let count = usize::try_from(per_row(part)).unwrap_or(usize::MAX);
    let length = count.saturating_mul(part.array.dtype().size());
    let start = usize::try_from(row).unwrap_or(usize::MAX).saturating_mul(length);
    let stored = part.bytes.get(start..start.saturating_add(length)).unwrap_or(&[]);
    if packing.is_identity() {
        return Ok(stored.to_vec());
    }
    let mut out = Vec::new();
    packing.pack(stored, count, &mut out)?;
    Ok(out)
}
