//! Power limits: what is allowed, and the nearest of it.

#[path = "common/feasible.rs"]
mod feasible;

use feasible::is_feasible;
use lapa::optimize::{Limits, LimitsError};
use lapa::seed::{Purpose, Stream, stream};
use proptest::prelude::*;
use rand::RngExt;

fn rng(seed: u64) -> Stream {
    stream(seed, Purpose::Power, u64::MAX, 0)
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

fn total(amplitudes: &[f64]) -> f64 {
    amplitudes.iter().map(|p| p * p).sum()
}

fn projected(limits: &Limits, amplitudes: &[f64]) -> Vec<f64> {
    let mut moved = amplitudes.to_vec();
    limits.project(&mut moved);
    moved
}

/// Limits of every kind: P_0 and P_max bind or not, P_min from 0 to all there is.
fn any_limits(devices: usize) -> impl Strategy<Value = Limits> {
    (0.01f64..4.0, 0.0..=1f64, 0.1f64..3.0).prop_map(move |(most, least, each)| {
        let most = most * devices as f64;
        let reach = most.min(devices as f64 * each);
        Limits::new(devices, least * reach, most, each).unwrap()
    })
}

fn limits_and_point(
    coordinate: impl Strategy<Value = f64> + Clone,
) -> impl Strategy<Value = (Limits, Vec<f64>)> {
    (1usize..9).prop_flat_map(move |devices| {
        (any_limits(devices), prop::collection::vec(coordinate.clone(), devices))
    })
}

fn strange() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        4 => -2.0..5.0f64,
        2 => prop::num::f64::ANY,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(0.0),
    ]
}

/// One amplitude so large that the squares of all others nearly underflow: they were all set to 0.
#[test]
fn a_huge_amplitude_leaves_the_others_their_part() {
    let limits =
        Limits::new(4, 0.613_683_627_938_083_2, 3.028_006_547_949_799, 2.579_173_937_083_688);
    let limits = limits.unwrap();
    let once = projected(&limits, &[0.0, 0.185_136, 1.137_429, 4.930_538_387_744_589e159]);
    assert!(is_feasible(&limits, &once), "{once:?}");
    assert!(once[3] > 1.6 && once[2] > 0.6 && once[2] > once[1] && once[1] > 0.0, "{once:?}");
}

proptest! {
    #[test]
    fn any_point_becomes_feasible_and_then_stays((limits, point) in limits_and_point(strange())) {
        let once = projected(&limits, &point);
        prop_assert!(is_feasible(&limits, &once), "{limits:?} {point:?} {once:?}");
        prop_assert_eq!(projected(&limits, &once), once);
    }

    #[test]
    fn order_is_kept((limits, point) in limits_and_point(strange())) {
        let moved = projected(&limits, &point);
        for i in 0..point.len() {
            for j in 0..point.len() {
                if point[i] < point[j] {
                    prop_assert!(moved[i] <= moved[j], "{limits:?} {point:?} {moved:?}");
                }
            }
        }
    }

    #[test]
    fn feasible_points_stay(limits in any_limits(6), seed in 0u64..1000) {
        let mut draws = rng(seed);
        for _ in 0..50 {
            let point: Vec<f64> = (0..6).map(|_| draws.random_range(0.0..2.0)).collect();
            if is_feasible(&limits, &point) {
                prop_assert_eq!(projected(&limits, &point), point);
            }
        }
    }

    /// By sampling: boxes and balls are hit by scaling draws to all totals, some of them close by.
    #[test]
    fn no_allowed_point_is_nearer(
        (limits, point) in limits_and_point(-2.0..5.0f64),
        seed in 0u64..1000,
    ) {
        // Below P_min negative amplitudes count as 0: nearest is then meant of p⁺.
        let cap = limits.most_each_w().sqrt();
        let within: f64 = point.iter().map(|p| p.clamp(0.0, cap).powi(2)).sum();
        let point: Vec<f64> = if within < limits.least_total_w() { point.iter().map(|p| p.max(0.0)).collect() } else { point };
        let moved = projected(&limits, &point);
        let least = squared_distance(&moved, &point);
        let mut draws = rng(seed);
        let mut allowed = 0;
        for draw in 0..3000 {
            let reach = 10f64.powf(-f64::from(draw % 6));
            let other: Vec<f64> = moved
                .iter()
                .map(|p| (p + reach * draws.random_range(-1.0..1.0)).clamp(0.0, cap))
                .collect();
            // Onto a shell, where it may lie.
            let (least_w, most_w) = (limits.least_total_w(), limits.most_total_w());
            let factor = (total(&other).clamp(least_w, most_w) / total(&other)).sqrt();
            let other: Vec<f64> = other.iter().map(|p| p * factor * (1.0 - 1e-15)).collect();
            if is_feasible(&limits, &other) {
                allowed += 1;
                let distance = squared_distance(&other, &point);
                prop_assert!(distance >= least - 1e-9 * (1.0 + least), "{other:?} {moved:?}");
            }
        }
        prop_assert!(allowed > 0);
    }

    /// The conditions of Karush, Kuhn and Tucker, for the convex part.
    #[test]
    fn too_much_power_is_scaled_and_capped((limits, point) in limits_and_point(-2.0..5.0f64)) {
        let cap = limits.most_each_w().sqrt();
        let within: f64 = point.iter().map(|p| p.clamp(0.0, cap).powi(2)).sum();
        prop_assume!(within > limits.most_total_w());
        let moved = projected(&limits, &point);
        prop_assert!((total(&moved) / limits.most_total_w() - 1.0).abs() < 1e-12);
        // One s for all that are neither 0 nor at the cap, and at the cap no less than it.
        let scales: Vec<f64> = (0..point.len())
            .filter(|&k| moved[k] > 0.0 && moved[k] < cap * (1.0 - 1e-12))
            .map(|k| moved[k] / point[k])
            .collect();
        for pair in scales.windows(2) {
            prop_assert!((pair[0] / pair[1] - 1.0).abs() < 1e-9);
        }
        if let Some(scale) = scales.first() {
            prop_assert!(*scale <= 1.0 + 1e-12);
            for k in 0..point.len() {
                prop_assert!(point[k] > 0.0 || moved[k] == 0.0);
                if moved[k] >= cap * (1.0 - 1e-12) {
                    prop_assert!(point[k] * scale >= cap * (1.0 - 1e-9));
                }
            }
        }
    }
}

