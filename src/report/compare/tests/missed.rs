//! The share of missed periods of several runs.

use super::*;

#[test]
fn the_shares_of_missed_periods_are_those_that_the_ratio_is_of() {
    let place = tempfile::tempdir().unwrap();
    let side = |side: &str, missed: [u64; 3]| {
        let one = |(number, missed): (usize, u64)| {
            made(place.path(), &format!("{side}{number}"), 100, |document| {
                document.series.iter_mut().for_each(|series| series.missed = Some(missed));
            })
        };
        read(missed.into_iter().enumerate().map(one).collect())
    };
    // One run of A missed nearly half, the others nearly nothing.
    let (a, b) = (side("a", [18_000, 10, 10]), side("b", [18_000, 18_000, 18_000]));
    let found = compared(&a, &b).unwrap();
    let missed = row(&found.described, Some("cpu0"), "missed");
    assert!((missed.b / missed.a / missed.ratio - 1.0).abs() < 1e-9, "{missed:?}");
    assert!(missed.a < 0.01 && (missed.b - 0.4737).abs() < 1e-3, "{missed:?}");
    let said = found.remarks.iter().find(|remark| remark.starts_with("missed is")).unwrap();
    assert!(said.contains("together 23% were missed in A, 47% in B"), "{said}");
    let met = compared(&side("c", [0; 3]), &side("d", [0; 3])).unwrap();
    assert_eq!(row(&met.described, Some("cpu0"), "missed").a, 0.0);
    assert!(!met.remarks.iter().any(|remark| remark.starts_with("missed is")), "{met:?}");
}
