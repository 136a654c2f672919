//! Values as they are written on the command line.

use hyperslab::Error;
use hyperslab::dtype::DType;
use hyperslab::json::Json;
use hyperslab::staged::Values;

/// JSON, or else text, with its extents.
pub(crate) enum Given {
    Integers(Vec<u64>, Vec<i64>),
    Unsigned(Vec<u64>, Vec<u64>),
    Floats(Vec<u64>, Vec<f64>),
    Texts(Vec<u64>, Vec<String>),
    /// Elements as they are stored.
    Stored(Vec<u64>, DType, Vec<u8>),
}

impl Given {
    pub(crate) fn parse(text: &str) -> hyperslab::Result<Given> {
        match Json::parse(text.as_bytes()) {
            Ok(json) => Given::of(&json, text),
            Err(_) => Ok(Given::Texts(Vec::new(), vec![text.to_owned()])),
        }
    }

    /// Values for elements of `dtype` in an array of these extents: numbers in the place of words such as "NaN", texts in
    /// the place of numbers, and characters in that of texts.
    pub(crate) fn parse_for(text: &str, dtype: &DType, extents: &[u64]) -> hyperslab::Result<Given> {
        let given = Given::parse(text)?;
        Ok(match given {
            Given::Integers(shape, _) | Given::Unsigned(shape, _) | Given::Floats(shape, _)
                if is_text(dtype) && shape.is_empty() =>
            {
                Given::Texts(shape, vec![text.to_owned()]).fitted(dtype, extents)
            }
            other => other.fitted(dtype, extents),
        })
    }

    /// Rows in JSON: a list of them, or one after the other.
    pub(crate) fn rows(text: &[u8], dtype: &DType, row: &[u64]) -> hyperslab::Result<Given> {
        let wrong = |e: Error| e.context("rows in JSON");
        let text =
            std::str::from_utf8(text).map_err(|_| Error::invalid("rows in JSON that are not UTF-8"))?;
        let mut rows: Vec<Json> = Vec::new();
        let depth = row.len();
        match Json::parse(text.as_bytes()) {
            Ok(whole) if levels(&whole) == depth + 1 => match whole {
                Json::List(items) => rows = items,
                other => rows.push(other),
            },
            _ => {
                for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                    let row = Json::parse(line.as_bytes());
                    rows.push(row.map_err(|e| wrong(e.context(format!("line {}", i + 1))))?);
                }
            }
        }
        if rows.is_empty() {
            return Ok(Given::Texts(vec![0], Vec::new()));
        }
        let mut extents = vec![rows.len() as u64];
        extents.extend(row);
        Ok(Given::of(&Json::List(rows), "the rows").map_err(wrong)?.fitted(dtype, &extents))
    }

    fn of(json: &Json, text: &str) -> hyperslab::Result<Given> {
        let (mut shape, mut level) = (Vec::new(), vec![json]);
        while let Some(Json::List(first)) = level.first() {
            let length = first.len();
            let mut inner = Vec::new();
            for item in &level {
                match item {
                    Json::List(items) if items.len() == length => inner.extend(items),
                    _ => {
                        return Err(Error::invalid(format!(
                            "{text} is no array: its lists differ in length"
                        )));
                    }
                }
            }
            shape.push(length as u64);
            level = inner;
        }
        let integer = |j: &&Json| match j {
            Json::Bool(v) => Some(i128::from(*v)),
            Json::Integer(v) => Some(*v),
            _ => None,
        };
        if let Some(numbers) = level.iter().map(integer).collect::<Option<Vec<i128>>>() {
            if let Some(numbers) = numbers.iter().map(|&n| i64::try_from(n).ok()).collect() {
                return Ok(Given::Integers(shape, numbers));
            }
            return match numbers.iter().map(|&n| u64::try_from(n).ok()).collect() {
                Some(numbers) => Ok(Given::Unsigned(shape, numbers)),
                None => Err(Error::invalid(format!("{text} has integers that 64 bits do not hold"))
                    .hint("write 1e20 for a floating-point number, or quotes for a text")),
            };
        }
        // Words alone are texts.
        let words = level.iter().all(|j| j.as_str().is_some());
        if !words && let Some(numbers) = level.iter().map(|j| number(j)).collect() {
            return Ok(Given::Floats(shape, numbers));
        }
        match level.iter().map(|j| j.as_str().map(str::to_owned)).collect() {
            Some(texts) => Ok(Given::Texts(shape, texts)),
            None if shape.is_empty() => Ok(Given::Texts(shape, vec![text.to_owned()])),
            None => Err(Error::invalid(format!("{text} is neither all numbers nor all texts"))
                .hint("write NaN for a number that is none")),
        }
    }

    /// The same for elements of `dtype`.
    fn fitted(self, dtype: &DType, extents: &[u64]) -> Given {
        let Given::Texts(mut shape, texts) = self else { return self };
        let is_number = matches!(dtype, DType::Integer(_) | DType::Float(_));
        if is_number && let Some(numbers) = texts.iter().map(|t| word(t)).collect() {
            return Given::Floats(shape, numbers);
        }
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        // The last axis is that of the characters.
        if matches!(dtype, DType::String { size: 1, .. })
            && let Some(room) = extents.last().and_then(|&n| usize::try_from(n).ok())
            && longest <= room
            && (longest > 1 || shape.len() < extents.len() && !shape.is_empty())
        {
            let mut bytes = Vec::new();
            for text in &texts {
                bytes.extend_from_slice(text.as_bytes());
                bytes.resize(bytes.len() + room - text.len(), 0);
            }
            shape.push(room as u64);
            return Given::Stored(shape, dtype.clone(), bytes);
        }
        Given::Texts(shape, texts)
    }

    /// The extents of the values.
    pub(crate) fn shape(&self) -> &[u64] {
        match self {
            Given::Integers(shape, _)
            | Given::Unsigned(shape, _)
            | Given::Floats(shape, _)
            | Given::Texts(shape, _)
            | Given::Stored(shape, ..) => shape,
        }
    }

    pub(crate) fn with<T>(
        &self,
        run: impl FnOnce(Values<'_>) -> hyperslab::Result<T>,
    ) -> hyperslab::Result<T> {
        match self {
            Given::Integers(shape, numbers) => run(Values::new(shape, numbers)?),
            Given::Unsigned(shape, numbers) => run(Values::new(shape, numbers)?),
            Given::Floats(shape, numbers) => run(Values::new(shape, numbers)?),
            Given::Texts(shape, texts) => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                run(Values::texts(shape, &texts)?)
            }
            Given::Stored(shape, dtype, bytes) => run(Values::stored(shape, dtype, bytes)?),
        }
    }
}

fn is_text(dtype: &DType) -> bool {
    matches!(dtype, DType::String { .. } | DType::VarString { .. } | DType::Utf32 { .. })
}

/// How deep lists are nested, by the first of each.
fn levels(json: &Json) -> usize {
    let (mut depth, mut at) = (0, Some(json));
    while let Some(Json::List(items)) = at {
        depth += 1;
        at = items.first();
    }
    depth
}

/// A number, or the word for one that is not finite.
fn number(json: &Json) -> Option<f64> {
    json.as_f64().or_else(|| word(json.as_str()?))
}

fn word(text: &str) -> Option<f64> {
    match text {
        "NaN" | "nan" => Some(f64::NAN),
        "Infinity" | "inf" => Some(f64::INFINITY),
        "-Infinity" | "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}
