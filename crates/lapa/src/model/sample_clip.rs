//! The clip of each sample's gradient, and the arithmetic of the sum of the clipped gradients.
//!
//! Real numbers would give the sum a sensitivity of C per sample. Rounded sums need a proof of
//! their own (Casacuberta, Shoemate, Vadhan & Wagaman, CCS 2022). docs/privacy.md, "Sums in
//! floating point", has the theorem; the constants here are its constants, and the compiler checks
//! its inequality.

/// Most samples whose clipped gradients are added in f32 before f64 takes over.
pub const BLOCK: usize = 64;

/// Samples in a sum that the theorem covers.
pub const MOST_SAMPLES: usize = 1 << 20;

/// A gradient longer than `MARGIN`·C is scaled to this length; the rest of C is for rounding.
const MARGIN: f64 = 1.0 - 1.0 / 1024.0;

/// The square of the longest gradient that counts, and of the longest input of a fully connected
/// layer. Below it no product of the sum leaves the normal range of f32 by more than 2⁻⁹⁰.
pub(super) const LARGEST_NORM_SQUARED: f64 = (1u128 << 120) as f64;

/// The theorem's inequality: with c = `MARGIN`·C·(1 + ν)(1 + u), one sample moves the computed sum
/// by at most c + 2·((1 + u)^(B+2) − 1)·B·c + 2·n²·2⁻⁵³·c·1.001 ≤ C.
const _: () = {
    let (u, nu, b, n) =
        (1.0 / (1u64 << 24) as f64, 1.0 / (1u64 << 16) as f64, BLOCK as f64, MOST_SAMPLES as f64);
    let contribution = MARGIN * (1.0 + nu) * (1.0 + u);
    // (1 + u)^k − 1 ≤ k·u/(1 − k·u)
    let block = (b + 2.0) * u / (1.0 - (b + 2.0) * u) * b;
    let sums = n * n * 1.001 / (1u64 << 53) as f64;
    assert!(contribution * (1.0 + 2.0 * block + 2.0 * sums) <= 1.0);
};

/// Blocks of a batch, in which clipped gradients are added in f32. A sample that counts as zero is
/// no member of its block. The members of a block beyond the first [`BLOCK`] are blocks of their
/// own, so that a sample which joins or leaves a block moves at most one other out of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Blocks<'a> {
    /// Blocks of this many samples, by their place in the batch.
    Each(usize),
    /// Blocks that end before these places of the batch.
    Ends(&'a [usize]),
}

impl Blocks<'_> {
    /// Block `index` of a batch of `n`, which begins at `first`.
    pub(super) fn end(&self, index: usize, first: usize, n: usize) -> usize {
        match self {
            Self::Each(size) => (first + size.max(&1)).min(n),
            Self::Ends(ends) => ends.get(index).copied().unwrap_or(n),
        }
    }
}

/// A clip of each sample's gradient, and the mean of the clipped gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleClip<'a> {
    /// C: no sample counts with a longer gradient.
    pub norm: f64,
    /// The number that the sum is divided by: the caller's, since privacy may forbid the size of
    /// the batch.
    pub denominator: f64,
    /// Samples that are added in f32 before f64 takes over.
    pub blocks: Blocks<'a>,
}

impl SampleClip<'_> {
    /// min(1, C′/‖g‖) of a gradient with this squared norm; `None` if the gradient counts as zero,
    /// because it is not finite or longer than any that the theorem covers.
    pub(super) fn factor(&self, norm_squared: f64) -> Option<f32> {
        (norm_squared <= LARGEST_NORM_SQUARED)
            .then(|| (MARGIN * self.norm / norm_squared.sqrt()).min(1.0) as f32)
    }
}
