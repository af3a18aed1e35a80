//! Feature maps: fixed, public functions of one record, computed before a device holds it.
//!
//! Idea: F. Tramèr, D. Boneh, "Differentially Private Learning Needs Better Features (or Much More
//! Data)", ICLR 2021. A map of each record by itself takes neighboring sets to neighboring sets, so it
//! costs no privacy.

mod cache;
mod filters;
mod hog;
mod normalize;
mod scattering;
#[cfg(test)]
mod tests;

use std::path::Path;

use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Data, DataError, Dataset, FetchEvent, Result, Split};
use crate::shape::Shape;

/// Most bytes of the features of one split.
const MOST_BYTES: u64 = 8 << 30;

/// Records between two events.
const BLOCK: usize = 500;

/// Training records from which on features are cached: fewer are computed as soon as they are read.
const CACHED: usize = 2_000;

/// Features that a model sees in place of the values of a record.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// The values themselves.
    #[default]
    None,
    /// Scattering coefficients of the image (2 scales, 8 angles, order 2): 81 × 7 × 7 of one of 28×28.
    Scattering,
    /// Histograms of oriented gradients (cells of 4×4 pixels, 9 angles): 36 × 6 × 6 of one of 28×28.
    Hog,
}

/// Normalization of the features of a record, by these features alone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureNorm {
    /// Group norm (27 groups of channels for scattering, 4 for hog), then a Euclidean norm of 1.
    #[default]
    GroupUnit,
    /// Group norm alone.
    Group,
    /// A Euclidean norm of 1 alone.
    Unit,
    /// None.
    None,
}

impl FeatureNorm {
    fn has_group(self) -> bool {
        matches!(self, Self::GroupUnit | Self::Group)
    }

    /// True if the features of a record have a Euclidean norm of 1.
    pub fn has_unit(self) -> bool {
        matches!(self, Self::GroupUnit | Self::Unit)
    }

    /// True for the default.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Features {
    /// True if there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// The word in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Scattering => "scattering",
            Self::Hog => "hog",
        }
    }
}

/// Feature map: features of one record and their normalization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeatureMap {
    /// The features.
    pub features: Features,
    /// Their normalization.
    pub norm: FeatureNorm,
}

/// Features of images of one shape, before normalization.
trait Extract: Sync {
    /// Working memory of a thread.
    type Scratch;

    /// Shape of the features.
    fn output(&self) -> Shape;

    /// Groups of channels that group norm normalizes, each by itself.
    const GROUPS: usize;

    fn scratch(&self) -> Self::Scratch;

    /// Features of `image`, whose channels stand one after the other.
    fn extract(&self, image: &[f32], scratch: &mut Self::Scratch, features: &mut [f32]);
}

impl FeatureMap {
    /// Shape of the features of samples of a shape.
    pub fn shape(self, samples: Shape) -> Result<Shape> {
        match self.features {
            Features::None => Ok(samples),
            Features::Scattering => Ok(scattering::Scattering::new(samples)?.output()),
            Features::Hog => Ok(hog::Hog::new(samples)?.output()),
        }
    }

    /// Features of each sample.
    pub fn of(self, split: &Split, on_event: &mut dyn FnMut(FetchEvent)) -> Result<Split> {
        match self.features {
            Features::None => Ok(split.clone()),
            Features::Scattering => {
                self.compute(&scattering::Scattering::new(split.shape)?, split, on_event)
            }
            Features::Hog => self.compute(&hog::Hog::new(split.shape)?, split, on_event),
        }
    }

    /// As [`FeatureMap::of`], from the folder of cached features where they are there and whole.
    fn of_cached(
        self,
        split: &Split,
        folder: Option<&Path>,
        on_event: &mut dyn FnMut(FetchEvent),
    ) -> Result<Split> {
        let Some(folder) = folder else { return self.of(split, on_event) };
        let entry = cache::Entry::new(self, split, folder);
        match entry.read(split) {
            Ok(Some(features)) => return Ok(features),
            Ok(None) => {}
            Err(refused) => on_event(entry.rejected(&refused)),
        }
        let features = self.of(split, on_event)?;
        if let Err(refused) = entry.write(&features) {
            on_event(entry.rejected(&refused));
        }
        Ok(features)
    }

