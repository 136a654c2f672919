//! Times as text: numbers with units such as `days since 2000-01-01`, in the calendars of CF.
//!
//! What is no time beyond doubt stays a number: units that `ncdump` does not know either, base times that do not exist in
//! their calendar, parts of months.

/// Days of the months of a year that is no leap year.
const MONTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// The first day of the Gregorian calendar, 1582-10-15, in days since 1970-01-01.
const GREGORIAN: i64 = -141_427;

/// Half a microsecond in seconds: less is no part of a time.
const HALF: f64 = 0.5e-6;

#[cfg(test)]
mod tests;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Calendar {
    /// Gregorian from 1582-10-15 on, Julian before.
    Mixed,
    Gregorian,
    Julian,
    NoLeap,
    AllLeap,
    /// Twelve months of thirty days.
    Days360,
}

/// A date: year, month from 1, day from 1.
type Date = (i64, i64, i64);

impl Calendar {
    /// By the attribute `calendar`; `None` for the one in which there are no dates. An unknown one is the mixed one.
    fn of(name: Option<&str>) -> Option<Calendar> {
        Some(match name.map(str::to_ascii_lowercase).as_deref() {
            Some("none") => return None,
            Some("proleptic_gregorian") => Calendar::Gregorian,
            Some("julian") => Calendar::Julian,
            Some("noleap" | "365_day" | "365") => Calendar::NoLeap,
            Some("all_leap" | "366_day" | "366") => Calendar::AllLeap,
            Some("360_day" | "360") => Calendar::Days360,
            _ => Calendar::Mixed,
        })
    }

    fn is_leap(self, year: i64, julian: bool) -> bool {
        match self {
            Calendar::NoLeap | Calendar::Days360 => false,
            Calendar::AllLeap => true,
            _ if julian => year % 4 == 0,
            _ => year % 4 == 0 && (year % 100 != 0 || year % 400 == 0),
        }
    }

    fn days_of_month(self, year: i64, month: i64, julian: bool) -> i64 {
        match (self, month) {
            (Calendar::Days360, _) => 30,
            (_, 2) if self.is_leap(year, julian) => 29,
            _ => usize::try_from(month - 1).ok().and_then(|m| MONTHS.get(m)).copied().unwrap_or(0),
        }
    }

    /// Days from the first of the year 0 to that of `year`.
    fn days_before(self, year: i64, julian: bool) -> i64 {
        let last = year - 1;
        let leap = match self {
            Calendar::NoLeap => return 365 * year,
            Calendar::AllLeap => return 366 * year,
            Calendar::Days360 => return 360 * year,
            // The year 0 is a leap year.
            _ if julian => last.div_euclid(4) + 1,
            _ => last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400) + 1,
        };
        365 * year + leap
    }

    /// The number of a date; 0 is 1970-01-01. `None` if there is no such day.
    fn number(self, (year, month, day): Date) -> Option<i64> {
        let julian = match self {
            Calendar::Julian => true,
            Calendar::Mixed => (year, month, day) < (1582, 10, 15),
            _ => false,
        };
        if !(1..=12).contains(&month) || !(1..=self.days_of_month(year, month, julian)).contains(&day) {
            return None;
        }
        if self == Calendar::Mixed && julian && (year, month, day) > (1582, 10, 4) {
            return None;
        }
        let months: i64 = (1..month).map(|m| self.days_of_month(year, m, julian)).sum();
        Some(self.days_before(year, julian) + months + day - 1 - self.epoch(julian))
    }

    /// The number of 1970-01-01 from the first of the year 0 on. The Julian calendar is the one that counts the same
    /// days as the Gregorian one.
    fn epoch(self, julian: bool) -> i64 {
        match self {
            Calendar::Mixed if julian => 719_530,
            _ => self.days_before(1970, julian),
        }
    }

    /// The date of a number.
    fn date(self, number: i64) -> Date {
        let julian = self == Calendar::Julian || self == Calendar::Mixed && number < GREGORIAN;
        let days = number + self.epoch(julian);
        let mean = match self {
            Calendar::Days360 => 360.0,
            Calendar::NoLeap => 365.0,
            Calendar::AllLeap => 366.0,
            _ if julian => 365.25,
            _ => 365.2425,
        };
        let mut year = (days as f64 / mean) as i64;
        while self.days_before(year + 1, julian) <= days {
            year += 1;
        }
        while self.days_before(year, julian) > days {
            year -= 1;
        }
        let mut day = days - self.days_before(year, julian);
        let mut month = 1;
        while month < 12 && day >= self.days_of_month(year, month, julian) {
            day -= self.days_of_month(year, month, julian);
            month += 1;
        }
        (year, month, day + 1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    /// A fixed number of hours, as seconds, minutes or hours.
    Hours(f64),
    Months(i64),
}

/// How numbers are times.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    unit: Unit,
    calendar: Calendar,
    /// The base time: the number of the day, and the hours of the day.
    day: i64,
    hours: f64,
    /// Between date and time of day.
    separator: char,
}

