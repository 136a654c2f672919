//! The crate `hdf5-reader`.

use crate::{Failure, Reader};
use hdf5_reader::{Hdf5File, SliceInfo, SliceInfoElem};
use std::path::Path;

pub struct Hdf5Reader;

fn vector(array: ndarray::ArrayD<f32>) -> Vec<f32> {
    array.into_raw_vec_and_offset().0
}

impl Reader for Hdf5Reader {
    fn read(&self, file: &Path, strided: bool) -> Result<Vec<f32>, Failure> {
        let file = Hdf5File::open(file)?;
        let d = file.dataset("/d")?;
        if !strided {
            return Ok(vector(d.read_array_parallel::<f32>()?));
        }
        let selections =
            d.shape().iter().map(|&end| SliceInfoElem::Slice { start: 0, end, step: 7 }).collect();
        Ok(vector(d.read_slice_parallel::<f32>(&SliceInfo { selections })?))
    }

    fn boxes(&self, file: &Path, corners: &[[u64; 3]]) -> Result<Vec<Vec<f32>>, Failure> {
        let file = Hdf5File::open(file)?;
        let d = file.dataset("/d")?;
        let part = |start: u64, n: u64| SliceInfoElem::Slice { start, end: start + n, step: 1 };
        corners
            .iter()
            .map(|c| {
                let selections = vec![part(c[0], 1), part(c[1], 64), part(c[2], 64)];
                Ok(vector(d.read_slice::<f32>(&SliceInfo { selections })?))
            })
            .collect()
    }

    fn listing(&self, file: &Path) -> Result<u64, Failure> {
        let file = Hdf5File::open(file)?;
        let mut total = 0u64;
        for group in file.root_group()?.groups()? {
            for d in group.datasets()? {
                for attribute in d.attributes() {
                    total += match attribute.name.as_str() {
                        "index" => attribute.read_scalar::<i64>()? as u64,
                        "range" => attribute.read_1d::<f64>()?.iter().sum::<f64>() as u64,
                        _ => attribute.read_string()?.len() as u64,
                    };
                }
            }
        }
        Ok(total)
    }
}
