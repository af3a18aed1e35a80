//! The same bits on any number of threads, and after any interruption.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use lapa::run::{Outcome, Run, RunEvent, RunFolder};
use lapa_privacy::Event;
use serde_json::Value;

use super::*;

/// Every uplink, receiver, access and rule of weights, with and without noise; links that change
/// every other round, and devices that skip rounds.
const KINDS: [&[&str]; 9] = [
    &["transmit.uplink=analog", "radio.redraw_every=2"],
    &[
        "transmit.uplink=analog",
        "transmit.perfect_sic=false",
        "transmit.receiver=mmse",
        "aggregate.rule=fedadp",
        "run.participation=0.6",
        "privacy.epsilon=4",
    ],
    &[
        "transmit.uplink=digital",
        "transmit.perfect_sic=false",
        "aggregate.rule=wasserstein",
        "aggregate.ser_threshold=0.3",
        "radio.redraw_every=2",
        "privacy.epsilon=4",
    ],
    &["transmit.uplink=signal", "aggregate.rule=fedadp", "privacy.allocator=lapa"],
    &[
        "transmit.uplink=signal",
        "transmit.signal.symbols=digital",
        "transmit.perfect_sic=false",
        "transmit.receiver=zero-forcing",
        "radio.fading=independent",
    ],
    &[
        "transmit.uplink=analog",
        "transmit.access=orthogonal",
        "aggregate.rule=wasserstein",
        "privacy.allocator=lapa",
        "privacy.channel_trust=1",
        "privacy.lapa.window=2",
        "radio.redraw_every=2",
    ],
    &[
        "profile=paper",
        "privacy.epsilon=8",
        "aggregate.rule=wasserstein",
        "aggregate.sinr_threshold_db=8",
        "radio.redraw_every=2",
    ],
    &[
        "transmit.uplink=analog",
        "transmit.access=orthogonal",
        "aggregate.rule=noise-aware",
        "aggregate.sinr_threshold_db=0",
        "privacy.epsilon=4",
        "radio.redraw_every=2",
    ],
    // Nobody is ever heard.
    &["privacy.epsilon=4", "aggregate.sinr_threshold_db=200", "aggregate.rule=wasserstein"],
];

#[test]
fn results_do_not_depend_on_threads() {
    for kind in KINDS {
        let on = |more: &str| {
            let mut federation = federation(&[kind, &[more, "run.rounds=3"]].concat());
            let record = |_| RoundRecord { seconds: 0.0, ..federation.next_round().unwrap() };
            let records: Vec<RoundRecord> = (0..3).map(record).collect();
            let bits = |value: &f32| value.to_bits();
            (records, federation.model().parameters.iter().map(bits).collect::<Vec<u32>>())
        };
        let one = on("run.threads=1");
        assert_eq!(one, on("run.threads=2"), "{kind:?}");
        assert_eq!(one, on("run.threads=5"), "{kind:?}");
        assert_ne!(one, on("run.seed=4"), "{kind:?}");
    }
}

pub(super) fn create(changes: &[&str], path: &Path) -> Run {
    Run::create(experiment(changes), data(), path).unwrap()
}

pub(super) fn resume(path: &Path) -> Run {
    let folder = RunFolder::open(path).unwrap();
    let experiment = folder.experiment().unwrap();
    Run::resume(folder, experiment, data()).unwrap()
}

pub(super) fn finish(run: Run) {
    let outcome = run.execute(&mut |_| ControlFlow::Continue(())).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)));
}

/// Runs until `round` rounds are done, then breaks off.
pub(super) fn stop_after(run: Run, round: u32) {
    let outcome = run.execute(&mut |event| match event {
        RunEvent::Round(record) if record.round == round => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(outcome.unwrap(), Outcome::Stopped { round });
}

/// As after a kill in round 3: the checkpoint is that of the beginning, all else is ahead of it.
pub(super) fn kill_in_round_three(run: Run) {
    let checkpoint = run.folder().join("checkpoint.safetensors");
    let beginning = fs::read(&checkpoint).unwrap();
    stop_after(run, 2);
    fs::write(checkpoint, beginning).unwrap();
}

/// Parts that must be the same in two runs: the model's bytes, metrics and summary without times.
pub(super) fn contents(folder: &Path) -> (Vec<u8>, Vec<Value>, Value) {
    let timeless = |text: &str| {
        let mut value: Value = serde_json::from_str(text).unwrap();
        value.as_object_mut().unwrap().remove("seconds").unwrap();
        value
    };
    let metrics = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let summary = fs::read_to_string(folder.join("summary.json")).unwrap();
    (
        fs::read(folder.join("model.safetensors")).unwrap(),
        metrics.lines().map(timeless).collect(),
        timeless(&summary),
    )
}

fn releases(folder: &Path) -> Vec<Entry> {
    Ledger::open_read_only(&folder.join("ledger.db")).unwrap().releases().unwrap()
}

#[test]
fn a_resumed_run_is_the_undisturbed_run() {
    for kind in KINDS {
        let place = TempDir::new().unwrap();
        let [undisturbed, stopped, killed] =
            ["undisturbed", "stopped", "killed"].map(|name| place.path().join(name));
        finish(create(kind, &undisturbed));
        let expected = contents(&undisturbed);
        let run = create(kind, &stopped);
        stop_after(run, 1);
        stop_after(resume(&stopped), 3);
        finish(resume(&stopped));
        assert_eq!(contents(&stopped), expected, "{kind:?}");
        kill_in_round_three(create(kind, &killed));
        finish(resume(&killed));
        assert_eq!(contents(&killed), expected, "{kind:?}, killed");
        let charged = |folder: &Path| -> Vec<_> {
            let paid = |recorded: Entry| (recorded.round, recorded.device, recorded.cost);
            releases(folder).into_iter().map(paid).collect()
        };
        assert_eq!(charged(&killed), charged(&undisturbed), "{kind:?}: charged twice");
    }
}

/// A release cannot be drawn again: with the operating system's entropy a killed
/// run pays for its histogram and its rounds anew, within the same budget.
#[test]
fn real_releases_are_paid_again() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    let changes = ["aggregate.rule=wasserstein", "privacy.epsilon=4", "run.entropy=os"];
    kill_in_round_three(create(&changes, &path));
    let capacities: Vec<f64> = {
        let ledger = Ledger::open_read_only(&path.join("ledger.db")).unwrap();
        let declared = ledger.declarations().unwrap();
        declared.iter().flat_map(|d| d.devices.clone().map(|_| d.budget.capacity)).collect()
    };
    finish(resume(&path));
    let releases = releases(&path);
    for (device, capacity) in (0..).zip(capacities) {
        let own: Vec<&Entry> = releases.iter().filter(|r| r.device == device).collect();
        let attempts = |round: u32| -> Vec<u32> {
            own.iter().filter(|r| r.round == round).map(|r| r.attempt).collect()
        };
        for round in 0..3 {
            assert_eq!(attempts(round), [1, 2], "device {device}, round {round}");
        }
        assert_eq!(attempts(3), [1]);
        let histogram = |recorded: &&&Entry| matches!(recorded.event, Event::Histogram(_));
        assert_eq!(own.iter().filter(histogram).count(), 2);
        assert!(own.iter().map(|recorded| recorded.cost).sum::<f64>() <= capacity);
    }
}
