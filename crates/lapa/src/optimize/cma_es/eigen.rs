//! Eigenvalues of symmetric matrices.

/// Eigenvalues and eigenvectors of a symmetric matrix of n rows, by cyclic Jacobi rotations (Golub &
/// Van Loan, Matrix Computations, 4th ed., Section 8.5). Row i of the second result is the
/// eigenvector of the i-th eigenvalue.
pub(super) fn symmetric(mut matrix: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    /// Far more than it takes: convergence is quadratic, after about six sweeps for n = 50.
    const SWEEPS: usize = 60;
    let mut vectors = vec![0.0; n * n];
    for i in 0..n {
        vectors[i * n + i] = 1.0;
    }
    for _ in 0..SWEEPS {
        let mut off = 0.0;
        for p in 0..n {
            off += matrix[p * n + p + 1..(p + 1) * n].iter().map(|x| x * x).sum::<f64>();
        }
        let diagonal: f64 = (0..n).map(|i| matrix[i * n + i].powi(2)).sum();
        // Once more than this would change no digit.
        if off <= f64::EPSILON * f64::EPSILON * diagonal {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut matrix, &mut vectors, n, p, q);
            }
        }
    }
    ((0..n).map(|i| matrix[i * n + i]).collect(), vectors)
}

/// Makes element (p, q) zero.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], n: usize, p: usize, q: usize) {
    let apq = matrix[p * n + q];
    if apq == 0.0 {
        return;
    }
    let theta = (matrix[q * n + q] - matrix[p * n + p]) / (2.0 * apq);
    // The smaller root of t² + 2θt − 1 = 0; an infinite θ makes it 0.
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cosine = tangent.hypot(1.0).recip();
    let sine = tangent * cosine;
    for i in 0..n {
        let (a, b) = (matrix[i * n + p], matrix[i * n + q]);
        matrix[i * n + p] = cosine * a - sine * b;
        matrix[i * n + q] = sine * a + cosine * b;
    }
    for i in 0..n {
        let (a, b) = (matrix[p * n + i], matrix[q * n + i]);
        matrix[p * n + i] = cosine * a - sine * b;
        matrix[q * n + i] = sine * a + cosine * b;
        let (a, b) = (vectors[p * n + i], vectors[q * n + i]);
        vectors[p * n + i] = cosine * a - sine * b;
        vectors[q * n + i] = sine * a + cosine * b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::{Purpose, stream};
    use rand::RngExt;

    #[test]
    fn eigenvectors_are_orthonormal_and_give_the_matrix_back() {
        let mut rng = stream(1, Purpose::Power, 0, 0);
        for n in [1, 2, 7, 30] {
            let mut matrix = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..=i {
                    let x = rng.random_range(-1.0..1.0);
                    (matrix[i * n + j], matrix[j * n + i]) = (x, x);
                }
            }
            let (values, vectors) = symmetric(matrix.clone(), n);
            for i in 0..n {
                for j in 0..n {
                    let back: f64 =
                        (0..n).map(|k| values[k] * vectors[k * n + i] * vectors[k * n + j]).sum();
                    assert!((back - matrix[i * n + j]).abs() < 1e-13 * n as f64);
                    let inner: f64 = (0..n).map(|k| vectors[i * n + k] * vectors[j * n + k]).sum();
                    assert!((inner - f64::from(u8::from(i == j))).abs() < 1e-13 * n as f64);
                }
            }
        }
    }

    /// Second differences on n points: 2 − 2cos(πk/(n + 1)).
    #[test]
    fn a_tridiagonal_matrix_has_its_known_eigenvalues() {
        let n = 12;
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            matrix[i * n + i] = 2.0;
            if i > 0 {
                (matrix[i * n + i - 1], matrix[(i - 1) * n + i]) = (-1.0, -1.0);
            }
        }
        let mut values = symmetric(matrix, n).0;
        values.sort_by(f64::total_cmp);
        for (k, value) in (1..).zip(values) {
            let angle = std::f64::consts::PI * f64::from(k) / (n as f64 + 1.0);
            assert!((value - (2.0 - 2.0 * angle.cos())).abs() < 1e-13);
        }
    }
}
