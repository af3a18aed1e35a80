//! The attacker, and its attack on one gradient.

use std::sync::Arc;

use lapa::config::Clip;
use lapa::data::Split;
use lapa::error::FederationError;
use lapa::model::{Layer, Network, Shape, layers};
use lapa::seed::{Purpose, stream};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::first_layer;
use super::labels::{LabelReader, hits};
use super::matching::{Matcher, Observation};
use super::quality::{Quality, mean_squared_error};
use super::search::Search;
use crate::{AuditError, Scale, Subject};

/// Images of the attacker's own that labels are read with.
const OWN: usize = 200;

/// An image and its label.
#[derive(Clone, Debug)]
pub struct Image {
    /// In [0, 1], as a scale has it.
    pub pixels: Vec<f32>,
    /// Its class.
    pub label: u8,
}

/// Outcome of the attack on a gradient.
#[derive(Clone, Debug)]
pub struct Reconstructions {
    /// A reconstruction of each image.
    pub guesses: Vec<Vec<f32>>,
    /// Qualities of the reconstructions.
    pub qualities: Vec<Quality>,
    /// Labels that were read right.
    pub labels: usize,
}

/// Knowledge of the attacker, and images to attack.
pub struct Attacker {
    /// The network as a function of one image.
    pub network: Arc<Network>,
    /// True if its batch norm was replaced, so that only single images can be attacked.
    pub single_images_only: bool,
    /// Shape of an image.
    pub shape: Shape,
    /// Units of its values, unless they are bytes.
    pub(super) scale: Option<Arc<Scale>>,
    /// Images of the devices.
    pub images: Vec<Image>,
    /// The mean image of each class in the attacker's own data, the test set.
    class_means: Vec<Vec<f32>>,
    own: Vec<Image>,
    clip_norm: Option<f32>,
    seed: u64,
}

impl Attacker {
    /// Takes `images` images from the devices' data, of each class in turn.
    pub fn new(subject: &Subject, images: usize, seed: u64) -> Result<Self, AuditError> {
        let (experiment, data) = (&subject.experiment, &subject.data);
        let shape = data.train.shape;
        let layers = layers(&experiment.model, data.classes);
        let single_images_only = Layer::any(&layers, |layer| *layer == Layer::BatchNorm);
        let network = Network::new(shape, &for_one_image(layers, shape.channels).0)
            .map_err(|source| FederationError::Model { shape, source: source.into() })?;
        let learn = &experiment.learn;
        let scale = Scale::of(&data.test);
        let of_each_class =
            |split, count| of_each_class(split, data.classes, count, scale.as_ref());
        let clip_norm = learn.clip_norm.filter(|_| learn.clip == Clip::Sample);
        Ok(Self {
            single_images_only,
            network: Arc::new(network),
            shape,
            images: of_each_class(&data.train, images),
            class_means: class_means(&data.test, data.classes, scale.as_ref()),
            own: of_each_class(&data.test, OWN),
            scale: scale.map(Arc::new),
            clip_norm: clip_norm.map(|norm| norm as f32),
            seed,
        })
    }

    /// Mean image of an image's class, the best guess without a gradient, and its quality.
    pub fn class_mean(&self, image: &Image) -> (&[f32], Quality) {
        let mean = &self.class_means[usize::from(image.label)];
        (mean, self.quality(mean, image))
    }

    /// Reads labels at a model.
    pub fn label_reader(&self, parameters: &[f32]) -> Option<LabelReader> {
        let gradients: Vec<(Vec<f32>, u8)> = self
            .own
            .par_iter()
            .map_init(
                || self.matcher(),
                |matcher, image| {
                    let seen = self.seen(parameters, &[], std::slice::from_ref(&image.label));
                    (matcher.gradient(&seen, &image.pixels).to_vec(), image.label)
                },
            )
            .collect();
        let own = gradients.iter().map(|(gradient, label)| (gradient.as_slice(), *label));
        LabelReader::new(&self.network, own)
    }

