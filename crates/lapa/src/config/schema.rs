//! The JSON Schema of the configuration file, and what it says in words.

use std::sync::LazyLock;

use super::choice::file_schema;
use super::experiment::Experiment;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, transform_subschemas};
use schemars::{Schema, json_schema};
use serde_json::{Map, Value};

/// The schema of the types, with the defaults that depend on no other key.
pub(super) static TYPES: LazyLock<Value> = LazyLock::new(|| {
    SchemaSettings::draft07()
        .with(|settings| settings.inline_subschemas = true)
        .with_transform(RecursiveTransform(tidy))
        .into_generator()
        .into_root_schema_for::<Experiment>()
        .to_value()
});

/// The schema of a file, with the same defaults.
pub(super) static FILE: LazyLock<Value> = LazyLock::new(|| file_schema(&TYPES));

/// The JSON Schema of the configuration file, for editors and for documentation.
pub fn json_schema() -> Value {
    fn strip(schema: &mut Schema) {
        // Defaults of many keys depend on others: `lapa config check` tells them.
        schema.remove("default");
        schema.remove(CHOICE);
        transform_subschemas(&mut strip, schema);
        if schema.remove(OPTIONAL).is_some() {
            *schema = json_schema!({ "anyOf": [schema.clone(), { "const": NONE }] });
        }
    }
    let mut schema = Schema::try_from(FILE.clone()).expect("a schema");
    strip(&mut schema);
    schema.to_value()
}

/// The word in place of a section that is not wanted.
pub(super) const NONE: &str = "none";
/// Marks of a section that may be absent, and of a table that belongs to a choice.
pub(super) const OPTIONAL: &str = "optional";
pub(super) const CHOICE: &str = "choice";

/// TOML has no null, and integer limits are better written as limits than as a format.
fn tidy(schema: &mut Schema) {
    let null = json_schema!({ "type": "null" }).to_value();
    let map = schema.ensure_object();
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            if only == "object" {
                map.insert(OPTIONAL.into(), true.into());
            }
            map.insert("type".into(), only);
        }
    }
    let choices = map.get("anyOf").and_then(Value::as_array).map(Vec::as_slice);
    if let Some([Value::Object(choice), other]) = choices
        && *other == null
    {
        let choice = choice.clone();
        map.remove("anyOf");
        for (key, value) in choice {
            map.entry(key).or_insert(value);
        }
    }
    let largest = match map.remove("format").as_ref().and_then(Value::as_str) {
        Some("uint32") => Some(u64::from(u32::MAX)),
        Some("uint64") => Some(u64::MAX),
        _ => None,
    };
    if let Some(largest) = largest {
        map.entry("maximum").or_insert(largest.into());
    }
}

/// The keys of a section and their schemas, in the order of the file.
pub(super) fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

/// True if a file may have a key at this path.
pub(super) fn is_key(path: &str) -> bool {
    let inner = |schema: &'static Value, key: &str| properties(schema)?.get(key);
    path.split('.').try_fold(&*FILE, inner).is_some()
}

/// The alternatives of a value that may have several forms.
pub(super) fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()
}

/// The words that a key with a fixed set of values allows.
pub(super) fn words(schema: &Value) -> Option<Vec<&str>> {
    alternatives(schema)?.iter().map(|word| word.get("const")?.as_str()).collect()
}

/// The types of a table that has a key `type`, each with the schema of its table.
pub(super) fn types(schema: &Value) -> Option<Vec<(&str, &Value)>> {
    let forms = alternatives(schema)?.iter();
    forms.map(|form| Some((form["properties"]["type"]["const"].as_str()?, form))).collect()
}

/// The schema of the items of a list, which may be that of another list.
pub(super) fn items(schema: &Value) -> &Value {
    let items = &schema["items"];
    let other =
        items["$ref"].as_str().and_then(|place| FILE.pointer(place.trim_start_matches('#')));
    other.unwrap_or(items)
}

/// Allowed values of a key, in words.
pub(super) fn allowed(schema: &Value) -> String {
    if let Some(types) = types(schema) {
        let words: Vec<_> = types.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        return format!("a table with the key type, one of {}", words.join(", "));
    }
    if let Some(words) = words(schema) {
        let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        return format!("one of {}", quoted.join(", "));
    }
    if let Some(forms) = alternatives(schema) {
        return forms.iter().map(allowed).collect::<Vec<_>>().join(", or ");
    }
    match schema["type"].as_str() {
        Some("integer") => format!("a whole number{}", limits(schema)),
        Some("number") => format!("a finite number{}", limits(schema)),
        Some("boolean") => "true or false".into(),
        Some("array") => list(schema),
        Some("object") => match schema["required"].as_array() {
            None if schema.get(OPTIONAL).is_some() => format!("a section, or \"{NONE}\""),
            None => "a section".into(),
            Some(_) => {
                let keys: Vec<_> =
                    properties(schema).into_iter().flatten().map(|(key, _)| key.as_str()).collect();
                format!("{{ {} }}", keys.join(", "))
            }
        },
        _ => {
            let examples: Vec<_> = schema["examples"].as_array().into_iter().flatten().collect();
            let examples: Vec<_> = examples.iter().map(ToString::to_string).collect();
            format!("a string such as {}", examples.join(", "))
        }
    }
}

fn list(schema: &Value) -> String {
    let items = allowed(items(schema));
    match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
        (Some(2), Some(2)) => format!("a pair [min, max], each {items}"),
        (Some(min), Some(max)) if min == max => format!("a list of {min}, each {items}"),
        _ => format!("a list, each {items}"),
    }
}

fn limits(schema: &Value) -> String {
    if let (Some(min), Some(max)) = (schema.get("minimum"), schema.get("maximum")) {
        return format!(" from {min} to {max}");
    }
    let names = [
        ("minimum", "at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "below"),
    ];
    let found: Vec<_> = names
        .iter()
        .filter_map(|(key, words)| Some(format!("{words} {}", schema.get(key)?)))
        .collect();
    if found.is_empty() { String::new() } else { format!(" {}", found.join(" and ")) }
}
