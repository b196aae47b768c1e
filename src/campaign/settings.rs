//! Settings of the machine tried one by one: a comparison of each, and what all of them come to
//! together.
//!
//! Both sides of a comparison are told about the setting: A to leave it as it is, B to give it the
//! value that is tried. So whoever else changes it makes a block invalid, and the setting is not
//! judged.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::{
    ab::{self, Ab, AbEvent},
    ab_plan::{AbRequest, SideRequest},
    blocks,
    judge::row,
};
use crate::{
    analysis::ab::{
        ALPHA,
        comparison::{FigureComparison, compare},
        discoveries::{Discovery, FALSE_DISCOVERIES, PairTest, discoveries},
        figure::JUDGED_BY_DEFAULT,
        looks::LookPlan,
        measured::{MeasuredBlock, MeasuredFigure},
        order::quads,
        verdict::overall,
    },
    run::{
        AbRecord, AbStatus, AbVerdict, ComparedFigureRow, Effect, RunDirectory, SETTINGS,
        SettingsRecord, TriedFigure, TriedSetting,
    },
    sys::signals::Quit,
};

/// What is to be tried.
#[derive(Debug)]
pub(crate) struct SettingsRequest {
    /// The record as planned; its settings are those of `sides`, in their order.
    pub record: SettingsRecord,
    /// What each setting is compared by: as it is, and as it is tried.
    pub sides: Vec<[SideRequest; 2]>,
    /// Where it goes.
    pub directory: PathBuf,
    /// Where runs are kept.
    pub store: PathBuf,
    /// What all of it may take; absent for as long as it takes.
    pub budget: Option<Duration>,
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingsProgress<'a> {
    /// The setting that is measured.
    pub name: &'a str,
    /// Its number, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// The block of it, from 1; 0 for the first ones, which are not compared.
    pub block: u32,
    /// Since the start.
    pub elapsed: Duration,
}

/// How somebody watches it: how often it is shown while a block continues, and by what.
pub(super) type SettingsView<'a> = (Option<Duration>, &'a mut dyn FnMut(SettingsProgress<'_>));

/// Tries each setting, and hands over the record, which is in the directory too.
///
/// # Errors
/// The record cannot be written. A setting that cannot be measured is not judged, and says why.
pub(crate) fn try_settings(
    request: SettingsRequest,
    quit: &Quit,
    view: &mut SettingsView<'_>,
) -> Result<SettingsRecord> {
    let directory = RunDirectory::make_private(&request.directory)?;
    let SettingsRequest { mut record, sides, directory: place, store, budget } = request;
    let start = Instant::now();
    let of = sides.len();
    let (mut compared, mut longest) = (Vec::new(), Duration::ZERO);
    for (number, [a, b]) in sides.into_iter().enumerate() {
        let began = start.elapsed();
        let name = record.settings.get(number).map(|own| own.name.clone()).unwrap_or_default();
        let why = match () {
            () if record.interrupted => Some("it was ended before"),
            () if budget.is_some_and(|budget| began + longest > budget) => {
                Some("the budget was used up before; give it more time (--budget)")
            }
            () => None,
        };
        let found = match why {
            Some(why) => Err(why.to_owned()),
            None => {
                let request = comparison(&record, number, (a, b), (&place, &store), &name);
                let mut show = |block: u32| {
                    let (name, number, elapsed) = (name.as_str(), number + 1, start.elapsed());
                    (view.1)(SettingsProgress { name, number, of, block, elapsed });
                };
                let found = directory
                    .subdirectory(&name)
                    .map_err(|error| format!("cannot make its directory: {error}"))
                    .and_then(|own| measure(&own, request, quit.clone(), (view.0, &mut show)));
                record.interrupted |= quit.seen().is_some();
                found
            }
        };
        longest = longest.max(start.elapsed() - began);
        if let Some(own) = record.settings.get_mut(number) {
            own.comparison = directory.holds(&name).then(|| name.clone());
            own.not_judged = found.as_ref().err().cloned();
        }
        compared.push(found.unwrap_or_default());
        decide(&mut record.settings, &compared);
        write(&directory, &record)?;
    }
    rank(&mut record.settings);
    write(&directory, &record)?;
    Ok(record)
}

fn write(directory: &RunDirectory, record: &SettingsRecord) -> Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    directory.replace(SETTINGS, text.as_bytes()).with_context(|| format!("cannot write {SETTINGS}"))
}

