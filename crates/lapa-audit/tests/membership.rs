//! LiRA with 64 shadow models on the named scenario, without noise and with a certified budget.

use std::ops::ControlFlow;
use std::path::Path;

use lapa::config::{Experiment, Override};
use lapa::data::{CacheState, Dataset};
use lapa::simulation::Simulation;
use lapa_audit::{Effort, Finding, Options, Statement, Subject, Verdict, membership};
use serde_json::Value;

const CERTIFIED: &str = "privacy.epsilon=8";

/// MNIST, if long tests are asked for and it is there; says why not.
fn mnist() -> Option<Dataset> {
    if std::env::var_os("LAPA_TEST_LONG").is_none() {
        eprintln!("skipped: takes minutes; set LAPA_TEST_LONG");
        return None;
    }
    let known = lapa::data::list();
    let here = known.iter().any(|set| set.name == "mnist" && set.state == CacheState::Verified);
    if !here {
        eprintln!("skipped: MNIST is not in the cache; run `lapa data get mnist`");
        return None;
    }
    Some(lapa::data::load(&lapa::data::DataName::Mnist, &mut |_| {}).unwrap())
}

/// The scenario; `changes` win.
fn scenario(changes: &[&str]) -> Experiment {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/audit/membership.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Experiment::from_toml(&text, "membership.toml", &changes).unwrap()
}

/// A budget changes the noise and what follows from it, no more.
#[test]
fn both_scenarios_train_alike() {
    let (plain, private) = (scenario(&[]), scenario(&[CERTIFIED]));
    assert_eq!(plain.privacy, None);
    assert_eq!(private.privacy.unwrap().epsilon(), Some(8.0));
    assert_eq!((plain.model, plain.partition), (private.model, private.partition));
}

/// Verdict of the full attack on the statement of the run itself.
fn attacked(data: Dataset, changes: &[&str]) -> Finding {
    let experiment = scenario(changes);
    let mut run = Simulation::new(experiment.clone(), data.clone()).unwrap();
    while run.round() < experiment.run.rounds {
        run.next_round().unwrap();
    }
    let statement = Statement::from(&run.privacy().unwrap());
    let subject = Subject::new(experiment, data).unwrap();
    let options = Options::new(0.95, Effort::Full, 1).unwrap();
    let start = lapa::clock::now();
    let quiet: &mut lapa_audit::Listener<'_> = &mut |_| ControlFlow::Continue(());
    let finding = membership::run(&subject, &statement, &options, quiet).unwrap().remove(0);
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{seconds:.0} s\n{}", serde_json::to_string_pretty(&finding).unwrap());
    finding
}

fn auc(finding: &Finding, attack: &str) -> [f64; 2] {
    let value = &finding.figures[attack];
    ["auc_low", "auc_high"].map(|end| value.get(end).and_then(Value::as_f64).unwrap())
}

/// At 95 % (α = 0.05) the area is above 0.6 and ε above 1: what was learned by heart shows.
#[test]
fn lira_sees_the_members_of_a_run_without_noise() {
    let Some(data) = mnist() else { return };
    let finding = attacked(data, &[]);
    assert!(auc(&finding, "lira")[0] > 0.6);
    assert!(finding.epsilon_lower.unwrap() > 1.0);
}

/// At α = 0.05 the areas of a certified ε = 8 are not told from ½ by more than a hundredth: a
/// budget of 8 leaves room for a little.
#[test]
fn lira_is_about_at_chance_against_a_certified_budget() {
    let Some(data) = mnist() else { return };
    let finding = attacked(data, &[CERTIFIED]);
    for attack in ["lira", "loss_threshold"] {
        let [low, high] = auc(&finding, attack);
        assert!(low < 0.51 && high > 0.49, "{attack}: {low} {high}");
    }
    assert_eq!(finding.verdict, Verdict::NotRefuted);
}
