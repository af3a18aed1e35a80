//! Values sent as bits.

use rand::{Rng, RngExt};
use rand_distr::Exp1;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bits::BitStream;
use super::constellation::Axis;
use super::{Coding, Quantizer, UplinkError, check_sinr};
use crate::ser::{Modulation, q_function};

/// Parameters of digital symbols.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DigitalConfig {
    /// Bits per coordinate.
    #[schemars(range(min = 1, max = 16))]
    pub bits: u32,
    /// Range of the quantizer: coordinates are quantized from -range to range, and larger ones are
    /// cut. It must not follow from private data. The default follows learn.clip, clip_norm and
    /// update.
    #[schemars(range(min = 1e-9, max = 1e9))]
    pub range: f64,
}

impl Default for DigitalConfig {
    fn default() -> Self {
        Self { bits: 8, range: 2.0 }
    }
}

impl DigitalConfig {
    /// Symbols of this modulation with these parameters.
    pub fn coding(self, modulation: Modulation) -> Result<Coding, UplinkError> {
        Ok(Coding::Digital { quantizer: Quantizer::new(self.bits, self.range)?, modulation })
    }
}

/// One device's uplink of quantized values over a square constellation.
///
/// The levels' natural binary indices run on as one stream of bits over the symbols, padded at the
/// end, and are Gray-coded on each axis. On an axis Gaussian noise crosses j boundaries or more to
/// one side with probability Q((2j−1)x), where Q(x) is [`Modulation::axis_error`]; beyond the last
/// point there is nothing to cross. So symbol errors have the rate
/// [`Modulation::symbol_error_rate`], and a bit of BPSK or QPSK flips with probability Q(x), which
/// is 1−√(1−SER) for QPSK.
///
/// Bit errors shrink: with BPSK and QPSK a value inside the range arrives as (1−2·Q(x))·v on the
/// average. An SINR of 0 leaves the outermost points, at random: random bits for BPSK and QPSK.
#[derive(Clone, Debug, PartialEq)]
pub struct Digital {
    quantizer: Quantizer,
    modulation: Modulation,
    axis: Axis,
    /// At j: the probability that noise crosses more than j boundaries to one given side.
    crossings: Vec<f64>,
}

/// Errors of one update on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigitalReport {
    /// Values outside of the quantizer's range, or not a number.
    pub cut: usize,
    /// Symbols that the base station took for others.
    pub symbol_errors: usize,
}

impl Digital {
    /// The uplink of a device that is received with this SINR.
    pub fn new(
        quantizer: Quantizer,
        modulation: Modulation,
        sinr: f64,
    ) -> Result<Self, UplinkError> {
        let axis = Axis::of(modulation);
        let boundary = axis.boundary(check_sinr(sinr)?);
        let odd = (1..axis.levels()).map(|j| f64::from(2 * j - 1));
        let crossings = odd.map(|factor| q_function(factor * boundary)).collect();
        Ok(Self { quantizer, modulation, axis, crossings })
    }

    /// An estimate of the error's standard deviation on a coordinate inside the range:
    /// √(Δ²/6 + p_b·Σ_j (2^j Δ)²) with the quantizer's step Δ and the mean bit error rate p_b.
    ///
    /// The first part is the mean over all places between two levels (Δ²/4 half way, where 0 is),
    /// the second the mean over all levels with every bit as likely to be wrong. With BPSK and QPSK
    /// that is exact for values spread over the range, up to p_b·Δ².
    pub fn noise_std(&self) -> f64 {
        let power = (4f64.powi(self.quantizer.bits() as i32) - 1.0) / 3.0;
        self.quantizer.step() * (1.0 / 6.0 + self.bit_error_rate() * power).sqrt()
    }

    /// The chance that a bit is decoded wrongly, over all bits of a symbol and all symbols.
    pub fn bit_error_rate(&self) -> f64 {
        let levels = self.axis.levels();
        let mut wrong = 0.0;
        for from in 0..levels {
            for to in 0..levels {
                if let Some(j) = from.abs_diff(to).checked_sub(1) {
                    // The last point takes all that would land beyond it.
                    let edge = to == 0 || to == levels - 1;
                    let beyond = if edge { 0.0 } else { self.crossings[j as usize + 1] };
                    let bits = (self.axis.gray(from) ^ self.axis.gray(to)).count_ones();
                    wrong += f64::from(bits) * (self.crossings[j as usize] - beyond);
                }
            }
        }
        wrong / f64::from(levels * self.axis.bits())
    }

    /// Replaces values by what the base station decodes. Values outside the range are cut to it;
    /// NaN is sent as 0.
    pub fn transmit<R: Rng + ?Sized>(&self, values: &mut [f32], rng: &mut R) -> DigitalReport {
        let cut = self.quantizer.quantize(values, rng);
        let symbol_errors = self.disturb(values, rng);
        self.quantizer.restore(values);
        DigitalReport { cut, symbol_errors }
    }

    /// Decision errors in the symbols of levels. Draws how many axes go well before the next one on
    /// which noise reaches a boundary: a good link costs next to nothing.
    fn disturb<R: Rng + ?Sized>(&self, levels: &mut [f32], rng: &mut R) -> usize {
        // Of two points each has one boundary, others have up to two.
        let sides = if self.axis.levels() == 2 { 1.0 } else { 2.0 };
        let chance = sides * self.crossings[0];
        if chance == 0.0 {
            return 0;
        }
        // P(gap ≥ n) = (1 − chance)^n = P(E ≥ n/mean) for an exponential E; no gaps at chance 1.
        let mean = -(-chance).ln_1p().recip();
        let gap = |rng: &mut R| (rng.sample::<f64, _>(Exp1) * mean) as usize;
        let coding = Coding::Digital { quantizer: self.quantizer, modulation: self.modulation };
        let axes = self.modulation.axes() as usize;
        let end = coding.symbols(levels.len()).saturating_mul(axes);
        let mut stream = BitStream::new(levels, self.quantizer.bits(), self.axis.bits());
        let (mut errors, mut last) = (0, None);
        let mut index = gap(rng);
        while index < end {
            let sent = self.axis.position(stream.group(index));
            let decided = self.moved(sent, rng);
            if decided != sent {
                stream.set_group(index, self.axis.gray(decided));
                errors += usize::from(last.replace(index / axes) != Some(index / axes));
            }
            index = index.saturating_add(1).saturating_add(gap(rng));
        }
        errors
    }

    /// Position after noise that reaches a boundary, if there is one.
    fn moved<R: Rng + ?Sized>(&self, position: u32, rng: &mut R) -> u32 {
        let top = self.axis.levels() - 1;
        if top == 1 {
            return top - position;
        }
        // One word: the lowest bit for the side, the highest 53 for how far.
        let random = rng.next_u64();
        let tail = (random >> 11) as f64 * 2f64.powi(-53) * self.crossings[0];
        let moves = self.crossings.iter().take_while(|&&further| tail < further).count() as u32;
        if random & 1 == 0 { position.saturating_sub(moves) } else { (position + moves).min(top) }
    }
}
