//! Symbol error rates against symbols that were sent, disturbed and decided.

use lapa_wireless::channel::Complex64;
use lapa_wireless::ser::{Modulation, inverse_q};
use lapa_wireless::units::Db;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::StandardNormal;

const SYMBOLS: u32 = 200_000;

/// The chance that any comparison of this file fails although the rates are right.
const ALPHA: f64 = 1e-6;

/// All symbols, of mean energy 1, written down without the library's formulas.
fn constellation(modulation: Modulation) -> Vec<Complex64> {
    let levels = |count: i32| (0..count).map(move |level| f64::from(2 * level - count + 1));
    let symbols: Vec<Complex64> = match modulation.to_string().as_str() {
        "bpsk" => levels(2).map(Complex64::from).collect(),
        name => {
            let side = match name {
                "qpsk" => 2,
                "16-qam" => 4,
                _ => 8,
            };
            levels(side).flat_map(|re| levels(side).map(move |im| Complex64::new(re, im))).collect()
        }
    };
    let energy = symbols.iter().map(|s| s.norm_sqr()).sum::<f64>() / symbols.len() as f64;
    symbols.into_iter().map(|symbol| symbol / energy.sqrt()).collect()
}

fn nearest(symbols: &[Complex64], received: Complex64) -> usize {
    let distance = |i: &usize| (symbols[*i] - received).norm_sqr();
    (0..symbols.len()).min_by(|i, j| distance(i).total_cmp(&distance(j))).unwrap()
}

/// Symbol errors, and those with a wrong real part, of symbols in noise CN(0, 1/γ).
fn errors(symbols: &[Complex64], sinr: f64, seed: u64) -> (u32, u32) {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let sigma = (0.5 / sinr).sqrt();
    let (mut wrong, mut real_wrong) = (0, 0);
    for _ in 0..SYMBOLS {
        let sent = rng.random_range(0..symbols.len());
        let noise = Complex64::new(rng.sample(StandardNormal), rng.sample(StandardNormal));
        let decided = nearest(symbols, symbols[sent] + noise * sigma);
        wrong += u32::from(decided != sent);
        real_wrong += u32::from(symbols[decided].re != symbols[sent].re);
    }
    (wrong, real_wrong)
}

/// Counts are binomial, here taken as normal (at least 100 errors are expected), with Bonferroni's
/// correction over all comparisons.
#[test]
fn rates_are_those_of_decided_symbols() {
    let cases = [
        ("bpsk", [-5.0, 0.0, 3.0, 6.0]),
        ("qpsk", [-3.0, 3.0, 6.0, 9.0]),
        ("16-qam", [0.0, 8.0, 12.0, 16.0]),
        ("64-qam", [5.0, 14.0, 18.0, 22.0]),
    ];
    let comparisons = 2 * cases.iter().map(|(_, snrs)| snrs.len()).sum::<usize>();
    let limit = inverse_q(ALPHA / 2.0 / comparisons as f64);
    for (name, decibels) in cases {
        let modulation: Modulation = name.parse().unwrap();
        let symbols = constellation(modulation);
        assert_eq!(symbols.len(), 1 << modulation.bits_per_symbol());
        for (seed, db) in decibels.into_iter().enumerate() {
            let sinr = Db(db).ratio();
            let (wrong, real_wrong) = errors(&symbols, sinr, seed as u64);
            // An inner level has two boundaries, an outer one has one.
            let boundaries = 2.0 * (1.0 - 1.0 / f64::from(modulation.levels_per_axis()));
            for (count, rate) in [
                (wrong, modulation.symbol_error_rate(sinr)),
                (real_wrong, boundaries * modulation.axis_error(sinr)),
            ] {
                let expected = f64::from(SYMBOLS) * rate;
                assert!(expected > 100.0);
                let deviation = (expected * (1.0 - rate)).sqrt();
                let error = (f64::from(count) - expected) / deviation;
                assert!(error.abs() <= limit, "{name} at {db} dB: {count}, not {expected}");
            }
        }
    }
}
