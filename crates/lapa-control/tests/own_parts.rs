//! Parts of one's own through the public interface: a partition, an allocator, a rule, an uplink and
//! an optimizer, each without a change to any other file.

use std::ops::ControlFlow;

use lapa::aggregate::Rule;
use lapa::config::{Experiment, Override, Powers};
use lapa::data::{Dataset, digits};
use lapa::device::PrivateUpdate;
use lapa::model::network;
use lapa::optimize::{Objective, OptimizeError, Optimizer, Optimum, Progress};
use lapa::partition::{PartitionError, PartitionScheme, Plan, partition};
use lapa::radio::{Arrival, Coding, Link, PerLink, Received, Uplink, UplinkError};
use lapa::seed::Stream;
use lapa::simulation::{Setup, Simulation};
use lapa_control::power::{NoiseRule, example};
use lapa_privacy::allocate::{Allocator, Ask, Costs};
use lapa_privacy::ledger::Ledger;
use rand::Rng;

fn data() -> Dataset {
    digits(300, 30)
}

fn experiment(changes: &[&str]) -> Experiment {
    let text = "
        data.name = 'synthetic'
        model.name = 'logistic'
        run = { rounds = 3, threads = 1 }
        partition = { scheme = 'iid', iid.devices = 3 }
        privacy = { epsilon = 8, allocator = 'lapa' }
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Experiment::from_toml(text, "test", &changes).unwrap()
}

fn setup() -> Setup {
    Setup::new(experiment(&[]), data()).unwrap()
}

fn rounds(mut simulation: Simulation) -> Simulation {
    (0..3).for_each(|_| drop(simulation.next_round().unwrap()));
    simulation
}

/// Each device holds labels of its own.
struct ByLabel;

impl PartitionScheme for ByLabel {
    fn devices(&self) -> u32 {
        3
    }

    fn plan(&self, supply: &[u32], _: &mut Stream) -> Result<Plan, PartitionError> {
        let of = |device| {
            let part = |(label, &count): (usize, &u32)| if label % 3 == device { count } else { 0 };
            supply.iter().enumerate().map(part).collect()
        };
        Ok((0..3).map(of).collect())
    }
}

#[test]
fn a_partition() {
    let (data, experiment) = (data(), experiment(&[]));
    let parts = partition(&ByLabel, &data.train.labels, data.classes, 0).unwrap();
    let sizes: Vec<u32> = parts.devices.iter().map(|device| device.samples.len() as u32).collect();
    assert_eq!(sizes.iter().sum::<u32>(), 300);
    let network = network(&experiment.model, data.train.shape, data.classes);
    let setup = Setup::with_records(experiment, data, network.unwrap(), parts, &sizes).unwrap();
    let simulation = rounds(setup.in_memory().unwrap());
    assert!(simulation.records().dealt().unwrap().devices[1].label_counts[0] == 0);
}

/// Everything in the first round; a filter must not allow more.
struct Greedy;

impl Allocator for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn allocate(&mut self, _: u32, asks: &[Ask]) -> Costs {
        Costs::plain(asks.iter().map(|ask| 10.0 * ask.left.max(1.0)).collect(), None)
    }
}

#[test]
fn an_allocator_that_no_budget_can_hold_is_held_by_the_filter() {
    let simulation = setup().allocator(Box::new(Greedy)).unwrap().in_memory().unwrap();
    let mut simulation = rounds(simulation);
    let privacy = simulation.privacy().unwrap();
    assert!(privacy.epsilon_spent <= 8.0, "{}", privacy.epsilon_spent);
    assert!(privacy.epsilon_spent > 7.9, "{}", privacy.epsilon_spent);
    assert!(simulation.received().is_empty(), "nothing was left for round 3");
}

/// A greedy allocator spent the whole budget of a run that had a part of it.
#[test]
fn a_run_with_a_part_of_the_budget_spends_no_more_than_that() {
    let half = experiment(&["privacy.budget_fraction=0.5"]);
    let setup = Setup::new(half, data()).unwrap().allocator(Box::new(Greedy)).unwrap();
    let mut simulation = rounds(setup.in_memory().unwrap());
    let mut filter = simulation.books().declared(0).unwrap().clone();
    filter.set_spent(0.5 * filter.capacity()).unwrap();
    let (spent, most) =
        (simulation.privacy().unwrap().epsilon_spent, filter.spent_epsilon().unwrap());
    assert!(spent <= most && spent > 0.99 * most, "{spent} of {most}");
    assert!(simulation.received().is_empty(), "nothing was left for round 3");
}

#[test]
fn an_allocator_of_one_s_own_does_not_go_with_a_promised_schedule() {
    for fixed in ["privacy.allocator=uniform", "privacy=none"] {
        let setup = Setup::new(experiment(&[fixed]), data()).unwrap();
        let error = setup.allocator(Box::new(Greedy)).err().unwrap().to_string();
        assert!(error.contains("needs another, such as \"lapa\""), "{error}");
    }
}

/// All weight on the first device.
struct First;

