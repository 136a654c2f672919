//! Times as texts, which `dump -t` writes in the place of numbers.

use super::special::text_of;
use crate::convention::netcdf::cdl::{Group, Item, Variable};
use crate::convention::netcdf::time::Times;

/// How the numbers of a variable are times: by its units, or by those of the variable whose bounds it holds.
pub(super) fn times(group: &Group, variable: &Variable) -> Option<Times> {
    let text = |v: &Variable, name: &str| text_of(v.attributes.iter().find(|a| a.name == name)?);
    let own = |v: &Variable| Times::new(&text(v, "units")?, text(v, "calendar").as_deref(), ' ');
    own(variable).or_else(|| {
        let whose = |v: &&Variable| text(v, "bounds").as_deref() == Some(&variable.name);
        group.variables.iter().filter(whose).find_map(own)
    })
}

/// Whether there is a text among values. The parser bounds the depth of lists.
pub(super) fn has_text(item: &Item) -> bool {
    match item {
        Item::Text(_) => true,
        Item::List(items) => items.iter().any(has_text),
        _ => false,
    }
}

/// Values with the numbers of times in the place of their texts. What is no time stays as it is.
pub(super) fn numbers(times: &Times, items: &[Item]) -> Vec<Item> {
    let number = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok()?;
        // A date has a month.
        text.get(1..)?.contains('-').then(|| times.value(text))?
    };
    let one = |item: &Item| match item {
        Item::Text(text) => number(text).map_or_else(|| item.clone(), Item::Double),
        Item::List(inner) => Item::List(numbers(times, inner)),
        other => other.clone(),
    };
    items.iter().map(one).collect()
}
