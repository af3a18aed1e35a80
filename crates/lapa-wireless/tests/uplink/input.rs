//! Costs, and parameters that are refused.

use super::*;

#[test]
fn costs_have_their_closed_forms() {
    let quantizer = Quantizer::new(5, 1.0).unwrap();
    let digital = |modulation| Coding::Digital { quantizer, modulation };
    // 7 values of 5 bits: 35 bits.
    for (coding, symbols, bytes) in [
        (Coding::Analog, 7, 28),
        (digital(BPSK), 35, 5),
        (digital(QPSK), 18, 5),
        (digital(qam(16)), 9, 5),
        (digital(qam(64)), 6, 5),
    ] {
        assert_eq!((coding.symbols(7), coding.payload_bytes(7)), (symbols, bytes));
        assert_eq!((coding.symbols(0), coding.payload_bytes(0)), (0, 0));
    }
    assert_eq!(airtime(500, Hertz(1e6)), Ok(Second(5e-4)));
    assert_eq!(energy(Watt(0.5), Second(5e-4)), Joule(2.5e-4));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(airtime(1, Hertz(bad)).unwrap_err().to_string().starts_with("symbol_rate = "));
    }
}

fn assert_names<T: std::fmt::Debug>(result: Result<T, UplinkError>, name: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with(&format!("{name} = ")), "{error}");
}

#[test]
fn bad_parameters_are_named() {
    let quantizer = Quantizer::new(8, 1.0).unwrap();
    for bits in [0, 17, u32::MAX] {
        let error = Quantizer::new(bits, 1.0).unwrap_err().to_string();
        assert_eq!(error, format!("bits = {bits}: expected 1 to 16"));
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-40, 1e40] {
        assert_names(Quantizer::new(8, bad), "range");
        assert_names(Analog::new(bad, 1.0), "scale");
        let signal = signal_with_snr(&[1.0], Symbols::Analog { scales: vec![bad] });
        assert_names(signal.transmit(&mut [vec![]], &mut rng(1)), "scale");
    }
    for bad in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        assert_names(Analog::new(1.0, bad), "sinr");
        assert_names(Digital::new(quantizer, QPSK, bad), "sinr");
        assert_names(Analog::scale(bad, 10, 1.0), "norm_bound");
        assert_names(Analog::scale(1.0, 10, bad), "sigma_artificial");
    }
    assert_names(Analog::scale(1.0, 0, 1.0), "dimension");
    assert_names(Analog::scale(0.0, 10, 0.0), "scale");
    assert_names(Analog::new(1e30, 1e-30), "uplink noise");
    assert_eq!(Analog::new(1.0, 0.0), Err(UplinkError::NoSignal));
    assert_eq!(Analog::new(1.0, f64::INFINITY).unwrap().noise_std(), 0.0);
}
