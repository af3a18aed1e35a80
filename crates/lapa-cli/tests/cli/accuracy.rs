//! The quickstart learns.

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
    let flags = flags.into_iter().chain(["learn.learning_rate=0.03"]);
    let flags: Vec<&str> = flags.flat_map(|flag| ["-c", flag]).collect();
    let accuracy = accuracy(&flags);
    assert!(accuracy > 0.8, "{accuracy}");
}

#[test]
fn the_quickstart_learns_mnist() {
    if std::env::var_os("LAPA_TEST_LONG").is_none() {
        eprintln!("skipped: takes a minute; set LAPA_TEST_LONG");
        return;
    }
    let place = TempDir::new().unwrap();
    let list = stdout_json(lapa(place.path()).args(["data", "list", "--format", "json"]));
    if list[0]["available"] != true {
        eprintln!("skipped: MNIST is not in the cache; run `lapa data get mnist`");
        return;
    }
    let accuracy = accuracy(&["-c", "data.name=mnist"]);
    assert!(accuracy > 0.9, "{accuracy}");
}
