//! Checks each key and value of a document by itself, against the JSON Schema.

use super::choice::path;
use super::document::Document;
use super::error::ConfigError;
use super::moved::{alias, moved, withdrawn};
use super::schema::{NONE, OPTIONAL, allowed, alternatives, items, properties, types, words};
use crate::partition::crowd;
use serde_json::Value;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Characters of a value that an error shows.
const SHOWN: usize = 80;

/// A key that does not exist, or one with a value that it does not allow.
struct Mistake<'a> {
    path: String,
    key: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// Not in this section.
    Unknown { section: &'a Value },
    /// Moved to another key.
    Moved(&'static [&'static str]),
    /// With a value that the rule does not allow.
    Refused { rule: &'a Value },
}

/// Finds unknown keys, wrong types and values out of range, each with its path.
pub(super) fn verify(document: &Document, schema: &Value) -> Vec<(String, ConfigError)> {
    let mut mistakes = Vec::new();
    visit(document.tree(), schema, "", &mut mistakes);
    // Flags first, then in the order of the file.
    mistakes.sort_by_key(|mistake| mistake.start(document));
    let error = |mistake: Mistake| (mistake.path.clone(), mistake.error(document, schema));
    mistakes.into_iter().map(error).collect()
}

fn visit<'a>(
    table: &'a DeTable<'a>,
    section: &'a Value,
    name: &str,
    mistakes: &mut Vec<Mistake<'a>>,
) {
    let known = properties(section);
    for (key, value) in table {
        let path = path(name, key.get_ref());
        let rule = known.and_then(|known| known.get(key.get_ref().as_ref()));
        let kind = match (rule, value.get_ref()) {
            (Some(inner), DeValue::Table(table)) if properties(inner).is_some() => {
                visit(table, inner, &path, mistakes);
                continue;
            }
            (Some(rule), DeValue::Array(list)) if types(items(rule)).is_some() => {
                visit_list(list, items(rule), (&path, key), mistakes);
                continue;
            }
            (Some(rule), found) if allows(rule, found) => continue,
            (rule, _) => match (moved(&path), rule) {
                (Some(now), _) => Kind::Moved(now),
                (None, Some(rule)) => Kind::Refused { rule },
                (None, None) => Kind::Unknown { section },
            },
        };
        mistakes.push(Mistake { path, key, value, kind });
    }
}

/// Visits a list of tables, each with the keys of its type. The number of a table, from 0, is its key.
fn visit_list<'a>(
    list: &'a [Spanned<DeValue<'a>>],
    rule: &'a Value,
    (name, key): (&str, &'a Spanned<Cow<'a, str>>),
    mistakes: &mut Vec<Mistake<'a>>,
) {
    for (number, value) in list.iter().enumerate() {
        let path = path(name, &number.to_string());
        let mut refused = |path, value, rule| {
            mistakes.push(Mistake { path, key, value, kind: Kind::Refused { rule } });
        };
        let Some(table) = value.get_ref().as_table() else {
            refused(path, value, rule);
            continue;
        };
        let word = table.get("type");
        let known = types(rule).into_iter().flatten();
        let form = known
            .clone()
            .find(|(known, _)| word.is_some_and(|word| word.get_ref().as_str() == Some(known)));
        let Some((_, form)) = form else {
            match word {
                Some(word) => refused(format!("{path}.type"), word, rule),
                None => refused(path, value, rule),
            }
            continue;
        };
        let required = form["required"].as_array().into_iter().flatten();
        if required.filter_map(Value::as_str).any(|key| !table.contains_key(key)) {
            refused(path.clone(), value, form);
        }
        visit(table, form, &path, mistakes);
    }
}

impl Mistake<'_> {
    /// Place in the file; `None` in a flag.
    fn start(&self, document: &Document) -> Option<usize> {
        let span = match self.kind {
            Kind::Refused { .. } => self.value.span(),
            Kind::Unknown { .. } | Kind::Moved(_) => self.key.span(),
        };
        document.flag(&self.path).is_none().then_some(span.start)
    }

    fn error(&self, document: &Document, root: &Value) -> ConfigError {
        match &self.kind {
            Kind::Refused { rule } => refused(document, rule, &self.path, self.value),
            Kind::Unknown { section } => unknown(document, root, section, &self.path, self.key),
            Kind::Moved(now) => {
                let now: Vec<_> = now.iter().map(|key| format!("`{key}`")).collect();
                let message = format!("`{}` is now {}", self.path, now.join(" or "));
                document.error_at(&self.path, self.key.span(), message, None)
            }
        }
    }
}

