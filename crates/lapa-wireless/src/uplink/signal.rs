//! The signals of all devices, superposed and separated.

use num_complex::Complex64;
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bits::BitStream;
use super::constellation::Axis;
use super::{Coding, DigitalConfig, DigitalReport, Quantizer, UplinkError, check_magnitude};
use crate::channel::Channels;
use crate::noma::{Noma, Sic};
use crate::ser::Modulation;
use crate::units::Watt;

/// Parameters of the signal uplink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignalConfig {
    /// Contents of the symbols.
    pub symbols: SymbolConfig,
}

/// Contents of the symbols of the signal uplink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SymbolConfig {
    /// Amplitudes, as analog.
    #[default]
    Analog,
    /// Bits, as digital.
    Digital(DigitalConfig),
}

/// All devices at once, symbol by symbol: y = Σ_k p_k h_k s_k + n, the paper's eq. (4), with
/// n ~ CN(0, σ²) on each antenna, decoded by successive interference cancellation.
///
/// With `perfect_sic` the base station knows, by magic, what all other devices sent, and subtracts
/// it. The noise n is one and the same for all devices, so that their errors are correlated.
/// Without, it subtracts what it *decoded* of earlier devices, wrong decisions included, and later
/// devices interfere. Analog symbols have no decision that would clean them: the error of one
/// device goes on to the next, and with a single antenna the subtraction removes all interference
/// in phase with the decoded device.
///
/// Slow, O(K·N_a) for each symbol, but [`Analog`](super::Analog) and [`Digital`](super::Digital)
/// are measured against it.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// h_k of each device.
    pub channels: Channels,
    /// p_k² of each device.
    pub powers: Vec<Watt>,
    /// Receiver of the base station, and σ².
    pub noma: Noma,
    /// Symbols that are sent.
    pub symbols: Symbols,
}

/// Symbols of the devices.
#[derive(Clone, Debug, PartialEq)]
pub enum Symbols {
    /// s = v/c.
    Analog {
        /// c of each device.
        scales: Vec<f64>,
    },
    /// Points of a constellation with unit mean power and hard decisions, as in
    /// [`Digital`](super::Digital).
    Digital {
        /// Values to levels.
        quantizer: Quantizer,
        /// Bits to symbols.
        modulation: Modulation,
    },
}

impl Signal {
    /// Replaces the devices' updates, all of one length, by what the base station decodes. Returns
    /// a report for each device: all 0 for analog symbols, of which nothing is cut or decided.
    pub fn transmit<R: Rng + ?Sized>(
        &self,
        updates: &mut [Vec<f32>],
        rng: &mut R,
    ) -> Result<Vec<DigitalReport>, UplinkError> {
        let mut air = Air::new(self)?;
        let devices = self.powers.len();
        check_count("updates", updates.len(), devices)?;
        let length = updates.first().map_or(0, Vec::len);
        for update in updates.iter() {
            check_count("values of an update", update.len(), length)?;
        }
        match &self.symbols {
            Symbols::Analog { scales } => {
                check_count("scales", scales.len(), devices)?;
                for &scale in scales {
                    check_magnitude("scale", scale)?;
                }
                air.send_analog(updates, scales, rng);
                Ok(vec![DigitalReport::default(); devices])
            }
            &Symbols::Digital { quantizer, modulation } => {
                let cut: Vec<usize> =
                    updates.iter_mut().map(|update| quantizer.quantize(update, rng)).collect();
                let errors = air.send_digital(updates, quantizer, modulation, rng);
                for update in updates {
                    quantizer.restore(update);
                }
                let counts = cut.into_iter().zip(errors);
                Ok(counts
                    .map(|(cut, symbol_errors)| DigitalReport { cut, symbol_errors })
                    .collect())
            }
        }
    }
}

fn check_count(name: &'static str, value: usize, expected: usize) -> Result<(), UplinkError> {
    if value == expected { Ok(()) } else { Err(UplinkError::Count { name, value, expected }) }
}

/// One symbol time after the other.
struct Air {
    sic: Sic,
    /// p_k h_k
    arrivals: Channels,
    perfect_sic: bool,
    /// Standard deviation of the noise's real and imaginary parts.
    noise_std: f64,
    /// s_k
    sent: Vec<Complex64>,
    /// Decision of the base station on s_k.
    decided: Vec<Complex64>,
    noise: Vec<Complex64>,
    /// Rest on the antennas when the next device is decoded.
    rest: Vec<Complex64>,
}

