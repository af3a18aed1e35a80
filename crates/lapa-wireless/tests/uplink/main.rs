//! Sent and decoded values against closed forms, and the quick models of a link against signals.

mod analog;
mod digital;
mod input;
mod signal;

use lapa_wireless::channel::{Channels, Complex64};
use lapa_wireless::noma::{Noma, NomaError, Receiver, SicOrder};
use lapa_wireless::ser::{Modulation, inverse_q, q_function};
use lapa_wireless::units::{Db, Hertz, Joule, Second, Watt};
use lapa_wireless::uplink::{
    Analog, Coding, Digital, DigitalReport, Quantizer, Signal, Symbols, UplinkError, airtime,
    energy,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::StandardNormal;

const BPSK: Modulation = Modulation::Bpsk;
const QPSK: Modulation = Modulation::Qpsk;

/// The chance that a right implementation fails one test, shared by its comparisons (Bonferroni).
/// Seeds are fixed: a test that passed once passes always.
const ALPHA: f64 = 1e-6;

/// |N(0, 1)| is above this with probability [`ALPHA`]/comparisons.
fn limit(comparisons: usize) -> f64 {
    inverse_q(ALPHA / (2.0 * comparisons as f64))
}

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

fn qam(order: u32) -> Modulation {
    Modulation::qam(order).unwrap()
}

fn assert_coin(count: usize, draws: usize, probability: f64, limit: f64) {
    let deviation = (draws as f64 * probability * (1.0 - probability)).sqrt();
    let error = count as f64 - draws as f64 * probability;
    assert!(error.abs() <= limit * deviation, "{count} of {draws}, p = {probability}");
}

/// Moments of a sample about a point near its mean.
#[derive(Clone, Default)]
struct Moments {
    count: f64,
    about: f64,
    sums: [f64; 4],
}

impl Moments {
    fn about(about: f32) -> Self {
        Self { about: about.into(), ..Self::default() }
    }

    fn add(&mut self, value: f32) {
        let error = f64::from(value) - self.about;
        self.count += 1.0;
        for (power, sum) in (1..).zip(&mut self.sums) {
            *sum += error.powi(power);
        }
    }

    /// Mean with its variance, and mean square about the point with its.
    fn estimates(&self) -> [(f64, f64); 2] {
        let [first, second, _, fourth] = self.sums.map(|sum| sum / self.count);
        // Where all values are alike, rounding can leave less than 0.
        let variance = |square: f64, mean: f64| (square - mean * mean).max(0.0) / self.count;
        [(first, variance(second, first)), (second, variance(fourth, second))]
    }

    /// Rounding to f32 may move a value by 2e-7.
    fn assert_closed_form(&self, mean: f64, variance: f64, limit: f64) {
        let bias = mean - self.about;
        let square = variance + bias * bias;
        let wanted = [(bias, 2e-7), (square, 4e-7 * square.sqrt() + 4e-14)];
        for ((got, spread), (want, rounding)) in self.estimates().into_iter().zip(wanted) {
            let allowed = limit * spread.sqrt() + rounding;
            assert!((got - want).abs() <= allowed, "{got} is not {want}");
        }
    }

    fn assert_same(&self, other: &Self, limit: f64) {
        for ((a, spread), (b, other)) in self.estimates().into_iter().zip(other.estimates()) {
            assert!((a - b).abs() <= limit * (spread + other).sqrt(), "{a} and {b} differ");
        }
    }
}

/// Moments of each coordinate about what was sent, over many transmissions.
fn repeat(sent: &[f32], times: usize, mut transmit: impl FnMut(&mut [f32])) -> Vec<Moments> {
    let mut moments: Vec<_> = sent.iter().map(|&v| Moments::about(v)).collect();
    for _ in 0..times {
        let mut values = sent.to_vec();
        transmit(&mut values);
        moments.iter_mut().zip(values).for_each(|(moments, value)| moments.add(value));
    }
    moments
}

/// [`repeat`] for the updates of all devices of a signal, with their symbol errors.
fn repeat_signal(
    signal: &Signal,
    sent: &[Vec<f32>],
    times: usize,
    seed: u64,
) -> (Vec<Vec<Moments>>, Vec<usize>) {
    let mut rng = rng(seed);
    let mut errors = vec![0; sent.len()];
    let length = sent[0].len();
    let moments = repeat(&sent.concat(), times, |values| {
        let mut updates: Vec<_> = values.chunks(length).map(<[f32]>::to_vec).collect();
        let reports = signal.transmit(&mut updates, &mut rng).unwrap();
        values.copy_from_slice(&updates.concat());
        errors.iter_mut().zip(reports).for_each(|(sum, report)| *sum += report.symbol_errors);
    });
    (moments.chunks(length).map(<[Moments]>::to_vec).collect(), errors)
}

fn channels<const K: usize, const N: usize>(coefficients: [[Complex64; N]; K]) -> Channels {
    let mut channels = Channels::new(K, N);
    for (k, coefficients) in coefficients.iter().enumerate() {
        channels.of_mut(k).copy_from_slice(coefficients);
    }
    channels
}

fn noma(perfect_sic: bool, noise: f64) -> Noma {
    Noma { receiver: Receiver::Matched, perfect_sic, order: SicOrder::Power, noise: Watt(noise) }
}

/// Devices over Rayleigh channels to 4 antennas, each received with its SNR by perfect
/// cancellation.
fn signal_with_snr(snrs: &[f64], symbols: Symbols) -> Signal {
    let mut rng = rng(99);
    let mut normal = || rng.sample::<f64, _>(StandardNormal);
    let mut channels = Channels::new(snrs.len(), 4);
    for k in 0..snrs.len() {
        channels.of_mut(k).fill_with(|| Complex64::new(normal(), normal()));
    }
    let noise = 1e-3;
    let power = |(k, snr): (usize, &f64)| Watt(snr * noise / channels.gain(k));
    let powers = snrs.iter().enumerate().map(power).collect();
    Signal { channels, powers, noma: noma(true, noise), symbols }
}
