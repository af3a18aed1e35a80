//! Looking for images whose gradient is the one that was seen.

use lapa::model::Shape;
use lapa::seed::Stream;
use rand::RngExt;

use super::matching::{Distance, Matcher, Observation};
use crate::scale::is_image;

/// Weights of the total variation that starts begin with, in turn. A large one first finds the
/// shape and then the details; which of them gets furthest depends on the image.
const VARIATION: [f64; 3] = [0.3, 1.0, 0.1];
/// The weight that all of them end with.
const LAST_VARIATION: f64 = 0.01;
/// Length of the first steps.
const RATE: f64 = 0.1;
/// Starts are random; those of images are dark, as most of a digit's image is.
const BRIGHTEST_START: f32 = 0.1;

/// Search for images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// Distance to minimize, together with the total variation.
    pub distance: Distance,
    /// Steps of Adam from each start.
    pub steps: u32,
    /// Starts; the images with the least objective are kept.
    pub starts: u32,
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
    /// The best images of all starts, each of this shape.
    pub fn run(
        &self,
        matcher: &mut Matcher,
        seen: &Observation<'_>,
        shape: Shape,
        rng: &mut Stream,
    ) -> Found {
        let pixels = matcher.pixels() * seen.labels.len();
        let brightest = if is_image(shape) { BRIGHTEST_START } else { 1.0 };
        let mut best: Option<Found> = None;
        for variation in VARIATION.into_iter().cycle().take(self.starts.max(1) as usize) {
            let start = (0..pixels).map(|_| brightest * rng.random::<f32>()).collect();
            let found = self.descend(matcher, seen, shape, start, variation);
            if best.as_ref().is_none_or(|best| found.objective < best.objective) {
                best = Some(found);
            }
        }
        // Unwrap safety: there is at least one start.
        best.unwrap()
    }

    /// Adam (Kingma and Ba 2015) on the signs of the derivative, kept in [0, 1]; the steps become a
    /// tenth after 3/8, 5/8 and 7/8 of them, as Geiping et al. do it.
    ///
    /// Differs from them: the weight of the total variation falls exponentially, where they keep it.
    fn descend(
        &self,
        matcher: &mut Matcher,
        seen: &Observation<'_>,
        shape: Shape,
        start: Vec<f32>,
        variation: f64,
    ) -> Found {
        const BETA: [f64; 2] = [0.9, 0.999];
        let (len, pixels) = (start.len(), matcher.pixels());
        let mut images = start;
        let mut descent = vec![0.0; len];
        let mut moments = vec![[0.0f64; 2]; len];
        let mut best = Found { images: images.clone(), objective: f64::INFINITY };
        for step in 0..self.steps {
            let part = f64::from(step) / f64::from(self.steps);
            let weight = variation * (LAST_VARIATION / variation).powf(part);
            let mut objective = matcher.distance(seen, self.distance, &images, &mut descent);
            for (image, descent) in
                images.chunks_exact(pixels).zip(descent.chunks_exact_mut(pixels))
            {
                objective += add_variation(image, shape, weight, descent);
            }
            if objective < best.objective {
                best.objective = objective;
                best.images.copy_from_slice(&images);
            }
            let cuts = [0.375, 0.625, 0.875].iter().filter(|&&cut| part >= cut).count();
            let rate = RATE * 0.1f64.powi(cuts as i32);
            let correct = BETA.map(|beta| 1.0 - beta.powi(step as i32 + 1));
            for ((pixel, &d), [mean, square]) in images.iter_mut().zip(&descent).zip(&mut moments) {
                let d = if d.is_finite() && d != 0.0 { f64::from(d.signum()) } else { 0.0 };
                *mean += (1.0 - BETA[0]) * (d - *mean);
                *square += (1.0 - BETA[1]) * (d * d - *square);
                let by = rate * *mean / correct[0] / ((*square / correct[1]).sqrt() + 1e-8);
                *pixel = (f64::from(*pixel) - by).clamp(0.0, 1.0) as f32;
            }
        }
        best
    }
}

/// weight·(Σ |difference| of neighbors in rows and columns of a channel)/pixels; its derivative is
/// added to `descent`. Vectors have no neighbors.
fn add_variation(image: &[f32], shape: Shape, weight: f64, descent: &mut [f32]) -> f64 {
    if !is_image(shape) {
        return 0.0;
    }
    let (cols, area) = (shape.cols, shape.area());
    let share = (weight / image.len() as f64) as f32;
    let mut sum = 0.0;
    for i in 0..image.len() {
        let right = (i % cols + 1 < cols).then_some(i + 1);
        let below = (i % area + cols < area).then_some(i + cols);
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
