//! The covariance of CMA-ES: full, or its diagonal alone.

use super::eigen;

/// Most variables with a full covariance. An eigendecomposition takes about 10n³ steps.
const MOST_FULL: usize = 50;

/// C, and C^{1/2} as of the last [`Covariance::refresh`].
pub(super) enum Covariance {
    /// All of it.
    Full {
        /// C, row by row.
        matrix: Vec<f64>,
        /// Its eigenvectors, row by row.
        vectors: Vec<f64>,
        /// The roots of its eigenvalues.
        roots: Vec<f64>,
    },
    /// Variances alone (sep-CMA-ES, Ros & Hansen 2008).
    Diagonal {
        /// C
        variances: Vec<f64>,
        /// Their roots.
        roots: Vec<f64>,
    },
}

impl Covariance {
    /// The identity in n dimensions.
    pub fn identity(n: usize) -> Self {
        if n > MOST_FULL {
            return Self::Diagonal { variances: vec![1.0; n], roots: vec![1.0; n] };
        }
        let mut matrix = vec![0.0; n * n];
        (0..n).for_each(|i| matrix[i * n + i] = 1.0);
        Self::Full { vectors: matrix.clone(), matrix, roots: vec![1.0; n] }
    }

    /// Learning rate relative to that of a full covariance (Ros & Hansen 2008, Section 3).
    pub fn relative_rate(&self) -> f64 {
        match self {
            Self::Full { .. } => 1.0,
            Self::Diagonal { roots, .. } => (roots.len() as f64 + 2.0) / 3.0,
        }
    }

    /// A draw of N(0, C) from one of N(0, I).
    pub fn shape(&self, z: &[f64], out: &mut [f64]) {
        match self {
            Self::Diagonal { roots, .. } => {
                for ((out, root), z) in out.iter_mut().zip(roots).zip(z) {
                    *out = root * z;
                }
            }
            Self::Full { vectors, roots, .. } => {
                out.fill(0.0);
                for ((vector, root), z) in vectors.chunks_exact(z.len()).zip(roots).zip(z) {
                    add(out, root * z, vector);
                }
            }
        }
    }

    /// C^{−1/2}·y
    pub fn whiten(&self, y: &[f64]) -> Vec<f64> {
        match self {
            Self::Diagonal { roots, .. } => y.iter().zip(roots).map(|(y, root)| y / root).collect(),
            Self::Full { vectors, roots, .. } => {
                let mut out = vec![0.0; y.len()];
                for (vector, root) in vectors.chunks_exact(y.len()).zip(roots) {
                    let along: f64 = vector.iter().zip(y).map(|(v, y)| v * y).sum();
                    add(&mut out, along / root, vector);
                }
                out
            }
        }
    }

    /// C ← keep·C
    pub fn scale(&mut self, keep: f64) {
        let (Self::Full { matrix: c, .. } | Self::Diagonal { variances: c, .. }) = self;
        c.iter_mut().for_each(|c| *c *= keep);
    }

    /// C ← C + weight·yyᵀ
    pub fn add(&mut self, weight: f64, y: &[f64]) {
        match self {
            Self::Diagonal { variances, .. } => {
                variances.iter_mut().zip(y).for_each(|(c, y)| *c += weight * y * y);
            }
            Self::Full { matrix, .. } => {
                for (row, a) in matrix.chunks_exact_mut(y.len()).zip(y) {
                    add(row, weight * a, y);
                }
            }
        }
    }

    /// Makes C^{1/2} that of C.
    pub fn refresh(&mut self) {
        match self {
            Self::Diagonal { variances, roots } => {
                roots.iter_mut().zip(variances).for_each(|(root, c)| *root = c.sqrt());
            }
            Self::Full { matrix, vectors, roots } => {
                let (values, basis) = eigen::symmetric(matrix.clone(), roots.len());
                *vectors = basis;
                // Rounding may make the least of them negative; `condition` is then ∞.
                *roots = values.into_iter().map(|value| value.max(0.0).sqrt()).collect();
            }
        }
    }

    /// The largest standard deviation in any direction.
    pub fn largest(&self) -> f64 {
        let (Self::Full { roots, .. } | Self::Diagonal { roots, .. }) = self;
        roots.iter().fold(0f64, |a, &b| a.max(b))
    }

    /// Largest over least eigenvalue; ∞ where C is no covariance.
    pub fn condition(&self) -> f64 {
        let (Self::Full { roots, .. } | Self::Diagonal { roots, .. }) = self;
        let least = roots.iter().fold(f64::INFINITY, |a, &b| a.min(b));
        (self.largest() / least).powi(2)
    }
}

/// out ← out + factor·vector
fn add(out: &mut [f64], factor: f64, vector: &[f64]) {
    out.iter_mut().zip(vector).for_each(|(out, v)| *out += factor * v);
}
