//! Crashes and failing disks, for tests of whatever writes files.
//!
//! [`Recording`] is a [`Disk`] that writes down every call. From what it wrote down, [`Crash`] makes the states in which a
//! crash may leave the folder: after any of the calls, with any of the writes since the last sync there or not, whole or torn
//! at sectors, and any of the names since the last sync of their folder. In each the normal opener has to find the state of a
//! commit: the last one that had returned, or the next.

use super::disk::{Disk, DiskFile, LocalDisk};
use super::journal::SECTOR;
use std::collections::{BTreeMap, HashMap, HashSet, hash_map::DefaultHasher};
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which file of all that there were, whatever its name.
type Id = usize;

/// A call that changes something, or makes it durable.
#[derive(Clone, Debug)]
enum Call {
    Create(PathBuf, Id),
    Write(Id, u64, Arc<[u8]>),
    SetLen(Id, u64),
    Sync(Id),
    Rename(PathBuf, PathBuf),
    Exchange(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncFolder(PathBuf),
    /// The caller was told that a commit is done.
    Done,
}

/// How the disk fails.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The call that fails, of those that change something or sync, counted from 0.
    pub at: usize,
    /// The number of the system's error: 28 is no space, 5 is a broken disk.
    pub error: i32,
    /// Whether all later calls fail too.
    pub stays: bool,
}

#[derive(Debug, Default)]
struct Log {
    /// Contents of the files that were there at first.
    contents: HashMap<Id, Vec<u8>>,
    names: BTreeMap<PathBuf, Id>,
    /// Files by their number in the file system, which may be used again.
    numbers: HashMap<u64, Id>,
    files: Id,
    calls: Vec<Call>,
    fault: Option<Fault>,
    made: usize,
}

impl Log {
    fn new_id(&mut self, file: &File) -> io::Result<Id> {
        let id = self.files;
        self.files += 1;
        self.numbers.insert(number(file)?, id);
        Ok(id)
    }

