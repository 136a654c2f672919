//! hyperslab against the reference libraries. One program, so that it links once.

mod cdl;
mod cdl_create;
mod check;
mod conversion;
mod copies;
mod corpus;
mod durable;
mod far;
mod hdf5_write;
#[cfg(unix)]
mod interrupt;
mod judges;
mod matrix;
mod netcdf3_write;
mod netcdf_view;
mod oracle;
mod readme;
mod robust;
mod s3;
mod selection;
mod staged;
mod swmr;
mod threads;
mod upkeep;
mod version_model;
mod versions;
mod written;
mod zarr;
mod zarr_writers;

/// The folder of shared material beside the repository, if it is there: the corpus, the oracle.
fn shared(what: &str) -> Option<std::path::PathBuf> {
    let path = conformance::tool::root().join("../shared").join(what);
    path.exists().then_some(path)
}

/// SHA-256 in lowercase hex.
fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Fails with all the faults at once.
fn report(what: &str, total: usize, wrong: &[String]) {
    eprintln!("{what}: {} of {total} right", total - wrong.len().min(total));
    assert!(total > 0, "{what}: there is nothing to compare");
    assert!(
        wrong.is_empty(),
        "{what}: {} of {total} wrong\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}
