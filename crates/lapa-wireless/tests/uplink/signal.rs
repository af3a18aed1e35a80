//! Several devices at once.

use super::*;

/// All devices share the receiver's noise: Cov(ê_j, ê_k) = c_j c_k·σ²/2·Re(w_j^H w_k).
#[test]
fn signal_errors_of_devices_are_correlated() {
    const TIMES: usize = 40_000;
    let signal = signal_with_snr(&[2.0, 2.0, 2.0], Symbols::Analog { scales: vec![1.0; 3] });
    let combiner = |k: usize| {
        let factor = signal.channels.gain(k) * signal.powers[k].0.sqrt();
        signal.channels.of(k).iter().map(move |h| h / factor)
    };
    let mut updates = vec![vec![0.0; TIMES]; 3];
    signal.transmit(&mut updates, &mut rng(6)).unwrap();
    let mut largest = 0.0f64;
    for (j, k) in [(0, 1), (0, 2), (1, 2)] {
        let products = updates[j].iter().zip(&updates[k]).map(|(a, b)| f64::from(a * b));
        let covariance = products.sum::<f64>() / TIMES as f64;
        let product: Complex64 = combiner(j).zip(combiner(k)).map(|(a, b)| a.conj() * b).sum();
        let expected = signal.noma.noise.0 / 2.0 * product.re;
        // Each has variance 1/4; their product has at most twice 1/16.
        let spread = (2.0 / 16.0 / TIMES as f64).sqrt();
        assert!((covariance - expected).abs() <= limit(3) * spread, "{covariance} {expected}");
        largest = largest.max(expected.abs());
    }
    assert!(largest > 0.05, "these channels would not show a shared noise: {largest}");
}

/// Orthogonal channels do not interfere: cancelling decoded signals changes nothing.
#[test]
fn orthogonal_devices_need_no_cancellation() {
    let (one, i) = (Complex64::ONE, Complex64::I);
    let channels = channels([[one, i, one], [one, i, -2.0 * one]]);
    let quantizer = Quantizer::new(6, 1.0).unwrap();
    for symbols in [
        Symbols::Analog { scales: vec![0.3, 2.0] },
        Symbols::Digital { quantizer, modulation: qam(16) },
    ] {
        let [perfect, real] = [true, false].map(|perfect_sic| {
            let powers = vec![Watt(0.7), Watt(0.2)];
            let (channels, symbols) = (channels.clone(), symbols.clone());
            let signal = Signal { channels, powers, noma: noma(perfect_sic, 0.1), symbols };
            let mut updates = vec![vec![0.4; 300], vec![-0.1; 300]];
            signal.transmit(&mut updates, &mut rng(4)).unwrap();
            updates.concat()
        });
        for (a, b) in perfect.iter().zip(&real) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}

/// On one antenna without noise, worked by hand. y = 2s₁ + 1.5s₂ + 1.2s₃ with signs (+, −, −) is
/// −0.7: the first is taken for −, the rest 1.3 for +, the rest −0.2 for −.
#[test]
fn decisions_cancel_and_errors_propagate() {
    let quantizer = Quantizer::new(1, 1.0).unwrap();
    let decode = |amplitudes: &[f64], signs: &[f32]| {
        let signal = Signal {
            channels: channels([[Complex64::ONE]; 3]).select(0..amplitudes.len()),
            powers: amplitudes.iter().map(|p| Watt(p * p)).collect(),
            noma: noma(false, 1e-12),
            symbols: Symbols::Digital { quantizer, modulation: BPSK },
        };
        let mut updates: Vec<_> = signs.iter().map(|&sign| vec![sign]).collect();
        let reports = signal.transmit(&mut updates, &mut rng(1)).unwrap();
        let errors: Vec<_> = reports.iter().map(|report| report.symbol_errors).collect();
        (updates.concat(), errors)
    };
    // The strongest is the second device: the order is not that of devices.
    let decoded = decode(&[1.5, 2.0, 1.2], &[-1.0, 1.0, -1.0]);
    assert_eq!(decoded, (vec![1.0, -1.0, -1.0], vec![1, 1, 0]));
    for signs in [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]] {
        assert_eq!(decode(&[2.0, 1.0], &signs), (signs.to_vec(), vec![0, 0]));
    }
}

/// On one antenna an analog estimate takes all with it; a signal in quadrature is not touched.
#[test]
fn analog_estimates_are_not_cleaned() {
    let (one, i) = (Complex64::ONE, Complex64::I);
    for (second, expected) in [(one, [0.3 + 0.5 * 0.8, 0.0]), (i, [0.3, 0.8])] {
        let signal = Signal {
            channels: channels([[one], [second]]),
            powers: vec![Watt(4.0), Watt(1.0)],
            noma: noma(false, 1e-16),
            symbols: Symbols::Analog { scales: vec![1.0; 2] },
        };
        let mut updates = vec![vec![0.3], vec![0.8]];
        signal.transmit(&mut updates, &mut rng(1)).unwrap();
        for (decoded, expected) in updates.concat().into_iter().zip(expected) {
            assert!((f64::from(decoded) - expected).abs() < 1e-6, "{decoded} {expected}");
        }
    }
}

#[test]
fn bad_signals_are_refused() {
    let signal = signal_with_snr(&[1.0, 1.0], Symbols::Analog { scales: vec![1.0] });
    let refusal = |signal: &Signal, mut updates: Vec<Vec<f32>>| {
        let before = updates.clone();
        let error = signal.transmit(&mut updates, &mut rng(1)).unwrap_err();
        assert_eq!(updates, before);
        error
    };
    for (updates, message) in [
        (vec![vec![0.0]; 3], "updates: 3 given, 2 expected"),
        (vec![vec![0.0], vec![]], "values of an update: 0 given, 1 expected"),
        (vec![vec![0.0]; 2], "scales: 1 given, 2 expected"),
    ] {
        assert_eq!(refusal(&signal, updates).to_string(), message);
    }
    let silent = Signal { powers: vec![Watt(1.0), Watt(0.0)], ..signal.clone() };
    assert_eq!(refusal(&silent, vec![vec![0.0]; 2]), UplinkError::Silent { device: 1 });
    let dark = Signal { channels: Channels::new(0, 0), powers: vec![], ..signal };
    assert_eq!(refusal(&dark, vec![]), UplinkError::Noma(NomaError::NoAntenna));
}
