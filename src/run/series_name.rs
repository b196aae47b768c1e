//! What the name of a series says: whose stage it is, and of which thread. Writers make names by
//! these rules, and readers find in the record what they say.

use std::borrow::Cow;

use crate::plain::plain;

/// What follows the name of a series in that of the work of an attached thread: from the expiry to
/// its end. It is longer than the wake-up that it begins with.
pub const RESPONSE: &str = "response";

/// The stage of a response that is the wake-up with which it began.
pub(crate) const LATENESS: &str = "lateness";

/// The attached thread, or name, whose responses the series called `name` has: `app` for
/// `app/response`.
#[must_use]
pub fn whole_of_response(name: &str) -> Option<&str> {
    stage_of(name).filter(|(_, stage)| *stage == RESPONSE).map(|(whole, _)| whole)
}

/// The series that the one called `name` is a stage of, and which: `cpu0` and `irq` for `cpu0/irq`.
/// Writers name stages so; readers find both in the record.
pub(super) fn stage_of(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('/').filter(|(_, stage)| !is_number(stage))
}

/// The name of the attached thread whose series, or stage of it, is called `name`: `app` for
/// `app/1234` and `app/1234/dispatch`.
pub(super) fn thread_of(name: &str) -> Option<&str> {
    let whole = stage_of(name).map_or(name, |(of, _)| of);
    whole.rsplit_once('/').filter(|(_, tid)| is_number(tid)).map(|(of, _)| of)
}

/// What the series of a task of this name is called: a name in which nothing separates fields,
/// `%2F` for a slash.
#[must_use]
pub fn name_of_task(comm: &[u8]) -> String {
    escaped(comm, b"%/")
}

/// As [`name_of_task`], of a name that may have its stage behind a slash and may be escaped
/// already: both stay.
#[must_use]
pub fn name_of_series(name: &str) -> String {
    escaped(name.as_bytes(), b"")
}

/// A name as its owner wrote it: without the escapes of [`name_of_task`] and [`name_of_series`],
/// where what they stand for is a text that steers no terminal.
#[must_use]
pub fn shown_name(name: &str) -> Cow<'_, str> {
    if !name.contains('%') {
        return Cow::Borrowed(name);
    }
    let (mut bytes, mut rest) = (Vec::new(), name.as_bytes());
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        // A sign is not a digit, though the parser takes one.
        let digits = digits.filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|two| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    match String::from_utf8(bytes) {
        Ok(text) if plain(&text) == text => Cow::Owned(text),
        _ => Cow::Borrowed(name),
    }
}

/// Whether who typed `typed` means the series called `name`: by that name, or as it is shown.
#[must_use]
pub fn is_called(typed: &str, name: &str) -> bool {
    typed == name || typed == shown_name(name)
}

/// What separates fields, and `also`, as `%` and two digits.
fn escaped(text: &[u8], also: &[u8]) -> String {
    let mut name = String::new();
    for &byte in text {
        let is_plain = matches!(byte, b'!'..=b'~')
            && !matches!(byte, b',' | b'<' | b'=' | b'"' | b'\\')
            && !also.contains(&byte);
        if is_plain {
            name.push(char::from(byte));
        } else {
            name += &format!("%{byte:02X}");
        }
    }
    if name.is_empty() { "%00".into() } else { name }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a series of this name is of the work after wake-ups.
#[must_use]
pub fn is_response(name: &str) -> bool {
    stage_of(name).is_some_and(|(_, stage)| stage == RESPONSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_as_its_owner_wrote_it_where_that_is_safe() {
        for (name, shown) in [
            ("cpu0", "cpu0"),
            ("x%20y", "x y"),
            ("a%2Fb/dispatch", "a/b/dispatch"),
            ("M%C3%BCll", "Müll"),
            ("50%", "50%"),
            ("%2x", "%2x"),
            ("a%1B[2J", "a%1B[2J"),
            ("%00", "%00"),
            ("%FF%20", "%FF%20"),
            ("%E2%80%AEx", "%E2%80%AEx"),
            ("%+1", "%+1"),
        ] {
            assert_eq!(shown_name(name), shown);
            assert!(is_called(shown, name) && is_called(name, name));
        }
        assert!(!is_called("x y", "x_y"));
    }

    #[test]
    fn a_name_holds_nothing_that_separates_fields() {
        assert_eq!(name_of_task(b"kworker/0:1H-x"), "kworker%2F0:1H-x");
        assert_eq!(name_of_task(b"a, b%"), "a%2C%20b%25");
        assert_eq!(name_of_task("n\u{e9}".as_bytes()), "n%C3%A9");
        assert_eq!(name_of_task(b""), "%00");
        assert_eq!(name_of_task(b"p99<=1"), "p99%3C%3D1");
        for (name, expected) in [("x y", "x%20y"), ("cpu0/irq", "cpu0/irq"), ("a%20b", "a%20b")] {
            assert_eq!(name_of_series(name), expected);
            assert_eq!(name_of_series(expected), expected);
        }
    }
}
