//! The floor: the chunks of the gzip file read and inflated in parallel by libdeflate, and nothing else.

use crate::{Failure, Reader};
use rayon::prelude::*;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub struct Inflate;

const CHUNK: usize = 16 * 64 * 64 * 4;

impl Reader for Inflate {
    fn read(&self, file: &Path, _: bool) -> Result<Vec<f32>, Failure> {
        let folder = file.parent().ok_or("no folder")?;
        let facts: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("boxes.json"))?)?;
        let chunks: Vec<(u64, usize)> = serde_json::from_value(facts["chunks"].clone())?;
        let file = std::fs::File::open(file)?;
        chunks.par_iter().try_for_each_init(
            || (vec![0; CHUNK], Vec::new(), libdeflater::Decompressor::new()),
            |(out, input, inflate), &(offset, length)| {
                input.resize(length, 0);
                file.read_exact_at(input, offset)?;
                let inflated = inflate.zlib_decompress(input, out).map_err(std::io::Error::other)?;
                if inflated != CHUNK {
                    return Err(std::io::Error::other("a chunk is short"));
                }
                std::hint::black_box(&out);
                Ok::<_, std::io::Error>(())
            },
        )?;
        Ok(Vec::new())
    }

    fn boxes(&self, _: &Path, _: &[[u64; 3]]) -> Result<Vec<Vec<f32>>, Failure> {
        Err("only inflates".into())
    }

    fn listing(&self, _: &Path) -> Result<u64, Failure> {
        Err("only inflates".into())
    }
}
