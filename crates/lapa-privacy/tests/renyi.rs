//! The Rényi divergence of one release against slow twins, and its hard edges.

use lapa_privacy::accountant::renyi_divergence;
use lapa_privacy::{AccountError, Adjacency, Mechanism, OutOfRange};

fn poisson(rate: f64, noise_multiplier: f64) -> Mechanism {
    Mechanism::PoissonGaussian { rate, noise_multiplier, adjacency: Adjacency::ZeroOut }
}

fn ours(rate: f64, noise_multiplier: f64, order: f64) -> f64 {
    renyi_divergence(&poisson(rate, noise_multiplier), order).unwrap()
}

/// ln E[(P/Q)^k]/(α−1) over Q = N(0, z²), where P is the mixture, by the trapezoid rule over
/// x = z·t, in logarithms: k = α gives D(P‖Q), k = 1−α gives D(Q‖P).
///
/// The integrand is analytic up to |Im t| = πz, so the rule's error is about e^{−2π²z/h}: below
/// rounding for h = min(z, 1)/4.
fn integrated(rate: f64, z: f64, order: f64, k: f64) -> f64 {
    let step = z.min(1.0) / 4.0;
    let from = k.min(0.0) / z - 12.0;
    let to = k.max(0.0) / z + 12.0;
    let points = ((to - from) / step) as usize;
    let logs: Vec<f64> = (0..=points)
        .map(|i| {
            let t = from + step * i as f64;
            let ln_ratio = (2.0 * z * t - 1.0) / (2.0 * z * z);
            let ln_mixture = if ln_ratio > 0.0 {
                ln_ratio + (rate + (1.0 - rate) * (-ln_ratio).exp()).ln()
            } else {
                (rate * ln_ratio.exp_m1()).ln_1p()
            };
            k * ln_mixture - t * t / 2.0
        })
        .collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|x| (x - most).exp()).sum();
    let norm = step / (2.0 * std::f64::consts::PI).sqrt();
    (most + (sum * norm).ln()) / (order - 1.0)
}

#[test]
fn matches_numerical_integration() {
    for rate in [1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999] {
        for z in [0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 20.0] {
            for order in [
                1.0001, 1.01, 1.1, 1.5, 1.9, 2.0, 2.000001, 2.5, 3.0, 3.7, 4.2, 6.0, 9.99, 17.0,
                32.5, 64.0, 200.3,
            ] {
                let expected = integrated(rate, z, order, order);
                let actual = ours(rate, z, order);
                // Roundings are relative to A = E[(P/Q)^α], not to ln A: the twin's, and those
                // that the fractional orders are rounded up by.
                let slack = 2e-14 * (10.0 + order) / (order - 1.0);
                let case = format!("q {rate}, z {z}, α {order}: {actual:e} for {expected:e}");
                assert!(actual >= expected * (1.0 - 1e-11) - slack, "below: {case}");
                assert!(actual <= expected * (1.0 + 1e-9) + slack, "above: {case}");
                let reverse = integrated(rate, z, order, 1.0 - order);
                assert!(reverse <= actual * (1.0 + 1e-11) + slack, "reverse {reverse:e}: {case}");
            }
        }
    }
}

/// mpmath, 70 digits, the same integral of the integrand less 1 + αq(w−1), whose mean is 1: keeps
/// the digits of tiny divergences. Those may be rounded up by chords (fractional α > 4), by less
/// than 2 %, and never down.
#[test]
fn matches_mpmath_at_the_extremes() {
    for (rate, z, order, expected) in [
        (1e-8, 0.1, 1.0001, 3.063_830_268_872_13e-7),
        (1e-8, 0.1, 1.5, 19.738_061_276_562_9),
        (1e-8, 0.1, 7.5, 353.745_368_372_363),
        (1e-8, 3.0, 2.5, 1.468_988_360_170_28e-17),
        (1e-8, 1e3, 1.5, 7.500_003_750_001_21e-23),
        (1e-8, 1e7, 1.0001, 5.000_500_000_000_03e-31),
        (1e-8, 1e7, 7.5, 3.750_000_000_000_02e-30),
        (0.001, 0.1, 2.5, 113.487_074_535_03),
        (0.001, 3.0, 1.5, 8.813_392_101_021_16e-8),
        (0.001, 1e3, 1.0001, 5.000_502_495_253_33e-13),
        (0.001, 1e3, 7.5, 3.750_001_895_603_15e-12),
        (0.001, 1e7, 2.5, 1.250_000_000_000_01e-20),
        (0.5, 0.1, 1.5, 72.920_558_458_320_2),
        (0.5, 3.0, 1.0001, 0.014_079_782_028_236_1),
        (0.5, 3.0, 7.5, 0.128_355_255_920_895),
        (0.5, 1e3, 2.5, 3.125_001_562_500_47e-7),
        (0.5, 1e7, 1.5, 1.875e-15),
        (0.9, 0.1, 1.0001, 44.691_663_298_891_4),
        (0.9, 0.1, 7.5, 374.878_430_174_241),
        (0.9, 3.0, 2.5, 0.114_194_440_629_619),
        (0.9, 1e3, 1.5, 6.075_000_303_749_96e-7),
        (0.9, 1e7, 1.0001, 4.050_405e-15),
        (0.9, 1e7, 7.5, 3.037_500_000_000_02e-14),
    ] {
        let actual = ours(rate, z, order);
        let case = format!("q {rate}, z {z}, α {order}: {actual:e} for {expected:e}");
        assert!(actual >= expected * (1.0 - 1e-13), "below: {case}");
        assert!(actual <= expected * 1.02, "above: {case}");
    }
}

