//! experiments/paper/printed.toml: the paper's system as printed.

use std::fs;
use std::ops::ControlFlow;

use lapa::config::{Experiment, Override, Profile};
use lapa::data::digits;
use lapa::observe::{DeviceRecord, DeviceRecords, RoundRecord, read_metrics};
use lapa::run::{Outcome, SwitchingRound};
use lapa_control::phases::{Destination, Job};
use serde_json::Value;
use tempfile::TempDir;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/paper/printed.toml");

fn read(text: &str) -> Experiment {
    Experiment::from_toml(text, PATH, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// A line without its mark, if it is a key that is commented out.
fn uncommented(line: &str) -> Option<&str> {
    let key = line.strip_prefix("# ")?;
    let (name, _) = key.split_once(" = ")?;
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_').then_some(key)
}

/// A line that is commented out says what holds: by itself, and all of them in place of the profile.
#[test]
fn lines_that_are_commented_out_are_what_holds() {
    let text = fs::read_to_string(PATH).unwrap();
    let printed = read(&text);
    assert_eq!(printed.profile, Profile::Printed);
    let lines: Vec<&str> = text.lines().collect();
    let mut all = lines.clone();
    let mut by_the_profile = 0;
    for (at, line) in lines.iter().enumerate() {
        let Some(key) = uncommented(line) else { continue };
        let mut one = lines.clone();
        (one[at], all[at]) = (key, key);
        assert_eq!(read(&one.join("\n")), printed, "{line}");
        by_the_profile += usize::from(line.contains("by the profile"));
    }
    assert!(by_the_profile > 10, "{by_the_profile}");
    let paper = all.join("\n").replacen("profile = \"printed\"", "profile = \"paper\"", 1);
    assert_eq!(Experiment { profile: Profile::Printed, ..read(&paper) }, printed);
}

/// The file with few rounds, samples and steps: three pilots, the printed DDPG, the run, and its own J.
/// Records of a run of the file satisfy the printed formulas.
#[test]
fn the_printed_file_runs_from_data_to_power() {
    let small = [
        "data.name=synthetic",
        "run.rounds=8",
        "run.threads=1",
        "partition.mix.iid_samples=[20, 40]",
        "partition.mix.non_iid_samples=[20, 40]",
        "control.ddpg.episodes=10",
        "control.ddpg.steps=50",
    ];
    let flags: Vec<Override> = small.iter().map(|c| Override::parse(c).unwrap()).collect();
    let text = fs::read_to_string(PATH).unwrap();
    let experiment = Experiment::from_toml(&text, PATH, &flags).unwrap();
    let place = TempDir::new().unwrap();
    // The folder above the run is new: the ledger of pilot and run was once refused there.
    let out = place.path().join("runs/run");
    let job = Job::create(experiment.clone(), digits(2000, 100), Destination::Folder(&out));
    let end = job.unwrap().execute(&mut |_| ControlFlow::Continue(()));
    let Outcome::Finished(summary) = end.unwrap() else { panic!("broken off") };
    let report = fs::read_to_string(out.join("power.json")).unwrap();
    expect_ddpg(&serde_json::from_str(&report).unwrap());
    let records = read_metrics(&out.join("metrics.jsonl")).unwrap();
    expect_one_switch(&records, summary.switching_round);
    expect_printed_noise(&experiment, &records);
}

/// Sections IV-B and IV-C: the actor's last output, within P_max and P_0, and better than equal power.
fn expect_ddpg(report: &Value) {
    let choice = &report["choice"];
    assert_eq!(choice["optimizer"], "ddpg", "{report}");
    assert_eq!(choice["policy_relative"], choice["objective_relative"]);
    assert!(choice["evaluations"].as_u64().unwrap() >= 10 * 50);
    let powers = choice["powers_w"].as_array().unwrap().iter().map(|p| p.as_f64().unwrap());
    assert!(powers.clone().sum::<f64>() <= 0.04 * (1.0 + 1e-12));
    assert!(powers.fold(0.0, f64::max) <= 0.3);
    assert!(report["run"]["own"].as_f64().unwrap() < report["run"]["equal"].as_f64().unwrap());
}

/// Eq. (23): artificial noise ends once, where the required noise has begun to fall and its sum is no
/// more than that of the channel's.
fn expect_one_switch(records: &[RoundRecord], reported: Option<SwitchingRound>) {
    let sums: Vec<[f64; 2]> = records
        .iter()
        .map(|record| {
            let sum = |of: fn(&DeviceRecord) -> f64| devices(record).iter().map(of).sum();
            [sum(|device| device.sigma_required), sum(|device| device.sigma_channel)]
        })
        .collect();
    let suffices = |t: &usize| sums[*t][0] <= sums[*t - 1][0] && sums[*t][0] <= sums[*t][1];
    let last = (1..records.len()).find(suffices).unwrap();
    assert_eq!(reported, Some(SwitchingRound::All(last as u32)));
    for (t, record) in records.iter().enumerate() {
        let artificial = devices(record).iter().all(|device| device.sigma_artificial > 0.0);
        assert_eq!(artificial, t < last, "round {}", t + 1);
    }
}

/// The channel's noise c²σ²/(p²‖h‖²) with one c for all rounds; CN(0, σ_k²), of which the real part has
/// half; σ_k and ε_k by each other as below eq. (19), with Δs of eq. (18).
fn expect_printed_noise(experiment: &Experiment, records: &[RoundRecord]) {
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * b, "{a} {b}");
    let (clip, rate) = (experiment.learn.clip_norm.unwrap(), experiment.learn.learning_rate);
    let first = devices(&records[0]).iter().map(|device| device.sigma_required).fold(0.0, f64::max);
    let scale_squared = clip * clip / 21_880.0 + (5.0 * first).powi(2);
    for record in records {
        for device in devices(record) {
            let snr = 10f64.powf(device.sinr_db / 10.0);
            close(device.sigma_channel.powi(2), scale_squared / snr);
            let complex = 2.0 * device.sigma_artificial.powi(2);
            if complex > 0.0 {
                close(complex, device.sigma_required.powi(2));
            }
            let sensitivity = 2.0 * rate * clip / f64::from(device.samples);
            let sigma = (complex + device.sigma_channel.powi(2)).sqrt();
            close(device.epsilon, sensitivity * (2.0 * (1.25 / 1e-5f64).ln()).sqrt() / sigma);
        }
    }
}

fn devices(record: &RoundRecord) -> &[DeviceRecord] {
    let DeviceRecords::List(devices) = &record.devices else { panic!("no list") };
    assert_eq!(devices.len(), 15, "all take part");
    devices
}
