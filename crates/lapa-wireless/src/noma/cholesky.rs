//! R = I + Σ g·g^H by its Cholesky factor.
//!
//! Each g is rotated into the factor, which is the QR decomposition of all rows g^H and of I, one
//! row at a time. An error of rounding is then one of g relative to ‖g‖; summing up R itself, or
//! its inverse, would lose twice the digits when strong devices hide weak directions.

use super::{Complex64, axpy, dot, norm_sqr, scale};

/// L with R = L·L^H, lower triangular with a positive diagonal.
pub(super) struct Cholesky {
    size: usize,
    /// By columns; what is above the diagonal stays 0.
    factor: Vec<Complex64>,
}

impl Cholesky {
    pub fn identity(size: usize) -> Self {
        let mut factor = vec![Complex64::ZERO; size * size];
        factor.iter_mut().step_by(size + 1).for_each(|diagonal| *diagonal = Complex64::ONE);
        Self { size, factor }
    }

    /// R += g·g^H for g = amplitude·unit; unit is used up.
    pub fn add(&mut self, unit: &mut [Complex64], amplitude: f64) {
        let g = unit;
        scale(g, amplitude);
        for (j, column) in self.factor.chunks_exact_mut(self.size).enumerate() {
            // The rotation of column j and g that makes g_j = 0.
            let diagonal = column[j].re;
            let radius = (diagonal * diagonal + g[j].norm_sqr()).sqrt();
            let cos = diagonal / radius;
            let sin = g[j] / radius;
            column[j] = radius.into();
            for (l, x) in column[j + 1..].iter_mut().zip(&mut g[j + 1..]) {
                (*l, *x) = (*l * cos + sin.conj() * *x, *x * cos - sin * *l);
            }
        }
    }

    /// x^H·R·x = ‖L^H·x‖²
    pub fn form(&self, x: &[Complex64]) -> f64 {
        let columns = self.factor.chunks_exact(self.size).enumerate();
        columns.map(|(j, column)| dot(&column[j..], &x[j..]).norm_sqr()).sum()
    }

    /// Turns x into R⁻¹·x and gives x^H·R⁻¹·x = ‖L⁻¹·x‖².
    pub fn solve(&self, x: &mut [Complex64]) -> f64 {
        let columns = self.factor.chunks_exact(self.size).enumerate();
        for (j, column) in columns.clone() {
            x[j] /= column[j].re;
            axpy(-x[j], &column[j + 1..], &mut x[j + 1..]);
        }
        let form = norm_sqr(x);
        for (j, column) in columns.rev() {
            x[j] = (x[j] - dot(&column[j + 1..], &x[j + 1..])) / column[j].re;
        }
        form
    }
}