#[test]
fn many_devices_are_projected_too() {
    for devices in [1000, 100_000] {
        let most = devices as f64 / 3.0;
        let limits = Limits::new(devices, most / 2.0, most, 1.0).unwrap();
        let mut draws = rng(devices as u64);
        for size in [1e-3, 0.1, 1.0, 1e3, 1e200] {
            let mut point: Vec<f64> =
                (0..devices).map(|_| size * draws.random_range(-0.5..1.0)).collect();
            limits.project(&mut point);
            assert!(is_feasible(&limits, &point));
        }
        assert!(is_feasible(&limits, &limits.equal()));
        assert!(is_feasible(&limits, &limits.full()));
    }
}

#[test]
fn known_projections() {
    let limits = Limits::new(2, 1.0, 4.0, 2.25).unwrap();
    let close = |point: [f64; 2], expected: [f64; 2]| {
        let moved = projected(&limits, &point);
        assert!(squared_distance(&moved, &expected) < 1e-24, "{point:?} {moved:?}");
    };
    close([3.0, 3.0], [2f64.sqrt(), 2f64.sqrt()]);
    close([5.0, 1.0], [1.5, 1.0]);
    close([5.0, 1.4], [1.5, 1.75f64.sqrt()]);
    close([0.0, 0.0], [0.5f64.sqrt(), 0.5f64.sqrt()]);
    close([0.3, 0.4], [0.6, 0.8]);
    close([-1.0, 0.4], [0.0, 1.0]);
    close([f64::NAN, 1.2], [0.0, 1.2]);
    close([f64::INFINITY, f64::INFINITY], [2f64.sqrt(), 2f64.sqrt()]);
    close([1e300, 1e-300], [1.5, 1e-300]);
    // P_min beyond P_0 of the only device that asks for power.
    let limits = Limits::new(3, 2.0, 4.0, 1.0).unwrap();
    let moved = projected(&limits, &[0.1, 0.0, 0.0]);
    assert!(squared_distance(&moved, &[1.0, 0.5f64.sqrt(), 0.5f64.sqrt()]) < 1e-24);
    // Nothing at least: no power is allowed.
    let limits = Limits::new(2, 0.0, 4.0, 1.0).unwrap();
    assert_eq!(projected(&limits, &[0.0, -1.0]), [0.0, 0.0]);
}

#[test]
fn equal_and_full_powers() {
    let limits = Limits::new(4, 0.1, 2.0, 1.0).unwrap();
    assert!(limits.equal().iter().all(|p| (p * p - 0.5).abs() < 1e-15));
    assert!(limits.full().iter().all(|p| (p * p - 0.5).abs() < 1e-15));
    let limits = Limits::new(4, 0.1, 20.0, 1.0).unwrap();
    assert_eq!(limits.full(), [1.0; 4]);
    assert_eq!(limits.equal(), [1.0; 4]);
}

#[test]
fn limits_without_a_choice_are_refused() {
    assert_eq!(Limits::new(0, 1.0, 1.0, 1.0), Err(LimitsError::NoDevice));
    for (least, most, each) in [
        (2.0, 1.0, 1.0),
        (4.0, 9.0, 1.0),
        (-1.0, 1.0, 1.0),
        (0.5, 0.0, 1.0),
        (0.5, 1.0, 0.0),
        (f64::NAN, 1.0, 1.0),
        (0.5, f64::INFINITY, 1.0),
        (0.5, 1.0, f64::NAN),
    ] {
        let refused = Limits::new(3, least, most, each);
        assert!(matches!(refused, Err(LimitsError::Power { .. })), "{least} {most} {each}");
    }
    let error = Limits::new(3, 4.0, 9.0, 1.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "least total power = 4 W: expected at most the power of all devices together"
    );
    let limits = Limits::new(3, 1.0, 2.0, 1.0).unwrap();
    assert!(!is_feasible(&limits, &[1.0, 1.0]));
    assert!(!is_feasible(&limits, &[f64::NAN, 1.0, 0.5]));
}
