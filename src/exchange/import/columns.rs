//! Plain CSV: the user says which column is what.

use super::{
    ImportOptions,
    fields::{Numbers, separator, split, unit_of},
    imported_data::{ImportedData, LatencyUnit},
    source::{ImportError, Source},
};
use crate::limits::import::MOST_NAME;
use crate::{
    plain::cut,
    run::{ImportCaveat, series_name::name_of_task},
    units::many,
};

/// Which column is what, by its name in the first line, or by its number from 1 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMap {
    /// Latencies.
    pub latency: String,
    /// Times, s; without it samples have none.
    pub time: Option<String>,
    /// What tells series apart; without it there is one.
    pub series: Option<String>,
}

/// It says nothing of itself.
pub(super) const fn matches_format(_head: &str) -> bool {
    false
}

/// Where the columns are.
struct Places {
    latency: usize,
    time: Option<usize>,
    series: Option<usize>,
}

/// What the first line says of a table.
struct Shape {
    places: Places,
    /// Where nothing separates fields there is one.
    mark: char,
    fields: usize,
    numbers: Numbers,
    unit: LatencyUnit,
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let Some(map) = &options.columns else {
        return Err(ImportError::new("--latency-column NAME says which column has the latencies"));
    };
    let mut sheet = ImportedData::new("CSV", None);
    let mut shape: Option<Shape> = None;
    while let Some((number, line)) = source.text()? {
        // Behind the header, a name may begin so.
        if line.trim().is_empty() || (shape.is_none() && line.starts_with('#')) {
            continue;
        }
        let at = |what: String| ImportError::at(number, what);
        let shape = match &mut shape {
            Some(known) => known,
            None => {
                let (found, has_names) = map.shape(&line, options, &mut sheet).map_err(at)?;
                let found = shape.insert(found);
                if has_names {
                    continue;
                }
                found
            }
        };
        if !source.is_whole() && source.number() > 1 {
            // What a killed program leaves: the number may have had more digits.
            break;
        }
        let read = shape.row(&line, number, &mut sheet);
        read.map_err(|what| match line.starts_with('#') {
            true => ImportError::at(
                number,
                format!("{what}; a line that begins with # is a comment only before the header"),
            ),
            false => ImportError { line: Some(number), ..what },
        })?;
    }
    Ok(sheet)
}

impl Shape {
    /// The fields of a row; those behind the last column are empty.
    fn row(&mut self, line: &str, at: u64, sheet: &mut ImportedData) -> Result<(), ImportError> {
        let fields = split(line, self.mark).map_err(ImportError::new)?;
        let extra = fields.iter().skip(self.fields).any(|field| !field.is_empty());
        if fields.len() < self.fields || extra {
            let what = format!(
                "it has {}, and the first line {}: it is not whole, or a name or a number in it \
                 has a separator and no quotes",
                many(fields.len() as u64, "field"),
                self.fields
            );
            return Err(ImportError::new(what));
        }
        sample(&fields, at, self, sheet)
    }
}

fn sample(
    fields: &[String],
    at: u64,
    shape: &mut Shape,
    sheet: &mut ImportedData,
) -> Result<(), ImportError> {
    let field = |at: usize| fields.get(at).map_or("", String::as_str);
    let Shape { places, numbers, unit, .. } = shape;
    let mut number_in = |text: &str, digits: usize, what: &str| {
        let read = numbers.read(text, digits, at).map_err(ImportError::new)?;
        read.ok_or_else(|| ImportError::new(format!("\"{}\" is not a {what}", cut(text, 40))))
    };
    let digits = unit.ns().ilog10() as usize;
    let latency_ns = number_in(field(places.latency), digits, "latency: a number was expected")?;
    let name = places.series.map_or("all", field);
    let cpu = name.strip_prefix("cpu").unwrap_or(name);
    let is_number = cpu.bytes().all(|byte| byte.is_ascii_digit());
    let cpu = cpu.parse::<u32>().ok().filter(|_| is_number);
    let number = match cpu {
        Some(cpu) if places.series.is_some() => sheet.series(&format!("cpu{cpu}"), Some(cpu))?,
        _ if name.is_empty() => return Err(ImportError::new("the name of its series is empty")),
        // Two that were cut might become one.
        _ if name.len() > MOST_NAME => {
            let name = cut(name, 40);
            let what = format!("the name of a series \"{name}\" is over {MOST_NAME} bytes long");
            return Err(ImportError::new(what));
        }
        // By a slash runs of tardy name parts of a series.
        _ => sheet.series(&name_of_task(name.as_bytes()), None)?,
    };
    let Some(at) = places.time else {
        sheet.add(number, latency_ns, 1);
        return Ok(());
    };
    let t_ns = number_in(field(at), 9, "time in seconds")?;
    sheet.sample(number, t_ns, latency_ns)
}

