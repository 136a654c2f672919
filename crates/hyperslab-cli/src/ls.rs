//! `ls`: one line an object.

use crate::args::Ls;
use crate::json::Json;
use crate::output::{self, Out, Outcome, Style};
use crate::words::{self, Paths, Stored};
use hyperslab::array::{Array, Entry, Item};
use hyperslab::model::{AttributeEntry, Dataspace};
use hyperslab::{Object, OpenOptions};

/// One line before it is laid out.
struct Row {
    name: String,
    style: Option<Style>,
    text: String,
    /// Lines below it.
    more: Vec<String>,
}

/// Lists objects; false if something that is there could not be shown.
pub(crate) fn run(arguments: &Ls, options: &OpenOptions, out: &mut Out) -> Outcome<bool> {
    let address = &arguments.address;
    let file = crate::output::open_at(address.clone(), &arguments.version, options)?;
    let object = file.get(&address.path)?;
    let paths = Paths::new(&file);
    let whole = address.path == "/";
    let deep = arguments.recursive || whole;
    let mut rows = Vec::new();
    let (start, walk) = match &object {
        Object::Group(group) => (group.path().to_string(), file.walk_from(group)),
        _ => {
            let path = object.path().to_string();
            if arguments.json {
                out.line(described(&path, Ok(&object)))?;
            } else {
                rows.push(row(path, Ok(&object), arguments.long, &paths));
                print(rows, out)?;
            }
            return Ok(true);
        }
    };
    let mut whole_shown = true;
    for entry in walk {
        let below = relative(&entry.path, &start);
        let is_listed = is_listed(&entry.item);
        // A walk goes into every group; without -r only the first level is shown, and of the group itself what is wrong.
        if !deep && (below.is_empty() && is_listed || below.contains('/')) {
            continue;
        }
        let object = match entry.item {
            Item::Group(..) | Item::Object(..) => Some(entry.open(&file)),
            _ => None,
        };
        whole_shown &= is_listed && !matches!(object, Some(Err(_)));
        let depth = below.matches('/').count();
        let tree = whole && !arguments.recursive;
        let name = match below.rsplit_once('/') {
            _ if below.is_empty() => entry.path.clone(),
            Some((_, last)) if tree => format!("{}{last}", "  ".repeat(depth + 1)),
            None if tree => format!("  {below}"),
            _ if deep => entry.path.clone(),
            _ => below.to_string(),
        };
        if arguments.json {
            out.line(line(&entry, object.as_ref()))?;
        } else {
            rows.push(entry_row(&entry, object.as_ref(), name, arguments.long, &paths));
        }
        // Long listings start to appear before the walk is over.
        if rows.len() >= 5_000 {
            print(std::mem::take(&mut rows), out)?;
        }
    }
    print(rows, out)?;
    arguments.stats.say(file.traffic());
    Ok(whole_shown)
}

/// Whether an item is there, and all of what is in it, if it is a group, is known.
fn is_listed(item: &Item) -> bool {
    match item {
        Item::Group(_, links) => links.as_ref().is_ok_and(|links| links.faults.is_empty()),
        Item::Fault(..) => false,
        _ => true,
    }
}

/// The path below `start`, empty for `start` itself.
fn relative<'a>(path: &'a str, start: &str) -> &'a str {
    let below = if start == "/" { path.get(1..) } else { path.get(start.len()..) };
    below.unwrap_or("").trim_start_matches('/')
}

/// Aligns the names and writes the lines.
fn print(rows: Vec<Row>, out: &mut Out) -> Outcome<()> {
    let width = rows.iter().map(|r| r.name.chars().count()).max().unwrap_or(0).min(48);
    for row in rows {
        let pad = " ".repeat(width.saturating_sub(row.name.chars().count()));
        let name = match row.style {
            Some(style) => out.paint(style, &row.name),
            None => row.name,
        };
        out.line(format_args!("{name}{pad}  {}", row.text))?;
        for more in row.more {
            out.line(out.paint(Style::Faint, format_args!("      {more}")))?;
        }
    }
    Ok(())
}

/// An object as it was opened, where an item is one.
type Opened<'a> = Option<&'a hyperslab::Result<Object>>;

fn entry_row(entry: &Entry, object: Opened<'_>, name: String, long: bool, paths: &Paths<'_>) -> Row {
    let link = |text: String| Row { name: name.clone(), style: Some(Style::Cyan), text, more: Vec::new() };
    if let Some(object) = object {
        let mut row = row(name, object.as_ref(), long, paths);
        if let (Ok(_), Item::Group(_, links)) = (object, &entry.item) {
            row.text = match links {
                Ok(links) => {
                    let faults = match links.faults.first() {
                        None => String::new(),
                        Some(first) => format!(", {} unreadable: {}", links.faults.len(), first.error),
                    };
                    let members = if links.links.len() == 1 { "member" } else { "members" };
                    format!("group, {} {members}{faults}", links.links.len())
                }
                Err(e) => format!("group, {e}"),
            };
        }
        return row;
    }
    match &entry.item {
        Item::HardLink(first) => link(format!("= {first}")),
        Item::SoftLink(target) => link(format!("-> {target}")),
        Item::ExternalLink(other, target) => link(format!("-> {other}::{target}")),
        Item::UserLink(class, data) => {
            link(format!("user-defined link of class {class}, {} bytes", data.len()))
        }
        Item::Fault(_, e) => row(name, Err(e), long, paths),
        other => link(format!("{other:?}")),
    }
}

