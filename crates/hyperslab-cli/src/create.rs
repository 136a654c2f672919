//! `create`: a file of CDL, as ncgen makes it.

use crate::args::Create;
use crate::interrupt::Busy;
use crate::output::{Outcome, say};
use hyperslab::write::{Cdl, CreateOptions};
use hyperslab::{Address, Context, Error, Format, OpenOptions};
use std::io::Read;

/// A kind by one of our names or of ncgen's, and whether it is netCDF-4 of the classic model.
fn kind(name: &str) -> Outcome<(Format, bool)> {
    let format = match name {
        "classic" | "nc3" | "1" => Format::NetCdf3,
        "64-bit offset" | "64-bit-offset" | "nc6" | "2" => Format::Cdf2,
        "64-bit data" | "64-bit-data" | "cdf-5" | "nc5" | "5" => Format::Cdf5,
        "netCDF-4" | "netCDF4" | "nc4" | "enhanced" | "3" => Format::NetCdf4,
        "netCDF-4 classic model" | "netCDF-4-classic" | "netcdf4-classic" | "nc7" | "hdf5-nc3" | "4" => {
            return Ok((Format::NetCdf4, true));
        }
        name => Format::parse(name)?,
    };
    Ok((format, false))
}

/// The format that the name of the file tells, or that the text needs.
fn format(arguments: &Create, cdl: &Cdl<'_>) -> Outcome<Format> {
    let target = &arguments.output;
    let fragment = target.fragment.as_deref().unwrap_or_default();
    if fragment.contains("nczarr") {
        return Ok(Format::NcZarr);
    }
    if fragment.contains("zarr") {
        return Ok(Format::Zarr2);
    }
    // Files of every kind of netCDF are called so.
    let ending = target.file.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match Format::of_name(&target.file) {
        Some(format) if !matches!(ending.as_str(), "nc" | "cdf") => Ok(format),
        _ => Ok(cdl.format()?),
    }
}

fn text(address: &Address, most: u64) -> Outcome<Vec<u8>> {
    let path = address.local();
    let failed = |e| Error::io(format_args!("reading {}", path.display()), e);
    let mut text = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().lock().take(most.saturating_add(1)).read_to_end(&mut text)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(most.saturating_add(1)).read_to_end(&mut text).map_err(failed)?;
    }
    if text.len() as u64 > most {
        return Err(Error::limit("bytes of CDL", text.len() as u128, most.into()).into());
    }
    Ok(text)
}

/// Makes a file of CDL.
pub(crate) fn run(arguments: &Create, open: &OpenOptions) -> Outcome<()> {
    let name = || format!("file {}", arguments.file);
    let text = text(&arguments.file, open.limits.output)?;
    let mut cdl = Cdl::parse(&text, &open.limits).context(name)?;
    let format = match &arguments.kind {
        Some(name) => {
            let (format, classic_model) = kind(name)?;
            cdl = cdl.with_classic_model(classic_model);
            format
        }
        None => format(arguments, &cdl)?,
    };
    let mut options = CreateOptions::new().with_overwrite(arguments.overwrite);
    options.open = open.clone();
    // Things stay in the order of the text.
    options.hdf5 = options.hdf5.with_track_order(true);
    let _busy = Busy::new();
    let mut transaction = hyperslab::create(arguments.output.clone(), format, &options)?;
    for note in cdl.write_to(&mut transaction, format).context(name)? {
        say(format_args!("note: {note}"));
    }
    transaction.commit()?;
    Ok(())
}
