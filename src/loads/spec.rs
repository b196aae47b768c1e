//! `NAME:key=value,...` made into a [`LoadSpec`]: every value checked, every default filled in.
//! Text processing only; the parent module owns the table of loads.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Load, LoadError, Parameter, ParameterKind, find};
use crate::units::{ByteSize, Nanos};

/// What a load is asked to do. Serialized, it is the second argument of the supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Its name in the table.
    pub name: String,
    /// Every parameter that the load has, by key; sizes in bytes, times in ns.
    pub parameters: Map<String, Value>,
}

impl LoadSpec {
    /// Reads what was typed: `hackbench`, or `hackbench:groups=8,transport=pipe`. Of a choice the
    /// word alone will do: `memory:munmap`.
    ///
    /// # Errors
    /// An unknown load or key, a key given twice, something that is not `key=value`, or a value out
    /// of range.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        let (name, pairs) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
        let load = find(name.trim())?;
        let mut parameters = Map::new();
        for pair in pairs.into_iter().flat_map(|pairs| pairs.split(',')) {
            let (key, value) = read_pair(load, pair.trim())?;
            if parameters.insert(key.to_owned(), value).is_some() {
                return Err(LoadError::Twice { load: load.name.into(), key: key.into() });
            }
        }
        for parameter in load.parameters {
            if !parameters.contains_key(parameter.key) {
                let value = parameter.read(load, parameter.default)?;
                parameters.insert(parameter.key.to_owned(), value);
            }
        }
        Ok(Self { name: load.name.to_owned(), parameters })
    }

    /// Reads what [`Self::to_json`] wrote, and checks it anew.
    ///
    /// # Errors
    /// No such object, or one that [`Self::check`] refuses.
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        let spec: Self = serde_json::from_str(text).map_err(|error| LoadError::BadDescription {
            text: text.to_owned(),
            why: error.to_string(),
        })?;
        spec.check()?;
        Ok(spec)
    }

    /// One line of JSON.
    ///
    /// # Errors
    /// None that this type can cause.
    pub fn to_json(&self) -> Result<String, LoadError> {
        serde_json::to_string(self).map_err(|error| LoadError::BadDescription {
            text: self.name.clone(),
            why: error.to_string(),
        })
    }

    /// As it would be typed after `--load`, of parameters that some version wrote: those that are
    /// absent have their defaults.
    ///
    /// # Errors
    /// No such load, or a parameter that it has not.
    pub fn typed(&self) -> Result<String, LoadError> {
        let load = find(&self.name)?;
        let mut pairs = Vec::new();
        for (key, value) in &self.parameters {
            let parameter = load.parameter(key)?;
            let text = match (parameter.kind, value) {
                (ParameterKind::Time { .. }, Value::Number(ns)) => format!("{ns}ns"),
                (_, Value::String(text)) if !text.contains(',') => text.clone(),
                (_, Value::Number(number)) => number.to_string(),
                _ => return Err(parameter.refuse(load, &value.to_string())),
            };
            pairs.push(format!("{key}={text}"));
        }
        let colon = if pairs.is_empty() { "" } else { ":" };
        Ok(format!("{}{colon}{}", self.name, pairs.join(",")))
    }

    /// The first parameter that is a text other than its default: a path or a program, which is
    /// opened or run as it is.
    #[must_use]
    pub fn chosen_text(&self) -> Option<(&'static str, &str)> {
        let load = find(&self.name).ok()?;
        let mut texts = load.parameters.iter().filter_map(|parameter| {
            let ParameterKind::Text = parameter.kind else { return None };
            Some((parameter, self.parameters.get(parameter.key)?.as_str()?))
        });
        let found = texts.find(|(parameter, text)| *text != parameter.default)?;
        Some((found.0.key, found.1))
    }

    /// What the load does that nobody but the caller may ask for: it brings the machine out of
    /// memory, or changes what only root can.
    #[must_use]
    pub fn changes_machine(&self) -> Option<String> {
        let has = |key: &str, value: &str| {
            self.parameters.get(key).and_then(Value::as_str).is_some_and(|own| own == value)
        };
        let parameter = match self.name.as_str() {
            "memory" if has("above-ram", "yes") => ":above-ram=yes",
            "netflood" if has("via", "veth") => ":via=veth",
            "ext4" | "printk" => "",
            _ => return None,
        };
        Some(format!("{}{parameter}", self.name))
    }

    /// Checks name, keys and values against the table.
    ///
    /// # Errors
    /// As [`Self::parse`]; a parameter that is absent is a bad value.
    pub fn check(&self) -> Result<(), LoadError> {
        let load = find(&self.name)?;
        for key in self.parameters.keys() {
            load.parameter(key)?;
        }
        for parameter in load.parameters {
            let value = self.parameters.get(parameter.key).unwrap_or(&Value::Null);
            if !parameter.kind.holds(value) {
                return Err(parameter.refuse(load, &value.to_string()));
            }
        }
        Ok(())
    }

    /// A parameter that is a count or a size.
    ///
    /// # Errors
    /// The load has no such key, or its value is not a number.
    pub fn number(&self, key: &str) -> Result<u64, LoadError> {
        self.read(key, Value::as_u64)
    }

    /// A parameter that is a time, ns.
    ///
    /// # Errors
    /// The load has no such key, or its value is not a time.
    pub fn time_ns(&self, key: &str) -> Result<i64, LoadError> {
        self.read(key, Value::as_i64)
    }

    /// A parameter that is a word or a text.
    ///
    /// # Errors
    /// The load has no such key, or its value is not text.
    pub fn text(&self, key: &str) -> Result<&str, LoadError> {
        self.read(key, Value::as_str)
    }

    fn read<'a, T>(
        &'a self,
        key: &str,
        convert: fn(&'a Value) -> Option<T>,
    ) -> Result<T, LoadError> {
        let load = find(&self.name)?;
        let parameter = load.parameter(key)?;
        let value = self.parameters.get(key).unwrap_or(&Value::Null);
        convert(value).ok_or_else(|| parameter.refuse(load, &value.to_string()))
    }
}

