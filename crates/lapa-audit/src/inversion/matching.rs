//! Distance between the gradient of a guessed image and the observed one, and its derivative in the
//! guess.

use std::sync::Arc;

use lapa::model::{Function, Network};

use crate::Scale;

/// Distance of two gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// ‖g − g*‖²/‖g*‖²: Zhu et al. (2019), "Deep leakage from gradients", without a unit.
    Squared,
    /// 1 − cos(g, g*): Geiping et al. (2020), "Inverting gradients".
    Cosine,
}

/// Observation of the attacker: all that it knows but the images.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    /// The model that the gradient was taken at.
    pub parameters: &'a [f32],
    /// The mean gradient of the images, as it was received.
    pub gradient: &'a [f32],
    /// Their labels: known or recovered.
    pub labels: &'a [u8],
    /// The norm that each image's gradient was clipped to.
    pub clip_norm: Option<f32>,
}

/// One thread's memory for comparing gradients.
pub struct Matcher {
    function: Function,
    /// Units of the images; `None` where they are as the network sees them.
    scale: Option<Arc<Scale>>,
    /// An image as the network sees it.
    input: Vec<f32>,
    /// Gradient of each image.
    gradients: Vec<Vec<f32>>,
    norms: Vec<f64>,
    mean: Vec<f32>,
    /// The derivative of the distance in the mean gradient.
    slope: Vec<f32>,
    /// The same in the gradient of one image, and parameters a step along it.
    along: Vec<f32>,
    stepped: Vec<f32>,
}

/// Length of the step of the finite differences in the parameters, in units of their norm: the
/// derivative is then right to about three digits. Shorter steps drown in the rounding of single
/// precision, longer ones cross more kinks of relu and max pooling.
const STEP: f64 = 2e-3;

impl Matcher {
    /// For the gradients of a network by images in units of a scale.
    ///
    /// # Panics
    /// If it has batch norm.
    pub fn new(network: Arc<Network>, scale: Option<Arc<Scale>>) -> Self {
        let q = network.parameter_count();
        Self {
            function: Function::new(network),
            scale,
            input: Vec::new(),
            gradients: Vec::new(),
            norms: Vec::new(),
            mean: vec![0.0; q],
            slope: vec![0.0; q],
            along: vec![0.0; q],
            stepped: vec![0.0; q],
        }
    }

    /// Values per image.
    pub fn pixels(&self) -> usize {
        self.function.network().inputs()
    }

    /// The mean gradient of images with these labels, each clipped.
    pub fn gradient(&mut self, seen: &Observation<'_>, images: &[f32]) -> &[f32] {
        let (n, pixels) = (seen.labels.len(), self.function.network().inputs());
        let q = self.mean.len();
        self.gradients.resize_with(n, || vec![0.0; q]);
        self.norms.resize(n, 0.0);
        self.mean.fill(0.0);
        for (i, image) in images.chunks_exact(pixels).enumerate() {
            let input = as_input(self.scale.as_deref(), image, &mut self.input);
            let logits = self.function.forward(seen.parameters, input, 1);
            let delta = loss_gradient(logits, seen.labels[i]);
            self.function.gradient(seen.parameters, &delta, &mut self.gradients[i]);
            let norm = dot(&self.gradients[i], &self.gradients[i]).sqrt();
            self.norms[i] = norm;
            let factor = clip_factor(norm, seen.clip_norm) / n as f64;
            for (mean, &g) in self.mean.iter_mut().zip(&self.gradients[i]) {
                *mean += (factor * f64::from(g)) as f32;
            }
        }
        &self.mean
    }

