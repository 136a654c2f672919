//! The stages of one array, in the order in which they encode.

use super::{Codec, Scratch, set_len, wrong_length};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::to_usize;
use smallvec::SmallVec;
use std::sync::Arc;

/// The most stages that a mask can name.
const MAX_STAGES: usize = 32;

/// One stage: a codec, or why there is none.
#[derive(Debug)]
pub(super) struct Stage {
    label: String,
    /// Whether a chunk may be stored without it.
    optional: bool,
    codec: Result<Arc<dyn Codec>, Error>,
}

impl Stage {
    pub(super) fn new(label: String, optional: bool, codec: Result<Arc<dyn Codec>>) -> Self {
        Stage { label, optional, codec }
    }

    /// The codec, or the error of binding it, anew for every chunk that asks.
    fn codec(&self) -> Result<&dyn Codec> {
        self.codec.as_deref().map_err(|e| {
            let again = Error::new(e.kind(), e.message().to_owned());
            match e.next_step() {
                Some(hint) => again.hint(hint.to_owned()),
                None => again,
            }
        })
    }
}

/// The stages of one array, in the order in which they encode, for chunks of one decoded length.
///
/// A `mask` has bit *i* set where stage *i* was skipped for a chunk. A stage that this build lacks fails only the
/// chunks that need it.
#[derive(Debug, Default)]
pub struct Pipeline {
    stages: Vec<Stage>,
    chunk_bytes: u64,
}

