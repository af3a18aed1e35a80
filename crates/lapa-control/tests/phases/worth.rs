//! The worth of chosen powers: on the pilots, in the rehearsal, and in the run.

use super::*;

/// The scenario of experiments/control, made small: no method's powers are worse than equal power in
/// the run's own objective, or the run takes equal power and says so. With the file's own pilot, and with
/// three of the run's kind; each rule of the switch; each form of DDPG.
#[test]
fn no_powers_are_worse_than_equal_power() {
    let (one, three) = ("control.pilots=1", "control.pilots=3");
    let (synthetic, private) = ("control.pilot=synthetic", "control.pilot=private");
    let (top_up, switch) = ("control.noise=top-up", "control.noise=switch");
    let latched = "control.switch.rule=sum-latched";
    let (printed, td3) = ("control.ddpg.variant=printed", "control.ddpg.variant=td3");
    let cases: [(&str, &[&str]); 12] = [
        ("ddpg", &[three, private, top_up]),
        ("closed-form", &[three, private, switch]),
        ("cma-es", &[three, private, switch]),
        ("ddpg", &[three, private, switch, latched, printed]),
        ("closed-form", &[one, synthetic, top_up]),
        ("cma-es", &[one, synthetic, top_up]),
        ("random-search", &[one, synthetic, switch]),
        ("ddpg", &[one, synthetic, switch]),
        ("ddpg", &[one, synthetic, switch, printed]),
        ("ddpg", &[one, synthetic, switch, td3]),
        ("cma-es", &[one, synthetic, switch, latched]),
        ("ddpg", &[one, synthetic, switch, latched]),
    ];
    let mut better = 0;
    for (power, changes) in cases {
        for seed in ["run.seed=0", "run.seed=1", "run.seed=2"] {
            let (judgment, replaced) = own_judgment(power, &[changes, &[seed]].concat());
            let Judgment { own, equal } = judgment;
            assert!(own <= equal * (1.0 + 1e-12), "{power}, {changes:?}, {seed}: {own} {equal}");
            assert!(!replaced || own == equal, "{power}, {changes:?}, {seed}: {own} {equal}");
            better += usize::from(own < equal);
        }
    }
    assert!(2 * better >= 3 * cases.len(), "{better} runs are better than with equal power");
}

/// J of a small run of experiments/control, and true if it took equal power instead of its method's.
fn own_judgment(power: &str, changes: &[&str]) -> (Judgment, bool) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/control/config.toml");
    let small = [
        "data.name=synthetic",
        "model.name=logistic",
        "run.rounds=20",
        "run.evaluate_every=20",
        "run.threads=1",
        "partition.mix.iid_samples=[20, 40]",
        "partition.mix.non_iid_samples=[20, 40]",
        "control.cma-es.evaluations=2000",
        "control.ddpg.episodes=10",
        "control.ddpg.steps=50",
    ];
    let power = format!("control.power={power}");
    let changes = small.iter().chain(changes).copied().chain([power.as_str()]);
    let flags: Vec<Override> = changes.map(|c| Override::parse(c).unwrap()).collect();
    let text = fs::read_to_string(path).unwrap();
    let experiment = Experiment::from_toml(&text, path, &flags).unwrap();
    let go = &mut |_: PhaseEvent<'_>| ControlFlow::Continue(());
    let mut run = InMemory::prepare(experiment, data(), go).unwrap();
    run.execute(go).unwrap();
    let judgment = Judgment::from_records(&run.simulation, &run.records).unwrap();
    (judgment.unwrap(), run.choice.unwrap().instead_of.is_some())
}

/// The rehearsal is a run with the chosen powers, the run's noise control and a training seed of its own.
/// Equal power is taken where the choice is worse there or on the pilots.
#[test]
fn powers_that_are_worse_in_a_rehearsal_are_not_taken() {
    let changes = ["control.noise=switch", "control.pilot=private", "control.pilots=2"];
    let go = &mut |_: PhaseEvent<'_>| ControlFlow::Continue(());
    let run = InMemory::prepare(experiment(&changes), data(), go).unwrap();
    // Two pilots, the rehearsal and the run to come are in one ledger.
    let ledger = run.simulation.experiment().run.ledger.clone().unwrap();
    let releases = Ledger::open_read_only(&ledger).unwrap().releases().unwrap();
    assert_eq!(releases.len(), 3 * 4 * 8);
    let choice = run.choice.unwrap();
    let mut again = run.simulation.experiment().clone();
    again.run.training_seed = Some(3 << 40);
    again.run.ledger = None;
    let mut again = InMemory::prepare(again, data(), go).unwrap();
    again.execute(go).unwrap();
    let judgment = Judgment::from_records(&again.simulation, &again.records).unwrap().unwrap();
    assert_eq!(choice.rehearsed, Some(judgment.own / judgment.equal));

    let place = TempDir::new().unwrap();
    let go = &mut |_: RunEvent<'_>| ControlFlow::Continue(());
    let pilots = execute_pilots(&experiment(&[]), &data(), &place.path().join("p"), None, go);
    let mut chooser = Chooser::new(&experiment(&[]), pilots.unwrap(), &data()).unwrap();
    let choice = chooser.choose(PowerChoice::CmaEs, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(choice.over_equal() < 1.0);
    let worse = Choice { objective_relative: 1.01 * choice.equal_relative, ..choice.clone() };
    let cases = [
        (Choice { rehearsed: None, ..choice.clone() }, true),
        (Choice { rehearsed: Some(0.99), ..choice.clone() }, true),
        (Choice { rehearsed: Some(1.01), ..choice }, false),
        (worse, false),
    ];
    for (choice, taken) in cases {
        let kept = chooser.or_equal(choice.clone()).unwrap();
        if taken {
            assert_eq!(kept, choice);
        } else {
            assert_eq!(kept.optimizer, PowerChoice::Equal);
            assert_eq!(kept.instead_of, Some(PowerChoice::CmaEs));
        }
    }
}
