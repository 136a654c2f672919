//! netCDF files and Zarr stores as netCDF4-python and xarray write them, through the netCDF view.

use crate::report;
use conformance::compare::compare;
use conformance::{reference, tool};
use serde_json::Value;

#[test]
fn what_others_write_is_what_the_view_shows() {
    let folder = reference::generated("netcdf_view.py", &[]);
    let expected = reference::json(&folder.join("expected.json"));
    let files = expected.as_object().expect("sections by file");
    let (mut total, mut wrong) = (0, Vec::new());
    for (file, section) in files {
        let path = folder.join(file);
        // Stores by their URL, as netCDF-C takes them.
        let address = match path.is_dir() {
            true if file.ends_with(".nczarr") => format!("file://{}#mode=nczarr,file", path.display()),
            true => format!("file://{}#mode=zarr,file", path.display()),
            false => path.display().to_string(),
        };
        match tool::ask(&["describe", "--json", &address]) {
            Ok(text) => {
                let found: Value = serde_json::from_slice(&text).unwrap_or_default();
                let (items, differs) = compare("netcdf", section, &found["netcdf"]);
                total += items;
                let told = |v: &Value| v.to_string().chars().take(200).collect::<String>();
                wrong.extend(differs.iter().map(|d| {
                    let found = d.found.as_ref().map_or("nothing".into(), told);
                    format!("{file} {}: {} expected, {found} found", d.item, told(&d.expected))
                }));
            }
            Err(error) => wrong.push(error),
        }
    }
    report("parts of netCDF", total, &wrong);
}
