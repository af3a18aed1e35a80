//! The accountant against closed forms, published values and slow twins.

use super::*;
use crate::math::normal_cdf;
use convolve::{Composed, compose};
use discretize::{GridPmf, optimistic, pessimistic};
use saddle::{Profile, saddle};

const DELTAS: [f64; 4] = [1e-2, 1e-5, 1e-9, 1e-18];

fn poisson(rate: f64, z: f64, count: u32, adjacency: Adjacency) -> Pld {
    let mut pld = Pld::default();
    pld.compose(&Mechanism::poisson(rate, z, adjacency), count).unwrap();
    pld
}

fn gaussian(z: f64, count: u32) -> Pld {
    poisson(1.0, z, count, Adjacency::ZeroOut)
}

/// δ(ε) of the Gaussian mechanism (Balle, Wang: Improving the Gaussian Mechanism, 2018, theorem 8).
fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let ln_second = epsilon + crate::math::ln_normal_cdf(-mu / 2.0 - epsilon / mu);
    normal_cdf(mu / 2.0 - epsilon / mu) - ln_second.exp()
}

/// The exact ε of the Gaussian mechanism, by bisection.
fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    if gaussian_delta(mu, 0.0) <= delta {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, mu * mu / 2.0 + 40.0 * mu);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if gaussian_delta(mu, middle) > delta {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// δ(ε) of one release by adding up P − e^ε·Q over a fine grid of x: a slow twin.
fn single_delta(loss: &SingleLoss, epsilon: f64) -> f64 {
    const STEP: f64 = 1e-4;
    let (low, high) = loss.support(12.0);
    let steps = ((high - low) / STEP) as i64;
    let term = |i: i64| {
        let x = low + (i as f64 + 0.5) * STEP;
        (-(epsilon - loss.at(x)).min(0.0).exp_m1()) * loss.density(x)
    };
    (0..steps).map(term).sum::<f64>() * STEP
}

/// Direct convolution: a slow twin.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            sum[i + j] += x * y;
        }
    }
    sum
}

/// dp-accounting 0.6.0's PLDAccountant, an upper bound itself; interval 1e-5 for 100 releases, 1e-4
/// for 1000.
#[test]
fn published_values() {
    use Adjacency::{ReplaceOne, ZeroOut};
    for (rate, z, count, adjacency, delta, expected) in [
        (0.1, 1.0, 100, ZeroOut, 1e-5, 7.046603),
        (0.1, 1.0, 100, ReplaceOne, 1e-5, 10.516380),
        (0.01, 1.0, 1000, ZeroOut, 1e-5, 1.828244),
        (0.01, 1.0, 1000, ReplaceOne, 1e-5, 2.843446),
        (0.1, 1.0, 100, ZeroOut, 1e-2, 3.434803),
        (0.1, 1.0, 100, ZeroOut, 1e-9, 10.834039),
        (0.01, 1.0, 1000, ZeroOut, 1e-9, 2.989595),
        (0.01, 1.0, 1000, ReplaceOne, 1e-2, 1.378169),
        (1e-4, 1.0, 100, ZeroOut, 1e-5, 0.003472490),
        (1e-4, 1.0, 100, ZeroOut, 1e-9, 0.021010538),
        (1.0, 5.0, 100, ZeroOut, 1e-5, 9.997256),
    ] {
        let pld = poisson(rate, z, count, adjacency);
        let (upper, lower) = (pld.epsilon(delta).unwrap(), pld.epsilon_lower_bound(delta).unwrap());
        assert!(upper < 1.005 * expected, "{rate} {z} {count} {adjacency}: {upper} {expected}");
        assert!(lower <= expected * (1.0 + 1e-6) && lower <= upper, "{lower} {expected} {upper}");
        // Not below the exact value, which their pessimism exceeds by less than this.
        assert!(upper > expected * (1.0 - 1e-4), "{rate} {z} {count} {adjacency}: {upper}");
        assert!(lower > 0.97 * expected, "{rate} {z} {count} {adjacency}: {lower} {expected}");
    }
}

