//! Links of groups: old style (symbol table), compact (messages in the header), dense (fractal heap).

mod dense;
mod old;

use super::message::kind;
use super::message::link::{self, LinkInfo, SymbolTable};
use super::object::{Header, Objects};
use super::parse::UNDEFINED;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Fault, Link, LinkTarget, Links, NodeId};
use crate::shape::Name;

/// Where the links of a group are.
enum Store {
    Old(SymbolTable),
    Compact(LinkInfo),
    Dense(LinkInfo),
}

impl Store {
    fn of(objects: &Objects, header: &Header) -> Result<Store> {
        let sizes = objects.space().sizes();
        if let Some(message) = header.find(kind::LINK_INFO) {
            let info = LinkInfo::parse(message.cursor(), sizes)?;
            return Ok(if info.heap == UNDEFINED { Store::Compact(info) } else { Store::Dense(info) });
        }
        match header.find(kind::SYMBOL_TABLE) {
            Some(message) => Ok(Store::Old(SymbolTable::parse(message.cursor(), sizes)?)),
            None => Err(Error::new(ErrorKind::InvalidArgument, "the object is not a group")),
        }
    }
}

/// All links of the group, sorted by the bytes of their names.
pub fn links(objects: &Objects, header: &Header) -> Result<Links> {
    let mut links = Links::default();
    let fault = |links: &mut Links, error| {
        links.faults.push(Fault { object: Some(NodeId::Address(header.address)), error });
    };
    let take = |links: &mut Links, link: Result<Link>| match link {
        Ok(link) => links.links.push(link),
        Err(e) => fault(links, e),
    };
    let space = objects.space();
    let done = match Store::of(objects, header)? {
        Store::Old(table) => old::links(space, table, &mut |link| take(&mut links, link)),
        Store::Compact(info) => {
            links.tracks_order = info.tracks_order;
            for message in header.all(kind::LINK) {
                take(&mut links, link::parse(&message.bytes, message.cursor(), space.sizes()));
            }
            Ok(())
        }
        Store::Dense(info) => {
            links.tracks_order = info.tracks_order;
            dense::links(space, &info, &mut |link| take(&mut links, link))
        }
    };
    if let Err(e) = done {
        fault(&mut links, e);
    }
    if !links.links.is_sorted_by(|a, b| a.name <= b.name) {
        links.links.sort_by(|a, b| a.name.cmp(&b.name));
    }
    if space.is_remote() {
        // Whoever asks for all links looks at the objects next.
        let hard = links.links.iter().filter_map(|link| match link.target {
            LinkTarget::Hard(NodeId::Address(address)) => Some(address),
            _ => None,
        });
        objects.prefetch(&hard.collect::<Vec<_>>());
    }
    Ok(links)
}

/// The link called `name`, found through the group's index.
pub fn link(objects: &Objects, header: &Header, name: &Name) -> Result<Option<Link>> {
    match Store::of(objects, header)? {
        Store::Old(table) => old::link(objects.space(), table, name),
        Store::Compact(_) => {
            for message in header.all(kind::LINK) {
                let link = link::parse(&message.bytes, message.cursor(), objects.space().sizes());
                // A fault in another link is no answer to the question for this one.
                if let Ok(link) = link
                    && link.name == *name
                {
                    return Ok(Some(link));
                }
            }
            Ok(None)
        }
        Store::Dense(info) => dense::link(objects.space(), &info, name),
    }
}
