//! Checks each key and value of a document by itself, against the JSON Schema.

use super::document::Document;
use super::error::ConfigError;
use super::schema::{allowed, alternatives, properties, words};
use serde_json::Value;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Mistakes that are named beside the first; the others are counted.
const NAMED: usize = 5;
/// Characters of a value that an error shows.
const SHOWN: usize = 80;

/// A key that does not exist, or one with a value that it does not allow.
struct Mistake<'a> {
    path: String,
    key: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
    /// Allowed values of the key; none if it does not exist.
    rule: Option<&'a Value>,
    /// The section that it stands in.
    section: &'a Value,
}

/// Finds unknown keys, wrong types and values out of range. The error is the first of them, and
/// counts the others.
pub(super) fn verify(document: &Document, schema: &Value) -> Result<(), ConfigError> {
    let mut mistakes = Vec::new();
    visit(document.tree(), schema, None, &mut mistakes);
    // Flags first, then in the order of the file.
    mistakes.sort_by_key(|mistake| mistake.start(document));
    let Some((first, others)) = mistakes.split_first() else { return Ok(()) };
    let mut error = first.error(document, schema);
    if !others.is_empty() {
        let more = more(document, schema, others);
        error.help = Some(error.help.map_or(more.clone(), |help| format!("{help}\n{more}")));
    }
    Err(error)
}

/// "2 more mistakes: `run.sede` (3:1), `x` (5:1)"
fn more(document: &Document, schema: &Value, others: &[Mistake]) -> String {
    let named = others.iter().take(NAMED).map(|mistake| {
        let error = mistake.error(document, schema);
        let place = match (error.line_column(), error.flag()) {
            (Some((line, column)), _) => format!("{line}:{column}"),
            (None, flag) => flag.unwrap_or_default().to_owned(),
        };
        format!("`{}` ({})", cut(&mistake.path), cut(&place))
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let (count, rest) = (others.len(), if others.len() > NAMED { ", …" } else { "" });
    let mistakes = if count == 1 { "mistake" } else { "mistakes" };
    format!("{count} more {mistakes}: {named}{rest}")
}

fn visit<'a>(
    table: &'a DeTable<'a>,
    schema: &'a Value,
    section: Option<&str>,
    mistakes: &mut Vec<Mistake<'a>>,
) {
    let known = properties(schema);
    for (key, value) in table {
        let path = || match section {
            Some(section) => format!("{section}.{}", key.get_ref()),
            None => key.get_ref().to_string(),
        };
        let mistake = |rule| Mistake { path: path(), key, value, rule, section: schema };
        match (known.and_then(|known| known.get(key.get_ref().as_ref())), value.get_ref()) {
            (None, _) => mistakes.push(mistake(None)),
            (Some(inner), DeValue::Table(table)) if properties(inner).is_some() => {
                visit(table, inner, Some(&path()), mistakes);
            }
            (Some(rule), found) if !allows(rule, found) => mistakes.push(mistake(Some(rule))),
            _ => {}
        }
    }
}

impl Mistake<'_> {
    /// Place in the file; none in a flag.
    fn start(&self, document: &Document) -> Option<usize> {
        let span = if self.rule.is_some() { self.value.span() } else { self.key.span() };
        (!document.is_flagged(&self.path)).then_some(span.start)
    }

    fn error(&self, document: &Document, root: &Value) -> ConfigError {
        match self.rule {
            Some(rule) => refused(document, rule, &self.path, self.value),
            None => unknown(document, root, self.section, &self.path, self.key),
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

/// Whether a value has the type and the range that the schema asks for.
fn allows(schema: &Value, value: &DeValue) -> bool {
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
        DeValue::Table(_) => "a table".into(),
        _ => cut(document.shown(path, value)),
    };
    let message = format!("`{path}` is {shown}: expected {}", allowed(rule));
    let text = value.get_ref().as_str();
    let guess = text.and_then(|text| nearest(text, words(rule).unwrap_or_default()));
    let help = guess.map(|word| format!("did you mean \"{word}\"?"));
    document.error_at(path, value.span(), message, help)
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
    let home = properties(root)
        .into_iter()
        .flatten()
        .find(|(_, section)| properties(section).is_some_and(|keys| keys.contains_key(name)));
    let help = match home {
        Some((section, _)) => Some(format!("`{name}` belongs to [{section}]")),
        None => nearest(name, siblings.iter().copied()).map(|k| format!("did you mean `{k}`?")),
    };
    let message = format!("unknown key `{}`: expected one of {}", cut(path), siblings.join(", "));
    document.error_at(path, key.span(), message, help)
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