#[test]
fn the_bounds_bracket_the_gaussian_mechanism() {
    for (z, count) in
        [(5.0, 100), (1.0, 1), (0.3, 7), (5000.0, 10_000), (1e-3, 2), (100.0, 1), (0.01, 1000)]
    {
        let mu = f64::from(count).sqrt() / z;
        for delta in DELTAS {
            let exact = gaussian_epsilon(mu, delta);
            let pld = gaussian(z, count);
            let upper = pld.epsilon(delta).unwrap();
            let lower = pld.epsilon_lower_bound(delta).unwrap();
            let what = format!("z {z} T {count} δ {delta:e}: {lower} {exact} {upper}");
            assert!(upper >= exact * (1.0 - 1e-9) && upper <= exact * 1.001, "{what}");
            assert!(lower <= exact * (1.0 + 1e-9) && lower >= exact * 0.99 - 1e-12, "{what}");
        }
    }
}

#[test]
fn one_release_matches_the_integral() {
    for (rate, mu) in [(0.1, 1.0), (0.5, 3.0), (0.9, 0.1), (0.01, 5.0)] {
        for (pair, adjacency) in
            [(Pair::Remove, Adjacency::AddRemove), (Pair::Replace, Adjacency::ReplaceOne)]
        {
            let loss = SingleLoss { pair, rate, mu };
            let pld = poisson(rate, 1.0 / mu, 1, adjacency);
            for delta in [1e-3, 1e-6] {
                let upper = pld.epsilon(delta).unwrap();
                let lower = pld.epsilon_lower_bound(delta).unwrap();
                let what = format!("{loss:?} δ {delta:e}: {lower} {upper}");
                assert!(single_delta(&loss, upper) <= delta * (1.0 + 1e-6), "{what}");
                assert!(single_delta(&loss, lower) >= delta * (1.0 - 1e-6), "{what}");
                assert!(upper <= lower * 1.003 + 1e-9, "{what}");
            }
        }
    }
}

/// Removing is the worse direction in nearly all cases: each direction by itself.
#[test]
fn each_direction_matches_the_integral() {
    for pair in [Pair::Remove, Pair::Add, Pair::Replace] {
        for (rate, mu) in [(0.3, 1.0), (0.01, 2.0), (0.9, 0.2)] {
            let loss = SingleLoss { pair, rate, mu };
            let delta = 1e-4;
            let goal =
                |bound| Goal { delta, repeats: 1, bound, interval: None, near: None, floor: 0.0 };
            let epsilon = |bound| losses::epsilon(&[(loss, 1)], goal(bound)).unwrap();
            let (lower, upper) = (epsilon(Bound::Lower), epsilon(Bound::Upper));
            let what = format!("{loss:?}: {lower} {upper}");
            assert!(single_delta(&loss, upper) <= delta * (1.0 + 1e-6), "{what}");
            assert!(single_delta(&loss, lower) >= delta * (1.0 - 1e-6), "{what}");
            assert!(upper <= lower * 1.002, "{what}");
        }
    }
}

#[test]
fn places_invert_the_loss() {
    for pair in [Pair::Remove, Pair::Add, Pair::Replace] {
        for (rate, mu) in [(0.3, 1.0), (1e-6, 0.01), (0.999, 30.0), (0.5, 1000.0), (1e-3, 6.0)] {
            let loss = SingleLoss { pair, rate, mu };
            for x in [-3.0, -0.5, 0.25, 2.0, mu / 2.0 + 1.0, mu + 2.0] {
                let place = loss.place(loss.at(x));
                // Where the loss is flat, rounding of L moves x.
                let flat = 8.0 * f64::EPSILON * loss.at(x).abs() / place.slope;
                let error = (place.x - x).abs();
                let flat_out = loss.at(x) == loss.at(x + 1e-3) || place.slope < 1e-12 * mu;
                assert!(
                    flat_out || error <= 1e-12 * (1.0 + x.abs()) + flat,
                    "{loss:?} at {x}: {place:?}"
                );
                let step = 1e-5;
                let slope = (loss.at(x + step) - loss.at(x - step)) / (2.0 * step);
                if slope > 1e-3 * mu {
                    assert!((slope / place.slope - 1.0).abs() < 1e-4, "{loss:?} at {x}: {slope}");
                }
            }
        }
    }
}

