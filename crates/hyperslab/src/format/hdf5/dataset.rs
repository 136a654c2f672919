//! What the header of a dataset says, put together.

use super::message::external::ExternalFiles;
use super::message::fill::{Fill, FillTime};
use super::message::layout::{Layout, LayoutClass};
use super::message::shared::Shared;
use super::message::{Message, dataspace, filter, kind};
use super::object::{Header, Objects};
use crate::codec::FilterSpec;
use crate::dtype::DType;
use crate::error::{Context, Error, Result};
use crate::model::{Dataspace, FillValue};
use bytes::Bytes;

/// The parsed messages of a dataset.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Element type.
    pub dtype: DType,
    /// The header of the committed datatype that this is, if it is one.
    pub committed: Option<u64>,
    /// Extents.
    pub space: Dataspace,
    /// Where the elements are.
    pub layout: Layout,
    /// Fill value.
    pub fill: Fill,
    /// Filters in the order in which they encode.
    pub filters: Vec<FilterSpec>,
    /// External files, where the data is in some.
    pub external: Option<ExternalFiles>,
}

impl Dataset {
    /// Parses the messages in `header`.
    pub fn parse(objects: &Objects, header: &Header) -> Result<Dataset> {
        let sizes = objects.space().sizes();
        let find = |kind: u16| -> Result<Option<Message>> {
            header.find(kind).map(|m| objects.resolve(m)).transpose()
        };
        let must = |kind: u16| -> Result<Message> {
            find(kind)?.ok_or_else(|| header.corrupt(format!("a dataset without a {}", kind::name(kind))))
        };
        let dtype = objects.datatype(&must(kind::DATATYPE)?)?;
        let committed = match header.find(kind::DATATYPE) {
            Some(message) if message.is_shared() => Shared::parse(&mut message.cursor(), sizes)?.object(),
            _ => None,
        };
        let space = dataspace::parse(must(kind::DATASPACE)?.cursor(), sizes)?;
        let layout = must(kind::LAYOUT)?;
        let layout = Layout::parse(&layout.bytes, layout.cursor(), sizes)?;
        let fill = match find(kind::FILL)? {
            Some(message) => Fill::parse(&message.bytes, message.cursor())?,
            None => match find(kind::FILL_OLD)? {
                Some(message) => Fill::parse_old(&message.bytes, message.cursor())?,
                None => Fill::default(),
            },
        };
        let filters = match find(kind::FILTERS)? {
            Some(message) => filter::parse(message.cursor())?,
            None => Vec::new(),
        };
        let external = match find(kind::EXTERNAL_FILES)? {
            Some(message) => Some(ExternalFiles::parse(message.cursor(), sizes)?),
            None => None,
        };
        let dataset = Dataset { dtype, committed, space, layout, fill, filters, external };
        dataset.check().context(|| "dataset").map_err(|e| e.at("object header", header.offset))?;
        Ok(dataset)
    }

    /// What no message says alone.
    fn check(&self) -> Result<()> {
        if let LayoutClass::Chunked(chunked) = &self.layout.class
            && !self.space.is_null()
            && chunked.chunk.len() != self.space.dims().len()
        {
            return Err(Error::new(
                crate::ErrorKind::Corrupt,
                format!("chunks {:?} in extents {:?}", chunked.chunk, self.space.dims()),
            ));
        }
        Ok(())
    }

    /// One stored element that stands for those never written; empty means zeros.
    ///
    /// A value that is never to be written is never read either: the reference library leaves the caller's buffer
    /// alone then, which is zeros for everybody who looks.
    pub fn fill_element(&self) -> Result<Bytes> {
        match (&self.fill.value, self.fill.time) {
            (FillValue::Value(value), FillTime::Allocation | FillTime::IfSet) => {
                if value.len() != self.dtype.size() {
                    return Err(Error::new(
                        crate::ErrorKind::Corrupt,
                        format!(
                            "a fill value of {} bytes for elements of {}",
                            value.len(),
                            self.dtype.size()
                        ),
                    ));
                }
                Ok(value.clone())
            }
            _ => Ok(Bytes::new()),
        }
    }
}
