//! `versions`: what is done to all versions that a file keeps.

use crate::args::address;
use crate::interrupt::Busy;
use crate::json::Json;
use crate::output::{self, Failure, Out, Outcome};
use clap::{Args, Subcommand};
use hyperslab::source::write::WriteOptions;
use hyperslab::version::{self, Timestamp, Upkeep, Versions};
use hyperslab::{Address, OpenOptions};

/// `versions`: upkeep.
#[derive(Debug, Subcommand)]
pub(crate) enum Upkeeps {
    /// Remove versions, and the chunks that no other version uses.
    #[command(
        after_help = "Examples:\n  hyperslab versions rm runs.h5 first second\n  hyperslab versions rm runs.h5 --keep 50            all but the 50 newest\n  hyperslab versions rm runs.h5 --before 2024-07-01\n\nWhat came from a removed version comes from its parent then. Exit 1 if no version is older than asked for."
    )]
    Rm {
        /// FILE, or FILE::/group where several groups are versioned.
        #[arg(value_parser = address())]
        address: Address,
        /// Names of versions.
        #[arg(required_unless_present_any = ["before", "keep"])]
        names: Vec<String>,
        /// Those committed before this time, in UTC.
        #[arg(long, value_name = "TIME", conflicts_with = "names")]
        before: Option<String>,
        /// All but this many, the newest ones; the current one stays in any case.
        #[arg(long, value_name = "N", conflicts_with_all = ["names", "before"])]
        keep: Option<usize>,
        #[command(flatten)]
        how: How,
    },
    /// Compute the tables of hashes anew, from what versions hold; chunks that nobody uses, or that are there twice, go.
    #[command(
        after_help = "Examples:\n  hyperslab versions rebuild runs.h5\n\nFiles of the data versions 1 to 3, whose tables are of no use, are of version 4 afterwards."
    )]
    Rebuild {
        /// FILE, or FILE::/group where several groups are versioned.
        #[arg(value_parser = address())]
        address: Address,
        #[command(flatten)]
        how: How,
    },
    /// Take out chunks that no version uses, and write the file anew without what nothing leads to: it gets shorter.
    #[command(after_help = "Examples:\n  hyperslab versions repack runs.h5")]
    Repack {
        /// FILE, or FILE::/group where several groups are versioned.
        #[arg(value_parser = address())]
        address: Address,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Debug, Args)]
pub(crate) struct How {
    /// Say what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Say what was done as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(upkeep: &Upkeeps, open: &OpenOptions, out: &mut Out) -> Outcome<bool> {
    let write = WriteOptions::default();
    let _busy = Busy::new();
    let parts = |address: &Address| {
        let mut file = address.clone();
        file.path = "/".to_owned();
        (file, Some(address.path.clone()).filter(|path| path != "/"))
    };
    match upkeep {
        Upkeeps::Rm { address, names, before, keep, how } => {
            let time = before.as_deref().map(|text| match Timestamp::parse(text)? {
                Some(time) => Ok(time),
                None => Err(Failure::Other(format!("{text} is no time: write YYYY-MM-DD HH:MM:SS, in UTC"))),
            });
            let time = time.transpose()?;
            let pick = |versions: &Versions| {
                let picked = match (&time, keep) {
                    (Some(time), _) => versions.before(time)?,
                    (None, Some(count)) => versions.all_but(*count)?,
                    (None, None) => return Ok(names.clone()),
                };
                Ok(picked.into_iter().map(|version| version.name).collect())
            };
            let (file, group) = parts(address);
            let upkeep = version::delete_versions(file, group.as_deref(), pick, open, &write)?;
            if upkeep.report().deleted.is_empty() {
                tell(upkeep.report(), None, how, out)?;
                return Ok(false);
            }
            finish(upkeep, how, out).map(|()| true)
        }
        Upkeeps::Rebuild { address, how } => {
            let (file, group) = parts(address);
            let upkeep = version::rebuild_hash_tables(file, group.as_deref(), open, &write)?;
            finish(upkeep, how, out).map(|()| true)
        }
        Upkeeps::Repack { address, how } => {
            let (file, group) = parts(address);
            if how.dry_run {
                let upkeep = version::remove_unused_chunks(file, group.as_deref(), open, &write)?;
                return finish(upkeep, how, out).map(|()| true);
            }
            let (report, bytes) = version::repack(file, group.as_deref(), open, &write)?;
            tell(&report, Some(bytes), how, out).map(|()| true)
        }
    }
}

fn finish(upkeep: Upkeep, how: &How, out: &mut Out) -> Outcome<()> {
    let report = upkeep.report().clone();
    if !how.dry_run {
        upkeep.commit()?;
    }
    tell(&report, None, how, out)
}

/// Prints what was done; `bytes` are the lengths of a file that was written anew, before and after.
fn tell(report: &version::UpkeepReport, bytes: Option<(u64, u64)>, how: &How, out: &mut Out) -> Outcome<()> {
    if how.json {
        let texts = |list: &[String]| Json::list(list.iter().map(|text| Json::from(text.as_str())));
        let mut fields = vec![
            ("deleted", texts(&report.deleted)),
            ("arrays_removed", texts(&report.arrays_removed)),
            ("chunks_kept", report.chunks_kept.into()),
            ("chunks_removed", report.chunks_removed.into()),
            ("bytes_removed", report.bytes_removed.into()),
            ("tables", report.tables.into()),
            ("dry_run", Json::Bool(how.dry_run)),
        ];
        if let Some((before, after)) = bytes {
            fields.extend([("bytes_before", before.into()), ("bytes_after", after.into())]);
        }
        return out.line(Json::map(fields));
    }
    for name in &report.deleted {
        out.line(format_args!("deleted {name}"))?;
    }
    for path in &report.arrays_removed {
        out.line(format_args!("removed all chunks of {path}, which no version has"))?;
    }
    out.line(format_args!(
        "chunks: {} kept, {} removed, {}; tables of hashes: {} written{}",
        report.chunks_kept,
        report.chunks_removed,
        output::bytes(report.bytes_removed),
        report.tables,
        if how.dry_run { " (dry run)" } else { "" }
    ))?;
    match bytes {
        Some((before, after)) => {
            out.line(format_args!("file: {} before, {} now", output::bytes(before), output::bytes(after)))
        }
        None => Ok(()),
    }
}
