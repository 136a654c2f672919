//! The command line.

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use hyperslab::{Address, Limits, MissingChunks, OpenOptions};
use std::path::PathBuf;

/// Look into, slice, explain and check files of chunked scientific arrays (HDF5, netCDF, Zarr, .mat, ...).
///
/// An ADDRESS is FILE[::/path[SLICE]], where FILE may be a URL (https://, s3://, gs://, az://) and SLICE is NumPy's syntax:
/// 'ocean.h5::/sst[0, ::2, [5, 1]]'. Quote it, since shells take brackets for themselves.
#[derive(Debug, Parser)]
#[command(name = "hyperslab", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Threads of one read; by default HYPERSLAB_NUM_THREADS, or as many as the process may use.
    #[arg(long, global = true, value_name = "N", help_heading = "For all commands")]
    threads: Option<usize>,

    /// Largest array or buffer in memory, such as 500M or 8G; also bounds metadata and decoded chunks.
    #[arg(long, global = true, value_name = "SIZE", value_parser = size, help_heading = "For all commands")]
    max_memory: Option<u64>,

    /// Follow external links, external raw files and virtual sources out of the folder of the file that names them.
    #[arg(long, global = true, help_heading = "For all commands")]
    allow_outside: bool,

    /// What a chunk is that was never written: its array's fill value, an error, or NaN where elements are floats.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "fill",
        value_name = "HOW",
        help_heading = "For all commands"
    )]
    missing_chunks: Missing,

    /// When to use colours; NO_COLOR is obeyed.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = "For all commands"
    )]
    pub(crate) color: Color,
}

/// What a chunk is that was never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Missing {
    /// The fill value.
    Fill,
    /// An error.
    Raise,
    /// NaN.
    Nan,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Bytes of one buffer for commands that only look.
const LOOK: u64 = 512 << 20;

impl Arguments {
    pub(crate) fn open_options(&self) -> OpenOptions {
        let mut limits = Limits::default().with_allow_outside(self.allow_outside);
        // Only `get` gives arrays to its caller; the others hold a part at a time.
        if !matches!(self.command, Command::Get(_) | Command::Plan(_)) {
            limits.output = LOOK;
            limits.chunk = LOOK;
        }
        if let Some(bytes) = self.max_memory {
            limits.output = bytes;
            limits.metadata = limits.metadata.min(bytes);
            limits.chunk = bytes;
            limits.in_flight = limits.in_flight.min(bytes);
        }
        let options = OpenOptions::default().with_limits(limits).with_missing(match self.missing_chunks {
            Missing::Fill => MissingChunks::Fill,
            Missing::Raise => MissingChunks::Raise,
            Missing::Nan => MissingChunks::Nan,
        });
        match self.threads {
            Some(threads) => options.with_threads(threads.max(1)),
            None => options,
        }
    }
}

/// Takes an address; the name of a file in it need not be UTF-8.
pub(crate) fn address() -> impl TypedValueParser<Value = Address> {
    OsStringValueParser::new().map(Address::from)
}

