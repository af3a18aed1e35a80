//! Morlet wavelets and the Gaussian of a scattering transform, in frequency and in space.
//!
//! Definitions: J. Bruna, S. Mallat, "Invariant Scattering Convolution Networks", 2013, Section 2.2,
//! with the constants of Kymatio (Andreux et al. 2020), whose coefficients these filters reproduce.

use std::f64::consts::PI;

use rustfft::num_complex::Complex;

/// Angles L.
pub const ANGLES: usize = 8;
/// Scales J.
pub const SCALES: usize = 2;
/// Standard deviation of the envelope at the finest scale, in pixels.
const SIGMA: f64 = 0.8;
/// Center frequency at the finest scale.
const FREQUENCY: f64 = 0.75 * PI;
/// Ratio of the envelope's axes.
const SLANT: f64 = 4.0 / ANGLES as f64;
/// Periods of the image on either side that are added up.
const PERIODS: i64 = 2;
/// Kymatio's π in the factor of a Gaussian.
const PI_OF_FACTOR: f64 = 31415.0 / 1e4;

/// An envelope g_σ(u)·e^{iξ·u} that has the period of the image.
struct Gabor {
    sigma: f64,
    theta: f64,
    frequency: f64,
    slant: f64,
}

impl Gabor {
    fn sample(&self, [rows, cols]: [usize; 2]) -> Vec<Complex<f64>> {
        let Self { sigma, theta, frequency, slant } = *self;
        let (sin, cos) = theta.sin_cos();
        let (squeeze, scale) = (slant * slant, 1.0 / (2.0 * sigma * sigma));
        let a = scale * (cos * cos + squeeze * sin * sin);
        let b = scale * 2.0 * cos * sin * (1.0 - squeeze);
        let c = scale * (sin * sin + squeeze * cos * cos);
        let factor = slant / (2.0 * PI_OF_FACTOR * sigma * sigma);
        let mut samples = Vec::with_capacity(rows * cols);
        for row in 0..rows {
            for col in 0..cols {
                let mut sum = Complex::new(0.0, 0.0);
                for down in -PERIODS..=PERIODS {
                    for right in -PERIODS..=PERIODS {
                        let x = row as f64 + (down * rows as i64) as f64;
                        let y = col as f64 + (right * cols as i64) as f64;
                        let exponent = a * x * x + b * x * y + c * y * y;
                        // Smaller terms do not show in 32 bits.
                        if exponent < 60.0 {
                            let phase = frequency * (x * cos + y * sin);
                            sum += Complex::from_polar(factor * (-exponent).exp(), phase);
                        }
                    }
                }
                samples.push(sum);
            }
        }
        samples
    }
}

/// ψ_{j,θ}: a Gabor function less the multiple of its envelope that makes its mean 0. `angle` counts
/// as Kymatio does, θ = (3 − angle)·π/8.
pub fn morlet(sides: [usize; 2], scale: usize, angle: usize) -> Vec<Complex<f32>> {
    let stretch = (1 << scale) as f64;
    let theta = (ANGLES as f64 / 2.0 - 1.0 - angle as f64) * PI / ANGLES as f64;
    let gabor = |frequency| Gabor { sigma: SIGMA * stretch, theta, frequency, slant: SLANT };
    let (wave, envelope) = (gabor(FREQUENCY / stretch).sample(sides), gabor(0.0).sample(sides));
    let sum = |of: &[Complex<f64>]| of.iter().sum::<Complex<f64>>();
    let mean = sum(&wave) / sum(&envelope);
    let value = |(w, e): (Complex<f64>, Complex<f64>)| {
        let value = w - mean * e;
        Complex::new(value.re as f32, value.im as f32)
    };
    wave.into_iter().zip(envelope).map(value).collect()
}

/// Rows of the matrix that smooths a side of `len` pixels by the Gaussian φ, of which every `2^level`th
/// is there, and keeps every fourth pixel but the two at the ends. φ is a product of two such matrices.
pub fn smoothing(len: usize, level: usize) -> Vec<Vec<f32>> {
    let sigma = SIGMA * (1 << (SCALES - 1)) as f64;
    let envelope = |at: usize| -> f64 {
        let periods = (-PERIODS..=PERIODS).map(|period| at as f64 + (period * len as i64) as f64);
        let sum: f64 = periods.map(|x| (-x * x / (2.0 * sigma * sigma)).exp()).sum();
        sum / (sigma * (2.0 * PI_OF_FACTOR).sqrt())
    };
    let envelope: Vec<f64> = (0..len).map(envelope).collect();
    let wave = |k: usize, at: usize, of: usize| (2.0 * PI * (k * at % of) as f64 / of as f64).cos();
    // The spectrum, and the part of it that a coarser grid has.
    let spectrum = |k: usize| (0..len).map(|at| envelope[at] * wave(k, at, len)).sum::<f64>();
    let kept = len >> level;
    let frequency = |k: usize| if level > 0 && 2 * k >= kept { k + len - kept } else { k };
    let spectrum: Vec<f64> = (0..kept).map(|k| spectrum(frequency(k))).collect();
    let kernel = |at: usize| {
        let sum: f64 = (0..kept).map(|k| spectrum[k] * wave(k, at, kept)).sum();
        sum / kept as f64
    };
    let kernel: Vec<f64> = (0..kept).map(kernel).collect();
    let step = (1 << SCALES) >> level;
    let row = |at: usize| {
        let distance = |from: usize| (at * step + kept - from) % kept;
        (0..kept).map(|from| kernel[distance(from)] as f32).collect()
    };
    (1..kept / step - 1).map(row).collect()
}
