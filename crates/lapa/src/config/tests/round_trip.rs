//! Property tests: every experiment reads back as it was written, and no text panics.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::read;
use crate::config::choice::path;
use crate::config::schema::{CHOICE, FILE, alternatives, items, properties, words};
use crate::config::*;
use crate::seed::{Purpose, Stream, stream};

/// A key of the file: its path, what it allows, and the words that it needs elsewhere.
struct Key {
    path: String,
    rule: &'static Value,
    needs: Vec<String>,
}

/// All keys of a table and the tables in it.
fn keys(table: &'static Value, name: &str, needs: &[String]) -> Vec<Key> {
    let inside = |(key, rule): (&String, &'static Value)| {
        let place = path(name, key);
        if properties(rule).is_none() {
            return vec![Key { path: place, rule, needs: needs.to_vec() }];
        }
        let selector = rule.get(CHOICE).and_then(Value::as_str);
        let needed = selector.map(|selector| format!("{}={key}", path(name, selector)));
        keys(rule, &place, &[needs, needed.as_slice()].concat())
    };
    properties(table).into_iter().flatten().flat_map(inside).collect()
}

/// A value that a rule allows.
fn value(rule: &Value, rng: &mut Stream) -> Value {
    if let Some(words) = words(rule) {
        return json!(words.choose(rng));
    }
    if let Some(word) = rule.get("const") {
        return word.clone();
    }
    if let Some(forms) = alternatives(rule) {
        return value(forms.choose(rng).unwrap(), rng);
    }
    let limit = |keys: [&str; 2], other: f64| {
        keys.iter().find_map(|key| rule.get(key)?.as_f64()).unwrap_or(other)
    };
    let least = limit(["minimum", "exclusiveMinimum"], 1e-9);
    let most = limit(["maximum", "exclusiveMaximum"], 1e9);
    match rule["type"].as_str() {
        Some("boolean") => json!(rng.random_bool(0.5)),
        Some("integer") => json!(rng.random_range(least as u64..=(most as u64).min(99))),
        Some("number") => {
            json!(least + (most.min(least + 1.0) - least) * rng.random_range(0.01..0.99))
        }
        Some("array") => {
            let count = rule["minItems"].as_u64().unwrap_or(1);
            let mut values: Vec<Value> = (0..count).map(|_| value(items(rule), rng)).collect();
            values.sort_by(|a, b| a.as_f64().partial_cmp(&b.as_f64()).unwrap());
            values.into()
        }
        Some("object") => {
            let keys = properties(rule).unwrap().iter();
            keys.map(|(key, rule)| (key.clone(), value(rule, rng)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        _ => rule["examples"].as_array().unwrap().choose(rng).unwrap().clone(),
    }
}

/// Whatever keys are given, of whatever choices: an experiment is the text that it writes.
#[test]
fn written_experiments_read_back_the_same() {
    let all = keys(&FILE, "", &[]);
    let bases = [
        "",
        "profile=paper",
        "learn.update=epoch",
        "privacy.epsilon=3",
        "transmit.uplink=analog",
        "data.name=idx:images",
        "data.name=images:pictures",
        "model.name=layers model.layers=[{type='relu'}]",
        "partition.mix.iid=1 partition.mix.non_iid=0",
        "privacy.channel_trust=1 transmit.uplink=analog transmit.access=orthogonal",
    ];
    let (mut read_back, mut reached) = (0, std::collections::BTreeSet::new());
    for case in 0..4000 {
        let rng = &mut stream(case, Purpose::Partition, 0, 0);
        let base = bases.choose(rng).unwrap().split_whitespace();
        let mut flags: Vec<String> = base.map(Into::into).collect();
        let mut given = Vec::new();
        for _ in 0..rng.random_range(1..=4) {
            let key = all.choose(rng).unwrap();
            given.push(&key.path);
            flags.extend(key.needs.iter().cloned());
            let value = value(key.rule, rng).to_string().replace("\":", "\"=");
            flags.push(format!("{}={value}", key.path));
        }
        let flags: Vec<_> = flags.iter().map(|flag| Override::parse(flag).unwrap()).collect();
        let Ok(experiment) = Experiment::from_toml("", "", &flags) else { continue };
        let text = experiment.to_toml();
        assert_eq!(read(&text).unwrap(), experiment, "{text}");
        assert_eq!(read(&text).unwrap().to_toml(), text);
        read_back += 1;
        reached.extend(given);
    }
    let missed: Vec<&str> = all
        .iter()
        .map(|key| &*key.path)
        .filter(|path| !reached.iter().any(|r| r == path))
        .collect();
    assert!(missed.is_empty(), "{missed:?} are never in an experiment");
    assert!(read_back > 1000, "{read_back}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_text_panics(
        text in "(\\[?(run|learn|x)\\]?[.=\n]?(rounds|clip|labels)? ?= ?[-0-9\\[\\]{}\"a-z.ü]{0,6}\n?){0,4}"
    ) {
        if let Err(error) = read(&text) {
            prop_assert!(error.to_string().starts_with("lapa.toml:"));
        }
        if let Ok(flag) = Override::parse(&text) {
            let _ = Experiment::from_toml("", "lapa.toml", &[flag]);
        }
    }
}
