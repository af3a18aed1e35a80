//! Scattering coefficients of an image: averages of moduli of wavelet coefficients, to order 2.
//!
//! S₀ = x∗φ, S₁ = |x∗ψ₁|∗φ and S₂ = ||x∗ψ₁|∗ψ₂|∗φ, where ψ₂ is coarser than ψ₁ (J. Bruna, S. Mallat,
//! "Invariant Scattering Convolution Networks", 2013, eq. 8 and 9): 1 + 16 + 64 channels.

use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use super::filters::{ANGLES, SCALES, morlet, smoothing};
use super::{Extract, Features, check_image};
use crate::data::Result;
use crate::shape::Shape;

type C = Complex<f32>;

/// Coefficients per place and channel of the image.
const CHANNELS: usize = 1 + SCALES * ANGLES + ANGLES * ANGLES;
/// Pixels per coefficient on a side.
const STEP: usize = 1 << SCALES;
/// Smallest side: an image is mirrored at its edges.
const LEAST: usize = 8;

/// Fourier transforms of planes of one size. Spectra stand column by column.
struct Plane {
    rows: usize,
    cols: usize,
    /// Along rows and along columns, forward and back.
    forward: [Arc<dyn Fft<f32>>; 2],
    back: [Arc<dyn Fft<f32>>; 2],
    /// Matrices that smooth and sample: of rows, and of columns, the latter transposed.
    smooth_rows: Vec<Vec<f32>>,
    smooth_cols: Vec<Vec<f32>>,
}

impl Plane {
    fn new(planner: &mut FftPlanner<f32>, [rows, cols]: [usize; 2], level: usize) -> Self {
        let [rows, cols] = [rows >> level, cols >> level];
        let of_cols = smoothing(cols << level, level);
        let column = |at: usize| of_cols.iter().map(|row| row[at]).collect();
        Self {
            rows,
            cols,
            forward: [planner.plan_fft_forward(cols), planner.plan_fft_forward(rows)],
            back: [planner.plan_fft_inverse(cols), planner.plan_fft_inverse(rows)],
            smooth_rows: smoothing(rows << level, level),
            smooth_cols: (0..cols).map(column).collect(),
        }
    }

    fn len(&self) -> usize {
        self.rows * self.cols
    }

    fn scratch_len(&self) -> usize {
        let lens = self.forward.iter().chain(&self.back).map(|fft| fft.get_inplace_scratch_len());
        lens.max().unwrap_or(0)
    }

    /// The spectrum of the values of `plane`, which is lost.
    fn transform(&self, plane: &mut [C], spectrum: &mut [C], scratch: &mut [C]) {
        self.forward[0].process_with_scratch(plane, scratch);
        transpose(plane, self.cols, spectrum);
        self.forward[1].process_with_scratch(spectrum, scratch);
    }

    /// |plane| of a spectrum, which is lost, times its number of values.
    fn modulus(&self, spectrum: &mut [C], plane: &mut [C], scratch: &mut [C], modulus: &mut [f32]) {
        self.back[1].process_with_scratch(spectrum, scratch);
        transpose(spectrum, self.rows, plane);
        self.back[0].process_with_scratch(plane, scratch);
        for (modulus, value) in modulus.iter_mut().zip(plane) {
            *modulus = (value.re * value.re + value.im * value.im).sqrt();
        }
    }

    /// Values ∗ φ at every place of a coefficient.
    fn smooth(&self, values: &[f32], sums: &mut [f32], smoothed: &mut [f32]) {
        let width = self.smooth_cols[0].len();
        for (weights, smoothed) in self.smooth_rows.iter().zip(smoothed.chunks_exact_mut(width)) {
            let sums = &mut sums[..self.cols];
            sums.fill(0.0);
            for (weight, values) in weights.iter().zip(values.chunks_exact(self.cols)) {
                // The Gaussian is short.
                if weight.abs() > 1e-9 {
                    add_scaled(sums, *weight, values);
                }
            }
            smoothed.fill(0.0);
            for (sum, weights) in sums.iter().zip(&self.smooth_cols) {
                add_scaled(smoothed, *sum, weights);
            }
        }
    }
}