/// A number of bytes, with K, M, G or T for powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        other => return Err(format!("unknown unit {other}; use K, M, G or T")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{digits:?} is not a whole number"))?;
    number.checked_mul(1 << unit).ok_or_else(|| "too large".to_string())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the objects of a file: path, type, shape, chunks, filters, link targets.
    Ls(Ls),
    /// Say everything about a file or one of its objects, in words.
    Info(Info),
    /// Print a file's whole structure, with hashes of all data, as canonical JSON.
    Describe(Describe),
    /// Print a file as CDL, as ncdump does.
    Dump(Dump),
    /// Print or save elements of an array.
    Get(Get),
    /// Show what a read would do: requests, bytes, chunks, memory.
    Plan(Plan),
    /// Print new rows of arrays that are being written, as they come.
    Follow(Follow),
    /// Make a new version in an HDF5 file that keeps versions.
    Commit(Commit),
    /// List the versions that an HDF5 file keeps, and what each one changed.
    Log(Log),
    /// Remove versions, make their tables of hashes anew, take out what nobody uses.
    Versions {
        /// What to do.
        #[command(subcommand)]
        upkeep: crate::versions::Upkeeps,
    },
    /// Verify every structure, checksum and chunk of a file.
    Check(Check),
    /// Copy a file to another format, other chunks, other codecs, and say what of it cannot be kept.
    Copy(Copy),
    /// Compare two files of any formats: exit 0 the same, 1 different, 2 could not look.
    Diff(Diff),
    /// Set elements of an array.
    Set(Set),
    /// Set or remove an attribute.
    Attr(Attr),
    /// Give an array other extents. What is cut off is gone.
    Resize(Resize),
    /// Move an object to another path of its file.
    Mv(Move),
    /// Remove an object and everything below it.
    Rm(Remove),
    /// Append rows to an array, read from the standard input.
    Append(Append),
    /// Say what the bytes of a file are for: live, metadata, dead, and how large its chunks are.
    Stat(Stat),
    /// Make a file of CDL, the text that dump prints, as ncgen does.
    Create(Create),
    /// Look at a store as it is: keys, lengths, bytes.
    Zmap {
        /// What to look at.
        #[command(subcommand)]
        look: Zmap,
    },
    /// List the codecs that arrays may be encoded with, as HDF5, numcodecs (Zarr 2) and Zarr 3 spell them.
    Codecs(Codecs),
    /// Print a completion script for a shell.
    #[command(
        after_help = "Examples:\n  hyperslab completions bash > ~/.local/share/bash-completion/completions/hyperslab\n  hyperslab completions zsh > ~/.zfunc/_hyperslab"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Which version of an HDF5 file that keeps versions.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// The file as it was at this version: its name, -N (N versions before the current one, 0 for that), or a time in UTC,
    /// such as 2026-03-01T12:00, for the newest version by then. Paths are then those within the version.
    #[arg(long, value_name = "VERSION", allow_hyphen_values = true, help_heading = "Versions")]
    pub(crate) at: Option<String>,
    /// The group whose versions are meant; by default the root, or the only one that has versions.
    #[arg(long, value_name = "GROUP", requires = "at", help_heading = "Versions")]
    pub(crate) of: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Newest first. Chunks are new if no older version has them. `hyperslab get --at NAME FILE::/path` reads a version.\n\nExamples:\n  hyperslab log runs.h5\n  hyperslab log runs.h5::/experiment    the versions of one group\n  hyperslab log --json runs.h5 | jq -r .name"
)]
pub(crate) struct Log {
    /// FILE, or FILE::/group where not the root is versioned.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab commit runs.h5 second --set 'x[3:5]=[1, 2]' --set 'y[0]=7'\n  hyperslab commit runs.h5 third --from new.nc    what another file holds; equal chunks are not stored again\n\nThe file is as it was before if anything fails, and it is readable by versioned-hdf5."
)]
pub(crate) struct Commit {
    /// FILE, or FILE::/group where not the root is versioned.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// The name of the version.
    pub(crate) name: String,
    /// The version that it begins as, by name; the current one by default, and none if empty.
    #[arg(long, value_name = "VERSION")]
    pub(crate) parent: Option<String>,
    /// Its time in UTC, instead of now.
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Take all groups, arrays and attributes of this file, of any format; what it does not have is removed.
    #[arg(long, value_name = "FILE", value_parser = address())]
    pub(crate) from: Option<Address>,
    /// Set elements, after that: path[SLICE]=VALUE, a number, a text, or a JSON array.
    #[arg(long, value_name = "ASSIGNMENT")]
    pub(crate) set: Vec<String>,
}

