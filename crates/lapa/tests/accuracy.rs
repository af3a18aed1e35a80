//! Accuracy by class and by device, against a twin that looks at one test image at a time.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use lapa::config::{Experiment, Override};
use lapa::data::{Dataset, digits};
use lapa::model::{Batch, Worker};
use lapa::run::{CheckedRun, Outcome, Run, RunEvent, RunFolder, Summary};
use lapa::simulation::Simulation;
use serde_json::Value;
use tempfile::TempDir;

/// Test images of which one class is missing.
fn data() -> Dataset {
    let mut data = digits(700, 200);
    let others = (0..200).filter(|&i| data.test.labels[i as usize] != 4).collect::<Vec<_>>();
    data.test = data.test.select(&others);
    data
}

fn experiment(changes: &[&str]) -> Experiment {
    let text = "
        data = { name = 'synthetic' }
        model.name = 'logistic'
        run = { rounds = 4, seed = 5, threads = 2, evaluate_every = 3, checkpoint_every = 1 }
        partition.mix = { iid = 2, non_iid = 3, iid_samples = [30, 60], non_iid_samples = [20, 40] }
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Experiment::from_toml(text, "test", &changes).unwrap()
}

/// Whole runs in memory: the simulation after its last round, and its summary.
fn finished(changes: &[&str]) -> (Simulation, Summary) {
    let mut simulation = Simulation::new(experiment(changes), data()).unwrap();
    let rounds = simulation.experiment().run.rounds;
    let records: Vec<_> = (0..rounds).map(|_| simulation.next_round().unwrap()).collect();
    let summary = simulation.summary(&records, 0.0).unwrap();
    (simulation, summary)
}

/// The class that the model gives test image `i`, by itself.
fn predicted(worker: &mut Worker, simulation: &Simulation, i: u32) -> usize {
    let (model, data) = (simulation.model(), &simulation.data().test);
    let batch = Batch { data, samples: &[i] };
    let logits = worker.logits(model.evaluated(), &model.statistics, batch);
    (0..logits.len()).fold(0, |best, class| if logits[class] > logits[best] { class } else { best })
}

#[test]
fn a_summary_counts_every_test_image() {
    for changes in [
        &["privacy.epsilon=8"][..],
        &["profile=paper", "model.name=cnn"],
        &["profile=certified", "model.name=cnn", "learn.averaging=0.5"],
    ] {
        let (simulation, summary) = finished(changes);
        let spec = &simulation.experiment().model;
        let data = simulation.data();
        let network = lapa::model::network(spec, data.test.shape, data.classes).unwrap();
        let mut worker = Worker::new(Arc::new(network));
        let mut counts = vec![vec![0; 10]; 10];
        for i in 0..data.test.len() as u32 {
            let label = usize::from(data.test.labels[i as usize]);
            counts[label][predicted(&mut worker, &simulation, i)] += 1;
        }
        let matrix = summary.confusion.unwrap();
        assert_eq!(Vec::from(matrix.clone()), counts, "{changes:?}");
        assert_eq!(matrix.accuracy(), summary.accuracy);
        for (class, row) in counts.iter().enumerate() {
            let all: u32 = row.iter().sum();
            let expected = (class != 4).then(|| f64::from(row[class]) / f64::from(all));
            assert_eq!(summary.class_accuracy[class], expected);
        }
        // Record by record, those of the class without test images left out.
        let devices = summary.device_accuracy.unwrap();
        assert_eq!((devices.count, devices.devices.len()), (5, 5));
        for one in &devices.devices {
            let held = simulation.records().of(one.device);
            assert_eq!(one.samples as usize, held.len());
            let known: Vec<f64> = held
                .iter()
                .filter_map(|&record| {
                    summary.class_accuracy[usize::from(data.train.labels[record as usize])]
                })
                .collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            assert!((one.accuracy - mean).abs() < 1e-12, "{} {mean}", one.accuracy);
        }
    }
}

#[test]
fn many_devices_are_counted_and_only_the_ends_listed() {
    let many = ["partition.scheme=virtual", "partition.virtual.samples=[5, 10]"];
    let with = |more: &[&str]| {
        let (simulation, summary) = finished(&[&many[..], more].concat());
        let (records, labels) = (simulation.records(), &simulation.data().train.labels);
        // A device that holds nothing but the class without test images has no accuracy.
        let tested =
            |device: &u32| records.label_counts(*device, labels, 10)[4] < records.size(*device);
        let count = (0..records.devices() as u32).filter(tested).count();
        let all = summary.device_accuracy.unwrap();
        assert_eq!(all.count as usize, count);
        all
    };
    let few = with(&["partition.virtual.devices=99", "run.participation=0.1"]);
    assert_eq!((few.count, few.devices.len()), (99, 99));
    let large = ["partition.virtual.devices=3000", "run.participation=0.01"];
    let all = with(&large);
    assert!(all.count > 2990 && all.devices.len() == 20 && all.is_cut());
    assert_eq!(all, with(&[&large[..], &["run.threads=1"]].concat()));
    let [first, last] = [all.devices[0], all.devices[19]];
    assert_eq!((first.accuracy, last.accuracy), (all.quantiles.min, all.quantiles.max));
}

