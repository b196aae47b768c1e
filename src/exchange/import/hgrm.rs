//! `.hgrm`: the percentile distribution of an HdrHistogram, as outputPercentileDistribution and
//! wrk2 print it, or as its variant with commas.
//!
//! ```text
//!        Value     Percentile TotalCount 1/(1-Percentile)
//!
//!        0.921     0.000000            1         1.00
//!       12.503     1.000000        39500          inf
//! #[Mean    =        6.602, StdDeviation   =        1.919]
//! #[Max     =       12.496, Total count    =        39500]
//! #[Buckets =           27, SubBuckets     =         2048]
//! ```
//!
//! `TotalCount` is how many samples are not above the value: those between two rows are taken as
//! the upper one. The variant with commas has none of the last three lines.

use super::{
    ImportOptions,
    imported_data::{ImportedData, LatencyUnit},
    source::{ImportError, Source},
};
use crate::{
    plain::cut,
    run::{FileLoss, ImportCaveat},
};

/// What the lines behind the table begin with.
const FOOTER: [&str; 3] = ["#[Mean", "#[Max", "#[Buckets"];

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines().any(is_heading)
}

fn is_heading(line: &str) -> bool {
    let plain: String = line.chars().filter(|c| !c.is_whitespace() && *c != '"').collect();
    plain.replace(',', "") == "ValuePercentileTotalCount1/(1-Percentile)"
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("HdrHistogram", None);
    let unit = options.unit.unwrap_or(LatencyUnit::Milliseconds);
    let series = sheet.series("all", None)?;
    let mut table: Option<Table> = None;
    let mut losses = Vec::new();
    while let Some((number, line)) = source.text()? {
        let at = |what: String| ImportError::at(number, what);
        losses.extend(losses_of_wrk(&line));
        if is_heading(&line) {
            if table.as_ref().is_some_and(|table| table.points > 0) {
                return Err(at("a second table: import one file for each".into()));
            }
            table = Some(Table { has_commas: line.contains(','), ..Table::default() });
        } else if let Some(table) = &mut table {
            if line.trim_start().starts_with('#') {
                table.footer(line.trim_start(), unit, &mut sheet, series).map_err(at)?;
            } else if !table.is_over() && is_row(&line) {
                table.between.take().map_or(Ok(()), Err)?;
                let row = table.row(&line).map_err(at)?;
                let value_ns = (row.value * unit.ns() as f64).round() as i64;
                sheet.add(series, value_ns, row.count - table.last.count);
                table.last = Row { is_last: row.is_last && source.is_whole(), ..row };
                table.points += 1;
            } else if table.points > 0 && !line.trim().is_empty() {
                table.between.get_or_insert_with(|| at(is_no_row(&line)));
            }
        }
    }
    let table = table.unwrap_or_default();
    table.ended().map_err(|what| ImportError::at(source.number().saturating_sub(1), what))?;
    if options.unit.is_none() {
        sheet.caveats.push(ImportCaveat::UnitAssumed { unit: unit.name() });
    }
    sheet.caveats.push(ImportCaveat::PointsOnly { points: table.points });
    sheet.caveats.extend(table.without_footer());
    if !losses.is_empty() {
        let what = losses.join(", ");
        sheet.caveats.push(ImportCaveat::Loss(FileLoss::Stated { what }));
    }
    Ok(sheet)
}

/// What wrk and wrk2 state of requests without a good answer, which have no latency or that of an
/// error: `Socket errors: connect 0, read 12, write 0, timeout 345` and
/// `Non-2xx or 3xx responses: 7` (`print_stats` and main of wrk.c).
fn losses_of_wrk(line: &str) -> Vec<String> {
    let line = line.trim();
    let of = |name: &str, count: &str| {
        let count: u64 = count.trim().parse().ok().filter(|count| *count > 0)?;
        Some(format!("{name}: {}", crate::units::count(count)))
    };
    if let Some(errors) = line.strip_prefix("Socket errors: ") {
        let one = |error: &str| {
            let (kind, count) = error.trim().split_once(' ')?;
            of(&format!("socket errors ({kind})"), count)
        };
        return errors.split(',').filter_map(one).collect();
    }
    let responses = line.strip_prefix("Non-2xx or 3xx responses: ");
    responses.and_then(|count| of("responses other than 2xx and 3xx", count)).into_iter().collect()
}