/// The beginning of a text, with a mark where more follows.
fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// True if a value has the type and the range that the schema asks for.
fn allows(schema: &Value, value: &DeValue) -> bool {
    if schema.get(OPTIONAL).is_some() && value.as_str() == Some(NONE) {
        return true;
    }
    if let Some(words) = words(schema) {
        return value.as_str().is_some_and(|text| words.contains(&text));
    }
    if let Some(forms) = alternatives(schema) {
        return forms.iter().any(|form| allows(form, value));
    }
    match (schema["type"].as_str(), value) {
        (Some("integer"), DeValue::Integer(integer)) => {
            let limit = |key| match &schema[key] {
                Value::Number(limit) => limit.as_i128(),
                _ => None,
            };
            i128::from_str_radix(integer.as_str(), integer.radix()).is_ok_and(|number| {
                limit("minimum").is_none_or(|min| number >= min)
                    && limit("maximum").is_none_or(|max| number <= max)
            })
        }
        (Some("number"), DeValue::Integer(_) | DeValue::Float(_)) => {
            let number = match value {
                DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
                DeValue::Integer(integer) => {
                    i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|i| i as f64)
                }
                _ => None,
            };
            let limit = |key: &str| schema[key].as_f64();
            number.is_some_and(|number| {
                number.is_finite()
                    && limit("minimum").is_none_or(|min| number >= min)
                    && limit("exclusiveMinimum").is_none_or(|min| number > min)
                    && limit("maximum").is_none_or(|max| number <= max)
                    && limit("exclusiveMaximum").is_none_or(|max| number < max)
            })
        }
        (Some("array"), DeValue::Array(items)) => {
            let limit = |key: &str| schema[key].as_u64();
            let length = items.len() as u64;
            limit("minItems").is_none_or(|min| length >= min)
                && limit("maxItems").is_none_or(|max| length <= max)
                && items.iter().all(|item| allows(&schema["items"], item.get_ref()))
        }
        (Some("object"), DeValue::Table(table)) => {
            let known = properties(schema);
            let required = schema["required"].as_array().into_iter().flatten();
            let mut required = required.filter_map(Value::as_str);
            required.all(|key| table.contains_key(key))
                && table.iter().all(|(key, value)| {
                    let rule = known.and_then(|known| known.get(key.get_ref().as_ref()));
                    rule.is_some_and(|rule| allows(rule, value.get_ref()))
                })
        }
        (Some("boolean"), DeValue::Boolean(_)) | (Some("string"), DeValue::String(_)) => true,
        _ => false,
    }
}

fn refused(document: &Document, rule: &Value, path: &str, value: &Spanned<DeValue>) -> ConfigError {
    let shown = match value.get_ref() {
        DeValue::Table(_) => "is a table".into(),
        _ => format!("= {}", cut(document.shown(path, value))),
    };
    let message = format!("`{path}` {shown}: expected {}", allowed(rule));
    let text = value.get_ref().as_str();
    let instead = text.and_then(|text| withdrawn(path, text)).map(Into::into);
    let help = instead.or_else(|| crowded(path, value.get_ref())).or_else(|| {
        let types = || types(rule).map(|types| types.into_iter().map(|(word, _)| word).collect());
        let known: Vec<&str> = words(rule).or_else(types).unwrap_or_default();
        let guess = nearest(text?, known)?;
        Some(format!("did you mean \"{guess}\"?"))
    });
    document.error_at(path, value.span(), message, help)
}

/// The memory of more devices than there may be.
fn crowded(path: &str, value: &DeValue) -> Option<String> {
    let DeValue::Integer(integer) = value else { return None };
    let devices = u64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
    let count = path.strip_prefix("partition.")?;
    let counts = count.ends_with(".devices") || ["mix.iid", "mix.non_iid"].contains(&count);
    Some(format!("{}; lower {path}", crowd(devices).filter(|_| counts)?))
}

fn unknown(
    document: &Document,
    root: &Value,
    schema: &Value,
    path: &str,
    key: &Spanned<Cow<str>>,
) -> ConfigError {
    let name = key.get_ref().as_ref();
    let siblings: Vec<&str> =
        properties(schema).into_iter().flat_map(|p| p.keys()).map(|k| k.as_str()).collect();
    let near = || nearest(name, siblings.iter().copied()).map(|key| format!("`{key}`"));
    let help = match (home(root, "", name), alias(name).map(Into::into).or_else(near)) {
        (Some(section), _) => Some(format!("`{name}` belongs to [{section}]")),
        (None, guess) => guess.map(|guess: String| format!("did you mean {guess}?")),
    };
    let message = format!("unknown key `{}`: expected one of {}", cut(path), siblings.join(", "));
    document.error_at(path, key.span(), message, help)
}

/// The section or table that has a key of this name.
fn home(schema: &Value, name: &str, key: &str) -> Option<String> {
    properties(schema)?.iter().find_map(|(table, inner)| {
        let path = path(name, table);
        if properties(inner)?.contains_key(key) { Some(path) } else { home(inner, &path, key) }
    })
}

/// The candidate most like a word, if one is like enough to be a slip of the pen.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if word.len() > SHOWN {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&word, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
