//! The span of the channels to be nulled.

use super::{Complex64, axpy, dot, norm_sqr};

/// Orthonormal vectors, one after the other.
pub(super) struct Basis {
    size: usize,
    vectors: Vec<Complex64>,
}

impl Basis {
    pub fn new(size: usize) -> Self {
        Self { size, vectors: Vec::with_capacity(size * size) }
    }

    /// Vectors so far.
    pub fn len(&self) -> usize {
        self.vectors.len() / self.size
    }

    /// Turns x into P⊥x, its part outside of the span, and gives ‖P⊥x‖².
    pub fn null(&self, x: &mut [Complex64]) -> f64 {
        // Twice, since what cancels in the first round of Gram–Schmidt leaves rounding errors that
        // are large beside a small rest.
        for _ in 0..2 {
            for vector in self.vectors.chunks_exact(self.size) {
                axpy(-dot(vector, x), vector, x);
            }
        }
        norm_sqr(x)
    }

    /// Adds what [`Self::null`] left and measured.
    pub fn push(&mut self, rest: &[Complex64], norm_sqr: f64) {
        let norm = norm_sqr.sqrt();
        self.vectors.extend(rest.iter().map(|x| x / norm));
    }
}