fn row(name: String, object: Result<&Object, &hyperslab::Error>, long: bool, paths: &Paths<'_>) -> Row {
    let mut more = Vec::new();
    let (style, text) = match object {
        Err(e) => (Some(Style::Red), e.to_string()),
        Ok(Object::Group(_)) => (Some(Style::Blue), "group".to_string()),
        Ok(Object::Datatype(named)) => (
            Some(Style::Yellow),
            format!("datatype {}", words::dtype(named.dtype(), if long { 4096 } else { 64 })),
        ),
        Ok(Object::Array(array)) => (None, self::array(array, long)),
    };
    if let (Ok(object), true) = (object, long) {
        match object.attributes() {
            Ok(attributes) => more.extend(attributes.into_iter().map(|a| attribute(object, a, paths))),
            Err(e) => more.push(format!("attributes: {e}")),
        }
    }
    Row { name, style, text, more }
}

/// `@units = "K"`.
pub(crate) fn attribute(object: &Object, entry: AttributeEntry, paths: &Paths<'_>) -> String {
    match entry {
        Ok(a) => match object.attribute_value(&a) {
            Ok(value) => {
                let text = paths.named(value).to_string();
                let shown: String = text.chars().take(120).collect();
                let rest = if shown.len() < text.len() { "..." } else { "" };
                format!("@{} = {shown}{rest}", a.name)
            }
            Err(e) => format!("@{}: {e}", a.name),
        },
        Err((Some(name), e)) => format!("@{name}: {e}"),
        Err((None, e)) => format!("an attribute: {e}"),
    }
}

fn array(array: &Array, long: bool) -> String {
    let meta = array.meta();
    let mut text =
        format!("{} {}", words::dtype(&meta.dtype, if long { 4096 } else { 64 }), words::shape(&meta.space));
    let chunked = words::chunk_shape(array);
    if let Some(chunk) = chunked {
        text.push_str(&format!("  chunks {}", words::tuple(chunk)));
    } else if words::runs(array).is_some() {
        text.push_str("  chunks of different extents");
    } else if long || !matches!(meta.layout, hyperslab::model::Layout::Contiguous) {
        text.push_str(&format!("  {}", words::layout(array)));
    }
    if !meta.filters.is_empty() || long {
        let stored = Stored::of(array);
        if !meta.filters.is_empty() {
            text.push_str(&format!("  {}", words::filters(array)));
            if let Some(ratio) = stored.ratio(array) {
                text.push_str(&format!(" {ratio:.1}x"));
            }
        }
        if long {
            text.push_str(&format!("  {} stored", output::bytes(stored.bytes)));
            if chunked.is_some() {
                text.push_str(&format!(" in {} chunks", stored.chunks));
            }
        }
        if let Some(e) = stored.fault {
            text.push_str(&format!("  {e}"));
        }
    }
    text
}

fn line(entry: &Entry, object: Opened<'_>) -> Json {
    if let Some(object) = object {
        let mut line = described(&entry.path, object.as_ref());
        if let (Json::Map(own), Item::Group(_, links)) = (&mut line, &entry.item) {
            let fault = match links {
                Ok(links) => links.faults.first().map(|fault| &fault.error),
                Err(e) => Some(e),
            };
            own.extend(fault.map(|e| ("links_error".to_owned(), Json::text(e))));
        }
        return line;
    }
    let link = |kind: &str, members: Vec<(&str, Json)>| {
        let own = [("path", Json::from(entry.path.as_str())), ("kind", kind.into())];
        Json::map(own.into_iter().chain(members))
    };
    match &entry.item {
        Item::HardLink(first) => link("hardlink", vec![("target", first.as_str().into())]),
        Item::SoftLink(target) => link("softlink", vec![("target", target.into())]),
        Item::ExternalLink(other, target) => {
            link("extlink", vec![("file", other.into()), ("target", target.into())])
        }
        Item::UserLink(class, _) => link("udlink", vec![("type", u64::from(*class).into())]),
        Item::Fault(_, e) => described(&entry.path, Err(e)),
        _ => link("unknown", Vec::new()),
    }
}

/// One object as JSON.
pub(crate) fn described(path: &str, object: Result<&Object, &hyperslab::Error>) -> Json {
    let mut own = vec![("path", Json::from(path))];
    match object {
        Err(e) => own.extend([("kind", "error".into()), ("error", Json::text(e))]),
        Ok(Object::Group(_)) => own.push(("kind", "group".into())),
        Ok(Object::Datatype(named)) => {
            own.extend([("kind", "datatype".into()), ("dtype", Json::text(named.dtype()))]);
        }
        Ok(Object::Array(array)) => {
            let meta = array.meta();
            own.extend([("kind", "dataset".into()), ("dtype", Json::text(&meta.dtype))]);
            if let Dataspace::Simple { dims, max } = &meta.space {
                own.push(("shape", Json::list(dims.iter().copied())));
                own.push(("maxshape", Json::list(max.iter().copied())));
            } else if !meta.space.is_null() {
                own.push(("shape", Json::List(Vec::new())));
            }
            own.push(("layout", words::layout(array).into()));
            if let Some(chunk) = words::chunk_shape(array) {
                own.push(("chunks", Json::list(chunk.iter().copied())));
            } else if let Some(runs) = words::runs(array) {
                own.push(("chunks", words::runs_json(runs)));
            }
            let stored = Stored::of(array);
            own.push(("stored_bytes", stored.bytes.into()));
            own.push(("stored_chunks", stored.chunks.into()));
            if !meta.filters.is_empty() {
                own.push(("filters", Json::list(meta.filters.iter().map(words::filter))));
                if let Some(ratio) = stored.ratio(array) {
                    own.push(("ratio", Json::Raw(format!("{ratio:.3}"))));
                }
            }
        }
    }
    Json::map(own)
}