    fn compute<E: Extract>(
        self,
        extract: &E,
        split: &Split,
        on_event: &mut dyn FnMut(FetchEvent),
    ) -> Result<Split> {
        let (shape, count) = (extract.output(), split.len());
        let bytes = (shape.len() as u64).saturating_mul(2).saturating_mul(count as u64);
        if bytes > MOST_BYTES {
            return Err(self.refusal(format!(
                "{count} samples of {shape} features need {bytes} bytes; {MOST_BYTES} are allowed"
            )));
        }
        let len = shape.len();
        let mut halves = vec![f16::ZERO; count * len];
        for (block, halves) in halves.chunks_mut(BLOCK * len).enumerate() {
            let first = block * BLOCK;
            let room = || (vec![0.0; split.shape.len()], extract.scratch(), vec![0.0; len]);
            halves.par_chunks_mut(len).enumerate().for_each_init(room, |room, (i, halves)| {
                let (image, scratch, features) = room;
                split.copy_input(first + i, image);
                extract.extract(image, scratch, features);
                if self.norm.has_group() {
                    normalize::groups(features, E::GROUPS);
                }
                if self.norm.has_unit() {
                    normalize::unit(features);
                }
                normalize::bound(features);
                halves.convert_from_f32_slice(features);
            });
            let (features, done) = (self.features.word(), first + halves.len() / len);
            on_event(FetchEvent::Features { features, done, of: count });
        }
        Ok(Split { values: halves.into(), labels: split.labels.clone(), shape })
    }

    fn refusal(self, problem: String) -> DataError {
        refusal(self.features, problem)
    }
}

/// The error of features that cannot be had.
fn refusal(features: Features, problem: String) -> DataError {
    DataError::Features { features: features.word(), problem }
}

/// Fails where samples are no images of at least `least` rows and columns.
fn check_image(features: Features, shape: Shape, least: usize) -> Result<()> {
    if shape.rows < least || shape.cols < least {
        let found = format!("samples of {}", shape.of_image());
        let expected = format!("expected images of {least}×{least} or more");
        return Err(refusal(features, format!("{found}; {expected}")));
    }
    Ok(())
}

/// Data of an experiment: a data set, and the feature map before the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inputs {
    /// The data set.
    pub data: Data,
    /// The feature map.
    pub features: FeatureMap,
}

impl From<Data> for Inputs {
    fn from(data: Data) -> Self {
        Self { data, features: FeatureMap::default() }
    }
}

impl Inputs {
    /// The data set, ready for training; see [`Data::load`].
    pub fn load(&self, on_event: &mut dyn FnMut(FetchEvent)) -> Result<Dataset> {
        self.data.load(on_event)?.with_features(self.features, on_event)
    }
}

impl Dataset {
    /// The data set with the features of every record in its place. Those of 2,000 training records or
    /// more are computed once: the folder `features` in the cache keeps them.
    pub fn with_features(
        self,
        map: FeatureMap,
        on_event: &mut dyn FnMut(FetchEvent),
    ) -> Result<Self> {
        let folder = super::cache_dir().ok().filter(|_| self.train.len() >= CACHED);
        let folder = folder.map(|cache| cache.join("features"));
        self.with_features_in(map, folder.as_deref(), on_event)
    }

    fn with_features_in(
        self,
        map: FeatureMap,
        folder: Option<&Path>,
        on_event: &mut dyn FnMut(FetchEvent),
    ) -> Result<Self> {
        if self.features == map {
            return Ok(self);
        }
        if !self.features.features.is_none() {
            let has = self.features.features.word();
            return Err(map.refusal(format!("the data set has features already ({has})")));
        }
        let train = map.of_cached(&self.train, folder, on_event)?;
        let test = map.of_cached(&self.test, folder, on_event)?;
        Ok(Self { train, test, features: map, ..self })
    }
}
