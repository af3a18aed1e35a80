//! `lapa bound`: estimates, both bounds, plots, refusals.

use tempfile::TempDir;

use super::*;

const KEYS: [&str; 14] = [
    "rounds",
    "coordinates",
    "learning_rate",
    "squared_weights",
    "estimates",
    "estimated",
    "known",
    "configured",
    "printed",
    "corrected",
    "corrected_full_gradients",
    "measured",
    "warnings",
    "plots",
];

/// A small logistic regression as the theorem has it: full gradients, no momentum, no clipping.
const PLAIN: [&str; 10] = [
    "-c",
    "model.name=logistic",
    "-c",
    "learn.batch_fraction=1",
    "-c",
    "learn.momentum=0",
    "-c",
    "run.rounds=20",
    "-c",
    "learn.clip=none",
];

#[test]
fn estimates_bounds_and_plots_of_a_small_run() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let mut command = lapa_alone(place.path());
    let command = command.args(["bound", "small.toml", "--format", "json", "--out", "plots"]);
    let report = stdout_json(command.args(PLAIN));
    assert_eq!(keys(&report), KEYS);
    assert_eq!((&report["rounds"], &report["coordinates"]), (&20.into(), &7850.into()));
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
    let [l, mu, delta] =
        ["smoothness", "convexity", "dissimilarity"].map(|key| number(&report["estimated"][key]));
    // Softmax: L is at most half the largest eigenvalue of the mean x̃x̃ᵀ, which is at most 785.
    assert!(l >= mu && l < 393.0 && mu > 0.0 && delta >= 1.0, "{report}");
    let rate = number(&report["learning_rate"]);
    let squares = number(&report["squared_weights"]);
    for (form, factor) in [("printed", squares), ("corrected", 1.0)] {
        let found = &report[form];
        let a = 1.0 + mu * l * (rate * delta).powi(2) * factor - 2.0 * rate * mu;
        assert!((number(&found["contraction"]) - a).abs() < 1e-12, "{found}");
        let limit = 2.0 / (l * delta * delta * factor);
        assert!((number(&found["learning_rate_limit"]) / limit - 1.0).abs() < 1e-12);
        assert_eq!(found["learning_rate_holds"], rate < limit);
        // No noise: only the initial gap is left.
        let gap = number(&report["estimates"]["initial_gap"]);
        assert!((number(&found["total"]) / (gap * a.powi(20)) - 1.0).abs() < 1e-9);
        assert_eq!(found["terms"]["artificial"], 0.0);
    }
    let a = 1.0 + mu * l * rate * rate - 2.0 * rate * mu;
    let full = number(&report["corrected_full_gradients"]["contraction"]);
    assert!((full - a).abs() < 1e-12, "{full} {a}");
    // Full gradients without noise: the theorem's own setting, but for strong convexity.
    assert_eq!(report["corrected"]["measured_below"], true);
    let measured = report["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 11);
    assert_eq!(measured[10]["round"], 20);
    assert_eq!(report["warnings"].as_array().unwrap().len(), 1, "{}", report["warnings"]);
    assert_eq!(names(&place.path().join("plots")), ["bound.png", "bound.svg"]);
}

#[test]
fn text_warns_of_what_is_outside_and_of_copying_estimates() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let mut command = lapa_alone(place.path());
    command.args(["bound", "small.toml", "-c", "privacy.initial_sigma=0.01", "--samples", "20"]);
    command.args(["-c", "learn.momentum=0.5", "-c", "transmit.uplink=analog"]);
    let assert = command.assert().success();
    let stderr = one_line(&assert.get_output().stderr);
    for part in
        ["not strongly convex", "learn.momentum = 0.5", "learn.batch_fraction", "learn.clip_norm"]
    {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let text = stdout(assert);
    for part in ["printed", "corrected", "initial", "channel", "artificial", "the lowest loss"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Estimates of private data are no input of a run.
    assert!(
        text.contains("the powers would leak the data") && !text.contains("-c control."),
        "{text}"
    );
    assert_eq!(names(place.path()), ["bound.png", "bound.svg", "small.toml"]);
    // A local epoch is another thing.
    let mut command = lapa_alone(place.path());
    let assert = command.args(["bound", "small.toml", "-c", "learn.update=epoch"]).assert();
    assert!(one_line(&assert.success().get_output().stderr).contains("many local steps"));
}

/// Much noise, or a learning rate that is far too large: a bound above the first model's gap says
/// nothing, however far below it the measured loss stays.
#[test]
fn a_bound_above_the_start_is_vacuous() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let noisy =
        [&PLAIN[..], &["-c", "learn.clip=device", "-c", "privacy.initial_sigma=5"]].concat();
    let shown = |format: &str| {
        let mut command = lapa_alone(place.path());
        command.args(["bound", "small.toml", "--quiet", "--format", format]).args(&noisy);
        stdout(command.assert())
    };
    let report: Value = serde_json::from_str(&shown("json")).unwrap();
    let text = shown("text");
    let gap = report["estimates"]["initial_gap"].as_f64().unwrap();
    let table = text.split("bound holds").nth(1).unwrap();
    for (form, name) in [
        ("printed", "printed "),
        ("corrected", "corrected "),
        ("corrected_full_gradients", "corrected, δ = 1"),
    ] {
        let form = &report[form];
        let vacuous = form["total"].as_f64().map(|total| total >= gap);
        assert_eq!(form["vacuous"].as_bool(), vacuous, "{form}");
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        let word = match (form["measured_below"].as_bool(), vacuous) {
            (Some(false), _) => "no",
            (Some(true), Some(true)) => "vacuous",
            (Some(true), _) => "yes",
            (None, _) => "–",
        };
        assert!(line.ends_with(word), "{word}: {line}");
    }
    assert_eq!(report["corrected"]["vacuous"], true, "{text}");
    assert_eq!(report["corrected"]["measured_below"], true, "{text}");
    assert!(text.contains("vacuous: not below"), "{text}");
}

#[test]
fn a_run_that_protects_someone_is_refused() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let flags = ["-c", "run.entropy=os", "-c", "privacy.epsilon=8"];
    let mut command = lapa_alone(place.path());
    let text = failure(command.args(["bound", "small.toml", "--quiet"]).args(flags), 2);
    assert!(text.contains("simulations only") && text.contains("run.entropy"), "{text}");
    assert_eq!(names(place.path()), ["small.toml"]);
    let mut command = lapa_alone(place.path());
    failure(command.args(["bound", "small.toml", "--samples", "0"]), 2);
}
