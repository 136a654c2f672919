//! What others say of files that were written here: h5dump and h5stat of HDF5 1.10, ncdump, netCDF4-python, h5netcdf, xarray.

use conformance::{reference, tool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files to be judged: a name, the file, another one that was not written here, and how far they are the same.
#[derive(Default)]
pub(crate) struct Judged {
    files: Vec<(String, PathBuf, Option<PathBuf>, &'static str)>,
}

impl Judged {
    /// A file that every judge has to read.
    pub(crate) fn add(&mut self, name: impl Into<String>, written: &Path) {
        self.files.push((name.into(), written.into(), None, "nothing"));
    }

    /// One that says the same as the original.
    pub(crate) fn add_same(&mut self, name: impl Into<String>, written: &Path, original: &Path) {
        self.files.push((name.into(), written.into(), Some(original.into()), "all"));
    }

    /// One that says the same as netCDF.
    pub(crate) fn add_netcdf(&mut self, name: impl Into<String>, written: &Path, original: &Path) {
        self.files.push((name.into(), written.into(), Some(original.into()), "netCDF"));
    }

    /// One that may say something else than what it was made of, but is to be read by whoever reads that.
    pub(crate) fn add_changed(&mut self, name: impl Into<String>, written: &Path, original: &Path) {
        self.files.push((name.into(), written.into(), Some(original.into()), "nothing"));
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// What is wrong with them. Judges that take long see one of `part` files; `expected` have to give a verdict on some.
    pub(crate) fn verdict(&self, folder: &Path, part: usize, expected: &[&str]) -> Vec<String> {
        let list = folder.join("judged.json");
        std::fs::write(&list, serde_json::to_vec(&self.files).expect("JSON")).expect("a list");
        let script = tool::root().join("crates/conformance/python/judges.py");
        let output = Command::new(reference::python())
            .arg(script)
            .arg(&list)
            .arg(part.to_string())
            .output()
            .expect("Python starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
        let verdicts: BTreeMap<String, u64> =
            serde_json::from_value(answer["verdicts"].clone()).expect("numbers");
        eprintln!("{} files judged: {verdicts:?}", self.files.len());
        let mut wrong: Vec<String> = serde_json::from_value(answer["wrong"].clone()).expect("a list");
        for judge in expected {
            let absent = said.contains(&format!("{judge} is not on this machine"));
            if absent {
                eprintln!("{judge} is not on this machine and judges nothing");
            } else if !verdicts.contains_key(*judge) {
                wrong.push(format!("{judge} could not read any of {} files", self.files.len()));
            }
        }
        wrong
    }
}

/// Judges of every HDF5 file.
pub(crate) const HDF5: [&str; 3] = ["h5dump", "h5stat", "ncdump"];

/// Judges of every netCDF-4 file.
pub(crate) const NETCDF4: [&str; 6] = ["h5dump", "h5stat", "ncdump", "netCDF4", "h5netcdf", "xarray"];

/// Judges of every file of classic netCDF.
pub(crate) const CLASSIC: [&str; 3] = ["ncdump", "netCDF4", "xarray"];

/// What h5dump finds wrong with all but the elements, which may need filters that it has not.
pub(crate) fn structure(file: &Path) -> Result<(), String> {
    match Command::new("h5dump").arg("-H").arg(file).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(_) => {
            eprintln!("h5dump is not on this machine and judges nothing");
            Ok(())
        }
    }
}
