//! Selection: devices with poor links do not send, compute nothing and pay nothing.

use lapa::error::FederationError;
use lapa::radio::RadioError;

use super::*;

/// The symbol error rate of QPSK: an error on either axis, 2Q − Q² with Q = P(Z > √γ).
fn qpsk(sinr_db: f64) -> f64 {
    let axis = tail(ratio(sinr_db).sqrt());
    2.0 * axis - axis * axis
}

/// SINR of each device in the first round, when all send.
fn links(changes: &[&str]) -> Vec<f64> {
    let all = ["aggregate.sinr_threshold_db=-300"];
    let record = federation(&[changes, &all].concat()).next_round().unwrap();
    devices(&record).iter().map(|device| device.sinr_db).collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

#[test]
fn who_fails_the_threshold_neither_sends_nor_pays() {
    for base in [
        &["transmit.uplink=ideal", "privacy.epsilon=4"][..],
        &["transmit.uplink=analog", "privacy.allocator=lapa"],
        // Wide limits, since these few samples get much noise.
        &[
            "transmit.uplink=digital",
            "transmit.digital.range=2",
            "privacy.epsilon=4",
            "aggregate.rule=fedadp",
        ],
        &["transmit.uplink=analog", "profile=paper", "privacy.epsilon=8"],
        &[
            "transmit.uplink=signal",
            "privacy.epsilon=4",
            "learn.sampling=full",
            "learn.batch_fraction=1",
        ],
    ] {
        let sinr = links(base);
        let rates = sorted(sinr.iter().map(|&db| qpsk(db)).collect());
        // Between the second and the third best.
        let ser = format!("aggregate.ser_threshold={}", (rates[1] * rates[2]).sqrt());
        let middle = (sorted(sinr.clone())[1] + sorted(sinr.clone())[2]) / 2.0;
        let db = format!("aggregate.sinr_threshold_db={middle}");
        for threshold in [ser, db] {
            let mut recording = Recording::new(&[base, &[&*threshold]].concat());
            for record in recording.rounds(3) {
                assert_eq!(record.outages, 2, "{base:?} {threshold}");
                let list = devices(&record);
                assert_eq!(list.len(), 4);
                let sent: u32 = list.iter().filter(|d| d.selected).map(|d| d.samples).sum();
                let total: f64 = list.iter().map(|device| device.weight).sum();
                assert_close(total, 1.0, 1e-12);
                for (device, &sinr) in list.iter().zip(&sinr) {
                    assert_eq!(device.sinr_db, sinr);
                    // Simpson's rule is right to about 1e-10 here.
                    assert_close(device.ser, qpsk(sinr), 1e-6);
                    assert_eq!(device.selected, sinr > middle, "{base:?} {threshold}");
                    if !device.selected {
                        assert_eq!((device.weight, device.epsilon, device.angle), (0.0, 0.0, None));
                        assert_eq!((device.sigma_artificial, device.sigma_channel), (0.0, 0.0));
                        assert_eq!((device.spent_claimed, device.spent_provable), (0.0, 0.0));
                        assert_eq!((device.gradient_norm, device.clipped), (None, None));
                    } else if !base.contains(&"aggregate.rule=fedadp") {
                        let share = f64::from(device.samples) / f64::from(sent);
                        assert_close(device.weight, share, 1e-12);
                    }
                }
                assert_eq!(record.downlink_bytes, 2 * 4 * COORDINATES as u64);
            }
            for (device, &sinr) in (0..).zip(&sinr) {
                let releases = if sinr > middle { 3 } else { 0 };
                assert_eq!(recording.history(device).len(), releases, "{base:?}");
            }
            assert!(recording.warnings.is_empty());
        }
    }
}

/// Eq. (22) to the letter: who fails the threshold learns, pays and sends, and weighs nothing. The
/// model is to the bit that of a run in which the same devices skip, whose streams are their own.
#[test]
fn weight_zero_is_paid_for_and_moves_nothing() {
    for base in [
        &["transmit.uplink=analog"][..],
        &["transmit.uplink=digital", "transmit.digital.range=2", "privacy.epsilon=4"],
        &["transmit.uplink=analog", "privacy.epsilon=4", "aggregate.rule=fedadp"],
        &["transmit.uplink=ideal", "profile=paper", "learn.momentum=0.5"],
        &["transmit.uplink=analog", "aggregate.renormalize=false"],
    ] {
        let middle = sorted(links(base));
        let threshold = format!("aggregate.sinr_threshold_db={}", (middle[1] + middle[2]) / 2.0);
        let skip = [base, &[&*threshold]].concat();
        let zero = [&skip[..], &["aggregate.below_threshold=weight-zero"]].concat();
        let (mut skipping, mut paying) = (Recording::new(&skip), Recording::new(&zero));
        for (skipped, paid) in skipping.rounds(3).iter().zip(paying.rounds(3)) {
            assert_eq!((skipped.outages, paid.outages), (2, 0), "{base:?}");
            assert_eq!(paid.uplink_bytes, 2 * skipped.uplink_bytes);
            assert_eq!(paid.downlink_bytes, 2 * skipped.downlink_bytes);
            for (skipped, paid) in devices(skipped).iter().zip(devices(&paid)) {
                assert!(paid.selected && paid.gradient_norm.is_some());
                assert_eq!(paid.weight.to_bits(), skipped.weight.to_bits(), "{base:?}");
                assert_eq!(paid.weight == 0.0, !skipped.selected);
            }
        }
        assert!((0..4).all(|device| paying.history(device).len() == 3), "{base:?}");
        assert_eq!(paying.federation.received().len(), 4);
        assert_eq!(paying.federation.model(), skipping.federation.model(), "{base:?}");
    }
}

/// Devices of weight 0 are on the air: the others hear the interference of all.
#[test]
fn weight_zero_interferes() {
    let base = ["transmit.uplink=analog", "transmit.perfect_sic=false"];
    let all = links(&base);
    let threshold = format!("aggregate.sinr_threshold_db={}", sorted(all.clone())[0] + 0.01);
    let changes = [&base[..], &[&*threshold, "aggregate.below_threshold=weight-zero"]].concat();
    let record = federation(&changes).next_round().unwrap();
    let heard: Vec<f64> = devices(&record).iter().map(|device| device.sinr_db).collect();
    assert_eq!(heard, all);
    assert_eq!(devices(&record).iter().filter(|device| device.weight == 0.0).count(), 1);
}

/// Nothing of weight enters the model or the allocator's memory, but every device pays.
#[test]
fn a_round_of_weight_zero_alone_leaves_the_model_as_it_is() {
    let far = ["aggregate.sinr_threshold_db=200", "aggregate.below_threshold=weight-zero"];
    let lapa = ["privacy.epsilon=4", "privacy.allocator=lapa", "learn.momentum=0.9"];
    let mut recording = Recording::new(&[&far[..], &lapa].concat());
    let before = recording.federation.model().parameters.clone();
    for record in recording.rounds(3) {
        assert!(devices(&record).iter().all(|device| device.selected && device.weight == 0.0));
    }
    assert_eq!(recording.federation.model().parameters, before);
    assert!((0..4).all(|device| recording.history(device).len() == 3));
    assert_eq!(recording.warnings.len(), 1, "{:?}", recording.warnings);
}

/// With fewer devices on the air, those that are left hear less interference.
#[test]
fn who_does_not_send_does_not_interfere() {
    let base = ["transmit.uplink=analog", "transmit.perfect_sic=false"];
    let all = links(&base);
    let threshold = format!("aggregate.sinr_threshold_db={}", sorted(all.clone())[0] + 0.01);
    let record = federation(&[&base[..], &[&*threshold]].concat()).next_round().unwrap();
    let mut better = 0;
    for (device, before) in devices(&record).iter().zip(all) {
        match device.selected {
            true => assert!(device.sinr_db >= before),
            false => assert_eq!(device.sinr_db, before),
        }
        better += u32::from(device.sinr_db > before + 0.01);
    }
    assert!(better > 0 && record.outages >= 1);
}

#[test]
fn a_round_without_devices_is_skipped_or_an_error() {
    for base in [&["transmit.uplink=analog"][..], &["privacy.epsilon=2"]] {
        let far = [base, &["aggregate.sinr_threshold_db=200"]].concat();
        let mut skipping = Recording::new(&far);
        let before = skipping.federation.model().parameters.clone();
        let records = skipping.rounds(3);
        assert_eq!(skipping.federation.model().parameters, before);
        for record in &records {
            assert_eq!((record.outages, record.uplink_bytes, record.downlink_bytes), (4, 0, 0));
            assert_eq!((record.airtime_s, record.energy_j), (0.0, 0.0));
            for device in devices(record) {
                assert!(!device.selected && device.weight == 0.0 && device.spent_provable == 0.0);
            }
        }
        assert!((0..4).all(|device| skipping.history(device).is_empty()));
        let best = devices(&records[0]).iter().map(|d| d.sinr_db).fold(f64::MIN, f64::max);
        let text = format!(
            "round 1: no device passes aggregate.sinr_threshold_db = 200; the best has an SINR of \
             {best:.1} dB and a symbol error rate of {:.2e} (`lapa link` shows all)",
            qpsk(best)
        );
        let told = format!("{text}; such rounds leave the model as it is");
        assert_eq!(skipping.warnings, [told], "once");

        let mut failing = federation(&[&far[..], &["aggregate.none_selected=error"]].concat());
        let error = failing.next_round().unwrap_err();
        let FederationError::Radio(RadioError::NoneSelected { round: 1, best_sinr_db, .. }) =
            &error
        else {
            panic!("{error}");
        };
        assert_eq!(*best_sinr_db, best);
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn a_device_without_power_is_never_heard() {
    for uplink in ["analog", "digital", "signal"] {
        let uplink = format!("transmit.uplink={uplink}");
        for access in ["transmit.access=noma", "transmit.perfect_sic=false"] {
            let changes = [&*uplink, access, "transmit.power_w=[0.075, 0, 0.075, 0.075]"];
            let record = federation(&changes).next_round().unwrap();
            let list = devices(&record);
            let selected: Vec<bool> = list.iter().map(|device| device.selected).collect();
            assert_eq!(selected, [true, false, true, true], "{changes:?}");
            assert_eq!((list[1].sinr_db, list[1].ser), (f64::NEG_INFINITY, 0.75));
            assert_eq!((record.outages, list[1].weight), (1, 0.0));
            assert_close(list.iter().map(|device| device.weight).sum(), 1.0, 1e-12);
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<RoundRecord>(&text).unwrap(), record);
        }
    }
    let mut silent = federation(&["transmit.uplink=analog", "transmit.power_w=0"]);
    let before = silent.model().parameters.clone();
    let mut told = Vec::new();
    assert_eq!(rounds(&mut silent, 1, &mut told)[0].outages, 4);
    assert_eq!(silent.model().parameters, before);
    assert!(told[0].starts_with("round 1: no device passes a signal above 0; "), "{told:?}");
}