impl Times {
    /// From the attributes `units` and `calendar`. `None`: the numbers are no times.
    pub fn new(units: &str, calendar: Option<&str>, separator: char) -> Option<Times> {
        let units = units.trim();
        let at = units.find("since")?;
        let unit = unit(units.get(..at)?.trim_end())?;
        let calendar = Calendar::of(calendar)?;
        let (date, mut hours) = base(units.get(at + "since".len()..)?)?;
        let mut day = calendar.number(date)?;
        // A time zone may lead to another day.
        let days = (hours / 24.0).floor();
        (day, hours) = (day + days as i64, hours - 24.0 * days);
        Some(Times { unit, calendar, day, hours, separator })
    }

    /// The text of a time; `None` for what is no time, or none of this age.
    pub fn text(&self, value: f64) -> Option<String> {
        let hours = match self.unit {
            Unit::Hours(unit) if unit < 1.0 => self.base() + value / (1.0 / unit).round(),
            Unit::Hours(unit) => self.base() + value * unit,
            Unit::Months(each) => return self.months(value, each),
        };
        // Far beyond any date, and near enough to count with.
        if hours.is_nan() || hours.abs() >= 1e12 {
            return None;
        }
        let mut day = (hours / 24.0).floor();
        let mut hour = hours - 24.0 * day;
        if hour + HALF / 3600.0 >= 24.0 {
            (day, hour) = (day + 1.0, 0.0);
        }
        Some(self.written(self.calendar.date(day as i64), hour))
    }

    fn base(&self) -> f64 {
        self.day as f64 * 24.0 + self.hours
    }

    /// The number of a time as [`Times::text`] writes it, to the microsecond; `None` for what is no time, or lies between two
    /// numbers of months.
    pub fn value(&self, text: &str) -> Option<f64> {
        let (date, hours) = base(text)?;
        let day = self.calendar.number(date)?;
        let unit = match self.unit {
            Unit::Hours(unit) => unit,
            Unit::Months(each) => return self.months_since(day, hours, each),
        };
        // Microseconds are exact for 285 years, and as near as a number of the unit comes beyond.
        let micros = |hours: f64| (hours * 3.6e9).round();
        let apart = (day - self.day) as f64 * 8.64e10 + micros(hours) - micros(self.hours);
        let each = (unit * 3.6e9).round();
        Some(apart / each)
    }

    /// How many months, or seasons or years, lie between the base time and another.
    fn months_since(&self, day: i64, hours: f64, each: i64) -> Option<f64> {
        if day == self.day && (hours - self.hours).abs() < HALF / 3600.0 {
            return Some(0.0);
        }
        let (from, to) = (self.calendar.date(self.day), self.calendar.date(day));
        if (from.2, to.2) != (1, 1) || self.hours != 0.0 || hours != 0.0 {
            return None;
        }
        let months = (to.0 - from.0) * 12 + to.1 - from.1;
        Some(months as f64 / each as f64)
    }

    /// Whole months after the first of one.
    fn months(&self, value: f64, each: i64) -> Option<String> {
        let (year, month, day) = self.calendar.date(self.day);
        let months = value * each as f64;
        if value == 0.0 {
            return Some(self.written((year, month, day), self.hours));
        }
        if day != 1 || self.hours != 0.0 || months.fract() != 0.0 || months.abs() >= 1e9 {
            return None;
        }
        let months = year * 12 + month - 1 + months as i64;
        Some(self.written((months.div_euclid(12), months.rem_euclid(12) + 1, 1), 0.0))
    }