/// No noise covers what follows from the labels of a device.
#[test]
fn real_releases_have_no_accuracy_of_devices() {
    let place = TempDir::new().unwrap();
    let experiment = experiment(&["privacy.epsilon=8", "run.entropy=os"]);
    let run = Run::create(experiment, data(), &place.path().join("run")).unwrap();
    let summary = finish(run);
    assert!(summary.confusion.is_some() && summary.class_accuracy.len() == 10);
    assert_eq!(summary.device_accuracy, None);
}

/// A summary tells of an evaluation on record, not of a model that has gone on since.
#[test]
fn a_summary_between_two_evaluations_has_no_classes() {
    let mut simulation = Simulation::new(experiment(&[]), data()).unwrap();
    let mut records = vec![simulation.next_round().unwrap()];
    let summary = simulation.summary(&records, 0.0).unwrap();
    assert_eq!((summary.accuracy, summary.confusion), (None, None));
    assert!(summary.class_accuracy.is_empty() && summary.device_accuracy.is_none());
    records.push(simulation.next_round().unwrap());
    records.push(simulation.next_round().unwrap());
    assert!(simulation.summary(&records, 0.0).unwrap().confusion.is_some());
    simulation.next_round().unwrap();
    assert_eq!(simulation.summary(&records, 0.0).unwrap().confusion, None);
}

fn run(path: &Path) -> Run {
    Run::create(experiment(&["privacy.epsilon=8"]), data(), path).unwrap()
}

fn resumed(path: &Path) -> Summary {
    let folder = RunFolder::open(path).unwrap();
    let experiment = folder.experiment().unwrap();
    let run = Run::resume(folder, experiment, data()).unwrap();
    finish(run)
}

fn finish(run: Run) -> Summary {
    match run.execute(&mut |_| ControlFlow::Continue(())).unwrap() {
        Outcome::Finished(summary) => *summary,
        Outcome::Stopped { round } => panic!("stopped after round {round}"),
    }
}

#[test]
fn a_resumed_run_has_the_same_summary() {
    let place = TempDir::new().unwrap();
    let (whole, stopped) = (place.path().join("whole"), place.path().join("stopped"));
    let expected = Summary { seconds: 0.0, ..finish(run(&whole)) };
    assert!(expected.confusion.is_some() && expected.device_accuracy.is_some());
    let outcome = run(&stopped).execute(&mut |event| match event {
        RunEvent::Round(record) if record.round == 2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert!(matches!(outcome, Ok(Outcome::Stopped { round: 2 })));
    // The second time all rounds are done, and nothing was evaluated yet.
    for _ in 0..2 {
        assert_eq!(Summary { seconds: 0.0, ..resumed(&stopped) }, expected);
        let read = CheckedRun::read(&stopped).unwrap().unwrap().summary;
        assert_eq!(Summary { seconds: 0.0, ..read }, expected);
    }
}

#[test]
fn old_summaries_are_read_and_altered_ones_are_not() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    finish(run(&path));
    let file = path.join("summary.json");
    let whole: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let read = |change: &dyn Fn(&mut Value)| {
        let mut value = whole.clone();
        change(&mut value);
        fs::write(&file, value.to_string()).unwrap();
        CheckedRun::read(&path).map(|run| run.unwrap().summary).map_err(|error| error.to_string())
    };
    let old = read(&|value| {
        let fields = value.as_object_mut().unwrap();
        for name in ["class_accuracy", "confusion", "device_accuracy"] {
            assert!(fields.remove(name).is_some(), "{name}");
        }
    });
    assert_eq!(old.unwrap().confusion, None);
    for (change, expected) in [
        (
            &(|value: &mut Value| value["class_accuracy"][0] = 0.5.into()) as &dyn Fn(&mut Value),
            "class_accuracy is not that of confusion",
        ),
        (&|value| value["confusion"][0][0] = 9999.into(), "accuracy is not that of confusion"),
        (&|value| value["confusion"][3] = Value::Array(vec![]), "0 counts of class 3; expected 10"),
        (&|value| value["device_accuracy"]["devices"][0]["device"] = 5.into(), "expected 0 to 4"),
        (
            &|value| value["device_accuracy"]["devices"][0]["accuracy"] = 1.5.into(),
            "expected 0 to 1",
        ),
    ] {
        let error = read(change).unwrap_err();
        assert!(error.contains("summary.json") && error.contains(expected), "{error}");
    }
}
