//! The texts of a record, all at once: what is done to foreign text is done to every text there is,
//! also to those that later versions add.

use serde_json::{Map, Value, json};

use super::{
    document::Document,
    probes::{OtherProbe, ProbeRecord},
};

impl Document {
    /// The record with every text and every name in it as `change` makes it. The texts that are
    /// one of a few words (`status`, `effect`) must be what they are after the change.
    ///
    /// # Errors
    /// The record cannot be written and read back as JSON: no record that was read is so.
    pub fn with_texts(&self, change: &impl Fn(&str) -> String) -> serde_json::Result<Self> {
        let mut record = serde_json::to_value(self)?;
        let mut probe = json!({"name": "", "parameters": {}});
        if let Some(own) = record.get_mut("probe") {
            // Read by itself: of an early run it may lack parameters.
            std::mem::swap(own, &mut probe);
        }
        let mut document: Self = serde_json::from_value(changed(record, change))?;
        let probe: OtherProbe = serde_json::from_value(changed(probe, change))?;
        document.probe = ProbeRecord::typed_if_whole(probe);
        Ok(document)
    }
}

fn changed(value: Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(&text)),
        Value::Array(values) => values.into_iter().map(|value| changed(value, change)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| (change(&name), changed(value, change));
            Value::Object(members.into_iter().map(member).collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::run::Run;

    #[test]
    fn every_text_of_every_kept_run_is_changed_and_nothing_else() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1");
        for run in fs::read_dir(fixtures).unwrap() {
            let document = Run::open(&run.unwrap().path()).unwrap().document;
            assert_eq!(document.with_texts(&str::to_owned).unwrap(), document);
            let mut marked = document.clone();
            marked.name = "\u{7}".into();
            marked.facts.hostname = "\u{7}".into();
            marked.series.iter_mut().for_each(|series| series.name.push('\u{7}'));
            marked.probe = ProbeRecord::Other(OtherProbe {
                name: "timer".into(),
                parameters: Map::from_iter([("\u{7}".to_owned(), json!(["\u{7}"]))]),
            });
            let plain = marked.with_texts(&crate::plain::plain).unwrap();
            let text = serde_json::to_string(&plain).unwrap();
            assert!(!text.contains("\\u0007"), "{text}");
            assert_eq!((plain.name.as_str(), plain.probe.name()), ("\\u{7}", "timer"));
            assert_eq!(plain.series.len(), document.series.len());
        }
    }
}
