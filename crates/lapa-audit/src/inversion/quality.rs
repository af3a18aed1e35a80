//! Quality of a reconstruction: mean squared error, peak signal-to-noise ratio,
//! structural similarity. Pixels are in [0, 1].

use lapa::model::Shape;

use crate::scale::is_image;

/// Squared errors below this are beyond single precision and count as this.
const LEAST_ERROR: f64 = 1e-12;
/// Rows and columns of the windows of the structural similarity.
const WINDOW: usize = 7;

/// Quality of a reconstruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Mean squared error.
    pub mse: f64,
    /// Peak signal-to-noise ratio in dB, −10·log₁₀ of the mean squared error; at most 120.
    pub psnr: f64,
    /// Structural similarity.
    pub ssim: f64,
}

impl Quality {
    /// Quality of `guess` as a reconstruction of `image`, which has this shape.
    ///
    /// # Panics
    /// If they are not of one size.
    pub fn of(guess: &[f32], image: &[f32], shape: Shape) -> Self {
        let mse = mean_squared_error(guess, image);
        let psnr = -10.0 * mse.max(LEAST_ERROR).log10();
        Self { mse, psnr, ssim: structural_similarity(guess, image, shape) }
    }
}

/// (1/n) Σ (a − b)²
pub fn mean_squared_error(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "pixels");
    let squares = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2));
    squares.sum::<f64>() / a.len() as f64
}

/// Structural similarity (Wang, Bovik, Sheikh and Simoncelli 2004, eq. (13)) with a range of 1: the
/// mean over all windows of 7 × 7 pixels, each pixel with the same weight and variances with n − 1,
/// as scikit-image has it by default. Images smaller than a window are one window, and so are
/// vectors; in color it is the mean over the channels.
pub fn structural_similarity(a: &[f32], b: &[f32], shape: Shape) -> f64 {
    assert_eq!(a.len(), b.len(), "pixels");
    if !is_image(shape) {
        return window_similarity(a.iter().zip(b).map(|(&a, &b)| (a.into(), b.into())));
    }
    let channels = a.chunks_exact(shape.area()).zip(b.chunks_exact(shape.area()));
    let of_each = channels.map(|(a, b)| similarity_of_channel(a, b, shape));
    of_each.sum::<f64>() / shape.channels as f64
}

fn similarity_of_channel(a: &[f32], b: &[f32], Shape { rows, cols, .. }: Shape) -> f64 {
    let (height, width) = (WINDOW.min(rows), WINDOW.min(cols));
    let places = (0..=rows - height).flat_map(|r| (0..=cols - width).map(move |c| (r, c)));
    let similarity = |(row, col): (usize, usize)| {
        let window =
            (row..row + height).flat_map(|r| (col..col + width).map(move |c| r * cols + c));
        window_similarity(window.map(|i| (f64::from(a[i]), f64::from(b[i]))))
    };
    let (sum, count) =
        places.map(similarity).fold((0.0, 0.0), |(sum, count), s| (sum + s, count + 1.0));
    sum / count
}

fn window_similarity(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    const C1: f64 = 0.01 * 0.01;
    const C2: f64 = 0.03 * 0.03;
    let mut n = 0.0;
    let [mut a, mut b, mut aa, mut bb, mut ab] = [0.0; 5];
    for (x, y) in pairs {
        n += 1.0;
        a += x;
        b += y;
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    (a, b) = (a / n, b / n);
    let moment = |product: f64, means: f64| (product - n * means) / f64::max(n - 1.0, 1.0);
    let (var_a, var_b, covariance) = (moment(aa, a * a), moment(bb, b * b), moment(ab, a * b));
    (2.0 * a * b + C1) * (2.0 * covariance + C2) / ((a * a + b * b + C1) * (var_a + var_b + C2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scikit-image 0.26.0: `structural_similarity(a, b, data_range=1.0)` of images of 12 × 10.
    #[test]
    fn similarity_matches_scikit_image() {
        let image = |f: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
            (0..120).map(|i| f(i / 10, i % 10)).collect()
        };
        let a = image(&|r, c| ((r * 7 + c * 3) % 11) as f32 / 10.0);
        let b = image(&|r, c| ((r * 5 + c * 4 + 2) % 13) as f32 / 12.0);
        let near = image(&|r, c| {
            let wave = 0.1 * f64::sin((r + 2 * c) as f64);
            (f64::from(a[r * 10 + c]) + wave).clamp(0.0, 1.0) as f32
        });
        for (other, similarity, error) in [
            (&b, 0.058_703_424_385_631_08, 0.199_469_905_711_434_78),
            (&near, 0.981_219_190_625_960_7, 0.003_986_057_866_127_252),
        ] {
            let quality = Quality::of(&a, other, Shape::new(1, 12, 10));
            assert!((quality.ssim - similarity).abs() < 1e-6, "{quality:?}");
            assert!((quality.mse - error).abs() < 1e-7, "{quality:?}");
        }
        let same = Quality::of(&a, &a, Shape::new(1, 12, 10));
        assert_eq!((same.mse, same.psnr), (0.0, 120.0));
        assert!((same.ssim - 1.0).abs() < 1e-12);
        assert!(Quality::of(&[0.5; 4], &[0.5; 4], Shape::new(1, 2, 2)).ssim > 0.999);
    }
}
