//! `codecs`: what arrays may be encoded with, in every spelling.

use crate::args::Codecs;
use crate::output::{Out, Outcome};
use hyperslab::codec::SPELLINGS;

pub(crate) fn run(arguments: &Codecs, out: &mut Out) -> Outcome<()> {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let width = SPELLINGS.iter().map(|s| s.id.len()).max().unwrap_or(0);
    for spelling in SPELLINGS {
        let works = if spelling.encodes { "encode, decode" } else { "decode" };
        let number = spelling.hdf5.map(|hdf5| hdf5.number);
        let line = if arguments.json {
            let or_null = |json: &str| if json.is_empty() { "null".to_owned() } else { json.to_owned() };
            format!(
                r#"{{"id":{},"hdf5":{},"numcodecs":{},"v3":{},"encode":{},"decode":true}}"#,
                serde_json::Value::from(spelling.id),
                number.map_or("null".to_owned(), |n| n.to_string()),
                or_null(spelling.numcodecs),
                or_null(spelling.v3),
                spelling.encodes,
            )
        } else {
            format!(
                "{:width$}  {:>5}  {:14}  {}  {}",
                spelling.id,
                number.map_or("-".to_owned(), |n| n.to_string()),
                works,
                or_dash(spelling.numcodecs),
                or_dash(spelling.v3),
            )
        };
        out.line(&line)?;
    }
    Ok(())
}
