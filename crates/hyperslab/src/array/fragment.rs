//! The fragment of an address, in netCDF's words: `#mode=nczarr,s3&aws.profile=me`.

use crate::error::{Error, Result};

/// One word of `mode=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// An HDF5 file, netCDF-4 or not.
    Hdf5,
    /// A netCDF-3 file.
    NetCdf3,
    /// Zarr with what the netCDF library adds to it.
    NcZarr,
    /// Zarr without.
    Zarr,
    /// Zarr as xarray writes it.
    Xarray,
    /// Zarr without the dimension names of xarray.
    NoXarray,
    /// One file, read by ranges of bytes.
    Bytes,
    /// The server speaks the S3 protocol.
    S3,
    /// The server speaks Google's storage protocol.
    Gs,
    /// A folder.
    File,
    /// A zip file.
    Zip,
    /// Metadata comes from one consolidated object.
    Consolidated,
}

/// What follows `#` in an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fragment {
    /// The modes, in the order in which they stand.
    pub modes: Vec<Mode>,
    /// `aws.profile`: whose credentials.
    pub profile: Option<String>,
    /// `aws.region`.
    pub region: Option<String>,
    /// `aws.endpoint`: the server, in place of the protocol's own.
    pub endpoint: Option<String>,
    /// `aws.style`: whether the name of the bucket is a part of the name of the server.
    pub virtual_style: bool,
}

impl Fragment {
    /// Reads a fragment; what it does not know is refused by name.
    pub fn parse(text: &str) -> Result<Fragment> {
        let mut fragment = Fragment::default();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let refused = || Error::unsupported(format!("the fragment #{part}"));
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key.to_ascii_lowercase().as_str() {
                "mode" => {
                    // Which version of Zarr it is, its documents tell.
                    let tells = |word: &&str| !matches!(*word, "" | "v2" | "v3");
                    for word in value.split(',').filter(tells) {
                        fragment.modes.push(Mode::parse(word).ok_or_else(refused)?);
                    }
                }
                "aws.profile" => fragment.profile = Some(value.to_owned()),
                "aws.region" => fragment.region = Some(value.to_owned()),
                "aws.endpoint" => fragment.endpoint = Some(value.to_owned()),
                "aws.style" => match value {
                    "virtual" => fragment.virtual_style = true,
                    "path" => fragment.virtual_style = false,
                    _ => return Err(refused()),
                },
                // A mode may stand alone.
                key if value.is_empty() => fragment.modes.push(Mode::parse(key).ok_or_else(refused)?),
                _ => return Err(refused()),
            }
        }
        // `bytes` says that it is one file, whatever else is said.
        if fragment.has(Mode::Bytes) {
            fragment.modes.retain(|mode| !mode.is_zarr());
        }
        Ok(fragment)
    }

    /// Whether a mode is among the modes.
    pub fn has(&self, mode: Mode) -> bool {
        self.modes.contains(&mode)
    }

    /// Fails if what was opened is not of the format that the modes say.
    pub(super) fn check(&self, format: &str) -> Result<()> {
        let wrong = |said: &str| {
            Err(Error::invalid(format!("the fragment says that it is {said}, but it is {format}"))
                .hint("leave the mode away: formats are told by content"))
        };
        match format {
            "Zarr" if self.has(Mode::Hdf5) => wrong("HDF5"),
            "Zarr" if self.has(Mode::NetCdf3) => wrong("netCDF-3"),
            "Zarr" if self.has(Mode::Bytes) => wrong("one file of bytes"),
            "Zarr" => Ok(()),
            _ if self.is_zarr() => wrong("Zarr"),
            _ if self.has(Mode::Zip) => wrong("a zip file"),
            "HDF5" if self.has(Mode::NetCdf3) => wrong("netCDF-3"),
            other if other != "HDF5" && self.has(Mode::Hdf5) => wrong("HDF5"),
            _ => Ok(()),
        }
    }

    /// Fails if a local path cannot be what the modes say: a folder, or a file.
    pub(super) fn check_local(&self, is_folder: bool) -> Result<()> {
        let what = if is_folder { "a folder" } else { "a file" };
        let said = match is_folder {
            _ if self.has(Mode::S3) => "on a server that speaks S3",
            _ if self.has(Mode::Gs) => "on a server of Google's storage",
            true if self.has(Mode::Zip) => "a zip file",
            true if self.has(Mode::Bytes) || self.has(Mode::Hdf5) || self.has(Mode::NetCdf3) => "one file",
            false if self.has(Mode::File) && self.is_zarr() => "a folder",
            _ => return Ok(()),
        };
        Err(Error::invalid(format!("the fragment says that it is {said}, but it is {what} of this machine")))
    }

    /// Whether it says that the address is one of a Zarr hierarchy.
    pub fn is_zarr(&self) -> bool {
        self.modes.iter().any(|mode| mode.is_zarr())
    }
}

impl Mode {
    /// The mode that a word means.
    pub fn parse(word: &str) -> Option<Mode> {
        Some(match word.to_ascii_lowercase().as_str() {
            "hdf5" | "netcdf4" | "netcdf-4" | "enhanced" => Mode::Hdf5,
            "netcdf3" | "netcdf-3" | "classic" => Mode::NetCdf3,
            "nczarr" => Mode::NcZarr,
            "zarr" => Mode::Zarr,
            "xarray" => Mode::Xarray,
            "noxarray" => Mode::NoXarray,
            "bytes" => Mode::Bytes,
            "s3" => Mode::S3,
            "gs3" | "gs" => Mode::Gs,
            "file" => Mode::File,
            "zip" => Mode::Zip,
            "consolidated" => Mode::Consolidated,
            _ => return None,
        })
    }

    fn is_zarr(self) -> bool {
        matches!(self, Mode::NcZarr | Mode::Zarr | Mode::Xarray | Mode::NoXarray | Mode::Consolidated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn fragments_are_read() {
        let parse = |text| Fragment::parse(text).unwrap();
        assert_eq!(parse("mode=nczarr,S3&aws.profile=me&AWS.REGION=eu").modes, [Mode::NcZarr, Mode::S3]);
        assert_eq!(parse("aws.profile=me&aws.region=eu").profile.as_deref(), Some("me"));
        assert_eq!(parse("bytes").modes, [Mode::Bytes]);
        assert_eq!(parse("mode=nczarr,v2").modes, [Mode::NcZarr]);
        assert_eq!(parse("mode=zarr,bytes&s3").modes, [Mode::Bytes, Mode::S3]);
        assert!(parse("mode=xarray,file,consolidated").is_zarr() && !parse("mode=file").is_zarr());
        assert_eq!(parse(""), Fragment::default());
        for bad in ["mode=dap4", "log", "mode=zarr&x=1", "aws.style=other"] {
            let e = Fragment::parse(bad).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
            assert!(e.to_string().contains(bad.split('&').next_back().unwrap()), "{e}");
        }
    }
}
