//! What is in a file is told by its content.

use super::open;
use crate::error::ErrorKind;
use crate::limits::Limits;
use crate::source::{MemorySource, Neighbours};
use std::sync::Arc;

#[test]
fn formats_are_told_by_content() {
    let open = |bytes: &[u8]| {
        open(Arc::new(MemorySource::new(bytes.to_vec(), "a.nc")), Neighbours::none(), Limits::default())
    };
    let hdf5 = include_bytes!("../../tests/data/tiny_new.h5");
    assert_eq!(open(hdf5).unwrap().info().format, "HDF5");
    // No records, and three empty lists.
    let netcdf3 = b"CDF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    assert_eq!(open(netcdf3).unwrap().info().format, "netCDF-3 classic");
    for (bytes, word) in [
        (&b"PK\x03\x04rest"[..], "zip"),
        (b"\x0e\x03\x13\x01rest", "HDF4"),
        (b"GRIBrest", "GRIB"),
        (b"some text", "some tex"),
    ] {
        let error = open(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(text.contains(word) && text.contains("a.nc"), "{text}");
    }
    assert_eq!(open(b"").unwrap_err().kind(), ErrorKind::Truncated);
}
