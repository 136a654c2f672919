//! hyperslab itself.

use crate::{Failure, Reader};
use hyperslab::array::{Entry, Item};
use hyperslab::model::{Attribute, NodeKind, Value};
use hyperslab::{Array, Object, Selection};
use std::path::Path;

pub struct Hyperslab;

fn array(file: &Path) -> Result<Array, Failure> {
    // In a file it has a name; a store is the array itself.
    let path = if file.extension().is_some_and(|e| e == "zarr") { "/" } else { "/d" };
    Ok(hyperslab::open(file.to_str().ok_or("a path that is not text")?)?.array(path)?)
}

fn weight(value: &Value) -> u64 {
    match value {
        Value::List(items) => items.iter().map(weight).sum(),
        _ => match value.as_str() {
            Some(text) => text.len() as u64,
            None => value.as_f64().unwrap_or(0.0) as u64,
        },
    }
}

impl Reader for Hyperslab {
    fn read(&self, file: &Path, strided: bool) -> Result<Vec<f32>, Failure> {
        let selection = Selection::parse(if strided { "::7, ::7, ::7" } else { "..." })?;
        Ok(array(file)?.read::<f32>(selection)?.data)
    }

    fn boxes(&self, file: &Path, corners: &[[u64; 3]]) -> Result<Vec<Vec<f32>>, Failure> {
        let array = array(file)?;
        let part = |[z, y, x]: [u64; 3]| array.read::<f32>((z..z + 1, y..y + 64, x..x + 64));
        corners.iter().map(|&corner| Ok(part(corner)?.data)).collect()
    }

    fn listing(&self, file: &Path) -> Result<u64, Failure> {
        let file = hyperslab::open(file.to_str().ok_or("a path that is not text")?)?;
        let mut total = 0;
        for entry in file.walk() {
            let Entry { item: Item::Object(node, NodeKind::Array), path } = entry else { continue };
            let Object::Array(array) = file.object(&node, path)? else { continue };
            for attribute in array.attributes()? {
                let attribute: Attribute = attribute.map_err(|(_, e)| e)?;
                total += weight(&array.attribute_value(&attribute)?);
            }
        }
        Ok(total)
    }
}