impl Pipeline {
    pub(super) fn new(stages: Vec<Stage>, chunk_bytes: u64) -> Result<Self> {
        if stages.len() > MAX_STAGES {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("a pipeline of {} filters, at most {MAX_STAGES} are possible", stages.len()),
            ));
        }
        Ok(Pipeline { stages, chunk_bytes })
    }

    /// Whether chunks are stored as they are.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Whether a chunk with this mask is stored as it is.
    pub fn is_identity(&self, mask: u32) -> bool {
        self.active(mask).next().is_none()
    }

    /// Bytes of an encoded chunk, where every stage always gives the same.
    pub fn encoded_len(&self) -> Option<u64> {
        self.stages.iter().try_fold(self.chunk_bytes, |n, stage| stage.codec.as_ref().ok()?.encoded_len(n))
    }

    /// The most bytes that a whole encoded chunk can have: what an object that holds one is read up to.
    pub fn encoded_bound(&self) -> u64 {
        self.encoded_len().unwrap_or_else(|| self.intermediate_max())
    }

    /// Bytes of a decoded chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// The stages by number and name, such as `filter 1 (deflate)`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.stages.iter().map(|s| s.label.as_str())
    }

    /// Fails with the reason if a stage that a chunk with this mask needs is not there.
    pub fn check(&self, mask: u32) -> Result<()> {
        self.active(mask).try_for_each(|stage| stage.codec().map(|_| ()))
    }

    /// The most bytes that `encoded` bytes can decode to; less than [`chunk_bytes`](Self::chunk_bytes) means that the
    /// chunk cannot be whole.
    pub fn decoded_bound(&self, encoded: u64, mask: u32) -> u64 {
        self.active(mask).rev().fold(encoded, |n, stage| match &stage.codec {
            Ok(codec) => codec.decoded_bound(n),
            Err(_) => u64::MAX,
        })
    }

    /// Decodes a chunk into `out`, whose contents are replaced by exactly [`chunk_bytes`](Self::chunk_bytes) bytes.
    ///
    /// Nothing is allocated before the encoded length is seen to be able to give so many; where that would be far more
    /// than it is likely to, the buffer grows with what is really decoded.
    pub fn decode(&self, input: &[u8], mask: u32, out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        self.decode_least(self.chunk_bytes, input, mask, out, scratch)
    }

    /// The same, of a chunk of which the first `least` bytes are wanted: one that ends early, but not before these, is
    /// taken with the bytes that it has, if its codec allows that ([`Codec::may_be_short`]).
    pub fn decode_least(
        &self,
        least: u64,
        input: &[u8],
        mask: u32,
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let len = to_usize(self.chunk_bytes)?;
        let done = self.decode_with(least, input, mask, scratch, |first, current, scratch| {
            let short = first.is_some_and(|step| least < self.chunk_bytes && step.codec.may_be_short());
            let step = match first {
                Some(step) if is_unlikely(current.len(), self.chunk_bytes) => step,
                _ => {
                    set_len(out, len);
                    match (finish(first, current, out, scratch), first) {
                        (Err(_), Some(step)) if short => step,
                        (done, _) => return done,
                    }
                }
            };
            out.clear();
            step.codec.decode(current, out, len, scratch)?;
            let enough = if short { to_usize(least)? } else { len };
            if out.len() < enough {
                return Err(wrong_length(step.codec.name(), out.len(), len));
            }
            Ok(())
        });
        done.inspect_err(|_| out.clear())
    }

    /// Decodes a chunk into `out`, which is exactly [`chunk_bytes`](Self::chunk_bytes) long. After an error `out`
    /// holds anything.
    pub fn decode_into(&self, input: &[u8], mask: u32, out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        if out.len() as u64 != self.chunk_bytes {
            return Err(Error::invalid(format!(
                "a buffer of {} bytes for a chunk of {}",
                out.len(),
                self.chunk_bytes
            )));
        }
        self.decode_with(self.chunk_bytes, input, mask, scratch, |first, current, scratch| {
            finish(first, current, out, scratch)
        })
    }

    /// Runs all stages but the first, from the last on, and gives what they leave to `last`, with the first stage if the
    /// chunk needs any.
    fn decode_with(
        &self,
        least: u64,
        input: &[u8],
        mask: u32,
        scratch: &mut Scratch,
        last: impl FnOnce(Option<&Step>, &[u8], &mut Scratch) -> Result<()>,
    ) -> Result<()> {
        let mut steps: SmallVec<[Step; 4]> = SmallVec::new();
        let mut len = Some(self.chunk_bytes);
        for stage in self.active(mask) {
            let codec = stage.codec()?;
            steps.push(Step { label: &stage.label, codec, len });
            len = len.and_then(|n| codec.encoded_len(n));
        }
        let Some((first, behind)) = steps.split_first() else {
            if input.len() as u64 != self.chunk_bytes {
                let wanted = usize::try_from(self.chunk_bytes).unwrap_or(usize::MAX);
                return Err(wrong_length("unfiltered chunk", input.len(), wanted));
            }
            return last(None, input, scratch);
        };
        self.check_bound(if first.codec.may_be_short() { least } else { self.chunk_bytes }, input, mask)?;
        // `held` owns what the stage before gave; `part` of it, or of `input`, is what the next one decodes.
        let mut held: Option<Vec<u8>> = None;
        let mut part = 0..input.len();
        let mut done = Ok(());
        for step in behind.iter().rev() {
            let current = held.as_deref().unwrap_or(input).get(part.clone()).unwrap_or_default();
            done = match step.codec.view(current) {
                // Checksums follow the data, so that a view starts where its input does.
                Some(view) => view.map(|view| part.end = part.start + view.len()),
                None => step.decode(current, self.intermediate_max(), scratch).map(|buffer| {
                    part = 0..buffer.len();
                    if let Some(old) = held.replace(buffer) {
                        scratch.give(old);
                    }
                }),
            };
            if let Err(e) = done {
                done = Err(e.context(step.label));
                break;
            }
        }
        if done.is_ok() {
            let current = held.as_deref().unwrap_or(input).get(part).unwrap_or_default();
            done = last(Some(first), current, scratch).map_err(|e| e.context(first.label));
        }
        if let Some(buffer) = held {
            scratch.give(buffer);
        }
        done
    }

    /// Encodes a whole chunk into `out` and gives its mask: an optional stage that fails is skipped, as is one that
    /// makes the chunk longer.
    pub fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<u32> {
        if input.len() as u64 != self.chunk_bytes {
            return Err(Error::invalid(format!("{} bytes for a chunk of {}", input.len(), self.chunk_bytes)));
        }
        self.encode_any(input, out, scratch)
    }

    /// The same for any number of bytes: what stands for elements of any length, or a chunk that is cut at the edge.
    pub fn encode_any(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<u32> {
        out.clear();
        // What the stages so far gave is in `out`; before the first one it is the input itself.
        let mut done = false;
        let mut mask = 0;
        for (i, stage) in self.stages.iter().enumerate() {
            let current = if done { out.as_slice() } else { input };
            let mut next = scratch.take();
            match stage.codec().and_then(|codec| codec.encode(current, &mut next, scratch)) {
                Err(e) if !stage.optional => {
                    scratch.give(next);
                    return Err(e.context(&stage.label));
                }
                Ok(()) if !stage.optional || next.len() <= current.len() => {
                    std::mem::swap(out, &mut next);
                    done = true;
                }
                _ => mask |= 1 << i,
            }
            scratch.give(next);
        }
        if !done {
            out.extend_from_slice(input);
        }
        Ok(mask)
    }

    fn active(&self, mask: u32) -> impl DoubleEndedIterator<Item = &Stage> {
        self.stages.iter().enumerate().filter(move |(i, _)| mask >> i & 1 == 0).map(|(_, stage)| stage)
    }

    /// A chunk whose encoded bytes cannot give what is wanted is refused before anything is allocated for it.
    fn check_bound(&self, wanted: u64, input: &[u8], mask: u32) -> Result<()> {
        let bound = self.decoded_bound(input.len() as u64, mask);
        if bound < wanted {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!(
                    "{} encoded bytes decode to at most {bound}, a chunk has {}",
                    input.len(),
                    self.chunk_bytes
                ),
            ));
        }
        Ok(())
    }

    /// The most bytes between two stages: no encoder makes a chunk longer than this (the worst, LZ4 blocks of one
    /// byte, takes five times as much).
    fn intermediate_max(&self) -> u64 {
        self.chunk_bytes.saturating_mul(8).saturating_add(1 << 20)
    }
}

