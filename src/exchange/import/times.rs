//! Times in files of others.

/// A decimal number of seconds as ns, exactly; digits beyond the ninth are cut off.
pub(super) fn seconds_ns(text: &str) -> Option<i64> {
    decimal(text, 9)
}

/// A decimal number times 10^`places`, cut off there.
pub(super) fn decimal(text: &str, places: usize) -> Option<i64> {
    let text = text.trim();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = part.bytes().chain(std::iter::repeat(b'0')).take(places);
    let value = whole.bytes().chain(part).try_fold(0_i64, |value, digit| {
        value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
    })?;
    Some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_exactly() {
        assert_eq!(seconds_ns("2.415236267"), Some(2_415_236_267));
        assert_eq!(seconds_ns(" 7 "), Some(7_000_000_000));
        assert_eq!(seconds_ns("-0.5"), Some(-500_000_000));
        assert_eq!(seconds_ns("1.0000000019"), Some(1_000_000_001));
        for bad in ["", ".", "1,5", "1e3", "nan", "99999999999.0", "1.2.3", "--1"] {
            assert_eq!(seconds_ns(bad), None, "{bad}");
        }
    }
}
