//! Runs: the same bits on any number of threads and after any interruption, and folders that are
//! either whole or not there.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;

use lapa::config::{Experiment, Override};
use lapa::data::{DataName, Dataset, Split};
use lapa::error::FederationError;
use lapa::observe::{DeviceRecords, RoundRecord};
use lapa::run::{Outcome, Run, RunError, RunEvent, RunFolder, Summary, read_summary};
use lapa::simulation::Simulation;
use serde_json::Value;
use tempfile::TempDir;

/// The first few hundred synthetic digits.
fn data() -> Dataset {
    static DATA: OnceLock<Dataset> = OnceLock::new();
    let data = DATA.get_or_init(|| {
        let mut data = lapa::data::load(&DataName::Synthetic, &mut |_| {}).unwrap();
        shorten(&mut data.train, 600);
        shorten(&mut data.test, 300);
        data
    });
    data.clone()
}

fn shorten(split: &mut Split, len: usize) {
    *split = split.select(&(0..len as u32).collect::<Vec<_>>());
}

/// Five devices, seven rounds; `changes` win.
fn experiment(changes: &[&str]) -> Experiment {
    let text = "
        data.name = 'synthetic'
        run = { rounds = 7, seed = 5, threads = 2, evaluate_every = 3, checkpoint_every = 3 }
        learn = { batch_fraction = 0.25 }
        [partition.mix]
        iid = 2
        non_iid = 3
        iid_samples = [30, 60]
        non_iid_samples = [20, 40]
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Experiment::from_toml(text, "test", &changes).unwrap()
}

/// Batch norm and group norm with per-sample clipping; gradients and epochs; some or all devices;
/// without noise and with noise of every kind.
const KINDS: [&[&str]; 11] = [
    &["profile=paper"],
    &["profile=paper", "learn.update=epoch", "run.participation=0.5"],
    &["profile=certified"],
    &["profile=certified", "learn.update=epoch"],
    &["profile=certified", "run.participation=0.6", "observe.devices=summary"],
    &["privacy.epsilon=4", "run.participation=0.6"],
    &["privacy.allocator=lapa", "privacy.lapa.window=2", "run.participation=0.6"],
    &["privacy.allocator=arb", "learn.sampling=full", "learn.batch_fraction=1"],
    &["privacy.epsilon=1", "privacy.noise=discrete-gaussian", "model.name=logistic"],
    &["profile=paper", "privacy.epsilon=8", "privacy.lapa.window=2"],
    &["profile=paper", "privacy.allocator=arb", "learn.update=epoch"],
];

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Every round of an experiment without its time, and the bits of the model after it.
fn rounds(experiment: Experiment) -> (Vec<RoundRecord>, [Vec<u32>; 3]) {
    let rounds = experiment.run.rounds;
    let mut federation = Simulation::new(experiment, data()).unwrap();
    let record = |_| RoundRecord { seconds: 0.0, ..federation.next_round().unwrap() };
    let records = (0..rounds).map(record).collect();
    let model = federation.model();
    (records, [&model.parameters, &model.velocity, &model.statistics].map(|part| bits(part)))
}

#[test]
fn results_do_not_depend_on_threads() {
    for kind in KINDS {
        let on = |threads: &str| rounds(experiment(&[kind, &[threads]].concat()));
        let one = on("run.threads=1");
        assert_eq!(one, on("run.threads=2"), "{kind:?}");
        assert_eq!(one, on("run.threads=8"), "{kind:?}");
        let other_seed = rounds(experiment(&[kind, &["run.seed=6"]].concat()));
        assert_ne!(one.1, other_seed.1, "{kind:?}: the seed changes nothing");
    }
}

