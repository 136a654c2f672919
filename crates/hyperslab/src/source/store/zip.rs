//! A zip file, read and written.

mod directory;
mod record;
mod write;

pub use write::ZipWriter;

use super::{
    Get, Listing, Precondition, Store, Version, below, check_key, check_prefix, cut, next_names, read_only,
    wanted,
};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::shape::to_usize;
use crate::source::{ByteRange, MemorySource, ReadHints, Source, Traffic, Window};
use bytes::Bytes;
use directory::{Entry, LOCAL};
use std::io::Read;
use std::sync::{Arc, OnceLock};

/// Bytes that are read beyond what the local header of a file must have, for what it may have more than the directory
/// says. One request is enough then.
const SLACK: u64 = 64;

/// The files in a zip file. Stored and deflated ones, Zip64 where need be; others are refused by name, one by one.
///
/// What all names have in common may be a folder: a store that was zipped from outside. Its name is then no part of the
/// keys, so that both layouts look the same.
#[derive(Debug)]
pub struct ZipStore {
    source: Arc<dyn Source>,
    /// By key, each key once.
    files: Vec<File>,
    /// What stands in front of all keys: empty, or a folder with its `/`.
    prefix: String,
    /// The first file that has no key, folders aside.
    keyless: Option<String>,
    limits: Limits,
}

/// One file in it.
#[derive(Debug)]
struct File {
    key: String,
    entry: Entry,
    /// Where its bytes begin, once its local header was read.
    start: OnceLock<u64>,
}

impl File {
    /// Fails if the answer to a question would be longer than it may be: before anything is read or inflated for it.
    fn fits(&self, get: &Get) -> Result<()> {
        get.check(wanted(get.part, self.entry.length)?.length)
    }
}

impl ZipStore {
    /// Reads the directory of the zip file in `source`. A folder that has everything in it is taken for the root.
    pub fn open(source: Arc<dyn Source>, limits: &Limits) -> Result<Self> {
        let name = source.name();
        ZipStore::read(source, limits, None).context(|| format!("zip file {name}"))
    }

    /// As [`ZipStore::open`], with the root at `prefix`, which may be empty. Files that lie elsewhere have no keys.
    pub fn open_at(source: Arc<dyn Source>, prefix: &str, limits: &Limits) -> Result<Self> {
        let name = source.name();
        let prefix = check_prefix(prefix)?;
        ZipStore::read(source, limits, Some(prefix)).context(|| format!("zip file {name}"))
    }

    fn read(source: Arc<dyn Source>, limits: &Limits, prefix: Option<&str>) -> Result<Self> {
        let mut entries = directory::read(source.as_ref(), limits)?;
        let prefix = prefix.map_or_else(|| common_folder(&entries).unwrap_or_default(), str::to_owned);
        let has_key = |name: &str| check_key(name).is_ok() && below(&prefix, name).is_some();
        let is_folder = |name: &str, entry: &Entry| name.ends_with('/') && entry.length == 0;
        let keyless = entries.iter().find(|(name, entry)| !has_key(name) && !is_folder(name, entry));
        let keyless = keyless.map(|(name, _)| name.clone());
        // Names that are no keys (folders among them) cannot be asked for.
        entries.retain(|(name, _)| check_key(name).is_ok());
        let mut files: Vec<File> = entries
            .into_iter()
            .filter_map(|(name, entry)| {
                let key = below(&prefix, &name)?.to_owned();
                Some(File { key, entry, start: OnceLock::new() })
            })
            .collect();
        // A file that was written twice is there twice: the last one counts, which stays in front of the others.
        files.reverse();
        files.sort_by(|a, b| a.key.cmp(&b.key));
        files.dedup_by(|b, a| a.key == b.key);
        let prefix = if prefix.is_empty() { prefix } else { format!("{prefix}/") };
        Ok(ZipStore { source, files, prefix, keyless, limits: limits.clone() })
    }

    /// Fails if the file cannot be written anew with all that is in it.
    fn check_rewritable(&self) -> Result<()> {
        if let Some(name) = &self.keyless {
            return Err(Error::unsupported(format!("rewriting a zip file with {name:?}, which is no key")));
        }
        match self.files.iter().find(|file| file.entry.is_encrypted()) {
            Some(file) => {
                Err(Error::unsupported(format!("rewriting a zip file with {}, encrypted", file.key)))
            }
            None => Ok(()),
        }
    }

    /// Where the bytes of a file begin.
    fn start_of(&self, file: &File) -> Result<u64> {
        if let Some(start) = file.start.get() {
            return Ok(*start);
        }
        let header = self.raw(ByteRange::new(file.entry.header, file.entry.local_length()))?;
        self.start(file, &header)
    }

