//! How long rows waited.

use std::time::Duration;

/// Steps in which a time doubles.
const STEPS: u32 = 16;
/// Steps in all: from 1 µs up to days.
const SLOTS: usize = 40 * STEPS as usize;

/// Counts of times, in steps of a few percent.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Delays {
    fn default() -> Self {
        Delays { counts: vec![0; SLOTS], total: 0 }
    }
}

impl Delays {
    /// Counts a time that so many rows waited.
    pub(super) fn add(&mut self, delay: Duration, rows: u64) {
        let steps = (delay.as_secs_f64() * 1e6).max(1.0).log2() * f64::from(STEPS);
        // Within the slots, so that it fits.
        let slot = (steps.ceil() as usize).min(SLOTS - 1);
        if let Some(count) = self.counts.get_mut(slot) {
            *count += rows;
            self.total += rows;
        }
    }

    /// A time that so many percent of the rows did not wait longer than; zero if there are none.
    pub(super) fn percentile(&self, percent: u64) -> Duration {
        let wanted = self.total.saturating_mul(percent).div_ceil(100);
        let mut seen = 0;
        for (slot, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return Duration::from_secs_f64((slot as f64 / f64::from(STEPS)).exp2() / 1e6);
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_a_few_percent_too_long_at_most() {
        let mut delays = Delays::default();
        assert_eq!(delays.percentile(99), Duration::ZERO);
        for i in 1..=1000 {
            delays.add(Duration::from_millis(i), 1);
        }
        let near = |percent, ms: u64| {
            let found = delays.percentile(percent).as_secs_f64() * 1e3;
            assert!(found >= ms as f64 && found < ms as f64 * 1.05, "{percent}: {found}");
        };
        near(50, 500);
        near(99, 990);
        delays.add(Duration::ZERO, 5);
        delays.add(Duration::MAX, 5);
    }
}