#[test]
fn records_hold_the_participants_and_their_weights() {
    let (records, _) = rounds(experiment(&["run.participation=0.5", "run.rounds=12"]));
    let mut groups = BTreeSet::new();
    for (record, round) in records.iter().zip(1..) {
        assert_eq!(record.round, round);
        assert_eq!(record.accuracy.is_some(), round % 3 == 0);
        let DeviceRecords::List(devices) = &record.devices else { panic!("no list") };
        // Half of five, rounded up; 21,840 weights and 40 of the norm, 4 bytes each.
        assert_eq!(devices.len(), 3);
        assert_eq!(record.uplink_bytes, 3 * 21_880 * 4);
        assert_eq!(record.downlink_bytes, record.uplink_bytes);
        assert!(devices.is_sorted_by_key(|device| device.device));
        let total: u32 = devices.iter().map(|device| device.samples).sum();
        for device in devices {
            assert_eq!(device.weight, f64::from(device.samples) / f64::from(total));
        }
        groups.insert(devices.iter().map(|device| device.device).collect::<Vec<_>>());
    }
    assert!(groups.len() > 3, "the same devices again and again: {groups:?}");
    assert_eq!(groups.iter().flatten().collect::<BTreeSet<_>>().len(), 5);
}

#[test]
fn a_summary_takes_the_place_of_the_device_list() {
    let (records, _) = rounds(experiment(&["observe.devices=summary"]));
    let (lists, _) = rounds(experiment(&[]));
    for (record, list) in records.iter().zip(&lists) {
        let DeviceRecords::Summary(summary) = &record.devices else { panic!("no summary") };
        let DeviceRecords::List(list) = &list.devices else { panic!("no list") };
        assert_eq!(summary.count, 5);
        let norms = summary.gradient_norm.unwrap();
        let mut expected: Vec<f64> =
            list.iter().map(|device| device.gradient_norm.unwrap()).collect();
        expected.sort_by(f64::total_cmp);
        assert_eq!([norms.min, norms.median, norms.max], [expected[0], expected[2], expected[4]]);
    }
}

fn finish(run: Run) -> Summary {
    match run.execute(&mut |_| ControlFlow::Continue(())).unwrap() {
        Outcome::Finished(summary) => *summary,
        Outcome::Stopped { round } => panic!("stopped after round {round}"),
    }
}

fn resume(path: &Path) -> Result<Run, RunError> {
    let folder = RunFolder::open(path)?;
    let experiment = folder.experiment()?;
    Run::resume(folder, experiment, data())
}