impl ColumnMap {
    /// What the first line says, and whether it names the columns.
    fn shape(
        &self,
        line: &str,
        options: &ImportOptions,
        sheet: &mut ImportedData,
    ) -> Result<(Shape, bool), String> {
        let mark = separator(line);
        // Of one column alone a comma might separate it from the next.
        let numbers = Numbers::new(mark.is_some_and(|c| c != ','));
        let mark = mark.unwrap_or(',');
        let first = split(line, mark)?;
        let names: Vec<&str> = first.iter().map(String::as_str).collect();
        let (places, has_names) = self.places(&names, numbers)?;
        let stated = first.get(places.latency).and_then(|name| unit_of(name).filter(|_| has_names));
        let unit = options.unit_beside(stated)?.unwrap_or_else(|| {
            let unit = LatencyUnit::default();
            sheet.caveats.push(ImportCaveat::UnitAssumed { unit: unit.name() });
            unit
        });
        Ok((Shape { places, mark, fields: first.len(), numbers, unit }, has_names))
    }

    /// Where the columns are, and whether the first line names them.
    fn places(&self, names: &[&str], mut numbers: Numbers) -> Result<(Places, bool), String> {
        let mut has_names = false;
        let mut place = |wanted: &str| -> Result<usize, String> {
            if let Some(at) = names.iter().position(|name| *name == wanted) {
                has_names = true;
                return Ok(at);
            }
            let number = wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            number.filter(|at| *at < names.len()).ok_or_else(|| {
                let there = cut(&names.join(", "), 200);
                format!("no column \"{}\"; there are {there}", cut(wanted, 40))
            })
        };
        let latency = place(&self.latency)?;
        let time = self.time.as_deref().map(&mut place).transpose()?;
        let series = self.series.as_deref().map(&mut place).transpose()?;
        // By numbers: a first line is of names where no number stands for a latency.
        let first = names.get(latency).and_then(|name| numbers.read(name, 0, 1).ok().flatten());
        let is_text = first.is_none();
        Ok((Places { latency, time, series }, has_names || is_text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::import::{ImportFormat, tests::series};

    fn read(
        text: &str,
        latency: &str,
        time: Option<&str>,
        by: Option<&str>,
    ) -> Result<ImportedData, ImportError> {
        let columns = ColumnMap {
            latency: latency.into(),
            time: time.map(str::to_owned),
            series: by.map(str::to_owned),
        };
        let options = ImportOptions { columns: Some(columns), ..ImportOptions::default() };
        crate::exchange::import::read(text.as_bytes(), ImportFormat::find("csv"), &options)
    }

    const TABLE: &str = "# made by hand\nwhen;cpu;late\n0.5;0;12.5\n0.6;1;7\n1.5;0;\"3\"\n";

    #[test]
    fn columns_are_found_by_name_or_number() {
        let expected = [("cpu0", 2, 3_000, 12_500), ("cpu1", 1, 7_000, 7_000)];
        let named = read(TABLE, "late", Some("when"), Some("cpu")).unwrap();
        assert_eq!(series(&named), expected);
        assert_eq!(named.times_ns(), Some((500_000_000, 1_500_000_000)));
        assert_eq!(series(&read(TABLE, "3", Some("1"), Some("2")).unwrap()), expected);
        let alone = read("4\n5\n", "1", None, None).unwrap();
        assert_eq!(series(&alone), [("all", 2, 4_000, 5_000)]);
        assert_eq!(alone.times_ns(), None);
    }

    #[test]
    fn names_that_differ_are_series_that_differ() {
        let table = "name,late\na/b,5\na_b,6\na%2Fb,7\n#x,8\n+1,9\ncpu1,10\n";
        let sheet = read(table, "late", None, Some("name")).unwrap();
        let names: Vec<&str> = series(&sheet).into_iter().map(|own| own.0).collect();
        assert_eq!(names, ["a%2Fb", "a_b", "a%252Fb", "#x", "+1", "cpu1"]);
        let long = "n".repeat(101);
        let error = read(&format!("name,late\n{long},5\n"), "late", None, Some("name"));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("line 2: ") && error.contains("100 bytes"), "{error}");
        let error = read("late\n5\n# end\n", "late", None, None).unwrap_err().to_string();
        assert!(error.starts_with("line 3: ") && error.contains("before the header"), "{error}");
    }

    #[test]
    fn what_is_no_number_and_what_is_no_column_is_named() {
        let error = read(TABLE, "latency", None, None).unwrap_err().to_string();
        assert_eq!(error, "line 2: no column \"latency\"; there are when, cpu, late");
        let odd = TABLE.replace("12.5", "12:5");
        let error = read(&odd, "late", None, None).unwrap_err().to_string();
        assert_eq!(error, "line 3: \"12:5\" is not a latency: a number was expected");
    }

    #[test]
    fn tables_of_spreadsheets_are_read_as_they_are_meant() {
        let quoted = "\u{feff}name,late\n\"a, b\",1e3\nc,\"2.5E-1\"\n";
        let sheet = read(quoted, "late", None, Some("name")).unwrap();
        assert_eq!(series(&sheet)[0].2, 1_000_000);
        assert_eq!(series(&sheet)[1].2, 250);
        let comma = TABLE.replace('.', ",");
        let sheet = read(&comma, "late", Some("when"), None).unwrap();
        assert_eq!(series(&sheet), [("all", 3, 3_000, 12_500)]);
        assert_eq!(sheet.times_ns(), Some((500_000_000, 1_500_000_000)));
        let mixed = read(&TABLE.replace("1.5;0", "1,5;0"), "late", Some("when"), None);
        let error = mixed.unwrap_err().to_string();
        assert!(error.starts_with("line 5: decimal \",\" here and \".\" in line 3"), "{error}");
    }

    #[test]
    fn a_row_with_other_fields_than_the_first_line_is_refused() {
        let few = read("a,b,late\n1,2,3\n1,5\n", "late", None, None).unwrap_err().to_string();
        assert!(few.starts_with("line 3: it has 2 fields, and the first line 3"), "{few}");
        let few = read("late,a,b\n1,2,3\n1\n", "late", None, None).unwrap_err().to_string();
        assert!(few.starts_with("line 3: it has 1 field, and"), "{few}");
        // Else a decimal comma would make 12 of 12,5.
        let many = read("late\n12,5\n", "late", None, None).unwrap_err().to_string();
        assert!(many.starts_with("line 2: it has 2 fields, and the first line 1"), "{many}");
        assert!(read("a,late\n1,2,,\n", "late", None, None).is_ok(), "empty ones say nothing");
    }

    #[test]
    fn a_column_that_names_its_unit_needs_no_other_and_allows_none() {
        let with = |unit: Option<LatencyUnit>, name: &str| {
            let columns = ColumnMap { latency: "1".into(), time: None, series: None };
            let options = ImportOptions { unit, columns: Some(columns), info: None };
            let text = format!("{name}\n2.5\n");
            crate::exchange::import::read(text.as_bytes(), ImportFormat::find("csv"), &options)
        };
        let sheet = with(None, "late_ms").unwrap();
        assert_eq!(series(&sheet)[0].2, 2_500_000);
        assert!(sheet.caveats.is_empty());
        assert!(with(Some(LatencyUnit::Milliseconds), "late_ms").is_ok());
        let error = with(Some(LatencyUnit::Microseconds), "late_ms").unwrap_err().to_string();
        assert!(error.starts_with("line 1: --unit says microseconds, and the file milliseconds"));
        assert_eq!(series(&with(Some(LatencyUnit::Seconds), "late").unwrap())[0].2, 2_500_000_000);
    }
}
