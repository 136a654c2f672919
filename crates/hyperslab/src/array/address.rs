//! Addresses: `FILE_OR_URL[#fragment]::/path[SLICE]`, the part after `::` optional.

use super::fragment::Fragment;
use crate::error::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where something is: a file, a path in it, and which of its elements.
///
/// ```
/// use hyperslab::Address;
/// let a = Address::parse("ocean.nc::/sst[0, ::2]");
/// assert_eq!((a.file.as_str(), a.path.as_str()), ("ocean.nc", "/sst[0, ::2]"));
/// assert_eq!(a.split_slice(), Some(("/sst", "[0, ::2]")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// File or URL, without fragment.
    pub file: String,
    /// What follows `#`, such as `mode=hdf5`.
    pub fragment: Option<String>,
    /// What follows `::`, as written, slice included: an object whose name ends in brackets is found before the
    /// brackets are taken as a slice. `/` if there is nothing.
    pub path: String,
    /// The name of a local file that is not UTF-8; `file` shows it as well as can be.
    raw: Option<PathBuf>,
}

impl Address {
    /// Reads an address without looking at any file: the first `::/` splits, or the last `::` if there is none.
    pub fn parse(text: &str) -> Address {
        Address::parse_with(text, |_| false)
    }

    /// Reads an address. File names may hold `::`, `#` and brackets: a split that names an existing file wins, the
    /// longest name first.
    pub fn locate(text: &str) -> Address {
        Address::parse_with(text, |file| Path::new(file).exists())
    }

    /// As [`Address::locate`], with a test of whether a file exists.
    ///
    /// netCDF's older form of fragments is taken too, `[mode=zarr]file://…`, and schemes in any case.
    pub fn parse_with(text: &str, exists: impl Fn(&str) -> bool) -> Address {
        let mut front = Vec::new();
        let mut rest = text;
        while let Some((said, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            front.push(said);
            rest = after;
        }
        let Some(scheme) = scheme(rest).filter(|_| !exists(text)) else {
            return Address::parse_plain(text, exists);
        };
        let lower = scheme.to_ascii_lowercase();
        if front.is_empty() && lower == scheme {
            return Address::parse_plain(text, exists);
        }
        let mut address = Address::parse_plain(&format!("{lower}{}", &rest[scheme.len()..]), exists);
        let said: Vec<&str> = front.into_iter().chain(address.fragment.as_deref()).collect();
        address.fragment = (!said.is_empty()).then(|| said.join("&"));
        address
    }

    fn parse_plain(text: &str, exists: impl Fn(&str) -> bool) -> Address {
        let address = |file: &str, path: &str| {
            let (file, fragment) = match file.rsplit_once('#') {
                Some((name, fragment)) if is_fragment(name, fragment) && !exists(file) => {
                    (name, Some(fragment.to_owned()))
                }
                _ => (file, None),
            };
            let path = if path.is_empty() { "/" } else { path };
            Address { file: file.to_owned(), fragment, path: path.to_owned(), raw: None }
        };
        let there = |file: &str| {
            let named = |(name, fragment): (&str, &str)| exists(name) && !fragment.contains("::");
            exists(file) || file.rsplit_once('#').is_some_and(named)
        };
        if there(text) {
            return address(text, "");
        }
        let mut splits = text.rmatch_indices("::").map(|(i, _)| (&text[..i], &text[i + 2..]));
        if let Some((file, path)) = splits.find(|(file, _)| there(file)) {
            return address(file, path);
        }
        // The server of a URL may have an address with `::` in it.
        let server = match text.split_once("://") {
            Some((_, rest)) => text.len() - rest.len() + rest.find('/').unwrap_or(rest.len()),
            None => 0,
        };
        let rest = &text[server..];
        match rest.find("::/").or_else(|| rest.rfind("::")).map(|i| server + i) {
            Some(i) => address(&text[..i], &text[i + 2..]),
            None => address(text, ""),
        }
    }

    /// The name of the file on this machine, if it is one.
    pub fn local(&self) -> &Path {
        self.raw.as_deref().unwrap_or(Path::new(&self.file))
    }

    /// A local file, whose name is taken as it is, and a path in it.
    fn of_file(file: &Path, path: &str) -> Address {
        let raw = file.to_str().is_none().then(|| file.to_owned());
        let path = if path.is_empty() { "/" } else { path };
        Address { file: file.to_string_lossy().into_owned(), fragment: None, path: path.to_owned(), raw }
    }

    /// What its fragment says.
    pub(super) fn modes(&self) -> Result<Fragment> {
        Fragment::parse(self.fragment.as_deref().unwrap_or_default()).context(|| self.to_string())
    }

    /// The path without its slice, and the slice with its brackets, if the path ends in one.
    pub fn split_slice(&self) -> Option<(&str, &str)> {
        if !self.path.ends_with(']') {
            return None;
        }
        let mut depth = 0u32;
        for (i, c) in self.path.char_indices().rev() {
            match c {
                ']' => depth += 1,
                '[' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let (path, slice) = self.path.split_at(i);
                return Some((if path.is_empty() { "/" } else { path }, slice));
            }
        }
        None
    }

    /// The scheme of a URL, such as `https`. A drive letter is none.
    pub fn scheme(&self) -> Option<&str> {
        scheme(&self.file)
    }
}

fn scheme(file: &str) -> Option<&str> {
    let (scheme, _) = file.split_once("://")?;
    let plain = scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    (scheme.len() > 1 && plain).then_some(scheme)
}

/// Whether what follows `#` in the name of a file is a fragment: `key=value` pairs, or for a URL a mode alone.
fn is_fragment(name: &str, fragment: &str) -> bool {
    fragment.contains('=') || name.contains("://") && Fragment::parse(fragment).is_ok()
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        Address::locate(text)
    }
}

impl From<&String> for Address {
    fn from(text: &String) -> Self {
        Address::locate(text)
    }
}

impl From<String> for Address {
    fn from(text: String) -> Self {
        Address::locate(&text)
    }
}

/// A path is a file name as it is, whatever characters it holds.
impl From<&Path> for Address {
    fn from(path: &Path) -> Self {
        Address::of_file(path, "")
    }
}

impl From<&std::path::PathBuf> for Address {
    fn from(path: &std::path::PathBuf) -> Self {
        path.as_path().into()
    }
}

/// As [`Address::locate`], for text of the system, which need not be UTF-8.
impl From<&OsStr> for Address {
    fn from(text: &OsStr) -> Self {
        if let Some(text) = text.to_str() {
            return Address::locate(text);
        }
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let bytes = text.as_bytes();
            let splits = (0..bytes.len()).rev().filter(|&i| bytes.get(i..i + 2) == Some(b"::"));
            let named = splits.filter_map(|i| {
                let (file, path) = (bytes.get(..i)?, bytes.get(i + 2..)?);
                Some((Path::new(OsStr::from_bytes(file)), std::str::from_utf8(path).ok()?))
            });
            if !Path::new(text).exists()
                && let Some((file, path)) = named.into_iter().find(|(file, _)| file.exists())
            {
                return Address::of_file(file, path);
            }
        }
        Address::from(Path::new(text))
    }
}

impl From<OsString> for Address {
    fn from(text: OsString) -> Self {
        text.as_os_str().into()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(fragment) = &self.fragment {
            write!(f, "#{fragment}")?;
        }
        if self.path != "/" {
            write!(f, "::{}", self.path)?;
        }
        Ok(())
    }
}
