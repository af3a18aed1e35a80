//! Private runs: what they claim, prove, spend and say.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;

/// Five small devices with a budget of ε = 8 each, on the images of [`write_private`].
const PRIVATE: &str = "\
data.name = 'idx:digits'
[run]
rounds = 6
evaluate_every = 3
seed = 3
[partition.mix]
iid = 2
non_iid = 3
iid_samples = [20, 40]
non_iid_samples = [20, 40]
[model]
name = 'logistic'
[privacy]
epsilon = 8
";

/// Writes private.toml and its data: a few images of 8 × 8, told apart by one bright pixel in ten.
pub fn write_private(folder: &Path) {
    let digits = folder.join("digits");
    fs::create_dir(&digits).unwrap();
    for (name, count) in [("train", 2000), ("t10k", 40)] {
        let header = |numbers: &[u32]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
        };
        let mut images = header(&[0x803, count, 8, 8]);
        let pixel = |image: u32, place: u32| {
            if place % 10 == image % 10 { 200 } else { (image * 37 + place * 11) as u8 % 50 }
        };
        images.extend((0..count).flat_map(|image| (0..64).map(move |place| pixel(image, place))));
        let mut labels = header(&[0x801, count]);
        labels.extend((0..count).map(|image| (image % 10) as u8));
        fs::write(digits.join(format!("{name}-images-idx3-ubyte")), images).unwrap();
        fs::write(digits.join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
    }
    fs::write(folder.join("private.toml"), PRIVATE).unwrap();
}

/// `lapa run private.toml` with changes.
pub fn private(place: &Path, out: &str, changes: &[&str]) -> Command {
    let mut command = lapa(place);
    command.args(["run", "private.toml", "--quiet", "--format", "json", "--out", out]);
    command.args(changes.iter().flat_map(|change| ["-c", change]));
    command
}

/// The result of a private run.
pub fn run_private(place: &Path, out: &str, changes: &[&str]) -> Value {
    stdout_json(&mut private(place, out, changes))
}

/// Answer of `lapa account --ledger` for each device.
pub fn rows(place: &Path, ledger: &str) -> Vec<Value> {
    let mut command = lapa(place);
    let value = stdout_json(command.args(["account", "--ledger", ledger, "--format", "json"]));
    value["devices"].as_array().unwrap().clone()
}

/// A figure that may be infinite.
pub fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some(word) => word.parse().unwrap(),
        None => value.as_f64().unwrap_or_else(|| panic!("{value} is no number")),
    }
}

/// The lines of metrics.jsonl.
pub fn metrics(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every device of every round.
pub fn releases(folder: &Path) -> Vec<Value> {
    let devices = |line: &Value| line["devices"].as_array().unwrap().clone();
    metrics(folder).iter().flat_map(devices).collect()
}

const ALLOCATORS: [&str; 3] = ["uniform", "arb", "lapa"];
const SAMPLINGS: [&str; 3] = ["poisson", "fixed", "full"];

/// Every allocator on every kind of batches.
fn all_pairs() -> Vec<(&'static str, &'static str)> {
    (0..3).flat_map(some_pairs).collect()
}

/// Every allocator and every kind of batches once; three values of `shift` make all pairs.
fn some_pairs(shift: usize) -> Vec<(&'static str, &'static str)> {
    let pair = |(k, allocator)| (allocator, SAMPLINGS[(k + shift) % 3]);
    ALLOCATORS.into_iter().enumerate().map(pair).collect()
}

/// Follows what is spent.
fn assert_budget_holds(epsilon: f64, noise: &str, pairs: &[(&str, &str)]) {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    for (allocator, sampling) in pairs {
        let out = format!("{allocator}-{sampling}");
        let changes = [
            format!("privacy.epsilon={epsilon}"),
            format!("privacy.allocator={allocator}"),
            format!("learn.sampling={sampling}"),
            format!("privacy.noise={noise}"),
        ];
        let summary = run_private(place, &out, &changes.each_ref().map(String::as_str));
        assert_eq!(summary["epsilon_provable"], epsilon, "{out}");
        let spent = number(&summary["epsilon_spent"]);
        assert!(0.9 * epsilon < spent && spent <= epsilon, "{out}: {spent}");
        let words = summary["privacy"].as_str().unwrap();
        assert!(
            words.starts_with("Guarantee: proven.") && words.contains("anyone who knows the seed")
        );

        let folder = place.join(&out);
        let mut last = [0.0; 5];
        for device in releases(&folder) {
            let spent = number(&device["spent_provable"]);
            let last = &mut last[device["device"].as_u64().unwrap() as usize];
            assert!(*last <= spent && spent <= epsilon, "{out}: {device}");
            assert!(number(&device["sigma_artificial"]) > 0.0, "{out}: {device}");
            *last = spent;
        }
        assert_eq!(spent, last.into_iter().fold(0.0, f64::max), "{out}");
        for row in rows(place, &format!("{out}/ledger.db")) {
            assert_eq!(row["declared"], epsilon, "{out}");
            let provable = number(&row["provable"]);
            assert!(0.0 < provable && provable <= epsilon, "{out}: {row}");
        }
    }
}

/// All pairs in long tests.
fn pairs(shift: usize) -> Vec<(&'static str, &'static str)> {
    match std::env::var_os("LAPA_TEST_LONG") {
        Some(_) => all_pairs(),
        None => some_pairs(shift),
    }
}

#[test]
fn a_budget_of_8_is_never_passed() {
    assert_budget_holds(8.0, "gaussian", &all_pairs());
}

#[test]
fn a_budget_of_1_is_never_passed() {
    assert_budget_holds(1.0, "gaussian", &pairs(0));
}

#[test]
fn a_budget_of_a_tenth_is_never_passed() {
    assert_budget_holds(0.1, "gaussian", &pairs(1));
}

#[test]
fn a_budget_is_never_passed_by_discrete_noise() {
    assert_budget_holds(8.0, "discrete-gaussian", &pairs(2));
}

#[test]
fn a_round_sent_by_some_devices_leaves_the_others_unspent() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    run_private(place, "run", &["run.participation=0.4"]);
    let mut sent = [0; 5];
    for device in releases(&place.join("run")) {
        sent[device["device"].as_u64().unwrap() as usize] += 1;
    }
    assert_eq!(sent.iter().sum::<u64>(), 12);
    for (row, sent) in rows(place, "run/ledger.db").iter().zip(sent) {
        assert_eq!(row["releases"], sent);
        assert!(number(&row["provable"]) < 8.0 || sent == 6, "{row}");
    }
}

