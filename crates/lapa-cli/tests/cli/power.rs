//! `lapa power`, and powers chosen in `lapa run`.

use tempfile::TempDir;

use super::*;

const CONFIG: &str = r#"
profile = "paper"
run = { rounds = 5, evaluate_every = 5, threads = 1 }
data.name = "synthetic"
partition.mix = { iid = 2, non_iid = 2, iid_samples = 60, non_iid_samples = 90 }
model.name = "logistic"
privacy = { initial_sigma = 0.05, channel_trust = 1 }
radio.noise_power_w = 1e-12
transmit = { uplink = "analog", access = "orthogonal" }
control = { noise = "top-up", cma-es.evaluations = 200, ddpg = { episodes = 2, steps = 50 } }
"#;

fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("small.toml"), CONFIG).unwrap();
    place
}

#[test]
fn all_optimizers_stand_in_one_table_and_the_best_powers_run() {
    let place = place();
    let folder = place.path();
    let arguments = ["power", "small.toml", "--out", "p", "--format", "json"];
    let choices = stdout_json(lapa(folder).args(arguments)).as_array().unwrap().clone();
    let names: Vec<&str> = choices.iter().map(|c| c["optimizer"].as_str().unwrap()).collect();
    let all = ["equal", "full", "closed-form", "random-search", "cma-es", "ddpg"];
    assert_eq!(names, all);
    for choice in &choices {
        for key in [
            "objective",
            "objective_relative",
            "worst_under_noising",
            "total_power_w",
            "evaluations",
            "seconds",
            "epsilon",
        ] {
            assert!(choice[key].is_number(), "{key}: {choice}");
        }
        assert_eq!(choice["switching_round"].as_array().unwrap().len(), 4);
        assert_eq!(choice["worst_under_noising"], 1.0);
        let powers = choice["powers_w"].as_array().unwrap();
        let total: f64 = powers.iter().map(|power| power.as_f64().unwrap()).sum();
        assert!((total - choice["total_power_w"].as_f64().unwrap()).abs() < 1e-12);
        assert!(total <= 4.0 * 0.075 * (1.0 + 1e-12));
    }
    assert_eq!(choices[1]["objective_relative"], 1.0);
    for file in ["power.json", "powers.toml", "curves.svg", "powers.png", "agent.safetensors"] {
        assert!(folder.join("p").join(file).is_file(), "{file}");
    }
    lapa(folder).args(["run", "p/powers.toml", "--out", "r", "--quiet"]).assert().success();
    let best = choices.iter().min_by(|a, b| {
        let worth = |c: &Value| c["objective"].as_f64().unwrap();
        worth(a).total_cmp(&worth(b))
    });
    let resolved = fs::read_to_string(folder.join("r/config.resolved.toml")).unwrap();
    let first = best.unwrap()["powers_w"][0].to_string();
    assert!(resolved.contains(&first), "{first} in {resolved}");

    // The pilot and the agent serve again.
    let again = ["power", "small.toml", "--pilot", "p/pilot", "--agent", "p/agent.safetensors"];
    let more = ["--only", "equal,ddpg", "--choose", "equal", "--out", "q"];
    let text = stdout(lapa(folder).args(again).args(more).assert());
    assert!(text.contains("ε κ=0") && text.contains("q/powers.toml"), "{text}");
}

#[test]
fn powers_are_chosen_within_one_run() {
    let place = place();
    let folder = place.path();
    let arguments = ["run", "small.toml", "-c", "control.power=ddpg", "--out", "r"];
    let shown = one_line(&lapa(folder).args(arguments).assert().success().get_output().stderr);
    for stage in
        ["phase 1 of 3: pilot", "phase 2 of 3: optimizing", "ddpg: J", "phase 3 of 3: training"]
    {
        assert!(shown.contains(stage), "{stage} in {shown}");
    }
    assert!(folder.join("r/summary.json").is_file() && folder.join("r-pilot").is_dir());
}

#[test]
fn mistakes_are_named() {
    let place = place();
    let fails = |arguments: &[&str], what: &str| {
        let mut command = lapa(place.path());
        let shown = failure(command.args(["power", "small.toml"]).args(arguments), 2);
        assert!(shown.contains(what), "{what} in {shown}");
    };
    fails(&["--only", "equal", "--choose", "ddpg"], "--choose ddpg");
    fails(&["--only", "best"], "random-search");
    fails(&["--agent", "nothing.safetensors"], "nothing.safetensors");
    fails(
        &[
            "-c",
            "transmit.uplink=ideal",
            "-c",
            "privacy.channel_trust=0",
            "-c",
            "control.noise=always",
            "--out",
            "a",
        ],
        "transmit.uplink",
    );
    fs::create_dir(place.path().join("taken")).unwrap();
    fs::write(place.path().join("taken/file"), "").unwrap();
    fails(&["--out", "taken"], "--out taken already exists");
}
