//! The crate `zarrs`.

use crate::{Failure, Reader};
use std::path::Path;
use std::sync::Arc;
use zarrs::array::{Array, ArraySubset};
use zarrs::filesystem::FilesystemStore;

pub struct Zarrs;

fn array(store: &Path) -> Result<Array<FilesystemStore>, Failure> {
    Ok(Array::open(Arc::new(FilesystemStore::new(store)?), "/")?)
}

impl Reader for Zarrs {
    fn read(&self, store: &Path, strided: bool) -> Result<Vec<f32>, Failure> {
        if strided {
            return Err("no strides".into());
        }
        let array = array(store)?;
        Ok(array.retrieve_array_subset::<Vec<f32>>(&array.subset_all())?)
    }

    fn boxes(&self, store: &Path, corners: &[[u64; 3]]) -> Result<Vec<Vec<f32>>, Failure> {
        let array = array(store)?;
        let part = |[z, y, x]: [u64; 3]| {
            let subset = ArraySubset::new_with_ranges(&[z..z + 1, y..y + 64, x..x + 64]);
            array.retrieve_array_subset::<Vec<f32>>(&subset)
        };
        corners.iter().map(|&corner| Ok(part(corner)?)).collect()
    }

    fn listing(&self, _: &Path) -> Result<u64, Failure> {
        Err("no HDF5".into())
    }
}
