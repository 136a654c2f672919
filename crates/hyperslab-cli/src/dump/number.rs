//! Numbers as C prints them.

/// `%.{precision}g`, with `#` if `alternate`: that many significant digits, an exponent where it is shorter, and
/// trailing zeros only if `alternate`.
pub(super) fn general(value: f64, precision: usize, alternate: bool) -> String {
    let precision = precision.max(1);
    if !value.is_finite() {
        return if value.is_nan() {
            "nan".into()
        } else if value > 0.0 {
            "inf".into()
        } else {
            "-inf".into()
        };
    }
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        return format!("{}{}", trimmed(mantissa, alternate), exponent_text(exponent));
    }
    let decimals = usize::try_from(precision as i32 - 1 - exponent).unwrap_or(0);
    trimmed(&format!("{value:.decimals$}"), alternate)
}

/// Without trailing zeros, or with a point if `alternate`.
fn trimmed(digits: &str, alternate: bool) -> String {
    match (alternate, digits.contains('.')) {
        (true, true) | (false, false) => digits.to_string(),
        (true, false) => format!("{digits}."),
        (false, true) => digits.trim_end_matches('0').trim_end_matches('.').to_string(),
    }
}

fn exponent_text(exponent: i32) -> String {
    format!("e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
}

/// The form of attributes: all digits but trailing zeros, the point always.
pub(super) fn with_point(value: f64, precision: usize) -> String {
    let text = general(value, precision, true);
    let (digits, rest) = match text.find('e') {
        Some(at) => text.split_at(at),
        None => (text.as_str(), ""),
    };
    format!("{}{rest}", digits.trim_end_matches('0'))
}

/// A conversion of C's `printf` for one number, with the text around it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conversion {
    before: String,
    after: String,
    flags: String,
    width: usize,
    precision: Option<usize>,
    kind: char,
}

impl Conversion {
    /// Reads a format such as `%7.2f`; `None` if it is not one for a single number.
    pub(super) fn parse(format: &str) -> Option<Conversion> {
        let (before, rest) = format.split_once('%')?;
        let flags: String = rest.chars().take_while(|c| "-+ #0".contains(*c)).collect();
        let rest = &rest[flags.len()..];
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
        let (width, rest) = rest.split_at(digits(rest));
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (precision, rest) = rest.split_at(digits(rest));
                (Some(if precision.is_empty() { 0 } else { precision.parse().ok()? }), rest)
            }
            None => (None, rest),
        };
        let rest = rest.trim_start_matches(['h', 'l', 'L', 'q', 'j', 'z']);
        let kind = rest.chars().next().filter(|c| "diuoxXeEfFgG".contains(*c))?;
        let after = &rest[1..];
        let width = if width.is_empty() { 0 } else { width.parse().ok()? };
        if after.contains('%') || width > 100 || precision.is_some_and(|p| p > 100) {
            return None;
        }
        Some(Conversion { before: before.into(), after: after.into(), flags, width, precision, kind })
    }

    fn flag(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    /// Whether it is for floating-point numbers.
    pub(super) fn is_float(&self) -> bool {
        "eEfFgG".contains(self.kind)
    }

    fn finish(&self, negative: bool, digits: String, zeros: bool) -> String {
        let sign = match (negative, self.flag('+'), self.flag(' ')) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let fill = self.width.saturating_sub(sign.len() + digits.len());
        let number = if self.flag('-') {
            format!("{sign}{digits}{}", " ".repeat(fill))
        } else if self.flag('0') && zeros {
            format!("{sign}{}{digits}", "0".repeat(fill))
        } else {
            format!("{}{sign}{digits}", " ".repeat(fill))
        };
        format!("{}{number}{}", self.before, self.after)
    }

    /// A finite number.
    pub(super) fn float(&self, value: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        let size = value.abs();
        let text = match self.kind.to_ascii_lowercase() {
            'f' => format!("{size:.precision$}"),
            'e' => {
                let scientific = format!("{size:.precision$e}");
                let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
                format!("{mantissa}{}", exponent_text(exponent.parse().unwrap_or(0)))
            }
            _ => general(size, precision, self.flag('#')),
        };
        let text = if self.kind.is_ascii_uppercase() { text.to_uppercase() } else { text };
        self.finish(value.is_sign_negative(), text, true)
    }

    /// An integer.
    pub(super) fn integer(&self, value: i128) -> String {
        let size = value.unsigned_abs();
        let digits = match self.kind {
            'x' => format!("{size:x}"),
            'X' => format!("{size:X}"),
            'o' => format!("{size:o}"),
            _ => size.to_string(),
        };
        let fill = self.precision.unwrap_or(0).saturating_sub(digits.len());
        self.finish(value < 0, format!("{}{digits}", "0".repeat(fill)), self.precision.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_c() {
        for (value, seven, point) in [
            (0.0, "0", "0."),
            (-0.0, "-0", "-0."),
            (1.0, "1", "1."),
            (0.1, "0.1", "0.1"),
            (100000.0, "100000", "100000."),
            (1234567.0, "1234567", "1234567."),
            (12345678.0, "1.234568e+07", "1.234568e+07"),
            (1e20, "1e+20", "1.e+20"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "1.e-05"),
            (-2.5e-300, "-2.5e-300", "-2.5e-300"),
            (9.96921e36, "9.96921e+36", "9.96921e+36"),
            (9999999.9, "1e+07", "1.e+07"),
        ] {
            assert_eq!(general(value, 7, false), seven);
            assert_eq!(with_point(value, 7), point);
        }
    }

    #[test]
    fn formats_are_those_of_printf() {
        for (format, value, text) in [
            ("%7.2f", 2.71449, "   2.71"),
            ("%-7.2fm", -2.71449, "-2.71  m"),
            ("%+.3e", 12345.678, "+1.235e+04"),
            ("%07.1f", -2.25, "-0002.2"),
            ("%G", 1e-10, "1E-10"),
            ("%.12g", 0.1, "0.1"),
        ] {
            assert_eq!(Conversion::parse(format).unwrap().float(value), text);
        }
        for (format, value, text) in
            [("%5d", 42, "   42"), ("%05d", -42, "-0042"), ("0x%x", 255, "0xff"), ("%ld", 7, "7")]
        {
            assert_eq!(Conversion::parse(format).unwrap().integer(value), text);
        }
        for bad in ["", "7.2f", "%s", "%d %d", "%", "%999d"] {
            assert_eq!(Conversion::parse(bad), None, "{bad}");
        }
    }
}