/// A stage that a chunk needs, with the length that it decodes to where that is known.
struct Step<'a> {
    label: &'a str,
    codec: &'a dyn Codec,
    len: Option<u64>,
}

impl Step<'_> {
    fn decode(&self, input: &[u8], max: u64, scratch: &mut Scratch) -> Result<Vec<u8>> {
        let bound = self.codec.decoded_bound(input.len() as u64);
        let mut buffer = Vec::new();
        let done = match self.len {
            Some(len) if len > bound => Err(Error::new(
                ErrorKind::Corrupt,
                format!("{} encoded bytes decode to at most {bound}, {len} are wanted", input.len()),
            )),
            Some(len) if !is_unlikely(input.len(), len) => to_usize(len).and_then(|len| {
                buffer = scratch.take_len(len);
                self.codec.decode_into(input, &mut buffer, scratch)
            }),
            _ => to_usize(bound.min(max)).and_then(|max| {
                buffer = scratch.take();
                self.codec.decode(input, &mut buffer, max, scratch)
            }),
        };
        match done {
            Ok(()) => Ok(buffer),
            Err(e) => {
                scratch.give(buffer);
                Err(e)
            }
        }
    }
}

/// Whether `encoded` bytes that decode to `decoded` are so few that the file may be damaged, and the bytes so many that
/// they are not allocated on its word.
fn is_unlikely(encoded: usize, decoded: u64) -> bool {
    decoded > 64 << 20 && decoded / 1024 > encoded as u64
}

/// Decodes the first stage, or copies what needs none, into exactly `out`.
fn finish(first: Option<&Step>, current: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
    let Some(step) = first else {
        out.copy_from_slice(current);
        return Ok(());
    };
    match step.codec.view(current) {
        Some(view) => {
            let data = view?;
            if data.len() != out.len() {
                return Err(wrong_length(step.codec.name(), data.len(), out.len()));
            }
            out.copy_from_slice(data);
            Ok(())
        }
        None => step.codec.decode_into(current, out, scratch),
    }
}