/// A dominating distribution keeps P's mass, and all of Q's.
#[test]
fn discretization_keeps_both_masses() {
    for pair in [Pair::Remove, Pair::Add, Pair::Replace] {
        for (rate, mu) in [(0.3, 1.0), (1e-3, 0.01), (0.9, 2.0), (0.02, 3.0), (1e-9, 0.5)] {
            let loss = SingleLoss { pair, rate, mu };
            for h in [0.1 * mu, 0.003 * mu, 0.5] {
                let pmf = pessimistic(&loss, h, 9.0).unwrap();
                let mass: f64 = pmf.mass.iter().sum();
                let q: f64 = (0..)
                    .zip(&pmf.mass)
                    .fold(0.0, |sum, (i, mass)| sum + mass * (-(pmf.first + i) as f64 * h).exp());
                assert!((mass - 1.0).abs() < 1e-10, "{loss:?} {h}: P {mass}");
                // Q loses what lies outside of P's support, and by the margin of a cell's share.
                assert!(q <= 1.0 + 1e-9 && q > 1.0 - 1e-7, "{loss:?} {h}: Q {q}");
                let optimistic = optimistic(&loss, h, 9.0).unwrap();
                let mass: f64 = optimistic.mass.iter().sum();
                assert!((mass - 1.0).abs() < 1e-10, "{loss:?} {h}: P {mass}");
            }
        }
    }
}

fn parts() -> (Vec<(GridPmf, u64)>, Vec<Profile>, f64) {
    let (h, reach) = (0.05, 8.0);
    let losses = [
        (SingleLoss { pair: Pair::Remove, rate: 0.2, mu: 1.0 }, 3),
        (SingleLoss { pair: Pair::Remove, rate: 0.5, mu: 0.7 }, 2),
    ];
    let pmf = |(loss, count): &(SingleLoss, u64)| (pessimistic(loss, h, reach).unwrap(), *count);
    let profile = |(loss, count): &(SingleLoss, u64)| Profile::new(loss, *count, reach).on_grid(h);
    (losses.iter().map(pmf).collect(), losses.iter().map(profile).collect(), h)
}

/// The exact composition of `parts`, by direct convolution: first index and masses.
fn direct(parts: &[(GridPmf, u64)]) -> (i64, Vec<f64>) {
    let mut first = 0;
    let mut mass = vec![1.0];
    for (pmf, count) in parts {
        for _ in 0..*count {
            first += pmf.first;
            mass = convolved(&mass, &pmf.mass);
        }
    }
    (first, mass)
}

fn tilted(parts: &[(GridPmf, u64)], composed: &Composed) -> (i64, Vec<f64>) {
    let (first, mut mass) = direct(parts);
    for (i, mass) in (0..).zip(&mut mass) {
        let loss = (first + i) as f64 * composed.h;
        *mass *= (composed.theta * loss - composed.ln_scale).exp();
    }
    (first, mass)
}

#[test]
fn the_error_bound_holds_against_direct_convolution() {
    let (parts, profiles, h) = parts();
    for delta in DELTAS {
        let saddle = saddle(&profiles, 1.0, delta, None).unwrap();
        let composed = compose(&parts, 1, h, &saddle).unwrap();
        let (first, exact) = tilted(&parts, &composed);
        let end = composed.lowest + composed.tilted.len() as i64;
        let at =
            |k: i64| usize::try_from(k - first).ok().and_then(|i| exact.get(i)).unwrap_or(&0.0);
        let measured: f64 = (composed.lowest..end)
            .zip(&composed.tilted)
            .map(|(k, mass)| (mass - at(k)).abs())
            .sum();
        let (above, below) = (0..).zip(&exact).fold((0.0, 0.0), |(above, below), (i, mass)| {
            let k: i64 = first + i;
            (
                above + if k >= end { *mass } else { 0.0 },
                below + if k < composed.lowest { *mass } else { 0.0 },
            )
        });
        let bound = composed.rounding + composed.above + composed.below;
        assert!(measured <= bound, "{measured:e} {bound:e}");
        assert!(bound < 1e-9, "{bound:e}");
        assert!(above <= composed.above && below <= composed.below, "{above:e} {below:e}");
    }
}

#[test]
fn two_mechanisms_match_direct_convolution() {
    let (parts, profiles, h) = parts();
    let (first, mass) = direct(&parts);
    let exact = |epsilon: f64| -> f64 {
        let terms = (0..)
            .zip(&mass)
            .map(|(i, mass)| mass * -(epsilon - (first + i) as f64 * h).min(0.0).exp_m1());
        terms.sum()
    };
    for delta in [1e-2, 1e-5, 1e-9] {
        let saddle = saddle(&profiles, 1.0, delta, None).unwrap();
        let epsilon = compose(&parts, 1, h, &saddle).unwrap().upper_epsilon(delta).unwrap();
        assert!(exact(epsilon) <= delta, "{epsilon}");
        assert!(exact(epsilon * (1.0 - 1e-6)) > delta, "{epsilon}");
    }
}

