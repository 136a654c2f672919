//! A classic netCDF file as the rest of the engine sees it.

use super::header::{self, Header, Type, Variable, Version};
use super::index::Records;
use super::layout::{Layout, Place};
use crate::dtype::{DType, ReferenceKind};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::{
    self, ArrayMeta, Attribute, AttributeEntry, ChunkGrid, Dataspace, Dimension, Fault, FileInfo, FillValue,
    HeapRef, Hierarchy, Link, LinkTarget, Links, NodeId, NodeKind, Reference, Storage,
};
use crate::shape::{Name, to_usize};
use crate::source::{ByteRange, Source, Traffic};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// The root group's address; a variable's is the offset of its entry in the header.
const ROOT: NodeId = NodeId::Address(0);

/// Bytes of the first read, which holds most headers.
const FIRST: u64 = 64 << 10;

/// An open classic netCDF file.
#[derive(Debug)]
pub struct NetCdf3 {
    source: Arc<dyn Source>,
    length: u64,
    header: Header,
    layout: Layout,
    /// Numbers of variables by name.
    names: HashMap<Name, usize>,
}

impl NetCdf3 {
    /// Opens the file in `source`.
    pub fn open(source: Arc<dyn Source>, limits: &Limits) -> Result<Arc<NetCdf3>> {
        let length = source.len()?;
        let most = length.min(limits.metadata);
        let mut wanted = FIRST.min(most);
        let header = loop {
            let bytes = source.read(&[ByteRange::new(0, wanted)])?.into_iter().next().unwrap_or_default();
            match Header::parse(&bytes, wanted == length, limits) {
                Err(e) if e.kind() == ErrorKind::Truncated && wanted < most => {
                    wanted = wanted.saturating_mul(4).min(most);
                }
                Err(e) if e.kind() == ErrorKind::Truncated && wanted < length => {
                    return Err(Error::limit("bytes of a netCDF header", length.into(), most.into()));
                }
                other => break other?,
            }
        };
        let layout = Layout::new(&header, length);
        // The first of two variables of one name is the one that is found by it.
        let mut names = HashMap::new();
        for (i, variable) in header.variables.iter().enumerate() {
            names.entry(variable.name.clone()).or_insert(i);
        }
        Ok(Arc::new(NetCdf3 { source, length, header, layout, names }))
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn number(&self, node: &NodeId) -> Result<usize> {
        let at = match node {
            NodeId::Address(at) => self.header.variables.binary_search_by_key(at, |v| v.at).ok(),
            _ => None,
        };
        at.ok_or_else(|| Error::invalid(format!("{node} is not a variable of this file")))
    }

    fn variable(&self, node: &NodeId) -> Result<(&Variable, &Place)> {
        let number = self.number(node)?;
        match (self.header.variables.get(number), self.layout.places.get(number)) {
            (Some(variable), Some(Ok(place))) => Ok((variable, place)),
            (Some(variable), Some(Err(wrong))) => Err(wrong.error(variable.at)),
            _ => Err(Error::invalid(format!("{node} is not a variable of this file"))),
        }
    }

    /// Names of dimensions, where they exist.
    fn dimension(&self, number: u64) -> Option<&header::Dimension> {
        self.header.dimensions.get(usize::try_from(number).ok()?)
    }

    fn link_to(&self, number: usize, variable: &Variable) -> Link {
        let target = LinkTarget::Hard(NodeId::Address(variable.at));
        Link { name: variable.name.clone(), target, creation_order: i64::try_from(number).ok() }
    }

    /// The offset behind the data of a variable.
    fn end(&self, place: &Place) -> u64 {
        place.end(self.layout.records, self.layout.stride.unwrap_or(0)).unwrap_or(u64::MAX)
    }

    /// Of a streamed file, words about a record that is there in part, which is not counted.
    fn begun_record(&self) -> Option<String> {
        let stride = self.layout.stride.filter(|_| self.header.records.is_none())?;
        let parts = self.layout.places.iter().flatten().filter(|p| p.is_record && p.length > 0);
        let begin = parts.map(|p| p.begin).min()?;
        let counted = self.layout.records.checked_mul(stride)?.checked_add(begin)?;
        // Records without padding may be padded at the end of the file.
        let padding = if stride % 4 == 0 { 0 } else { 3 };
        let left = self.length.checked_sub(counted).filter(|&left| left > padding)?;
        Some(format!("the file ends within record {}, of which it has {left} bytes", self.layout.records))
    }
}

/// Attributes as the model has them: text as one string, numbers as a list.
fn attributes(list: &[header::Attribute]) -> Result<Vec<AttributeEntry>> {
    let one = |(a, order): (&header::Attribute, u64)| {
        let (dtype, space) = match (a.kind, a.count) {
            (Type::Char, 0) => (header::text(1), Dataspace::Null),
            (Type::Char, n) => (header::text(to_usize(n)?), Dataspace::Scalar),
            (kind, n) => (kind.dtype(), Dataspace::Simple { dims: vec![n], max: vec![Some(n)] }),
        };
        Ok(Attribute {
            name: a.name.clone(),
            dtype,
            space,
            data: a.data.clone(),
            order: Some(order),
            committed: None,
        })
    };
    let entries: Result<Vec<Attribute>> = list.iter().zip(0..).map(one).collect();
    let mut entries = entries?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries.into_iter().map(Ok).collect())
}

