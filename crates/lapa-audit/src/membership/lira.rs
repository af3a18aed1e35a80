//! The likelihood-ratio attack (Carlini et al., "Membership Inference Attacks From First
//! Principles", 2022), online.

use std::f64::consts::PI;

/// From as many shadow models on each side on, a record has variances of its own.
const OWN_VARIANCE: usize = 24;
/// Variances are at least this: below it logits differ by rounding only.
const LEAST_VARIANCE: f64 = 1e-8;

/// φ = ln(p/(1 − p)) of the probability p that a model gives the true label, in a form that does
/// not round p to 1: z_y − ln Σ_{j≠y} e^{z_j}. The loss is ln(1 + e^{−φ}).
pub(super) fn scaled_confidence(logits: &[f32], label: usize) -> f64 {
    let others = || logits.iter().enumerate().filter(|(class, _)| *class != label);
    let largest = others().map(|(_, &z)| f64::from(z)).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = others().map(|(_, &z)| (f64::from(z) - largest).exp()).sum();
    f64::from(logits[label]) - (largest + sum.ln())
}

/// Mean and variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gaussian {
    pub mean: f64,
    pub variance: f64,
}

impl Gaussian {
    /// ln of the density.
    pub fn ln_density(&self, x: f64) -> f64 {
        -0.5 * ((2.0 * PI * self.variance).ln() + (x - self.mean).powi(2) / self.variance)
    }
}

/// Distributions of one record's φ over the shadow models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reference {
    /// φ of models that were trained on it.
    pub member: Gaussian,
    /// φ of those that were not.
    pub other: Gaussian,
}

impl Reference {
    /// Λ = ln N(φ; μ_in, σ_in²) − ln N(φ; μ_out, σ_out²).
    pub fn ln_ratio(&self, confidence: f64) -> f64 {
        self.member.ln_density(confidence) - self.other.ln_density(confidence)
    }
}

/// The φ of each record under each shadow model, and who was trained on it.
pub(super) struct Shadows {
    /// By model, then record.
    pub confidences: Vec<Vec<f64>>,
    /// The same.
    pub members: Vec<Vec<bool>>,
}

/// Sum, squares around the mean, and number of values.
#[derive(Clone, Copy, Default)]
struct Tally {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Tally {
    /// Welford's update.
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let before = x - self.mean;
        self.mean += before / self.count;
        self.squares += before * (x - self.mean);
    }
}

impl Shadows {
    /// References of each record by the shadows but `left_out`; `None` unless some shadows were
    /// trained on it and some were not.
    ///
    /// Variances are a record's own where there are 24 models on each side, and otherwise those of
    /// all records together around their own means: few values tell a mean, but no variance.
    pub fn references(&self, left_out: Option<usize>) -> Vec<Option<Reference>> {
        let records = self.confidences.first().map_or(0, Vec::len);
        let mut tallies = vec![[Tally::default(); 2]; records];
        let models = (0..self.confidences.len()).filter(|&model| Some(model) != left_out);
        for model in models {
            let values = self.confidences[model].iter().zip(&self.members[model]);
            for (tally, (&confidence, &member)) in tallies.iter_mut().zip(values) {
                tally[usize::from(member)].add(confidence);
            }
        }
        let pooled = [0, 1].map(|side| {
            let squares: f64 = tallies.iter().map(|tally| tally[side].squares).sum();
            let freedom: f64 = tallies.iter().map(|tally| (tally[side].count - 1.0).max(0.0)).sum();
            squares / freedom.max(1.0)
        });
        let enough = |tally: &Tally| tally.count >= OWN_VARIANCE as f64;
        let reference = |tally: &[Tally; 2]| {
            let own = tally.iter().all(enough);
            let gaussian = |side: usize| Gaussian {
                mean: tally[side].mean,
                variance: if own {
                    tally[side].squares / (tally[side].count - 1.0)
                } else {
                    pooled[side]
                }
                .max(LEAST_VARIANCE),
            };
            let known = tally.iter().all(|side| side.count > 0.0);
            known.then(|| Reference { member: gaussian(1), other: gaussian(0) })
        };
        tallies.iter().map(reference).collect()
    }

    /// Λ of each record under a model that has these confidences; 0 where nothing is known.
    pub fn scores(&self, left_out: Option<usize>, confidences: &[f64]) -> Vec<f64> {
        let references = self.references(left_out);
        let scores = references.iter().zip(confidences);
        scores.map(|(known, &c)| known.map_or(0.0, |known| known.ln_ratio(c))).collect()
    }
}
