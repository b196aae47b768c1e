//! On what threads spent their own CPU time in late cycles, as text.

use anstyle::Style;

use super::{
    WhyReport,
    terminal_text::{DIM, TerminalText},
};
use crate::{analysis::bands::LATE, run::peaks::Cause};

/// The share of own CPU time in late cycles from which a profile is suggested.
const WORTH_A_PROFILE: f64 = 0.25;

/// Names of threads at the most.
const MOST_NAMES: usize = 5;

/// A sentence for each name of threads; without a profile that there could be some.
pub(super) fn push(sheet: &mut TerminalText, why: &WhyReport) {
    for own in why.own_time.iter().take(MOST_NAMES) {
        sheet.wrapped(Style::new(), &own.sentence());
        sheet.gap();
    }
    if why.own_time.is_empty() && own_share(why) >= WORTH_A_PROFILE {
        let hint = "Which functions the threads' own CPU time went to, --profile would say.";
        sheet.wrapped(DIM, hint);
        sheet.gap();
    }
}

/// The share of the time of late cycles that the threads spent themselves.
fn own_share(why: &WhyReport) -> f64 {
    let late = why.bands.iter().find(|band| band.name == LATE);
    let own = late.iter().flat_map(|band| &band.causes);
    own.filter(|cause| cause.cause == Cause::OwnWork).map(|cause| cause.share).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::bands::{Band, CauseInBand},
        report::profile::OwnTime,
    };

    fn shown(why: &WhyReport) -> String {
        let mut sheet = TerminalText::default();
        push(&mut sheet, why);
        anstream::adapter::strip_str(&sheet.done()).to_string()
    }

    #[test]
    fn a_profile_is_suggested_where_own_cpu_time_matters_and_there_is_none() {
        let cause = |share| CauseInBand {
            cause: Cause::OwnWork,
            name: "own work".into(),
            ns: 1,
            share,
            inferred: 0.0,
            series: Vec::new(),
        };
        let band = |share| Band {
            name: LATE.into(),
            from: 1,
            to: 2,
            wakeups: 3,
            ns: 4,
            blamed_share: 1.0,
            causes: vec![cause(share)],
        };
        let mut why = WhyReport { bands: vec![band(0.2)], ..WhyReport::default() };
        assert_eq!(shown(&why), "");
        why.bands = vec![band(0.25)];
        assert!(shown(&why).contains("--profile would say"), "{}", shown(&why));
        why.own_time = vec![OwnTime { series: "ctl".into(), samples: 3, places: Vec::new() }];
        let said = shown(&why);
        assert!(said.contains("CPU time of ctl in its late cycles was not sampled"), "{said}");
    }
}