#[test]
fn plain_and_discrete_gaussians_have_the_closed_form() {
    for z in [1e-3, 0.5, 1.0, 7.0, 1e7] {
        for order in [1.0001, 1.5, 2.0, 64.0, 1e6] {
            let expected = order / (2.0 * z * z);
            let always = Mechanism::PoissonGaussian {
                rate: 1.0,
                noise_multiplier: z,
                adjacency: Adjacency::AddRemove,
            };
            for mechanism in [
                Mechanism::Gaussian { noise_multiplier: z },
                Mechanism::DiscreteGaussian { noise_multiplier: z },
                always,
            ] {
                let actual = renyi_divergence(&mechanism, order).unwrap();
                assert!((actual - expected).abs() <= 1e-14 * expected);
            }
        }
    }
}

/// Properties of any Rényi divergence: grows with its order, shrinks with noise, never exceeds the one
/// without sampling. Holds over the extremes, where the exact sum gives way to bounds.
#[test]
fn extremes_are_finite_and_ordered() {
    let orders =
        [1.0001, 1.5, 2.0, 2.5, 7.0, 7.5, 63.9, 1000.0, 8191.5, 8192.0, 8192.5, 8193.0, 1e5, 1e6];
    for rate in [1e-8, 1e-4, 0.01, 0.3, 0.5, 0.9, 1.0 - 1e-9] {
        for z in [1e-3, 0.03, 0.5, 1.0, 10.0, 1e3, 1e7] {
            let mut before = 0.0;
            for order in orders {
                let r = ours(rate, z, order);
                let case = format!("q {rate}, z {z}, α {order}: {r:e} after {before:e}");
                assert!(r.is_finite() && r > 0.0, "{case}");
                assert!(r <= order / (2.0 * z * z) * (1.0 + 1e-14), "{case}");
                assert!(r >= before * (1.0 - 1e-9) - 1e-12 / (order - 1.0), "{case}");
                before = r;
                assert!(ours(rate, z * 1.5, order) <= r, "{case}");
            }
        }
    }
}

/// Above 8192 the value is a bound: it must stay above the exact sum, and not far above.
#[test]
fn large_orders_are_bounded_from_above() {
    for rate in [1e-5f64, 1e-3, 0.1, 0.7] {
        for z in [0.5f64, 5.0, 30.0, 300.0, 1e4] {
            let order = 10_000.0;
            let mut terms = Vec::new();
            let mut ln_weight = order * (-rate).ln_1p();
            for i in 0..10_000 {
                let i = f64::from(i);
                ln_weight += ((order - i) / (i + 1.0)).ln() + (rate / (1.0 - rate)).ln();
                let power = (i + 1.0) * i / (2.0 * z * z);
                terms.push((ln_weight + power, 1.0 - (-power).exp()));
            }
            let most = terms.iter().map(|t| t.0).fold(f64::NEG_INFINITY, f64::max);
            let ln_sum = most + terms.iter().map(|t| t.1 * (t.0 - most).exp()).sum::<f64>().ln();
            let psi = if ln_sum > 30.0 { ln_sum } else { ln_sum.exp().ln_1p() };
            let exact = psi / (order - 1.0);
            let bound = ours(rate, z, order);
            let case = format!("q {rate}, z {z}: {bound:e} for {exact:e}");
            assert!(bound >= exact * (1.0 - 1e-9), "below: {case}");
            assert!(bound <= exact * 2.0, "above: {case}");
        }
    }
}

#[test]
fn no_noise_costs_infinity_and_no_batch_nothing() {
    assert_eq!(renyi_divergence(&Mechanism::NonPrivate, 2.0), Ok(f64::INFINITY));
    assert!(renyi_divergence(&poisson(0.0, 1.0), 2.5).is_err());
    assert_eq!(renyi_divergence(&poisson(0.1, 1e-300), 2.5), Ok(f64::INFINITY));
    assert!(renyi_divergence(&poisson(0.1, 1e300), 2.5).unwrap() < 1e-190);
}

#[test]
fn bad_parameters_are_named() {
    let gaussian = Mechanism::Gaussian { noise_multiplier: 1.0 };
    for order in [1.0, 0.5, -2.0, f64::NAN, f64::INFINITY] {
        let error = renyi_divergence(&gaussian, order).unwrap_err();
        assert!(
            matches!(error, AccountError::Parameter(OutOfRange { name: "order", .. })),
            "{error}"
        );
    }
    for z in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for mechanism in [gaussian.with_noise(z), poisson(0.1, z)] {
            let error = renyi_divergence(&mechanism, 2.0).unwrap_err();
            let named = matches!(
                error,
                AccountError::Parameter(OutOfRange { name: "noise multiplier", .. })
            );
            assert!(named, "{error}");
        }
    }
    for rate in [-0.1, 1.1, f64::NAN] {
        let error = renyi_divergence(&poisson(rate, 1.0), 2.0).unwrap_err();
        assert!(
            matches!(error, AccountError::Parameter(OutOfRange { name: "sampling rate", .. })),
            "{error}"
        );
    }
    let replaced = Mechanism::PoissonGaussian {
        rate: 0.1,
        noise_multiplier: 1.0,
        adjacency: Adjacency::ReplaceOne,
    };
    let error = renyi_divergence(&replaced, 2.0).unwrap_err();
    assert_eq!(error, AccountError::Unsupported { accountant: "rdp", mechanism: replaced });
}