    /// Whether the next call works.
    fn step(&mut self) -> io::Result<()> {
        let call = self.made;
        self.made += 1;
        match self.fault {
            Some(fault) if call == fault.at || (fault.stays && call > fault.at) => {
                Err(io::Error::from_raw_os_error(fault.error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
fn number(file: &File) -> io::Result<u64> {
    Ok(std::os::unix::fs::MetadataExt::ino(&file.metadata()?))
}

#[cfg(not(unix))]
fn number(_file: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The file system of this machine, with every call written down.
#[derive(Clone, Debug)]
pub struct Recording {
    folder: PathBuf,
    log: Arc<Mutex<Log>>,
}

impl Recording {
    /// Records what happens in a folder; what is there now counts as durable.
    pub fn new(folder: &Path) -> io::Result<Recording> {
        let mut log = Log::default();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let id = log.new_id(&File::open(&path)?)?;
                log.contents.insert(id, fs::read(&path)?);
                log.names.insert(path, id);
            }
        }
        Ok(Recording { folder: folder.to_path_buf(), log: Arc::new(Mutex::new(log)) })
    }

    /// Makes a call fail.
    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Self {
        self.log().fault = Some(fault);
        self
    }

    /// Says that the caller was told that a commit is done.
    pub fn done(&self) {
        self.log().calls.push(Call::Done);
    }

    /// Calls that changed something or synced, the one that failed included.
    pub fn calls(&self) -> usize {
        self.log().made
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, file: Box<dyn DiskFile>, id: Id) -> Box<dyn DiskFile> {
        Box::new(RecordedFile { inner: file, id, log: self.log.clone() })
    }

    fn call(&self, call: Call, done: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut log = self.log();
        log.step()?;
        done()?;
        log.calls.push(call);
        Ok(())
    }
}

impl Disk for Recording {
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>> {
        let file = LocalDisk.open(path, write)?;
        let id = self.log().numbers.get(&number(file.file())?).copied();
        match id {
            Some(id) => Ok(self.file(file, id)),
            None => {
                Err(io::Error::other(format!("{} came from elsewhere and is not recorded", path.display())))
            }
        }
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut log = self.log();
        log.step()?;
        let file = LocalDisk.create(path)?;
        let id = log.new_id(file.file())?;
        log.calls.push(Call::Create(path.into(), id));
        drop(log);
        Ok(self.file(file, id))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Rename(from.into(), to.into()), || LocalDisk.rename(from, to))
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.call(Call::Exchange(one.into(), other.into()), || LocalDisk.exchange(one, other))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Link(from.into(), to.into()), || LocalDisk.link(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(Call::Remove(path.into()), || LocalDisk.remove(path))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.call(Call::SyncFolder(folder.into()), || Ok(()))
    }
}

#[derive(Debug)]
struct RecordedFile {
    inner: Box<dyn DiskFile>,
    id: Id,
    log: Arc<Mutex<Log>>,
}

impl RecordedFile {
    fn call(&self, call: Call, done: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.step()?;
        done()?;
        log.calls.push(call);
        Ok(())
    }
}

impl DiskFile for RecordedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let done =
            self.call(Call::Write(self.id, offset, bytes.into()), || self.inner.write_at(offset, bytes));
        if done.is_err() {
            // A write that fails may have got somewhere, by whole sectors.
            let end = (offset + bytes.len() as u64 / 2) / SECTOR as u64 * SECTOR as u64;
            let part = end.saturating_sub(offset) as usize;
            self.inner.write_at(offset, bytes.get(..part).unwrap_or_default())?;
        }
        done
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.call(Call::SetLen(self.id, length), || self.inner.set_len(length))
    }

    fn sync(&self) -> io::Result<()> {
        // What is durable is what the simulation says; the disk need not be waited for.
        self.call(Call::Sync(self.id), || Ok(()))
    }

    fn file(&self) -> &File {
        self.inner.file()
    }
}

/// What opening all states has shown.
#[derive(Debug, Default)]
pub struct Outcome {
    /// States that differ.
    pub states: usize,
    /// Those that open as the last commit that had returned.
    pub old: usize,
    /// Those that open as the next one.
    pub new: usize,
    /// The others, each with the number of calls before the crash and what was found.
    pub lost: Vec<String>,
}

/// Calls of each commit that are always followed by a look: within them the old state becomes the new one.
const COMMIT: usize = 4;

/// How many states are made.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    /// States with a random part of what is not durable, for each number of calls.
    pub random: usize,
    /// Where the random numbers start.
    pub seed: u64,
    /// Only after every so many-th call, and the last ones of each commit.
    pub every: usize,
}

/// A folder after a crash: its files by name.
type State = BTreeMap<PathBuf, Vec<u8>>;

/// What is durable, and what may be.
#[derive(Default)]
struct Disks {
    contents: HashMap<Id, Vec<u8>>,
    names: BTreeMap<PathBuf, Id>,
    data: Vec<Call>,
    pending: Vec<Call>,
}

impl Disks {
    fn take(&mut self, call: &Call) {
        match call {
            Call::Create(_, id) => {
                self.contents.insert(*id, Vec::new());
                self.pending.push(call.clone());
            }
            Call::Write(..) | Call::SetLen(..) => self.data.push(call.clone()),
            Call::Sync(id) => {
                let (own, rest) =
                    std::mem::take(&mut self.data).into_iter().partition(|c| of(c) == Some(*id));
                self.data = rest;
                for call in own {
                    write(&mut self.contents, &call, |_| true);
                }
            }
            Call::Rename(..) | Call::Exchange(..) | Call::Link(..) | Call::Remove(..) => {
                self.pending.push(call.clone());
            }
            Call::SyncFolder(folder) => {
                let inside = |path: &Path| path.parent().is_some_and(|p| p == folder);
                let (own, rest) =
                    std::mem::take(&mut self.pending).into_iter().partition(|call| match call {
                        Call::Create(path, _) | Call::Remove(path) => inside(path),
                        Call::Rename(_, to) | Call::Exchange(_, to) | Call::Link(_, to) => inside(to),
                        _ => false,
                    });
                self.pending = rest;
                for call in own {
                    name(&mut self.names, &call);
                }
            }
            Call::Done => {}
        }
    }

    /// The state in which of the writes those are there that `part` chooses, sector by sector, and of the names the first.
    fn state(&self, names: usize, mut part: impl FnMut(usize, usize) -> bool) -> State {
        let mut contents = self.contents.clone();
        for (i, call) in self.data.iter().enumerate() {
            write(&mut contents, call, |sector| part(i, sector));
        }
        let mut known = self.names.clone();
        for call in self.pending.iter().take(names) {
            name(&mut known, call);
        }
        known.into_iter().filter_map(|(path, id)| Some((path, contents.get(&id)?.clone()))).collect()
    }
}

fn of(call: &Call) -> Option<Id> {
    match call {
        Call::Write(id, ..) | Call::SetLen(id, _) => Some(*id),
        _ => None,
    }
}

/// Writes the sectors that `part` chooses.
fn write(contents: &mut HashMap<Id, Vec<u8>>, call: &Call, mut part: impl FnMut(usize) -> bool) {
    match call {
        Call::Write(id, offset, bytes) => {
            let Some(content) = contents.get_mut(id) else { return };
            let (mut at, mut rest, mut sector) = (*offset as usize, &bytes[..], 0);
            while !rest.is_empty() {
                let n = (SECTOR - at % SECTOR).min(rest.len());
                let (one, behind) = rest.split_at(n);
                if part(sector) {
                    if content.len() < at + n {
                        content.resize(at + n, 0);
                    }
                    content[at..at + n].copy_from_slice(one);
                }
                (at, rest, sector) = (at + n, behind, sector + 1);
            }
        }
        Call::SetLen(id, length) if part(0) => {
            if let Some(content) = contents.get_mut(id) {
                content.resize(*length as usize, 0);
            }
        }
        _ => {}
    }
}

fn name(names: &mut BTreeMap<PathBuf, Id>, call: &Call) {
    match call {
        Call::Create(path, id) => drop(names.insert(path.clone(), *id)),
        Call::Remove(path) => drop(names.remove(path)),
        Call::Rename(from, to) => {
            let moved = taken(names, from, to);
            names.extend(moved);
        }
        Call::Exchange(one, other) => {
            let (there, back) = (taken(names, one, other), taken(names, other, one));
            names.extend(there.into_iter().chain(back));
        }
        Call::Link(from, to) => {
            if let Some(id) = names.get(from).copied() {
                names.insert(to.clone(), id);
            }
        }
        _ => {}
    }
}

/// Takes away the names of a file, or of everything in a folder, as they are when that has moved.
fn taken(names: &mut BTreeMap<PathBuf, Id>, from: &Path, to: &Path) -> Vec<(PathBuf, Id)> {
    let old: Vec<PathBuf> = names.keys().filter(|path| path.starts_with(from)).cloned().collect();
    let moved = |path: PathBuf| {
        let id = names.remove(&path)?;
        let rest = path.strip_prefix(from).ok()?;
        Some((if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) }, id))
    };
    old.into_iter().filter_map(moved).collect()
}