    /// Only the parts that are not zero at the end.
    fn written(&self, (year, month, day): Date, time: f64) -> String {
        let hour = (time + HALF / 3600.0) as i64;
        let minutes = 60.0 * (time - hour as f64);
        let minute = (minutes + HALF / 60.0) as i64;
        let second = 60.0 * (minutes - minute as f64);
        let whole = (second + HALF) as i64;
        let sign = if year < 0 { "-" } else { "" };
        let date = format!("{sign}{:04}-{month:02}-{day:02}", year.abs());
        let start = format!("{date}{}{hour:02}", self.separator);
        match (second - whole as f64 >= HALF, whole, minute, hour) {
            (true, ..) => format!("{start}:{minute:02}:{second:.6}"),
            (_, 0, 0, 0) => date,
            (_, 0, 0, _) => start,
            (_, 0, ..) => format!("{start}:{minute:02}"),
            _ => format!("{start}:{minute:02}:{whole:02}"),
        }
    }
}

/// A unit, by its name or the beginning of a longer one.
fn unit(name: &str) -> Option<Unit> {
    let name = name.to_ascii_lowercase();
    let starts = |words: &[&str]| words.iter().any(|w| name.starts_with(w));
    Some(match name.as_str() {
        "s" => Unit::Hours(1.0 / 3600.0),
        "hr" => Unit::Hours(1.0),
        "mo" => Unit::Months(1),
        "yr" => Unit::Months(12),
        _ if starts(&["sec"]) => Unit::Hours(1.0 / 3600.0),
        _ if starts(&["min"]) => Unit::Hours(1.0 / 60.0),
        _ if starts(&["hour"]) => Unit::Hours(1.0),
        _ if starts(&["day"]) => Unit::Hours(24.0),
        _ if starts(&["week"]) => Unit::Hours(168.0),
        _ if starts(&["month"]) => Unit::Months(1),
        _ if starts(&["season"]) => Unit::Months(3),
        _ if starts(&["year"]) => Unit::Months(12),
        _ => return None,
    })
}

/// A base time: the date, and hours of the day at Greenwich, which may be on another day.
fn base(text: &str) -> Option<(Date, f64)> {
    let text = text.trim();
    let (date, rest) = match text.find([' ', 'T', 't']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?.trim()),
        None => (text.trim_end_matches(['Z', 'z']), ""),
    };
    let negative = date.starts_with('-');
    let mut parts = date.trim_start_matches('-').split(['-', '/']).map(|part| {
        let plain = (1..=6).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| part.parse::<i64>().ok()).flatten()
    });
    let year = parts.next()??;
    let month = parts.next().unwrap_or(Some(1))?;
    let day = parts.next().unwrap_or(Some(1))?;
    if parts.next().is_some() {
        return None;
    }
    let (time, zone) = match rest.char_indices().find(|(_, c)| !c.is_ascii_digit() && !":.".contains(*c)) {
        Some((at, _)) => (rest.get(..at)?, rest.get(at..)?.trim()),
        None => (rest, ""),
    };
    let date = (if negative { -year } else { year }, month, day);
    Some((date, clock(time, true)? - zone_hours(zone)?))
}

/// Hours of a time of day: `12`, `12:30`, `12:30:15.5`.
fn clock(text: &str, with_seconds: bool) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let mut parts = text.split(':');
    let mut next = |most: f64| match parts.next() {
        None => Some(0.0),
        Some(part) => part.parse::<f64>().ok().filter(|v| (0.0..most).contains(v)),
    };
    let (hour, minute) = (next(24.0)?, next(60.0)?);
    // A leap second is one.
    let second = if with_seconds { next(61.0)? } else { 0.0 };
    parts.next().is_none().then_some(hour + minute / 60.0 + second / 3600.0)
}

/// Hours by which the clocks of a zone are ahead: `Z`, `UTC`, `+3`, `-6:00`, `+0530`.
fn zone_hours(text: &str) -> Option<f64> {
    let (sign, rest) = match text.as_bytes().first() {
        None => return Some(0.0),
        Some(b'+') => (1.0, text.get(1..)?),
        Some(b'-') => (-1.0, text.get(1..)?),
        Some(b'0'..=b'9') => (1.0, text),
        _ => {
            let zero = ["z", "utc", "gmt"].iter().any(|z| text.eq_ignore_ascii_case(z));
            return zero.then_some(0.0);
        }
    };
    let hours = match (rest.contains(':'), rest.len()) {
        (false, 3 | 4) if rest.is_ascii() => {
            let (hours, minutes) = rest.split_at(rest.len() - 2);
            clock(&format!("{hours}:{minutes}"), false)?
        }
        _ => clock(rest, false)?,
    };
    Some(sign * hours)
}
