//! What goes where: data to stdout or a file, everything else to stderr.

use crate::args::{At, Color, Stats};
use crate::interrupt::{self, Busy};
use hyperslab::source::Traffic;
use hyperslab::source::write::{LocalDisk, beside};
use hyperslab::{Address, OpenOptions};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody reads what is written: fine.
    ClosedPipe,
    /// The library said no.
    Library(hyperslab::Error),
    /// Anything else, in words.
    Other(String),
}

/// The result of a command.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<hyperslab::Error> for Failure {
    fn from(e: hyperslab::Error) -> Self {
        Failure::Library(e)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Other(format!("cannot write: {e}")),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::ClosedPipe => f.write_str("closed pipe"),
            Failure::Library(e) => e.fmt(f),
            Failure::Other(text) => f.write_str(text),
        }
    }
}

/// Says on stderr why the command failed.
pub(crate) fn complain(failure: &Failure) {
    // If stderr is closed too there is nobody to tell.
    let _ = writeln!(io::stderr(), "hyperslab: {failure}");
}

/// Says something on stderr.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Opens a file, and says so if the server had to send it whole.
pub(crate) fn open(address: impl Into<Address>, options: &OpenOptions) -> hyperslab::Result<hyperslab::File> {
    let file = hyperslab::open_with(address, options)?;
    let traffic = file.traffic();
    if traffic.whole > 0 {
        let bytes = traffic.bytes;
        say(format_args!(
            "note: the server of {} has no ranges; all {bytes} bytes were downloaded",
            file.name()
        ));
    }
    Ok(file)
}

/// The same at the version that is asked for.
pub(crate) fn open_at(
    address: impl Into<Address>,
    version: &At,
    options: &OpenOptions,
) -> hyperslab::Result<hyperslab::File> {
    let file = open(address, options)?;
    let Some(at) = &version.at else { return Ok(file) };
    let versions = crate::log::versions(&file, version.of.as_deref())?;
    Ok(versions.file(&versions.pick(at)?))
}

impl Stats {
    /// Says what was asked of a server, if that is wanted and there was one.
    pub(crate) fn say(&self, traffic: Traffic) {
        if self.stats && traffic.requests > 0 {
            say(traffic);
        }
    }
}

/// Where the data goes, buffered.
pub(crate) struct Out {
    sink: io::BufWriter<Box<dyn Write>>,
    /// Written beside the wanted file, and renamed when complete.
    renamed: Option<(PathBuf, PathBuf)>,
    /// As long as it is neither renamed nor removed.
    _busy: Option<Busy>,
    colors: bool,
}

impl Out {
    pub(crate) fn stdout(color: Color) -> Out {
        let colors = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && io::stdout().is_terminal()
            }
        };
        Out {
            sink: io::BufWriter::with_capacity(1 << 16, Box::new(io::stdout())),
            renamed: None,
            _busy: None,
            colors,
        }
    }

    /// A file that appears at `path` when [`Out::finish`] is called, and not before.
    ///
    /// A link stays, and the file that it leads to is replaced. What is no regular file (a device, a pipe) is written
    /// to as it is: a file with its name in its place would be another thing.
    pub(crate) fn file(path: &Path) -> Outcome<Out> {
        let failed = |name: &Path, e| Failure::Other(format!("cannot create {}: {e}", name.display()));
        let existing = std::fs::metadata(path).ok();
        let busy = Some(Busy::new());
        let (file, renamed) = match &existing {
            Some(it) if it.is_dir() => {
                return Err(Failure::Other(format!("{} is a folder", path.display())));
            }
            Some(it) if !it.is_file() => {
                (File::options().write(true).open(path).map_err(|e| failed(path, e))?, None)
            }
            _ => {
                let path = linked(path);
                let (file, beside) = beside(&path, &LocalDisk)?;
                let file = file.file().try_clone().map_err(|e| failed(&beside, e))?;
                (file, Some((beside, path)))
            }
        };
        let sink = io::BufWriter::with_capacity(1 << 16, Box::new(file) as Box<dyn Write>);
        let out = Out { sink, renamed, _busy: busy, colors: false };
        if let (Some(it), Some((beside, _))) = (existing, &out.renamed) {
            std::fs::set_permissions(beside, it.permissions()).map_err(|e| failed(beside, e))?;
        }
        Ok(out)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.go_on()?;
        Ok(self.sink.write_all(bytes)?)
    }

    pub(crate) fn print(&mut self, text: impl Display) -> Outcome<()> {
        self.go_on()?;
        Ok(write!(self.sink, "{text}")?)
    }

    pub(crate) fn line(&mut self, text: impl Display) -> Outcome<()> {
        self.go_on()?;
        Ok(writeln!(self.sink, "{text}")?)
    }

    /// Fails if a signal asked to stop what makes a file.
    fn go_on(&self) -> Outcome<()> {
        if self.renamed.is_some() { interrupt::check() } else { Ok(()) }
    }

    /// Gives what was written to whoever reads it.
    pub(crate) fn flush(&mut self) -> Outcome<()> {
        Ok(self.sink.flush()?)
    }

    /// Text in a style, where colours are wanted.
    pub(crate) fn paint(&self, style: Style, text: impl Display) -> String {
        if self.colors { format!("\x1b[{}m{text}\x1b[0m", style as u8) } else { text.to_string() }
    }

    /// Makes sure that everything arrived, and gives the file its name.
    pub(crate) fn finish(mut self) -> Outcome<()> {
        self.sink.flush()?;
        self.go_on()?;
        if let Some((beside, path)) = self.renamed.take() {
            std::fs::rename(&beside, &path).map_err(|e| {
                Failure::Other(format!("cannot rename {} to {}: {e}", beside.display(), path.display()))
            })?;
        }
        Ok(())
    }
}

/// Where a path leads to, through links, whether or not there is something at the end.
fn linked(path: &Path) -> PathBuf {
    std::fs::canonicalize(path)
        .or_else(|_| Ok::<_, io::Error>(path.with_file_name("").join(std::fs::read_link(path)?)))
        .unwrap_or_else(|_| path.to_path_buf())
}

impl Drop for Out {
    fn drop(&mut self) {
        // A file that was not finished leaves nothing behind.
        if let Some((beside, _)) = self.renamed.take() {
            let _ = std::fs::remove_file(beside);
        }
    }
}

/// Styles, as the numbers that terminals know.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    Bold = 1,
    Faint = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
    Blue = 34,
    Cyan = 36,
}

/// A bar on a terminal, shown only for work that takes longer than two seconds.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: bool,
    what: &'static str,
}

impl Progress {
    /// Progress of `total` steps, or of an unknown number.
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Progress {
        let bar = match total {
            Some(n) => ProgressBar::with_draw_target(Some(n), ProgressDrawTarget::hidden()),
            None => ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()),
        };
        Progress { bar, start: Instant::now(), shown: false, what }
    }

    /// Counts `n` more steps.
    pub(crate) fn step(&mut self, n: u64) {
        if !self.shown && self.start.elapsed() > Duration::from_secs(2) && io::stderr().is_terminal() {
            self.shown = true;
            let template = match self.bar.length() {
                Some(_) => "{msg} [{bar:30}] {percent}% {elapsed} (about {eta} left)",
                None => "{msg} {spinner} {pos} {elapsed}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
            self.bar.set_message(self.what);
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(n);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Bytes for people: exact below 10 kB, else with three digits.
pub(crate) fn bytes(n: u64) -> String {
    if n < 10_000 {
        return format!("{n} B");
    }
    let mut value = n as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}
