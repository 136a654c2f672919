//! Listings, page by page: what a server that never ends one does not go on with for ever.

use super::client::Bucket;
use super::get::failed;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Budget;
use object_store::ListResult;
use object_store::list::PaginatedListOptions;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Pages of one listing; providers put a thousand names into one.
const PAGES: usize = 20_000;

/// Pages without a name that may follow one another: stores skip what was deleted.
const EMPTY: usize = 100;

/// What stands below a prefix, which ends with `/` or is empty: next below it, or with `deep` all.
pub(super) async fn list(
    store: Arc<dyn Bucket>,
    prefix: String,
    deep: bool,
    limit: u64,
    name: String,
) -> Result<ListResult> {
    let budget = Budget::new("names in a store in bytes", limit);
    let endless = |how: String| {
        Error::new(ErrorKind::Io, format!("the listing of {name} has no end: {how}"))
            .hint("what speaks for the store there is out of order")
    };
    let mut all =
        ListResult { common_prefixes: Vec::new(), objects: Vec::new(), extensions: Default::default() };
    let mut tokens = HashSet::new();
    let (mut token, mut empty) = (None, 0);
    for _ in 0..PAGES {
        let options = PaginatedListOptions {
            delimiter: (!deep).then_some(Cow::Borrowed("/")),
            page_token: token.clone(),
            ..PaginatedListOptions::default()
        };
        let from = Some(prefix.as_str()).filter(|p| !p.is_empty());
        let page = store.list_paginated(from, options).await.map_err(|e| failed(&name, e))?;
        let ListResult { common_prefixes, objects, .. } = page.result;
        empty = if common_prefixes.is_empty() && objects.is_empty() { empty + 1 } else { 0 };
        let bytes =
            |path: &object_store::path::Path| path.as_ref().len() + size_of::<object_store::ObjectMeta>();
        let held: usize = objects.iter().map(|object| bytes(&object.location)).sum();
        let held = held + common_prefixes.iter().map(bytes).sum::<usize>();
        budget.charge(held as u64)?;
        let first = |all: &ListResult| all.objects.last().map(|object| object.location.clone());
        let again =
            !objects.is_empty() && first(&all) == objects.last().map(|object| object.location.clone());
        all.objects.extend(objects);
        all.common_prefixes.extend(common_prefixes);
        token = page.page_token;
        let Some(next) = &token else { return Ok(all) };
        budget.charge(next.len() as u64)?;
        if !tokens.insert(next.clone()) {
            return Err(endless("it leads back to a page that was read".into()));
        }
        if again {
            return Err(endless("the same names come again".into()));
        }
        if empty > EMPTY {
            return Err(endless(format!("{empty} pages without a name")));
        }
    }
    Err(endless(format!("more than {PAGES} pages")))
}