/// Whether a line behind the heading is meant as a row: what is text is of the program that printed
/// the table.
fn is_row(line: &str) -> bool {
    let line = line.trim_start();
    line.strip_prefix(['-', '.']).unwrap_or(line).starts_with(|c: char| c.is_ascii_digit())
}

/// Percentiles between two rows are those of the lower one, if nothing is left out.
fn is_no_row(line: &str) -> String {
    let line = cut(line.trim(), 40);
    format!("\"{line}\" stands between rows: each row of the table is needed")
}

/// A row of the table.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    value: f64,
    percentile: f64,
    count: u64,
    /// Whether it says that nothing is above it.
    is_last: bool,
}

/// What is known of the table.
#[derive(Debug, Default)]
struct Table {
    /// Fields are separated by commas.
    has_commas: bool,
    points: u64,
    last: Row,
    /// The first line since the last row that is not one.
    between: Option<ImportError>,
    /// Which of the lines behind it are there.
    footer: [bool; 3],
}

impl Table {
    /// Behind its last lines come others, as those of wrk2.
    const fn is_over(&self) -> bool {
        let [mean, max, buckets] = self.footer;
        mean || max || buckets
    }

    fn row(&self, line: &str) -> Result<Row, String> {
        let row = row(line, self.has_commas)?;
        let last = &self.last;
        if row.value < 0.0 {
            return Err(format!("its value {} is negative, and no latency is", row.value));
        }
        if !(0.0..=1.0).contains(&row.percentile) {
            return Err(format!("its percentile {} is not from 0 to 1", row.percentile));
        }
        let before = [last.value, last.percentile, last.count as f64];
        let own = [row.value, row.percentile, row.count as f64];
        let names = ["value", "percentile", "count"];
        let descends = (0..3).find(|at| self.points > 0 && own.get(*at) < before.get(*at));
        match descends.and_then(|at| names.get(at)) {
            Some(name) => Err(format!(
                "its {name} is less than that of the row before it, and values, percentiles and \
                 counts must ascend"
            )),
            None => Ok(row),
        }
    }

    /// Of a line behind the table: the mean is exact there, and the count is that of the table.
    fn footer(
        &mut self,
        line: &str,
        unit: LatencyUnit,
        sheet: &mut ImportedData,
        series: usize,
    ) -> Result<(), String> {
        let of = |name: &str| -> Option<f64> {
            let (_, value) = line.split_once(name)?.1.split_once('=')?;
            let value: f64 = value.split([',', ']']).next()?.trim().parse().ok()?;
            value.is_finite().then_some(value)
        };
        let starts = FOOTER.iter().zip(&mut self.footer);
        // A line that was cut lacks its bracket.
        let whole = line.trim_end().ends_with(']');
        starts.for_each(|(start, found)| *found |= whole && line.starts_with(start));
        // As many digits as the table has, or as few.
        let largest = self.last.value * (1.0 + 1e-6) + 0.01;
        for (name, value) in [("Mean", of("[Mean")), ("Max", of("[Max"))] {
            let Some(value) = value else { continue };
            if value < 0.0 || value > largest {
                let last = self.last.value;
                return Err(format!(
                    "{name} is {value}, and the last row of the table {last}, which is the largest"
                ));
            }
            if name == "Mean" {
                sheet.set_mean(series, (value * unit.ns() as f64).round() as i64);
            }
        }
        let stated = of("Total count").map(|count| count as u64);
        match stated.filter(|stated| *stated != self.last.count) {
            Some(stated) => Err(format!(
                "Total count is {stated}, and the table ends at {}: rows are missing; write it \
                 again",
                self.last.count
            )),
            None => Ok(()),
        }
    }

    /// Refuses a table of which the end is missing.
    fn ended(&self) -> Result<(), String> {
        if self.points == 0 || (self.last.is_last && self.last.percentile >= 1.0) {
            return Ok(());
        }
        Err(format!(
            "the table ends at the percentile {}, and not with a row at 1.0; write the file \
             again",
            self.last.percentile
        ))
    }

