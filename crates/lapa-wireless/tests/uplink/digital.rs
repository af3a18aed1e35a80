//! Values sent as bits.

use super::*;

/// L levels on an axis and x of Q(x), from the textbook rather than from the library.
fn axis(modulation: Modulation, snr: f64) -> (usize, f64) {
    match modulation.bits_per_symbol() {
        1 => (2, (2.0 * snr).sqrt()),
        2 => (2, snr.sqrt()),
        4 => (4, (snr / 5.0).sqrt()),
        bits => unreachable!("{bits} bits per symbol are not tested here"),
    }
}

/// Transition probabilities of L points 2x apart under noise of deviation 1, by integration over
/// the decision regions: an independent twin of the walk over boundaries.
fn transitions(levels: usize, x: f64) -> Vec<Vec<f64>> {
    let above = |from: usize, to: usize| match to {
        0 => 1.0,
        to if to == levels => 0.0,
        to => q_function((2.0 * to as f64 - 1.0 - 2.0 * from as f64) * x),
    };
    let row = |from| (0..levels).map(|to| above(from, to) - above(from, to + 1)).collect();
    (0..levels).map(row).collect()
}

/// Mean and variance of a decoded value whose bits fill whole symbol axes.
fn digital_closed_form(value: f32, quantizer: Quantizer, levels: usize, x: f64) -> (f64, f64) {
    let width = levels.ilog2();
    let groups = quantizer.bits() / width;
    assert_eq!(groups * width, quantizer.bits());
    let table = transitions(levels, x);
    let gray = |i: usize| (i ^ (i >> 1)) as u32;
    let position = |bits: u32| (0..levels).find(|&i| gray(i) == bits).unwrap();
    let place = (f64::from(value) + quantizer.range()) / quantizer.step();
    let roundings = [(place as u32, 1.0 - place.fract()), (place as u32 + 1, place.fract())];
    let (mut mean, mut square) = (0.0, 0.0);
    for (level, weight) in roundings {
        // Groups err independently: means and variances add up.
        let (mut level_mean, mut variance) = (-quantizer.range(), 0.0);
        for shift in (0..groups).map(|group| group * width) {
            let sent = position((level >> shift) & (levels as u32 - 1));
            let moment = |power| -> f64 {
                let value = |i| f64::from(gray(i) << shift) * quantizer.step();
                table[sent].iter().enumerate().map(|(i, p)| p * f64::powi(value(i), power)).sum()
            };
            level_mean += moment(1);
            variance += moment(2) - moment(1).powi(2);
        }
        mean += weight * level_mean;
        square += weight * (variance + level_mean.powi(2));
    }
    (mean, square - mean * mean)
}

#[test]
fn digital_agrees_with_signal_and_closed_form() {
    const TIMES: usize = 20_000;
    let quantizer = Quantizer::new(4, 1.5).unwrap();
    let sent = [vec![0.0, 0.03, -1.5, 0.77, 1.49], vec![-0.4; 5]];
    let limit = limit(3 * 2 * 2 * (5 * 2 * 2 + 2));
    // Links with enough errors for every coordinate to see some.
    for (modulation, snrs) in [(BPSK, [0.0, 4.0]), (QPSK, [4.0, 8.0]), (qam(16), [8.0, 14.0])] {
        for (seed, snr) in (0..).zip(snrs.map(|snr| Db(snr).ratio())) {
            let symbols = Symbols::Digital { quantizer, modulation };
            let snrs = [snr, snr / 2.0];
            let signal = signal_with_snr(&snrs, symbols);
            let (decoded, errors) = repeat_signal(&signal, &sent, TIMES, seed);
            for (k, snr) in snrs.into_iter().enumerate() {
                let digital = Digital::new(quantizer, modulation, snr).unwrap();
                let (mut rng, mut quick_errors) = (rng(10 * seed + k as u64), 0);
                let quick = repeat(&sent[k], TIMES, |values| {
                    quick_errors += digital.transmit(values, &mut rng).symbol_errors;
                });
                let (levels, x) = axis(modulation, snr);
                for (moments, &v) in quick.iter().chain(&decoded[k]).zip(sent[k].iter().cycle()) {
                    let (mean, variance) = digital_closed_form(v, quantizer, levels, x);
                    moments.assert_closed_form(mean, variance, limit);
                    let shrunk = (1.0 - 2.0 * modulation.axis_error(snr)) * f64::from(v);
                    assert!(levels > 2 || (mean - shrunk).abs() < 1e-12, "{mean} {shrunk}");
                }
                // The points of QAM do not all err alike, and these values do not use all alike.
                if levels == 2 {
                    let draws = TIMES * 5 * 4 / modulation.bits_per_symbol() as usize;
                    let rate = modulation.symbol_error_rate(snr);
                    assert_coin(quick_errors, draws, rate, limit);
                    assert_coin(errors[k], draws, rate, limit);
                }
            }
        }
    }
}

