//! Choices with parameters: a Rust enum on one side, keys and tables of a file on the other.
//!
//! In Rust, and so in the types' own schema, a choice is one value: `scheme = { mix = { iid = 5 } }`.
//! In a file it is a word and a table named after it: `scheme = "mix"` and `[partition.mix]`. A
//! choice between plain values is a choice between keys: `epsilon = 8` or `initial_sigma = 0.1`.
//! All of it follows from the schema, so an enum needs nothing but its derives.

use serde_json::{Map, Value, json};

use super::document::Document;
use super::error::ConfigError;
use super::schema::{CHOICE, alternatives, properties};

/// A variant of a choice: its word, its meaning and the schema of its parameters.
struct Variant<'a> {
    word: &'a str,
    schema: &'a Value,
    parameters: Option<&'a Value>,
}

impl Variant<'_> {
    /// The parameters, if they make a table with at least one key.
    fn table(&self) -> Option<&Value> {
        self.parameters.filter(|inner| properties(inner).is_some_and(|keys| !keys.is_empty()))
    }
}

/// The variants of a key, if it is a choice of which one has parameters.
fn variants(schema: &Value) -> Option<Vec<Variant<'_>>> {
    let variant = |schema| match properties(schema) {
        Some(inner) => {
            let (word, parameters) = inner.iter().next().filter(|_| inner.len() == 1)?;
            Some(Variant { word, schema, parameters: Some(parameters) })
        }
        None => Some(Variant { word: schema.get("const")?.as_str()?, schema, parameters: None }),
    };
    let variants: Vec<_> = alternatives(schema)?.iter().map(variant).collect::<Option<_>>()?;
    variants.iter().any(|variant| variant.parameters.is_some()).then_some(variants)
}

/// Default word of a choice.
fn default_word(schema: &Value) -> Option<&str> {
    match schema.get("default")? {
        Value::Object(chosen) => chosen.keys().next().map(String::as_str),
        word => word.as_str(),
    }
}

/// True for a choice between keys, each with a plain value.
fn is_between_keys(variants: &[Variant]) -> bool {
    variants
        .iter()
        .any(|variant| variant.parameters.is_some_and(|parameters| parameters["type"] != "object"))
}

/// The schema of a file, from the schema of the types.
pub(super) fn file_schema(types: &Value) -> Value {
    let Some(known) = properties(types) else { return types.clone() };
    let (mut keys, mut tables) = (Map::new(), Map::new());
    for (key, schema) in known {
        match variants(schema) {
            None => drop(keys.insert(key.clone(), file_schema(schema))),
            Some(variants) if is_between_keys(&variants) => {
                for variant in variants {
                    let Some(mut value) = variant.parameters.cloned() else { continue };
                    value["description"] = variant.schema["description"].clone();
                    if let Some(default) = schema["default"].get(variant.word) {
                        value["default"] = default.clone();
                    }
                    keys.insert(variant.word.into(), value);
                }
            }
            Some(variants) => {
                let words = variants.iter().map(|variant| {
                    json!({
                        "description": variant.schema["description"],
                        "type": "string",
                        "const": variant.word,
                    })
                });
                let words: Value = words.collect();
                let mut selector = json!({ "description": schema["description"], "oneOf": words });
                if let Some(default) = default_word(schema) {
                    selector["default"] = default.into();
                }
                keys.insert(key.clone(), selector);
                for variant in &variants {
                    if let Some(table) = variant.table() {
                        let mut table = file_schema(table);
                        table[CHOICE] = key.as_str().into();
                        tables.insert(variant.word.into(), table);
                    }
                }
            }
        }
    }
    keys.extend(tables);
    let mut schema = types.clone();
    schema["properties"] = Value::Object(keys);
    schema
}

