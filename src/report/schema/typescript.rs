//! The page's data as TypeScript: a type for each definition of its schema, and the structure as a
//! value, which the page holds its data against before it draws.

use std::fmt::Write as _;

use serde_json::{Map, Value};

const HEAD: &str = "\
// The page's data. Derived from the types in src/report/page.rs and src/run/; not to be edited:
// TARDY_WRITE_SCHEMAS=1 cargo test --lib report::schema

/** JSON of any shape: parameters and settings have no fixed one. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonMap = { [key: string]: Json };
";

/// What the structure is made of; the rest of a schema is for people and for other validators.
const STRUCTURE: [&str; 12] = [
    "$defs",
    "$ref",
    "type",
    "properties",
    "required",
    "items",
    "prefixItems",
    "additionalProperties",
    "const",
    "enum",
    "anyOf",
    "oneOf",
];

/// The module.
pub(super) fn of(schema: &Value) -> String {
    let mut text = HEAD.to_owned();
    push(&mut text, "Page", schema);
    for (name, own) in schema["$defs"].as_object().unwrap() {
        push(&mut text, name, own);
    }
    text.push_str("\n/** The structure of a `Page`, as JSON Schema. */\n");
    text.push_str("export const STRUCTURE: JsonMap = {\n");
    for (key, value) in structure(schema).as_object().unwrap() {
        match (key.as_str(), value) {
            ("$defs", Value::Object(types)) => {
                text.push_str("  $defs: {\n");
                for (name, own) in types {
                    writeln!(text, "    {name}: {own},").unwrap();
                }
                text.push_str("  },\n");
            }
            _ => writeln!(text, "  {key}: {value},").unwrap(),
        }
    }
    text.push_str("};\n");
    text
}

fn push(text: &mut String, name: &str, schema: &Value) {
    text.push('\n');
    push_comment(text, "", schema);
    writeln!(text, "export type {name} = {};", type_of(schema, "")).unwrap();
}

fn push_comment(text: &mut String, indent: &str, schema: &Value) {
    if let Some(comment) = schema["description"].as_str() {
        writeln!(text, "{indent}/** {} */", comment.replace('\n', " ").replace("*/", "* /"))
            .unwrap();
    }
}

fn type_of(schema: &Value, indent: &str) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap().to_owned();
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    let union = |types: Vec<String>| types.join(" | ");
    if let Some(words) = schema["enum"].as_array() {
        return union(words.iter().map(ToString::to_string).collect());
    }
    if let Some(any) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return union(any.iter().map(|one| type_of(one, indent)).collect());
    }
    match &schema["type"] {
        Value::Array(types) => {
            union(types.iter().map(|one| plain(one.as_str().unwrap(), schema, indent)).collect())
        }
        Value::String(one) => plain(one, schema, indent),
        _ => "Json".into(),
    }
}

fn plain(name: &str, schema: &Value, indent: &str) -> String {
    match name {
        "integer" | "number" => "number".into(),
        "array" => match schema["prefixItems"].as_array() {
            Some(items) => {
                let items: Vec<_> = items.iter().map(|item| type_of(item, indent)).collect();
                format!("[{}]", items.join(", "))
            }
            None => {
                let item = type_of(&schema["items"], indent);
                if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
            }
        },
        "object" => object(schema, indent),
        name => name.to_owned(),
    }
}

fn object(schema: &Value, indent: &str) -> String {
    let Some(members) = schema["properties"].as_object() else {
        return match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => format!("{{ [name: string]: {} }}", type_of(values, indent)),
            None => "JsonMap".into(),
        };
    };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let deeper = format!("{indent}  ");
    let mut text = "{\n".to_owned();
    for (name, member) in members {
        push_comment(&mut text, &deeper, member);
        let mark = if required.iter().any(|own| own == name) { "" } else { "?" };
        writeln!(text, "{deeper}{name}{mark}: {};", type_of(member, &deeper)).unwrap();
    }
    write!(text, "{indent}}}").unwrap();
    text
}

/// The values of a type that is nothing but words, each with its own description.
fn words(schema: &Value) -> Option<Vec<&Value>> {
    schema["oneOf"].as_array()?.iter().map(|one| one.get("const")).collect()
}

/// The schema without what is for people.
fn structure(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    if let Some(words) = words(schema) {
        return serde_json::json!({ "enum": words });
    }
    let kept = object.iter().filter(|(key, _)| STRUCTURE.contains(&key.as_str()));
    let of_each = |values: &Map<String, Value>| {
        Value::Object(values.iter().map(|(name, own)| (name.clone(), structure(own))).collect())
    };
    let kept = kept.map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(values)) => of_each(values),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                Value::Array(list.iter().map(structure).collect())
            }
            ("items" | "additionalProperties", own) => structure(own),
            (_, own) => own.clone(),
        };
        (key.clone(), value)
    });
    Value::Object(kept.collect())
}