impl FromStr for LoadSpec {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        Self::parse(text)
    }
}

fn read_pair(load: &Load, pair: &str) -> Result<(&'static str, Value), LoadError> {
    let Some((key, value)) = pair.split_once('=') else {
        if let Some(parameter) = load.parameter_of_word(pair) {
            return Ok((parameter.key, Value::from(pair)));
        }
        let example = load.parameters.first().map_or_else(
            || load.name.to_owned(),
            |parameter| format!("{}:{}={}", load.name, parameter.key, parameter.default),
        );
        return Err(LoadError::NoPair { load: load.name.into(), text: pair.into(), example });
    };
    let parameter = load.parameter(key.trim())?;
    Ok((parameter.key, parameter.read(load, value.trim())?))
}

impl Load {
    /// The parameter that is meant by one of its words alone, as in `memory:munmap`. A word that
    /// several have, and a bare yes or no, mean none.
    fn parameter_of_word(&self, word: &str) -> Option<&'static Parameter> {
        let has_word = |parameter: &&Parameter| match parameter.kind {
            ParameterKind::Choice(words) => words.contains(&word) && !words.contains(&"yes"),
            _ => false,
        };
        let mut found = self.parameters.iter().filter(has_word);
        found.next().filter(|_| found.next().is_none())
    }

    fn parameter(&self, key: &str) -> Result<&'static Parameter, LoadError> {
        self.parameters.iter().find(|parameter| parameter.key == key).ok_or_else(|| {
            let known = match self.parameters {
                [] => "it takes none".to_owned(),
                some => format!("use one of {}", listed(some.iter().map(|each| each.key))),
            };
            LoadError::UnknownParameter { load: self.name.into(), key: key.into(), known }
        })
    }
}

impl Parameter {
    fn read(&self, load: &Load, text: &str) -> Result<Value, LoadError> {
        self.kind
            .read(text)
            .filter(|value| self.kind.holds(value))
            .ok_or_else(|| self.refuse(load, text))
    }

    fn refuse(&self, load: &Load, value: &str) -> LoadError {
        LoadError::BadValue {
            load: load.name.to_owned(),
            key: self.key.to_owned(),
            value: value.to_owned(),
            expected: self.kind.expected(),
            example: self.default.to_owned(),
        }
    }
}

