use super::*;

/// mpmath, 60 digits and more: log(ncdf(mu/2 - eps/mu) - exp(eps)*ncdf(-mu/2 - eps/mu)).
#[test]
fn ln_delta_matches_mpmath_and_is_not_below() {
    for (mu, epsilon, expected) in [
        (0.0001, 0.0008, -46.332_304_634_883_47),
        (0.001, 0.001, -9.392_376_384_039_413),
        (0.05, 0.0, -3.914_774_969_085_139),
        (0.05, 0.001, -3.939_458_240_697_491_5),
        (0.2, 1.25, -25.175_434_812_384_963),
        (0.2, 0.01, -2.588_527_580_254_910_4),
        (1.0, 0.0, -0.959_916_333_695_622_3),
        (1.0, 1.0, -2.064_066_446_500_390_5),
        (1.0, 30.0, -442.849_378_082_303_64),
        (3.0, 4.0, -0.820_004_295_158_466_9),
        (3.0, 40.0, -75.019_048_442_961_34),
        (30.0, 1.0, -1.209_813_555_053_072e-50),
        (40.0, 1000.0, -15.187_390_698_916_74),
        (1400.0, 990_000.0, -28.419_162_344_528_28),
        (1e4, 5e7, -0.693_226_972_198_495_8),
    ] {
        let ln_delta = ln_delta(mu, epsilon).unwrap();
        let slack = 2e-13 + 2e-15 * (epsilon / mu).powi(2);
        assert!(ln_delta >= expected, "{mu} {epsilon}: {ln_delta:?} < {expected}");
        assert!(ln_delta <= expected + slack, "{mu} {epsilon}: {ln_delta:?} ≠ {expected}");
        let delta = delta(mu, epsilon).unwrap();
        assert!((delta / expected.exp() - 1.0).abs() <= 2.0 * slack + 1e-12, "{mu} {epsilon}");
    }
}

/// mpmath, 60 digits: bisection of the same expression for mu. 1/mu at ε = 0.1, 1 and 8 are the
/// published 30.7, 3.73 and 0.600.
#[test]
fn mu_and_epsilon_match_mpmath_from_the_safe_side() {
    for (epsilon, delta, expected) in [
        (0.001, 1e-18, 0.000_134_705_319_299_579_07),
        (0.001, 1e-2, 0.026_288_805_063_746_61),
        (0.1, 1e-5, 0.032_520_784_056_203_91),
        (1.0, 1e-5, 0.268_051_123_211_294_2),
        (8.0, 1e-5, 1.666_030_597_845_718_2),
        (8.0, 1e-18, 0.895_506_642_605_027_2),
        (100.0, 1e-10, 9.194_520_806_813_916),
        (1e6, 1e-18, 1_405.484_090_720_546_4),
        (1e6, 1e-2, 1_411.889_834_415_011_5),
    ] {
        let mu = mu(epsilon, delta).unwrap();
        assert!(mu <= expected && mu >= expected * (1.0 - 1e-12), "{mu} ≠ {expected}");
        let back = super::epsilon(expected, delta).unwrap();
        assert!(back >= epsilon * (1.0 - 1e-15), "{back} < {epsilon}");
        assert!(back <= epsilon * (1.0 + 1e-11), "{back} ≠ {epsilon}");
    }
}

/// Published: 100 releases with the noise that the classic formula gives for ε = 0.1.
#[test]
fn golden_composition() {
    let mut gdp = Gdp::new();
    gdp.compose(&Mechanism::Gaussian { noise_multiplier: 48.448_052_626_053_89 }, 100).unwrap();
    let epsilon = gdp.epsilon(1e-5).unwrap();
    assert!((epsilon - 0.751).abs() < 5e-4, "{epsilon}");
}

fn epsilons() -> impl Iterator<Item = f64> {
    (0..=90).map(|i| 10f64.powf(-3.0 + 0.1 * f64::from(i)))
}

fn deltas() -> impl Iterator<Item = f64> {
    (0..=64).map(|i| 10f64.powf(-18.0 + 0.25 * f64::from(i)))
}

