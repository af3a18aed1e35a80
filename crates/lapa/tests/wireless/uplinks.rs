//! Uplinks: the ideal one loses nothing, analog adds what is declared, and the quick
//! uplinks do what the signals do.

use super::*;

/// The aggregated gradient of the first round.
fn first_round(changes: &[&str]) -> (Vec<f64>, RoundRecord) {
    let mut federation = federation(changes);
    let rate = federation.experiment().learn.learning_rate;
    let before = federation.model().parameters.clone();
    let record = federation.next_round().unwrap();
    let after = &federation.model().parameters;
    let moved = before.iter().zip(after).map(|(b, a)| (f64::from(*b) - f64::from(*a)) / rate);
    (moved.collect(), record)
}

/// Effect of the uplink of `changes` on each coordinate of the first round's aggregate.
fn errors(changes: &[&str]) -> (Vec<f64>, RoundRecord) {
    let (ideal, _) = first_round(&[changes, &["transmit.uplink=ideal"]].concat()[..]);
    let (arrived, record) = first_round(changes);
    (arrived.iter().zip(ideal).map(|(a, i)| a - i).collect(), record)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

#[test]
fn an_ideal_uplink_knows_no_radio() {
    let rounds = |changes: &[&str]| {
        let mut federation = federation(changes);
        let record = |_| RoundRecord { seconds: 0.0, ..federation.next_round().unwrap() };
        let records: Vec<RoundRecord> = (0..3).map(record).collect();
        let bits = |value: &f32| value.to_bits();
        (records, federation.model().parameters.iter().map(bits).collect::<Vec<u32>>())
    };
    let radio = [
        "transmit.uplink=ideal",
        "transmit.power_w=[0.1, 0, 0.2, 0.3]",
        "transmit.modulation=bpsk",
        "transmit.access=orthogonal",
        "radio.antennas=3",
        "radio.noise_power_w=1e-3",
        "radio.fading=none",
    ];
    for kind in [&[][..], &["privacy.epsilon=4"], &["profile=paper", "privacy.epsilon=8"]] {
        let plain = rounds(kind);
        assert_eq!(rounds(&[kind, &radio].concat()), plain, "{kind:?}");
        for record in &plain.0 {
            assert_eq!((record.outages, record.airtime_s, record.energy_j), (0, 0.0, 0.0));
            for device in devices(record) {
                assert_eq!((device.sinr_db, device.ser), (f64::INFINITY, 0.0));
                assert!(device.selected && device.sigma_channel == 0.0);
            }
        }
        // A threshold that all pass asks for links, and changes nothing.
        let eager = rounds(&[kind, &["aggregate.sinr_threshold_db=-300"]].concat());
        assert_eq!(eager.1, plain.1, "{kind:?}");
        assert!(devices(&eager.0[0]).iter().all(|device| device.sinr_db.is_finite()));
    }
}

/// Without artificial noise an analog aggregate is the ideal one and noise of variance
/// ΣG_k²c²/(2γ_k), which with perfect cancellation is ΣG_k²σ_k² of the record. Chi-square over the
/// coordinates, α = 10⁻⁶; the mean is within 5 of its standard deviations, α = 6·10⁻⁷.
#[test]
fn analog_adds_the_recorded_noise() {
    for (changes, perfect) in [
        (&["transmit.uplink=analog"][..], true),
        (&["transmit.uplink=analog", "transmit.access=orthogonal"], true),
        (&["transmit.uplink=analog", "transmit.perfect_sic=false"], false),
        (&["transmit.uplink=analog", "learn.clip=device", "learn.clip_norm=2"], true),
        (&["transmit.uplink=signal", "transmit.access=orthogonal"], true),
    ] {
        let (errors, record) = errors(changes);
        let clip = experiment(changes).learn.clip_norm.unwrap();
        let (mut variance, mut of_receiver) = (0.0, 0.0);
        for device in devices(&record) {
            let scale = clip / (COORDINATES as f64).sqrt();
            variance += (device.weight * scale).powi(2) / (2.0 * ratio(device.sinr_db));
            of_receiver += (device.weight * device.sigma_channel).powi(2);
        }
        match perfect {
            true => assert_close(of_receiver, variance, 1e-9),
            false => assert!(of_receiver < variance, "{changes:?}: interference adds"),
        }
        let n = errors.len();
        assert_eq!(n, COORDINATES);
        let squares = errors.iter().map(|error| error * error / variance).sum();
        assert_chi_square(squares, n, &format!("{changes:?}"));
        let mean = mean(errors.iter().copied()) * (n as f64 / variance).sqrt();
        assert!(mean.abs() < 5.0, "{changes:?}: {mean}");
    }
}

/// Bits sent by the quick model and as signals, one device after the other: mean error and mean
/// squared error agree within 5 standard deviations of their difference (α = 6·10⁻⁷ each, by the
/// central limit theorem over 7850 coordinates).
#[test]
fn digital_does_what_its_signals_do() {
    for (modulation, bits) in [("qpsk", 4), ("16-qam", 6), ("bpsk", 8)] {
        let modulation = format!("transmit.modulation={modulation}");
        let common = [&*modulation, "transmit.access=orthogonal", "transmit.power_w=0.01"];
        let [quick, slow] = ["transmit.digital", "transmit.signal.digital"]
            .map(|table| [format!("{table}.bits={bits}"), format!("{table}.range=0.1")]);
        let quick = [&["transmit.uplink=digital", &quick[0], &quick[1]], &common[..]].concat();
        let signal = ["transmit.uplink=signal", "transmit.signal.symbols=digital"];
        let slow = [&signal[..], &[&slow[0], &slow[1]], &common].concat();
        // The reference takes no bits.
        let (ideal, _) = first_round(&[]);
        let [quick, slow] = [quick, slow].map(|changes| {
            let (arrived, record) = first_round(&changes);
            let worst = devices(&record).iter().map(|d| d.ser).fold(0.0, f64::max);
            assert!(worst > 1e-3, "{changes:?}: no symbol errs");
            let errors: Vec<f64> = arrived.iter().zip(&ideal).map(|(a, i)| a - i).collect();
            errors
        });
        for power in [1, 2] {
            let moments = |errors: &[f64]| {
                let first = mean(errors.iter().map(|e| e.powi(power)));
                let second = mean(errors.iter().map(|e| e.powi(2 * power)));
                (first, (second - first * first) / errors.len() as f64)
            };
            let ((a, va), (b, vb)) = (moments(&quick), moments(&slow));
            let z = (a - b) / (va + vb).sqrt();
            assert!(z.abs() < 5.0, "{modulation} {bits}, moment {power}: {a} and {b}, {z}");
        }
    }
}

/// Fading stays for `redraw_every` rounds; 0 means always.
#[test]
fn fading_is_redrawn_when_asked_for() {
    let sinr = |changes: &[&str]| -> Vec<Vec<f64>> {
        let mut federation = federation(&[changes, &["transmit.uplink=analog"]].concat());
        let round = |_| {
            let record = federation.next_round().unwrap();
            devices(&record).iter().map(|device| device.sinr_db).collect()
        };
        (0..5).map(round).collect()
    };
    let twos = sinr(&["radio.redraw_every=2"]);
    assert_eq!((&twos[0], &twos[2]), (&twos[1], &twos[3]));
    for (before, after) in [(&twos[0], &twos[2]), (&twos[2], &twos[4])] {
        assert!(before.iter().zip(after).all(|(before, after)| before != after));
    }
    let always = sinr(&["radio.redraw_every=1"]);
    assert!(always.windows(2).all(|pair| pair[0] != pair[1]));
    for constant in [sinr(&[]), sinr(&["radio.redraw_every=1", "radio.fading=none"])] {
        assert!(constant.iter().all(|round| *round == constant[0]));
    }
    // The first rounds see the same channels, however often they change later.
    assert_eq!(always[0], twos[0]);
}
