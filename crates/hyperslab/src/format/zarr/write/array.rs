//! What a writer knows of an array: how its chunks are encoded, and the objects that they go to.

use super::super::array::{self, ArrayDocument, Fill};
use super::super::types::{Element, Variable};
use super::node::{Members, Node};
use super::options::ZarrOptions;
use super::shard::ShardState;
use crate::codec::{BindContext, Codec, Scratch};
use crate::dtype::DType;
use crate::error::{Context, Error, Result};
use crate::json::Json;
use crate::model::write::WriteLayout;
use crate::shape::{Coord, Name, byte_count, element_count, to_usize};
use bytes::Bytes;
use std::sync::Arc;

/// An array to be written.
#[derive(Debug)]
pub(super) struct ArrayState {
    pub(super) document: ArrayDocument,
    pub(super) layout: WriteLayout,
    pub(super) shard: Option<ShardState>,
    pub(super) variable: Option<VariableState>,
}

/// How elements of any length are encoded.
#[derive(Debug)]
pub(super) struct VariableState {
    pub(super) kind: Variable,
    stages: Vec<Arc<dyn Codec>>,
    /// The most bytes of a decoded chunk.
    limit: u64,
}

impl ArrayState {
    /// From the document of an array. `by_netcdf` as in the reader. What can be read and not written is
    /// [`ErrorKind::Unsupported`].
    pub(super) fn new(node: &Node, by_netcdf: bool, options: &ZarrOptions) -> Result<ArrayState> {
        let metadata: &Members = &node.metadata;
        let json = Json::Map(metadata.clone());
        let mut document = match node.version {
            3 => array::v3(&json).context(|| "zarr.json")?,
            _ => array::v2(&json, false).context(|| ".zarray")?,
        };
        if by_netcdf && node.version == 2 {
            document.mend_default_fill();
        }
        if document.rectilinear.is_some() {
            return Err(Error::unsupported("writing to a rectilinear grid of chunks"));
        }
        if document.codecs.order.is_some() {
            return Err(Error::unsupported("writing elements of any length in another order of axes"));
        }
        let (chunk, shard) = match document.codecs.shards.last() {
            None => (document.chunk.clone(), None),
            Some(innermost) => {
                let shard = ShardState::new(&document.chunk, &document.codecs.shards, options)?;
                (innermost.chunk.clone(), Some(shard))
            }
        };
        let dtype = document.dtype();
        let (variable, pipeline) = match &document.element {
            Element::Fixed(dtype) => {
                let chunk_bytes = byte_count(&chunk, dtype.size())?;
                let context = BindContext { dtype, chunk: &chunk, chunk_bytes };
                (None, options.registry.pipeline(&document.codecs.filters, &context)?)
            }
            Element::Variable(kind) => {
                let byte = DType::Opaque { size: 1, tag: Name::default() };
                let context = BindContext { dtype: &byte, chunk: &[], chunk_bytes: 1 };
                let filters = &document.codecs.filters;
                let stages =
                    filters.iter().map(|f| options.registry.bind(f, &context)).collect::<Result<_>>()?;
                let limit = options.limits.chunk;
                (
                    Some(VariableState { kind: *kind, stages, limit }),
                    options.registry.pipeline(filters, &context)?,
                )
            }
        };
        pipeline.check(0)?;
        let (fill, may_skip_fill) = match (&document.fill, &variable) {
            (Fill::Undefined, _) => (Bytes::new(), false),
            (Fill::Value(bytes), None) => (Bytes::copy_from_slice(bytes), true),
            (Fill::Value(bytes), Some(_)) => (object(bytes), true),
        };
        let fill = if variable.is_some() && fill.is_empty() { object(&[]) } else { fill };
        let block = match &shard {
            Some(shard) => shard.ratio.clone(),
            None => chunk.iter().map(|_| 1).collect(),
        };
        let layout = WriteLayout {
            dtype,
            shape: document.shape.clone(),
            chunk,
            block,
            cut_edges: false,
            fill,
            may_skip_fill,
            pipeline: Arc::new(pipeline),
        };
        Ok(ArrayState { document, layout, shard, variable })
    }

