use super::*;
use crate::accountant::{Accountant, Gdp, Rdp};
use crate::calibrate::{gaussian_noise_multiplier, noise_multiplier};
use crate::event::Adjacency;

const GAUSSIAN: Mechanism = Mechanism::Gaussian { noise_multiplier: 1.0 };
const POISSON: Mechanism =
    Mechanism::PoissonGaussian { rate: 0.1, noise_multiplier: 1.0, adjacency: Adjacency::ZeroOut };

fn budget(epsilon: f64, delta: f64) -> Budget {
    Budget::new(epsilon, delta).unwrap()
}

/// Spends a filter in `releases` equal parts and returns what was released.
fn spend(filter: &mut Filter, template: Mechanism, releases: u32) -> Vec<Mechanism> {
    let mut released = Vec::new();
    for rest in (1..=releases).rev() {
        let asked = filter.left() / f64::from(rest);
        assert_eq!(filter.request(asked, 0.0), Decision::Granted(asked));
        let mechanism = filter.mechanism_for(template, asked).unwrap();
        let cost = filter.cost(&mechanism).unwrap();
        assert!(cost <= asked && cost >= asked * (1.0 - 1e-8), "{cost} {asked}");
        filter.charge(cost).unwrap();
        released.push(mechanism);
    }
    released
}

/// Against a fixed schedule the GDP filter loses nothing, and its figure is the accountant's.
#[test]
fn a_gdp_filter_is_worth_a_fixed_schedule() {
    for (epsilon, delta, releases) in [(8.0, 1e-5, 100), (0.1, 1e-9, 7), (1000.0, 1e-5, 3)] {
        let mut filter = Filter::gdp(budget(epsilon, delta)).unwrap();
        let mut gdp = Gdp::new();
        let z = gaussian_noise_multiplier(filter.budget(), releases).unwrap();
        for mechanism in spend(&mut filter, GAUSSIAN, releases) {
            assert!((mechanism.noise_multiplier() / z - 1.0).abs() < 1e-12, "{mechanism} {z}");
            gdp.compose(&mechanism, 1).unwrap();
        }
        let spent = filter.spent_epsilon().unwrap();
        assert!(spent <= epsilon && spent > epsilon * (1.0 - 1e-11), "{spent}");
        let accounted = gdp.epsilon(delta).unwrap();
        assert!((accounted / epsilon - 1.0).abs() < 1e-11, "{accounted}");
    }
}

/// At its one order, the Rényi filter's figure is the Rényi accountant's.
#[test]
fn a_renyi_filter_agrees_with_the_accountant_at_its_order() {
    for (template, epsilon, order) in [(GAUSSIAN, 8.0, 4.5), (POISSON, 2.0, 12.0)] {
        let mut filter = Filter::renyi(budget(epsilon, 1e-5), order).unwrap();
        // By hand: ε − ln(1 − 1/α) + ln(δα)/(α − 1).
        let capacity = epsilon - (1.0 - 1.0 / order).ln() + (1e-5 * order).ln() / (order - 1.0);
        assert!((filter.capacity() / capacity - 1.0).abs() < 1e-13);
        assert!(filter.capacity() <= capacity);
        let mut rdp = Rdp::with_orders(vec![order]).unwrap();
        for mechanism in spend(&mut filter, template, 10) {
            rdp.compose(&mechanism, 1).unwrap();
        }
        let (spent, accounted) = (filter.spent_epsilon().unwrap(), rdp.epsilon(1e-5).unwrap());
        assert!(spent <= epsilon && accounted <= epsilon, "{spent} {accounted}");
        assert!((spent / epsilon - 1.0).abs() < 1e-8 && (spent / accounted - 1.0).abs() < 1e-10);
    }
}

/// The chosen order needs hardly more noise than the accountant, which may use every order; and no
/// other order of a finer grid needs less by much.
#[test]
fn the_best_order_is_nearly_as_good_as_all_orders() {
    for (template, epsilon, delta, releases) in
        [(GAUSSIAN, 8.0, 1e-5, 100), (POISSON, 2.0, 1e-5, 100), (GAUSSIAN, 1e-3, 1e-18, 10)]
    {
        let budget = budget(epsilon, delta);
        let order = renyi_order(budget, template, releases).unwrap();
        let noise = |order| {
            let filter = Filter::renyi(budget, order).ok()?;
            let asked = filter.capacity() / f64::from(releases);
            Some(filter.mechanism_for(template, asked).ok()?.noise_multiplier())
        };
        let chosen = noise(order).unwrap();
        let all = noise_multiplier(budget, template, releases, Rdp::default).unwrap();
        assert!(chosen >= all * (1.0 - 1e-8) && chosen <= all * 1.005, "{chosen} {all}");
        for step in -20..=20 {
            let near = 1.0 + (order - 1.0) * (f64::from(step) / 10.0).exp();
            assert!(noise(near).is_none_or(|other| other >= chosen * 0.999), "{near} {order}");
        }
    }
    for epsilon in [1e-3, 1e6] {
        for delta in [1e-18, 1e-2] {
            renyi_order(budget(epsilon, delta), GAUSSIAN, 1).unwrap();
        }
    }
}