#[test]
fn the_papers_claim_is_shown_with_what_is_proved() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    for allocator in ["uniform", "arb", "lapa", "optimal-split"] {
        let allocator = format!("privacy.allocator={allocator}");
        let summary = run_private(place, &allocator, &["profile=paper", &allocator]);
        let [claimed, worst, provable] =
            ["epsilon_claimed_total", "epsilon_claimed_worst", "epsilon_provable"]
                .map(|key| number(&summary[key]));
        // A sum of thirty terms may round.
        assert!(0.0 < claimed && claimed <= 8.0 * (1.0 + 1e-12), "{allocator}: {claimed}");
        assert!(provable > 100.0 * claimed, "{allocator}: {provable} for {claimed}");
        assert_eq!(summary["epsilon_spent"], summary["epsilon_provable"]);
        let rows = rows(place, &format!("{allocator}/ledger.db"));
        // The two sums, from what the ledger says of each device.
        let sums: Vec<f64> = rows.iter().map(|row| number(&row["claimed"])).collect();
        let (total, most) = sums.iter().fold((0.0, 0.0f64), |(t, m), &sum| (t + sum, m.max(sum)));
        assert!((total / claimed - 1.0).abs() < 1e-12, "{allocator}: {total} {claimed}");
        assert!((most / worst - 1.0).abs() < 1e-12, "{allocator}: {most} {worst}");
        for row in rows {
            assert_eq!(row["declared"], "inf");
            assert!(number(&row["provable"]) <= provable * (1.0 + 1e-9), "{row}");
            assert!(number(&row["claimed"]) < claimed, "{row}");
        }
        for line in metrics(&place.join(&allocator)) {
            let shares = line["devices"].as_array().unwrap().iter();
            let shares: f64 = shares.map(|device| number(&device["epsilon"])).sum();
            assert!(shares <= number(&line["epsilon_round"]) * (1.0 + 1e-12), "{line}");
        }
    }
    let mut command = lapa(place);
    command.args(["run", "private.toml", "--out", "told", "-c", "profile=paper"]);
    let told = one_line(stdout(command.assert()).as_bytes());
    assert!(told.contains("proven ε ≤ ") && told.contains("the paper's formula would report"));
    let told = one_line(stdout(lapa(place).args(["explain", "told"]).assert()).as_bytes());
    assert!(told.contains("The paper's formula reports ε = "), "{told}");
    assert!(told.contains("the proven ε of the recorded noise is"), "{told}");
    assert!(told.contains("times that"), "{told}");
}

#[test]
fn initial_sigma_is_that_of_a_device_of_mean_size() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    for (out, changes) in [
        ("plan", &["privacy.allocator=uniform"][..]),
        ("renyi", &["privacy.allocator=lapa"]),
        ("gdp", &["privacy.allocator=lapa", "learn.sampling=full"]),
        ("paper", &["profile=paper"]),
    ] {
        let summary = run_private(place, out, &[&["privacy.initial_sigma=0.4"], changes].concat());
        assert!(number(&summary["epsilon_provable"]).is_finite());
        assert!(number(&summary["epsilon_spent"]) <= number(&summary["epsilon_provable"]));
        let first = &metrics(&place.join(out))[0]["devices"];
        let devices: Vec<(f64, f64)> =
            first.as_array().unwrap().iter().map(size_and_sigma).collect();
        assert_eq!(devices.len(), 5);
        let mean = devices.iter().map(|(samples, _)| samples).sum::<f64>() / 5.0;
        for (samples, sigma) in devices {
            let expected = 0.4 * mean / samples;
            // Calibration may only add noise, and not much.
            let ratio = sigma / expected;
            assert!((1.0 - 1e-9..1.001).contains(&ratio), "{out}: {sigma} for {expected}");
        }
    }
}

