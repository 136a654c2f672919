//! What became of everything.

use crate::exec::encode::EncodeStats;
use crate::model::write::{Committed, Losses, Support};
use std::fmt;

/// What became of an object or attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is kept as it is.
    Kept,
    /// It is kept in other words: which.
    Mapped(String),
    /// It is lost: why.
    Dropped(String),
}

impl Outcome {
    pub(super) fn of(support: Support) -> Outcome {
        match support {
            Support::Kept => Outcome::Kept,
            Support::Mapped(how) => Outcome::Mapped(how),
            Support::Dropped(why) => Outcome::Dropped(why),
        }
    }

    /// With something more said in other words.
    pub(super) fn and(self, more: String) -> Outcome {
        match self {
            Outcome::Kept => Outcome::Mapped(more),
            Outcome::Mapped(how) => Outcome::Mapped(format!("{how}; {more}")),
            dropped => dropped,
        }
    }

    /// One word: `kept`, `mapped` or `dropped`.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Kept => "kept",
            Outcome::Mapped(_) => "mapped",
            Outcome::Dropped(_) => "dropped",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Kept => f.write_str("kept"),
            Outcome::Mapped(how) => write!(f, "mapped: {how}"),
            Outcome::Dropped(why) => write!(f, "dropped: {why}"),
        }
    }
}

/// One object, link or attribute of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path; of an attribute, that of its object with `:` and its name.
    pub name: String,
    /// What it is: `group`, `array`, `attribute`, `link`, `dimension`, `type`.
    pub what: &'static str,
    /// What became of it.
    pub outcome: Outcome,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.what, self.name, self.outcome)
    }
}

/// What a copy did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Everything in the source, in order.
    pub entries: Vec<Entry>,
    /// What was encoded, and what was taken over as it is stored.
    pub stats: EncodeStats,
    /// What was written.
    pub committed: Committed,
}

impl Report {
    pub(super) fn add(&mut self, name: String, what: &'static str, outcome: Outcome) {
        self.entries.push(Entry { name, what, outcome });
    }

    /// References of an entry, the last one if none is named, that lead nowhere in the copy.
    pub(super) fn lose(&mut self, entry: Option<usize>, lost: &Losses) {
        let place = entry.unwrap_or(self.entries.len().saturating_sub(1));
        let Some(entry) = self.entries.get_mut(place) else { return };
        let mut outcome = std::mem::replace(&mut entry.outcome, Outcome::Kept);
        if lost.broken > 0 {
            outcome = outcome.and(format!("{} broken references lead to nothing", lost.broken));
        }
        if lost.homeless > 0 {
            let text = format!("{} references to what is not in the copy", lost.homeless);
            outcome = match outcome {
                Outcome::Mapped(how) => Outcome::Dropped(format!("{text}; {how}")),
                _ => Outcome::Dropped(text),
            };
        }
        entry.outcome = outcome;
    }

    /// How many entries are lost.
    pub fn dropped(&self) -> usize {
        self.entries.iter().filter(|e| matches!(e.outcome, Outcome::Dropped(_))).count()
    }

    /// How many are kept in other words.
    pub fn mapped(&self) -> usize {
        self.entries.iter().filter(|e| matches!(e.outcome, Outcome::Mapped(_))).count()
    }
}
