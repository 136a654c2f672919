//! `create`: a file of CDL, as ncgen makes it.

use crate::args::Create;
use crate::interrupt::Busy;
use crate::output::{Outcome, say};
use hyperslab::write::{Cdl, CreateOptions};
use hyperslab::{Address, Context, Error, Format, OpenOptions};
use std::io::Read;

/// The format that is asked for, or that the name of the file tells, or that the text needs.
fn format(arguments: &Create, cdl: &Cdl<'_>) -> Outcome<Format> {
    if let Some(name) = &arguments.kind {
        return Ok(Format::parse(name)?);
    }
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
    let cdl = Cdl::parse(&text, &open.limits).context(name)?;
    let format = format(arguments, &cdl)?;
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