    /// Attacks the gradient of each group of images, side by side: labels first, then the images,
    /// from the first layer where it gives them away, else by search. `sigma` is the standard
    /// deviation of the noise on the gradient of one image; `number` tells apart what is drawn.
    pub fn attack_all(
        &self,
        parameters: &[f32],
        groups: &[&[Image]],
        sigma: f64,
        number: u64,
        reader: Option<&LabelReader>,
        search: &Search,
    ) -> Vec<Reconstructions> {
        let attack = |matcher: &mut Matcher, (group, images): (usize, &&[Image])| {
            let n = images.len();
            let truth: Vec<u8> = images.iter().map(|image| image.label).collect();
            let pixels: Vec<f32> = images.iter().flat_map(|image| image.pixels.clone()).collect();
            let mut rng = stream(self.seed, Purpose::Inversion, number, group as u64);
            let seen = self.seen(parameters, &[], &truth);
            let mut gradient = matcher.gradient(&seen, &pixels).to_vec();
            if sigma > 0.0 {
                let mut noise = || -> f64 { StandardNormal.sample(&mut rng) };
                let sigma = sigma / n as f64;
                gradient.iter_mut().for_each(|g| *g = (f64::from(*g) + sigma * noise()) as f32);
            }
            let labels = reader.map_or_else(|| truth.clone(), |reader| reader.batch(&gradient, n));
            let exact = (n == 1).then(|| first_layer::image(&self.network, &gradient)).flatten();
            let found = exact.map(|image| self.in_range(image)).unwrap_or_else(|| {
                let seen = self.seen(parameters, &gradient, &labels);
                search.run(matcher, &seen, self.shape, &mut rng).images
            });
            let guesses = paired(found.chunks_exact(matcher.pixels()), images);
            let pairs = guesses.iter().zip(*images);
            let quality = |(guess, image): (&Vec<f32>, &Image)| self.quality(guess, image);
            Reconstructions {
                qualities: pairs.map(quality).collect(),
                guesses,
                labels: hits(&labels, &truth),
            }
        };
        groups.par_iter().enumerate().map_init(|| self.matcher(), attack).collect()
    }

    fn matcher(&self) -> Matcher {
        Matcher::new(self.network.clone(), self.scale.clone())
    }

    /// An image in [0, 1], where the attacker's own are.
    fn in_range(&self, input: Vec<f32>) -> Vec<f32> {
        let mut units = in_units(input, self.scale.as_deref());
        units.iter_mut().for_each(|unit| *unit = unit.clamp(0.0, 1.0));
        units
    }

    fn quality(&self, guess: &[f32], image: &Image) -> Quality {
        Quality::of(guess, &image.pixels, self.shape)
    }

    fn seen<'a>(
        &self,
        parameters: &'a [f32],
        gradient: &'a [f32],
        labels: &'a [u8],
    ) -> Observation<'a> {
        Observation { parameters, gradient, labels, clip_norm: self.clip_norm }
    }
}

/// Batch norm over one image is group norm with a group for each channel, with the same parameters.
/// `width` are the channels of the input; the second value those of the output.
fn for_one_image(mut layers: Vec<Layer>, mut width: usize) -> (Vec<Layer>, usize) {
    for layer in &mut layers {
        match layer {
            Layer::Conv { channels, .. } => width = *channels,
            Layer::Linear { outputs } => width = *outputs,
            Layer::BatchNorm => *layer = Layer::GroupNorm { groups: width },
            Layer::Residual { layers } => {
                (*layers, width) = for_one_image(std::mem::take(layers), width);
            }
            _ => {}
        }
    }
    (layers, width)
}

/// The first `count` images, of each class in turn as long as there are any.
fn of_each_class(split: &Split, classes: usize, count: usize, scale: Option<&Scale>) -> Vec<Image> {
    let mut of_class = vec![Vec::new(); classes];
    for (i, &label) in split.labels.iter().enumerate() {
        of_class[usize::from(label)].push(i);
    }
    let most = of_class.iter().map(Vec::len).max().unwrap_or(0);
    let in_turn = (0..most).flat_map(|k| of_class.iter().filter_map(move |of| of.get(k)));
    let image = |&i: &usize| {
        let pixels = in_units(split.input(i), scale);
        Image { pixels, label: split.labels[i] }
    };
    in_turn.take(count).map(image).collect()
}

fn in_units(input: Vec<f32>, scale: Option<&Scale>) -> Vec<f32> {
    match scale {
        Some(scale) => scale.units(input),
        None => input,
    }
}

fn class_means(split: &Split, classes: usize, scale: Option<&Scale>) -> Vec<Vec<f32>> {
    let mut sums = vec![vec![0.0f64; split.shape.len()]; classes];
    let mut counts = vec![0.0f64; classes];
    for (i, &label) in split.labels.iter().enumerate() {
        let sums = &mut sums[usize::from(label)];
        sums.iter_mut()
            .zip(in_units(split.input(i), scale))
            .for_each(|(sum, x)| *sum += f64::from(x));
        counts[usize::from(label)] += 1.0;
    }
    let mean = |(sums, count): (Vec<f64>, f64)| {
        sums.iter().map(|sum| (sum / count.max(1.0)) as f32).collect()
    };
    sums.into_iter().zip(counts).map(mean).collect()
}

/// The guesses in the order of the images: each image has the closest that is left.
fn paired<'a>(guesses: impl Iterator<Item = &'a [f32]>, images: &[Image]) -> Vec<Vec<f32>> {
    let mut left: Vec<&[f32]> = guesses.collect();
    let closest = |image: &Image| {
        let error = |guess: &[f32]| mean_squared_error(guess, &image.pixels);
        let best = (0..left.len()).min_by(|&a, &b| error(left[a]).total_cmp(&error(left[b])));
        best.map(|best| left.swap_remove(best).to_vec())
    };
    images.iter().filter_map(closest).collect()
}
