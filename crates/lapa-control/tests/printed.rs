//! experiments/paper/printed.toml: the paper's system as printed.

use std::fs;
use std::ops::ControlFlow;

use lapa::config::{Experiment, Override, Profile};
use lapa::data::digits;
use lapa::run::Outcome;
use lapa_control::phases::{Destination, Job, PhaseEvent};
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
#[test]
fn the_printed_file_runs_from_data_to_power() {
    let small = [
        "data.name=synthetic",
        "run.rounds=4",
        "run.threads=1",
        "partition.mix.iid_samples=[20, 40]",
        "partition.mix.non_iid_samples=[20, 40]",
        "control.ddpg.episodes=2",
        "control.ddpg.steps=20",
    ];
    let flags: Vec<Override> = small.iter().map(|c| Override::parse(c).unwrap()).collect();
    let text = fs::read_to_string(PATH).unwrap();
    let experiment = Experiment::from_toml(&text, PATH, &flags).unwrap();
    let place = TempDir::new().unwrap();
    let out = place.path().join("run");
    let mut evaluations = 0;
    let job = Job::create(experiment, digits(2000, 100), Destination::Folder(&out));
    let end = job.unwrap().execute(&mut |event| {
        if let PhaseEvent::Optimizing { progress, .. } = event {
            evaluations = progress.evaluations;
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(end.unwrap(), Outcome::Finished(_)));
    assert!(evaluations >= 2 * 20, "{evaluations}");
    let report = fs::read_to_string(out.join("power.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report["run"]["own"].as_f64().unwrap() > 0.0, "{report}");
}
