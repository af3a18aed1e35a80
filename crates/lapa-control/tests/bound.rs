//! Theorem 1, printed and corrected: by hand, on quadratics that are known exactly, and on bad
//! input.

use lapa::config::BoundForm;
use lapa::seed::{Purpose, Stream, stream};
use lapa_control::bound::*;
use proptest::prelude::*;
use rand::RngExt;

fn constants(smoothness: f64, convexity: f64, dissimilarity: f64, learning_rate: f64) -> Constants {
    Constants { smoothness, convexity, dissimilarity, learning_rate }
}

/// Two devices with weights ¾ and ¼, q = 10; L = 4, μ = 1, δ² = 2, λ = 0.1.
///
/// Per round, artificial noise 1, 2, 3 on the first device and none on the second, channel noise
/// 0.4 on the first and 1.2 on the second:
/// ΣG² = 9/16 + 1/16 = 0.625, Lλ²/2 = 0.02,
/// artificial Σ_k G_k²σ² = 9/16·(1, 2, 3) = 0.5625, 1.125, 1.6875,
/// channel Σ_k G_k²σ² = 9/16·0.4 + 1/16·1.2 = 0.225 + 0.075 = 0.3.
fn by_hand(rounds: usize) -> Setting {
    let devices = |round: usize| {
        vec![
            DeviceNoise { weight: 0.75, artificial: (round + 1) as f64, channel: 0.4 },
            DeviceNoise { weight: 0.25, artificial: 0.0, channel: 1.2 },
        ]
    };
    Setting {
        initial_gap: 8.0,
        constants: constants(4.0, 1.0, 2f64.sqrt(), 0.1),
        coordinates: 10,
        rounds: (0..rounds).map(devices).collect(),
    }
}

fn close(terms: Terms, initial: f64, channel: f64, artificial: f64) {
    for (value, expected) in [
        (terms.initial, initial),
        (terms.channel, channel),
        (terms.artificial, artificial),
        (terms.total(), initial + channel + artificial),
    ] {
        assert!((value - expected).abs() < 1e-12 * (1.0 + expected), "{value} {expected}");
    }
}

/// A = 1 + 1·4·0.01·2·0.625 − 0.2 = 0.85.
///
/// t = 1: 8·0.85 = 6.8; 0.02·0.3 = 0.006; 0.02·0.5625 = 0.01125.
/// t = 2: 8·0.7225 = 5.78; 0.006·1.85 = 0.0111; 0.02·(0.5625 + 0.85·1.125) = 0.030375.
/// t = 3: 8·0.614125 = 4.913; 0.006·2.5725 = 0.015435;
/// 0.02·(0.5625 + 0.95625 + 0.7225·1.6875) = 0.054759375.
#[test]
fn the_printed_bound_by_hand() {
    let bound = printed(&by_hand(3), None).unwrap();
    assert!((bound.contraction - 0.85).abs() < 1e-12);
    close(bound.after[0], 8.0, 0.0, 0.0);
    close(bound.after[1], 6.8, 0.006, 0.01125);
    close(bound.after[2], 5.78, 0.0111, 0.030375);
    close(bound.last(), 4.913, 0.015435, 0.054759375);
    for rounds in 0..3 {
        let shorter = printed(&by_hand(rounds), None).unwrap();
        assert_eq!(shorter.after[..], bound.after[..=rounds]);
    }
    // Artificial noise in the first round, in the first two, and in none.
    for (switching_round, artificial) in [(1, 0.01125), (2, 0.030375), (0, 0.0), (9, 0.054759375)] {
        close(
            printed(&by_hand(3), Some(switching_round)).unwrap().last(),
            4.913,
            0.015435,
            artificial,
        );
    }
}

/// A = 1 + 1·4·0.01·2 − 0.2 = 0.88, q = 10, so a round adds 0.2·ΣG²σ².
///
/// t = 1: 8·0.88 = 7.04; 0.2·0.3 = 0.06; 0.2·0.5625 = 0.1125.
/// t = 2: 6.1952; 0.06·1.88 = 0.1128; 0.1125·0.88 + 0.225 = 0.324.
/// t = 3: 5.451776; 0.1128·0.88 + 0.06 = 0.159264; 0.324·0.88 + 0.3375 = 0.62262.
#[test]
fn the_corrected_bound_by_hand() {
    let bound = corrected(&by_hand(3)).unwrap();
    assert!((bound.contraction - 0.88).abs() < 1e-12);
    close(bound.after[0], 8.0, 0.0, 0.0);
    close(bound.after[1], 7.04, 0.06, 0.1125);
    close(bound.after[2], 6.1952, 0.1128, 0.324);
    close(bound.last(), 5.451776, 0.159264, 0.62262);
    assert_eq!(corrected(&by_hand(0)).unwrap().last(), bound.after[0]);
    // A round without devices takes no step.
    let mut paused = by_hand(3);
    paused.rounds.insert(1, Vec::new());
    let with_pause = corrected(&paused).unwrap();
    assert_eq!(with_pause.after[2], bound.after[1]);
    assert_eq!(with_pause.last(), bound.last());
}