    /// Bytes of the zip file itself.
    fn raw(&self, range: ByteRange) -> Result<Bytes> {
        let bytes = self.source.read(&[range])?.pop();
        bytes.ok_or_else(|| Error::new(ErrorKind::Io, "the source gave no answer"))
    }

    fn find(&self, key: &str) -> Result<Option<&File>> {
        check_key(key)?;
        let found = self.files.binary_search_by(|file| file.key.as_str().cmp(key));
        Ok(found.ok().and_then(|i| self.files.get(i)))
    }

    /// The files below a prefix, in order.
    fn held<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let start = self.files.partition_point(|file| file.key.as_str() < prefix);
        let keys = self.files.iter().skip(start).map(|file| file.key.as_str());
        keys.take_while(move |key| key.starts_with(prefix)).filter(move |key| below(prefix, key).is_some())
    }

    /// Where the bytes of a file begin, as the local header in `bytes` says.
    fn start(&self, file: &File, bytes: &[u8]) -> Result<u64> {
        let start = file.entry.start(bytes)?;
        let end = start.checked_add(file.entry.stored);
        if end.is_none_or(|end| end > file.entry.limit) {
            let text = format!("the {} bytes of {} reach into the directory", file.entry.stored, file.key);
            return Err(Error::corrupt(LOCAL, file.entry.header, text));
        }
        Ok(*file.start.get_or_init(|| start))
    }

    /// What has to be read to answer `part` of `file`: its bytes, or its header with as many bytes as are known to
    /// be wanted.
    fn request(&self, file: &File, part: Part<'_>) -> Result<ByteRange> {
        let entry = &file.entry;
        entry.check(&self.limits)?;
        match file.start.get() {
            Some(start) => {
                let range = part.stored(entry)?;
                Ok(ByteRange::new(start.saturating_add(range.offset), range.length))
            }
            None => {
                let range = part.stored(entry)?;
                let length = match range.offset {
                    0 => entry.local_length().saturating_add(SLACK).saturating_add(range.length),
                    _ => entry.local_length(),
                };
                let room = entry.limit.saturating_sub(entry.header);
                Ok(ByteRange::new(entry.header, length.min(room)))
            }
        }
    }

    /// The bytes in the zip file that answer each question, in as few batches as can be.
    fn fetch(&self, files: &[(&File, Part<'_>)]) -> Result<Vec<Bytes>> {
        let ranges: Vec<_> =
            files.iter().map(|(file, part)| self.request(file, *part)).collect::<Result<_>>()?;
        let known: Vec<bool> = files.iter().map(|(file, _)| file.start.get().is_some()).collect();
        let mut answers = self.source.read(&ranges)?;
        let mut again = Vec::new();
        for (i, ((file, part), known)) in files.iter().zip(known).enumerate() {
            let (Some(answer), false) = (answers.get_mut(i), known) else { continue };
            let start = self.start(file, answer)?;
            let range = part.stored(&file.entry)?;
            let from = start.saturating_add(range.offset).saturating_sub(file.entry.header);
            let to = from.saturating_add(range.length);
            if to <= answer.len() as u64 {
                *answer = answer.slice(from as usize..to as usize);
            } else {
                again.push((i, ByteRange::new(start.saturating_add(range.offset), range.length)));
            }
        }
        if !again.is_empty() {
            let ranges: Vec<_> = again.iter().map(|(_, range)| *range).collect();
            for ((i, _), bytes) in again.into_iter().zip(self.source.read(&ranges)?) {
                if let Some(answer) = answers.get_mut(i) {
                    *answer = bytes;
                }
            }
        }
        Ok(answers)
    }

    /// The part that was asked for, from the bytes that were read for it.
    fn finish(&self, file: &File, part: super::Part, bytes: Bytes) -> Result<Bytes> {
        if file.entry.is_stored() {
            if part == super::Part::Whole {
                file.entry.verify(&bytes)?;
            }
            return Ok(bytes);
        }
        cut(&self.inflate(file, &bytes)?, part)
    }

    fn inflate(&self, file: &File, bytes: &[u8]) -> Result<Bytes> {
        let entry = &file.entry;
        let wrong = |text: String| Error::corrupt("deflated file", entry.header, text);
        // As long as it says, but not taken at its word: a few bytes cannot hold as many as they claim.
        let likely = (bytes.len() as u64).saturating_mul(1100).min(entry.length);
        let mut out = Vec::with_capacity(to_usize(likely)?);
        let mut inflater = flate2::read::DeflateDecoder::new(bytes).take(entry.length.saturating_add(1));
        inflater.read_to_end(&mut out).map_err(|e| wrong(e.to_string()))?;
        if out.len() as u64 != entry.length {
            return Err(wrong(format!("{} bytes come out of it, not {}", out.len(), entry.length)));
        }
        entry.verify(&out)?;
        Ok(out.into())
    }
}

/// Which stored bytes a question is about: all of them where they are compressed.
#[derive(Clone, Copy)]
struct Part<'a>(&'a super::Part);