/// Groups of bits that cross values, and a padded last symbol, have no simple closed form.
#[test]
fn digital_agrees_with_signal_across_values() {
    const TIMES: usize = 30_000;
    let limit = limit(2 * (7 * 2 + 1));
    let sent = vec![0.1, -0.9, 0.33, 1.0, 0.0, -0.5, 0.71];
    for (modulation, bits, snr, seed) in [(qam(16), 5, 12.0, 1), (qam(64), 8, 60.0, 2)] {
        let quantizer = Quantizer::new(bits, 1.0).unwrap();
        let digital = Digital::new(quantizer, modulation, snr).unwrap();
        let (mut rng, mut quick_errors) = (rng(seed), 0);
        let quick = repeat(&sent, TIMES, |values| {
            quick_errors += digital.transmit(values, &mut rng).symbol_errors;
        });
        let signal = signal_with_snr(&[snr], Symbols::Digital { quantizer, modulation });
        let (slow, errors) = repeat_signal(&signal, std::slice::from_ref(&sent), TIMES, seed + 20);
        for (quick, slow) in quick.iter().zip(&slow[0]) {
            quick.assert_same(slow, limit);
        }
        let symbols = TIMES * Coding::Digital { quantizer, modulation }.symbols(sent.len());
        let rate = errors[0] as f64 / symbols as f64;
        assert!(rate > 0.05, "too few errors to compare: {rate}");
        // Both counts are random: twice the variance of one.
        assert_coin(quick_errors, symbols, rate, limit * 2f64.sqrt());
    }
}

/// Values on levels that f32 holds exactly (step 1), every level as likely.
fn random_levels(bits: u32, count: usize, seed: u64) -> (Quantizer, Vec<f32>) {
    let quantizer = Quantizer::new(bits, f64::from((1u32 << bits) - 1) / 2.0).unwrap();
    let mut rng = rng(seed);
    let mut level = || rng.random_range(0..1u32 << bits) as f32 - quantizer.range() as f32;
    (quantizer, (0..count).map(|_| level()).collect())
}

#[test]
fn bits_and_symbols_err_at_their_rates() {
    const COUNT: usize = 100_000;
    let limit = limit(3 * 4 * 3);
    for (i, modulation) in (0..).zip([BPSK, QPSK, qam(16), qam(64)]) {
        for (seed, snr) in (3 * i..).zip([4.0, 8.0, 14.0].map(|snr| Db(snr).ratio())) {
            let (quantizer, sent) = random_levels(6, COUNT, seed);
            let digital = Digital::new(quantizer, modulation, snr).unwrap();
            let mut decoded = sent.clone();
            let report = digital.transmit(&mut decoded, &mut rng(77 + seed));
            let rate = modulation.symbol_error_rate(snr);
            let symbols = 6 * COUNT / modulation.bits_per_symbol() as usize;
            assert_eq!(report.cut, 0);
            assert_coin(report.symbol_errors, symbols, rate, limit);

            let bit_rate = digital.bit_error_rate();
            let expected = match modulation {
                BPSK => rate,
                QPSK => 1.0 - (1.0 - rate).sqrt(),
                _ => bit_rate,
            };
            assert!((bit_rate - expected).abs() < 1e-12, "{bit_rate} {expected}");
            let index = |value: f32| (f64::from(value) + quantizer.range()) as u32;
            let flips = sent.iter().zip(&decoded).map(|(&a, &b)| index(a) ^ index(b));
            let flipped: usize = flips.map(|flips| flips.count_ones() as usize).sum();
            // The bits of an axis err together: at most so much more variance than with coins.
            let together = f64::from(modulation.levels_per_axis().ilog2()).sqrt();
            assert_coin(flipped, 6 * COUNT, bit_rate, limit * together);

            // Levels need no rounding: the estimate without its Δ²/6 is exact. Too few errors would
            // not show it.
            if modulation.levels_per_axis() == 2 && flipped > 50 {
                let square = |(a, b): (&f32, &f32)| f64::from(a - b).powi(2);
                let squares: Vec<f64> = sent.iter().zip(&decoded).map(square).collect();
                let n = COUNT as f64;
                let mean = squares.iter().sum::<f64>() / n;
                let variance = squares.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n;
                let estimate = digital.noise_std().powi(2) - 1.0 / 6.0;
                let allowed = limit * (variance / n).sqrt();
                assert!((mean - estimate).abs() <= allowed, "{mean} {estimate}");
            }
        }
    }
}

