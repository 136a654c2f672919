//! Raw data in other files: a row of segments read as one run of bytes (specification, IV.A.2.h).

use crate::error::{Context, Error, ErrorKind, Result};
use crate::shape::{Name, to_usize};
use crate::source::{ByteRange, Neighbours, ReadHints, Source};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// A run of bytes in a file.
#[derive(Debug)]
pub struct ExternalSegment {
    /// The file, as the dataset names it.
    pub name: Name,
    /// First byte in it.
    pub offset: u64,
    /// Bytes of the segment; `None`: without end, which only the last can be.
    pub length: Option<u64>,
}

/// The segments one after the other. A file is opened when bytes of it are first wanted: an absent file hides only its
/// own. What lies behind the end of a file that is too short reads as zeros, as in libhdf5.
#[derive(Debug)]
pub struct ExternalSource {
    segments: Vec<Opened>,
    neighbours: Neighbours,
    /// Costs are those of the file that names the others.
    owner: Arc<dyn Source>,
}

#[derive(Debug)]
struct Opened {
    segment: ExternalSegment,
    /// First byte in the row.
    start: u64,
    source: OnceLock<Arc<dyn Source>>,
}

impl ExternalSource {
    /// The row of `segments`; `owner` is the file that names them and `neighbours` what it may reach.
    pub fn new(
        segments: Vec<ExternalSegment>,
        neighbours: Neighbours,
        owner: Arc<dyn Source>,
    ) -> Result<Self> {
        let mut start = Some(0u64);
        let mut opened = Vec::with_capacity(segments.len());
        for segment in segments {
            let Some(at) = start else {
                let text = "a segment of external data behind one without end, or beyond 2^64";
                return Err(Error::new(ErrorKind::Corrupt, text));
            };
            start = segment.length.and_then(|n| at.checked_add(n));
            opened.push(Opened { segment, start: at, source: OnceLock::new() });
        }
        Ok(ExternalSource { segments: opened, neighbours, owner })
    }

    /// Bytes of all segments; `None` without end.
    fn length(&self) -> Option<u64> {
        match self.segments.last() {
            Some(last) => last.start.checked_add(last.segment.length?),
            None => Some(0),
        }
    }

    fn source<'a>(&self, opened: &'a Opened) -> Result<&'a Arc<dyn Source>> {
        if let Some(source) = opened.source.get() {
            return Ok(source);
        }
        let name = &opened.segment.name;
        let source = self.neighbours.open(name).context(|| format!("external data file {name}"))?;
        let source = source.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("external data file {name}: there is no such file"))
                .hint("external data files are looked for beside the file that names them")
        })?;
        Ok(opened.source.get_or_init(|| source))
    }
}

impl Source for ExternalSource {
    fn len(&self) -> Result<u64> {
        Ok(self.length().unwrap_or(u64::MAX))
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        let read = |range: &ByteRange| {
            // Bytes that are in no file need no room either: what is not there is bounded by what is asked for, and
            // that by the caller's own output limit.
            let mut buffer = vec![0; to_usize(range.length)?];
            self.read_into(range.offset, &mut buffer)?;
            Ok(Bytes::from(buffer))
        };
        ranges.iter().map(read).collect()
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let wanted = ByteRange::new(offset, buffer.len() as u64);
        let end = wanted.end().filter(|&end| self.length().is_none_or(|length| end <= length));
        let Some(end) = end else {
            let text =
                format!("{wanted} reaches beyond the {} bytes of external data", self.length().unwrap_or(0));
            return Err(Error::new(ErrorKind::Truncated, text));
        };
        let mut rest = buffer;
        let mut at = offset;
        for opened in &self.segments {
            if at >= end {
                break;
            }
            let skip = match at.checked_sub(opened.start) {
                Some(skip) if opened.segment.length.is_none_or(|n| skip < n) => skip,
                _ => continue,
            };
            let here = opened.segment.length.map_or(u64::MAX, |n| n - skip).min(end - at);
            let length = to_usize(here)?.min(rest.len());
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(length);
            rest = behind;
            at += here;
            let source = self.source(opened)?;
            let there = source.len()?;
            let first = opened.segment.offset.checked_add(skip);
            let have = first.map_or(0, |first| there.saturating_sub(first)).min(here);
            let (stored, missing) = part.split_at_mut(to_usize(have)?);
            missing.fill(0);
            if let Some(first) = first.filter(|_| !stored.is_empty()) {
                source.read_into(first, stored)?;
            }
        }
        Ok(())
    }

    fn parts(&self) -> Vec<u64> {
        self.segments.iter().filter(|s| s.segment.length != Some(0)).map(|s| s.start).collect()
    }

    fn hints(&self) -> ReadHints {
        self.owner.hints()
    }

    fn id(&self) -> Result<String> {
        let mut id = String::from("external:");
        for opened in &self.segments {
            let ExternalSegment { name, offset, length } = &opened.segment;
            // A file that is not there yet has no identity.
            let own = self.source(opened).and_then(|s| s.id()).unwrap_or_default();
            id.push_str(&format!("{name}@{offset}+{length:?}={own};"));
        }
        Ok(id)
    }

    fn name(&self) -> String {
        match self.segments.first() {
            Some(first) => format!("external data {} of {}", first.segment.name, self.owner.name()),
            None => format!("external data of {}", self.owner.name()),
        }
    }
}
