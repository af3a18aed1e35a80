//! The four ways to share out a budget that the paper compares.

use super::Curve;
use super::curve::Base;

/// A way to share out the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocator {
    None,
    Lapa,
    Arb,
    Uniform,
}

impl Allocator {
    pub const ALL: [Self; 4] = [Self::None, Self::Lapa, Self::Arb, Self::Uniform];
    pub const PRIVATE: [Self; 3] = [Self::Lapa, Self::Arb, Self::Uniform];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no DP (Configuration 4)",
            Self::Lapa => "LAPA (Configuration 3)",
            Self::Arb => "ARB (Benchmark 4)",
            Self::Uniform => "uniform DP (Benchmark 3)",
        }
    }

    /// A curve of it.
    pub fn curve(self, base: Base) -> Curve {
        Curve::new(self.name(), base).with(match self {
            Self::None => "privacy=none",
            Self::Lapa => "privacy.allocator=lapa",
            Self::Arb => "privacy.allocator=arb",
            Self::Uniform => "privacy.allocator=uniform",
        })
    }

    /// A curve of it; `sigma` is the noise of the first round.
    pub fn with_noise(self, base: Base, sigma: f64) -> Curve {
        let curve = self.curve(base);
        match self {
            Self::None => curve,
            _ => curve.with(format!("privacy.initial_sigma={sigma}")),
        }
    }
}
