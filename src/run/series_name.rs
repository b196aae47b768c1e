//! What the name of a series says: whose stage it is, and of which thread. Writers make names by
//! these rules, and readers find in the record what they say.

/// What follows the name of a series in that of the work of an attached thread: from the expiry to
/// its end. It is longer than the wake-up that it begins with.
pub const RESPONSE: &str = "response";

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