    /// The coordinates of the object that a chunk goes to, and its number in it.
    pub(super) fn object_of(&self, coord: &[u64]) -> (Coord, usize) {
        let Some(shard) = &self.shard else { return (coord.iter().copied().collect(), 0) };
        let at = coord.iter().zip(&shard.ratio).map(|(c, r)| c / (*r).max(1)).collect();
        let number = coord
            .iter()
            .zip(&shard.ratio)
            .fold(0u64, |n, (c, r)| n.saturating_mul(*r).saturating_add(c % (*r).max(1)));
        (at, usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// The chunks in the object at these coordinates that lie within the array: number in it, and coordinates.
    pub(super) fn chunks_in(&self, object: &[u64]) -> Result<Vec<(usize, Coord)>> {
        let Some(shard) = &self.shard else { return Ok(vec![(0, object.iter().copied().collect())]) };
        let count = to_usize(element_count(&shard.ratio)?)?;
        let grid = self.layout.grid();
        let coord = |number: usize| {
            let mut rest = number as u64;
            let mut coord: Coord =
                object.iter().zip(&shard.ratio).map(|(o, r)| o.saturating_mul(*r)).collect();
            for (c, r) in coord.iter_mut().zip(&shard.ratio).rev() {
                *c = c.saturating_add(rest % (*r).max(1));
                rest /= (*r).max(1);
            }
            (number, coord)
        };
        let within = |(_, coord): &(usize, Coord)| coord.iter().zip(&grid).all(|(c, n)| c < n);
        Ok((0..count).map(coord).filter(within).collect())
    }

    /// A chunk with everything at and beyond `keep` replaced by the fill value, encoded: `None` if it is as it was.
    pub(super) fn trimmed(&self, coord: &[u64], encoded: &Bytes, keep: &[u64]) -> Result<Option<Bytes>> {
        let mut scratch = Scratch::default();
        let start = self.layout.start_of(coord);
        let inside = |number: usize| {
            let mut rest = number as u64;
            let mut inside = true;
            for ((&start, &n), &keep) in start.iter().zip(&self.layout.chunk).zip(keep).rev() {
                inside &= start.saturating_add(rest % n.max(1)) < keep;
                rest /= n.max(1);
            }
            inside
        };
        let mut out = Vec::new();
        match &self.variable {
            None => {
                let mut elements = Vec::new();
                self.layout.pipeline.decode(encoded, 0, &mut elements, &mut scratch)?;
                let size = self.layout.dtype.size().max(1);
                let zeros = vec![0; size];
                let fill = if self.layout.fill.is_empty() { &zeros[..] } else { &self.layout.fill[..] };
                let mut changed = false;
                for (i, element) in elements.chunks_exact_mut(size).enumerate() {
                    if !inside(i) && element != fill {
                        element.copy_from_slice(fill);
                        changed = true;
                    }
                }
                if !changed {
                    return Ok(None);
                }
                self.layout.pipeline.encode(&elements, &mut out, &mut scratch)?;
            }
            Some(variable) => {
                let list: Bytes = variable.decode(encoded, &mut scratch)?.into();
                variable.check(&list)?;
                let mut items = variable.kind.decode(&list)?;
                let fill = self.layout.fill.slice(self.layout.fill.len().min(8)..);
                let mut changed = false;
                for (i, item) in items.iter_mut().enumerate() {
                    if !inside(i) && *item != fill {
                        *item = fill.clone();
                        changed = true;
                    }
                }
                if !changed {
                    return Ok(None);
                }
                let list = variable.kind.encode(&items, &self.layout.chunk)?;
                self.layout.pipeline.encode_any(&list, &mut out, &mut scratch)?;
            }
        }
        Ok(Some(out.into()))
    }
}

/// An element of any length as a writer takes it.
fn object(bytes: &[u8]) -> Bytes {
    let mut object = (bytes.len() as u64).to_le_bytes().to_vec();
    object.extend_from_slice(bytes);
    object.into()
}

impl VariableState {
    /// Fails if a list holds what a text cannot stand for: it would become one.
    fn check(&self, list: &Bytes) -> Result<()> {
        match self.kind == Variable::Json && !crate::codec::json_is_of_texts(list)? {
            true => Err(Error::unsupported("writing to chunks of json2 with values that are not texts")),
            false => Ok(()),
        }
    }

    /// The same for a chunk as it is stored.
    pub(super) fn check_stored(&self, encoded: &Bytes) -> Result<()> {
        if self.kind != Variable::Json {
            return Ok(());
        }
        self.check(&self.decode(encoded, &mut Scratch::default())?.into())
    }

    fn decode(&self, encoded: &[u8], scratch: &mut Scratch) -> Result<Vec<u8>> {
        let limit = to_usize(self.limit)?;
        let mut current = encoded.to_vec();
        for stage in self.stages.iter().rev() {
            let bound = stage.decoded_bound(current.len() as u64);
            let mut next = Vec::new();
            stage.decode(&current, &mut next, to_usize(bound.min(self.limit))?.min(limit), scratch)?;
            current = next;
        }
        Ok(current)
    }
}