impl Air {
    fn new(signal: &Signal) -> Result<Self, UplinkError> {
        let sic = signal.noma.sic(&signal.channels, &signal.powers)?;
        let mut arrivals = signal.channels.clone();
        for (k, power) in signal.powers.iter().enumerate() {
            arrivals.of_mut(k).iter_mut().for_each(|h| *h *= power.0.sqrt());
        }
        let (devices, antennas) = (arrivals.devices(), arrivals.antennas());
        let silent = |&device: &usize| sic.receivers.gain(device) == 0.0;
        if let Some(device) = (0..devices).find(silent) {
            return Err(UplinkError::Silent { device });
        }
        Ok(Self {
            sic,
            arrivals,
            perfect_sic: signal.noma.perfect_sic,
            noise_std: (signal.noma.noise.0 / 2.0).sqrt(),
            sent: vec![Complex64::ZERO; devices],
            decided: vec![Complex64::ZERO; devices],
            noise: vec![Complex64::ZERO; antennas],
            rest: vec![Complex64::ZERO; antennas],
        })
    }

    fn send_analog<R: Rng + ?Sized>(
        &mut self,
        updates: &mut [Vec<f32>],
        scales: &[f64],
        rng: &mut R,
    ) {
        for t in 0..updates.first().map_or(0, Vec::len) {
            for ((sent, update), scale) in self.sent.iter_mut().zip(&*updates).zip(scales) {
                *sent = (f64::from(update[t]) / scale).into();
            }
            self.pass(|estimate| estimate.re.into(), rng);
            for ((decided, update), scale) in self.decided.iter().zip(&mut *updates).zip(scales) {
                update[t] = (decided.re * scale) as f32;
            }
        }
    }

    /// Sends levels; returns the symbol errors of each device.
    fn send_digital<R: Rng + ?Sized>(
        &mut self,
        updates: &mut [Vec<f32>],
        quantizer: Quantizer,
        modulation: Modulation,
        rng: &mut R,
    ) -> Vec<usize> {
        let length = updates.first().map_or(0, Vec::len);
        let symbols = Coding::Digital { quantizer, modulation }.symbols(length);
        let axis = Axis::of(modulation);
        let axes = modulation.axes() as usize;
        let mut streams: Vec<_> = updates
            .iter_mut()
            .map(|update| BitStream::new(update, quantizer.bits(), axis.bits()))
            .collect();
        let mut errors = vec![0; streams.len()];
        for t in 0..symbols {
            for (sent, stream) in self.sent.iter_mut().zip(&streams) {
                let amplitude = |group| axis.amplitude(axis.position(stream.group(group)));
                let im = if axes == 2 { amplitude(2 * t + 1) } else { 0.0 };
                *sent = Complex64::new(amplitude(axes * t), im);
            }
            let nearest = |amplitude| axis.amplitude(axis.nearest(amplitude));
            let decide = |estimate: Complex64| {
                let im = if axes == 2 { nearest(estimate.im) } else { 0.0 };
                Complex64::new(nearest(estimate.re), im)
            };
            self.pass(decide, rng);
            for (k, stream) in streams.iter_mut().enumerate() {
                let decided = self.decided[k];
                for (i, amplitude) in [decided.re, decided.im].into_iter().take(axes).enumerate() {
                    stream.set_group(axes * t + i, axis.gray(axis.nearest(amplitude)));
                }
                errors[k] += usize::from(decided != self.sent[k]);
            }
        }
        errors
    }

    /// Transmission from `sent` to `decided`; `decide` makes a symbol of an estimate.
    fn pass<R: Rng + ?Sized>(&mut self, decide: impl Fn(Complex64) -> Complex64, rng: &mut R) {
        for noise in &mut self.noise {
            let mut normal = || self.noise_std * rng.sample::<f64, _>(StandardNormal);
            *noise = Complex64::new(normal(), normal());
        }
        self.rest.copy_from_slice(&self.noise);
        if !self.perfect_sic {
            for (k, &sent) in self.sent.iter().enumerate() {
                add(&mut self.rest, self.arrivals.of(k), sent);
            }
        }
        for k in self.sic.order.iter().map(|&k| k as usize) {
            let arrival = self.arrivals.of(k);
            if self.perfect_sic {
                // All other signals taken out of y leave this one and the noise.
                self.rest.copy_from_slice(&self.noise);
                add(&mut self.rest, arrival, self.sent[k]);
            }
            let combined = self.sic.receivers.of(k).iter().zip(&self.rest);
            self.decided[k] = decide(combined.map(|(w, y)| w.conj() * y).sum());
            if !self.perfect_sic {
                add(&mut self.rest, arrival, -self.decided[k]);
            }
        }
    }
}

/// Adds a symbol that arrives over a channel.
fn add(antennas: &mut [Complex64], arrival: &[Complex64], symbol: Complex64) {
    for (y, h) in antennas.iter_mut().zip(arrival) {
        *y += h * symbol;
    }
}
