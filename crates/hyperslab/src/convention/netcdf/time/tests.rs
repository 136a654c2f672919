use super::*;

fn text(units: &str, calendar: &str, value: f64) -> String {
    let times = Times::new(units, Some(calendar).filter(|c| !c.is_empty()), ' ');
    times.and_then(|t| t.text(value)).unwrap_or_else(|| "no time".into())
}

#[test]
fn times_are_as_ncdump_writes_them() {
    for (units, calendar, value, wanted) in [
        ("days since 2000-01-01", "", 1.5, "2000-01-02 12"),
        ("days since 2000-01-01", "", 59.0, "2000-02-29"),
        ("hours since 1970-1-1 00:00:00", "", 1e6, "2084-01-29 16"),
        ("hours since 1970-1-1 00:00:00", "", -1.0, "1969-12-31 23"),
        ("seconds since 1990-01-01T00:00:00Z", "", 1.5, "1990-01-01 00:00:1.500000"),
        ("seconds since 2000-01-01", "", 0.9999996, "2000-01-01 00:00:01"),
        ("min since 2000-01-01", "", -400.5, "1999-12-31 17:19:30"),
        ("days since 2000-01-01", "", 365.999999999, "2000-12-31 23:59:59.999914"),
        ("days since 2000-01-01", "", 1234.56789, "2003-05-19 13:37:45.696000"),
        ("hours since 2000-01-01", "", 24.0 - 1e-11, "2000-01-02"),
        ("weeks since 2000-01-01", "", -40.0, "1999-03-27"),
        ("months since 1900-1-1", "", 11.0, "1900-12-01"),
        ("seasons since 2000-01-01", "", -1.0, "1999-10-01"),
        ("years since 1900-1-1", "", 0.5, "1900-07-01"),
        ("DAYS since 2000-01-01", "noleap", 59.0, "2000-03-01"),
        ("days since 2000-02-27", "360_day", 365.0, "2001-03-02"),
        ("days since 2001-02-27", "all_leap", 2.0, "2001-02-29"),
        ("days since 1582-10-03", "julian", 365.0, "1583-10-03"),
        ("days since 1582-10-03", "proleptic_gregorian", -400.0, "1581-08-29"),
        ("days since 1582-10-03", "standard", 365.0, "1583-10-13"),
        ("days since 0001-01-01", "", 1e7, "27380-01-25"),
        ("days since 0001-01-01", "", -366.0, "0000-01-01"),
        ("days since -10-1-1", "", 1.0, "-0010-01-02"),
        ("hr since 2000-06-15 12:30:45", "", 24.0, "2000-06-16 12:30:45"),
    ] {
        assert_eq!(text(units, calendar, value), wanted, "{value} {units} {calendar}");
    }
    assert_eq!(Times::new("days since 2000-01-01", None, 'T').unwrap().text(0.25).unwrap(), "2000-01-01T06");
}

/// What ncdump 4.9 gets wrong, with the right values.
#[test]
fn times_are_right_where_ncdump_is_wrong() {
    for (units, calendar, value, wanted) in [
        // It has a tenth of October 1582 too many: "1582-10-05".
        ("days since 1582-10-03", "standard", 2.0, "1582-10-15"),
        ("days since 1582-10-20", "", -5.0, "1582-10-15"),
        // It passes over the time zone, and the time behind a small t.
        ("hours since 2000-01-01 12:00 -6:00", "", 1.0, "2000-01-01 19"),
        ("hours since 2000-01-01T00:00:00+05:30", "", 0.0, "1999-12-31 18:30"),
        ("days since 2000-01-01t06:30", "", 0.0, "2000-01-01 06:30"),
        // It cuts off parts of months, and what is beyond the first of the base time.
        ("months since 1900-1-1", "", 1.5, "no time"),
        ("months since 2000-01-31 06:00", "", 1.0, "no time"),
        ("months since 2000-01-31 06:00", "", 0.0, "2000-01-31 06"),
        // It counts on from times that do not exist.
        ("days since 2000-13-01", "", 1.0, "no time"),
        ("days since 2000-02-30", "", 1.0, "no time"),
        ("days since 2000-02-30", "360_day", 1.0, "2000-03-01"),
        ("days since 2000-01-01 25:00", "", 1.0, "no time"),
        ("days since 20000101", "", 1.0, "no time"),
        ("days since abc", "", 1.0, "no time"),
        ("days since 2000-01-01", "none", 1.0, "no time"),
        ("days since 2000-01-01", "", f64::INFINITY, "no time"),
    ] {
        assert_eq!(text(units, calendar, value), wanted, "{value} {units} {calendar}");
    }
}

#[test]
fn what_is_no_time_stays_a_number() {
    for units in ["days", "furlongs since 2000-01-01", "common_years since 1900-1-1", "ms since 2000-01-01"] {
        assert_eq!(text(units, "", 1.0), "no time", "{units}");
    }
}

#[test]
fn dates_and_numbers_are_one() {
    for calendar in [
        Calendar::Mixed,
        Calendar::Gregorian,
        Calendar::Julian,
        Calendar::NoLeap,
        Calendar::AllLeap,
        Calendar::Days360,
    ] {
        for number in (-1_000_000..1_000_000).step_by(97) {
            assert_eq!(calendar.number(calendar.date(number)), Some(number), "{calendar:?} {number}");
        }
    }
    assert_eq!(Calendar::Mixed.date(GREGORIAN), (1582, 10, 15));
    assert_eq!(Calendar::Mixed.date(GREGORIAN - 1), (1582, 10, 4));
    assert_eq!(Calendar::Gregorian.date(0), (1970, 1, 1));
    assert_eq!(Calendar::Julian.date(0), (1970, 1, 1));
}

#[test]
fn numbers_of_times_are_found_again() {
    for (units, calendar, values) in [
        ("days since 2000-01-01", "", &[0.0, 1.5, -40.0, 59.25, 1e6][..]),
        ("seconds since 1970-01-01T00:00:00Z", "", &[0.0, 1.0, 1_700_000_000.0, -86_399.0]),
        ("minutes since 1850-01-01 12:30", "noleap", &[0.0, 7.0, 1e7]),
        ("hours since 2000-01-01 00:00 -6:00", "", &[0.0, 5.0, -7.5]),
        ("weeks since 2000-02-27", "360_day", &[0.0, 3.0]),
        ("months since 1900-1-1", "", &[0.0, 11.0, -13.0]),
        ("seasons since 2000-01-01", "", &[0.0, -1.0, 6.0]),
        ("years since 1900-1-1", "julian", &[0.0, 0.5, 130.0]),
        ("days since 1582-10-03", "standard", &[0.0, 1.0, 2.0, 400.0]),
    ] {
        for separator in [' ', 'T'] {
            let times = Times::new(units, Some(calendar).filter(|c| !c.is_empty()), separator).unwrap();
            for &value in values {
                let text = times.text(value).unwrap();
                assert_eq!(times.value(&text), Some(value), "{value} {units}: {text}");
            }
        }
    }
    let times = Times::new("days since 2000-01-01", None, ' ').unwrap();
    assert_eq!(times.value("2000-01-02 00:00:0.500000"), Some(1.0 + 0.5 / 86_400.0));
    for text in ["", "x", "2000-13-01", "2000-02-30", "12", "2000-01-01 25", "2000-01-01 00:00:00 XYZ"] {
        let wrong = times.value(text);
        assert!(wrong.is_none() || text == "12", "{text}: {wrong:?}");
    }
    let months = Times::new("months since 2000-01-01", None, ' ').unwrap();
    assert_eq!(months.value("2000-01-02"), None);
}