/// What this format does not have.
fn none(what: &str) -> Error {
    Error::invalid(format!("there are no {what} in netCDF-3 files"))
}

impl Hierarchy for NetCdf3 {
    fn traffic(&self) -> Traffic {
        self.source.traffic()
    }

    fn info(&self) -> FileInfo {
        let h = &self.header;
        let format = match h.version {
            Version::Classic => "netCDF-3 classic",
            Version::Offset64 => "netCDF-3 64-bit offset",
            Version::Data64 => "netCDF-3 64-bit data",
        };
        let mut notes =
            vec![("header", format!("{} bytes", h.length)), ("length", format!("{} bytes", self.length))];
        if h.dimensions.iter().any(|d| d.length == 0) {
            let mut text = format!("{}", self.layout.records);
            if let Some(stride) = self.layout.stride {
                text.push_str(&format!(" of {stride} bytes"));
            }
            if h.records.is_none() {
                text.push_str(", counted by the length of the file, as it was streamed");
            }
            notes.push(("records", text));
        }
        let end = self.layout.places.iter().flatten().map(|p| self.end(p)).max().unwrap_or(0);
        if end > self.length {
            notes.push(("cut short", format!("the header tells of {end} bytes")));
        }
        if let Some(begun) = self.begun_record() {
            notes.push(("cut short", begun));
        }
        FileInfo { format, user_block: 0, version: h.version.number(), notes }
    }

    fn root(&self) -> NodeId {
        ROOT
    }

    fn kind(&self, node: &NodeId) -> Result<NodeKind> {
        if *node == ROOT { Ok(NodeKind::Group) } else { self.number(node).map(|_| NodeKind::Array) }
    }

    fn links(&self, group: &NodeId) -> Result<Links> {
        if *group != ROOT {
            return Err(Error::invalid(format!("{group} is not a group")));
        }
        let mut links: Vec<Link> =
            self.header.variables.iter().enumerate().map(|(i, v)| self.link_to(i, v)).collect();
        links.sort_by(|a, b| a.name.cmp(&b.name));
        let mut faults = Vec::new();
        if let Some(cut) = &self.header.cut {
            let text = format!("the file ends in the list of variables: {}", cut.message());
            let at = cut.place().map_or(self.length, |(_, at)| at);
            let error = Error::new(ErrorKind::Truncated, text).at("netCDF header", at);
            faults.push(Fault { object: Some(ROOT), error });
        }
        Ok(Links { links, tracks_order: true, faults })
    }

    fn link(&self, group: &NodeId, name: &Name) -> Result<Option<Link>> {
        if *group != ROOT {
            return Err(Error::invalid(format!("{group} is not a group")));
        }
        let found = self.names.get(name).and_then(|&i| Some((i, self.header.variables.get(i)?)));
        Ok(found.map(|(i, variable)| self.link_to(i, variable)))
    }

    fn attributes(&self, node: &NodeId) -> Result<Vec<AttributeEntry>> {
        if *node == ROOT {
            return attributes(&self.header.attributes);
        }
        match self.header.variables.get(self.number(node)?) {
            Some(variable) => attributes(&variable.attributes),
            None => Ok(Vec::new()),
        }
    }