/// Whether to say what was done.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Say on stderr what was done, one JSON object a line: what a read did, and what was asked of a server (requests,
    /// bytes, further tries, reads answered from memory).
    #[arg(long)]
    pub(crate) stats: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab ls ocean.h5                  the tree of the whole file\n  hyperslab ls ocean.h5::/grid           the members of one group\n  hyperslab ls -r -l ocean.h5::/grid     everything below it, with details\n  hyperslab ls --json ocean.h5 | jq .    for programs"
)]
pub(crate) struct Ls {
    /// FILE or FILE::/path.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// Go into the groups below (the default for a whole file).
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Show stored bytes, chunk counts, index kinds and attributes too.
    #[arg(short, long)]
    pub(crate) long: bool,
    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) version: At,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab info ocean.h5          the file: format, versions, sizes\n  hyperslab info ocean.h5::/sst    one object: layout, index, fill value, attributes"
)]
pub(crate) struct Info {
    /// FILE or FILE::/path.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// As one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) version: At,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab describe --json ocean.h5\n  hyperslab describe --json a.h5 | sha256sum    equal for files of equal content\n\nArrays above 64 MiB are described without a hash of their data."
)]
pub(crate) struct Describe {
    /// The file, folder or URL.
    #[arg(value_parser = address())]
    pub(crate) file: Address,
    /// As JSON, the only form there is.
    #[arg(long, required = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) version: At,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

/// Whose indices comments show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// From 0, the last axis fastest.
    #[value(alias = "C")]
    C,
    /// From 1, the first axis fastest.
    #[value(alias = "F", alias = "fortran")]
    F,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab dump -h ocean.nc            dimensions, variables, attributes\n  hyperslab dump -v sst,/deep/salt ocean.nc\n  hyperslab dump -s -h ocean.nc         with chunks, filters, format\n\nByte for byte what ncdump prints. What netCDF has no word for is shown as a comment, and the exit code is then 1.",
    disable_help_flag = true
)]
pub(crate) struct Dump {
    /// The file.
    #[arg(value_parser = address())]
    pub(crate) file: Address,
    /// The header only, no data.
    #[arg(short = 'h', long)]
    pub(crate) header: bool,
    /// Data of coordinate variables only.
    #[arg(short, long)]
    pub(crate) coordinates: bool,
    /// Data of these variables only: names, or paths of groups and a name, joined by commas.
    #[arg(short, long, value_name = "VARS")]
    pub(crate) variables: Vec<String>,
    /// Data of these groups only, joined by commas.
    #[arg(short, long, value_name = "GROUPS")]
    pub(crate) groups: Vec<String>,
    /// Show special attributes too: storage, chunks, filters, byte order, format.
    #[arg(short, long)]
    pub(crate) special: bool,
    /// Print the kind of file only.
    #[arg(short, long)]
    pub(crate) kind: bool,
    /// Times as text, by units such as "days since 2000-01-01" and the calendar; in comments for attributes.
    #[arg(short, long)]
    pub(crate) times: bool,
    /// As -t, with a T between date and time of day.
    #[arg(short, long)]
    pub(crate) iso: bool,
    /// Significant digits of floats and doubles.
    #[arg(short, long, value_name = "F[,D]")]
    pub(crate) precision: Option<String>,
    /// Longest line of the data section.
    #[arg(short, long, value_name = "N", default_value = "80", value_parser = clap::value_parser!(u16).range(10..))]
    pub(crate) length: u16,
    /// The name after `netcdf`, instead of that of the file.
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// A comment with the indices of each row.
    #[arg(short, long, value_name = "LANGUAGE", value_enum)]
    pub(crate) brief: Option<Language>,
    /// A comment with the indices of each element.
    #[arg(short, long, value_name = "LANGUAGE", value_enum)]
    pub(crate) full: Option<Language>,
    #[command(flatten)]
    pub(crate) version: At,
    #[command(flatten)]
    pub(crate) stats: Stats,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// How elements are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, like NumPy, summarised where long.
    Text,
    /// Rows and columns; compounds as columns.
    Csv,
    /// Nested arrays; NaN and infinities as "NaN", "Infinity", "-Infinity".
    Json,
    /// NumPy's file format.
    Npy,
    /// Packed elements in C order, little-endian, compounds without padding.
    Raw,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab get 'ocean.h5::/sst[0, 10:20, ::5]'             as text\n  hyperslab get 'ocean.h5::/sst[0]' --format csv -o sst.csv\n  hyperslab get ocean.h5::/sst --format npy | python3 -c 'import numpy, sys, io; print(numpy.load(io.BytesIO(sys.stdin.buffer.read())).mean())'\n  hyperslab get 'ocean.h5::/sst[::7, [3, 1], ...]' --format raw --stats > sst.bin"
)]
pub(crate) struct Get {
    /// FILE::/path or FILE::/path[SLICE].
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// How to write the elements; by default from the name of OUT, else text.
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Write to this file, which appears when it is complete.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) version: At,
    #[command(flatten)]
    pub(crate) stats: Stats,
    /// Print all elements as text, however many; so it is done anyway where the text does not go to a terminal.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the corners of large results as text; so it is done anyway on a terminal.
    #[arg(long, conflicts_with = "all")]
    pub(crate) short: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Columns: id, number of the HDF5 filter, what can be done, JSON of numcodecs, JSON of Zarr 3.\n\nExamples:\n  hyperslab codecs\n  hyperslab codecs --json | jq 'select(.hdf5 == 32015)'"
)]
pub(crate) struct Codecs {
    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hyperslab plan 'ocean.h5::/sst[0, 10:20]'")]
pub(crate) struct Plan {
    /// FILE::/path or FILE::/path[SLICE].
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// Its totals, as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) version: At,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// For people, one row a line.
    Text,
    /// One array a line; of several arrays one of theirs.
    Json,
    /// The elements of a row, side by side.
    Csv,
    /// Packed elements in C order, little-endian, compounds without padding.
    Raw,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab follow run.h5::/counts                          until the writer closes the file\n  hyperslab follow run.h5 -d time -d counts --format json   rows of both, side by side\n  hyperslab follow run.h5::/image --from end --rows 1 --format raw > next.bin\n  hyperslab follow https://host/run.h5::/counts --interval 1000 --idle-timeout 60\n\nA row is one index of the first axis. Each comes once, in order, when all of it is written. The last line on stderr\nsays how many came, how long they took to be seen, and why it stopped.\n\nA row with fill values in it comes when its writer has gone on to a later row or chunk, or has closed the file (of an HDF5 file\nthat cannot say so: was not changed for a minute, and no process is seen to write it): what was never written is fill too. Without that, --settle S takes what has not changed for S seconds as written; rows that were announced\nand did not come are counted in the last line, and exit code 1 says that there are such.\n\nOnly a file that a SWMR writer has open says when it is closed. Any other (HDF5 without SWMR, also a finished one,\nnetCDF-3, Zarr) is waited for without end: give --idle-timeout or --rows. A file that is damaged and does not change\nis an error (exit 2) after the idle timeout, or after 100 looks and 10 s while no process is seen to write it."
)]
pub(crate) struct Follow {
    /// FILE::/path, or FILE with -d.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// A further array; rows of several come together, as far as all have them.
    #[arg(short, long = "dataset", value_name = "PATH")]
    pub(crate) datasets: Vec<String>,
    /// Where to begin: `start`, `end` (what comes from now on), or the number of a row.
    #[arg(long, value_name = "ROW", default_value = "start", value_parser = from)]
    pub(crate) from: hyperslab::follow::From,
    /// Look at least this often.
    #[arg(long, value_name = "MS", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) interval: u64,
    /// Stop when looking found no row for so many seconds. The file of a writer that died never says that it is closed.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) idle_timeout: Option<std::time::Duration>,
    /// Take what has not changed for so many seconds as all that its writer wrote: rows with fill values in them too.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) settle: Option<std::time::Duration>,
    /// Stop after so many rows.
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    /// How to write rows.
    #[arg(short, long, value_enum, default_value = "text")]
    pub(crate) format: RowFormat,
    #[command(flatten)]
    pub(crate) version: At,
}

