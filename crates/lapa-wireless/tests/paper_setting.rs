//! The setting of the paper (section V-A): what arrives, and who can be decoded.

use lapa_wireless::channel::Channels;
use lapa_wireless::fading::Fading;
use lapa_wireless::path_loss::PathLoss;
use lapa_wireless::ser::Modulation;
use lapa_wireless::topology::{Position, Region, Topology};
use lapa_wireless::units::{Db, Meter, Watt};
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

/// The base station: 10 m up, 50 m beside the origin.
const BASE: Position = Position { x: Meter(-50.0), y: Meter(0.0), z: Meter(10.0) };
/// Regions I and II, of 7 and 8 devices.
const REGIONS: [Region; 2] = {
    let y = [Meter(-5.0), Meter(5.0)];
    [
        Region { x: [Meter(-10.0), Meter(0.0)], y, share: 7 },
        Region { x: [Meter(10.0), Meter(20.0)], y, share: 8 },
    ]
};
const DEVICES: u32 = 15;
const ANTENNAS: usize = 15;
const POWER: Watt = Watt(0.075);
const NOISE: Watt = Watt(1e-13);
const LAYOUTS: u64 = 20_000;

/// z of α = 1e-6, two-sided, for each comparison.
const NORMAL_LIMIT: f64 = 4.891_638_475_698_59;

fn ground(x: f64, y: f64) -> Position {
    Position { x: Meter(x), y: Meter(y), z: Meter(0.0) }
}

/// p²·N_a·gain/σ², the SNR before fading.
fn mean_snr(device: Position, power: Watt, noise: Watt) -> f64 {
    let gain = PathLoss::paper().gain(device.distance(&BASE));
    power.0 * ANTENNAS as f64 * gain / noise.0
}

/// Every device of one random layout, without interference: p²‖h‖²/σ².
fn snrs(fading: Fading, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let topology = Topology::in_regions(BASE, &REGIONS, DEVICES, &mut rng).unwrap();
    let mut channels = Channels::new(topology.devices.len(), ANTENNAS);
    for (k, device) in topology.devices.iter().enumerate() {
        let gain = PathLoss::paper().gain(device.position.distance(&BASE));
        let azimuth = device.position.azimuth_from(&BASE);
        fading.draw(gain, azimuth, channels.of_mut(k), &mut rng);
    }
    (0..channels.devices()).map(|k| POWER.0 * channels.gain(k) / NOISE.0).collect()
}

/// Expected number of 15 devices over an SNR: for each point of a grid over the regions, the
/// chance that the fading's power is over the threshold's share of the SNR before fading.
fn expected_over(threshold: f64, tail: fn(f64) -> f64) -> f64 {
    const GRID: u32 = 60;
    let middle = |[from, to]: [Meter; 2], i: u32| {
        from.0 + (to.0 - from.0) * (f64::from(i) + 0.5) / f64::from(GRID)
    };
    let mut expected = 0.0;
    for region in REGIONS {
        for (i, j) in (0..GRID).flat_map(|i| (0..GRID).map(move |j| (i, j))) {
            let point = ground(middle(region.x, i), middle(region.y, j));
            let chance = tail(threshold / mean_snr(point, POWER, NOISE));
            expected += f64::from(region.share) * chance / f64::from(GRID * GRID);
        }
    }
    expected
}

/// P(Exp(1) > t)
fn exponential_tail(t: f64) -> f64 {
    (-t).exp()
}

/// P(Gamma(N_a)/N_a > t): fewer than N_a events of a Poisson process until N_a·t.
fn gamma_tail(t: f64) -> f64 {
    let events = ANTENNAS as f64 * t;
    let mut term = (-events).exp();
    let mut sum = term;
    for n in 1..ANTENNAS {
        term *= events / n as f64;
        sum += term;
    }
    sum
}

/// The SNR falls with the distance, which is least in the middle of a region's near edge and most
/// in its far corners.
#[test]
fn the_printed_noise_power_of_a_milliwatt_leaves_70_to_90_db_less_signal_than_noise() {
    for region in REGIONS {
        for x in region.x {
            for y in [region.y[0], Meter(0.0), region.y[1]] {
                let Db(snr) = Db::of(mean_snr(ground(x.0, y.0), Watt(1.0), Watt(1e-3)));
                assert!((-90.0..=-70.0).contains(&snr), "{snr} dB at {x:?}, {y:?}");
            }
        }
    }
}

/// With 75 mW, −100 dBm of noise, and QPSK.
#[test]
fn devices_pass_error_thresholds_as_often_as_the_closed_form_says() {
    for (fading, tail, known) in [
        (Fading::Rayleigh, exponential_tail as fn(f64) -> f64, [11.20, 7.68, 5.49]),
        (Fading::Independent, gamma_tail, [14.91, 9.34, 6.89]),
    ] {
        let thresholds =
            [1e-1, 1e-2, 1e-3].map(|ser| (ser, Modulation::Qpsk.sinr_for(ser).unwrap()));
        let mut sums = [(0.0, 0.0); 3];
        for seed in 0..LAYOUTS {
            let snrs = snrs(fading, seed);
            for ((ser, _), (sum, squares)) in thresholds.iter().zip(&mut sums) {
                let passes = |snr: &&f64| Modulation::Qpsk.symbol_error_rate(**snr) <= *ser;
                let passing = snrs.iter().filter(passes).count() as f64;
                *sum += passing;
                *squares += passing * passing;
            }
        }
        for (((ser, sinr), (sum, squares)), known) in thresholds.into_iter().zip(sums).zip(known) {
            let n = LAYOUTS as f64;
            let mean = sum / n;
            let limit = NORMAL_LIMIT * ((squares / n - mean * mean) / n).sqrt();
            let expected = expected_over(sinr, tail);
            assert!((expected - known).abs() <= 0.005, "{fading:?} at {ser}: {expected}");
            assert!((mean - expected).abs() <= limit, "{fading:?} at {ser}: {mean} ± {limit}");
        }
    }
}

/// Half of all devices are over a number of decibels that rounds to 8.4. The count over it has at
/// most the variance n/4 of a fair coin.
#[test]
fn the_median_snr_with_rayleigh_fading_is_8_4_db() {
    let share_over =
        |decibels| expected_over(Db(decibels).ratio(), exponential_tail) / f64::from(DEVICES);
    assert!(share_over(8.35) > 0.5 && share_over(8.45) < 0.5);

    let n = (LAYOUTS * u64::from(DEVICES)) as f64;
    let snrs = (0..LAYOUTS).flat_map(|seed| snrs(Fading::Rayleigh, seed));
    let over = snrs.filter(|snr| *snr > Db(8.4).ratio()).count() as f64;
    let limit = NORMAL_LIMIT * 0.5 / n.sqrt();
    assert!((over / n - share_over(8.4)).abs() <= limit, "{}", over / n);
}
