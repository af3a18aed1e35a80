//! The commented configuration that `lapa init` writes, made from the schema and an experiment.

use super::ConfigError;
use super::defaults;
use super::experiment::{Clip, Experiment, Start, Update};
use super::radio::{Histograms, SymbolKind};
use super::schema::{allowed, alternatives, json_schema, properties, words};
use crate::data::CLASSES;
use crate::station::aggregate::{GroundMetric, NOISE_WEIGHT, default_floor};
use lapa_privacy::allocate::Basis;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Keys whose default follows other keys. The template shows them commented out, so that a change
/// of those others takes effect.
const FOLLOWERS: [&str; 46] = [
    "data.classes",
    "partition.devices",
    "partition.iid",
    "partition.non_iid",
    "partition.labels",
    "partition.iid_samples",
    "partition.non_iid_samples",
    "partition.concentration",
    "partition.shards",
    "model.norm",
    "learn.learning_rate",
    "learn.momentum",
    "learn.averaging",
    "learn.clip",
    "learn.clip_norm",
    "privacy.basis",
    "privacy.allocator",
    "privacy.epsilon",
    "privacy.initial_sigma",
    "privacy.sampling",
    "privacy.adjacency",
    "privacy.noise",
    "privacy.ledger",
    "privacy.budget_share",
    "privacy.pid_proportional",
    "privacy.pid_integral",
    "privacy.pid_window",
    "privacy.pid_error",
    "privacy.decay",
    "radio.positions",
    "radio.regions",
    "transmit.symbols",
    "transmit.bits",
    "transmit.range",
    "aggregate.metric",
    "aggregate.floor",
    "aggregate.noise_weight",
    "aggregate.histograms",
    "aggregate.histogram_share",
    "aggregate.ser_threshold",
    "aggregate.sinr_threshold_db",
    "control.switch_rule",
    "control.total_power_w",
    "control.least_power_w",
    "control.pilot_share",
    "transmit.power_w",
];

/// A configuration file for the experiment of `base`, a configuration too: every key with its
/// meaning, its value and what it allows.
pub fn template(base: &str) -> Result<String, ConfigError> {
    let experiment = Experiment::from_toml(base, "base", &[])?;
    let json = |experiment: &Experiment| serde_json::to_value(experiment).unwrap_or_default();
    let file = File {
        given: base.parse().unwrap_or_default(),
        values: with_examples(json(&experiment)),
        defaults: json(&Experiment::default()),
    };
    let mut text = String::from(
        "# An experiment of lapa. Every key may be left out: it then has the value below, unless its\n\
         # comment names another default.\n\
         # Keys that are commented out follow other keys unless they are given.\n",
    );
    for (name, inner) in properties(&json_schema()).into_iter().flatten() {
        match properties(inner) {
            None => file.write_key(&mut text, None, name, inner),
            Some(keys) => file.write_section(&mut text, name, inner, keys),
        }
    }
    Ok(text)
}

/// The values of an experiment, with an example of each key that it does not have.
fn with_examples(mut values: Value) -> Value {
    let metric = GroundMetric::default();
    for (section, key, value) in [
        ("data", "classes", json!(CLASSES)),
        ("partition", "concentration", json!(defaults::CONCENTRATION)),
        ("partition", "shards", json!(defaults::SHARDS)),
        ("model", "start", json!(Start::default())),
        ("privacy", "epsilon", json!(defaults::EPSILON)),
        ("privacy", "initial_sigma", json!(defaults::INITIAL_SIGMA_EXAMPLE)),
        ("privacy", "ledger", json!("PATH")),
        ("privacy", "budget_share", json!(1.0)),
        ("privacy", "pid_proportional", json!(defaults::PID_PROPORTIONAL)),
        ("privacy", "pid_integral", json!(defaults::PID_INTEGRAL)),
        ("privacy", "pid_window", json!(defaults::PID_WINDOW)),
        ("privacy", "pid_error", json!(defaults::pid_error(Basis::Certified))),
        ("privacy", "decay", json!(defaults::DECAY)),
        ("radio", "positions", json!([[0.0, 0.0, 0.0]])),
        ("transmit", "symbols", json!(SymbolKind::default())),
        ("transmit", "bits", json!(defaults::BITS)),
        ("transmit", "range", json!(defaults::range(Clip::Device, None, Update::Gradient))),
        ("aggregate", "metric", json!(metric)),
        ("aggregate", "floor", json!(default_floor(metric))),
        ("aggregate", "noise_weight", json!(NOISE_WEIGHT)),
        ("aggregate", "histograms", json!(Histograms::Noisy)),
        ("aggregate", "histogram_share", json!(defaults::HISTOGRAM_SHARE)),
        ("aggregate", "ser_threshold", json!(defaults::SER_THRESHOLD_EXAMPLE)),
        ("aggregate", "sinr_threshold_db", json!(defaults::SINR_THRESHOLD_EXAMPLE)),
        ("control", "switch_rule", json!(defaults::SWITCH_RULE)),
        ("control", "pilot_share", json!(defaults::PILOT_SHARE)),
    ] {
        let place = &mut values[section][key];
        if place.is_null() {
            *place = value;
        }
    }
    values
}

/// Source of a template.
struct File {
    /// The keys that must be in the file.
    given: toml::Table,
    /// The value of every key.
    values: Value,
    /// The values of an empty file.
    defaults: Value,
}

impl File {
    fn write_section(
        &self,
        text: &mut String,
        name: &str,
        schema: &Value,
        keys: &Map<String, Value>,
    ) {
        let about = schema["description"].as_str().unwrap_or_default();
        let _ = write!(text, "\n# {}\n[{name}]\n", about.replace('\n', "\n# "));
        for (key, rule) in keys {
            self.write_key(text, Some(name), key, rule);
        }
    }

    fn write_key(&self, text: &mut String, section: Option<&str>, key: &str, rule: &Value) {
        let of = |values: &Value| section.map_or(values, |name| &values[name])[key].clone();
        let path = section.map_or(key.to_owned(), |name| format!("{name}.{key}"));
        let keys = match section {
            Some(name) => self.given.get(name).and_then(toml::Value::as_table),
            None => Some(&self.given),
        };
        let given = keys.is_some_and(|keys| keys.contains_key(key));
        let (value, default) = (of(&self.values), of(&self.defaults));

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
            let default = if default.is_null() { "none".into() } else { inline(&default) };
            let _ = writeln!(text, "# Default: {default}.");
        }
        let mark = if FOLLOWERS.contains(&path.as_str()) && !given { "# " } else { "" };
        let _ = writeln!(text, "{mark}{key} = {}", inline(&value));
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