/// Gaussians merge before discretization; on the grid, as many small ones, they must agree.
#[test]
fn a_schedule_agrees_with_the_accountant() {
    use Adjacency::{ReplaceOne, ZeroOut};
    for (rate, z, adjacency) in
        [(0.1, 1.0, ZeroOut), (0.1, 1.0, ReplaceOne), (1.0, 5.0, ZeroOut), (1e-3, 0.7, ZeroOut)]
    {
        let schedule =
            PldSchedule::new(&Mechanism::poisson(rate, z, adjacency), 300, 1e-5).unwrap();
        let mut last = 0.0;
        for count in [1, 2, 10, 100, 299, 300] {
            let epsilon = schedule.epsilon_after(count).unwrap();
            let single = poisson(rate, z, count, adjacency).epsilon(1e-5).unwrap();
            let what = format!("{rate} {z} {adjacency} {count}: {epsilon} {single}");
            assert!(epsilon <= single * 1.01 && epsilon >= single * 0.999, "{what}");
            assert!(epsilon >= last, "{what}");
            last = epsilon;
        }
        assert_eq!(schedule.epsilon_after(0), Ok(0.0));
        assert!(schedule.epsilon_after(301).is_err());
    }
}

#[test]
fn epsilon_is_monotone() {
    let epsilon =
        |rate, z, count, delta| poisson(rate, z, count, Adjacency::ZeroOut).epsilon(delta).unwrap();
    let grows = |values: Vec<f64>| {
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-3)), "{values:?}");
        assert!(values[0] < values[values.len() - 1], "{values:?}");
    };
    grows([1, 3, 10, 100, 1000, 10_000].map(|count| epsilon(0.02, 0.9, count, 1e-6)).into());
    grows([1e3, 100.0, 10.0, 3.0, 1.0, 0.5, 0.1].map(|z| epsilon(0.02, z, 100, 1e-6)).into());
    grows([1e-2, 1e-4, 1e-9, 1e-18, 1e-100].map(|delta| epsilon(0.02, 0.9, 100, delta)).into());
    grows([1e-6, 1e-3, 0.1, 0.5, 0.9, 1.0].map(|rate| epsilon(rate, 0.9, 100, 1e-6)).into());
}

#[test]
fn sampling_nearly_all_records_is_the_gaussian_mechanism() {
    for delta in DELTAS {
        let all = gaussian_epsilon(2.0, delta);
        let nearly = poisson(1.0 - 1e-9, 5.0, 100, Adjacency::AddRemove).epsilon(delta).unwrap();
        assert!((nearly / all - 1.0).abs() < 1e-3, "{nearly} {all}");
        let twice = gaussian_epsilon(4.0, delta);
        let nearly = poisson(1.0 - 1e-9, 5.0, 100, Adjacency::ReplaceOne).epsilon(delta).unwrap();
        assert!((nearly / twice - 1.0).abs() < 1e-3, "{nearly} {twice}");
    }
}

#[test]
fn different_mechanisms_compose() {
    let mut both = gaussian(5.0, 50);
    both.compose(&Mechanism::Gaussian { noise_multiplier: 2.5 }, 12).unwrap();
    both.compose(&Mechanism::poisson(0.1, 1.0, Adjacency::ZeroOut), 40).unwrap();
    both.compose(&Mechanism::poisson(0.1, 1.0, Adjacency::ZeroOut), 60).unwrap();
    let (upper, lower) = (both.epsilon(1e-5).unwrap(), both.epsilon_lower_bound(1e-5).unwrap());
    assert!(lower < upper && upper < lower * 1.005, "{lower} {upper}");
    assert!(upper > 10.0 && upper < 7.05 + 20.0, "{upper}");
}

#[test]
fn no_noise_costs_infinity_and_nothing_costs_nothing() {
    assert_eq!(Pld::default().epsilon(1e-5), Ok(0.0));
    assert_eq!(gaussian(1.0, 0).epsilon(1e-5), Ok(0.0));
    let mut pld = poisson(0.1, 1.0, 1, Adjacency::ZeroOut);
    pld.compose(&Mechanism::NonPrivate, 1).unwrap();
    assert_eq!(pld.epsilon(1e-5), Ok(f64::INFINITY));
    assert_eq!(pld.epsilon_lower_bound(1e-5), Ok(f64::INFINITY));
    assert_eq!(gaussian(1e-9, 1).epsilon(1e-5), Ok(f64::INFINITY));
    let lower = gaussian(1e-9, 1).epsilon_lower_bound(1e-5).unwrap();
    assert!(lower.is_finite(), "{lower}");
    let schedule = PldSchedule::new(&Mechanism::NonPrivate, 10, 1e-5).unwrap();
    assert_eq!(schedule.epsilon_after(1), Ok(f64::INFINITY));
}

