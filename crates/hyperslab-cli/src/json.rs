//! Canonical JSON: ASCII, sorted keys, no whitespace.

use hyperslab::dtype::quote;
use hyperslab::shape::Name;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// A JSON value whose text is the same for the same content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(i128),
    Text(String),
    List(Vec<Json>),
    Map(BTreeMap<String, Json>),
    /// JSON text as it is.
    Raw(String),
}

impl Json {
    pub(crate) fn text(text: impl fmt::Display) -> Json {
        Json::Text(text.to_string())
    }

    pub(crate) fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Json)>) -> Json {
        Json::Map(entries.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    pub(crate) fn list<T: Into<Json>>(items: impl IntoIterator<Item = T>) -> Json {
        Json::List(items.into_iter().map(Into::into).collect())
    }
}

impl From<u64> for Json {
    fn from(n: u64) -> Self {
        Json::Number(i128::from(n))
    }
}

impl From<Option<u64>> for Json {
    fn from(n: Option<u64>) -> Self {
        n.map_or(Json::Null, Json::from)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Json::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Json::Text(text)
    }
}

impl From<&Name> for Json {
    fn from(name: &Name) -> Self {
        Json::Text(name.to_string())
    }
}

fn string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    quote(&Name::from(text), f)
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(v) => write!(f, "{v}"),
            Json::Number(v) => write!(f, "{v}"),
            Json::Text(text) => string(f, text),
            Json::Raw(text) => f.write_str(text),
            Json::List(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_char(']')
            }
            Json::Map(map) => {
                f.write_char('{')?;
                for (i, (key, value)) in map.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    string(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_ascii_and_keys_are_sorted() {
        let json = Json::map([
            ("b", Json::Null),
            ("a", Json::text("é\u{7f}\"\u{1f600}")),
            ("\u{e9}", Json::from(1)),
        ]);
        assert_eq!(json.to_string(), r#"{"a":"\u00e9\u007f\"\ud83d\ude00","b":null,"\u00e9":1}"#);
    }
}