/// ε from 10⁻³ to 10⁶, δ from 10⁻¹⁸ to 10⁻²: finite, monotone in each argument, and back again.
#[test]
fn extreme_ranges() {
    let mut row_before = vec![0.0; deltas().count()];
    for target in epsilons() {
        let mut before = 0.0;
        for (delta, mu_before) in deltas().zip(&mut row_before) {
            let mu = mu(target, delta).unwrap();
            assert!(mu.is_finite() && mu > before && mu > *mu_before, "{target} {delta}: {mu}");
            (before, *mu_before) = (mu, mu);
            let back = epsilon(mu, delta).unwrap();
            assert!((back / target - 1.0).abs() < 1e-11, "{target} {delta}: {back}");
        }
    }
    for mu in (0..=120).map(|i| 10f64.powf(-8.0 + 0.1 * f64::from(i))) {
        let mut before = f64::INFINITY;
        for delta in deltas() {
            let epsilon = epsilon(mu, delta).unwrap();
            assert!(epsilon.is_finite() && epsilon <= before, "{mu} {delta}: {epsilon}");
            before = epsilon;
        }
        let mut before = 0.0;
        for epsilon in epsilons() {
            let ln_delta = ln_delta(mu, epsilon).unwrap();
            assert!(ln_delta.is_finite() && ln_delta <= before, "{mu} {epsilon}: {ln_delta}");
            before = ln_delta;
        }
    }
}

#[test]
fn far_beyond_the_ranges_there_is_still_a_number() {
    for mu in [0.0, 5e-324, 1e-200, 1e-20, 1.0, 1e20, 1e150, 1e200, f64::MAX, f64::INFINITY] {
        for small in [5e-324, 1e-300, 1e-18, 0.5, 0.999, 1.0 - 1e-16] {
            assert!(epsilon(mu, small).unwrap() >= 0.0, "{mu} {small}");
        }
        for epsilon in [0.0, 5e-324, 1e-100, 1.0, 1e100, 1e300, f64::MAX] {
            assert!(ln_delta(mu, epsilon).unwrap() <= 0.0, "{mu} {epsilon}");
            assert!((0.0..=1.0).contains(&delta(mu, epsilon).unwrap()), "{mu} {epsilon}");
        }
    }
    for epsilon in [5e-324, 1e-300, 1e-20, 1e20, 1e300, f64::MAX] {
        for small in [5e-324, 1e-18, 0.5, 1.0 - 1e-16] {
            let mu = mu(epsilon, small).unwrap();
            assert!(mu >= 0.0 && mu.is_finite(), "{epsilon} {small}: {mu}");
        }
    }
    assert_eq!(epsilon(0.0, 1e-5).unwrap(), 0.0);
    // δ(0) = 2Φ(μ/2) − 1 ≈ μ/√(2π)
    assert_eq!(epsilon(2.5e-5, 1e-5).unwrap(), 0.0);
    assert!(epsilon(2.6e-5, 1e-5).unwrap() > 0.0);
    assert_eq!(epsilon(f64::INFINITY, 1e-5).unwrap(), f64::INFINITY);
}

#[test]
fn refusals_name_the_value() {
    let text = |result: Result<f64, AccountError>| result.unwrap_err().to_string();
    assert_eq!(text(epsilon(-1.0, 0.1)), "mu = -1: expected a number from 0");
    assert_eq!(text(epsilon(1.0, 1.0)), "delta = 1: expected a number above 0 and below 1");
    assert_eq!(text(delta(1.0, -0.5)), "epsilon = -0.5: expected a finite number from 0");
    assert_eq!(text(mu(0.0, 0.1)), "epsilon = 0: expected a finite number above 0");
    assert!(mu(f64::NAN, 0.1).is_err() && mu(1.0, f64::NAN).is_err());
    assert!(ln_delta(f64::NAN, 0.1).is_err() && ln_delta(1.0, f64::NAN).is_err());
}