#[test]
fn a_plan_counts_releases() {
    let planned = POISSON.with_noise(1.5);
    let mut filter = Filter::plan(budget(8.0, 1e-5), planned, 3, 7.5).unwrap();
    assert_eq!(filter.spent_epsilon().unwrap(), 0.0);
    assert_eq!(filter.mechanism_for(POISSON, 1.0).unwrap(), planned);
    assert_eq!(filter.cost(&POISSON.with_noise(2.0)).unwrap(), 1.0);
    assert_eq!(filter.cost(&Mechanism::NonPrivate).unwrap(), f64::INFINITY);
    let text = |result: Result<f64, AccountError>| result.unwrap_err().to_string();
    assert_eq!(
        text(filter.cost(&POISSON)),
        "noise multiplier = 1: expected at least the planned value"
    );
    let other_rate = Mechanism::poisson(0.2, 2.0, Adjacency::ZeroOut);
    let other_adjacency = Mechanism::poisson(0.1, 2.0, Adjacency::ReplaceOne);
    for other in [GAUSSIAN.with_noise(9.0), other_rate, other_adjacency] {
        assert!(text(filter.cost(&other)).starts_with("the plan filter's accountant does not"));
        assert!(filter.mechanism_for(other, 1.0).is_err());
    }
    assert!(filter.mechanism_for(POISSON, 0.9).is_err());
    assert_eq!(filter.request(0.9, 0.0), Decision::Refused);
    for _ in 0..3 {
        assert_eq!(filter.request(1.0, 0.0), Decision::Granted(1.0));
        filter.charge(1.0).unwrap();
        assert_eq!(filter.spent_epsilon().unwrap(), 7.5);
    }
    assert_eq!(filter.request(1.0, 0.0), Decision::Refused);
    assert_eq!(filter.charge(1.0), Err(Overspent { cost: 1.0, left: 0.0 }));
    filter.set_spent(4.0).unwrap();
    assert_eq!(filter.spent_epsilon().unwrap(), f64::INFINITY);
}

#[test]
fn requests_are_granted_truncated_or_refused() {
    let mut filter = Filter::gdp(budget(1.0, 1e-5)).unwrap();
    let capacity = filter.capacity();
    assert_eq!(filter.request(capacity, 0.0), Decision::Granted(capacity));
    assert_eq!(filter.request(2.0 * capacity, 0.0), Decision::Truncated(capacity));
    assert_eq!(filter.request(f64::INFINITY, capacity), Decision::Truncated(capacity));
    assert_eq!(filter.request(capacity / 2.0, capacity), Decision::Refused);
    for asked in [0.0, -1.0, f64::NAN] {
        assert_eq!(filter.request(asked, 0.0), Decision::Refused);
        assert!(filter.mechanism_for(GAUSSIAN, asked).is_err());
    }
    assert_eq!(filter.request(capacity, f64::NAN), Decision::Refused);
    for cost in [-1.0, f64::NAN, f64::INFINITY, capacity.next_up()] {
        let error = filter.charge(cost).unwrap_err();
        assert!(error.to_string().starts_with(&format!("cost = {cost}")));
        assert_eq!(filter.spent(), 0.0);
    }
    filter.charge(capacity).unwrap();
    assert_eq!((filter.left(), filter.request(1.0, 0.0)), (0.0, Decision::Refused));
    assert!(filter.set_spent(f64::NAN).is_err() && filter.set_spent(-1.0).is_err());
    filter.set_spent(f64::INFINITY).unwrap();
    assert_eq!((filter.left(), filter.spent_epsilon().unwrap()), (0.0, f64::INFINITY));
}

#[test]
fn what_is_no_filter_is_refused() {
    let one = budget(1.0, 1e-5);
    let text = |result: Result<Filter, AccountError>| result.unwrap_err().to_string();
    assert!(text(Filter::renyi(one, 2.0)).contains("a larger order"));
    for order in [1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(text(Filter::renyi(one, order)).contains("a finite number above 1"));
    }
    assert!(text(Filter::plan(one, GAUSSIAN, 0, 0.5)).starts_with("releases = 0"));
    assert!(text(Filter::plan(one, GAUSSIAN, 1, 1.1)).starts_with("epsilon of the plan = 1.1"));
    assert!(Filter::plan(one, GAUSSIAN, 1, f64::NAN).is_err());
    assert!(Filter::plan(one, GAUSSIAN.with_noise(0.0), 1, 0.5).is_err());
    assert!(Filter::plan(one, Mechanism::NonPrivate, 1, 0.5).is_err());
    let gdp = Filter::gdp(one).unwrap();
    assert!(matches!(gdp.cost(&POISSON), Err(AccountError::Unsupported { .. })));
    assert!(gdp.mechanism_for(POISSON, 0.1).is_err());
    assert!(gdp.mechanism_for(Mechanism::NonPrivate, 0.1).is_err());
    assert_eq!(gdp.cost(&Mechanism::NonPrivate).unwrap(), f64::INFINITY);
    let replace = Mechanism::poisson(0.1, 1.0, Adjacency::ReplaceOne);
    assert!(Filter::renyi(one, 64.0).unwrap().cost(&replace).is_err());
    assert!(renyi_order(one, replace, 10).is_err() && renyi_order(one, GAUSSIAN, 0).is_err());
}

#[test]
fn kinds_survive_a_file() {
    for kind in [
        FilterKind::Gdp,
        FilterKind::Renyi { order: 12.5 },
        FilterKind::Plan { mechanism: POISSON, releases: 100, epsilon: 7.05 },
    ] {
        let text = serde_json::to_string(&kind).unwrap();
        assert_eq!(serde_json::from_str::<FilterKind>(&text).unwrap(), kind, "{text}");
        let filter = Filter::new(kind, budget(8.0, 1e-5)).unwrap();
        assert!(filter.kind() == kind && filter.theorem().contains("20"));
    }
}