impl Rule for First {
    fn weights(&mut self, _: &[u32], received: &[Received]) -> Vec<f64> {
        received.iter().map(|update| if update.device() == 0 { 1.0 } else { 0.0 }).collect()
    }
}

#[test]
fn a_rule() {
    let mut simulation = setup().rule(Box::new(First)).in_memory().unwrap();
    let before = simulation.model().parameters.clone();
    simulation.next_round().unwrap();
    let learn = &simulation.experiment().learn;
    let (rate, first) = (learn.learning_rate as f32, simulation.received()[0].gradient());
    for ((before, after), step) in before.iter().zip(&simulation.model().parameters).zip(first) {
        assert!((before - rate * step - after).abs() < 1e-5 * (1.0 + after.abs()));
    }
}

/// The same run with another rule is another release, though the configuration is the same.
#[test]
fn a_run_with_parts_of_one_s_own_replays_nothing() {
    let place = tempfile::tempdir().unwrap();
    let spent = |name: &str, setup: Setup| {
        let ledger = Ledger::open(&place.path().join(name)).unwrap();
        let mut simulation = setup.record_in(ledger, "run").unwrap();
        simulation.next_round().unwrap();
        simulation.privacy().unwrap().epsilon_spent
    };
    assert_eq!(spent("configured.db", setup()), spent("configured.db", setup()));
    let own = || spent("own.db", setup().rule(Box::new(First)));
    let (first, second) = (own(), own());
    assert!(second > first, "{first} {second}");
}

/// Half of every value arrives.
struct Half;

impl PerLink for Half {
    fn coding(&self) -> Option<Coding> {
        Some(Coding::Analog)
    }

    fn send(
        &self,
        update: PrivateUpdate,
        link: &Link,
        _: &mut dyn Rng,
    ) -> Result<Arrival, UplinkError> {
        Ok(Arrival::new(update, link, 0.0, |values| {
            values.iter_mut().for_each(|value| *value /= 2.0);
            0
        }))
    }
}

#[test]
fn an_uplink() {
    let mut whole = setup().in_memory().unwrap();
    let own = setup().uplink(Uplink::PerLink(Box::new(Half))).unwrap();
    let mut half = own.in_memory().unwrap();
    let record = half.next_round().unwrap();
    whole.next_round().unwrap();
    let pairs = whole.received().iter().zip(half.received());
    for (whole, half) in pairs {
        let twice: Vec<f32> = half.gradient().iter().map(|value| 2.0 * value).collect();
        assert_eq!(twice, whole.gradient());
    }
    assert!(record.airtime_s > 0.0);
}

/// Noise that an uplink of one's own may not add cannot be counted as privacy.
#[test]
fn an_uplink_of_one_s_own_does_not_go_with_trust_in_the_channel() {
    let trusting = ["transmit.uplink=analog", "transmit.access=orthogonal"];
    let trusting = [&trusting[..], &["privacy.channel_trust=1"]].concat();
    let setup = Setup::new(experiment(&trusting), data()).unwrap();
    let error = setup.uplink(Uplink::PerLink(Box::new(Half))).err().unwrap().to_string();
    assert!(error.contains("set privacy.channel_trust = 0"), "{error}");
}

/// The better of two candidates.
struct BestOfTwo;

impl Optimizer for BestOfTwo {
    fn name(&self) -> &'static str {
        "best-of-two"
    }

    fn optimize(
        &mut self,
        objective: &mut dyn Objective,
        _: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimizeError> {
        let full = objective.limits().full();
        let candidates: [Vec<f64>; 2] =
            [1.0, 0.5].map(|part| full.iter().map(|a| part * a).collect());
        let mut best: Option<Optimum> = None;
        for (evaluations, mut amplitudes) in (1..).zip(candidates) {
            objective.limits().project(&mut amplitudes);
            let evaluation = objective.evaluate(&amplitudes)?;
            let value = evaluation.objective;
            if best.as_ref().is_none_or(|best| value < best.evaluation.objective) {
                let curve = vec![(evaluations, value)];
                best = Some(Optimum { amplitudes, evaluation, evaluations, curve });
            }
            let _ = on_progress(Progress { evaluations, of: 2, best: value });
        }
        best.ok_or(OptimizeError::NothingFinite { optimizer: self.name(), evaluations: 2 })
    }
}

#[test]
fn an_optimizer_and_a_run_with_its_powers() {
    let mut problem = example(3, 4, NoiseRule::TopUp);
    let mut go_on = |_| ControlFlow::Continue(());
    let optimum = BestOfTwo.optimize(&mut problem, 0, &mut go_on).unwrap();
    let full = problem.limits().full();
    let worth = problem.evaluate(&full).unwrap().objective;
    assert!(optimum.evaluation.objective <= worth && optimum.evaluations <= 2);
    let mut experiment = experiment(&["transmit.uplink=analog"]);
    let most = experiment.transmit.max_power_w;
    let powers = optimum.amplitudes.iter().map(|a| (a * a).min(most)).collect();
    experiment.transmit.power_w = Powers::Each(powers);
    rounds(Simulation::new(experiment, data()).unwrap());
}