fn size_and_sigma(device: &Value) -> (f64, f64) {
    (number(&device["samples"]), number(&device["sigma_artificial"]))
}

#[test]
fn warnings_are_given_once() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let told = |out: &str, changes: &[&str]| {
        one_line(&private(place, out, changes).assert().success().get_output().stderr)
    };
    let range = "holds for epsilon in (0, 1) only";
    for allocator in ["uniform", "lapa"] {
        let allocator = format!("privacy.allocator={allocator}");
        let changes = ["profile=paper", &allocator, "privacy.epsilon=800"];
        let text = told(&format!("wide-{allocator}"), &changes);
        assert_eq!(text.matches(range).count(), 1, "{text}");
        assert!(text.contains("warning: round 1, device 0: epsilon is 26.667"), "{text}");
    }
    assert_eq!(told("narrow", &["profile=paper", "privacy.epsilon=8"]), "");
    // Certified noise has no such range.
    assert_eq!(told("certified", &["privacy.epsilon=800"]), "");
    let large = ["partition.mix.iid_samples=100", "partition.mix.non_iid_samples=101"];
    let text = told("loose", &[&large[..], &["privacy.delta=0.01"]].concat());
    assert_eq!(text.matches("privacy.delta = 1e-2 is not below 1/100").count(), 1, "{text}");
    assert_eq!(told("tight", &[&large[..], &["privacy.delta=0.0099"]].concat()), "");
}

#[test]
fn real_entropy_differs_from_run_to_run_and_hides_what_is_private() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let [seeded, first, second] =
        [("s", "seed"), ("a", "os"), ("b", "os")].map(|(out, entropy)| {
            let summary = run_private(place, out, &[&format!("run.entropy={entropy}")]);
            let words = summary["privacy"].as_str().unwrap();
            assert_eq!(words.contains("anyone who knows the seed"), entropy == "seed");
            place.join(out)
        });
    for (folder, word) in [(&seeded, "seed: simulation"), (&first, "operating system")] {
        let manifest = fs::read_to_string(folder.join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        assert!(manifest["entropy"].as_str().unwrap().contains(word), "{manifest}");
    }
    for device in releases(&first) {
        assert!(device.get("gradient_norm").is_none() && device.get("clipped").is_none());
    }
    for device in releases(&seeded) {
        assert!(device["gradient_norm"].is_number() && device["clipped"].is_number());
    }
    let parquet = fs::read(first.join("metrics.parquet")).unwrap();
    assert!(!parquet.windows(13).any(|name| name == b"gradient_norm"));
    let [seeded, first, second] = [seeded, first, second].map(|folder| results(&folder).0);
    assert!(first != second && first != seeded);
}

#[test]
fn the_quickstart_takes_other_noise() {
    let place = TempDir::new().unwrap();
    let text = failure(lapa(place.path()).args(["run", "-c", "learn.update=epoch"]), 2);
    assert!(text.contains("requires `learn.update` = \"gradient\""), "{text}");
    assert!(text.contains("a local epoch see the same samples again and again"), "{text}");
    assert_eq!(names(place.path()), [""; 0]);

    let quickstart = include_str!("../../src/commands/quickstart.toml");
    fs::write(place.path().join("quickstart.toml"), quickstart).unwrap();
    let resolved = |changes: &[&str]| {
        let mut command = lapa(place.path());
        command.args(["config", "check", "quickstart.toml", "--format", "json"]);
        stdout_json(command.args(changes))["privacy"].clone()
    };
    let privacy = resolved(&[]);
    assert_eq!((&privacy["basis"], &privacy["epsilon"]), (&"certified".into(), &8.0.into()));
    assert_eq!(resolved(&["-c", "privacy=none"]), Value::Null);
    let privacy = resolved(&["-c", "privacy.initial_sigma=0.1"]);
    assert_eq!((&privacy["initial_sigma"], &privacy["epsilon"]), (&0.1.into(), &Value::Null));
}

#[test]
fn without_noise_everything_is_infinite() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let summary = run_private(place, "bare", &["privacy=none"]);
    let keys = ["epsilon_claimed_total", "epsilon_claimed_worst", "epsilon_provable"];
    for key in keys.into_iter().chain(["epsilon_spent"]) {
        assert_eq!(summary[key], "inf", "{key}");
    }
    assert!(summary["privacy"].as_str().unwrap().contains("nothing is proven"));
    for device in releases(&place.join("bare")) {
        assert_eq!((&device["epsilon"], &device["spent_provable"]), (&"inf".into(), &"inf".into()));
        assert_eq!(device["sigma_artificial"], 0.0);
    }
    for row in rows(place, "bare/ledger.db") {
        assert_eq!((&row["releases"], &row["provable"]), (&6.into(), &"inf".into()));
    }
}
