//! When a version was committed: text that sorts by time.

use crate::error::{Error, Result};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A time in UTC as versions keep it: `YYYY-MM-DD HH:MM:SS.ffffff+0000`. Times are compared as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(String);

impl Timestamp {
    /// What a file says, whatever that is.
    pub(super) fn stored(text: String) -> Timestamp {
        Timestamp(text)
    }

    /// This many microseconds since 1970. Errors: before the year 0 or after 9999.
    pub fn from_micros(micros: i64) -> Result<Timestamp> {
        let (second, micro) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        let (day, second) = (second.div_euclid(86_400), second.rem_euclid(86_400));
        // Years begin in March, so that the day that not all have is their last.
        let day = day + 719_468;
        let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + 400 * era + i64::from(month <= 2);
        if !(0..=9999).contains(&year) {
            return Err(Error::invalid(format!(
                "{micros} microseconds since 1970 are not in the years 0 to 9999"
            )));
        }
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        Ok(Timestamp(format!(
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micro:06}+0000"
        )))
    }

    /// Now, by the clock of this machine.
    pub fn now() -> Result<Timestamp> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.ok().and_then(|d| i64::try_from(d.as_micros()).ok());
        Timestamp::from_micros(micros.ok_or_else(|| Error::invalid("the clock stands before 1970"))?)
    }

    /// Reads `YYYY-MM-DD`, with ` HH:MM`, `:SS`, `.f` and a `Z`, `+00:00` or `+0000` behind it, or not. A `T` may stand
    /// for the blank; what is left out is zero. `None` if the text is no time, an error if it is one of another time zone.
    pub fn parse(text: &str) -> Result<Option<Timestamp>> {
        let (time, zone) = match text.get(10..).and_then(|rest| rest.find(['Z', '+', '-'])) {
            Some(at) => text.split_at(at + 10),
            None => (text, ""),
        };
        let (date, clock) = match time.split_once(['T', ' ']) {
            Some((date, clock)) => (date, clock.trim_end()),
            None => (time, "00:00"),
        };
        let number = |text: &str, digits: usize| {
            let only = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
            only.then(|| text.parse::<i64>().ok()).flatten()
        };
        let parsed = || {
            let mut parts = date.split('-');
            let year = number(parts.next()?, 4)?;
            let month = number(parts.next()?, 2).filter(|m| (1..=12).contains(m))?;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let day = number(parts.next()?, 2).filter(|d| (1..=days).contains(d))?;
            let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
            let micro = fraction.get(..fraction.len().min(6))?;
            let micro = number(&format!("{micro:0<6}"), 6).filter(|_| !fraction.is_empty())?;
            let mut clock = clock.split(':');
            let hour = number(clock.next()?, 2).filter(|h| *h < 24)?;
            let minute = number(clock.next()?, 2).filter(|m| *m < 60)?;
            let second = clock.next().map_or(Some(0), |s| number(s, 2)).filter(|s| *s < 60)?;
            let whole = parts.next().is_none() && clock.next().is_none();
            whole.then(|| {
                format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micro:06}+0000")
            })
        };
        match (parsed(), zone) {
            (None, _) => Ok(None),
            (Some(time), "" | "Z" | "+00:00" | "+0000" | "-00:00" | "+00") => Ok(Some(Timestamp(time))),
            _ => {
                Err(Error::invalid(format!("{text} is not in UTC")).hint("versions have their times in UTC"))
            }
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
