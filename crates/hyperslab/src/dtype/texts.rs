//! Texts as elements of one fixed size.

use super::{CharSet, DType, StringPadding};

/// What a list of texts may take beyond 64 times what it says itself.
const FREE: usize = 1 << 20;

impl DType {
    /// The type that holds `texts` as elements of the size of the longest, and the elements. Padded with NULs, or with
    /// spaces where a text ends with a NUL, so that each keeps what it ends with.
    ///
    /// `None` if texts end with both, or if one long text among many short ones would take memory for all of them.
    pub fn of_texts(texts: &[&str]) -> Option<(DType, Vec<u8>)> {
        let size = texts.iter().map(|t| t.len()).max().unwrap_or(0).max(1);
        let given: usize = texts.iter().map(|t| t.len()).sum();
        if size.saturating_mul(texts.len()) > FREE.saturating_add(given.saturating_mul(64)) {
            return None;
        }
        let ends_with = |end: char| texts.iter().any(|t| t.ends_with(end));
        let (padding, pad) = match (ends_with('\0'), ends_with(' ')) {
            (false, _) => (StringPadding::NullPadded, 0),
            (true, false) => (StringPadding::SpacePadded, b' '),
            (true, true) => return None,
        };
        let mut data = Vec::new();
        for text in texts {
            data.extend_from_slice(text.as_bytes());
            data.resize(data.len() + size - text.len(), pad);
        }
        Some((DType::String { size, padding, charset: CharSet::Utf8 }, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_what_they_end_with() {
        let told = |texts: &[&str]| {
            DType::of_texts(texts)
                .map(|(dtype, data)| format!("{dtype} {:?}", data.escape_ascii().to_string()))
        };
        assert_eq!(told(&["a", "bc "]).unwrap(), "str3:utf8:nullpad \"a\\\\x00\\\\x00bc \"");
        assert_eq!(told(&["a\0", "bcd"]).unwrap(), "str3:utf8:spacepad \"a\\\\x00 bcd\"");
        assert_eq!(told(&[""]).unwrap(), "str1:utf8:nullpad \"\\\\x00\"");
        assert_eq!(told(&["a\0", "b "]), None);
        let mut many = vec!["a"; 1 << 16];
        let long = "b".repeat(1 << 16);
        many.push(&long);
        assert_eq!(told(&many), None);
    }
}
