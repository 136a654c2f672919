//! `zmap`: a store as it is, before any format has a say.

use crate::args::Zmap;
use crate::json::Json;
use crate::output::{Out, Outcome};
use hyperslab::array::Location;
use hyperslab::source::{ByteRange, Store};
use hyperslab::{Address, Error, ErrorKind, OpenOptions};

/// Bytes of an object that are in memory at a time.
const PIECE: u64 = 8 << 20;

pub(crate) fn run(look: &Zmap, options: &OpenOptions, out: &mut Out) -> Outcome<()> {
    let open = |address: &Address| Location::store(address, options);
    let (store, stats) = match look {
        Zmap::Ls { store, key, recursive, json, stats } => {
            let store = open(store)?;
            let key = key.as_deref().unwrap_or_default().trim_matches('/');
            ls(store.as_ref(), key, *recursive, *json, out)?;
            (store, stats)
        }
        Zmap::Get { store, key, output: to, stats } => {
            let store = open(store)?;
            let key = key.trim_matches('/');
            match to {
                Some(path) => {
                    let mut out = Out::file(path)?;
                    get(store.as_ref(), key, &mut out)?;
                    out.finish()?;
                }
                None => get(store.as_ref(), key, out)?,
            }
            (store, stats)
        }
    };
    stats.say(store.traffic());
    Ok(())
}

/// Keys with their lengths; without one what only has keys below it.
fn ls(store: &dyn Store, key: &str, deep: bool, json: bool, out: &mut Out) -> Outcome<()> {
    if let Some(length) = if key.is_empty() { None } else { itself(store, key, store.len(key))? } {
        return line(key, Some(length), json, out);
    }
    let mut found: Vec<(String, Option<u64>)> =
        store.lengths(key, deep)?.into_iter().map(|(key, length)| (key, Some(length))).collect();
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}/{name}") };
    if deep {
        let folders: std::collections::BTreeSet<String> =
            found.iter().flat_map(|(held, _)| folders(key, held)).map(str::to_owned).collect();
        found.extend(folders.into_iter().map(|folder| (folder, None)));
    } else {
        found.extend(store.search(key)?.prefixes.iter().map(|name| (below(name), None)));
    }
    if found.is_empty() && !key.is_empty() {
        return Err(absent(store, key).into());
    }
    found.sort();
    found.into_iter().try_for_each(|(key, length)| line(&key, length, json, out))
}

/// What `key` stands below, beneath `top`.
fn folders<'a>(top: &str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let known = if top.is_empty() { 0 } else { top.len() + 1 };
    key.match_indices('/').filter(move |(at, _)| *at >= known).map(|(at, _)| &key[..at])
}

fn line(key: &str, length: Option<u64>, json: bool, out: &mut Out) -> Outcome<()> {
    if json {
        let content = ("content", Json::Bool(length.is_some()));
        return out.line(Json::map([("key", Json::text(key)), content, ("length", length.into())]));
    }
    match length {
        Some(length) => out.line(format_args!("{length:>12}  {key}")),
        None => out.line(format_args!("{:>12}  {key}/", "-")),
    }
}

fn get(store: &dyn Store, key: &str, out: &mut Out) -> Outcome<()> {
    let source = itself(store, key, store.open(key))?.ok_or_else(|| absent(store, key))?;
    let length = source.len()?;
    let mut at = 0;
    while at < length {
        let piece = PIECE.min(length - at);
        for bytes in source.read(&[ByteRange::new(at, piece)])? {
            out.write(&bytes)?;
        }
        at += piece;
    }
    Ok(())
}

/// What was found of the object itself. Of a folder a store says that it is none, which is no error here.
fn itself<T>(store: &dyn Store, key: &str, found: Result<Option<T>, Error>) -> Result<Option<T>, Error> {
    match found {
        Err(e) if e.kind() == ErrorKind::Io && has_below(store, key) => Ok(None),
        found => found,
    }
}

fn has_below(store: &dyn Store, key: &str) -> bool {
    store.search(key).is_ok_and(|next| !next.objects.is_empty() || !next.prefixes.is_empty())
}

fn absent(store: &dyn Store, key: &str) -> Error {
    let what =
        if has_below(store, key) { "has no bytes of its own, only keys below it" } else { "is no key" };
    Error::new(ErrorKind::NotFound, format!("{key} {what} in {}", store.name()))
}
