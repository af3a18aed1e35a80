//! Duties of every accountant, and limits of every filter. A new accountant is one more line in
//! `accountants`.

use lapa_privacy::accountant::{Accountant, Advanced, Gdp, Naive, Pld, Rdp, Zcdp, gdp};
use lapa_privacy::calibrate::{gaussian_noise_multiplier, noise_multiplier};
use lapa_privacy::{AccountError, Adjacency, Budget, Decision, Filter, FilterKind, Mechanism};

struct Case {
    new: fn() -> Box<dyn Accountant>,
    supports: fn(&Mechanism) -> bool,
    /// The δ of the whole when `epsilon` is asked at the first argument after so many releases;
    /// `None` where nothing is proved at this z.
    total_delta: fn(f64, u32, f64) -> Option<f64>,
    /// Random calibrations: 10⁴ in all, fewer where an evaluation is slow.
    calibrations: u32,
}

fn accountants() -> Vec<Case> {
    let same = |delta, _, _| Some(delta);
    vec![
        Case {
            new: || Box::new(Gdp::new()),
            supports: plain,
            total_delta: same,
            calibrations: 2500,
        },
        Case {
            new: || Box::new(Zcdp::new()),
            supports: any_plain,
            total_delta: same,
            calibrations: 2500,
        },
        Case {
            new: || Box::new(Rdp::default()),
            supports: not_replace_one,
            total_delta: same,
            calibrations: 500,
        },
        Case {
            new: || Box::new(Pld::default()),
            supports: not_discrete,
            total_delta: same,
            calibrations: 20,
        },
        Case {
            new: || Box::new(Naive::new()),
            supports: plain,
            total_delta: naive_delta,
            calibrations: 2500,
        },
        Case {
            new: || Box::new(Advanced::new()),
            supports: plain,
            total_delta: advanced_delta,
            calibrations: 2500,
        },
    ]
}

fn plain(mechanism: &Mechanism) -> bool {
    matches!(mechanism, Mechanism::Gaussian { .. } | Mechanism::NonPrivate)
}

fn not_discrete(mechanism: &Mechanism) -> bool {
    !matches!(mechanism, Mechanism::DiscreteGaussian { .. })
}

fn any_plain(mechanism: &Mechanism) -> bool {
    plain(mechanism) || matches!(mechanism, Mechanism::DiscreteGaussian { .. })
}

fn not_replace_one(mechanism: &Mechanism) -> bool {
    !matches!(mechanism, Mechanism::PoissonGaussian { adjacency: Adjacency::ReplaceOne, .. })
}

fn naive_delta(delta: f64, releases: u32, z: f64) -> Option<f64> {
    let mut naive = Naive::new();
    naive.compose(&gaussian(z), releases).unwrap();
    let total = naive.total_delta(delta);
    (naive.in_range(delta) && total < 1.0).then_some(total)
}

fn advanced_delta(delta: f64, releases: u32, z: f64) -> Option<f64> {
    let mut advanced = Advanced::new();
    advanced.compose(&gaussian(z), releases).unwrap();
    let total = advanced.total_delta(delta);
    (advanced.in_range(delta) && total < 1.0).then_some(total)
}

fn gaussian(noise_multiplier: f64) -> Mechanism {
    Mechanism::Gaussian { noise_multiplier }
}

/// One of each kind.
fn mechanisms() -> Vec<Mechanism> {
    use Adjacency::{AddRemove, ReplaceOne, ZeroOut};
    let poisson = |adjacency| Mechanism::poisson(0.1, 1.5, adjacency);
    vec![
        gaussian(1.5),
        Mechanism::DiscreteGaussian { noise_multiplier: 1.5 },
        poisson(ZeroOut),
        poisson(AddRemove),
        poisson(ReplaceOne),
    ]
}

fn spent(case: &Case, mechanism: &Mechanism, releases: u32, delta: f64) -> f64 {
    let mut accountant = (case.new)();
    accountant.compose(mechanism, releases).unwrap();
    accountant.epsilon(delta).unwrap()
}

