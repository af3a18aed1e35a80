//! The commented file that `lapa init` writes, made from the schema and an experiment.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::choice::{path, pointer};
use super::document::Document;
use super::resolve::Resolved;
use super::schema::{CHOICE, FILE, OPTIONAL, allowed, alternatives, properties, words};
use super::{ConfigError, Experiment};

/// A configuration file for the experiment of `base`, a configuration too: every key with its
/// meaning, its value and what it allows.
pub fn template(base: &str) -> Result<String, ConfigError> {
    let Resolved { experiment, followers } = Experiment::resolve(base, "base", &[])?;
    let file = File {
        given: Document::parse(base, "base", &[])?,
        followers,
        values: experiment.to_json(),
        defaults: Experiment::default().to_json(),
    };
    let mut text = String::from(
        "# An experiment of lapa. Every key may be left out: it then has the value below, unless its\n\
         # comment names another default.\n\
         # Keys that are commented out follow other keys unless they are given. A table that is commented\n\
         # out holds the keys of one choice: it is read if that choice is made.\n",
    );
    file.write_table(&mut text, "", &FILE, false);
    Ok(text)
}

/// Source of a template.
struct File<'a> {
    /// The keys that must be in the file.
    given: Document<'a>,
    /// Keys whose value follows others.
    followers: BTreeSet<String>,
    /// The value of every key of the experiment.
    values: Value,
    /// The values of an empty file.
    defaults: Value,
}

impl File<'_> {
    /// Writes the keys of a table, then the tables in it. `hidden`: all of it is commented out.
    fn write_table(&self, text: &mut String, name: &str, schema: &Value, hidden: bool) {
        let keys = || properties(schema).into_iter().flatten();
        for (key, rule) in keys().filter(|(_, inner)| properties(inner).is_none()) {
            self.write_key(text, &path(name, key), rule, hidden);
        }
        for (key, inner) in keys().filter(|(_, inner)| properties(inner).is_some()) {
            let path = path(name, key);
            let optional = [CHOICE, OPTIONAL].iter().any(|mark| inner.get(mark).is_some());
            let hidden = optional && !self.given.is_given(&path);
            let about = inner["description"].as_str().unwrap_or_default();
            let mark = if hidden { "# " } else { "" };
            let _ = write!(text, "\n# {}\n{mark}[{path}]\n", about.replace('\n', "\n# "));
            self.write_table(text, &path, inner, hidden);
        }
    }

    fn write_key(&self, text: &mut String, path: &str, rule: &Value, hidden: bool) {
        let pointer = pointer(path);
        let given = self.given.is_given(path);
        let value = self.values.pointer(&pointer);
        let default = self.defaults.pointer(&pointer).or_else(|| rule.get("default"));
        let shown = value.or(default).or_else(|| rule["examples"].get(0)).unwrap_or(&Value::Null);

        let about = rule["description"].as_str().unwrap_or_default();
        text.push('\n');
        for line in about.lines() {
            let _ = writeln!(text, "# {line}");
        }
        if words(rule).is_some() {
            for choice in alternatives(rule).into_iter().flatten() {
                let about = choice["description"].as_str().unwrap_or_default();
                let about = about.replace('\n', "\n#     ");
                let _ = writeln!(text, "#   {}: {about}", choice["const"]);
            }
        } else {
            let _ = writeln!(text, "# Allowed: {}.", allowed(rule));
        }
        if given && value != default && !about.contains("Default:") {
            let default = default.filter(|default| !default.is_null());
            let _ = writeln!(text, "# Default: {}.", default.map_or("none".into(), inline));
        }
        let hidden = hidden || value.is_none() || self.followers.contains(path);
        let mark = if hidden && !given { "# " } else { "" };
        let key = path.rsplit('.').next().unwrap_or(path);
        let _ = writeln!(text, "{mark}{key} = {}", inline(shown));
    }
}

/// A value as TOML, in one line.
fn inline(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", joined(items.iter().map(inline).collect())),
        Value::Object(keys) => {
            let keys = keys.iter().map(|(key, value)| format!("{key} = {}", inline(value)));
            format!("{{ {} }}", joined(keys.collect()))
        }
        // Strings and numbers read the same in JSON and in TOML.
        _ => value.to_string(),
    }
}