/// A value that is valid by itself, but not together with others.
pub(super) fn refuse(
    spec: &LoadSpec,
    key: &str,
    value: &str,
    expected: &str,
    example: &str,
) -> LoadError {
    LoadError::BadValue {
        load: spec.name.clone(),
        key: key.to_owned(),
        value: value.to_owned(),
        expected: expected.to_owned(),
        example: example.to_owned(),
    }
}

impl ParameterKind {
    fn read(self, text: &str) -> Option<Value> {
        match self {
            Self::Count { .. } => digits(text).map(Value::from),
            Self::Bytes { .. } => text.parse().ok().map(|ByteSize(bytes)| Value::from(bytes)),
            Self::Time { .. } => text.parse::<Nanos>().ok().map(|time| Value::from(time.0)),
            Self::Choice(_) | Self::Text => Some(Value::from(text)),
        }
    }

    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Count { min, max } | Self::Bytes { min, max } => {
                value.as_u64().is_some_and(|number| (min..=max).contains(&number))
            }
            Self::Time { min_ns, max_ns } => {
                value.as_i64().is_some_and(|ns| (min_ns..=max_ns).contains(&ns))
            }
            Self::Choice(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Text => value.as_str().is_some_and(|text| !text.is_empty()),
        }
    }

    /// For lists: `1 to 1000`, `4KiB to 64MiB`.
    #[must_use]
    pub fn bounds(self) -> String {
        match self {
            Self::Count { min, max } => format!("{min} to {max}"),
            Self::Bytes { min, max } => format!("{} to {}", typed_size(min), typed_size(max)),
            Self::Time { min_ns, max_ns } => {
                format!("{} to {}", Nanos(min_ns).typed(), Nanos(max_ns).typed())
            }
            Self::Choice(words) => listed(words.iter().copied()),
            Self::Text => "text".to_owned(),
        }
    }

    /// For errors: `a whole number from 1 to 1000`.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Bytes { min, max } => {
                format!("a size from {min} to {max} bytes (units: {})", ByteSize::units())
            }
            Self::Time { min_ns, max_ns } => {
                let (min, max) = (Nanos(min_ns).typed(), Nanos(max_ns).typed());
                format!("a time with a unit from {min} to {max} (units: {})", Nanos::units())
            }
            Self::Choice(words) => format!("one of {}", listed(words.iter().copied())),
            Self::Text => "a text".to_owned(),
        }
    }
}

