//! The configurations of experiments/published are those that the table of their README names.

use std::fs;
use std::path::Path;

use lapa::config::Experiment;
use serde_json::Value;

#[test]
fn published_tasks_are_what_their_readme_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/published");
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    for file in ["lr-mnist.toml", "four-devices.toml", "cnn.toml"] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let row = row(file, &Experiment::from_toml(&text, file, &[]).unwrap().to_json());
        assert!(readme.contains(&row), "not in README.md: {row}");
    }
}

/// A configuration as the README's table has it.
fn row(file: &str, config: &Value) -> String {
    let number = |path: &str| config.pointer(path).and_then(Value::as_f64);
    let given = |path: &str| number(path).unwrap_or_else(|| panic!("{file}: {path}"));
    let (devices, samples) = match number("/partition/shards/devices") {
        // MNIST has 60,000 samples.
        Some(devices) => (devices, 60_000.0 / devices),
        None => (given("/partition/mix/non_iid"), given("/partition/mix/non_iid_samples/0")),
    };
    let active = (devices * given("/run/participation")).round();
    let batch = (samples * given("/learn/batch_fraction")).round();
    let epochs = match config["learn"]["update"].as_str() {
        Some("epoch") => given("/learn/local_epochs").to_string(),
        _ => "–".into(),
    };
    let (rounds, rate) = (given("/run/rounds"), given("/learn/learning_rate"));
    let epsilon = number("/privacy/epsilon").map_or("–".into(), |epsilon| epsilon.to_string());
    format!(
        "| {file} | {devices} | {active} | {samples} | {rounds} | {epochs} | {batch} | {rate} | {epsilon} |"
    )
}