/// Everything that a case supports, for each case.
fn for_each_supported(check: impl Fn(&Case, Mechanism)) {
    for case in accountants() {
        for mechanism in mechanisms().into_iter().filter(case.supports) {
            check(&case, mechanism);
        }
    }
}

#[test]
fn nothing_costs_nothing_and_no_noise_costs_everything() {
    for case in accountants() {
        for delta in [1e-18, 1e-5, 0.5] {
            assert_eq!((case.new)().epsilon(delta).unwrap(), 0.0);
            assert_eq!(spent(&case, &gaussian(1.0), 0, delta), 0.0);
            assert_eq!(spent(&case, &Mechanism::NonPrivate, 0, delta), 0.0);
            let mut accountant = (case.new)();
            accountant.compose(&gaussian(3.0), 5).unwrap();
            accountant.compose(&Mechanism::NonPrivate, 1).unwrap();
            assert_eq!(accountant.epsilon(delta).unwrap(), f64::INFINITY, "{}", accountant.name());
        }
    }
}

#[test]
fn costs_are_monotone() {
    for_each_supported(|case, mechanism| {
        let epsilons = |points: &mut dyn Iterator<Item = (f64, u32, f64)>| -> Vec<f64> {
            points
                .map(|(z, releases, delta)| spent(case, &mechanism.with_noise(z), releases, delta))
                .collect()
        };
        let name = (case.new)().name();
        let more_releases = epsilons(&mut [1, 2, 10, 11, 1000].map(|t| (1.5, t, 1e-5)).into_iter());
        let less_noise =
            epsilons(&mut [100.0, 10.0, 2.0, 1.5, 0.7, 0.1].map(|z| (z, 10, 1e-5)).into_iter());
        let less_delta =
            epsilons(&mut [0.5, 1e-2, 1e-5, 1e-6, 1e-10].map(|d| (1.5, 10, d)).into_iter());
        for series in [more_releases, less_noise, less_delta] {
            assert!(series.is_sorted(), "{name}, {mechanism}: {series:?}");
            assert!(!series.iter().any(|epsilon| epsilon.is_nan()), "{name}, {mechanism}");
        }
    });
}

#[test]
fn releases_may_be_composed_in_parts() {
    for_each_supported(|case, mechanism| {
        let mut parts = (case.new)();
        parts.compose(&mechanism, 3).unwrap();
        parts.compose(&mechanism, 4).unwrap();
        let (parts, whole) = (parts.epsilon(1e-5).unwrap(), spent(case, &mechanism, 7, 1e-5));
        assert!((parts / whole - 1.0).abs() < 1e-9, "{mechanism}: {parts} ≠ {whole}");
    });
}

#[test]
fn what_is_not_covered_is_an_error_and_never_a_number() {
    for case in accountants() {
        for mechanism in mechanisms() {
            let mut accountant = (case.new)();
            let result = accountant.compose(&mechanism, 1);
            if (case.supports)(&mechanism) {
                assert_eq!(result, Ok(()));
                continue;
            }
            let name = accountant.name();
            assert_eq!(result, Err(AccountError::Unsupported { accountant: name, mechanism }));
            assert_eq!(accountant.epsilon(1e-5).unwrap(), 0.0, "{name} counted a refused release");
        }
    }
}

#[test]
fn values_without_meaning_are_refused() {
    let parameter = |result: Result<(), AccountError>| {
        assert!(matches!(result, Err(AccountError::Parameter { .. })), "{result:?}");
    };
    for_each_supported(|case, mechanism| {
        for delta in [0.0, 1.0, -1.0, f64::NAN] {
            parameter((case.new)().epsilon(delta).map(drop));
            let mut accountant = (case.new)();
            accountant.compose(&mechanism, 1).unwrap();
            parameter(accountant.epsilon(delta).map(drop));
        }
        for z in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            parameter((case.new)().compose(&mechanism.with_noise(z), 1));
        }
        if let Mechanism::PoissonGaussian { noise_multiplier, adjacency, .. } = mechanism {
            for rate in [-0.1, 1.1, f64::NAN] {
                let mechanism = Mechanism::PoissonGaussian { rate, noise_multiplier, adjacency };
                parameter((case.new)().compose(&mechanism, 1));
            }
        }
    });
}

