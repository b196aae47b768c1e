//! Documents of JSON, and what is wrong with one in words of the file.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::error::Category;

use super::source::ImportError;
use crate::{limits::import::JSON, plain::cut};

/// A document of which `what` writes the fields; an error names line and field.
pub(super) fn json<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, ImportError> {
    JSON.check(bytes).map_err(ImportError::new)?;
    let bytes = with_nulls(bytes);
    let at = |error: &serde_json::Error| {
        let line = u64::try_from(error.line()).unwrap_or(0);
        (line > 0).then_some(line)
    };
    if let Err(error) = serde_json::from_slice::<UniqueKeys>(&bytes)
        && error.classify() == Category::Data
    {
        return Err(ImportError { line: at(&error), what: said(&error) });
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        let what = in_words(&error, &bytes, what);
        ImportError { line: at(&error), what }
    })
}

/// Any value in which no object has a name twice: most readers keep the last of them, and would
/// drop the samples of the first (RFC 8259, 4).
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = object.next_key::<String>()? {
            if names.contains(&name) {
                let name = cut(&name, 40);
                let what = format!("\"{name}\" is twice in one object: which one is meant?");
                return Err(A::Error::custom(what));
            }
            names.insert(name);
            object.next_value::<Self>()?;
        }
        Ok(self)
    }
}

/// What a library says is wrong, without the place that it puts behind it.
fn said(error: &serde_json::Error) -> String {
    let said = error.to_string();
    said.rsplit_once(" at line ").map_or(said.clone(), |(said, _)| said.to_owned())
}

/// Values that printf writes for an invalid number: not JSON, but in files of C programs.
const NO_NUMBERS: [&[u8]; 4] = [b"nan", b"infinity", b"inf", b"null"];

/// The same document with `null` in place of invalid numbers.
fn with_nulls(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut rest, mut is_text) = (bytes, false);
    while let Some((first, behind)) = rest.split_first() {
        let length = if is_text { None } else { no_number(rest) };
        match (length, first) {
            (Some(length), _) => {
                out.extend_from_slice(b"null");
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            (None, b'\\') if is_text => {
                out.extend(rest.iter().take(2));
                rest = rest.get(2..).unwrap_or_default();
                continue;
            }
            (None, b'"') => is_text = !is_text,
            _ => {}
        }
        out.push(*first);
        rest = behind;
    }
    out
}

/// The length of an invalid number at the beginning: `-nan`, `inf`.
fn no_number(text: &[u8]) -> Option<usize> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let word = text.get(sign..)?;
    let matches_format = |name: &&&[u8]| {
        let own = word.get(..name.len()).unwrap_or_default();
        own.eq_ignore_ascii_case(name)
            && !word.get(name.len()).is_some_and(u8::is_ascii_alphanumeric)
    };
    NO_NUMBERS.iter().find(matches_format).map(|name| sign + name.len())
}

fn in_words(error: &serde_json::Error, bytes: &[u8], what: &str) -> String {
    // The place stands in the line and in what follows.
    let said = said(error);
    match error.classify() {
        Category::Eof => "it ends within its JSON; write it again".into(),
        Category::Syntax if said == "trailing characters" => {
            "more stands behind the end of its JSON: import one document for each run".into()
        }
        Category::Syntax | Category::Io => {
            let column = error.column();
            format!("it is not JSON at column {column} ({})", cut(&said, 100))
        }
        Category::Data => of_field(&said, &before(bytes, error.line(), error.column()), what),
    }
}

fn of_field(said: &str, before: &str, what: &str) -> String {
    let missing = said.strip_prefix("missing field `").and_then(|name| name.strip_suffix('`'));
    if let Some(name) = missing {
        let name = cut(name, 40);
        return format!("\"{name}\" is missing in what ends here, which {what} writes always");
    }
    let key = last_key(before).map_or_else(String::new, |key| format!("\"{}\": ", cut(key, 40)));
    let kinds = ["invalid type: ", "invalid value: "];
    let found = kinds.iter().find_map(|kind| said.strip_prefix(kind)?.split_once(", expected "));
    match found {
        Some((found, wanted)) => {
            let (found, wanted) = (cut(found, 60), kind_of(wanted));
            format!("{key}{found} where {what} writes {wanted}")
        }
        None => format!("{key}{}", cut(said, 200)),
    }
}

/// A kind of value as people call it.
fn kind_of(wanted: &str) -> &str {
    match wanted {
        "u64" | "u32" | "u16" | "u8" | "usize" => "a whole number that is not negative",
        "i64" | "i32" => "a whole number",
        "f64" | "f32" => "a number",
        "a map" => "an object of names and values",
        wanted if wanted.starts_with("struct ") => "an object of names and values",
        wanted => wanted,
    }
}

/// What stands before a place.
fn before(bytes: &[u8], line: usize, column: usize) -> String {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let above: usize = lines.take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    let upto = above.saturating_add(column).min(bytes.len());
    // A key is not far away.
    let from = upto.saturating_sub(4_096);
    String::from_utf8_lossy(bytes.get(from..upto).unwrap_or_default()).into_owned()
}

/// The key of the value that ends there.
fn last_key(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let end = rest.rfind('"')?;
        let key = rest.get(..end)?;
        let start = key.rfind('"')?;
        if rest.get(end + 1..)?.trim_start().starts_with(':') {
            return key.get(start + 1..);
        }
        rest = key;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Of {
        #[expect(dead_code, reason = "only read")]
        count: u64,
        #[serde(default)]
        #[expect(dead_code, reason = "only read")]
        bins: BTreeMap<String, u64>,
    }

    #[test]
    fn errors_are_in_words_of_the_file_and_not_of_a_library() {
        for (text, said) in [
            (
                "{\n\"bins\": {}}",
                "line 2: \"count\" is missing in what ends here, which latmeter writes always",
            ),
            (
                "{\"count\": \"x\"}",
                "line 1: \"count\": string \"x\" where latmeter writes a whole number that is \
                 not negative",
            ),
            (
                "{\"count\": 1,\n \"bins\": {\"3\": 1, \"4\": -7}}",
                "line 2: \"4\": integer `-7` where latmeter writes a whole number that is not \
                 negative",
            ),
            (
                "{\"count\": 1,\n \"bins\": {\"3\": 1, \"3\": 7}}",
                "line 2: \"3\" is twice in one object: which one is meant?",
            ),
            (
                "{\"count\": 1,\n \"count\": 1}",
                "line 2: \"count\" is twice in one object: which one is meant?",
            ),
            ("{\"count\": 1", "line 1: it ends within its JSON; write it again"),
            (
                "{\"count\": 1}\n{}",
                "line 2: more stands behind the end of its JSON: import one document for each run",
            ),
            ("{\"count\": 1 2}", "line 1: it is not JSON at column 13 (expected `,` or `}`)"),
        ] {
            let error = json::<Of>(text.as_bytes(), "latmeter").unwrap_err();
            assert_eq!(error.to_string(), said);
        }
    }
}
