//! Values sent as amplitudes.

use super::*;

#[test]
fn the_scale_bounds_the_mean_power() {
    const Q: usize = 500;
    const TIMES: usize = 200;
    let (bound, sigma) = (3.0, 0.07);
    let scale = Analog::scale(bound, Q, sigma).unwrap();
    let mut rng = rng(1);
    let mut spike = vec![0.0; Q];
    spike[17] = bound;
    let flat = vec![bound / (Q as f64).sqrt(); Q];
    let mut typical: Vec<f64> = (0..Q).map(|_| rng.sample(StandardNormal)).collect();
    let norm = typical.iter().map(|g| g * g).sum::<f64>().sqrt();
    typical.iter_mut().for_each(|g| *g *= bound / norm);
    let shorter: Vec<f64> = typical.iter().map(|g| g / 2.0).collect();
    for (update, at_bound) in [(spike, true), (flat, true), (typical, true), (shorter, false)] {
        let mean = update.iter().map(|g| g * g + sigma * sigma).sum::<f64>() / Q as f64;
        let power = mean / (scale * scale);
        assert!(power <= 1.0 + 1e-12 && (power >= 1.0 - 1e-12 || !at_bound), "{power}");
        // The same with noise drawn. (g+η)² has variance 4g²σ² + 2σ⁴.
        let mut sum = 0.0;
        for g in update.iter().cycle().take(TIMES * Q) {
            sum += (g + sigma * rng.sample::<f64, _>(StandardNormal)).powi(2);
        }
        let drawn = sum / (TIMES * Q) as f64;
        let square = |g: &f64| 4.0 * g * g * sigma * sigma + 2.0 * sigma.powi(4);
        let variance = update.iter().map(square).sum::<f64>() / (TIMES * Q * Q) as f64;
        assert!((drawn - mean).abs() <= limit(4) * variance.sqrt(), "{drawn} is not {mean}");
    }
}

#[test]
fn analog_agrees_with_signal_and_closed_form() {
    let (snrs, scales) = ([0.4, 3.0, 30.0], vec![2.0, 0.5, 1.0]);
    let sent = [vec![0.3, -1.0, 0.0, 2.5], vec![1.0; 4], vec![0.01, -0.02, 0.5, -7.0]];
    let limit = limit(3 * 4 * 2 * 2);
    let signal = signal_with_snr(&snrs, Symbols::Analog { scales: scales.clone() });
    let (decoded, errors) = repeat_signal(&signal, &sent, 20_000, 2);
    assert_eq!(errors, [0; 3]);
    for (k, (&snr, &scale)) in snrs.iter().zip(&scales).enumerate() {
        let analog = Analog::new(scale, snr).unwrap();
        assert_eq!(Analog::receiver_noise_std(scale, snr), Ok(analog.noise_std()));
        // ν = σ²/(2p²‖h‖²) from the channel itself.
        let received = signal.powers[k].0 * signal.channels.gain(k);
        let variance = scale * scale * signal.noma.noise.0 / (2.0 * received);
        assert!((analog.noise_std().powi(2) / variance - 1.0).abs() < 1e-12);
        let mut rng = rng(3 + k as u64);
        let quick = repeat(&sent[k], 20_000, |values| analog.transmit(values, &mut rng));
        for (moments, &v) in quick.iter().chain(&decoded[k]).zip(sent[k].iter().cycle()) {
            moments.assert_closed_form(v.into(), variance, limit);
        }
    }
}