fn from(text: &str) -> Result<hyperslab::follow::From, String> {
    use hyperslab::follow::From;
    match text {
        "start" => Ok(From::Start),
        "end" => Ok(From::End),
        row => row.parse().map(From::Row).map_err(|_| "give start, end, or the number of a row".to_owned()),
    }
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    std::time::Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab check ocean.h5           exit 0 no faults, 1 faults found, 2 could not look\n  hyperslab check --json ocean.h5    as JSON; sound is null if not all could be checked\n  hyperslab check --clear-flag run.h5    after a crash of its writer"
)]
pub(crate) struct Check {
    /// The file.
    #[arg(value_parser = address())]
    pub(crate) file: Address,
    /// As one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Clear the flag of a writer that is gone, so that other programs open the file again. The superblock is saved beside
    /// the file first. Refused while a writer has the file open, and where that cannot be told.
    #[arg(long)]
    pub(crate) clear_flag: bool,
    /// Clear it also where it cannot be told whether a writer has the file open: you have looked, on every machine.
    #[arg(long, requires = "clear_flag")]
    pub(crate) writer_is_gone: bool,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

/// `zmap`: the objects of a store, whatever they hold.
#[derive(Debug, Subcommand)]
pub(crate) enum Zmap {
    /// List the keys next below a key, with lengths. What has no bytes of its own but keys below it ends in `/`.
    #[command(
        after_help = "Examples:\n  hyperslab zmap ls ocean.zarr            what stands at the root\n  hyperslab zmap ls -r s3://bucket/ocean.zarr sst\n  hyperslab zmap ls https://host/ocean.zarr .zmetadata    web servers list nothing, but know one key"
    )]
    Ls {
        /// Folder, zip file or URL of a store.
        #[arg(value_parser = address())]
        store: Address,
        /// The key to begin at; the root by default.
        key: Option<String>,
        /// Go on below.
        #[arg(short, long)]
        recursive: bool,
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        stats: Stats,
    },
    /// Write the bytes of one object, as they are stored.
    #[command(
        after_help = "Examples:\n  hyperslab zmap get ocean.zarr sst/.zarray\n  hyperslab zmap get s3://bucket/ocean.zarr sst/c/0/0 -o chunk"
    )]
    Get {
        /// Folder, zip file or URL of a store.
        #[arg(value_parser = address())]
        store: Address,
        /// The key of the object.
        key: String,
        /// Write to this file, which appears when it is complete.
        #[arg(short, long, visible_alias = "out", value_name = "OUT")]
        output: Option<PathBuf>,
        #[command(flatten)]
        stats: Stats,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab copy ocean.nc ocean.zarr                          by the name: Zarr 3\n  hyperslab copy ocean.nc s3://bucket/ocean.zarr --codec shuffle+zstd=3\n  hyperslab copy a.h5 b.zarr --chunks time=1,lat=100 --shards auto\n  hyperslab copy a.h5 b.nc --to netcdf4 --strict --dry-run    what would be lost, and nothing written\n\nWhat is kept in other words, and what is lost, is said on stderr. The copy appears when it is complete."
)]
pub(crate) struct Copy {
    /// The file to copy.
    #[arg(value_parser = address())]
    pub(crate) source: Address,
    /// Where to.
    #[arg(value_parser = address())]
    pub(crate) target: Address,
    /// Its format: hdf5, netcdf4, netcdf4-classic, netcdf3, cdf2, cdf5, zarr2, zarr3, nczarr, or as ncgen calls it (classic,
    /// "64-bit offset", 64-bit-data, netCDF-4, "netCDF-4 classic model", 1 to 5). By default the name tells.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Extents of chunks: auto, or along dimensions by name or axes by number. By default those of the source.
    #[arg(long, value_name = "auto|DIM=N,…")]
    pub(crate) chunks: Option<String>,
    /// Extents of shards, of Zarr 3.
    #[arg(long, value_name = "auto|DIM=N,…")]
    pub(crate) shards: Option<String>,
    /// Codecs: none, names with levels (shuffle+zstd=3, blosc-lz4=5), or JSON of Zarr. By default those of the source.
    #[arg(long, value_name = "SPEC")]
    pub(crate) codec: Option<String>,
    /// Only this object, what is below it, and the groups above it; may be given more than once.
    #[arg(long, value_name = "PATH")]
    pub(crate) only: Vec<String>,
    /// Write the file anew in its own format, without the room that nothing uses any more.
    #[arg(long, conflicts_with = "to")]
    pub(crate) repack: bool,
    /// Elements in memory, about.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_mem: Option<u64>,
    /// Fail, with nothing written, if something would be lost.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Take the place of what is there.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Say what would become of everything, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Name also what is kept as it is.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// The whole report on stdout, one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) version: At,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab diff a.h5 b.h5\n  hyperslab diff ocean.nc ocean.zarr --rtol 1e-6\n  hyperslab diff runs.h5 --at -1 --at 0    two versions of one file\n\nOf files of different formats values are compared, not exact types, nor each format's own words for dimensions."
)]
pub(crate) struct Diff {
    /// One file.
    #[arg(value_parser = address())]
    pub(crate) a: Address,
    /// The other one; left out with two `--at`.
    #[arg(value_parser = address(), required_unless_present = "at")]
    pub(crate) b: Option<Address>,
    /// The first file at this version, and at this one the other file, or the same one: a name, -N, or a time.
    #[arg(long, value_name = "VERSION", allow_hyphen_values = true)]
    pub(crate) at: Vec<String>,
    /// Numbers are the same up to this part of the second one.
    #[arg(long, value_name = "X", default_value = "0")]
    pub(crate) rtol: f64,
    /// Numbers are the same up to this.
    #[arg(long, value_name = "X", default_value = "0")]
    pub(crate) atol: f64,
    /// A NaN is the same as any other. Those with the same bits always are.
    #[arg(long)]
    pub(crate) nan_equal: bool,
    /// Compare files of one format as those of different ones.
    #[arg(long)]
    pub(crate) loose: bool,
    /// Print nothing; the exit code tells.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab set 'ocean.zarr::/sst[0, 10:20]=-1'\n  hyperslab set 'ocean.zarr::/sst[0, :3]=[1.5, 2, 2.5]'\n  hyperslab set 'ocean.zarr::/names[2]=north'"
)]
pub(crate) struct Set {
    /// FILE::/path[SLICE]=VALUE: a number, a text, or a JSON array of them, which is broadcast.
    pub(crate) assignment: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab attr ocean.zarr::/sst units degC\n  hyperslab attr ocean.zarr::/ history '[\"made\", \"mended\"]'\n  hyperslab attr ocean.zarr::/sst units --delete"
)]
pub(crate) struct Attr {
    /// FILE or FILE::/path.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// Its name.
    pub(crate) name: String,
    /// Its value: a number, a text, or a JSON array of them.
    #[arg(required_unless_present = "delete")]
    pub(crate) value: Option<String>,
    /// Remove it.
    #[arg(long, conflicts_with = "value")]
    pub(crate) delete: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Resize {
    /// FILE::/path.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// New extents, joined by commas.
    #[arg(value_delimiter = ',', required = true)]
    pub(crate) shape: Vec<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Move {
    /// FILE::/path.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// The new path.
    pub(crate) to: String,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// FILE::/path.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab append ocean.zarr::/sst < rows.bin\n  hyperslab get 'a.h5::/sst[5:]' --format raw | hyperslab append b.zarr::/sst\n  echo '[[1.5, 2, NaN]]' | hyperslab append --format json ocean.zarr::/sst"
)]
pub(crate) struct Append {
    /// FILE::/path. Rows come from the standard input.
    #[arg(value_parser = address())]
    pub(crate) address: Address,
    /// How they are written.
    #[arg(short, long, value_enum, default_value_t = Rows::Raw)]
    pub(crate) format: Rows,
}

/// How rows are written that are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rows {
    /// As `get --format raw` writes them: elements in C order, little-endian, compounds without padding.
    Raw,
    /// As `get --format json` writes them: a list of rows, or a row a line.
    Json,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab stat ocean.h5\n  hyperslab stat --json ocean.zarr | jq .dead\n\nLive are bytes of elements, dead those that no structure leads to: deleted objects, old chunks, and what is kept free.\n`copy --repack` makes a file without them."
)]
pub(crate) struct Stat {
    /// The file.
    #[arg(value_parser = address())]
    pub(crate) file: Address,
    /// As one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hyperslab create ocean.cdl -o ocean.nc                  the kind that _Format says, or the least that holds it\n  hyperslab create ocean.cdl -o ocean.zarr                by the name: Zarr 3\n  hyperslab dump a.nc | hyperslab create - -o b.nc --kind netcdf4"
)]
pub(crate) struct Create {
    /// The text; - for the standard input.
    #[arg(value_parser = address(), value_name = "FILE.cdl")]
    pub(crate) file: Address,
    /// The file to make. It is there when it is complete.
    #[arg(short, long, value_parser = address(), value_name = "OUT")]
    pub(crate) output: Address,
    /// Its format: hdf5, netcdf4, netcdf3, cdf2, cdf5, zarr2, zarr3, nczarr. By default the ending of the name tells
    /// (.zarr, .nczarr, .h5, .nc4, .nc3), else the attribute _Format, else it is the first of netcdf3, cdf2, cdf5 and
    /// netcdf4 that holds everything.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) kind: Option<String>,
    /// Take the place of what is there.
    #[arg(long)]
    pub(crate) overwrite: bool,
}
