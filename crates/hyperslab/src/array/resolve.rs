//! From a path to an object, through soft and external links.

use super::node::Node;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::{Hierarchy, LinkTarget, NodeKind};
use crate::shape::Name;
use std::collections::VecDeque;
use std::sync::Arc;

/// Resolves `path` from the group `start`: from the root if it begins with `/`. Empty components and `.` say nothing.
///
/// Links are followed up to [`Limits::link_hops`](crate::Limits::link_hops) in all, so that a circle of links ends.
pub(super) fn resolve(start: &Node, path: &[u8]) -> Result<Node> {
    let mut at = start.clone();
    let mut rest = VecDeque::new();
    push(&mut at, &mut rest, path);
    let mut hops = Vec::new();
    while let Some(component) = rest.pop_front() {
        let here = |e: Error| e.context(format!("group {}", at.path));
        if at.kind().map_err(here)? != NodeKind::Group {
            let text = format!("{} is not a group, so it holds no {component}", at.path);
            return Err(Error::new(ErrorKind::NotFound, text));
        }
        let link = match at.link(&component).map_err(here)? {
            Some(link) => link,
            // A name that is not UTF-8 may be spelled in hex, unless a name is spelled like that itself.
            None => match spelled(&component) {
                Some(name) => at.link(&name).map_err(here)?,
                None => None,
            }
            .ok_or_else(|| missing(&*at.hierarchy, &at, &component))?,
        };
        let inner = join(&at.path, &link.name);
        match link.target {
            LinkTarget::Hard(id) => at = at.other(id, inner),
            LinkTarget::Soft(target) => {
                hop(&mut hops, &inner, target.to_string(), &at)?;
                push(&mut at, &mut rest, target.as_bytes());
            }
            LinkTarget::External { file, path } => {
                hop(&mut hops, &inner, format!("{file}::{path}"), &at)?;
                let hierarchy = at
                    .hierarchy
                    .neighbour(&file)
                    .context(|| format!("external link {inner}"))?
                    .ok_or_else(|| outside(&inner, &file))?;
                let id = hierarchy.root();
                at = Node { hierarchy, id, path: "/".into(), options: at.options.clone() };
                push(&mut at, &mut rest, path.as_bytes());
            }
            LinkTarget::UserDefined { class, .. } => {
                return Err(Error::unsupported(format!(
                    "following {inner}, a user-defined link of class {class}"
                )));
            }
        }
    }
    Ok(at)
}

/// Puts the components of `path` before the rest, and goes to the root if it is absolute.
fn push(at: &mut Node, rest: &mut VecDeque<Name>, path: &[u8]) {
    if path.first() == Some(&b'/') {
        *at = at.other(at.hierarchy.root(), "/".into());
    }
    for component in path.split(|&b| b == b'/').rev() {
        if !component.is_empty() && component != b"." {
            rest.push_front(Name::from(component));
        }
    }
}

/// Counts one followed link.
fn hop(hops: &mut Vec<String>, link: &str, target: String, at: &Node) -> Result<()> {
    hops.push(format!("{link} -> {target}"));
    if hops.len() > at.options.limits.link_hops as usize {
        let trail = hops.iter().take(4).map(String::as_str).collect::<Vec<_>>().join(", ");
        let limit = u128::from(at.options.limits.link_hops);
        return Err(Error::limit(format!("links followed ({trail}, ...)"), hops.len() as u128, limit)
            .hint("the links probably lead in a circle"));
    }
    Ok(())
}

fn outside(link: &str, file: &Name) -> Error {
    Error::new(ErrorKind::NotFound, format!("{link} leads to the file {file}, which is not there"))
        .hint("put it beside this file")
}

/// `hex:` and the bytes of a name, if that is how it is spelled.
fn spelled(component: &Name) -> Option<Name> {
    let name = Name::parse(component.as_str()?);
    (name != *component).then_some(name)
}

/// `/` and the names that lead there.
pub(super) fn join(group: &str, name: &Name) -> String {
    if group == "/" { format!("/{name}") } else { format!("{group}/{name}") }
}

fn missing(hierarchy: &dyn Hierarchy, group: &Node, component: &Name) -> Error {
    let names: Vec<String> = hierarchy
        .links(&group.id)
        .map(|all| all.links.iter().take(10_000).map(|l| l.name.to_string()).collect())
        .unwrap_or_default();
    let text = format!("no {component} in group {}", group.path);
    Error::new(ErrorKind::NotFound, text).hint(near(&component.to_string(), &names))
}

/// What to try instead of `wanted`: the names that look like it, or else the first ones.
pub(crate) fn near(wanted: &str, names: &[String]) -> String {
    if names.is_empty() {
        return "there are none at all".into();
    }
    let lower = wanted.to_lowercase();
    let mut scored: Vec<(usize, &String)> = names
        .iter()
        .map(|n| {
            let other = n.to_lowercase();
            let holds =
                lower.len().min(other.len()) > 2 && (other.contains(&lower) || lower.contains(&other));
            (if holds { 1 } else { distance(&lower, &other) }, n)
        })
        .filter(|(d, n)| *d <= 1 + wanted.len().max(n.len()) / 4)
        .collect();
    scored.sort();
    if scored.is_empty() {
        let shown: Vec<&str> = names.iter().take(6).map(String::as_str).collect();
        let more = if names.len() > shown.len() { ", ..." } else { "" };
        return format!("there are {}{more}", shown.join(", "));
    }
    let shown: Vec<&str> = scored.iter().take(3).map(|(_, n)| n.as_str()).collect();
    format!("did you mean {}?", shown.join(" or "))
}

/// Edit distance, of the first 64 characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let above = *cell;
            left = (diagonal + usize::from(x != *y)).min(above + 1).min(left + 1);
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// A node for the root of a file.
pub(super) fn root(hierarchy: &Arc<dyn Hierarchy>, options: &Arc<super::OpenOptions>) -> Node {
    Node { hierarchy: hierarchy.clone(), id: hierarchy.root(), path: "/".into(), options: options.clone() }
}