    fn array(&self, node: &NodeId) -> Result<(ArrayMeta, Storage)> {
        let (variable, place) = self.variable(node)?;
        let records = self.layout.records;
        let mut max: Vec<Option<u64>> = place.dims.iter().map(|&d| Some(d)).collect();
        let mut notes = vec![("begin", format!("{:#x}", place.begin))];
        let mut index = Records {
            source: self.source.clone(),
            file_length: self.length,
            begin: place.begin,
            length: place.length,
            stride: 0,
            count: 1,
            rank: place.dims.len(),
        };
        let (mut grid, mut layout) = (ChunkGrid::Whole, model::Layout::Contiguous);
        if place.is_record {
            let stride = self.layout.stride.unwrap_or(0);
            if let Some(first) = max.first_mut() {
                *first = None;
            }
            notes.push(("records", format!("{records}, {stride} bytes apart")));
            match place.length.checked_mul(records) {
                // Alone in its records it lies in one piece, as does a single record of it.
                Some(length) if stride == place.length || records <= 1 => index.length = length,
                _ => {
                    let mut chunk = place.dims.clone();
                    if let Some(first) = chunk.first_mut() {
                        *first = 1;
                    }
                    (index.stride, index.count) = (stride, records);
                    (grid, layout) = (ChunkGrid::Regular(chunk), model::Layout::Chunked { index: "records" });
                }
            }
        }
        let space = match place.dims.as_slice() {
            [] => Dataspace::Scalar,
            dims => Dataspace::Simple { dims: dims.to_vec(), max },
        };
        let own = variable.attributes.iter().find(|a| a.name.as_bytes() == b"_FillValue");
        let own = own.filter(|a| a.kind == place.kind && a.count == 1).map(|a| a.data.clone());
        let fill_element = own.unwrap_or_else(|| Bytes::from_static(place.kind.fill()));
        let meta = ArrayMeta {
            dtype: place.kind.dtype(),
            committed: None,
            space,
            grid,
            layout,
            fill: FillValue::Value(fill_element.clone()),
            fill_element,
            filters: Vec::new(),
            notes,
        };
        Ok((meta, Storage::Chunks(Arc::new(index))))
    }

    fn dimensions(&self, group: &NodeId) -> Result<Vec<Dimension>> {
        if *group != ROOT {
            return Ok(Vec::new());
        }
        let one = |d: &header::Dimension| {
            let unlimited = d.length == 0;
            let length = if unlimited { self.layout.records } else { d.length };
            Dimension { name: d.name.clone(), length, unlimited }
        };
        Ok(self.header.dimensions.iter().map(one).collect())
    }

    fn dimension_names(&self, array: &NodeId) -> Result<Option<Vec<Option<Name>>>> {
        let (variable, _) = self.variable(array)?;
        let names = variable.dimensions.iter().map(|&n| self.dimension(n).map(|d| d.name.clone()));
        Ok(Some(names.collect()))
    }

    fn datatype(&self, _node: &NodeId) -> Result<DType> {
        Err(none("named datatypes"))
    }

    fn heap_ref(&self, _stored: &[u8]) -> Result<Option<(u64, HeapRef)>> {
        Err(none("elements of variable length"))
    }

    fn heap_objects(&self, _refs: &[HeapRef]) -> Result<Vec<Bytes>> {
        Err(none("elements of variable length"))
    }

    fn reference(&self, _kind: ReferenceKind, _stored: &[u8]) -> Result<Reference> {
        Err(none("references"))
    }

    fn neighbour(&self, _file: &Name) -> Result<Option<Arc<dyn Hierarchy>>> {
        Ok(None)
    }

    fn check(&self, fault: &mut dyn FnMut(Fault)) {
        let mut report = |object, error| fault(Fault { object, error });
        for (what, at) in &self.header.odd_padding {
            let text = format!("the padding after {what} is not zero");
            report(None, Error::corrupt("netCDF header", *at, text));
        }
        if self.header.dimensions.iter().filter(|d| d.length == 0).count() > 1 {
            report(None, Error::corrupt("netCDF header", 8, "more than one dimension of length 0"));
        }
        if let Some(begun) = self.begun_record() {
            report(None, Error::new(ErrorKind::Truncated, begun).at("data", self.length));
        }
        for (variable, place) in self.header.variables.iter().zip(&self.layout.places) {
            let Ok(place) = place else { continue };
            let object = || Some(NodeId::Address(variable.at));
            let frame = |e: Error| e.context(format!("variable {}", variable.name));
            let end = self.end(place);
            if place.length > 0 && place.begin < self.header.length {
                let text = format!("the data begins at {:#x}, within the header", place.begin);
                report(object(), frame(Error::corrupt("netCDF header", variable.at, text)));
            }
            if end > self.length {
                let text = format!("the data ends at {end:#x}, the file at {:#x}", self.length);
                report(object(), frame(Error::new(ErrorKind::Truncated, text).at("data", place.begin)));
            }
        }
    }
}
