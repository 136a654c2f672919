//! Special attributes: what `ncdump -s` says of how things are stored, which CDL sets instead of an attribute.

use super::Place;
use super::types::{in_order, is_character};
use crate::codec::FilterSpec;
use crate::convention::netcdf::cdl::{Attribute, Item};
use crate::dtype::{ByteOrder, DType};
use crate::error::Result;
use crate::model::write::LayoutSpec;

/// Names of attributes that are none: of a variable.
const OF_VARIABLES: [&str; 9] = [
    "_Storage",
    "_ChunkSizes",
    "_DeflateLevel",
    "_Shuffle",
    "_Fletcher32",
    "_Endianness",
    "_NoFill",
    "_Filter",
    // Says what `_Filter` and the others say, in other words.
    "_Codecs",
];

/// Of a file.
const OF_FILES: [&str; 4] = ["_Format", "_NCProperties", "_IsNetcdf4", "_SuperblockVersion"];

/// Whether an attribute of a variable, or of the root group, says how it is stored.
pub(super) fn is_special(attribute: &Attribute, of_variable: bool) -> bool {
    let names: &[&str] = if of_variable { &OF_VARIABLES } else { &OF_FILES };
    names.contains(&attribute.name.as_str())
}

/// Whether only netCDF-4 and Zarr can do what a special attribute of a variable asks for.
pub(super) fn is_of_netcdf4(attribute: &Attribute) -> bool {
    is_special(attribute, true) && !matches!(attribute.name.as_str(), "_NoFill" | "_Codecs" | "_Endianness")
}

/// The text of an attribute.
pub(super) fn text_of(attribute: &Attribute) -> Option<String> {
    let mut all = Vec::new();
    for item in &attribute.values {
        match item {
            Item::Text(text) => all.extend_from_slice(text),
            Item::Name(word) => all.extend_from_slice(word.as_bytes()),
            Item::Integer(value, _) => all.extend_from_slice(value.to_string().as_bytes()),
            _ => return None,
        }
    }
    String::from_utf8(all).ok()
}

/// How a variable is to be stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Special {
    storage: Option<String>,
    chunk: Option<Vec<u64>>,
    deflate: Option<u32>,
    shuffle: bool,
    fletcher32: bool,
    order: Option<ByteOrder>,
    /// Whether elements that nobody wrote are not defined.
    pub(super) no_fill: bool,
    filters: Vec<FilterSpec>,
}

impl Special {
    /// From the special attributes of a variable of so many axes.
    pub(super) fn of(attributes: &[Attribute], rank: usize, place: &Place<'_>) -> Result<Special> {
        let mut special = Special::default();
        for attribute in attributes.iter().filter(|a| is_special(a, true)) {
            let text = text_of(attribute);
            let wrong =
                |wanted: &str| place.wrong(attribute.at, 0, format!("{} is {wanted}", attribute.name));
            let truth = || match text.as_deref() {
                Some("true" | "1") => Ok(true),
                Some("false" | "0") => Ok(false),
                _ => Err(wrong("\"true\" or \"false\"")),
            };
            match attribute.name.as_str() {
                "_Storage" => match text.as_deref() {
                    Some("chunked" | "contiguous" | "compact") => special.storage = text,
                    _ => return Err(wrong("\"chunked\", \"contiguous\" or \"compact\"")),
                },
                "_ChunkSizes" => {
                    let size = |item: &Item| match item {
                        Item::Integer(value, _) => u64::try_from(*value).ok().filter(|&v| v > 0),
                        _ => None,
                    };
                    let sizes: Option<Vec<u64>> = attribute.values.iter().map(size).collect();
                    match sizes.filter(|sizes| sizes.len() == rank) {
                        Some(sizes) => special.chunk = Some(sizes).filter(|sizes| !sizes.is_empty()),
                        None => return Err(wrong("a whole number from one on for each dimension")),
                    }
                }
                "_DeflateLevel" => match attribute.values.as_slice() {
                    [Item::Integer(level @ 0..=9, _)] => special.deflate = u32::try_from(*level).ok(),
                    _ => return Err(wrong("a number from 0 to 9")),
                },
                "_Shuffle" => special.shuffle = truth()?,
                "_Fletcher32" => special.fletcher32 = truth()?,
                "_NoFill" => special.no_fill = truth()?,
                "_Endianness" => {
                    special.order = match text.as_deref() {
                        Some("little") => Some(ByteOrder::Little),
                        Some("big") => Some(ByteOrder::Big),
                        Some("native") => None,
                        _ => return Err(wrong("\"little\", \"big\" or \"native\"")),
                    }
                }
                "_Filter" => {
                    let filters = text.as_deref().and_then(filters);
                    special.filters = filters.ok_or_else(|| {
                        wrong("numbers of filters and their parameters: \"307,9\", \"2,4|1,6\"")
                    })?;
                }
                _ => {}
            }
        }
        Ok(special)
    }

    /// The type in the byte order that is asked for.
    pub(super) fn dtype(&self, dtype: DType) -> DType {
        self.order.map_or(dtype.clone(), |order| in_order(&dtype, order))
    }

    /// Filters in the order in which they encode, for elements of this type.
    pub(super) fn filters(&self, dtype: &DType) -> Vec<FilterSpec> {
        let given = |wanted: u16| {
            self.filters.iter().any(|f| matches!(f, FilterSpec::Hdf5 { id, .. } if *id == wanted))
        };
        let mut all = Vec::new();
        if self.shuffle && !given(2) && !is_character(dtype) {
            all.push(filter(2, vec![u32::try_from(dtype.size()).unwrap_or(1)]));
        }
        all.extend(self.filters.iter().cloned());
        if let Some(level) = self.deflate
            && !given(1)
        {
            all.push(filter(1, vec![level]));
        }
        if self.fletcher32 && !given(3) {
            all.push(filter(3, Vec::new()));
        }
        all
    }

    /// How it lies in the file.
    pub(super) fn layout(&self) -> LayoutSpec {
        match (self.storage.as_deref(), &self.chunk) {
            (Some("compact"), _) => LayoutSpec::Compact,
            (Some("contiguous"), _) => LayoutSpec::Contiguous,
            (_, Some(chunk)) => LayoutSpec::Chunked { chunk: chunk.clone(), shard: None },
            _ => LayoutSpec::Auto,
        }
    }
}

fn filter(id: u16, parameters: Vec<u32>) -> FilterSpec {
    FilterSpec::Hdf5 { id, flags: 0, name: "".into(), parameters }
}

/// Filters as `_Filter` spells them: `id,parameter,…|id,…`.
fn filters(text: &str) -> Option<Vec<FilterSpec>> {
    let one = |text: &str| {
        let mut numbers = text.split(',').map(|n| n.trim().trim_end_matches(['u', 'U']).parse::<u32>().ok());
        let id = u16::try_from(numbers.next()??).ok()?;
        Some(filter(id, numbers.collect::<Option<_>>()?))
    };
    text.split('|').map(one).collect()
}