/// With one device, one coordinate, no dissimilarity and one round both forms are the same; for
/// A = 1 noise adds up: λ = 2/(Lδ²) = 1, Lλ²/2 = 1.
#[test]
fn forms_agree_where_nothing_was_corrected_and_a_is_one() {
    let round = vec![DeviceNoise { weight: 1.0, artificial: 0.25, channel: 0.5 }];
    let setting = |learning_rate, rounds| Setting {
        initial_gap: 1.0,
        constants: constants(2.0, 0.5, 1.0, learning_rate),
        coordinates: 1,
        rounds: vec![round.clone(); rounds],
    };
    let one = setting(0.3, 1);
    assert_eq!(printed(&one, None).unwrap(), corrected(&one).unwrap());
    for bound in [printed(&setting(1.0, 4), None).unwrap(), corrected(&setting(1.0, 4)).unwrap()] {
        assert_eq!(bound.contraction, 1.0);
        close(bound.last(), 1.0, 2.0, 1.0);
    }
    // Beyond the limit the loss may grow by 1 + 2L(Lλ²/2 − λ) = 1 + 4·(2.25 − 1.5) = 4 a round.
    assert_eq!(corrected(&setting(1.5, 1)).unwrap().contraction, 4.0);
}

/// λ < 2/(4·2·0.625) = 0.4 printed, 2/(4·2) = 0.25 corrected; at twice the δ a quarter of that.
#[test]
fn the_learning_rate_condition_by_hand_and_how_it_tightens() {
    let setting = by_hand(1);
    let squares = setting.squared_weights();
    for (form, limit) in [(BoundForm::Printed, 0.4), (BoundForm::Corrected, 0.25)] {
        let condition = RateCondition::new(form, &setting.constants, squares).unwrap();
        assert!((condition.limit() - limit).abs() < 1e-12 && condition.holds());
        let table = condition.tightening(&[0.1, 1.0, 2.0, 4.0]);
        // No dissimilarity is below 1.
        assert_eq!(table[0].dissimilarity, 1.0);
        let expected = [2.0, 1.0, 0.25, 0.0625].map(|factor| factor * limit);
        for (row, expected) in table.iter().zip(expected) {
            assert!((row.limit - expected).abs() < 1e-12);
            assert_eq!(row.holds, 0.1 < row.limit);
        }
        // A < 1 exactly where it holds.
        for learning_rate in [0.99 * limit, 1.01 * limit] {
            let constants = Constants { learning_rate, ..setting.constants };
            let a = match form {
                BoundForm::Printed => printed_contraction(&constants, squares),
                BoundForm::Corrected => corrected_contraction(&constants),
            };
            let condition = RateCondition::new(form, &constants, squares).unwrap();
            assert_eq!(a.unwrap() < 1.0, condition.holds());
        }
    }
}

/// Each of the three corrections is needed by itself: F(w) = ½w², λ = ½, E w² ← ¼E w² + ¼σ².
#[test]
fn each_correction_has_a_case_that_needs_it() {
    let exceeded = |setting: &Setting, exact: f64| {
        assert!(corrected(setting).unwrap().last().total() >= exact - 1e-12);
        assert!(printed(setting, None).unwrap().last().total() < exact - 1e-6);
    };
    let setting = |coordinates, rounds| Setting {
        initial_gap: 0.0,
        constants: constants(1.0, 1.0, 1.0, 0.5),
        coordinates,
        rounds,
    };
    let noise = |weight, artificial| DeviceNoise { weight, artificial, channel: 0.0 };
    // Late noise: nothing in the first round, σ² = 1 in the second. E F = ⅛.
    exceeded(&setting(1, vec![vec![noise(1.0, 0.0)], vec![noise(1.0, 1.0)]]), 0.125);
    // Three coordinates: E F = 3·⅛.
    exceeded(&setting(3, vec![vec![noise(1.0, 1.0)]]), 0.375);
    // Two devices that agree, F(w⁰) = ½ and no noise: F(w¹) = ⅛. Printed, A is ⅛ instead of ¼.
    let agree =
        Setting { initial_gap: 0.5, ..setting(1, vec![vec![noise(0.5, 0.0), noise(0.5, 0.0)]]) };
    exceeded(&agree, 0.125);
}

