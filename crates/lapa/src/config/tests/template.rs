//! The template names every key, and is the experiment that it was made from.

use super::{read, with_flags};
use crate::config::choice::path;
use crate::config::schema::FILE;
use crate::config::*;

#[test]
fn the_template_is_the_default_and_names_every_key() {
    let template = template("").unwrap();
    assert_eq!(read(&template).unwrap(), Experiment::default());
    let lines: Vec<&str> = template.lines().map(|line| line.trim_start_matches("# ")).collect();
    fn expect(table: &serde_json::Value, name: &str, lines: &[&str]) {
        for (key, inner) in table["properties"].as_object().unwrap() {
            let path = path(name, key);
            let start = match inner["properties"].is_object() {
                true => format!("[{path}]"),
                false => format!("{key} = "),
            };
            let place = lines.iter().position(|line| line.starts_with(&start));
            let place = place.unwrap_or_else(|| panic!("{path}"));
            if inner["properties"].is_object() {
                expect(inner, &path, &lines[place..]);
            }
        }
    }
    expect(&FILE, "", &lines);
    assert!(!template.contains(" = null"), "{template}");
}

#[test]
fn other_choices_in_the_template_take_their_own_defaults() {
    let template = template("").unwrap();
    for choice in [
        "profile=paper",
        "partition.scheme=shards",
        "data.name=fashion-mnist",
        "control.power=equal",
        "control.total_power_w=3",
        "transmit.max_power_w=0.2",
    ] {
        let expected = with_flags("", &[choice]).unwrap();
        assert_eq!(with_flags(&template, &[choice]).unwrap(), expected, "{choice}");
    }
}

/// Keys that are given stay given, keys that follow them still follow, and a default that is not the
/// value is named.
#[test]
fn a_template_of_an_experiment_is_that_experiment() {
    let base = "privacy.epsilon = 2\n[aggregate]\nser_threshold = 0.01\n[run]\nrounds = 7\n";
    let template = template(base).unwrap();
    for flags in [&[][..], &["profile=paper"], &["privacy=none"], &["run.rounds=9"]] {
        assert_eq!(with_flags(&template, flags).unwrap(), with_flags(base, flags).unwrap());
    }
    for line in [
        "# Default: 8.0.\nepsilon = 2.0\n",
        "at most this symbol error rate send. Default: all devices send.\n",
        "from 1e-12 to 1.\nser_threshold = 0.01\n",
        "# Default: 150.\nrounds = 7\n",
        "# sinr_threshold_db = 4.3\n",
        "# sampling = \"poisson\"\n",
    ] {
        assert!(template.contains(line), "{line}: {template}");
    }
    let error = crate::config::template("run.roundz = 3").unwrap_err().to_string();
    assert!(error.contains("roundz"), "{error}");
}

/// Every key of a template, commented out or not, can be set as shown.
#[test]
fn the_template_shows_what_can_be_set() {
    let mut section = String::new();
    for line in template("privacy.epsilon = 8").unwrap().lines() {
        let line = line.trim_start_matches("# ");
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_owned();
        }
        // Prose has no " = " after its first word.
        let Some((key, value)) = line.split_once(" = ").filter(|(key, _)| !key.contains(' '))
        else {
            continue;
        };
        let path = path(&section, key);
        let error = with_flags("", &[&format!("{path}={value}")]).err();
        let told = error.map(|error| error.to_string()).unwrap_or_default();
        let refused = format!("`{path}` is ");
        assert!(!told.contains("unknown key") && !told.contains(&refused), "{path}: {told}");
    }
}
