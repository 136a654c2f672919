//! Codecs as they are given to a copy.

use crate::codec::{FilterSpec, SPELLINGS};
use crate::error::{Error, Result};
use crate::json::Json;

/// Reads codecs in the order in which they encode: `none`; names joined by `+`, each with a level behind `=`
/// (`shuffle+zstd=3`, `blosc-lz4=5`); or the JSON of a codec of Zarr, or of a list of them.
pub fn parse_codecs(text: &str) -> Result<Vec<FilterSpec>> {
    let text = text.trim();
    if text == "none" {
        return Ok(Vec::new());
    }
    if text.starts_with(['[', '{']) {
        let json = Json::parse(text.as_bytes())?;
        return match &json {
            Json::List(items) => items.iter().map(of_json).collect(),
            one => Ok(vec![of_json(one)?]),
        };
    }
    text.split('+').map(|part| of_name(part.trim())).collect()
}

fn of_json(json: &Json) -> Result<FilterSpec> {
    let name = json.get("id").or_else(|| json.get("name")).and_then(Json::as_str);
    let name = name.ok_or_else(|| Error::invalid(format!("the codec {json} has no name")))?;
    let configuration = match json.get("configuration") {
        Some(configuration) => configuration.clone(),
        None => Json::Map(
            json.as_map().unwrap_or(&[]).iter().filter(|(n, _)| n != "id" && n != "name").cloned().collect(),
        ),
    };
    Ok(FilterSpec::Zarr { name: name.to_owned(), configuration })
}

fn of_name(part: &str) -> Result<FilterSpec> {
    let (name, level) = match part.split_once('=') {
        Some((name, level)) => {
            let number: i128 = level
                .parse()
                .map_err(|_| Error::invalid(format!("{level:?} is no level, in the codec {part}")))?;
            (name, Some(number))
        }
        None => (part, None),
    };
    let (id, cname) = match name {
        "deflate" => ("zlib", None),
        "zstandard" => ("zstd", None),
        "bzip2" => ("bz2", None),
        name => match name.split_once('-') {
            Some(("blosc", cname)) => ("blosc", Some(cname)),
            _ => (name, None),
        },
    };
    if !SPELLINGS.iter().any(|s| s.id == id && s.encodes) {
        return Err(Error::unsupported(format_args!("writing with the codec {name:?}"))
            .hint("hyperslab codecs lists them"));
    }
    let mut members = Vec::new();
    if let Some(cname) = cname {
        members.push(("cname".to_owned(), Json::Text(cname.to_owned())));
    }
    if let Some(level) = level {
        let member = if id == "blosc" { "clevel" } else { "level" };
        members.push((member.to_owned(), Json::Integer(level)));
    }
    Ok(FilterSpec::Zarr { name: id.to_owned(), configuration: Json::Map(members) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_named_or_spelled() {
        let names = |text: &str| -> Vec<String> {
            let specs = parse_codecs(text).unwrap();
            let name = |spec: FilterSpec| match spec {
                FilterSpec::Zarr { name, configuration } => format!("{name}{configuration}"),
                _ => String::new(),
            };
            specs.into_iter().map(name).collect()
        };
        assert_eq!(names("shuffle+zlib=3"), ["shuffle{}", "zlib{\"level\":3}"]);
        assert_eq!(names("blosc-lz4=5"), ["blosc{\"cname\":\"lz4\",\"clevel\":5}"]);
        assert_eq!(names("none"), Vec::<String>::new());
        assert_eq!(names("{\"id\":\"zlib\",\"level\":1}"), ["zlib{\"level\":1}"]);
        assert_eq!(names("[{\"name\":\"gzip\",\"configuration\":{\"level\":2}}]"), ["gzip{\"level\":2}"]);
        for wrong in ["zlob", "zlib=x", "{}", "["] {
            assert!(parse_codecs(wrong).is_err(), "{wrong}");
        }
    }
}