/// sum += factor·x
fn add_scaled(sum: &mut [f32], factor: f32, x: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += factor * x;
    }
}

/// The plane with rows of `cols` values, column by column.
fn transpose(plane: &[C], cols: usize, transposed: &mut [C]) {
    let rows = plane.len() / cols;
    for (col, column) in transposed.chunks_exact_mut(rows).enumerate() {
        for (value, row) in column.iter_mut().zip(plane.chunks_exact(cols)) {
            *value = row[col];
        }
    }
}

/// Scattering transform of images of one shape.
pub struct Scattering {
    input: Shape,
    /// Pixels of the mirrored image before the first one.
    before: [usize; 2],
    fine: Plane,
    coarse: Plane,
    /// Spectra of the wavelets, over the number of pixels: each angle of the fine scale, then of the
    /// coarse one.
    wavelets: Vec<Vec<f32>>,
}

/// Working memory of a thread.
pub struct Scratch {
    padded: Vec<f32>,
    /// Spectrum of the image, of a modulus, of a product.
    image: Vec<C>,
    modulus: Vec<C>,
    product: Vec<C>,
    plane: Vec<C>,
    values: Vec<f32>,
    sums: Vec<f32>,
    fft: Vec<C>,
}

impl Scattering {
    pub fn new(input: Shape) -> Result<Self> {
        check_image(Features::Scattering, input, LEAST)?;
        // As Kymatio pads: to a multiple of the step, by one step or more in all.
        let padded = |side: usize| ((side + STEP) / STEP + 1) * STEP;
        let sides = [padded(input.rows), padded(input.cols)];
        let planner = &mut FftPlanner::new();
        let fine = Plane::new(planner, sides, 0);
        let coarse = Plane::new(planner, sides, 1);
        let pixels = fine.len() as f32;
        let mut scratch = vec![C::default(); fine.scratch_len()];
        let mut wavelet = |at: usize| {
            let mut values = morlet(sides, at / ANGLES, at % ANGLES);
            let mut spectrum = vec![C::default(); values.len()];
            fine.transform(&mut values, &mut spectrum, &mut scratch);
            // Its imaginary part is rounding.
            spectrum.iter().map(|value| value.re / pixels).collect()
        };
        let wavelets = (0..SCALES * ANGLES).map(&mut wavelet).collect();
        let before = [(sides[0] - input.rows) / 2, (sides[1] - input.cols) / 2];
        Ok(Self { input, before, fine, coarse, wavelets })
    }

    /// The image with its mirror images around it.
    fn pad(&self, image: &[f32], padded: &mut [f32]) {
        let mirrored = |at: usize, before: usize, side: usize| {
            let at = (at as isize - before as isize).unsigned_abs();
            if at < side { at } else { 2 * (side - 1) - at }
        };
        for (row, padded) in padded.chunks_exact_mut(self.fine.cols).enumerate() {
            let row = mirrored(row, self.before[0], self.input.rows);
            let image = &image[row * self.input.cols..][..self.input.cols];
            for (col, value) in padded.iter_mut().enumerate() {
                *value = image[mirrored(col, self.before[1], self.input.cols)];
            }
        }
    }

    /// |x∗ψ| on the coarse grid, for the spectrum of x and of ψ on the fine one.
    fn coarse_modulus(&self, wavelet: &[f32], spectrum: Spectrum, scratch: &mut Scratch) {
        let Scratch { image, modulus, product, plane, values, fft, .. } = scratch;
        let x = if spectrum == Spectrum::Image { image } else { modulus };
        // Every second value in space: four parts of the spectrum on each other.
        let (rows, fine_rows) = (self.coarse.rows, self.fine.rows);
        let (upper, lower) = (0, self.coarse.cols * fine_rows);
        for col in 0..self.coarse.cols {
            let product = &mut product[col * rows..][..rows];
            let parts = [upper, upper + rows, lower, lower + rows].map(|part| {
                let first = part + col * fine_rows;
                (&x[first..][..rows], &wavelet[first..][..rows])
            });
            let [(a, p), (b, q), (c, r), (d, s)] = parts;
            for (at, product) in product.iter_mut().enumerate() {
                *product = a[at] * p[at] + b[at] * q[at] + (c[at] * r[at] + d[at] * s[at]);
            }
        }
        let len = self.coarse.len();
        self.coarse.modulus(&mut product[..len], &mut plane[..len], fft, values);
    }

