//! Pilot, choice, run: whole, broken off, charged.

mod worth;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use lapa::config::{Experiment, Override, Powers};
use lapa::data::{Dataset, digits};
use lapa::model::Shape;
use lapa::observe::{DeviceRecords, RoundRecord, read_metrics};
use lapa::optimize::{Objective, PowerChoice};
use lapa::run::{Outcome, RunEvent, SwitchingRound, read_summary};
use lapa::simulation::Simulation;
use lapa_control::phases::{
    Choice, Chooser, Destination, InMemory, Job, Judgment, Live, PhaseError, PhaseEvent, Pilot,
    Unfinished, execute_pilots, interrupted, limits, pilot_experiment, pilot_folder, problem,
};
use lapa_control::power::Average;
use lapa_privacy::ledger::Ledger;
use tempfile::TempDir;

const SMALL: &str = r#"
    profile = "paper"
    run = { rounds = 8, evaluate_every = 8, checkpoint_every = 2, threads = 1 }
    data.name = "synthetic"
    partition.mix = { iid = 2, non_iid = 2, iid_samples = 60, non_iid_samples = 90 }
    model.name = "logistic"
    privacy = { initial_sigma = 0.05, channel_trust = 1 }
    radio.noise_power_w = 1e-12
    transmit = { uplink = "analog", access = "orthogonal" }
    control = { noise = "top-up", power = "cma-es", cma-es.evaluations = 200 }
"#;

/// Devices whose δ is one over their samples, of which a run warns.
const LARGE_DELTA: [&str; 3] =
    ["partition.mix.non_iid=0", "partition.mix.iid_samples=100", "privacy.delta=0.01"];

fn experiment(changes: &[&str]) -> Experiment {
    let flags: Vec<Override> = changes.iter().map(|c| Override::parse(c).unwrap()).collect();
    Experiment::from_toml(SMALL, "small.toml", &flags).unwrap()
}

fn data() -> Dataset {
    digits(600, 100)
}

