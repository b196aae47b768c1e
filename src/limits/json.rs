//! How much a text of JSON may hold. Once it is read, an object or a list takes a hundred times its
//! bytes, so the size of the file alone bounds too little.

/// Limits of a text of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// Objects.
    pub objects: usize,
    /// Lists.
    pub lists: usize,
    /// Elements of lists and members of objects.
    pub elements: usize,
    /// Bytes of a string.
    pub string: usize,
    /// What to do about a text that exceeds one of them.
    pub remedy: &'static str,
}

/// What was counted so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonCounts {
    objects: usize,
    lists: usize,
    elements: usize,
}

impl JsonLimits {
    /// Refuses a text that exceeds a limit, before it is read.
    ///
    /// # Errors
    /// The field, the limit, and what to do.
    pub fn check(&self, text: &[u8]) -> Result<(), String> {
        self.check_further(text, &mut JsonCounts::default())
    }

    /// The same for one of several texts, which share the limits: `counts` is of those before it.
    ///
    /// # Errors
    /// As [`JsonLimits::check`].
    pub fn check_further(&self, text: &[u8], counts: &mut JsonCounts) -> Result<(), String> {
        let (mut at, mut depth, mut field) = (0, 0_usize, None);
        while let Some(byte) = text.get(at) {
            let (count, most, what) = match byte {
                b'"' => {
                    let end = end_of_string(text, at + 1);
                    let string = text.get(at + 1..end).unwrap_or_default();
                    if depth == 1 && is_key(text, end + 1) {
                        field = Some(string);
                    }
                    if string.len() > self.string {
                        return Err(self.exceeded(field, self.string, "bytes in a string"));
                    }
                    at = end + 1;
                    continue;
                }
                b'{' => (&mut counts.objects, self.objects, "objects of JSON"),
                b'[' => (&mut counts.lists, self.lists, "lists of JSON"),
                b',' => (&mut counts.elements, self.elements, "elements of JSON"),
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    at += 1;
                    continue;
                }
                _ => {
                    at += 1;
                    continue;
                }
            };
            *count += 1;
            if *count > most {
                return Err(self.exceeded(field, most, what));
            }
            depth += usize::from(*byte != b',');
            at += 1;
        }
        Ok(())
    }

    fn exceeded(&self, field: Option<&[u8]>, most: usize, what: &str) -> String {
        // Names of fields are short; one that is not is somebody's own.
        let name =
            |field: &[u8]| String::from_utf8_lossy(field.get(..40).unwrap_or(field)).into_owned();
        let field =
            field.map_or_else(|| "it".to_owned(), |field| format!("its \"{}\"", name(field)));
        format!("{field} holds more than {most} {what}; {}", self.remedy)
    }
}

/// The place of the quote that ends a string which begins at `start`.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Whether a string that ends before `at` is the name of a member.
fn is_key(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: JsonLimits =
        JsonLimits { objects: 3, lists: 3, elements: 4, string: 8, remedy: "leave it out" };

    fn refusal(text: &str) -> String {
        LIMITS.check(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn the_field_that_exceeds_a_limit_is_named_with_the_limit_and_what_to_do() {
        let what = refusal(r#"{"id": 1, "loads" : [{}, {"x": [[]]}, {}]}"#);
        assert!(what.starts_with("its \"loads\" holds more than 3 objects of JSON; "), "{what}");
        assert!(what.ends_with("; leave it out"), "{what}");
        assert!(refusal(r#"{"a": [[[[]]]]}"#).starts_with("its \"a\" holds more than 3 lists"));
        assert!(refusal("[1, 2, 3, 4, 5, 6]").starts_with("it holds more than 4 elements"));
        let what = refusal(r#"{"name": "123456789"}"#);
        assert!(what.starts_with("its \"name\" holds more than 8 bytes in a string"), "{what}");
        let what = refusal(&format!("{{\"{}\": 1}}", "k".repeat(10_000)));
        assert!(what.len() < 300, "{what}");
    }

    #[test]
    fn what_stands_in_strings_does_not_count() {
        for text in [r#"{"a,,,,,": "{{{{[[["}"#, r#"["\",,,,,", "\\"]"#, "", "\"", "\"\\", "]]}}"] {
            assert_eq!(LIMITS.check(text.as_bytes()), Ok(()), "{text}");
        }
    }

    #[test]
    fn several_texts_share_their_limits() {
        let mut counts = JsonCounts::default();
        let mut one = || LIMITS.check_further(b"[0, 1, 2]", &mut counts);
        assert_eq!([one(), one()], [Ok(()), Ok(())]);
        assert!(one().unwrap_err().starts_with("it holds more than 4 elements"));
    }
}