/// The comparison of one setting, of pairs and blocks that are fixed.
fn comparison(
    record: &SettingsRecord,
    number: usize,
    (a, b): (SideRequest, SideRequest),
    (place, store): (&PathBuf, &PathBuf),
    name: &str,
) -> AbRequest {
    let block_ns = i64::try_from(record.block_ns).unwrap_or(i64::MAX);
    AbRequest {
        a,
        b,
        undo: None,
        budget_ns: block_ns.saturating_mul(i64::from(record.pairs) * 2),
        fixed: Some((record.pairs, block_ns)),
        figures: JUDGED_BY_DEFAULT.to_vec(),
        margin: None,
        seed: record.seed.wrapping_add(number as u64) % (1 << 53),
        directory: place.join(name),
        store: store.clone(),
        id: format!("{}-{name}", record.id),
        name: name.into(),
        argv: record.argv.clone(),
    }
}

/// Measures one setting; what its pairs say, or why that is not judged.
fn measure(
    directory: &RunDirectory,
    request: AbRequest,
    quit: Quit,
    (pace, show): (Option<Duration>, &mut dyn FnMut(u32)),
) -> Result<Vec<(FigureComparison, ComparedFigureRow)>, String> {
    let mut shown = |event: AbEvent<'_>| {
        if let AbEvent::Goes(progress) = event {
            show(progress.block);
        }
    };
    let mut view = Ab { pace, show: &mut shown, causes: &|_, _| None };
    let record = ab::run_in(directory.clone(), request, quit, &mut view);
    let record = record.map_err(|error| format!("{error:#}"))?;
    match record.status {
        AbStatus::Complete => {}
        AbStatus::Invalid => return Err(invalid(&record)),
        _ => return Err("it was ended before its last block".into()),
    }
    figures(&record, directory).map_err(|error| format!("{error:#}"))
}

/// What made a block invalid.
fn invalid(record: &AbRecord) -> String {
    let worst = record.caveats.iter().filter(|caveat| caveat.effect == Effect::Invalidates);
    let texts: Vec<&str> = worst.map(|caveat| caveat.text.as_str()).collect();
    format!("a block was invalid: {}", texts.join(" "))
}

fn figures(
    record: &AbRecord,
    directory: &RunDirectory,
) -> Result<Vec<(FigureComparison, ComparedFigureRow)>> {
    let own = record.blocks.iter().filter(|block| block.compared);
    let read = own.map(|block| {
        let below = directory.own_below(Path::new(&block.path))?;
        let read = blocks::read(&below, None, &[]).with_context(|| block.path.clone())?;
        Ok(read.1)
    });
    compare_pairs(&read.collect::<Result<Vec<_>>>()?, record.seed)
}

/// What the pairs of these blocks say, which were measured in the order of a seed.
fn compare_pairs(
    all: &[MeasuredBlock],
    seed: u64,
) -> Result<Vec<(FigureComparison, ComparedFigureRow)>> {
    let pairs = u32::try_from(all.len() / 2).unwrap_or(0);
    let plan = LookPlan::single(pairs, JUDGED_BY_DEFAULT.len(), ALPHA)?;
    let order = quads(seed, pairs as usize / 2);
    let measured = JUDGED_BY_DEFAULT.map(|figure| MeasuredFigure::of(figure, all, all.len()));
    let found = compare(&plan, &order, &measured, None).context("there are too few blocks")?;
    let rows = found.figures.into_iter().map(|figure| {
        let described = row(&figure, JUDGED_BY_DEFAULT.len());
        (figure, described)
    });
    Ok(rows.collect())
}

/// What all settings so far come to together.
fn decide(settings: &mut [TriedSetting], all: &[Vec<(FigureComparison, ComparedFigureRow)>]) {
    let test = |(figure, _): &(FigureComparison, ComparedFigureRow)| PairTest {
        mean: figure.result.mean,
        sd: figure.result.sd,
        pairs: figure.result.pairs,
        margin: figure.margin.ln_1p(),
        floor: figure.floor.ln_1p(),
    };
    let tests: Vec<PairTest> = all.iter().flatten().map(test).collect();
    let mut found = discoveries(&tests, FALSE_DISCOVERIES).into_iter();
    for (setting, figures) in settings.iter_mut().zip(all) {
        let decided = figures.iter().zip(found.by_ref());
        setting.figures = decided.map(|((_, row), own)| tried(row, own)).collect();
        let verdicts: Vec<AbVerdict> =
            setting.figures.iter().map(|figure| figure.row.verdict).collect();
        setting.verdict = (!verdicts.is_empty()).then(|| overall_of(&verdicts));
    }
}