/// GDP is exact for Gaussians: no sound accountant is below it.
#[test]
fn the_exact_value_is_never_undercut() {
    for case in accountants() {
        for z in [0.05, 0.3, 1.0, 5.0, 48.0, 1000.0] {
            for releases in [1, 10, 1000] {
                for delta in [1e-12, 1e-5, 1e-3] {
                    let Some(total) = (case.total_delta)(delta, releases, z) else { continue };
                    let exact = gdp::epsilon(f64::from(releases).sqrt() / z, total).unwrap();
                    let epsilon = spent(&case, &gaussian(z), releases, delta);
                    let name = (case.new)().name();
                    assert!(epsilon >= exact * (1.0 - 1e-11), "{name} {z} {releases} {delta}");
                }
            }
        }
    }
}

/// Published, δ = 1e-5: 100 releases with the noise that the classic formula gives for ε = 0.1.
#[test]
fn golden_values() {
    let z = (2.0 * 125_000f64.ln()).sqrt() / 0.1;
    let golden =
        [("gdp", 0.751), ("zcdp", 1.01), ("rdp", 0.822), ("naive", 10.0), ("advanced", 5.85)];
    for case in accountants() {
        let name = (case.new)().name();
        let Some((_, expected)) = golden.iter().find(|(golden, _)| *golden == name) else {
            continue;
        };
        let epsilon = spent(&case, &gaussian(z), 100, 1e-5);
        assert!((epsilon / expected - 1.0).abs() < 2e-3, "{name}: {epsilon} ≠ {expected}");
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 10^x with x uniform.
    fn power(&mut self, low: f64, high: f64) -> f64 {
        10f64.powf(low + (high - low) * self.unit())
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Never missed, and a little less noise would.
fn check_calibration(case: &Case, template: Mechanism, budget: Budget, releases: u32) -> f64 {
    let z = noise_multiplier(budget, template, releases, case.new).unwrap();
    let epsilon = |z| spent(case, &template.with_noise(z), releases, budget.delta());
    let context = format!("{} {template} {budget:?} {releases} {z}", (case.new)().name());
    assert!(epsilon(z) <= budget.epsilon(), "{context}");
    assert!(epsilon(z * (1.0 - 1e-6)) > budget.epsilon(), "{context}");
    z
}

/// 10⁴ and more random targets.
#[test]
fn calibration_never_overshoots_and_never_wastes() {
    for case in accountants() {
        let mut random = Random(7);
        for _ in 0..case.calibrations {
            let budget = Budget::new(random.power(-3.0, 6.0), random.power(-18.0, -2.0)).unwrap();
            let releases = random.power(0.0, 5.0) as u32;
            let z = check_calibration(&case, gaussian(1.0), budget, releases);
            if (case.new)().name() == "gdp" {
                let closed = gaussian_noise_multiplier(budget, releases).unwrap();
                let epsilon = spent(&case, &gaussian(closed), releases, budget.delta());
                assert!(epsilon <= budget.epsilon(), "{budget:?} {releases} {closed}");
                assert!((closed / z - 1.0).abs() < 1e-6, "{budget:?} {releases} {closed} ≠ {z}");
            }
        }
    }
}

/// A few random targets on Poisson samples.
#[test]
fn calibration_on_poisson_samples_never_overshoots_and_never_wastes() {
    for_each_supported(|case, mechanism| {
        let Mechanism::PoissonGaussian { noise_multiplier, adjacency, .. } = mechanism else {
            return;
        };
        let mut random = Random(13);
        for _ in 0..5 {
            let rate = random.power(-2.5, -0.5);
            let template = Mechanism::PoissonGaussian { rate, noise_multiplier, adjacency };
            let budget = Budget::new(random.power(-0.5, 1.5), random.power(-8.0, -4.0)).unwrap();
            check_calibration(case, template, budget, random.power(1.0, 3.0) as u32);
        }
    });
}

/// A float as a whole number of 2⁻¹¹⁸: the exact oracle for sums.
fn exact(value: f64) -> i128 {
    let scaled = value * 2f64.powi(118);
    let whole = scaled as i128;
    assert!(whole as f64 == scaled && scaled < 2f64.powi(126), "{value} is no multiple");
    whole
}

/// A random request, and what the filter grants of it; `None` if it refuses.
fn granted(filter: &Filter, random: &mut Random) -> Option<f64> {
    let (asked, floor) = match filter.kind() {
        FilterKind::Plan { .. } => (f64::from(random.below(3) as u8), 0.0),
        _ => {
            let asked = filter.capacity() * random.power(-9.0, 0.5);
            (asked, asked * [0.0, 0.3, 1.0][random.below(3)])
        }
    };
    match filter.request(asked, floor) {
        Decision::Granted(granted) => {
            assert!(granted == asked && asked <= filter.left());
            Some(granted)
        }
        Decision::Truncated(granted) => {
            assert!(granted == filter.left() && granted < asked && granted >= floor);
            Some(granted)
        }
        Decision::Refused => {
            assert!(asked == 0.0 || filter.left() == 0.0 || filter.left() < floor);
            None
        }
    }
}

/// 10⁵ random interleavings of requests and charges over filters of every kind: no filter passes its
/// capacity by exact sums, and what it says it spent is never below.
#[test]
fn filters_are_never_overspent() {
    let budget = |epsilon| Budget::new(epsilon, 1e-5).unwrap();
    let fresh = [
        Filter::gdp(budget(8.0)).unwrap(),
        Filter::gdp(budget(0.5)).unwrap(),
        Filter::renyi(budget(8.0), 4.3).unwrap(),
        Filter::renyi(budget(1.0), 24.0).unwrap(),
        Filter::plan(budget(8.0), gaussian(2.0), 3, 7.9).unwrap(),
        Filter::plan(budget(1.0), mechanisms()[2], 100, 0.9).unwrap(),
    ];
    let mut random = Random(11);
    for run in 0..100_000 {
        let mut filters = fresh.clone();
        let mut sums = [0i128; 6];
        for _ in 0..24 {
            let which = random.below(filters.len());
            let filter = &mut filters[which];
            let before = filter.spent();
            let Some(granted) = granted(filter, &mut random) else { continue };
            let cost = match (filter.kind(), random.below(4)) {
                (FilterKind::Plan { .. }, _) => 1.0,
                (FilterKind::Gdp, 0) => {
                    let mechanism = filter.mechanism_for(gaussian(1.0), granted).unwrap();
                    filter.cost(&mechanism).unwrap()
                }
                (_, 1) => filter.left().next_up(),
                (_, 2) => granted / 3.0,
                _ => granted,
            };
            let charged = filter.charge(cost);
            if cost <= granted {
                assert_eq!(charged, Ok(()), "run {run}: what was granted must fit");
            }
            match charged {
                Ok(()) => sums[which] += exact(cost),
                Err(_) => assert_eq!(filter.spent(), before, "run {run}"),
            }
            assert!(sums[which] <= exact(filter.capacity()), "run {run}: overspent");
            assert!(sums[which] <= exact(filter.spent()), "run {run}: understated");
        }
        if run % 500 == 0 {
            for filter in &filters {
                let epsilon = filter.spent_epsilon().unwrap();
                assert!((0.0..=filter.budget().epsilon()).contains(&epsilon));
            }
        }
    }
}
