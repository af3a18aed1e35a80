//! The Rényi accountant's hard edges.

use lapa_privacy::accountant::{Accountant, Rdp};
use lapa_privacy::{AccountError, Adjacency, Mechanism, OutOfRange};

fn gaussian(noise_multiplier: f64) -> Mechanism {
    Mechanism::Gaussian { noise_multiplier }
}

/// ε from 10⁻³ to 10⁶ and beyond at both ends, and δ from 10⁻¹⁸: finite, and falling as δ grows.
#[test]
fn extremes_give_numbers() {
    for z in [1e-3, 0.1, 1.0, 30.0, 1e4, 1e7] {
        for rate in [1e-8, 1e-3, 0.1, 0.5, 1.0] {
            let mechanism = Mechanism::poisson(rate, z, Adjacency::ZeroOut);
            for count in [1, 1000, u32::MAX] {
                let mut rdp = Rdp::default();
                rdp.compose(&mechanism, count).unwrap();
                let mut before = f64::INFINITY;
                for delta in [1e-300, 1e-18, 1e-9, 1e-5, 1e-2, 0.999] {
                    let (epsilon, order) = rdp.epsilon_and_order(delta).unwrap();
                    let case = format!("{mechanism}, {count} times at δ {delta}: {epsilon}");
                    assert!(epsilon >= 0.0 && epsilon.is_finite(), "{case}");
                    assert!(epsilon <= before, "{case} after {before}");
                    assert!(order > 1.0 && order.is_finite(), "{case}");
                    before = epsilon;
                }
            }
        }
    }
}

/// The default search over orders of plain Gaussians reaches what a fine grid reaches.
#[test]
fn plain_gaussians_are_searched_between_orders() {
    for epsilon_scale in [1e-3f64, 0.1, 1.0, 30.0, 1e4, 1e6] {
        for delta in [1e-18f64, 1e-5, 1e-2] {
            // About the z that costs `epsilon_scale`.
            let root = (2.0 * (1.0 / delta).ln()).sqrt();
            let mu = (root * root + 2.0 * epsilon_scale).sqrt() - root;
            let mut rdp = Rdp::default();
            rdp.compose(&gaussian(1.0 / mu), 1).unwrap();
            let epsilon = rdp.epsilon(delta).unwrap();
            let fine = (0..200_000)
                .map(|i| 1.0 + 1e-5 * 1.000_15f64.powi(i))
                .map(|a| mu * mu / 2.0 * a + (1.0 - 1.0 / a).ln() - (delta * a).ln() / (a - 1.0))
                .fold(f64::INFINITY, f64::min)
                .max(0.0);
            assert!(
                (epsilon - fine).abs() <= 1e-7 * fine + 1e-9,
                "μ {mu} at δ {delta}: {epsilon} for {fine}"
            );
        }
    }
}

#[test]
fn no_noise_costs_infinity() {
    let mut rdp = Rdp::default();
    rdp.compose(&gaussian(1.0), 3).unwrap();
    rdp.compose(&Mechanism::NonPrivate, 0).unwrap();
    assert!(rdp.epsilon(1e-5).unwrap().is_finite());
    rdp.compose(&Mechanism::NonPrivate, 1).unwrap();
    assert_eq!(rdp.epsilon(1e-5), Ok(f64::INFINITY));
}

#[test]
fn nothing_released_costs_nothing() {
    for delta in [1e-300, 1e-18, 1e-5, 0.5] {
        assert_eq!(Rdp::default().epsilon(delta), Ok(0.0));
    }
}

#[test]
fn composition_adds_up() {
    let sampled = Mechanism::poisson(0.1, 1.2, Adjacency::AddRemove);
    let mut at_once = Rdp::default();
    at_once.compose(&sampled, 20).unwrap();
    at_once.compose(&gaussian(9.0), 2).unwrap();
    let mut one_by_one = Rdp::default();
    for _ in 0..2 {
        one_by_one.compose(&gaussian(9.0), 1).unwrap();
    }
    for _ in 0..20 {
        one_by_one.compose(&sampled, 1).unwrap();
    }
    let (a, b) = (at_once.epsilon(1e-6).unwrap(), one_by_one.epsilon(1e-6).unwrap());
    assert!((a - b).abs() <= 1e-12 * a, "{a} ≠ {b}");
}

/// A refused release leaves the account as it was.
#[test]
fn bad_input_is_named() {
    let mut rdp = Rdp::default();
    rdp.compose(&gaussian(2.0), 1).unwrap();
    let before = rdp.epsilon(1e-5);
    assert!(rdp.compose(&gaussian(f64::NAN), 1).is_err());
    let replaced = Mechanism::poisson(0.1, 1.0, Adjacency::ReplaceOne);
    let error = rdp.compose(&replaced, 1).unwrap_err();
    assert_eq!(error, AccountError::Unsupported { accountant: "rdp", mechanism: replaced });
    assert_eq!(rdp.epsilon(1e-5), before);
    for delta in [0.0, 1.0, -1.0, f64::NAN] {
        let error = rdp.epsilon(delta).unwrap_err();
        assert!(
            matches!(error, AccountError::Parameter(OutOfRange { name: "delta", .. })),
            "{error}"
        );
    }
    for orders in [vec![], vec![2.0, 1.0], vec![f64::INFINITY], vec![f64::NAN]] {
        assert!(matches!(Rdp::with_orders(orders), Err(AccountError::Parameter { .. })));
    }
}