/// A size in bytes as it is typed, in the largest unit that leaves a whole number: `64MiB`.
fn typed_size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = units.iter().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    whole.map_or_else(|| bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

/// Digits only: `+5`, which Rust's own parser takes, is nothing that help would show.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Words with commas between.
pub(super) fn listed(words: impl Iterator<Item = &'static str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::command;
    use proptest::prelude::*;

    fn refused(text: &str) -> String {
        LoadSpec::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_bare_name_has_every_default() {
        let spec = LoadSpec::parse("hackbench").unwrap();
        assert_eq!(
            spec.to_json().unwrap(),
            r#"{"name":"hackbench","parameters":{"fds":20,"groups":4,"size":100,"transport":"socket","workers":"process"}}"#
        );
        assert_eq!(LoadSpec::parse("idle").unwrap().parameters.len(), 0);
    }

    #[test]
    fn bounds_are_written_as_they_are_typed() {
        let bounds = |load, at: usize| find(load).unwrap().parameters[at].kind.bounds();
        assert_eq!(bounds("hackbench", 0), "1 to 1000");
        assert_eq!(bounds("memory", 1), "4KiB to 16384GiB");
        assert_eq!(bounds("netflood", 2), "1 to 1472");
        assert_eq!(bounds("timers", 1), "50us to 1m");
        assert_eq!(bounds("files", 0), "text");
    }

    #[test]
    fn given_values_replace_defaults() {
        let spec: LoadSpec = "hackbench:groups=8, transport=pipe,size=4KiB".parse().unwrap();
        assert_eq!(spec.number("groups").unwrap(), 8);
        assert_eq!(spec.text("transport").unwrap(), "pipe");
        assert_eq!(spec.number("size").unwrap(), 4096);
        assert_eq!(LoadSpec::from_json(&spec.to_json().unwrap()).unwrap(), spec);
    }

    #[test]
    fn what_was_kept_of_a_load_is_typed_again_and_only_its_own_texts_are_named() {
        for text in ["hackbench:groups=8,size=4KiB", "burn", "idle", "memory:munmap", "compile"] {
            let spec = LoadSpec::parse(text).unwrap();
            assert_eq!(LoadSpec::parse(&spec.typed().unwrap()).unwrap(), spec, "{text}");
            assert_eq!(spec.chosen_text(), None, "{text}");
        }
        let chosen = LoadSpec::parse("compile:compiler=/tmp/cc").unwrap();
        assert_eq!(chosen.chosen_text(), Some(("compiler", "/tmp/cc")));
        let mut odd = LoadSpec::parse("compile").unwrap();
        odd.parameters.insert("dir".into(), "/tmp,compiler=/tmp/cc".into());
        odd.typed().unwrap_err();
        odd.parameters.insert("dir".into(), serde_json::json!(["/tmp"]));
        odd.typed().unwrap_err();
        odd.name = "nosuch".into();
        odd.typed().unwrap_err();
        assert_eq!(command::spec("a; b").unwrap().chosen_text(), Some(("command", "a; b")));
    }

    #[test]
    fn a_word_of_a_choice_means_its_parameter() {
        let short = LoadSpec::parse("memory:munmap,size=1MiB").unwrap();
        assert_eq!(short, LoadSpec::parse("memory:mode=munmap,size=1MiB").unwrap());
        for text in ["memory:yes", "memory:small,pages=any", "memory:munmap,exit"] {
            refused(text);
        }
    }

    #[test]
    fn an_unknown_key_is_an_error_with_the_known_ones() {
        assert_eq!(
            refused("hackbench:group=3"),
            "load hackbench: unknown parameter `group`: use one of groups, fds, transport, \
             workers, size"
        );
        assert_eq!(refused("idle:x=1"), "load idle: unknown parameter `x`: it takes none");
    }

    #[test]
    fn a_bad_value_is_an_error_with_key_range_and_example() {
        assert_eq!(
            refused("hackbench:groups=0"),
            "load hackbench: groups=0 is not a whole number from 1 to 1000: write for example \
             groups=4"
        );
        assert_eq!(
            refused("hackbench:transport=tcp"),
            "load hackbench: transport=tcp is not one of socket, pipe: write for example \
             transport=socket"
        );
        for value in ["", "-1", "+1", "1.5", "1001", "99999999999999999999999", "x"] {
            assert!(refused(&format!("hackbench:groups={value}")).contains("from 1 to 1000"));
        }
        for value in ["0", "1MiB", "64KB", "KiB", "99999999999GiB", "4 kib"] {
            let said = refused(&format!("hackbench:size={value}"));
            assert!(said.contains("from 1 to 65536 bytes"), "{said}");
        }
    }

    #[test]
    fn a_key_given_twice_and_a_lone_word_are_refused() {
        assert_eq!(
            refused("hackbench:groups=1,groups=1"),
            "load hackbench: `groups` is given twice: give it only once"
        );
        assert_eq!(
            refused("hackbench:pip"),
            "load hackbench: `pip` is not KEY=VALUE: write for example hackbench:groups=4"
        );
        for text in ["hackbench:", "hackbench:groups=1,", "hackbench:,groups=1"] {
            assert!(refused(text).contains("`` is not KEY=VALUE"), "{text}");
        }
        assert_eq!(
            refused("idle:pipe"),
            "load idle: `pipe` is not KEY=VALUE: write for example idle"
        );
    }

    #[test]
    fn a_damaged_description_is_refused() {
        for text in ["", "{}", "[]", r#"{"name":"idle"}"#] {
            let said = LoadSpec::from_json(text).unwrap_err().to_string();
            assert!(said.contains("unreadable"), "{said}");
        }
        for text in [
            r#"{"name":"hackbench","parameters":{}}"#,
            r#"{"name":"idle","parameters":{"a":1}}"#,
            r#"{"name":"none","parameters":{}}"#,
        ] {
            LoadSpec::from_json(text).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = LoadSpec::parse(&text);
            let _ = LoadSpec::parse(&format!("hackbench:{text}"));
            let _ = LoadSpec::parse(&format!("hackbench:size={text}"));
            let _ = LoadSpec::from_json(&text);
        }
    }
}
