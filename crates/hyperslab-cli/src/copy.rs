//! `copy`: a file in another format, other chunks, other codecs.

use crate::args::Copy;
use crate::interrupt::Busy;
use crate::json::Json;
use crate::output::{self, Failure, Out, Outcome};
use hyperslab::copy::{CopyOptions, Extents, Outcome as Fate, Report, parse_codecs};
use hyperslab::{Address, File, Format, OpenOptions};

/// The format that a file has.
fn own(source: &File) -> Format {
    let info = source.info();
    match (info.format, info.version) {
        // netCDF's libraries go by the order in which things were made, which its writer keeps.
        ("HDF5", _) if source.root().attribute("_NCProperties").is_ok() => Format::NetCdf4,
        ("HDF5", _) => Format::Hdf5,
        ("Zarr", 3) => Format::Zarr3,
        ("Zarr", _) if source.netcdf().is_ok_and(|view| view.is_nczarr()) => Format::NcZarr,
        ("Zarr", _) => Format::Zarr2,
        (_, 1) => Format::NetCdf3,
        (_, 2) => Format::Cdf2,
        _ => Format::Cdf5,
    }
}

/// The format of a copy: the one that is asked for, or that the name of the copy tells.
fn format(arguments: &Copy, source: &File) -> Outcome<Format> {
    if arguments.repack {
        return Ok(own(source));
    }
    if let Some(name) = &arguments.to {
        return Ok(Format::parse(name)?);
    }
    let target = &arguments.target;
    let fragment = target.fragment.as_deref().unwrap_or_default();
    if fragment.contains("nczarr") {
        return Ok(Format::NcZarr);
    }
    if fragment.contains("zarr") {
        return Ok(Format::Zarr2);
    }
    Format::of_name(&target.file).ok_or_else(|| {
        Failure::Other(format!(
            "the name {} tells no format; say --to hdf5, netcdf4, netcdf3, zarr3 …",
            target.file
        ))
    })
}

fn options(arguments: &Copy, open: &OpenOptions) -> Outcome<CopyOptions> {
    let mut options = CopyOptions::default();
    options.create.open = open.clone();
    options.create.write.overwrite = arguments.overwrite;
    options.chunks = arguments.chunks.as_deref().map(Extents::parse).transpose()?;
    options.shards = arguments.shards.as_deref().map(Extents::parse).transpose()?;
    options.codecs = arguments.codec.as_deref().map(parse_codecs).transpose()?;
    options.only.clone_from(&arguments.only);
    options.strict = arguments.strict;
    options.dry_run = arguments.dry_run;
    if let Some(memory) = arguments.max_mem {
        options.memory = memory;
        options.create.batch = Some((memory / 8).max(1 << 20));
    }
    if arguments.target.scheme().is_none_or(|scheme| scheme == "file")
        && let Some(folder) = arguments.target.local().parent()
    {
        // Where the copy goes there is room, or there is none for it either.
        options.scratch = Some(if folder.as_os_str().is_empty() { ".".into() } else { folder.into() });
    }
    Ok(options)
}

/// Copies a file.
pub(crate) fn run(arguments: &Copy, open: &OpenOptions, out: &mut Out) -> Outcome<()> {
    let options = options(arguments, open)?;
    let source = output::open_at(arguments.source.clone(), &arguments.version, open)?;
    let format = format(arguments, &source)?;
    let target: Address = arguments.target.clone();
    let _busy = Busy::new();
    let report = hyperslab::copy::copy(&source, target, format, &options)?;
    tell(arguments, &report, out)
}

fn tell(arguments: &Copy, report: &Report, out: &mut Out) -> Outcome<()> {
    if arguments.json {
        for entry in &report.entries {
            let why = match &entry.outcome {
                Fate::Kept => Json::Null,
                Fate::Mapped(why) | Fate::Dropped(why) => Json::text(why),
            };
            out.line(Json::map([
                ("what", Json::from(entry.what)),
                ("name", Json::text(&entry.name)),
                ("outcome", Json::from(entry.outcome.word())),
                ("why", why),
            ]))?;
        }
        return Ok(());
    }
    for entry in report.entries.iter().filter(|e| arguments.verbose || e.outcome != Fate::Kept) {
        output::say(entry);
    }
    let kept = report.entries.len() - report.dropped() - report.mapped();
    let stats = &report.stats;
    output::say(format_args!(
        "{kept} kept, {} mapped, {} dropped; {} chunks encoded, {} taken over, {} of fill; {} bytes written{}",
        report.mapped(),
        report.dropped(),
        stats.chunks_encoded - stats.chunks_skipped,
        stats.chunks_copied,
        stats.chunks_skipped,
        report.committed.bytes,
        if arguments.dry_run { " (dry run)" } else { "" }
    ));
    Ok(())
}
