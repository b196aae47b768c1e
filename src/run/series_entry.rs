//! What is kept of a series where thousands of runs are listed.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use super::summary::{Percentiles, SeriesSummary};

/// The percentiles by which runs are listed, chosen and followed. Of 64 CPUs the others would be
/// most of what is kept of a run.
const LISTED: [&str; 3] = ["50", "99", "99.9"];

/// Those of [`LISTED`] that a record has, ns, in its order: read and written as an object by their
/// names. Ten thousand runs of 64 CPUs have 640,000 of them, so that a map each would be too much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ListedPercentiles([Option<u64>; LISTED.len()]);

impl ListedPercentiles {
    fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    fn get(&self, name: &str) -> Option<u64> {
        self.0.get(place(name)?).copied()?
    }
}

fn place(name: &str) -> Option<usize> {
    LISTED.iter().position(|own| *own == name)
}

impl From<&Percentiles> for ListedPercentiles {
    fn from(all: &Percentiles) -> Self {
        Self(LISTED.map(|name| all.get(name).copied()))
    }
}

impl Serialize for ListedPercentiles {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(LISTED.iter().zip(self.0).filter_map(|(name, ns)| Some((name, ns?))))
    }
}

impl<'de> Deserialize<'de> for ListedPercentiles {
    fn deserialize<D: Deserializer<'de>>(record: D) -> Result<Self, D::Error> {
        record.deserialize_map(ListedVisitor)
    }
}

struct ListedVisitor;

impl<'de> Visitor<'de> for ListedVisitor {
    type Value = ListedPercentiles;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("percentiles by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut listed = ListedPercentiles::default();
        while let Some(ListedName(at)) = map.next_key()? {
            match at.and_then(|at| listed.0.get_mut(at)) {
                Some(own) => *own = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(listed)
    }
}

/// The place of a name in [`LISTED`], if it is there: no copy of it is made.
struct ListedName(Option<usize>);

impl<'de> Deserialize<'de> for ListedName {
    fn deserialize<D: Deserializer<'de>>(record: D) -> Result<Self, D::Error> {
        record.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = ListedName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a percentile")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(ListedName(place(name)))
    }
}

/// What a [`super::RunEntry`] has of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesEntry {
    /// Its name.
    pub name: String,
    /// All its samples.
    #[serde(default)]
    pub count: u64,
    /// The largest latency, ns; absent without a sample.
    pub max: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stage_of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) thread_of: Option<String>,
    #[serde(default, skip_serializing_if = "ListedPercentiles::is_empty")]
    percentiles: ListedPercentiles,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    uncertain: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheduled: Option<EntryScheduled>,
}

/// What a [`SeriesEntry`] has of the view per scheduled period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct EntryScheduled {
    percentiles: ListedPercentiles,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    uncertain: Vec<String>,
}

impl SeriesEntry {
    /// Without what nobody asks of many runs: of a series with a schedule, all that is not per
    /// scheduled period.
    pub(super) fn shorten(&mut self) {
        let uncertain = match &mut self.scheduled {
            Some(scheduled) => {
                (self.percentiles, self.uncertain) = (ListedPercentiles::default(), Vec::new());
                &mut scheduled.uncertain
            }
            None => &mut self.uncertain,
        };
        uncertain.retain(|name| place(name).is_some());
    }

    /// A percentile by its name in the record, one of 50, 99 and 99.9, ns: of a series with a
    /// schedule per scheduled period, which does not flatter where wake-ups were missed. Absent
    /// without a sample, and where the record does not have it.
    #[must_use]
    pub fn percentile(&self, name: &str) -> Option<u64> {
        let scheduled = self.scheduled.as_ref().map(|scheduled| &scheduled.percentiles);
        scheduled.unwrap_or(&self.percentiles).get(name).filter(|_| self.count > 0)
    }

    /// Whether fewer than 10 samples lie beyond this percentile.
    #[must_use]
    pub fn is_uncertain(&self, name: &str) -> bool {
        let scheduled = self.scheduled.as_ref().map(|scheduled| &scheduled.uncertain);
        scheduled.unwrap_or(&self.uncertain).iter().any(|uncertain| uncertain == name)
    }
}

impl From<SeriesSummary> for SeriesEntry {
    fn from(series: SeriesSummary) -> Self {
        Self {
            name: series.name,
            count: series.count,
            max: series.max,
            stage_of: series.stage_of,
            thread_of: series.thread_of,
            percentiles: (&series.percentiles).into(),
            uncertain: series.uncertain,
            scheduled: series.scheduled.map(|scheduled| EntryScheduled {
                percentiles: (&scheduled.percentiles).into(),
                uncertain: scheduled.uncertain,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_series_only_what_is_listed_is_kept() {
        let all = r#"{"50": 1, "90": 2, "99": 3, "99.9": 4, "99.99": 5}"#;
        let text = format!(
            r#"{{"name": "cpu0", "count": 9, "max": 7, "percentiles": {all},
                "uncertain": ["99.9", "99.99"]}}"#
        );
        let mut plain: SeriesEntry = serde_json::from_str(&text).unwrap();
        plain.shorten();
        let kept = LISTED.map(|name| plain.percentile(name));
        assert_eq!((kept, plain.percentile("90")), ([Some(1), Some(3), Some(4)], None));
        assert!(plain.is_uncertain("99.9") && !plain.is_uncertain("99"));
        let scheduled = r#", "scheduled": {"percentiles": {"50": 6, "90": 7}, "uncertain": []}}"#;
        let text = text.trim_end_matches('}').to_owned() + scheduled;
        let mut own: SeriesEntry = serde_json::from_str(&text).unwrap();
        own.shorten();
        assert_eq!((own.percentile("50"), own.is_uncertain("99.9")), (Some(6), false));
        let written = serde_json::to_string(&own).unwrap();
        let expected = r#"{"name":"cpu0","count":9,"max":7,"scheduled":{"percentiles":{"50":6}}}"#;
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_str::<SeriesEntry>(&written).unwrap(), own);
    }
}
