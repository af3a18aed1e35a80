//! Configurations: whatever is in a file, it is refused or it runs.

use super::*;

/// Texts to begin with: one that runs at once, and one with every key.
fn originals(place: &Path) -> [String; 2] {
    survives(place, &["init", "every-key.toml"], "init");
    [SIEGE.to_owned(), fs::read_to_string(place.join("every-key.toml")).unwrap()]
}

#[test]
fn a_mutated_configuration_is_refused_or_complete() {
    let place = place();
    let place = place.path();
    let originals = originals(place);
    for case in cases(120, 8000) {
        let mut dice = Dice::new(1, case);
        let original = &originals[dice.below(originals.len())];
        fs::write(place.join("mutated.toml"), mutate::text(original, &mut dice)).unwrap();
        let name = format!("configuration {case}");
        let checked = survives(place, &["config", "check", "mutated.toml"], &name);
        if checked.status.success() && case % 4 == 0 {
            let show = dice.pick(&["link", "partition"]);
            let changes = ["-c", "data.name=synthetic", "-c", "run.rounds=3"];
            survives(place, &[&[show, "mutated.toml"][..], &changes].concat(), &name);
        }
    }
}

#[test]
fn a_mutated_configuration_that_is_accepted_runs_or_says_why_not() {
    let place = place();
    let place = place.path();
    for case in cases(20, 1500) {
        let mut dice = Dice::new(2, case);
        fs::write(place.join("mutated.toml"), mutate::text(SIEGE, &mut dice)).unwrap();
        let name = format!("run {case}");
        let arguments = ["run", "mutated.toml", "--quiet", "-c", "run.rounds=2", "--out", "run"];
        let output = survives(place, &arguments, &name);
        if output.status.success() {
            let summary = fs::read_to_string(place.join("run/summary.json")).unwrap();
            let summary: Value = serde_json::from_str(&summary).unwrap();
            let figure = |key: &str| summary[key].as_f64().unwrap_or(f64::INFINITY);
            let (spent, provable) = (figure("epsilon_spent"), figure("epsilon_provable"));
            assert!(spent <= provable, "{name}: spent {spent}, provable {provable}");
        }
        let _ = fs::remove_dir_all(place.join("run"));
    }
}
