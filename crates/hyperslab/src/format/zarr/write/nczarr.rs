//! What NCZarr says of groups and arrays, in the layout that netCDF-C writes since 4.9.3: all of it among the attributes.

use super::node::Members;
use crate::error::Result;
use crate::json::{Json, wrong_member};
use crate::model::{Dimension, NodeKind};
use crate::shape::Name;

const GROUP: &str = "_nczarr_group";
const ARRAY: &str = "_nczarr_array";
const SUPERBLOCK: &str = "_nczarr_superblock";
const TYPES: &str = "_nczarr_attr";

/// What is said of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    /// Types of attributes.
    pub(super) types: Vec<(String, String)>,
    /// Of a group, its dimensions in order.
    pub(super) dimensions: Vec<Dimension>,
    pub(super) arrays: Vec<String>,
    pub(super) groups: Vec<String>,
    /// Of an array, the paths of its dimensions.
    pub(super) references: Vec<String>,
    pub(super) scalar: bool,
}

/// Whether an attribute is one of these words.
pub(super) fn is_reserved(name: &str) -> bool {
    [GROUP, ARRAY, SUPERBLOCK, TYPES].contains(&name)
}

/// The attribute that says that a hierarchy is NCZarr of this layout.
pub(super) fn is_marked(attributes: &[(String, Json)]) -> bool {
    attributes.iter().any(|(name, _)| name == SUPERBLOCK)
}

/// Whether the root is of a layout that netCDF-C wrote before.
pub(super) fn is_older(metadata: &[(String, Json)], attributes: &[(String, Json)]) -> bool {
    let upper = |(name, _): &(String, Json)| name.starts_with("_NCZARR_");
    metadata.iter().any(|m| m.0 == SUPERBLOCK || upper(m)) || attributes.iter().any(upper)
}

impl Words {
    /// Takes what is said out of the attributes; `None` if nothing is.
    pub(super) fn take(attributes: &mut Members) -> Result<Option<Words>> {
        if !attributes.iter().any(|(name, _)| is_reserved(name)) {
            return Ok(None);
        }
        let mut words = Words::default();
        let texts = |found: Option<&Json>| -> Vec<String> {
            let items = found.and_then(Json::as_list).unwrap_or(&[]);
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        for (name, value) in attributes.iter() {
            match name.as_str() {
                TYPES => {
                    let types = value.get("types").and_then(Json::as_map).unwrap_or(&[]);
                    let types = types.iter().filter(|(name, _)| !is_reserved(name));
                    words.types = types
                        .filter_map(|(name, code)| Some((name.clone(), code.as_str()?.to_owned())))
                        .collect();
                }
                GROUP => {
                    for (name, said) in value.get("dimensions").and_then(Json::as_map).unwrap_or(&[]) {
                        let length = said.as_u64().or_else(|| said.get("size").and_then(Json::as_u64));
                        let length =
                            length.ok_or_else(|| wrong_member(name, "a dimension without length"))?;
                        let unlimited = said
                            .get("unlimited")
                            .is_some_and(|u| *u == Json::Bool(true) || u.as_f64().is_some_and(|v| v != 0.0));
                        words.dimensions.push(Dimension {
                            name: Name::from(name.as_str()),
                            length,
                            unlimited,
                        });
                    }
                    words.arrays = texts(value.get("arrays"));
                    words.groups = texts(value.get("groups"));
                }
                ARRAY => {
                    words.references = texts(value.get("dimension_references"));
                    words.scalar = value.get("scalar").is_some_and(|s| s.as_f64() != Some(0.0));
                }
                _ => {}
            }
        }
        attributes.retain(|(name, _)| !is_reserved(name));
        Ok(Some(words))
    }

    /// Puts what is said behind the attributes.
    pub(super) fn put(&self, attributes: &mut Members, kind: NodeKind, is_root: bool) {
        let texts = |items: &[String]| Json::List(items.iter().map(|t| Json::Text(t.clone())).collect());
        let mut own = Vec::new();
        if kind == NodeKind::Array {
            let mut members = vec![
                ("dimension_references".to_owned(), texts(&self.references)),
                ("storage".to_owned(), Json::Text("chunked".into())),
            ];
            if self.scalar {
                members.push(("scalar".to_owned(), Json::Integer(1)));
            }
            own.push((ARRAY, Json::Map(members)));
        } else {
            let dimension = |d: &Dimension| {
                let length = Json::Integer(d.length.into());
                let said = match d.unlimited {
                    true => Json::Map(vec![
                        ("size".to_owned(), length),
                        ("unlimited".to_owned(), Json::Integer(1)),
                    ]),
                    false => length,
                };
                (d.name.to_string(), said)
            };
            let members = vec![
                ("dimensions".to_owned(), Json::Map(self.dimensions.iter().map(dimension).collect())),
                ("arrays".to_owned(), texts(&self.arrays)),
                ("groups".to_owned(), texts(&self.groups)),
            ];
            own.push((GROUP, Json::Map(members)));
            if is_root {
                let version = ("version".to_owned(), Json::Text("2.0.0".into()));
                own.push((SUPERBLOCK, Json::Map(vec![version])));
            }
        }
        let mut types: Members =
            self.types.iter().map(|(name, code)| (name.clone(), Json::Text(code.clone()))).collect();
        let reserved = own.iter().map(|(name, _)| *name).chain([TYPES]);
        types.extend(reserved.map(|name| (name.to_owned(), Json::Text("|J0".into()))));
        let types = Json::Map(vec![("types".to_owned(), Json::Map(types))]);
        attributes.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
        attributes.push((TYPES.to_owned(), types));
    }

    /// Records the type of an attribute.
    pub(super) fn set_type(&mut self, name: &str, code: &str) {
        match self.types.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => code.clone_into(old),
            None => self.types.push((name.to_owned(), code.to_owned())),
        }
    }
}
