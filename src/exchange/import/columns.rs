//! Plain CSV: the user says which column is what.

use super::{
    ImportOptions,
    sheet::{LatencyUnit, Sheet},
    source::{ImportError, Source},
    times::{decimal, seconds_ns},
};
use crate::{
    plain::cut,
    run::{ImportCaveat, series_name::name_of_task},
};

/// Bytes of the name of a series.
const MOST_NAME: usize = 100;

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
pub(super) const fn is_it(_head: &str) -> bool {
    false
}

/// Where the columns are.
struct Places {
    latency: usize,
    time: Option<usize>,
    series: Option<usize>,
}

/// Reads it.
pub(super) fn read(source: &mut Source<'_>, options: &ImportOptions) -> Result<Sheet, ImportError> {
    let Some(map) = &options.columns else {
        return Err(ImportError::new("--latency-column NAME says which column has the latencies"));
    };
    let mut sheet = Sheet::new("CSV", None);
    let unit = options.unit.unwrap_or(LatencyUnit::Microseconds);
    let mut places: Option<(Places, char)> = None;
    let mut before = String::new();
    while let Some((number, line)) = source.text()? {
        // Behind the header, a name may begin so.
        if line.trim().is_empty() || (places.is_none() && line.starts_with('#')) {
            continue;
        }
        let (places, mark) = match &places {
            Some(known) => (&known.0, known.1),
            None => {
                let mark = separator(&line);
                let (found, has_names) = map
                    .places(&split(&line, mark))
                    .map_err(|what| ImportError::at(number, what))?;
                let known = places.insert((found, mark));
                before.clear();
                if has_names {
                    continue;
                }
                (&known.0, known.1)
            }
        };
        if !source.is_whole() && source.number() > 1 {
            // What a killed program leaves: the number may have had more digits.
            break;
        }
        let fields = split(&line, mark);
        let read = sample(&fields, places, unit, &mut sheet);
        read.map_err(|what| match line.starts_with('#') {
            true => ImportError::at(
                number,
                format!("{what}; a line that begins with # is a comment only before the header"),
            ),
            false => ImportError { line: Some(number), ..what },
        })?;
    }
    if options.unit.is_none() {
        sheet.caveats.push(ImportCaveat::UnitAssumed { unit: unit.name() });
    }
    Ok(sheet)
}

fn sample(
    fields: &[&str],
    places: &Places,
    unit: LatencyUnit,
    sheet: &mut Sheet,
) -> Result<(), ImportError> {
    let field = |at: usize| fields.get(at).copied().unwrap_or_default().trim().trim_matches('"');
    let digits = unit.ns().ilog10() as usize;
    let latency = field(places.latency);
    let latency_ns = decimal(latency, digits).ok_or_else(|| {
        ImportError::new(format!("\"{}\" is no latency: a number was expected", cut(latency, 40)))
    })?;
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
    let t_ns = seconds_ns(field(at)).ok_or_else(|| {
        ImportError::new(format!("\"{}\" is no time in seconds", cut(field(at), 40)))
    })?;
    sheet.sample(number, t_ns, latency_ns)
}

fn separator(line: &str) -> char {
    [',', ';', '\t'].into_iter().max_by_key(|mark| line.matches(*mark).count()).unwrap_or(',')
}

fn split(line: &str, mark: char) -> Vec<&str> {
    line.split(mark).collect()
}

impl ColumnMap {
    /// Where the columns are, and whether the first line names them.
    fn places(&self, first: &[&str]) -> Result<(Places, bool), String> {
        let names: Vec<&str> = first.iter().map(|name| name.trim().trim_matches('"')).collect();
        let mut has_names = false;
        let mut place = |wanted: &str| -> Result<usize, String> {
            if let Some(at) = names.iter().position(|name| *name == wanted) {
                has_names = true;
                return Ok(at);
            }
            let number = wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            number.filter(|at| *at < names.len()).ok_or_else(|| {
                let there = cut(&names.join(", "), 200);
                format!("there is no column \"{}\"; there are {there}", cut(wanted, 40))
            })
        };
        let latency = place(&self.latency)?;
        let time = self.time.as_deref().map(&mut place).transpose()?;
        let series = self.series.as_deref().map(&mut place).transpose()?;
        // By numbers: a first line is of names where no number stands for a latency.
        let is_text = names.get(latency).is_none_or(|name| decimal(name, 0).is_none());
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
    ) -> Result<Sheet, ImportError> {
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
        assert_eq!(error, "line 2: there is no column \"latency\"; there are when, cpu, late");
        let odd = TABLE.replace("12.5", "12,5");
        let error = read(&odd, "late", None, None).unwrap_err().to_string();
        assert_eq!(error, "line 3: \"12,5\" is no latency: a number was expected");
    }
}