    /// The lines behind the table that are missing; the variant with commas has none.
    fn without_footer(&self) -> Option<ImportCaveat> {
        let missing = FOOTER.iter().zip(self.footer).filter(|(_, found)| !found);
        let lines: Vec<&str> = missing.map(|(start, _)| *start).collect();
        (!self.has_commas && self.points > 0 && !lines.is_empty())
            .then_some(ImportCaveat::FooterMissing { lines })
    }
}

/// Value, percentile and count of a row.
fn row(line: &str, has_commas: bool) -> Result<Row, String> {
    let shown = cut(line.trim(), 60);
    let fields: Vec<&str> = match has_commas {
        true => line.split(',').map(str::trim).collect(),
        false => line.split_whitespace().collect(),
    };
    // With commas between fields, decimal ones make more fields.
    let has_decimal_commas = (!has_commas && line.contains(',')) || fields.len() > 4;
    if has_decimal_commas {
        return Err(format!(
            "\"{shown}\" has decimal commas or too many fields: write it with decimal points \
             (LC_ALL=C)"
        ));
    }
    let found = match fields[..] {
        [value, percentile, count] => (value, percentile, count, None),
        [value, percentile, count, beyond] => (value, percentile, count, Some(beyond)),
        _ => return Err(format!("\"{shown}\" is not a row of the table")),
    };
    let (value, percentile, count, beyond) = found;
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let read = number(value).zip(number(percentile)).zip(count.parse().ok());
    let ((value, percentile), count) =
        read.ok_or_else(|| format!("\"{shown}\" is not a row of the table"))?;
    // The last row of some writers has no fourth field.
    let is_last = beyond.is_none_or(|beyond| number(beyond).is_none());
    Ok(Row { value, percentile, count, is_last })
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    /// In the form of wrk2.
    const TABLE: &str = "  Detailed Percentile spectrum:\n\
        \x20      Value   Percentile   TotalCount 1/(1-Percentile)\n\n\
        \x20      0.921     0.000000            1         1.00\n\
        \x20      4.053     0.100000         3951         1.11\n\
        \x20     12.503     1.000000        39500          inf\n\
        #[Mean    =        6.602, StdDeviation   =        1.919]\n\
        #[Max     =       12.496, Total count    =        39500]\n\
        #[Buckets =           27, SubBuckets     =         2048]\n";

    fn refusal(file: &str) -> String {
        text(file).unwrap_err().to_string()
    }

    #[test]
    fn errors_that_wrk_states_are_a_loss() {
        let wrk = format!(
            "{TABLE}----------\n  39500 requests in 10.00s, 3.11MB read\n  \
             Socket errors: connect 0, read 12, write 0, timeout 3450\n  \
             Non-2xx or 3xx responses: 7\nRequests/sec:   3950.00\n"
        );
        let said = caveats(&text(&wrk).unwrap());
        let all = "socket errors (read): 12, socket errors (timeout): 3,450, responses other than \
                   2xx and 3xx: 7.";
        assert!(said.contains("loss_stated") && said.contains(all), "{said}");
        let none = wrk.replace("read 12", "read 0").replace("3450", "0").replace("s: 7", "s: 0");
        assert!(!caveats(&text(&none).unwrap()).contains("loss_stated"));
    }

    #[test]
    fn a_table_of_which_rows_are_left_out_is_refused() {
        let (head, rest) = TABLE.split_at(TABLE.rfind(" 1.0000").unwrap());
        let (head, row) = head.rsplit_once('\n').unwrap();
        let elided = refusal(&format!("{head}\n...\n{row}{rest}"));
        let said = "\"...\" stands between rows: each row of the table is needed";
        assert!(elided.starts_with("line ") && elided.ends_with(said), "{elided}");
    }

    #[test]
    fn samples_between_two_rows_are_the_upper_one_and_the_mean_is_the_stated_one() {
        let sheet = text(TABLE).unwrap();
        assert_eq!(series(&sheet), [("all", 39_500, 921_000, 12_503_000)]);
        assert_eq!(sheet.series[0].totals.sum_ns, 6_602_000 * 39_500);
        let said = caveats(&sheet);
        assert!(
            said.contains("points_only") && said.contains("milliseconds are assumed"),
            "{said}"
        );
        assert!(!said.contains("footer_missing"), "{said}");
        let commas = TABLE.lines().skip(1).filter(|line| !line.starts_with('#'));
        let commas = commas.map(|line| line.split_whitespace().collect::<Vec<_>>().join(","));
        let commas = text(&(commas.collect::<Vec<_>>().join("\n") + "\n")).unwrap();
        assert_eq!(series(&commas), series(&sheet));
        assert!(!caveats(&commas).contains("footer_missing"), "with commas it has none");
        // wrk2 continues behind its table.
        let wrk2 = format!("{TABLE}-----------\n  39500 requests in 10.00s, 3.11MB read\n");
        assert_eq!(series(&text(&wrk2).unwrap()), series(&sheet));
    }

    #[test]
    fn a_table_that_descends_or_is_damaged_is_refused_by_its_line() {
        let descends = refusal(&TABLE.replace("39500          inf", "3950          inf"));
        assert!(descends.starts_with("line 6: its count is less than"), "{descends}");
        let percentile = refusal(&TABLE.replace("0.000000 ", "0.200000 "));
        assert!(percentile.starts_with("line 5: its percentile is less than"), "{percentile}");
        let beyond = refusal(&TABLE.replace("0.100000", "10.00000"));
        assert!(beyond.starts_with("line 5: its percentile 10 is not from 0 to 1"), "{beyond}");
        let value = refusal(&TABLE.replace(" 0.921", "-0.921"));
        assert!(value.starts_with("line 4: its value -0.921 is negative"), "{value}");
        assert!(refusal(&TABLE.replace("3951", "39x1")).starts_with("line 5: "));
    }

    #[test]
    fn decimal_commas_are_refused_and_never_read_as_fields() {
        let decimal = TABLE.lines().map(|line| match line.starts_with('#') {
            true => line.to_owned(),
            false => line.replace('.', ","),
        });
        let decimal = refusal(&decimal.collect::<Vec<_>>().join("\n"));
        assert!(decimal.starts_with("line 4: \"0,921"), "{decimal}");
        assert!(decimal.contains("LC_ALL=C"), "{decimal}");
        let both = "Value,Percentile,TotalCount,1/(1-Percentile)\n1,5,1,0,7,inf\n";
        assert!(refusal(both).contains("decimal commas"));
    }

    #[test]
    fn a_table_that_was_cut_is_refused_and_one_without_its_footer_doubted() {
        let footer = TABLE.find("#[Mean").unwrap();
        let sheet = text(&TABLE[..footer]).unwrap();
        let said = caveats(&sheet);
        assert!(said.contains("footer_missing"), "{said}");
        assert!(said.contains("lines that begin with #[Mean, #[Max, #[Buckets are missing"));
        let half = refusal(&TABLE[..TABLE.find("     12.503").unwrap()]);
        assert!(half.starts_with("line 6: the table ends at the percentile 0.1,"), "{half}");
        // Within the count of the last row.
        let within = refusal(&TABLE[..TABLE.find("          inf").unwrap()]);
        assert!(within.contains("not with a row at 1.0"), "{within}");
        let buckets = text(&TABLE[..TABLE.find("#[Buckets").unwrap()]).unwrap();
        assert!(caveats(&buckets).contains("begin with #[Buckets are"));
    }

    #[test]
    fn what_the_footer_contradicts_is_refused() {
        let count = TABLE.replace("Total count    =        39500", "Total count    =        39501");
        let count = refusal(&count);
        assert!(count.starts_with("line 8: Total count is 39501, and the table ends at 39500"));
        let max = refusal(&TABLE.replace("12.496", "99.0"));
        assert!(max.starts_with("line 8: Max is 99, and the last row of the table 12.503"));
        let mean = refusal(&TABLE.replace("6.602", "16.602"));
        assert!(mean.starts_with("line 7: Mean is 16.602"), "{mean}");
    }
}