type Matrix = Vec<Vec<f64>>;

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let n = a.len();
    let entry = |i: usize, j: usize| (0..n).map(|k| a[i][k] * b[k][j]).sum();
    (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
}

fn transposed(a: &Matrix) -> Matrix {
    (0..a.len()).map(|i| a.iter().map(|row| row[i]).collect()).collect()
}

/// Σ factor·matrix
fn combined<'a>(parts: impl IntoIterator<Item = (f64, &'a Matrix)>, n: usize) -> Matrix {
    let mut sum = vec![vec![0.0; n]; n];
    for (factor, matrix) in parts {
        for (sum, row) in sum.iter_mut().zip(matrix) {
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += factor * value);
        }
    }
    sum
}

fn identity(n: usize) -> Matrix {
    (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect()
}

/// Eigenvalues and eigenvectors (as rows) of a symmetric matrix, by Jacobi rotations.
fn eigen(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.len();
    let (mut a, mut vectors) = (a.clone(), identity(n));
    for _ in 0..60 {
        for i in 0..n {
            for j in i + 1..n {
                if a[i][j].abs() < 1e-300 {
                    continue;
                }
                let theta = (a[j][j] - a[i][i]) / (2.0 * a[i][j]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let mut rotation = identity(n);
                (rotation[i][i], rotation[j][j]) = (c, c);
                (rotation[i][j], rotation[j][i]) = (-t * c, t * c);
                a = product(&product(&rotation, &a), &transposed(&rotation));
                vectors = product(&rotation, &vectors);
            }
        }
    }
    ((0..n).map(|i| a[i][i]).collect(), vectors)
}

/// K quadratics F_k(w) = ½(w − a)ᵀH_k(w − a) with one minimizer a, so that A4 holds with a finite
/// δ. Everything about F = ΣG_kF_k is known exactly: F* = 0, μ and L are the ends of the spectrum
/// of H = ΣG_kH_k, and δ² = max ΣG_k‖H_kx‖²/‖Hx‖² is the largest eigenvalue of
/// H⁻¹(ΣG_kH_k²)H⁻¹.
struct Quadratics {
    hessian: Matrix,
    setting: Setting,
    start: Vec<f64>,
}

impl Quadratics {
    fn random(rng: &mut Stream) -> Self {
        let q = rng.random_range(1..=5);
        let devices = rng.random_range(1..=6);
        let shares: Vec<f64> = (0..devices).map(|_| rng.random_range(0.05..1.0)).collect();
        let total: f64 = shares.iter().sum();
        let weights: Vec<f64> = shares.iter().map(|share| share / total).collect();
        // Difference of the devices, and their condition.
        let spread: f64 = rng.random_range(0.0..1.0);
        let ridge: f64 = rng.random_range(0.001..0.1);
        let base = positive(q, ridge, rng);
        let hessians: Vec<Matrix> = (0..devices)
            .map(|_| {
                let own = positive(q, ridge, rng);
                combined([(1.0 - spread, &base), (spread, &own)], q)
            })
            .collect();
        let hessian = combined(weights.iter().copied().zip(&hessians), q);
        let squares: Vec<Matrix> = hessians.iter().map(|h| product(h, h)).collect();
        let squares = combined(weights.iter().copied().zip(&squares), q);
        let (values, vectors) = eigen(&hessian);
        let inverse = {
            let scaled = (0..q).map(|i| vectors[i].iter().map(|v| v / values[i]).collect());
            product(&transposed(&vectors), &scaled.collect())
        };
        let (ratios, _) = eigen(&product(&product(&inverse, &squares), &inverse));
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let dissimilarity = most(&ratios).sqrt().max(1.0);
        let limit = 2.0 / (most(&values) * dissimilarity * dissimilarity);
        // A third beyond the limit, where the bound may grow.
        let learning_rate = limit * rng.random_range(0.01..1.5);
        let scale = 10f64.powi(rng.random_range(-3..=0));
        let noises: Vec<[f64; 2]> =
            (0..devices).map(|_| [0; 2].map(|_| scale * rng.random_range(0.0..1.0))).collect();
        // Artificial noise falls, as with LAPA, or rises.
        let trend: f64 = rng.random_range(0.7..1.2);
        let rounds = (0..rng.random_range(1..=40))
            .map(|round| {
                let device = |(&weight, noise): (&f64, &[f64; 2])| DeviceNoise {
                    weight,
                    artificial: noise[0] * trend.powi(round),
                    channel: noise[1],
                };
                weights.iter().zip(&noises).map(device).collect()
            })
            .collect();
        let start: Vec<f64> = (0..q).map(|_| rng.random_range(-1.0..1.0)).collect();
        let mut quadratics = Self {
            hessian,
            setting: Setting {
                initial_gap: 0.0,
                constants: constants(most(&values), least, dissimilarity, learning_rate),
                coordinates: q,
                rounds,
            },
            start,
        };
        quadratics.setting.initial_gap = quadratics.expected_losses()[0];
        quadratics
    }

    /// E F(w^t) after 0, 1, …, T rounds of w ← w − λΣG_k(∇F_k(w) + N_k), exactly: with x = w − a,
    /// E xxᵀ ← (I − λH)·E xxᵀ·(I − λH) + λ²ΣG_k²σ_k²·I and E F = ½tr(H·E xxᵀ).
    fn expected_losses(&self) -> Vec<f64> {
        let q = self.start.len();
        let rate = self.setting.constants.learning_rate;
        let step = combined([(1.0, &identity(q)), (-rate, &self.hessian)], q);
        let outer = |x: &f64| self.start.iter().map(|y| x * y).collect();
        let mut moment: Matrix = self.start.iter().map(outer).collect();
        let loss = |moment: &Matrix| {
            let product = product(&self.hessian, moment);
            0.5 * (0..q).map(|i| product[i][i]).sum::<f64>()
        };
        let mut losses = vec![loss(&moment)];
        for devices in &self.setting.rounds {
            let variance: f64 =
                devices.iter().map(|d| d.weight.powi(2) * (d.artificial + d.channel)).sum();
            let moved = product(&product(&step, &moment), &step);
            moment = combined([(1.0, &moved), (rate * rate * variance, &identity(q))], q);
            losses.push(loss(&moment));
        }
        losses
    }

    /// True if a bound is exceeded after some round.
    fn exceed(&self, bound: &Bound) -> bool {
        let losses = self.expected_losses();
        losses.iter().zip(&bound.after).any(|(loss, terms)| *loss > terms.total() * (1.0 + 1e-9))
    }
}

/// BBᵀ/q + ridge·I with B uniform.
fn positive(q: usize, ridge: f64, rng: &mut Stream) -> Matrix {
    let b: Matrix = (0..q).map(|_| (0..q).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
    combined([(1.0 / q as f64, &product(&b, &transposed(&b))), (ridge, &identity(q))], q)
}

#[test]
fn eigenvalues_of_a_known_matrix() {
    // [[2, 1], [1, 2]] has 1 and 3.
    let (mut values, _) = eigen(&vec![vec![2.0, 1.0], vec![1.0, 2.0]]);
    values.sort_by(f64::total_cmp);
    assert!((values[0] - 1.0).abs() < 1e-14 && (values[1] - 3.0).abs() < 1e-14);
}

/// Of 1000 random strongly convex instances, none exceeds the corrected bound after any round.
/// The printed form is exceeded on most, and on some it has A < 0, where it says nothing.
#[test]
fn quadratics_stay_below_the_corrected_bound_and_exceed_the_printed_one() {
    let (mut exceeded, mut undefined, mut beyond) = (0u32, 0u32, 0);
    for instance in 0..1000 {
        let mut rng = stream(1, Purpose::Noise, instance, 0);
        let quadratics = Quadratics::random(&mut rng);
        let bound = corrected(&quadratics.setting).unwrap();
        assert!(!quadratics.exceed(&bound), "instance {instance}");
        beyond += u32::from(bound.contraction > 1.0);
        match printed(&quadratics.setting, None) {
            Ok(bound) => exceeded += u32::from(quadratics.exceed(&bound)),
            Err(BoundError::Contraction { form: BoundForm::Printed, value }) => {
                assert!(value < 0.0);
                undefined += 1;
            }
            Err(error) => panic!("instance {instance}: {error}"),
        }
    }
    println!(
        "of 1000 instances, {beyond} beyond the learning-rate limit: corrected bound exceeded on \
         0, printed one on {exceeded}, undefined on {undefined}"
    );
    assert!(beyond > 100, "{beyond}");
    // Last bits differ between platforms, and move instances that are on the edge.
    assert!(exceeded.abs_diff(481) <= 10 && undefined.abs_diff(187) <= 10);
}

#[test]
fn refusals_name_the_value_and_what_is_allowed() {
    let good = by_hand(2);
    let refused = |change: &dyn Fn(&mut Setting)| {
        let mut setting = good.clone();
        change(&mut setting);
        let (printed, corrected) = (printed(&setting, None), corrected(&setting));
        let text = corrected.unwrap_err().to_string();
        assert_eq!(printed.unwrap_err().to_string(), text);
        text
    };
    for (text, expected) in [
        (
            refused(&|s| s.constants.learning_rate = 0.0),
            "learning rate = 0: expected a finite number above 0",
        ),
        (
            refused(&|s| s.constants.dissimilarity = 0.5),
            "dissimilarity = 0.5: expected a finite number from 1",
        ),
        (
            refused(&|s| s.constants.convexity = 5.0),
            "convexity = 5: expected at most the smoothness",
        ),
        (
            refused(&|s| s.constants.smoothness = f64::NAN),
            "smoothness = NaN: expected a finite number above 0",
        ),
        (refused(&|s| s.initial_gap = -1.0), "initial gap = -1: expected a finite number from 0"),
        (refused(&|s| s.coordinates = 0), "coordinates = 0: expected at least 1"),
        (
            refused(&|s| s.rounds[1][0].weight = 0.5),
            "the weights of round 1, from 0, sum to 0.75: expected 1",
        ),
        (
            refused(&|s| s.rounds[0][1].channel = f64::INFINITY),
            "channel noise inf of device 1 in round 0, both from 0: expected a finite number from 0",
        ),
    ] {
        assert_eq!(text, expected);
    }
    // Equal weights of ten devices that agree, L = μ: A = 1 + 0.1·x² − 2x is below 0 at x = λL = 1.
    let alike = constants(2.0, 2.0, 1.0, 0.5);
    let error = printed_contraction(&alike, 0.1).unwrap_err();
    assert!(
        matches!(error, BoundError::Contraction { form: BoundForm::Printed, value } if (value + 0.9).abs() < 1e-12)
    );
    assert!(error.to_string().contains("expected a finite number from 0"), "{error}");
    assert_eq!(corrected_contraction(&alike).unwrap(), 0.0);
    assert!(printed_contraction(&alike, 0.0).is_err() && printed_contraction(&alike, 1.1).is_err());
}

proptest! {
    /// Whatever the numbers, a bound is a number or there is an error that says what is wrong.
    #[test]
    fn no_input_gives_nan(
        values in proptest::array::uniform8(prop_oneof![
            any::<f64>(), -2.0..2.0f64, Just(0.0), Just(f64::MAX), Just(f64::MIN_POSITIVE)
        ]),
        coordinates in 0usize..4,
        rounds in 0usize..5,
        switching_round in proptest::option::of(0u32..6),
    ) {
        let [initial_gap, smoothness, convexity, dissimilarity, rate, weight, artificial, channel] = values;
        let devices = vec![
            DeviceNoise { weight, artificial, channel },
            DeviceNoise { weight: 1.0 - weight, artificial: channel, channel: artificial },
        ];
        let setting = Setting {
            initial_gap,
            constants: constants(smoothness, convexity, dissimilarity, rate),
            coordinates,
            rounds: vec![devices; rounds],
        };
        for bound in [printed(&setting, switching_round), corrected(&setting)].into_iter().flatten() {
            prop_assert!(bound.contraction >= 0.0 && bound.contraction.is_finite());
            prop_assert_eq!(bound.after.len(), rounds + 1);
            for terms in bound.after {
                for term in [terms.initial, terms.channel, terms.artificial, terms.total()] {
                    prop_assert!(term >= 0.0, "{:?} {:?}", setting, term);
                }
            }
        }
    }

    /// Good symbols always have a corrected bound, and it grows with each of them.
    #[test]
    fn more_noise_never_lowers_the_corrected_bound(
        smoothness in 0.1..100.0f64, share in 0.001..1.0f64, dissimilarity in 1.0..20.0f64,
        rate in 1e-4..1.0f64, noise in 0.0..5.0f64, more in 0.0..5.0f64, rounds in 1usize..20,
    ) {
        let total = |artificial: f64| {
            let device = DeviceNoise { weight: 1.0, artificial, channel: noise };
            let setting = Setting {
                initial_gap: 1.0,
                constants: constants(smoothness, share * smoothness, dissimilarity, rate),
                coordinates: 7,
                rounds: vec![vec![device]; rounds],
            };
            corrected(&setting).unwrap().last().total()
        };
        prop_assert!(total(noise + more) >= total(noise));
    }
}