impl Crash {
    /// Makes all states of what `disk` recorded in the folder `at`, one after the other, and lets `look` say what the normal
    /// opener finds there. `states`: what it found after each commit, the state before the first one included.
    ///
    /// `look` is given the folder; paths in it are those of the recorded folder.
    pub fn run(
        &self,
        disk: &Recording,
        at: &Path,
        states: &[String],
        look: &mut dyn FnMut(&Path) -> String,
    ) -> io::Result<Outcome> {
        let (calls, mut disks) = {
            let log = disk.log();
            (
                log.calls.clone(),
                Disks { contents: log.contents.clone(), names: log.names.clone(), ..Disks::default() },
            )
        };
        let mut out = Outcome::default();
        let mut seen = HashSet::new();
        let mut random = Random(self.seed | 1);
        let mut commits = 0;
        let mut visit = |number: usize, commits: usize, last: bool, state: State| -> io::Result<()> {
            let mut hasher = DefaultHasher::new();
            (commits, last, &state).hash(&mut hasher);
            if !seen.insert(hasher.finish()) {
                return Ok(());
            }
            out.states += 1;
            lay_out(&disk.folder, at, &state)?;
            let found = look(at);
            if states.get(commits) == Some(&found) {
                out.old += 1;
            } else if !last && states.get(commits + 1) == Some(&found) {
                out.new += 1;
            } else {
                out.lost.push(format!("after {number} calls and {commits} commits: {found}"));
            }
            Ok(())
        };
        for number in 0..=calls.len() {
            if let Some(call) = number.checked_sub(1).and_then(|i| calls.get(i)) {
                disks.take(call);
                commits += usize::from(matches!(call, Call::Done));
            }
            let following = calls.get(number..).unwrap_or_default();
            let commits_now = following.iter().take(COMMIT).any(|call| matches!(call, Call::Done));
            if !number.is_multiple_of(self.every.max(1)) && !commits_now && !following.is_empty() {
                continue;
            }
            // What was said to be done has to be there.
            let last = following.is_empty();
            let writes = disks.data.len();
            for names in 0..=disks.pending.len() {
                visit(number, commits, last, disks.state(names, |_, _| false))?;
                visit(number, commits, last, disks.state(names, |_, _| true))?;
                for one in 0..writes {
                    visit(number, commits, last, disks.state(names, |i, _| i == one))?;
                    visit(number, commits, last, disks.state(names, |i, _| i != one))?;
                    visit(number, commits, last, disks.state(names, |i, _| i < one))?;
                }
            }
            for _ in 0..if writes > 0 { self.random } else { 0 } {
                let names = random.below(disks.pending.len() + 1);
                // Some tear every write, some lose a few.
                let share = [1, 2, 8, 15][random.below(4)];
                let torn = random.below(2) == 0;
                let whole: Vec<bool> = (0..writes).map(|_| random.below(16) < share).collect();
                let state = disks.state(names, |i, _| match torn {
                    true => random.below(16) < share,
                    false => whole.get(i).copied().unwrap_or(true),
                });
                visit(number, commits, last, state)?;
            }
        }
        Ok(out)
    }
}

/// Makes the folder `at` hold the files of a state, and no others.
fn lay_out(from: &Path, at: &Path, state: &State) -> io::Result<()> {
    if at.exists() {
        fs::remove_dir_all(at)?;
    }
    fs::create_dir_all(at)?;
    for (path, content) in state {
        let path = at.join(path.strip_prefix(from).unwrap_or(path));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, content)?;
    }
    Ok(())
}

/// Random numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}