/// Values as a file has them, from values as the types have them.
pub(super) fn to_file(values: &mut Value, types: &Value) {
    let (Some(known), Value::Object(given)) = (properties(types), values) else { return };
    let (mut keys, mut tables) = (Map::new(), Map::new());
    for (key, mut value) in std::mem::take(given) {
        let Some(schema) = known.get(&key) else { continue };
        let Some(variants) = variants(schema) else {
            to_file(&mut value, schema);
            keys.insert(key, value);
            continue;
        };
        let between_keys = is_between_keys(&variants);
        match value {
            Value::Object(chosen) => {
                for (word, mut parameters) in chosen {
                    let variant = variants.iter().find(|variant| *variant.word == word);
                    match variant.and_then(Variant::table) {
                        Some(schema) => {
                            to_file(&mut parameters, schema);
                            keys.insert(key.clone(), word.clone().into());
                            tables.insert(word, parameters);
                        }
                        None if between_keys => drop(keys.insert(word, parameters)),
                        None => drop(keys.insert(key.clone(), word.into())),
                    }
                }
            }
            _ if between_keys => {}
            word => drop(keys.insert(key, word)),
        }
    }
    keys.extend(tables);
    *given = keys;
}

/// Turns values of a file into those of the types, and gathers what contradicts itself: a table of
/// a choice that was not made, two keys of which only one can be.
pub(super) struct ToTypes<'a> {
    pub document: &'a Document<'a>,
    pub errors: Vec<ConfigError>,
}

impl ToTypes<'_> {
    pub fn convert(&mut self, values: &mut Value, types: &Value, section: &str) {
        let (Some(known), Value::Object(given)) = (properties(types), values) else { return };
        for (key, schema) in known {
            let path = path(section, key);
            match variants(schema) {
                None => {
                    if let Some(value) = given.get_mut(key) {
                        self.convert(value, schema, &path);
                    }
                }
                Some(variants) if is_between_keys(&variants) => {
                    if let Some(chosen) = self.key(given, &variants, section) {
                        given.insert(key.clone(), chosen);
                    }
                }
                Some(variants) => {
                    let chosen = self.word(given, schema, &variants, (section, key));
                    given.insert(key.clone(), chosen);
                }
            }
        }
    }

    /// The one key that is given of several. A flag wins over the file.
    fn key(
        &mut self,
        given: &mut Map<String, Value>,
        variants: &[Variant],
        section: &str,
    ) -> Option<Value> {
        let flagged = |word: &&str| self.document.is_flagged(&path(section, word));
        let words = || variants.iter().map(|variant| variant.word);
        let any_flagged = words().any(|word| flagged(&word));
        let found: Vec<&str> = words()
            .filter(|word| given.contains_key(*word))
            .filter(|word| !any_flagged || flagged(word))
            .collect();
        if let [first, second, ..] = found[..] {
            let [first, second] = [first, second].map(|word| path(section, word));
            self.errors.push(self.document.error(
                &[&second, &first],
                format!("`{first}` and `{second}` exclude each other"),
                "remove one of them",
            ));
        }
        let chosen = found.first().and_then(|word| Some(json!({ *word: given.remove(*word)? })));
        words().for_each(|word| drop(given.remove(word)));
        chosen
    }

    /// The variant that a word names, or the default one, with the table of that name.
    fn word(
        &mut self,
        given: &mut Map<String, Value>,
        schema: &Value,
        variants: &[Variant],
        (section, key): (&str, &str),
    ) -> Value {
        let chosen = given.get(key).and_then(Value::as_str).or(default_word(schema));
        let chosen = chosen.unwrap_or_default().to_owned();
        let selector = path(section, key);
        let mut value = Value::Null;
        for variant in variants {
            let at = path(section, variant.word);
            let table = variant.table().and_then(|_| given.remove(variant.word));
            if variant.word == chosen {
                value = match variant.parameters {
                    None => chosen.as_str().into(),
                    Some(schema) => {
                        let mut parameters = table.unwrap_or_else(|| json!({}));
                        self.convert(&mut parameters, schema, &at);
                        json!({ &*chosen: parameters })
                    }
                };
            } else if table.is_some()
                // A flag for another choice takes the file's table with it.
                && (self.document.has_flags_in(&at) || !self.document.is_flagged(&selector))
            {
                let word = variant.word;
                self.errors.push(self.document.error(
                    &[&at, &selector],
                    format!("[{at}] is read only with {selector} = \"{word}\"; it is \"{chosen}\""),
                    &format!("remove [{at}], or set {selector} = \"{word}\""),
                ));
            }
        }
        value
    }
}

/// `section.key`, or `key` at the top.
pub(super) fn path(section: &str, key: &str) -> String {
    if section.is_empty() { key.into() } else { format!("{section}.{key}") }
}

/// The same as a JSON pointer.
pub(super) fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}
