//! Data sets: listed, found, missing, replaced.

use std::fs;

use tempfile::TempDir;

use super::*;

#[test]
fn data_sets_are_listed_and_found() {
    let place = TempDir::new().unwrap();
    let list = stdout_json(lapa_alone(place.path()).args(["data", "list", "--format", "json"]));
    let sets = list.as_array().unwrap();
    let named: Vec<_> = sets.iter().map(|set| set["name"].as_str().unwrap()).collect();
    assert_eq!(named, ["mnist", "fashion-mnist", "synthetic"]);
    let available: Vec<_> = sets.iter().map(|set| set["available"].as_bool().unwrap()).collect();
    assert_eq!(available, [false, false, true]);
    let text = stdout(lapa_alone(place.path()).args(["data", "list"]).assert());
    assert!(text.contains("not fetched") && text.contains("built in"), "{text}");

    let cache = place.path().join("empty");
    let text = stdout(lapa_alone(place.path()).args(["data", "path"]).assert());
    assert_eq!(text.trim_end(), cache.to_str().unwrap());
    let path = stdout_json(lapa_alone(place.path()).args(["data", "path", "--format", "json"]));
    assert_eq!(path["path"], cache.to_str().unwrap());

    let text = stdout(lapa_alone(place.path()).args(["data", "get", "synthetic"]).assert());
    assert!(text.contains("built in"), "{text}");
    let text = failure(lapa(place.path()).args(["data", "get", "minst"]), 2);
    assert!(text.contains("unknown data set `minst`"), "{text}");
}

#[test]
fn missing_idx_files_are_named() {
    let place = TempDir::new().unwrap();
    let run = || failure(lapa(place.path()).args(["run", "-c", "data.name=idx:digits"]), 1);
    let text = run();
    assert!(text.contains("digits: not a folder"), "{text}");
    fs::create_dir(place.path().join("digits")).unwrap();
    let text = run();
    assert!(text.contains("digits: train-images-idx3-ubyte is missing"), "{text}");
    assert_eq!(names(place.path()), ["digits"]);
}

#[test]
fn the_quickstart_falls_back_to_synthetic_digits() {
    let place = TempDir::new().unwrap();
    let mut command = lapa_alone(place.path());
    command.args(["run", "-c", "run.rounds=1", "-c", "run.evaluate_every=9"]);
    let assert = command.assert().success();
    let told = one_line(&assert.get_output().stderr);
    assert!(told.contains("using the built-in synthetic digits instead"), "{told}");
    assert!(told.contains("partition.mix.iid_samples = [1000, 1666]"), "{told}");
    let resolved = fs::read_to_string(place.path().join("runs/quickstart-1/config.resolved.toml"));
    assert!(resolved.unwrap().contains("name = \"synthetic\""));

    let mut explicit = lapa_alone(place.path());
    explicit.args(["run", "--quiet", "-c", "run.rounds=1", "-c", "run.evaluate_every=9"]);
    explicit.args(["-c", "data.name=synthetic"]).assert().success().stderr("");
    let [replaced, meant] =
        ["runs/quickstart-1", "runs/quickstart-2"].map(|run| results(&place.path().join(run)));
    assert_eq!(replaced, meant);
}

#[test]
fn sizes_that_were_asked_for_are_kept() {
    let place = TempDir::new().unwrap();
    let mut command = lapa(place.path());
    command.args(["partition", "--format", "json", "-c", "data.name=synthetic"]);
    let rows = stdout_json(command.args(["-c", "partition.mix.iid_samples=1500"]));
    let samples: Vec<u64> = rows["devices"].as_array().unwrap().iter().map(samples).collect();
    assert_eq!(samples[..5], [1500; 5]);
    assert!(samples[5..].iter().all(|samples| (1000..=1666).contains(samples)), "{samples:?}");
}

fn samples(row: &Value) -> u64 {
    row["samples"].as_u64().unwrap()
}

#[test]
fn a_data_set_that_is_named_is_never_replaced() {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("my.toml"), "[data]\nname = \"mnist\"\n").unwrap();
    for arguments in [&["run", "my.toml"][..], &["run", "-c", "data.name=mnist"]] {
        let text = failure(lapa_alone(place.path()).args(arguments), 1);
        let tried = ["data set `mnist` is not available", "no train-images", "https:", "npm pack"];
        for part in tried {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
        assert!(!text.contains("instead"), "{text}");
    }
    assert!(!place.path().join("runs").exists());
}