/// Runs until `round` rounds are done, then breaks off.
fn stop_after(run: Run, round: u32) {
    let outcome = run.execute(&mut |event| {
        let done = match event {
            RunEvent::Started { done, .. } => done,
            RunEvent::Round(record) => record.round,
            _ => 0,
        };
        if done == round { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(outcome.unwrap(), Outcome::Stopped { round });
}

/// Parts that must be the same in two runs: the files, the model's bytes, the metrics without times.
fn contents(folder: &Path) -> (Vec<String>, Vec<u8>, Vec<Value>) {
    let lines = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let metrics = lines.lines().map(|line| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        value.as_object_mut().unwrap().shift_remove("seconds").unwrap();
        value
    });
    (names(folder), fs::read(folder.join("model.safetensors")).unwrap(), metrics.collect())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_resumed_run_is_the_undisturbed_run() {
    for (kind, one) in KINDS.into_iter().zip([0, 1, 4, 5, 6]) {
        let place = TempDir::new().unwrap();
        let undisturbed = place.path().join("undisturbed");
        finish(Run::create(experiment(kind), data(), &undisturbed).unwrap());
        let expected = contents(&undisturbed);
        // Stops with and without a checkpoint of their own; all of them for one kind of run.
        for round in if one == 0 { 0..7 } else { one..one + 1 } {
            let path = place.path().join(format!("after-{round}"));
            stop_after(Run::create(experiment(kind), data(), &path).unwrap(), round);
            assert_eq!(read_summary(&path).unwrap(), None);
            finish(resume(&path).unwrap());
            assert_eq!(contents(&path), expected, "{kind:?}, after round {round}");
        }
    }
}

/// Rounds whose updates are summed as they arrive, and memory of those devices only that took part.
#[test]
fn a_run_of_many_devices_goes_on_as_it_was() {
    let many =
        ["partition.scheme=virtual", "partition.virtual.samples=[5, 10]", "model.name=logistic"];
    for (devices, more) in [
        (240, &["privacy.epsilon=4", "run.rounds=4", "transmit.uplink=analog"][..]),
        (10, &["profile=paper", "aggregate.rule=fedadp"]),
        (10, &["privacy.epsilon=4", "privacy.allocator=lapa"]),
    ] {
        let count = format!("partition.virtual.devices={devices}");
        let changes = [&many[..], more, &["run.participation=0.5", &count]].concat();
        let place = TempDir::new().unwrap();
        let [undisturbed, path] = ["undisturbed", "stopped"].map(|name| place.path().join(name));
        finish(Run::create(experiment(&changes), data(), &undisturbed).unwrap());
        stop_after(Run::create(experiment(&changes), data(), &path).unwrap(), 2);
        finish(resume(&path).unwrap());
        let expected = contents(&undisturbed);
        assert_eq!(contents(&path), expected, "{changes:?}");
        assert_eq!(expected.2[0]["devices"]["count"].is_null(), devices < 200, "{changes:?}");
    }
}

#[test]
fn rounds_after_the_checkpoint_are_repeated() {
    let place = TempDir::new().unwrap();
    let undisturbed = place.path().join("undisturbed");
    finish(Run::create(experiment(&[]), data(), &undisturbed).unwrap());
    let path = place.path().join("killed");
    let run = Run::create(experiment(&[]), data(), &path).unwrap();
    let saved = path.join("saved");
    // As after a kill in round 6: the checkpoint is that of round 3, the last line is torn.
    stop_after(run, 3);
    fs::copy(path.join("checkpoint.safetensors"), &saved).unwrap();
    stop_after(resume(&path).unwrap(), 5);
    fs::rename(&saved, path.join("checkpoint.safetensors")).unwrap();
    let metrics = path.join("metrics.jsonl");
    let torn = fs::read_to_string(&metrics).unwrap() + "{\"round\":6,\"accu";
    fs::write(&metrics, torn).unwrap();
    finish(resume(&path).unwrap());
    assert_eq!(contents(&path), contents(&undisturbed));
}

#[test]
fn a_finished_run_stays_finished() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    let summary = finish(Run::create(experiment(&[]), data(), &path).unwrap());
    let before = contents(&path);
    assert_eq!(finish(resume(&path).unwrap()), summary);
    assert_eq!(read_summary(&path).unwrap(), Some(summary.clone()));
    assert_eq!(contents(&path), before);
    let last = before.2.last().unwrap();
    assert_eq!(Some(summary.accuracy.unwrap()), last["accuracy"].as_f64());
    assert_eq!((summary.rounds, summary.devices), (7, 5));
}

#[test]
fn a_new_folder_appears_whole_and_alone() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("deep/run");
    let run = Run::create(experiment(&[]), data(), &path).unwrap();
    let files = [
        ".lock",
        "checkpoint.safetensors",
        "config.resolved.toml",
        "ledger.db",
        "ledger.db-shm",
        "ledger.db-wal",
        "manifest.json",
        "metrics.jsonl",
    ];
    assert_eq!(names(&path), files);
    assert_eq!(names(path.parent().unwrap()), ["run"]);
    assert!(matches!(RunFolder::open(&path), Err(RunError::Busy(busy)) if busy == path));
    drop(run);
    let folder = RunFolder::open(&path).unwrap();
    assert_eq!(folder.experiment().unwrap(), experiment(&[]));
    let manifest = folder.manifest().unwrap();
    assert_eq!((manifest.seed, manifest.threads), (5, 2));
    assert_eq!(manifest.data.files, data().hashes);
}

#[test]
fn a_run_that_cannot_begin_leaves_nothing() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    let begin = |changes: &[&str], path: &Path| {
        Run::create(experiment(changes), data(), path).map(|_| ()).unwrap_err()
    };
    let error = begin(&["partition.mix.iid_samples=900"], &path);
    assert!(matches!(error, RunError::Federation(FederationError::Partition(_))), "{error}");
    assert!(matches!(begin(&[], &place.path().join("no/..")), RunError::NoName(_)));
    assert_eq!(names(place.path()), [""; 0]);

    fs::write(&path, "mine").unwrap();
    assert!(matches!(begin(&[], &path), RunError::Exists(_)));
    let error = begin(&[], &path.join("below-a-file"));
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(names(place.path()), ["run"]);
}

