//! Collects the repeats of figures that are not latencies: rows for `figures.csv` while the run is
//! in progress, and all values for the record at its end.

use std::sync::mpsc::Receiver;

use crate::{
    probes::FigureValue,
    run::{FigureGap, FigureHead, FigureRecord, FigureRow, figures::summarize_figure},
};

/// The figures of one run.
#[derive(Debug)]
pub(super) struct FigureCollector {
    heads: Vec<FigureHead>,
    values: Vec<Vec<f64>>,
    from: Option<Receiver<FigureValue>>,
}

impl FigureCollector {
    /// None of them has a value yet.
    pub(super) fn new(heads: Vec<FigureHead>, from: Option<Receiver<FigureValue>>) -> Self {
        let values = vec![Vec::new(); heads.len()];
        Self { heads, values, from }
    }

    /// Takes the repeats that have ended since the last call, as rows of a run that began at
    /// `start_ns`. Never waits.
    pub(super) fn take(&mut self, start_ns: i64) -> Vec<FigureRow> {
        let fresh =
            self.from.iter().flat_map(Receiver::try_iter).filter(|one| one.value.is_finite());
        let mut rows = Vec::new();
        for FigureValue { figure, end_ns, value } in fresh {
            let (Some(head), Some(values)) = (self.heads.get(figure), self.values.get_mut(figure))
            else {
                continue;
            };
            values.push(value);
            let t_s = ((end_ns - start_ns) as f64 / 1e6).round() / 1e3;
            rows.push(FigureRow { t_s, name: head.name.clone(), value });
        }
        rows
    }

    /// Whether one of them has a value.
    pub(super) fn have_values(&self) -> bool {
        self.values.iter().any(|values| !values.is_empty())
    }

    /// What the record says of them.
    pub(super) fn records(&self) -> Vec<FigureRecord> {
        let of = |(head, values): (&FigureHead, &Vec<f64>)| summarize_figure(head, values);
        self.heads.iter().zip(&self.values).map(of).collect()
    }

    /// Those without a value; `refusals` says of some why, by their place.
    pub(super) fn gaps(&self, refusals: &[(usize, String)]) -> Vec<FigureGap> {
        let gap = |(place, head): (usize, &FigureHead)| {
            let why = refusals.iter().find(|(of, _)| *of == place).map(|(_, why)| why.clone());
            FigureGap { name: head.name.clone(), why }
        };
        let is_empty =
            |(place, _): &(usize, &FigureHead)| self.values.get(*place).is_none_or(Vec::is_empty);
        self.heads.iter().enumerate().filter(is_empty).map(gap).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::run::FigureUnit;

    #[test]
    fn repeats_become_rows_values_and_gaps() {
        let head = |name: &str| FigureHead { name: name.into(), unit: FigureUnit::Microseconds };
        let (send, from) = channel();
        let mut figures =
            FigureCollector::new(vec![head("fork"), head("exec"), head("sh")], Some(from));
        assert!(figures.take(0).is_empty());
        let ended = |figure, end_ns, value| send.send(FigureValue { figure, end_ns, value });
        ended(0, 2_500_000_000, 80.0).unwrap();
        ended(0, 3_500_000_000, 82.0).unwrap();
        ended(1, 3_600_000_000, f64::NAN).unwrap();
        ended(9, 3_700_000_000, 1.0).unwrap();
        let rows = figures.take(1_000_000_000);
        let row = |t_s, value| FigureRow { t_s, name: "fork".into(), value };
        assert_eq!(rows, [row(1.5, 80.0), row(2.5, 82.0)]);
        assert!(figures.have_values());
        drop(send);
        assert!(figures.take(0).is_empty());
        assert_eq!(figures.records()[0].mean, Some(81.0));
        let gap = |name: &str, why: Option<&str>| FigureGap {
            name: name.into(),
            why: why.map(str::to_owned),
        };
        let refusals = [(2, "no /bin/sh".to_owned())];
        assert_eq!(figures.gaps(&refusals), [gap("exec", None), gap("sh", Some("no /bin/sh"))]);
    }
}
