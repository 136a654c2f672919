//! Uses everything that a file offers, as a harness for damaged ones: the aim is to come back.

use hyperslab::array::Item;
use hyperslab::dtype::DType;
use hyperslab::model::{Attribute, NodeId};
use hyperslab::shape::byte_count;
use hyperslab::source::{MemorySource, Neighbours};
use hyperslab::{Array, Error, File, Limits, Object, OpenOptions, Selection};
use std::path::Path;
use std::sync::Arc;

/// Arrays larger than this are read in part.
const LARGEST: u64 = 64 << 20;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the file opened.
    pub opened: bool,
    /// Things that could be read: objects, attributes, arrays.
    pub read: u64,
    /// Things that were refused with an error.
    pub refused: u64,
}

impl Outcome {
    fn count<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => {
                self.read += 1;
                Some(value)
            }
            Err(error) => {
                self.refused += 1;
                // Writing the error must not fail either.
                std::hint::black_box(error.to_string());
                None
            }
        }
    }
}

/// Opens, checks, walks, and reads attributes and data.
pub fn probe(path: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(path) = path.to_str() else { return outcome };
    if let Some(file) = outcome.count(hyperslab::open(path)) {
        walk(&file, true, &mut outcome);
    }
    outcome
}

/// The same for a file in memory, which has no neighbours; `data` says whether arrays are read.
pub fn probe_bytes(bytes: &[u8], data: bool) -> Outcome {
    let mut outcome = Outcome::default();
    let source = Arc::new(MemorySource::new(bytes.to_vec(), "input"));
    let hierarchy = hyperslab::format::open(source, Neighbours::none(), Limits::default());
    if let Some(hierarchy) = outcome.count(hierarchy) {
        let file = File::from_hierarchy(hierarchy, "input", &OpenOptions::default());
        walk(&file, data, &mut outcome);
    }
    outcome
}

fn walk(file: &File, data: bool, outcome: &mut Outcome) {
    outcome.opened = true;
    std::hint::black_box(file.info());
    file.check(&mut |fault| {
        outcome.refused += 1;
        std::hint::black_box(fault.error.to_string());
    });
    for entry in file.walk() {
        match entry.item {
            Item::Object(node, _) => {
                let Some(object) = outcome.count(file.object(&node, entry.path)) else { continue };
                object.check(&mut |fault| drop(std::hint::black_box(fault.error.to_string())));
                if let Object::Array(array) = &object
                    && data
                {
                    arrays(array, outcome);
                }
                let Some(attributes) = outcome.count(object.attributes()) else { continue };
                for attribute in attributes {
                    if let Some(attribute) = outcome.count(attribute.map_err(|(_, e)| e)) {
                        outcome.count(value(&object, &attribute));
                    }
                }
            }
            Item::Group(group, links) => {
                if let Some(links) = outcome.count(links) {
                    outcome.refused += links.faults.len() as u64;
                }
                Object::Group(group.clone())
                    .check(&mut |fault| drop(std::hint::black_box(fault.error.to_string())));
                if let Some(attributes) = outcome.count(group.attributes()) {
                    for attribute in attributes {
                        if let Some(attribute) = outcome.count(attribute.map_err(|(_, e)| e)) {
                            outcome.count(group.attribute_value(&attribute));
                        }
                    }
                }
            }
            Item::Fault(_, error) => {
                outcome.count::<()>(Err(error));
            }
            other => {
                std::hint::black_box(&other);
            }
        }
    }
}

fn value(object: &Object, attribute: &Attribute) -> Result<(), Error> {
    match object {
        Object::Group(o) => o.attribute_value(attribute).map(drop),
        Object::Array(o) => o.attribute_value(attribute).map(drop),
        Object::Datatype(_) => Ok(()),
    }
}

fn arrays(array: &Array, outcome: &mut Outcome) {
    std::hint::black_box(array.dtype().to_string());
    let bytes = byte_count(array.shape(), array.dtype().size()).unwrap_or(u64::MAX);
    if bytes <= LARGEST {
        outcome
            .count(array.plan(Selection::all()))
            .inspect(|plan| drop(std::hint::black_box(plan.to_string())));
        if is_fixed(array.dtype()) {
            outcome.count(array.read_packed(Selection::all()));
        } else if let Some((_, elements)) = outcome.count(array.read_elements(Selection::all())) {
            for index in 0..elements.count().min(1000) {
                outcome.count(elements.value(index));
            }
        }
        return;
    }
    // The first and the last element, which lie in other chunks.
    for index in ["0", "-1"] {
        let text = vec![index; array.shape().len()].join(",");
        if let Some(selection) = outcome.count(Selection::parse(&text)) {
            outcome.count(array.read_raw(selection));
        }
    }
}

fn is_fixed(dtype: &DType) -> bool {
    hyperslab::dtype::Packing::new(dtype).is_ok()
}

/// Where the object headers of a sound file lie.
pub fn headers(path: &Path, length: usize) -> Vec<usize> {
    let Some(file) = path.to_str().and_then(|p| hyperslab::open(p).ok()) else { return Vec::new() };
    let base = usize::try_from(file.info().user_block).unwrap_or(0);
    let mut walk = file.walk();
    for entry in walk.by_ref().take(1000) {
        drop(entry);
    }
    let address = |node: &NodeId| match node {
        NodeId::Address(a) => {
            usize::try_from(*a).ok().map(|a| a.saturating_add(base)).filter(|&a| a < length)
        }
        _ => None,
    };
    let mut places: Vec<usize> = walk.paths().keys().filter_map(address).collect();
    places.sort_unstable();
    places
}