#[test]
fn other_data_and_other_folders_are_refused() {
    let place = TempDir::new().unwrap();
    assert!(matches!(RunFolder::open(place.path()), Err(RunError::NotARun(_))));
    let path = place.path().join("run");
    stop_after(Run::create(experiment(&[]), data(), &path).unwrap(), 2);
    let mut other = data();
    other.hashes[1].sha256.replace_range(..4, "0000");
    let folder = RunFolder::open(&path).unwrap();
    let refused = Run::resume(folder, experiment(&[]), other).map(|_| ()).unwrap_err();
    assert!(matches!(refused, RunError::OtherData { .. }), "{refused}");
    assert!(resume(&path).is_ok(), "a refusal must not harm the folder");
}

#[test]
fn damaged_folders_give_errors_that_name_the_file() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    stop_after(Run::create(experiment(&[]), data(), &path).unwrap(), 4);
    let mlp = place.path().join("mlp");
    stop_after(Run::create(experiment(&["model.name=mlp"]), data(), &mlp).unwrap(), 1);

    let damage = |name: &str, bytes: &[u8]| {
        let file = path.join(name);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, bytes).unwrap();
        let error = resume(&path).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        fs::write(&file, whole).unwrap();
    };
    let checkpoint = fs::read(path.join("checkpoint.safetensors")).unwrap();
    for len in [0, 1, 7, 8, 9, 100, checkpoint.len() / 2, checkpoint.len() - 1] {
        damage("checkpoint.safetensors", &checkpoint[..len]);
    }
    let mut header = checkpoint.clone();
    header[..8].fill(0xff);
    damage("checkpoint.safetensors", &header);
    let text = String::from_utf8_lossy(&checkpoint);
    let at = text.find("\\\"round\\\"").expect("the state is JSON in a JSON string");
    let mut state = checkpoint.clone();
    state[at + 2] = b'R';
    damage("checkpoint.safetensors", &state);
    damage("checkpoint.safetensors", &fs::read(mlp.join("checkpoint.safetensors")).unwrap());
    let metrics = fs::read(path.join("metrics.jsonl")).unwrap();
    damage("metrics.jsonl", &metrics[..metrics.len() - 1]);
    damage("metrics.jsonl", &[b' '; 100_000]);
    damage("manifest.json", b"{}");
    damage("config.resolved.toml", b"run = 3");
    finish(resume(&path).unwrap());
}

#[test]
fn divergence_is_said_and_leaves_the_last_checkpoint() {
    let diverging: [&[&str]; 3] = [
        &["learn.learning_rate=1e6", "learn.clip=none", "model.norm=none"],
        &["learn.learning_rate=1e30", "learn.update=epoch"],
        &["learn.learning_rate=1e38", "profile=paper"],
    ];
    for changes in diverging {
        let place = TempDir::new().unwrap();
        let path = place.path().join("run");
        let run = Run::create(experiment(changes), data(), &path).unwrap();
        let error = run.execute(&mut |_| ControlFlow::Continue(())).unwrap_err();
        let diverged = matches!(
            error,
            RunError::Federation(
                FederationError::Diverged { .. } | FederationError::LossNotFinite { .. }
            )
        );
        assert!(diverged, "{changes:?}: {error}");
        let text = error.to_string();
        assert!(text.contains("diverged") && text.contains("lower learn.learning_rate"), "{text}");
        assert_eq!(read_summary(&path).unwrap(), None);
        lapa::observe::read_metrics(&path.join("metrics.jsonl")).unwrap();
        let again = resume(&path).unwrap().execute(&mut |_| ControlFlow::Continue(()));
        assert_eq!(again.unwrap_err().to_string(), text);
    }
}
