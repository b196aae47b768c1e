//! A profile for `go tool pprof` and those who read its format: `profile.proto` of
//! github.com/google/pprof, compressed by gzip.

use std::{
    collections::HashMap,
    io::{self, Write as _},
};

use flate2::{Compression, write::GzEncoder};

use super::protobuf::Message;
use crate::run::profile::{KERNEL_MODULE, Profile, ProfileRow, ProfiledTask};

/// The profile; each sample has labels for its task, thread, CPU and context.
pub(super) fn write(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    file.write_all(&message(profile))?;
    file.finish()
}

/// Fields of `message Profile`.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING: u32 = 6;
    pub(super) const DURATION_NS: u32 = 10;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
}

fn message(profile: &Profile) -> Vec<u8> {
    let mut strings = Strings::default();
    let mut out = Message::default();
    let samples = strings.kind("samples", "count");
    let weight_unit = if profile.unit == "ns" { "nanoseconds" } else { "count" };
    let weight = strings.kind(&profile.event, weight_unit);
    out.inner(field::SAMPLE_TYPE, &samples);
    out.inner(field::SAMPLE_TYPE, &weight);
    for row in &profile.rows {
        out.inner(field::SAMPLE, &sample(profile, row, &mut strings));
    }
    for (at, module) in profile.modules.iter().enumerate() {
        let mut mapping = Message::default();
        mapping.number(1, at as u64 + 1);
        mapping.number(5, strings.number(module));
        // has_functions: what has no name here, has none anywhere.
        mapping.number(7, 1);
        out.inner(field::MAPPING, &mapping);
    }
    for (at, (function, module)) in profile.frames.iter().enumerate() {
        let mut line = Message::default();
        line.number(1, at as u64 + 1);
        let mut location = Message::default();
        location.number(1, at as u64 + 1);
        location.number(2, u64::from(*module) + 1);
        location.inner(4, &line);
        out.inner(field::LOCATION, &location);
        let text = |of: &[String], at: u32| of.get(at as usize).cloned().unwrap_or_default();
        let name = strings.number(&text(&profile.functions, *function));
        let module = text(&profile.modules, *module);
        let mut of = Message::default();
        of.number(1, at as u64 + 1);
        of.number(2, name);
        of.number(3, name);
        of.number(4, strings.number(if module == KERNEL_MODULE { "" } else { &module }));
        out.inner(field::FUNCTION, &of);
    }
    out.number(field::DURATION_NS, duration_ns(profile));
    out.inner(field::PERIOD_TYPE, &weight);
    out.number(field::PERIOD, 1_000_000_000 / u64::from(profile.hz.max(1)));
    for text in &strings.all() {
        out.bytes(field::STRING, text.as_bytes());
    }
    out.into_bytes()
}

fn duration_ns(profile: &Profile) -> u64 {
    u64::try_from(profile.until_ns.saturating_sub(profile.from_ns)).unwrap_or(0)
}

fn sample(profile: &Profile, row: &ProfileRow, strings: &mut Strings) -> Message {
    let mut sample = Message::default();
    let locations: Vec<u64> = profile.stack(row.node()).map(|frame| u64::from(frame) + 1).collect();
    sample.packed(1, &locations);
    sample.packed(2, &[row.4, row.5]);
    let task = profile.tasks.get(row.1 as usize);
    let name = task.map_or("", |task| &task.name);
    for (key, text) in [("task", name), ("context", row.2.as_str())] {
        let mut label = Message::default();
        label.number(1, strings.number(key));
        label.number(2, strings.number(text));
        sample.inner(3, &label);
    }
    let of = |number: fn(&ProfiledTask) -> u32| task.map_or(0, number);
    for (key, number) in
        [("pid", of(|task| task.pid)), ("tid", of(|task| task.tid)), ("cpu", row.0)]
    {
        let mut label = Message::default();
        label.number(1, strings.number(key));
        label.number(3, number.into());
        sample.inner(3, &label);
    }
    sample
}

/// The table of strings, of which the first is empty.
#[derive(Default)]
struct Strings(HashMap<String, u64>);

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let next = self.0.len() as u64 + 1;
        *self.0.entry(text.to_owned()).or_insert(next)
    }

    /// A `ValueType`.
    fn kind(&mut self, what: &str, unit: &str) -> Message {
        let mut kind = Message::default();
        kind.number(1, self.number(what));
        kind.number(2, self.number(unit));
        kind
    }

    /// By their numbers.
    fn all(&self) -> Vec<&str> {
        let mut all: Vec<(&u64, &str)> =
            self.0.iter().map(|(text, number)| (number, text.as_str())).collect();
        all.push((&0, ""));
        all.sort_unstable();
        all.into_iter().map(|(_, text)| text).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::{exchange::export::protobuf::tests::fields, report::profile::tests::sampled};

    #[test]
    fn what_is_written_decodes_to_the_same_stacks_and_weights() {
        let mut text = Vec::new();
        let packed = write(&sampled()).unwrap();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
        let all = fields(&text);
        let of = |number| all.iter().filter(move |field| field.0 == number);
        let strings: Vec<String> =
            of(6).map(|field| String::from_utf8(field.2.clone()).unwrap()).collect();
        assert_eq!(strings[0], "");
        let functions: Vec<&str> = of(5)
            .map(|field| &strings[fields(&field.2)[1].1 as usize])
            .map(String::as_str)
            .collect();
        assert_eq!(functions, ["do_idle", "halt", "main", "spin", "net_rx"]);
        let values: Vec<Vec<u8>> = of(2).map(|field| fields(&field.2)[1].2.clone()).collect();
        assert_eq!(values, [vec![2, 20], vec![1, 10], vec![1, 10], vec![4, 40]]);
        let first = of(2).next().unwrap();
        let stack = &fields(&first.2)[0].2;
        assert_eq!(stack, &[4, 4, 3], "spin, spin, main: innermost first");
        let task = fields(&fields(&first.2)[2].2);
        assert_eq!(
            (&*strings[task[0].1 as usize], &*strings[task[1].1 as usize]),
            ("task", "burn")
        );
        assert_eq!(of(10).next().unwrap().1, 2_000_000_000);
    }
}