fn pilot_and_run(
    experiment: Experiment,
    data: Dataset,
    out: &Path,
    on_event: &mut dyn FnMut(PhaseEvent<'_>) -> ControlFlow<()>,
) -> Result<Outcome, PhaseError> {
    Job::create(experiment, data, Destination::Folder(out))?.execute(on_event)
}

/// Runs to the end, and says what was chosen.
fn finish(experiment: Experiment, out: &Path) -> Vec<f64> {
    let mut powers = Vec::new();
    let end = pilot_and_run(experiment, data(), out, &mut |event| {
        if let PhaseEvent::Chosen(choice) = event {
            powers = choice.powers_w.clone();
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(end.unwrap(), Outcome::Finished(_)));
    powers
}

/// metrics.jsonl without the times.
fn metrics(folder: &Path) -> Vec<String> {
    let mut records = read_metrics(&folder.join("metrics.jsonl")).unwrap();
    records.iter_mut().for_each(|record| record.seconds = 0.0);
    records.iter().map(|record| format!("{record:?}")).collect()
}

/// power.json without the time that the choice took.
fn power_report(folder: &Path) -> serde_json::Value {
    let text = fs::read_to_string(folder.join("power.json")).unwrap();
    let mut report: serde_json::Value = serde_json::from_str(&text).unwrap();
    report["choice"]["seconds"] = 0.0.into();
    report
}

#[test]
fn the_run_has_the_powers_that_were_chosen() {
    let place = TempDir::new().unwrap();
    let out = place.path().join("run");
    let powers = finish(experiment(&[]), &out);
    let text = fs::read_to_string(out.join("config.resolved.toml")).unwrap();
    let resolved = Experiment::from_toml(&text, "resolved", &[]).unwrap();
    assert_eq!(resolved.transmit.power_w, Powers::Each(powers.clone()));
    let amplitudes: Vec<f64> = powers.iter().map(|power| power.sqrt()).collect();
    let (limits, total) = (limits(&resolved).unwrap(), powers.iter().sum::<f64>());
    assert!(total <= limits.most_total_w() * (1.0 + 1e-12), "{total}");
    assert!(total >= limits.least_total_w() * (1.0 - 1e-9), "{total}");
    assert!(amplitudes.iter().all(|p| p * p <= limits.most_each_w() * (1.0 + 1e-12)));
    // A pilot on digits leaves no trace in the run's ledger.
    let ledger = Ledger::open_read_only(&out.join("ledger.db")).unwrap();
    assert!(ledger.releases().unwrap().iter().all(|release| release.round <= 8));
    assert_eq!(ledger.releases().unwrap().len(), 4 * 8);
}

#[test]
fn a_pilot_whose_metrics_were_changed_is_refused_with_line_and_value() {
    let place = TempDir::new().unwrap();
    let folder = place.path().join("pilot");
    let go_on = || {
        let go = &mut |_: RunEvent<'_>| ControlFlow::Continue(());
        execute_pilots(&experiment(&[]), &data(), &folder, None, go)
    };
    go_on().unwrap();
    let path = folder.join("metrics.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let with = |at: usize, from: &str, to: &str| {
        let mut lines = lines.clone();
        let changed = lines[at].replace(from, to);
        assert_ne!(changed, lines[at]);
        lines[at] = &changed;
        lines.join("\n") + "\n"
    };
    let cases = [
        (with(7, "\"device\":3", "\"device\":99"), "line 8: device 99: expected 0 to 3"),
        (with(2, "\"device\":3", "\"device\":5"), "line 3: device 5: expected 0 to 3"),
        (with(2, "\"device\":3", "\"device\":1"), "line 3: device 1: expected each once"),
        (with(4, "\"round\":5", "\"round\":6"), "line 5: round 6: expected 5"),
        (lines[..2].join("\n") + "\n", "2 rounds, but config.resolved.toml says 8"),
        (format!("{text}{}\n", lines[7]), "line 9: round 8: expected the 8 rounds"),
    ];
    for (changed, words) in cases {
        fs::write(&path, changed).unwrap();
        let error = go_on().unwrap_err().to_string();
        assert!(error.contains("metrics.jsonl") && error.contains(words), "{words} in {error}");
    }
    fs::write(&path, text).unwrap();
    go_on().unwrap();
}

#[test]
fn a_run_broken_off_in_any_phase_ends_the_same() {
    let place = TempDir::new().unwrap();
    let whole = place.path().join("whole");
    finish(experiment(&[]), &whole);
    // In the pilot, in the search, in the rehearsal, after it, and in the run.
    for phase in 0..5 {
        let out = place.path().join(format!("broken-{phase}"));
        let mut steps = 0;
        let end = pilot_and_run(experiment(&[]), data(), &out, &mut |event| {
            let here = match event {
                PhaseEvent::Pilot(RunEvent::Round(record)) => {
                    phase == if steps == 0 { 0 } else { 2 } && record.round == 3
                }
                PhaseEvent::Optimizing { .. } => {
                    steps += 1;
                    phase == 1 && steps == 50
                }
                PhaseEvent::Chosen(_) => phase == 3,
                PhaseEvent::Run(RunEvent::Round(record)) => phase == 4 && record.round == 3,
                _ => false,
            };
            if here { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match end.unwrap() {
            Outcome::Stopped { round: 0 } if phase < 4 => {
                assert!(pilot_folder(&out).exists() && !out.exists());
                let again = interrupted(&out).unwrap().unwrap();
                assert_eq!(again, experiment(&[]));
                finish(again, &out);
            }
            Outcome::Stopped { round: 3 } if phase == 4 => {
                assert_eq!(interrupted(&out).unwrap(), None);
                let job = Unfinished::open(&out).unwrap().resume(data()).unwrap();
                let mut judged = 0;
                job.execute(&mut |event| {
                    judged += usize::from(matches!(event, PhaseEvent::Judged(_)));
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(judged, 1, "a resumed run says its J, too");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(metrics(&out), metrics(&whole), "phase {phase}");
        assert_eq!(power_report(&out), power_report(&whole), "phase {phase}");
    }
}

/// ν and c from the trace give the noise that the pilot recorded, at its own powers: also with a fixed
/// scale, with all of σ² on a coordinate, and with complex noise, of which the record has the real
/// part's σ and P1 all of it.
#[test]
fn the_trace_knows_the_pilots_own_noise() {
    let printed =
        ["transmit.scale=fixed", "transmit.analog.variance=full", "privacy.noise=complex-gaussian"];
    let cases: [(&str, &[&str], f64); 4] = [
        ("always", &[], 1.0),
        ("top-up", &[], 1.0),
        ("always", &printed, 2.0),
        ("top-up", &printed, 2.0),
    ];
    for (rule, more, parts) in cases {
        let noise = format!("control.noise={rule}");
        let experiment = experiment(&[&[&noise, "radio.redraw_every=3"], more].concat());
        let pilot = pilot_experiment(&experiment, None, 0);
        let mut federation = Simulation::new(pilot, data()).unwrap();
        let records: Vec<_> = (0..8).map(|_| federation.next_round().unwrap()).collect();
        let pilot = Pilot::new(&federation, &records).unwrap();
        let problem = problem(&experiment, &pilot).unwrap();
        let equal = problem.limits().equal();
        let noise = problem.noise(&equal).unwrap();
        let mut seen = [false; 2];
        for (row, record) in records.iter().enumerate() {
            let DeviceRecords::List(devices) = &record.devices else { panic!() };
            for device in devices {
                let at = row * 4 + device.device as usize;
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (a + b);
                let artificial = parts.sqrt() * device.sigma_artificial;
                assert!(close(noise.artificial[at], artificial), "{rule} {more:?}");
                assert!(close(noise.channel[at], device.sigma_channel), "{rule} {more:?}");
                seen[usize::from(artificial < device.sigma_required * (1.0 - 1e-9))] = true;
            }
        }
        assert_eq!(seen[1], rule == "top-up", "some device leaves noise to the channel");
    }
}

const CERTIFIED: &str = "
    run = { rounds = 6, evaluate_every = 6, threads = 1 }
    data.name = \"synthetic\"
    partition.mix = { iid = 2, non_iid = 2, iid_samples = 60, non_iid_samples = 90 }
    model.name = \"logistic\"
    privacy = { epsilon = 4, channel_trust = 1 }
    transmit = { uplink = \"analog\", access = \"orthogonal\" }
    control = { noise = \"top-up\", power = \"closed-form\", pilot = \"private\", private.budget_fraction = 0.25 }
";

#[test]
fn a_pilot_on_private_data_is_charged_within_the_budget() {
    let place = TempDir::new().unwrap();
    let out = place.path().join("run");
    let experiment = Experiment::from_toml(CERTIFIED, "certified.toml", &[]).unwrap();
    finish(experiment.clone(), &out);
    let ledger = Ledger::open_read_only(&place.path().join("run-ledger.db")).unwrap();
    let releases = ledger.releases().unwrap();
    let runs: std::collections::HashSet<_> = releases.iter().map(|r| r.run.clone()).collect();
    assert_eq!(runs.len(), 2, "pilot and run share the ledger");
    let declared = ledger.declarations().unwrap();
    for device in 0..4 {
        let spent: f64 = releases.iter().filter(|r| r.device == device).map(|r| r.cost).sum();
        let most =
            declared.iter().filter(|t| t.devices.contains(&device)).map(|t| t.budget.capacity);
        let most = most.fold(0.0, f64::max);
        assert!(spent <= most * (1.0 + 1e-9), "{spent} of {most}");
        assert!(spent > 0.9 * most, "the run spends what the pilot left: {spent} of {most}");
    }
    let summary = read_summary(&out).unwrap().unwrap();
    assert_eq!(summary.privacy.epsilon_provable, 4.0);
    assert!(summary.privacy.epsilon_spent <= 4.0);
    assert!(matches!(summary.switching_round, Some(SwitchingRound::Each(each)) if each.len() == 4));
    // The pilot's own fraction.
    let pilot = fs::read_to_string(place.path().join("run-pilot/manifest.json")).unwrap();
    let spent = |device: u32| -> f64 {
        let own = releases.iter().filter(|r| r.device == device && pilot.contains(&r.run[..32]));
        own.map(|r| r.cost).sum()
    };
    let most = declared.iter().map(|t| t.budget.capacity).fold(0.0, f64::max);
    assert!((0..4).all(|device| (0.2..=0.25 + 1e-9).contains(&(spent(device) / most))));

    // Without its ledger the pilot must not be used.
    fs::remove_dir_all(&out).unwrap();
    fs::remove_file(place.path().join("run-ledger.db")).unwrap();
    let go = &mut |_: PhaseEvent<'_>| ControlFlow::Continue(());
    let error = pilot_and_run(experiment, data(), &out, go).unwrap_err();
    assert!(matches!(error, PhaseError::NotCharged { .. }), "{error}");
}

/// On basis paper pilots may train on the devices' own records: each with noise of its own, all of
/// them in the run's ledger, on the run's links and weights.
#[test]
fn pilots_on_basis_paper_share_links_and_ledger_and_not_their_noise() {
    let place = TempDir::new().unwrap();
    let out = place.path().join("run");
    let experiment = experiment(&["control.pilot=private", "control.pilots=3"]);
    let mut judged = None;
    let end = pilot_and_run(experiment.clone(), data(), &out, &mut |event| {
        if let PhaseEvent::Judged(sentence) = event {
            judged = Some(sentence.to_owned());
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(end.unwrap(), Outcome::Finished(_)));
    assert!(judged.unwrap().contains("times that of equal power"));
    let ledger = Ledger::open_read_only(&place.path().join("run-ledger.db")).unwrap();
    let releases = ledger.releases().unwrap();
    assert_eq!(releases.len(), 5 * 4 * 8, "three pilots, the rehearsal, the run");
    let own: f64 = releases.iter().filter(|r| r.device == 0).map(|r| r.cost).sum();
    let summary = read_summary(&out).unwrap().unwrap();
    let proven = lapa_privacy::accountant::gdp::epsilon(own.sqrt(), 1e-5).unwrap();
    assert!(summary.privacy.epsilon_provable >= proven * (1.0 - 1e-9), "the pilots count");

    let go = &mut |_: RunEvent<'_>| ControlFlow::Continue(());
    let ledger = Some(place.path().join("run-ledger.db"));
    let pilots = execute_pilots(&experiment, &data(), &pilot_folder(&out), ledger, go);
    let pilots = pilots.unwrap();
    let traces: Vec<_> = pilots.iter().map(|pilot| pilot.trace.arrays()).collect();
    assert_eq!(traces[0].nu_at_watt, traces[2].nu_at_watt);
    assert_eq!(traces[0].weights, traces[2].weights);
    assert_ne!(traces[0].sigma_required, traces[1].sigma_required);
    assert_ne!(traces[1].sigma_required, traces[2].sigma_required);

    // The objective is the mean.
    let mut each: Vec<_> =
        pilots.iter().map(|pilot| problem(&experiment, pilot).unwrap()).collect();
    let amplitudes = each[0].limits().full();
    let values = each.iter_mut().map(|one| one.evaluate(&amplitudes).unwrap().objective);
    let mean = values.sum::<f64>() / 3.0;
    let others = each.split_off(1);
    let mut average = Average::new(each.remove(0), others);
    let together = average.evaluate(&amplitudes).unwrap().objective;
    assert!((together / mean - 1.0).abs() < 1e-12);
}

#[test]
fn the_latest_choice_is_what_is_resumed() {
    let place = TempDir::new().unwrap();
    let out = place.path().join("run");
    for power in ["cma-es", "closed-form"] {
        let experiment = experiment(&[&format!("control.power={power}")]);
        let end = pilot_and_run(experiment.clone(), data(), &out, &mut |event| match event {
            PhaseEvent::Pilot(RunEvent::Round(_)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        assert!(matches!(end.unwrap(), Outcome::Stopped { round: 0 }));
        assert_eq!(interrupted(&out).unwrap(), Some(experiment));
    }
    assert_eq!(pilot_folder(Path::new("a/b/")), Path::new("a/b-pilot"));
}

/// Impossible experiments are refused before the pilot.
#[test]
fn nothing_is_spent_on_what_must_fail() {
    let place = TempDir::new().unwrap();
    let go = &mut |_: PhaseEvent<'_>| ControlFlow::Continue(());
    let out = place.path().join("run");
    let error =
        pilot_and_run(experiment(&["control.smoothness=0.2"]), data(), &out, go).unwrap_err();
    assert!(error.to_string().contains("convexity"), "{error}");
    assert!(!pilot_folder(&out).exists());

    // A threshold that no device ever passes: every pilot was charged before the refusal.
    let deaf = ["aggregate.sinr_threshold_db=300", "control.pilot=private", "radio.redraw_every=3"];
    for more in ["aggregate.below_threshold=weight-zero", "run.participation=0.5"] {
        let deaf = experiment(&[&deaf[..], &[more]].concat());
        let error = pilot_and_run(deaf.clone(), data(), &out, go).unwrap_err();
        assert!(error.to_string().contains("sinr_threshold_db = 300"), "{error}");
        assert!(InMemory::prepare(deaf, data(), go).is_err());
        assert!(fs::read_dir(place.path()).unwrap().next().is_none());
    }
}

/// At the pilot's own powers, training again is the pilot.
#[test]
fn live_evaluation_repeats_the_pilot_at_its_own_powers() {
    let place = TempDir::new().unwrap();
    let experiment = experiment(&[&["control.evaluation=live"][..], &LARGE_DELTA].concat());
    let go = &mut |_: RunEvent<'_>| ControlFlow::Continue(());
    let pilots = execute_pilots(&experiment, &data(), &place.path().join("pilot"), None, go);
    let pilots = pilots.unwrap();
    let mut recorded = problem(&experiment, &pilots[0]).unwrap();
    let mut live = Live::new(&experiment, &data()).unwrap();
    let equal = recorded.limits().equal();
    let (a, b) = (recorded.evaluate(&equal).unwrap(), live.evaluate(&equal).unwrap());
    assert!((a.objective / b.objective - 1.0).abs() < 1e-9, "{a:?} {b:?}");
    assert_eq!(a.switching_round, b.switching_round);
    let mut chooser = Chooser::new(&experiment, pilots, &data()).unwrap();
    let choice =
        chooser.choose(PowerChoice::ClosedForm, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(choice.objective_relative.is_finite());
    // Each training gives the warning; they were lost once.
    let warnings: Vec<_> = chooser.take_warnings().into_iter().collect();
    assert!(warnings.len() == 1 && warnings[0].contains("privacy.delta"), "{warnings:?}");
    assert!(chooser.take_warnings().is_empty());
}

/// Two pilots, trainings that judge powers, and the run give the same warning: once before the run, and
/// once in it.
#[test]
fn a_warning_of_many_pilots_is_heard_once() {
    let (place, mut heard) = (TempDir::new().unwrap(), Vec::new());
    let changes = ["control.evaluation=live", "control.power=closed-form", "control.pilots=2"];
    let changes = [&changes[..], &LARGE_DELTA].concat();
    let end =
        pilot_and_run(experiment(&changes), data(), &place.path().join("run"), &mut |event| {
            if let PhaseEvent::Pilot(RunEvent::Warning(text)) = event {
                heard.push(text.to_owned());
            }
            ControlFlow::Continue(())
        });
    end.unwrap();
    assert!(heard.len() == 1 && heard[0].contains("privacy.delta"), "{heard:?}");
}

/// A run in memory has the powers and the bits of the run in a folder.
#[test]
fn a_run_in_memory_is_the_run_in_a_folder() {
    let place = TempDir::new().unwrap();
    let out = place.path().join("run");
    let powers = finish(experiment(&[]), &out);
    let go = &mut |_: PhaseEvent<'_>| ControlFlow::Continue(());
    let mut run = InMemory::prepare(experiment(&[]), data(), go).unwrap();
    run.execute(go).unwrap();
    assert_eq!(run.choice.unwrap().powers_w, powers);
    let read = read_metrics(&out.join("metrics.jsonl")).unwrap();
    let losses = |records: &[RoundRecord]| records.iter().map(|r| r.loss).collect::<Vec<_>>();
    assert_eq!(losses(&run.records), losses(&read));
    let stop = &mut |_: PhaseEvent<'_>| ControlFlow::Break(());
    let stopped = InMemory::prepare(experiment(&[]), data(), stop);
    assert!(matches!(stopped, Err(PhaseError::Cancelled(_))));
}

#[test]
fn what_stands_in_the_way_is_named() {
    let place = TempDir::new().unwrap();
    let out = place.path().join("run");
    let go = &mut |_: PhaseEvent<'_>| ControlFlow::Continue(());
    finish(experiment(&[]), &out);
    let again = pilot_and_run(experiment(&[]), data(), &out, go).unwrap_err().to_string();
    assert!(again.contains("exists already"), "{again}");
    fs::remove_dir_all(&out).unwrap();
    let other = pilot_and_run(experiment(&["run.rounds=9"]), data(), &out, go).unwrap_err();
    assert!(matches!(other, PhaseError::OtherPilot(_)), "{other}");
    let mut wide = data();
    wide.train.shape = Shape::new(1, 14, 56);
    let other = pilot_and_run(experiment(&[]), wide, &place.path().join("wide"), go).unwrap_err();
    assert!(other.to_string().contains("14×56"), "{other}");
}
