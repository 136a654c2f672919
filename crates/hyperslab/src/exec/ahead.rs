//! Parts of a plan whose sources are far away: what each reads first is fetched together, before any of it is placed.
//!
//! The parts themselves still run one after the other, as later ones may write over earlier ones.

use super::remote::{Fetched, fetch};
use super::{ReadStats, RunOptions, all, cache};
use crate::error::Result;
use crate::plan::{Part, ReadPlan};
use std::collections::VecDeque;
use std::ops::Range;

/// Parts that are fetched at a time.
const TOGETHER: usize = 16;

/// Parts, and encoded bytes, that are fetched before they are wanted.
const PARTS: usize = 64;
const BYTES: u64 = 64 << 20;

/// What the parts of a plan read first.
pub(super) struct Ahead<'a> {
    parts: &'a [Part],
    options: &'a RunOptions,
    /// The parts that were fetched and not yet taken, from `next` on.
    fetched: VecDeque<First>,
    next: usize,
}

/// The first unit of a part, or why it is not there, and what fetching it took.
pub(super) type First = (Result<Fetched>, ReadStats);

impl<'a> Ahead<'a> {
    pub(super) fn new(plan: &'a ReadPlan, options: &'a RunOptions) -> Ahead<'a> {
        Ahead { parts: plan.parts(), options, fetched: VecDeque::new(), next: 0 }
    }

    /// What the next part reads first, if that was fetched; parts are asked for one after the other.
    pub(super) fn next(&mut self) -> Option<First> {
        if self.fetched.is_empty() {
            let group = self.group();
            if group.len() > 1 {
                self.fetch(group);
            }
        }
        self.next += 1;
        self.fetched.pop_front()
    }

    /// The parts from the next one on that are worth fetching together.
    fn group(&self) -> Range<usize> {
        let mut bytes = 0u64;
        let near = |part: &&Part| {
            bytes = bytes.saturating_add(weight(part));
            part.has_remote() && bytes <= BYTES
        };
        let rest = self.parts.get(self.next..).unwrap_or(&[]);
        self.next..self.next + rest.iter().take(PARTS).take_while(near).count()
    }

    fn fetch(&mut self, group: Range<usize>) {
        let parts = self.parts.get(group).unwrap_or(&[]);
        let options = self.options;
        let first = all(TOGETHER, parts, |part| {
            let mut stats = ReadStats::default();
            let memory = cache::Memory::new(options.cache.as_ref(), part);
            let first = match (part.units.first(), &options.cancel) {
                (_, Some(cancel)) if cancel.is_cancelled() => Ok(Fetched::default()),
                (Some(unit), _) => fetch(part, memory.as_ref(), unit, &mut stats),
                (None, _) => Ok(Fetched::default()),
            };
            (first, stats)
        });
        self.fetched = first.into();
    }
}

/// Encoded bytes of what a part reads first, roughly.
fn weight(part: &Part) -> u64 {
    let Some(unit) = part.units.first() else { return 0 };
    let chunk = part
        .pipeline
        .chunk_bytes()
        .max(part.chunk.iter().fold(part.element() as u64, |n, &d| n.saturating_mul(d)));
    chunk.saturating_mul(unit.len() as u64)
}