    /// |x∗ψ| on the fine grid, and its spectrum.
    fn fine_modulus(&self, wavelet: &[f32], scratch: &mut Scratch) {
        let Scratch { image, modulus, product, plane, values, fft, .. } = scratch;
        for ((product, x), w) in product.iter_mut().zip(image).zip(wavelet) {
            *product = *x * *w;
        }
        self.fine.modulus(product, plane, fft, values);
        for (plane, value) in plane.iter_mut().zip(values) {
            *plane = C::new(*value, 0.0);
        }
        self.fine.transform(plane, modulus, fft);
    }
}

/// A spectrum in working memory.
#[derive(PartialEq)]
enum Spectrum {
    Image,
    Modulus,
}

impl Extract for Scattering {
    type Scratch = Scratch;

    /// As Tramèr and Boneh (2021) chose.
    const GROUPS: usize = 27;

    fn output(&self) -> Shape {
        let [rows, cols] = [self.fine.smooth_rows.len(), self.fine.smooth_cols[0].len()];
        Shape::new(self.input.channels * CHANNELS, rows, cols)
    }

    fn scratch(&self) -> Scratch {
        let complex = || vec![C::default(); self.fine.len()];
        Scratch {
            padded: vec![0.0; self.fine.len()],
            image: complex(),
            modulus: complex(),
            product: complex(),
            plane: complex(),
            values: vec![0.0; self.fine.len()],
            sums: vec![0.0; self.fine.cols],
            fft: vec![C::default(); self.fine.scratch_len().max(self.coarse.scratch_len())],
        }
    }

    fn extract(&self, image: &[f32], scratch: &mut Scratch, features: &mut [f32]) {
        let (fine, coarse) = (&self.fine, &self.coarse);
        let area = self.output().area();
        let (fine_wavelets, coarse_wavelets) = self.wavelets.split_at(ANGLES);
        let channels = image.chunks_exact(self.input.area());
        for (image, features) in channels.zip(features.chunks_exact_mut(CHANNELS * area)) {
            self.pad(image, &mut scratch.padded);
            let (zero, rest) = features.split_at_mut(area);
            let (first, second) = rest.split_at_mut(SCALES * ANGLES * area);
            fine.smooth(&scratch.padded, &mut scratch.sums, zero);
            for (value, pixel) in scratch.plane.iter_mut().zip(&scratch.padded) {
                *value = C::new(*pixel, 0.0);
            }
            fine.transform(&mut scratch.plane, &mut scratch.image, &mut scratch.fft);
            let mut first = first.chunks_exact_mut(area);
            let mut second = second.chunks_exact_mut(area);
            for (wavelet, smoothed) in fine_wavelets.iter().zip(&mut first) {
                self.fine_modulus(wavelet, scratch);
                fine.smooth(&scratch.values, &mut scratch.sums, smoothed);
                for (wavelet, smoothed) in coarse_wavelets.iter().zip(&mut second) {
                    self.coarse_modulus(wavelet, Spectrum::Modulus, scratch);
                    let values = &scratch.values[..coarse.len()];
                    coarse.smooth(values, &mut scratch.sums, smoothed);
                }
            }
            for (wavelet, smoothed) in coarse_wavelets.iter().zip(&mut first) {
                self.coarse_modulus(wavelet, Spectrum::Image, scratch);
                coarse.smooth(&scratch.values[..coarse.len()], &mut scratch.sums, smoothed);
            }
        }
    }
}