    /// The distance of the images' gradient from the one seen; `descent` becomes its derivative in
    /// the images.
    ///
    /// With v the derivative of the distance in the gradient, it is (∂²L/∂x∂θ)·v, the derivative of
    /// ∇ₓL(θ + h·v) in h at 0: here by central differences.
    pub fn distance(
        &mut self,
        seen: &Observation<'_>,
        distance: Distance,
        images: &[f32],
        descent: &mut [f32],
    ) -> f64 {
        self.gradient(seen, images);
        let value = self.compare(seen, distance);
        let (n, pixels) = (seen.labels.len(), self.function.network().inputs());
        let scale = STEP * dot(seen.parameters, seen.parameters).sqrt();
        for (i, image) in images.chunks_exact(pixels).enumerate() {
            self.through_clip(seen, i);
            let length = dot(&self.along, &self.along).sqrt();
            let descent = &mut descent[i * pixels..][..pixels];
            if length == 0.0 || !length.is_finite() {
                descent.fill(0.0);
                continue;
            }
            let step = scale / length;
            let factor = (1.0 / (2.0 * step * n as f64)) as f32;
            for (sign, first) in [(1.0, true), (-1.0, false)] {
                let by = (sign * step) as f32;
                for ((stepped, &at), &v) in
                    self.stepped.iter_mut().zip(seen.parameters).zip(&self.along)
                {
                    *stepped = at + by * v;
                }
                let input = as_input(self.scale.as_deref(), image, &mut self.input);
                let logits = self.function.forward(&self.stepped, input, 1);
                let delta = loss_gradient(logits, seen.labels[i]);
                let in_image = self.function.input_gradient(&self.stepped, &delta);
                for (d, &g) in descent.iter_mut().zip(in_image) {
                    *d = if first { factor * g } else { *d - factor * g };
                }
            }
            if let Some(scale) = &self.scale {
                descent.iter_mut().zip(&scale.span).for_each(|(d, span)| *d *= span);
            }
        }
        value
    }

    /// The distance, and its derivative in the mean gradient as `slope`.
    fn compare(&mut self, seen: &Observation<'_>, distance: Distance) -> f64 {
        match distance {
            Distance::Squared => {
                let squared = dot(seen.gradient, seen.gradient).max(f64::MIN_POSITIVE);
                let mut sum = 0.0;
                for ((slope, &g), &t) in self.slope.iter_mut().zip(&self.mean).zip(seen.gradient) {
                    let difference = f64::from(g) - f64::from(t);
                    sum += difference * difference;
                    *slope = (2.0 * difference / squared) as f32;
                }
                sum / squared
            }
            Distance::Cosine => cosine(&self.mean, seen.gradient, &mut self.slope),
        }
    }

    /// The derivative of the distance in the gradient of image `i` before it was clipped, as
    /// `along`: that of C·g/‖g‖ has no part along g.
    fn through_clip(&mut self, seen: &Observation<'_>, i: usize) {
        let (g, norm) = (&self.gradients[i], self.norms[i]);
        let factor = clip_factor(norm, seen.clip_norm);
        let lost = if factor < 1.0 { dot(g, &self.slope) / (norm * norm) } else { 0.0 };
        for ((along, &slope), &g) in self.along.iter_mut().zip(&self.slope).zip(g) {
            *along = (factor * (f64::from(slope) - lost * f64::from(g))) as f32;
        }
    }
}

/// An image as the network sees it.
fn as_input<'a>(scale: Option<&Scale>, image: &'a [f32], room: &'a mut Vec<f32>) -> &'a [f32] {
    let Some(scale) = scale else { return image };
    scale.input(image, room);
    room
}

fn clip_factor(norm: f64, clip_norm: Option<f32>) -> f64 {
    clip_norm.map_or(1.0, |most| (f64::from(most) / norm).min(1.0))
}

/// 1 − cos(a, b), and its derivative in a as `slope`; 0 where one of them is 0.
fn cosine(a: &[f32], b: &[f32], slope: &mut [f32]) -> f64 {
    let (aa, bb, ab) = (dot(a, a), dot(b, b), dot(a, b));
    let norms = (aa * bb).sqrt();
    if norms == 0.0 || !norms.is_finite() {
        slope.fill(0.0);
        return 0.0;
    }
    for ((slope, &a), &b) in slope.iter_mut().zip(a).zip(b) {
        *slope = ((ab / aa * f64::from(a) - f64::from(b)) / norms) as f32;
    }
    1.0 - ab / norms
}

/// In double precision, in lanes that the compiler can make vectors of.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 8;
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum += f64::from(a) * f64::from(b);
        }
    }
    let rest: f64 = rest_a.iter().zip(rest_b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    sums.iter().sum::<f64>() + rest
}

/// softmax(logits) − one-hot(label): the gradient of the cross-entropy in the logits.
fn loss_gradient(logits: &[f32], label: u8) -> Vec<f32> {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut delta: Vec<f32> = logits.iter().map(|&z| (z - max).exp()).collect();
    let sum: f32 = delta.iter().sum();
    delta.iter_mut().for_each(|value| *value /= sum);
    delta[usize::from(label)] -= 1.0;
    delta
}