#[test]
fn bad_input_is_named() {
    let mut pld = Pld::default();
    for (z, rate) in
        [(f64::NAN, 0.5), (-1.0, 0.5), (f64::INFINITY, 0.5), (1.0, f64::NAN), (1.0, 2.0)]
    {
        let (noise_multiplier, adjacency) = (z, Adjacency::ZeroOut);
        let mechanism = Mechanism::PoissonGaussian { rate, noise_multiplier, adjacency };
        let error = pld.compose(&mechanism, 1).unwrap_err();
        assert!(matches!(error, AccountError::Parameter { .. }), "{error}");
    }
    let discrete = Mechanism::DiscreteGaussian { noise_multiplier: 1.0 };
    assert!(matches!(pld.compose(&discrete, 1), Err(AccountError::Unsupported { .. })));
    let mut other = poisson(0.1, 1.0, 1, Adjacency::ZeroOut);
    let error = other.compose(&Mechanism::poisson(0.2, 1.0, Adjacency::ReplaceOne), 1).unwrap_err();
    let text = "a release under replace-one adjacency cannot be composed with those under zero-out";
    assert_eq!(error.to_string(), text);
    for delta in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(matches!(pld.epsilon(delta), Err(AccountError::Parameter { .. })));
        assert!(pld.epsilon_lower_bound(delta).is_err());
    }
    assert!(matches!(gaussian(1.0, 1).epsilon(1e-250), Err(AccountError::DeltaTooSmall { .. })));
    for interval in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Pld::with_interval(interval).is_err());
    }
    let mut fine = Pld::with_interval(1e-9).unwrap();
    fine.compose(&Mechanism::Gaussian { noise_multiplier: 1.0 }, 1).unwrap();
    let error = fine.epsilon(1e-5).unwrap_err();
    assert!(error.to_string().contains("interval"), "{error}");
}

#[test]
fn a_coarse_interval_is_sound() {
    for interval in [1e-3, 0.1, 1.0, 10.0] {
        let mut pld = Pld::with_interval(interval).unwrap();
        pld.compose(&Mechanism::poisson(0.1, 1.0, Adjacency::ZeroOut), 100).unwrap();
        let (upper, lower) = (pld.epsilon(1e-5).unwrap(), pld.epsilon_lower_bound(1e-5).unwrap());
        assert!(upper > 7.0460 && lower < 7.0467, "{interval}: {lower} {upper}");
    }
}

/// The largest loss −ln(1 − q) is approached closely for a tiny 1 − q.
#[test]
fn masses_add_up_close_to_the_largest_loss() {
    for pair in [Pair::Remove, Pair::Add, Pair::Replace] {
        for (rate, mu) in [(1.0 - 1e-15, 10.0), (1.0 - 1e-6, 4.0), (0.5, 20.0), (1e-12, 0.1)] {
            for h in [0.01, 0.3] {
                let pmf = pessimistic(&SingleLoss { pair, rate, mu }, h, 10.0).unwrap();
                let mass: f64 = pmf.mass.iter().sum();
                assert!((mass - 1.0).abs() < 1e-10, "{pair:?} {rate} {mu} {h}: {mass}");
            }
        }
    }
}

/// A number, ∞ or a typed error wherever one looks.
#[test]
fn extremes_are_answered() {
    for rate in [1e-30, 1e-4, 1.0 - 1e-15, 1.0] {
        for z in [1e-7, 0.1, 30.0, 1e100] {
            for (count, adjacency) in [(1, Adjacency::ZeroOut), (10_000, Adjacency::ReplaceOne)] {
                let pld = poisson(rate, z, count, adjacency);
                for delta in [1e-18, 1e-5, 0.5] {
                    let what = format!("{rate:e} {z:e} {count} {adjacency} {delta:e}");

                    match pld.epsilon(delta) {
                        Ok(upper) => assert!(upper >= 0.0, "{what}: {upper}"),
                        Err(AccountError::DeltaTooSmall { smallest, .. }) => {
                            assert!(smallest >= 0.0, "{what}: {smallest}");
                        }
                        Err(error) => panic!("{what}: {error}"),
                    }
                }
            }
        }
    }
}
