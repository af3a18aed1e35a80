//! Many gradients of one model with one noise, and how well they were inverted.

use super::attacker::{Attacker, Image, Reconstructions};
use super::labels::LabelReader;
use super::quality::Quality;
use super::search::Search;
use super::student::p_below;
use super::trajectory::Snapshot;

/// Gradients of one model with one noise.
pub struct Case {
    /// Rounds done before.
    pub round: u32,
    /// Name of the noise.
    pub noise: String,
    /// Standard deviation of the noise on the gradient of one image.
    pub sigma: f64,
    /// True if the model is the early, the middle or the late one.
    pub is_phase: bool,
    /// Outcome of each gradient.
    pub outcomes: Vec<Reconstructions>,
    /// Quality of the mean image of its class, for each image.
    pub class_means: Vec<Quality>,
}

impl Case {
    /// Attacks the gradient of each group of images at the model of `snapshot`, through a noise of
    /// this name and standard deviation. `number` tells apart what is drawn.
    pub fn attack(
        attacker: &Attacker,
        snapshot: &Snapshot,
        reader: Option<&LabelReader>,
        (noise, sigma): (&str, f64),
        groups: &[&[Image]],
        search: &Search,
        number: u64,
    ) -> Self {
        let parameters = &snapshot.parameters;
        let images = groups.iter().copied().flatten();
        Self {
            round: snapshot.round,
            noise: noise.into(),
            sigma,
            is_phase: true,
            outcomes: attacker.attack_all(parameters, groups, sigma, number, reader, search),
            class_means: images.map(|image| attacker.class_mean(image).1).collect(),
        }
    }

    /// Quality of every image.
    pub fn qualities(&self) -> impl Iterator<Item = &Quality> {
        self.outcomes.iter().flat_map(|outcome| &outcome.qualities)
    }

    /// The mean of a figure over the images.
    pub fn mean(&self, figure: impl Fn(&Quality) -> f64) -> f64 {
        mean(self.qualities().map(figure))
    }

    /// The mean squared error of the mean images of the classes.
    pub fn class_mean_error(&self) -> f64 {
        mean(self.class_means.iter().map(|quality| quality.mse))
    }

    /// Share of labels that were read right.
    pub fn label_share(&self) -> f64 {
        let right: usize = self.outcomes.iter().map(|outcome| outcome.labels).sum();
        right as f64 / self.class_means.len().max(1) as f64
    }

    /// The p-value of the paired t-test, one-sided, that reconstructions have a lower squared error
    /// than the mean images of the classes.
    pub fn p_better(&self) -> f64 {
        let errors: Vec<f64> = self.qualities().map(|quality| quality.mse).collect();
        let means: Vec<f64> = self.class_means.iter().map(|quality| quality.mse).collect();
        p_below(&errors, &means)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / f64::max(count, 1.0)
}

/// All that was attacked.
#[derive(Default)]
pub struct Cases {
    /// Single images, by model and noise.
    pub all: Vec<Case>,
    /// Single images at the first model without noise, by squared distance.
    pub squared: Option<Case>,
    /// Small batches at the first model, by noise.
    pub batches: Vec<Case>,
}

impl Cases {
    /// For a noise: rounds, and the structural similarities of the images.
    pub fn risks(&self, noise: &str) -> Vec<(u32, Vec<f64>)> {
        let of_noise = self.all.iter().filter(|case| case.noise == noise);
        of_noise
            .map(|case| (case.round, case.qualities().map(|quality| quality.ssim).collect()))
            .collect()
    }
}
