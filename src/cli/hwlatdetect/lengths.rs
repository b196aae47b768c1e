//! Times as hwlatdetect takes them: whole numbers, with or without a unit.

/// The longest time, s: a hundred years.
const MOST_S: u64 = 100 * 365 * 86_400;

/// The longest window, us: an hour.
const MOST_US: u64 = 3_600_000_000;

/// `90`, `5m`, `2h`, `1d`, `1w`, in s.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let units = [("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1), ("", 1)];
    scaled(text, &units, MOST_S).ok_or_else(|| {
        "write seconds, or a number with s, m, h, d or w behind it; at least 1".to_owned()
    })
}

/// `10`, `10us`, `5ms`, `1s`, in us.
pub(super) fn microseconds(text: &str) -> Result<u64, String> {
    let units = [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("", 1)];
    scaled(text, &units, MOST_US).ok_or_else(|| {
        "write microseconds, or a number with us, ms or s behind it; from 1 to an hour".to_owned()
    })
}

/// The number times that of the first unit that the text ends with.
fn scaled(text: &str, units: &[(&str, u64)], most: u64) -> Option<u64> {
    let (number, each) = units.iter().find_map(|(unit, each)| {
        let number = text.strip_suffix(unit)?;
        Some((number, each))
    })?;
    let is_whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let value = number.parse::<u64>().ok().filter(|_| is_whole)?.checked_mul(*each)?;
    (1..=most).contains(&value).then_some(value)
}
