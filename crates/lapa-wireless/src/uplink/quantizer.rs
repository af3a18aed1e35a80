//! Values as levels.

use rand::Rng;

use super::{UplinkError, check_magnitude};
use crate::error::check;

/// 2^bits levels spread evenly over [−range, range], both ends included. 0 lies between two.
///
/// Rounding is random, up with the probability of the distance to the lower level, so that a level
/// is the value in expectation. Rounding to the nearest would give every coordinate smaller than
/// half a step the same magnitude, and averaging over devices could not bring it back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantizer {
    bits: u32,
    range: f64,
}

impl Quantizer {
    /// 1 to 16 bits. The range is public: it must not depend on the values.
    pub fn new(bits: u32, range: f64) -> Result<Self, UplinkError> {
        check("bits", f64::from(bits), (1..=16).contains(&bits), "1 to 16")?;
        check_magnitude("range", range)?;
        Ok(Self { bits, range })
    }

    /// Bits of a level.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The largest value with a level of its own.
    pub fn range(&self) -> f64 {
        self.range
    }

    /// The distance of two levels.
    pub fn step(&self) -> f64 {
        2.0 * self.range / self.top()
    }

    /// The index of the level at +range.
    fn top(&self) -> f64 {
        f64::from((1u32 << self.bits) - 1)
    }

    /// Replaces values by the indices of their levels, which f32 holds exactly. Returns how many
    /// were cut to the range; NaN is taken for 0 and counted too.
    ///
    /// The probability to round up is right to 2⁻³²: one random word serves two values.
    pub(super) fn quantize<R: Rng + ?Sized>(&self, values: &mut [f32], rng: &mut R) -> usize {
        let (per_step, top) = (self.top() / (2.0 * self.range), self.top());
        let mut cut = 0;
        let mut quantize = |value: &mut f32, random: u64| {
            let v = f64::from(*value);
            let inside = v.abs() <= self.range;
            cut += usize::from(!inside);
            let v = if v.is_nan() { 0.0 } else { v.clamp(-self.range, self.range) };
            let uniform = random as f64 * 2f64.powi(-32);
            *value = ((v + self.range) * per_step + uniform).min(top) as u32 as f32;
        };
        for pair in values.chunks_mut(2) {
            let random = rng.next_u64();
            for (half, value) in pair.iter_mut().enumerate() {
                quantize(value, random >> (32 * half) & u64::from(u32::MAX));
            }
        }
        cut
    }

    /// Replaces indices of levels by their values.
    pub(super) fn restore(&self, levels: &mut [f32]) {
        let step = self.step();
        for level in levels {
            *level = (f64::from(*level) * step - self.range) as f32;
        }
    }
}