/// As of a comparison, but that an open figure leaves the setting open: "no difference" is said of
/// all figures or of none.
fn overall_of(verdicts: &[AbVerdict]) -> AbVerdict {
    match overall(verdicts) {
        AbVerdict::Same if verdicts.contains(&AbVerdict::Inconclusive) => AbVerdict::Inconclusive,
        verdict => verdict,
    }
}

fn tried(row: &ComparedFigureRow, found: Discovery) -> TriedFigure {
    let Discovery { p, p_adjusted, low, high, verdict } = found;
    let (low, high) = (Some(low.exp()), Some(high.exp()));
    let row = ComparedFigureRow { low, high, verdict, pairs_needed: None, ..row.clone() };
    TriedFigure { row, p, p_adjusted }
}

/// What helps comes first, that which takes away most before the others; then what is open, what
/// does nothing, what is worse, and what was not judged.
fn rank(settings: &mut [TriedSetting]) {
    let place = |setting: &TriedSetting| match setting.verdict {
        Some(AbVerdict::Better) => 0,
        Some(AbVerdict::Inconclusive) => 1,
        Some(AbVerdict::Same) => 2,
        Some(AbVerdict::Worse) => 3,
        None => 4,
    };
    settings.sort_by(|one, other| {
        let of_place = place(one).cmp(&place(other));
        of_place.then_with(|| worth(other).total_cmp(&worth(one)))
    });
}

/// By how much the figures that are decided are smaller at least, as the logarithm of the end of
/// the interval that claims least; if none is decided, that of the mean, the most of them.
fn worth(setting: &TriedSetting) -> f64 {
    let of = |figure: &TriedFigure| match figure.row.verdict {
        AbVerdict::Better => figure.row.high.map_or(0.0, |high| -high.ln()),
        AbVerdict::Worse => figure.row.low.map_or(0.0, |low| -low.ln()),
        _ => 0.0,
    };
    let decided = setting.figures.iter().map(of).fold(0.0, |sum: f64, own| sum + own);
    if decided != 0.0 {
        return decided;
    }
    let all = setting.figures.iter().map(|figure| -figure.row.ratio.ln());
    all.fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analysis::ab::order::AbSide, campaign::judge::tests::stalled};

    fn setting(name: &str, verdict: Option<AbVerdict>, ratio: f64) -> TriedSetting {
        TriedSetting {
            name: name.into(),
            what: String::new(),
            now: "1".into(),
            tried: "0".into(),
            may_break: String::new(),
            verdict,
            not_judged: None,
            comparison: None,
            figures: verdict
                .map(|verdict| TriedFigure::example("p99", ratio, verdict))
                .into_iter()
                .collect(),
        }
    }

    #[test]
    fn a_setting_with_stalls_is_better_and_comes_first() {
        let order = quads(7, 3);
        let compared =
            [None, Some(AbSide::A)].map(|side| compare_pairs(&stalled(&order, side), 7).unwrap());
        let mut all = ["equal", "bad"].map(|name| setting(name, None, 1.0));
        decide(&mut all, &compared);
        rank(&mut all);
        assert_eq!((all[0].name.as_str(), all[0].verdict), ("bad", Some(AbVerdict::Better)));
        let equal = all[1].verdict.unwrap();
        assert!(![AbVerdict::Better, AbVerdict::Worse].contains(&equal), "{equal:?}");
    }

    #[test]
    fn no_difference_is_said_of_all_figures_or_of_none() {
        use AbVerdict::{Better, Inconclusive, Same, Worse};
        assert_eq!(overall_of(&[Same, Same, Same]), Same);
        assert_eq!(overall_of(&[Same, Inconclusive, Same]), Inconclusive);
        assert_eq!(overall_of(&[Same, Inconclusive, Better]), Better);
        assert_eq!(overall_of(&[Worse, Inconclusive, Better]), Worse);
    }

    #[test]
    fn what_takes_away_most_for_certain_comes_first_and_what_was_not_judged_last() {
        use AbVerdict::{Better, Inconclusive, Same, Worse};
        let mut all = [
            setting("none", None, 1.0),
            setting("worse", Some(Worse), 3.0),
            setting("same", Some(Same), 1.01),
            setting("open", Some(Inconclusive), 0.01),
            setting("some", Some(Better), 0.7),
            setting("most", Some(Better), 0.1),
        ];
        rank(&mut all);
        let names: Vec<&str> = all.iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(names, ["most", "some", "open", "same", "worse", "none"]);
    }
}
