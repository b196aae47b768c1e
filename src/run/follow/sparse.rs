//! The counts of one interval as pairs of bucket and count. A histogram from 1 ns to 1 hour takes
//! 264 KiB; who follows hundreds of series ten times a second has no time for that.

use tardy_hot::histogram::{HIGHEST_NS, LEN, index_of};

use crate::run::hlog::{self, HEADER, IntervalSpan, NO_HISTOGRAM};

/// Bucket and count, lowest first, each bucket once.
pub(super) type Buckets = Vec<(usize, u64)>;

/// The interval on a line, if `wanted` accepts its series; `None` for any other line.
///
/// # Errors
/// What is wrong with the line.
pub(super) fn interval(
    line: &str,
    wanted: impl FnOnce(&str) -> bool,
) -> Result<Option<(IntervalSpan, Buckets)>, &'static str> {
    let Some((span, packed)) = hlog::interval_of(line)? else { return Ok(None) };
    if !wanted(&span.tag) {
        return Ok(None);
    }
    let plain = hlog::unpacked(packed).ok_or(NO_HISTOGRAM)?;
    Ok(Some((span, buckets(&plain).ok_or(NO_HISTOGRAM)?)))
}

/// The counts of an encoded histogram (HdrHistogram, V2). Its payload is a list of numbers in
/// ZigZag LEB128: a positive one is the next count, a negative one a number of zero counts.
fn buckets(plain: &[u8]) -> Option<Buckets> {
    let word = |at: usize| Some(u64::from_be_bytes(plain.get(at..at + 8)?.try_into().ok()?));
    if (word(16)?, word(24)?) != (1, HIGHEST_NS as u64) {
        return of_other_bounds(plain);
    }
    let length = u32::from_be_bytes(plain.get(4..8)?.try_into().ok()?) as usize;
    let mut payload = plain.get(HEADER..HEADER.checked_add(length)?)?.iter().copied();
    let (mut counts, mut at) = (Vec::new(), 0_usize);
    while let Some(number) = zigzag(&mut payload) {
        if number < 0 {
            at = at.checked_add(usize::try_from(number.unsigned_abs()).ok()?)?;
            continue;
        }
        if number > 0 {
            (at < LEN).then_some(())?;
            counts.push((at, number.unsigned_abs()));
        }
        at += 1;
    }
    Some(counts)
}

/// The next number: seven bits a byte, the lowest first; a ninth byte has eight.
fn zigzag(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut value = 0_u64;
    for place in 0..9 {
        let byte = u64::from(bytes.next()?);
        if place == 8 {
            value |= byte << 56;
            break;
        }
        value |= (byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(((value >> 1) as i64) ^ -((value & 1) as i64))
}

/// A histogram with other bounds: rare, so that a complete histogram does not matter.
fn of_other_bounds(plain: &[u8]) -> Option<Buckets> {
    let counts = hlog::histogram_of(plain)?;
    let bucket = |value: u64| index_of(i64::try_from(value).unwrap_or(i64::MAX).min(HIGHEST_NS));
    let recorded = counts.iter_recorded();
    let pairs =
        recorded.map(|one| (bucket(one.value_iterated_to()), one.count_since_last_iteration()));
    Some(pairs.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tardy_hot::tally::Totals;

    use super::*;
    use crate::run::counts::SeriesCounts;

    fn line(values: &[(u64, u64)]) -> (String, hdrhistogram::Histogram<u64>) {
        let mut counts = hlog::empty();
        values.iter().for_each(|(value, count)| counts.record_n(*value, *count).unwrap());
        let span = IntervalSpan { tag: "cpu0".into(), start_s: 1.0, length_s: 0.5 };
        let mut text = String::new();
        hlog::append(&mut text, &span, &counts, &Totals::NONE);
        (text.split_inclusive('\n').next().unwrap().to_owned(), counts)
    }

    proptest! {
        #[test]
        fn the_pairs_are_the_counts_of_the_histogram(
            values in prop::collection::vec((0..HIGHEST_NS as u64, 1..u64::MAX >> 8), 0..40),
        ) {
            let (line, whole) = line(&values);
            let (span, pairs) = interval(&line, |_| true).unwrap().unwrap();
            prop_assert_eq!((span.start_s, span.length_s), (1.0, 0.5));
            let mut sparse = SeriesCounts::new(2);
            sparse.add_buckets(0, &pairs);
            sparse.add(1, &whole);
            prop_assert_eq!(sparse.of(0), sparse.of(1));
            prop_assert!(pairs.is_sorted());
        }

        #[test]
        fn damage_is_an_error_or_harmless_and_never_a_panic(
            plain in prop::collection::vec(any::<u8>(), 0..200),
            at in 0_usize..120,
            byte in any::<u8>(),
        ) {
            let _ = buckets(&plain);
            let mut text = line(&[(5, 7), (900_000, 3)]).0.into_bytes();
            let at = at % text.len();
            text[at] = byte;
            if let Ok(text) = std::str::from_utf8(&text) {
                let _ = interval(text, |_| true);
            }
        }
    }

    #[test]
    fn a_series_that_is_not_wanted_is_not_unpacked() {
        let text = line(&[(5, 7)]).0.replace("HISTF", "HISTG");
        assert_eq!(interval(&text, |_| false), Ok(None));
        assert_eq!(interval(&text, |_| true), Err(NO_HISTOGRAM));
        assert_eq!(interval("#[a comment]\n", |_| true), Ok(None));
    }
}
