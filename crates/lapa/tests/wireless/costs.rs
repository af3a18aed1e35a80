//! Bytes, airtime and energy, by hand.

use super::*;

#[test]
fn bytes_airtime_and_energy_are_what_the_symbols_take() {
    let powers = [0.1, 0.2, 0.05, 0.3];
    let per_device = "transmit.power_w=[0.1, 0.2, 0.05, 0.3]";
    let rate = "transmit.symbol_rate_hz=2e5";
    // 7850 values: as many symbols of 4 bytes each; 39250 bits are 9813 symbols of 4, and 4907
    // bytes.
    let modulation = "transmit.modulation=16-qam";
    for (uplink, symbols, bytes) in [
        (&["transmit.uplink=ideal"][..], 0.0, 31_400),
        (&["transmit.uplink=analog"], 7850.0, 31_400),
        (&["transmit.uplink=signal"], 7850.0, 31_400),
        (&["transmit.uplink=digital", "transmit.digital.bits=5", modulation], 9813.0, 4907),
        (
            &[
                "transmit.uplink=signal",
                "transmit.signal.symbols=digital",
                "transmit.signal.digital.bits=5",
                modulation,
            ],
            9813.0,
            4907,
        ),
    ] {
        for (access, slots) in [("noma", 1.0), ("orthogonal", 4.0)] {
            let access = format!("transmit.access={access}");
            let changes = [uplink, &[per_device, rate, &access]].concat();
            let record = federation(&changes).next_round().unwrap();
            let time = symbols / 2e5;
            assert!((record.airtime_s - slots * time).abs() < 1e-12, "{changes:?}");
            let energy: f64 = powers.iter().map(|power| power * time).sum();
            assert!((record.energy_j - energy).abs() < 1e-12, "{changes:?}");
            assert_eq!(record.uplink_bytes, 4 * bytes, "{changes:?}");
            assert_eq!(record.downlink_bytes, 4 * 31_400, "{changes:?}");
        }
    }
}

/// Ten counts of 4 bytes from each of four devices, once, whether or not they send an update.
#[test]
fn label_histograms_are_counted_with_the_first_round() {
    for (changes, sending) in [
        (&["privacy.epsilon=8"][..], 4),
        (&["HISTOGRAMS=public"], 4),
        (&["profile=paper", "privacy.epsilon=8"], 4),
        (&["run.participation=0.5"], 2),
    ] {
        for rule in ["aggregate.rule=wasserstein", "aggregate.rule=noise-aware"] {
            let name = rule.replace("rule=", "");
            let changes: Vec<_> = changes
                .iter()
                .map(|change| change.replace("HISTOGRAMS", &format!("{name}.histograms")))
                .collect();
            let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
            let mut federation = federation(&[&changes[..], &[rule]].concat());
            let bytes: Vec<u64> =
                (0..3).map(|_| federation.next_round().unwrap().uplink_bytes).collect();
            let updates = sending * 31_400;
            assert_eq!(bytes, [updates + 160, updates, updates], "{changes:?}, {rule}");
        }
    }
}

/// A device that skips a round neither radiates nor takes airtime.
#[test]
fn only_who_sends_radiates() {
    let changes = ["transmit.uplink=analog", "transmit.power_w=[0.1, 0, 0.2, 0]"];
    for (access, slots) in [("transmit.access=noma", 1.0), ("transmit.access=orthogonal", 2.0)] {
        let record = federation(&[&changes[..], &[access]].concat()).next_round().unwrap();
        assert_close(record.airtime_s, slots * 7850e-6, 1e-12);
        assert_close(record.energy_j, (0.1 + 0.2) * 7850e-6, 1e-12);
        assert_eq!(record.uplink_bytes, 2 * 31_400);
    }
}
