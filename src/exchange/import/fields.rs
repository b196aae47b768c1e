//! Lines of tables: fields, which may be quoted, and their numbers.

use super::{imported_data::LatencyUnit, times::decimal};

/// Digits that a number is moved by: more is not a latency.
const MOST_PLACES: i32 = 30;

/// The fields of a line. Within quotes a separator is text, and two quotes are one.
pub(super) fn split(line: &str, mark: char) -> Result<Vec<String>, String> {
    let (mut fields, mut rest) = (Vec::new(), line);
    loop {
        let trimmed = rest.trim_start_matches(|c: char| c == ' ' || (c == '\t' && c != mark));
        let (field, after) = match trimmed.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let end = rest.find(mark).unwrap_or(rest.len());
                let (field, after) = rest.split_at(end);
                (field.trim().to_owned(), after)
            }
        };
        fields.push(field);
        let after = after.trim_start_matches(|c: char| c.is_whitespace() && c != mark);
        match after.strip_prefix(mark) {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err("text stands behind the quotes of a field".into()),
        }
    }
}

/// A field behind its first quote, and what follows its last.
fn unquoted(text: &str) -> Result<(String, &str), String> {
    let (mut field, mut rest) = (String::new(), text);
    loop {
        let Some((part, after)) = rest.split_once('"') else {
            return Err("a field in quotes has no end in this line: a line is one row".into());
        };
        field.push_str(part);
        match after.strip_prefix('"') {
            Some(next) => {
                field.push('"');
                rest = next;
            }
            None => return Ok((field.trim().to_owned(), after)),
        }
    }
}

/// The separator of a table, by its first line.
pub(super) fn separator(line: &str) -> Option<char> {
    let mut is_quoted = false;
    let plain = line.chars().filter(|c| {
        is_quoted ^= *c == '"';
        !is_quoted
    });
    let plain: String = plain.collect();
    let count = |mark: char| plain.matches(mark).count();
    // Of as many of two, decimal commas stand between the others.
    let marks = [',', '\t', ';'].into_iter().filter(|mark| count(*mark) > 0);
    marks.max_by_key(|mark| count(*mark))
}

/// The unit that the name of a column ends in: `late_us`, `late (ms)`, `late [ns]`.
pub(super) fn unit_of(name: &str) -> Option<LatencyUnit> {
    let name = name.trim().trim_end_matches([')', ']']);
    let (rest, unit) = name.rsplit_once([' ', '_', '-', '.', '(', '['])?;
    if rest.is_empty() {
        return None;
    }
    match unit.to_ascii_lowercase().as_str() {
        "ns" | "nsec" => Some(LatencyUnit::Nanoseconds),
        "us" | "usec" | "\u{b5}s" | "\u{3bc}s" => Some(LatencyUnit::Microseconds),
        "ms" | "msec" => Some(LatencyUnit::Milliseconds),
        "s" | "sec" => Some(LatencyUnit::Seconds),
        _ => None,
    }
}

/// How the numbers of a table are written; all of them alike.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Numbers {
    may_be_comma: bool,
    /// The decimal mark of those before, and the line of the first.
    seen: Option<(char, u64)>,
}

impl Numbers {
    /// A comma may be decimal where it separates no fields.
    pub(super) const fn new(may_be_comma: bool) -> Self {
        Self { may_be_comma, seen: None }
    }

    /// A number times 10^`places`, cut off there: `12.5`, `1.25e1`, or `12,5`.
    pub(super) fn read(
        &mut self,
        text: &str,
        places: usize,
        line: u64,
    ) -> Result<Option<i64>, String> {
        let mark = text.chars().find(|c| matches!(c, '.' | ','));
        if let Some(mark) = mark.filter(|mark| *mark == '.' || self.may_be_comma) {
            let (before, at) = *self.seen.get_or_insert((mark, line));
            if before != mark {
                return Err(format!(
                    "decimal \"{mark}\" here and \"{before}\" in line {at}: write all numbers with \
                     points"
                ));
            }
        }
        let plain = if self.may_be_comma { text.replacen(',', ".", 1) } else { text.to_owned() };
        let plain = plain.strip_prefix('+').unwrap_or(&plain);
        Ok(scaled(plain, places))
    }
}

/// A number with or without an exponent.
fn scaled(text: &str, places: usize) -> Option<i64> {
    let Some((digits, exponent)) = text.split_once(['e', 'E']) else {
        return decimal(text, places);
    };
    let exponent: i32 = exponent.parse().ok()?;
    let places = i32::try_from(places).ok()?.checked_add(exponent)?;
    match places {
        0..=MOST_PLACES => decimal(digits, usize::try_from(places).ok()?),
        ..0 => {
            // What is cut off there is nothing.
            let divisor = 10_i64.checked_pow(places.unsigned_abs());
            let whole = decimal(digits, 0)?;
            Some(divisor.map_or(0, |divisor| whole / divisor))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_in_quotes_have_separators() {
        assert_eq!(split(r#"a, "b, ""c""" ,"d","#, ',').unwrap(), ["a", r#"b, "c""#, "d", ""]);
        assert_eq!(split("a\t\tb", '\t').unwrap(), ["a", "", "b"]);
        assert!(split("\"a,b", ',').unwrap_err().contains("no end in this line"));
        assert!(split("\"a\"b,c", ',').unwrap_err().contains("behind the quotes"));
        assert_eq!(separator("\"a,b,c\";d"), Some(';'));
        assert_eq!(separator("late"), None);
    }

    #[test]
    fn numbers_have_exponents_and_one_decimal_mark() {
        let read = |text: &str| Numbers::default().read(text, 3, 1).unwrap();
        for (text, value) in
            [("1e3", 1_000_000), ("1.25E1", 12_500), ("5e-4", 0), ("15e-1", 1_500), ("+2", 2_000)]
        {
            assert_eq!(read(text), Some(value), "{text}");
        }
        for odd in ["1e", "e3", "1e99", "1,5", "1e3.5", "1.2.3", ""] {
            assert_eq!(read(odd), None, "{odd}");
        }
        let mut comma = Numbers::new(true);
        assert_eq!(comma.read("12,5", 3, 2), Ok(Some(12_500)));
        assert_eq!(comma.read("1,234,5", 3, 3), Ok(None));
        let error = comma.read("12.5", 3, 4).unwrap_err();
        assert!(error.contains("decimal \".\" here and \",\" in line 2"), "{error}");
    }

    #[test]
    fn a_column_may_name_its_unit() {
        for (name, unit) in [
            ("late_us", Some(LatencyUnit::Microseconds)),
            ("late (ms)", Some(LatencyUnit::Milliseconds)),
            ("Latency [\u{b5}s]", Some(LatencyUnit::Microseconds)),
            ("late_ns", Some(LatencyUnit::Nanoseconds)),
            ("late.s", Some(LatencyUnit::Seconds)),
            ("status", None),
            ("us", None),
            ("late", None),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }
}