#[test]
fn symbols_of_signals_err_at_their_rates() {
    const COUNT: usize = 20_000;
    for (i, modulation) in (0..).zip([BPSK, QPSK, qam(16)]) {
        for (seed, snr) in (3 * i..).zip([4.0, 8.0, 14.0].map(|snr| Db(snr).ratio())) {
            let (quantizer, sent) = random_levels(4, COUNT, seed);
            let signal = signal_with_snr(&[snr], Symbols::Digital { quantizer, modulation });
            let report = signal.transmit(&mut [sent], &mut rng(seed)).unwrap()[0];
            let symbols = 4 * COUNT / modulation.bits_per_symbol() as usize;
            let rate = modulation.symbol_error_rate(snr);
            assert_coin(report.symbol_errors, symbols, rate, limit(3 * 3));
        }
    }
}

/// Every value between two levels, small ones too, is itself on the average.
#[test]
fn without_errors_decoding_is_unbiased_and_near() {
    let sent = [0.0, 1e-3, -0.04, 0.21, -1.0, 1.0, 0.999, -0.66];
    let limit = limit(4 * 2 * 8 * 2);
    for bits in [1, 3, 8, 16] {
        let quantizer = Quantizer::new(bits, 1.0).unwrap();
        let step = quantizer.step();
        for (seed, snr) in [(1, f64::INFINITY), (2, 1e6)] {
            let digital = Digital::new(quantizer, qam(16), snr).unwrap();
            let mut rng = rng(seed);
            let moments = repeat(&sent, 20_000, |values| {
                assert_eq!(digital.transmit(values, &mut rng), DigitalReport::default());
                for (value, sent) in values.iter().zip(sent) {
                    assert!(f64::from((value - sent).abs()) < step + 1e-6);
                }
            });
            for (moments, v) in moments.iter().zip(sent) {
                let place = ((f64::from(v) + 1.0) / step).fract();
                let variance = step * step * place * (1.0 - place);
                moments.assert_closed_form(v.into(), variance, limit);
            }
        }
    }
}

/// Infinite noise leaves the outermost points, at random: of 16-QAM with 2 bits on an axis the
/// levels 00 and 10.
#[test]
fn without_a_signal_bits_are_random() {
    const COUNT: usize = 50_000;
    let any = [0.25; 4];
    for (modulation, shares) in [(BPSK, any), (QPSK, any), (qam(16), [0.5, 0.0, 0.5, 0.0])] {
        let (quantizer, mut values) = random_levels(2, COUNT, 5);
        let digital = Digital::new(quantizer, modulation, 0.0).unwrap();
        digital.transmit(&mut values, &mut rng(6));
        for (level, share) in [-1.5, -0.5, 0.5, 1.5].into_iter().zip(shares) {
            let count = values.iter().filter(|&&v| v == level).count();
            assert_coin(count, COUNT, share, limit(3 * 4));
        }
    }
}

#[test]
fn what_is_out_of_range_is_cut_and_counted() {
    let quantizer = Quantizer::new(8, 2.0).unwrap();
    let sent = vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2.5, -2.0, 2.0, 1e38, 0.5];
    let digital = Digital::new(quantizer, QPSK, f64::INFINITY).unwrap();
    let mut quick = sent.clone();
    let report = digital.transmit(&mut quick, &mut rng(1));
    assert_eq!(report, DigitalReport { cut: 5, symbol_errors: 0 });
    assert_eq!(digital.transmit(&mut [], &mut rng(1)), DigitalReport::default());

    let signal = signal_with_snr(&[1e6; 2], Symbols::Digital { quantizer, modulation: QPSK });
    let mut updates = [sent, vec![0.0; 8]];
    let reports = signal.transmit(&mut updates, &mut rng(1)).unwrap();
    assert_eq!(reports, [report, DigitalReport::default()]);
    for decoded in [&quick, &updates[0]] {
        assert!(f64::from(decoded[0].abs()) <= quantizer.step());
        assert_eq!(decoded[1..7], [2.0, -2.0, 2.0, -2.0, 2.0, 2.0]);
        assert!(f64::from((decoded[7] - 0.5).abs()) <= quantizer.step());
    }
}
