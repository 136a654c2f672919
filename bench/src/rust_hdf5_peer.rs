//! The crate `rust-hdf5`.

use crate::{Failure, Reader};
use rust_hdf5::H5File;
use std::path::Path;

pub struct RustHdf5;

impl Reader for RustHdf5 {
    fn read(&self, file: &Path, strided: bool) -> Result<Vec<f32>, Failure> {
        let file = H5File::open(file)?;
        let d = file.dataset("d")?;
        if !strided {
            return Ok(d.read_raw::<f32>()?);
        }
        let count: Vec<usize> = d.shape().iter().map(|n| n.div_ceil(7)).collect();
        Ok(d.read_hyperslab::<f32>(&[0; 3], &[7; 3], &count, &[1; 3])?)
    }

    fn boxes(&self, file: &Path, corners: &[[u64; 3]]) -> Result<Vec<Vec<f32>>, Failure> {
        let file = H5File::open(file)?;
        let d = file.dataset("d")?;
        corners.iter().map(|c| Ok(d.read_slice::<f32>(&c.map(|n| n as usize), &[1, 64, 64])?)).collect()
    }

    fn listing(&self, file: &Path) -> Result<u64, Failure> {
        let file = H5File::open(file)?;
        let mut total = 0u64;
        let root = file.root_group();
        for group in root.group_names()? {
            let group = root.group(&group)?;
            for name in group.dataset_names()? {
                let d = file.dataset(&format!("{}/{name}", group.name().trim_matches('/')))?;
                for name in d.attr_names()? {
                    let attribute = d.attr(&name)?;
                    total += match name.as_str() {
                        "index" => attribute.read_numeric::<i64>()? as u64,
                        "range" => attribute.read_numeric_as::<f64>()?.iter().sum::<f64>() as u64,
                        _ => attribute.read_string()?.len() as u64,
                    };
                }
            }
        }
        Ok(total)
    }
}
