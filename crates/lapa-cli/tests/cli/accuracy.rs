//! The quickstart learns.

use std::path::Path;

use tempfile::TempDir;

use super::*;

fn accuracy(flags: &[&str]) -> f64 {
    let place = TempDir::new().unwrap();
    let mut command = lapa(place.path());
    command.args(["run", "--quiet", "--format", "json"]).args(flags);
    stdout_json(&mut command)["accuracy"].as_f64().unwrap()
}

#[test]
fn the_quickstart_learns_synthetic_digits() {
    let flags = ["data.name=synthetic", "run.rounds=40", "run.evaluate_every=40"];
    let flags: Vec<&str> = flags.into_iter().flat_map(|flag| ["-c", flag]).collect();
    let accuracy = accuracy(&flags);
    // All of the budget in 40 rounds means more noise than the whole quickstart has.
    assert!(accuracy > 0.7, "{accuracy}");
}

#[test]
fn the_whole_quickstart_learns_synthetic_digits() {
    if std::env::var_os("LAPA_TEST_LONG").is_none() {
        eprintln!("skipped: takes half a minute; set LAPA_TEST_LONG");
        return;
    }
    let accuracy = accuracy(&["-c", "data.name=synthetic"]);
    assert!(accuracy > 0.9, "{accuracy}");
}

/// True if the long tests on MNIST can run; says why not.
fn long_on_mnist() -> bool {
    if std::env::var_os("LAPA_TEST_LONG").is_none() {
        eprintln!("skipped: takes a minute; set LAPA_TEST_LONG");
        return false;
    }
    has_mnist()
}

#[test]
fn the_quickstart_learns_mnist() {
    if long_on_mnist() {
        let accuracy = accuracy(&["-c", "data.name=mnist"]);
        assert!(accuracy > 0.9, "{accuracy}");
    }
}

/// Labels know who is worth listening to: more than a point, over three seeds.
#[test]
fn wasserstein_weights_beat_fedavg_on_the_small_partition() {
    if long_on_mnist() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/aggregation");
        let mean = |rule: &str| {
            let config = folder.join(format!("mnist/{rule}.toml")).display().to_string();
            let of = |seed: u32| accuracy(&[&config, "--seed", &seed.to_string()]);
            (0..3).map(of).sum::<f64>() / 3.0
        };
        let (fedavg, wasserstein) = (mean("fedavg"), mean("wasserstein"));
        assert!(wasserstein - fedavg > 0.01, "{fedavg} {wasserstein}");
    }
}

#[test]
fn the_small_partition_reaches_92_percent() {
    if long_on_mnist() {
        let config = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../experiments/small-partition/config.toml");
        let config = config.to_str().unwrap();
        let runs = ["0", "1", "2"].map(|seed| accuracy(&[config, "--seed", seed]));
        let mean = runs.iter().sum::<f64>() / 3.0;
        assert!(mean >= 0.92, "{runs:?}");
    }
}