impl Part<'_> {
    fn stored(self, entry: &Entry) -> Result<ByteRange> {
        let range = wanted(*self.0, entry.length)?;
        Ok(if entry.is_stored() { range } else { ByteRange::new(0, entry.stored) })
    }
}

/// The folder that has all files in it, if there is one and it is not the only name.
fn common_folder(entries: &[(String, Entry)]) -> Option<String> {
    let mut names = entries.iter().map(|(name, _)| name.as_str()).filter(|name| check_key(name).is_ok());
    let (folder, _) = names.clone().next()?.split_once('/')?;
    names.all(|name| below(folder, name).is_some()).then(|| folder.to_owned())
}

impl Store for ZipStore {
    fn len(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.find(key)?.map(|file| file.entry.length))
    }

    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        let mut found = Vec::new();
        let mut places = Vec::new();
        let mut answers: Vec<Result<Option<Bytes>>> = Vec::with_capacity(gets.len());
        for (i, get) in gets.iter().enumerate() {
            answers.push(match self.find(&get.key) {
                // Those that must fail do so alone.
                Ok(Some(file)) => match self.request(file, Part(&get.part)).and_then(|_| file.fits(get)) {
                    Ok(()) => {
                        found.push((file, Part(&get.part)));
                        places.push(i);
                        Ok(None)
                    }
                    Err(e) => Err(e),
                },
                Ok(None) => Ok(None),
                Err(e) => Err(e),
            });
        }
        let fetched: Vec<Result<Bytes>> = match self.fetch(&found) {
            Ok(fetched) => fetched.into_iter().map(Ok).collect(),
            // One of them is to blame: each is asked for by itself.
            Err(_) => found.iter().map(|question| super::one(split(self.fetch(&[*question])))).collect(),
        };
        for (((i, (file, part)), bytes), _) in places.into_iter().zip(found).zip(fetched).zip(0..) {
            if let Some(answer) = answers.get_mut(i) {
                *answer = bytes.and_then(|bytes| self.finish(file, *part.0, bytes)).map(Some);
            }
        }
        let named =
            |(answer, get): (Result<_>, &Get)| answer.context(|| format!("{} in {}", get.key, self.name()));
        answers.into_iter().zip(gets).map(named).collect()
    }

    fn version(&self, key: &str) -> Result<Option<Version>> {
        let Some(file) = self.find(key)? else { return Ok(None) };
        Ok(Some(Version(format!("{:08x}-{}-{}", file.entry.crc, file.entry.length, file.entry.header))))
    }

    fn put(&self, _: &str, _: Bytes, _: &Precondition) -> Result<Version> {
        Err(read_only(&format!("the zip file {}", self.name())))
    }

    fn delete(&self, _: &str) -> Result<bool> {
        Err(read_only(&format!("the zip file {}", self.name())))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        Ok(self.held(check_prefix(prefix)?).map(str::to_owned).collect())
    }

    fn search(&self, prefix: &str) -> Result<Listing> {
        let prefix = check_prefix(prefix)?;
        Ok(next_names(prefix, self.held(prefix)))
    }

    fn hints(&self) -> ReadHints {
        self.source.hints()
    }

    fn name(&self) -> String {
        self.source.name()
    }

    fn traffic(&self) -> Traffic {
        self.source.traffic()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        let Some(file) = self.find(key)? else { return Ok(None) };
        let name = format!("{key} in {}", self.name());
        if !file.entry.is_stored() {
            let bytes = self.get(key)?;
            return Ok(bytes.map(|bytes| Arc::new(MemorySource::new(bytes, name)) as Arc<dyn Source>));
        }
        if file.start.get().is_none() {
            self.fetch(&[(file, Part(&super::Part::Suffix(0)))]).context(|| &name)?;
        }
        let start = file.start.get().copied();
        let start = start.ok_or_else(|| Error::new(ErrorKind::Io, "the store gave no answer"))?;
        let window = Window::new(self.source.clone(), ByteRange::new(start, file.entry.length), name);
        Ok(Some(Arc::new(window)))
    }
}

/// The answers of a batch, each with its own error.
fn split<T>(answers: Result<Vec<T>>) -> Vec<Result<T>> {
    match answers {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(e) => vec![Err(e)],
    }
}
