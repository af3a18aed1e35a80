//! Looking for images whose gradient is the one that was seen.

use lapa::seed::Stream;
use rand::RngExt;

use super::matching::{Distance, Matcher, Seen};

/// How images are looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// What is made small.
    pub distance: Distance,
    /// Weight of the total variation per pixel.
    pub variation: f64,
    /// Steps of Adam from each start.
    pub steps: u32,
    /// Starts; the images with the least objective are kept.
    pub starts: u32,
    /// Length of the first steps.
    pub rate: f64,
    /// Whether Adam only sees the signs of the derivative.
    pub signed: bool,
    pub start: f32,
    pub anneal: f64,
}

/// Images, and how well they explain what was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// One after the other, in [0, 1].
    pub images: Vec<f32>,
    /// The objective.
    pub objective: f64,
}

impl Search {
    /// The best images of all starts.
    pub fn run(
        &self,
        matcher: &mut Matcher,
        seen: &Seen<'_>,
        cols: usize,
        rng: &mut Stream,
    ) -> Found {
        let pixels = matcher.pixels();
        let mut best = Found { images: Vec::new(), objective: f64::INFINITY };
        for _ in 0..self.starts.max(1) {
            let start: Vec<f32> =
                (0..pixels * seen.labels.len()).map(|_| self.start * rng.random::<f32>()).collect();
            let found = self.descend(matcher, seen, cols, start);
            if found.objective < best.objective || best.images.is_empty() {
                best = found;
            }
        }
        best
    }

    /// Adam (Kingma and Ba 2015) from one start, kept in [0, 1]; the steps become a tenth after
    /// 3/8, 5/8 and 7/8 of them, as Geiping et al. do it.
    pub fn descend(
        &self,
        matcher: &mut Matcher,
        seen: &Seen<'_>,
        cols: usize,
        start: Vec<f32>,
    ) -> Found {
        let pixels = matcher.pixels();
        self.minimise(pixels, cols, start, |images, descent| matcher.distance(seen, self.distance, images, descent))
    }
    pub fn minimise(
        &self,
        pixels: usize,
        cols: usize,
        start: Vec<f32>,
        mut f: impl FnMut(&[f32], &mut [f32]) -> f64,
    ) -> Found {
        const BETA: [f64; 2] = [0.9, 0.999];
        let len = start.len();
        let mut images = start;
        let mut descent = vec![0.0; len];
        let mut moments = vec![[0.0f64; 2]; len];
        let mut best = Found { images: images.clone(), objective: f64::INFINITY };
        for step in 0..self.steps {
            let mut objective = f(&images, &mut descent);
            for (image, descent) in
                images.chunks_exact(pixels).zip(descent.chunks_exact_mut(pixels))
            {
                objective += add_variation(image, cols, self.variation * self.anneal.powf(f64::from(step) / f64::from(self.steps)), descent);
            }
            if objective < best.objective {
                best.objective = objective;
                best.images.copy_from_slice(&images);
            }
            let eighths = 8 * u64::from(step) / u64::from(self.steps);
            let cuts = [3, 5, 7].iter().filter(|&&cut| eighths >= cut).count();
            let rate = self.rate * 0.1f64.powi(cuts as i32);
            let correct = BETA.map(|beta| 1.0 - beta.powi(step as i32 + 1));
            for ((pixel, &d), [mean, square]) in images.iter_mut().zip(&descent).zip(&mut moments) {
                let d = f64::from(d);
                let d = if self.signed && d != 0.0 { d.signum() } else { d };
                *mean += (1.0 - BETA[0]) * (d - *mean);
                *square += (1.0 - BETA[1]) * (d * d - *square);
                let scale = (*square / correct[1]).sqrt() + 1e-12;
                let by = rate * *mean / correct[0] / scale;
                *pixel = (f64::from(*pixel) - by).clamp(0.0, 1.0) as f32;
            }
        }
        best
    }
}

/// weight·(mean |difference| of neighbours, rows and columns); its derivative is added to
/// `descent`.
fn add_variation(image: &[f32], cols: usize, weight: f64, descent: &mut [f32]) -> f64 {
    if weight == 0.0 {
        return 0.0;
    }
    let share = (weight / image.len() as f64) as f32;
    let mut sum = 0.0;
    for i in 0..image.len() {
        let right = (i % cols + 1 < cols).then_some(i + 1);
        let below = Some(i + cols).filter(|&below| below < image.len());
        for other in [right, below].into_iter().flatten() {
            let difference = image[other] - image[i];
            sum += f64::from(difference.abs());
            if difference != 0.0 {
                let slope = share * difference.signum();
                descent[other] += slope;
                descent[i] -= slope;
            }
        }
    }
    sum * weight / image.len() as f64
}
