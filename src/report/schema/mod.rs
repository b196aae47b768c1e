//! The JSON Schemas in `docs/` and the page's types in `web/`, derived from the types of `run` and
//! `report`: none is written by hand, so that none can differ from what is written to disk.
//!
//! What a type cannot say, as the least value of a number, stands in `rules.json` under the name of
//! the type or `Type.field`; a rule for a field that is gone is an error. These tests compare;
//! `TARDY_WRITE_SCHEMAS=1 cargo test --lib report::schema` writes the files anew.

mod typescript;

use std::{fs, path::Path};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{page::Page, why::WhyReport};
use crate::run::{
    AB_SCHEMA_VERSION, AbRecord, Document, PLAN_SCHEMA_VERSION, PlanRecord, SCHEMA_VERSION,
    settings_record::{SETTINGS_SCHEMA_VERSION, SettingsRecord},
};

const RULES: &str = include_str!("rules.json");

const OF_RUN: &str = "The record of one run of tardy. All latencies are integers in ns. A later \
    tardy may add members without raising schema_version, and readers pass over what they do not \
    know. Any other change that a reader would notice (a member that goes away, another type, \
    another meaning, a new word in a list of words) raises schema_version. Members without a value \
    are null; they are not left out.";

const OF_WHY: &str = "Why the wake-ups of one run were late. Times are integers in ns. A later \
    tardy may add members; readers pass over what they do not know. docs/reference/why.md explains \
    how to read it.";

const OF_AB: &str = "The record of one comparison of two sides in blocks; `tardy ab --json` prints \
    the same. Latencies and times are in ns. A later tardy may add members without raising \
    schema_version, and readers pass over what they do not know. docs/how-to/ab.md explains it.";

const OF_PLAN: &str = "The record of one plan that is measured on this machine; \
    `tardy plan --json` prints the same, with what gates came to. Times are in ns. A later tardy \
    may add members without raising schema_version, and readers pass over what they do not know. \
    docs/reference/plans.md explains it.";

const OF_SETTINGS: &str = "What each setting of a machine was found to be worth; \
    `tardy check --measure --json` prints the same. Latencies and times are in ns. A later tardy \
    may add members without raising schema_version, and readers pass over what they do not know. \
    docs/reference/check.md explains it.";

const OF_PAGE: &str = "The data of a report page: what the drawing code reads. \
    docs/reference/page-data.md explains it.";

/// The schema of what a `T` is written as.
fn schema_of<T: JsonSchema>(title: &str, description: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    for_readers(&mut schema);
    schema["title"] = title.into();
    schema["description"] = description.into();
    schema
}

/// Takes out what means something in Rust alone: its names for numbers, and links.
fn for_readers(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("format").is_some_and(Value::is_string) {
                object.remove("format");
            }
            if let Some(Value::String(text)) = object.get_mut("description") {
                let plain = text.replace('\n', " ").replace("[`", "`").replace("`]", "`");
                *text = plain.replace("super::", "");
            }
            object.values_mut().for_each(for_readers);
        }
        Value::Array(list) => list.iter_mut().for_each(for_readers),
        _ => {}
    }
}

/// Adds the rules for the types that a schema has; `root` is the name of the schema's type.
fn with_rules(mut schema: Value, root: &str) -> Value {
    let rules: Map<String, Value> = serde_json::from_str(RULES).unwrap();
    for (place, rule) in rules {
        let (owner, field) = place.split_once('.').map_or((&*place, None), |(a, b)| (a, Some(b)));
        let at = if owner == root { String::new() } else { format!("/$defs/{owner}") };
        let Some(own) = schema.pointer_mut(&at) else { continue };
        let own = match field {
            Some(field) => &mut own["properties"][field],
            None => own,
        };
        let own = own.as_object_mut().unwrap_or_else(|| panic!("rules.json: no {place}"));
        own.extend(rule.as_object().unwrap().clone());
    }
    schema
}

fn run_schema() -> Value {
    let title = format!("run.json of tardy, schema_version {SCHEMA_VERSION}");
    let mut schema = with_rules(schema_of::<Document>(&title, OF_RUN), "RunRecord");
    schema["properties"]["schema_version"]["const"] = json!(SCHEMA_VERSION);
    schema
}

fn why_schema() -> Value {
    with_rules(schema_of::<WhyReport>("tardy why --json", OF_WHY), "WhyReport")
}

fn ab_schema() -> Value {
    let title = format!("ab.json of tardy, schema_version {AB_SCHEMA_VERSION}");
    let mut schema = schema_of::<AbRecord>(&title, OF_AB);
    schema["properties"]["schema_version"]["const"] = json!(AB_SCHEMA_VERSION);
    schema
}

fn plan_schema() -> Value {
    let title = format!("plan.json of tardy, schema_version {PLAN_SCHEMA_VERSION}");
    let mut schema = schema_of::<PlanRecord>(&title, OF_PLAN);
    schema["properties"]["schema_version"]["const"] = json!(PLAN_SCHEMA_VERSION);
    schema
}

fn settings_schema() -> Value {
    let title = format!("settings.json of tardy, schema_version {SETTINGS_SCHEMA_VERSION}");
    let mut schema = schema_of::<SettingsRecord>(&title, OF_SETTINGS);
    schema["properties"]["schema_version"]["const"] = json!(SETTINGS_SCHEMA_VERSION);
    schema
}

fn page_schema() -> Value {
    schema_of::<Page>("The data of a report page", OF_PAGE)
}

/// Compares with the file at `path`, or writes it.
fn same(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("TARDY_WRITE_SCHEMAS").is_some() {
        fs::write(&file, text).unwrap();
    }
    assert!(
        fs::read_to_string(&file).is_ok_and(|found| found == text),
        "{path} is not what the types say; if they are right, write it anew: \
         TARDY_WRITE_SCHEMAS=1 cargo test --lib report::schema"
    );
}

fn pretty(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).unwrap() + "\n"
}

#[test]
fn the_schema_of_the_record_is_what_its_types_say() {
    same("docs/run.schema.json", &pretty(&run_schema()));
}

#[test]
fn the_schema_of_why_is_what_its_types_say() {
    same("docs/why.schema.json", &pretty(&why_schema()));
}

#[test]
fn the_schema_of_a_comparison_is_what_its_types_say() {
    same("docs/ab.schema.json", &pretty(&ab_schema()));
}

#[test]
fn the_schema_of_a_plan_is_what_its_types_say() {
    same("docs/plan.schema.json", &pretty(&plan_schema()));
}

#[test]
fn the_schema_of_tried_settings_is_what_its_types_say() {
    same("docs/settings.schema.json", &pretty(&settings_schema()));
}

#[test]
fn the_page_s_data_and_its_types_in_typescript_are_what_its_types_say() {
    let schema = page_schema();
    same("docs/page.schema.json", &pretty(&schema));
    same("web/src/data.ts", &typescript::of(&schema));
}

#[test]
fn every_rule_is_for_something_that_is_there() {
    let rules: Map<String, Value> = serde_json::from_str(RULES).unwrap();
    let schemas = [run_schema(), why_schema()];
    for place in rules.keys() {
        let (owner, field) = place.split_once('.').unwrap_or((place, ""));
        let is_there = |schema: &Value| {
            owner == "RunRecord"
                || owner == "WhyReport"
                || schema["$defs"]
                    .get(owner)
                    .is_some_and(|own| field.is_empty() || own["properties"].get(field).is_some())
        };
        assert!(schemas.iter().any(is_there), "rules.json: no {place}");
    }
}
