//! The releases of one device, by the code that runs.

use std::sync::Arc;

use lapa::config::{BatchSampling, Clip, Learn, Update};
use lapa::data::Split;
use lapa::learn::{Batches, Holding, Learner, LocalUpdate};
use lapa::model::{Layer, Network, Shape, Worker};
use lapa::privatize::{Granted, PrivateUpdate, PrivatizeError};
use lapa::seed::{Purpose, stream};
use lapa::transmit::{Link, error_free};
use lapa_privacy::mechanism::{Grid, add_gaussian};
use lapa_privacy::{Adjacency, Event, Release};

use super::Mechanism;
use crate::AuditError;

/// How a device learns and what it releases, as declared.
#[derive(Clone)]
pub struct Device {
    /// `[learn]`
    pub learn: Learn,
    /// How it draws its batches.
    pub batches: Batches,
    /// The grid of discrete noise.
    pub grid: Option<Grid>,
    /// Its releases on record, in the order of the rounds.
    pub releases: Vec<Release>,
}

/// A pair of neighboring inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbors {
    /// A record whose gradient is as long as the clip lets it be, or longer; without it, nothing or
    /// (if records are replaced) one with the opposite gradient.
    Longest,
    /// A record whose gradient is not a number; without it, nothing or a record of zero gradient.
    NotFinite,
}

/// The releases of a device with few records and a network of six parameters.
///
/// The network is x → w·x + c → (v₀h + b₀, v₁h + b₁). Where it has saturated, a record of its label
/// has a gradient of zero, exactly: so are all records but one. That one has h = 0 and so the
/// gradient ∓v in c, for the labels 0 and 1. Noise is spherical and other records are fixed under
/// any adjacency, so neither the many parameters nor the many records of the real device would
/// make the two inputs easier to tell apart.
pub struct DeviceReleases {
    device: Device,
    granted: Vec<Granted>,
    network: Arc<Network>,
    parameters: Vec<f32>,
    data: Split,
    /// The device's samples on the input without the record, and with it.
    inputs: [Vec<u32>; 2],
    seed: u64,
}

/// Samples of the little data set: the record, what is in its place, and all others.
const RECORD: u32 = 0;
const OTHER_RECORD: u32 = 1;
const REST: u32 = 2;

impl DeviceReleases {
    /// The releases of `device` on two neighboring inputs, drawn from `seed`.
    pub fn new(device: Device, neighbors: Neighbors, seed: u64) -> Result<Self, AuditError> {
        let layers = [Layer::Linear { outputs: 1 }, Layer::Linear { outputs: 2 }];
        // Unwrap safety: these layers fit one another.
        let network = Network::new(Shape::new(1, 1, 1), &layers).expect("two linear layers");
        let clip_norm = device.learn.clip_norm.unwrap_or(1.0);
        let records = records(&device);
        let slope = (10.0 * clip_norm * batch(&device, records)).max(10.0) as f32;
        // w, c, v₀, v₁, b₀, b₁
        let (parameters, images) = match neighbors {
            Neighbors::Longest => (vec![1e4, 0.0, slope, -slope, 0.0, 0.0], [0, 0, 255]),
            // 10³⁸ times a slope is no number any more; 1 times it saturates.
            Neighbors::NotFinite => (vec![1e38, 100.0, 100.0, -100.0, 0.0, 0.0], [255, 0, 0]),
        };
        let data =
            Split { images: images.to_vec().into(), labels: vec![0, 1, 0], rows: 1, cols: 1 };
        let adjacency = device.releases.first().map(|release| release.adjacency);
        let place = match (adjacency, neighbors) {
            (Some(Adjacency::ReplaceOne), Neighbors::Longest) => Some(OTHER_RECORD),
            (Some(Adjacency::ReplaceOne), Neighbors::NotFinite) => Some(REST),
            _ => None,
        };
        let rest = vec![REST; records as usize - 1];
        let inputs = [place, Some(RECORD)]
            .map(|first| first.into_iter().chain(rest.iter().copied()).collect::<Vec<u32>>());
        let granted = device.releases.iter().map(granted).collect();
        let mut device = device;
        if device.learn.clip == Clip::Device {
            device.batches.public_samples = records;
        }
        Ok(Self { device, granted, network: network.into(), parameters, data, inputs, seed })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Records that the device has on the input with the record.
    pub fn records(&self) -> usize {
        self.inputs[1].len()
    }

    /// Coordinates of a release.
    pub fn coordinates(&self) -> usize {
        self.parameters.len()
    }

    /// The chance that the record is in a round's batch.
    pub fn inclusion(&self) -> f64 {
        let Device { learn, batches, .. } = &self.device;
        match (learn.update, batches.sampling) {
            (Update::Epoch, _) | (_, BatchSampling::Full) => 1.0,
            (_, BatchSampling::Poisson) => learn.batch_fraction,
            (_, BatchSampling::Fixed) => {
                let records = self.inputs[1].len() as f64;
                (batch(&self.device, self.inputs[1].len() as u32) / records).min(1.0)
            }
        }
    }

    /// What a device uploads, before noise, if its batch holds the record (or what is in its
    /// place), all others being of zero gradient.
    pub fn upload(&self, with: bool) -> Result<Vec<f64>, AuditError> {
        let Device { learn, batches, grid, .. } = &self.device;
        let Some(&first) = self.inputs[usize::from(with)].first().filter(|&&first| first != REST)
        else {
            return Ok(vec![0.0; self.parameters.len()]);
        };
        let alone = Batches { sampling: BatchSampling::Full, ..*batches };
        let holding = Holding { data: &self.data, samples: &[first], batches: alone, grid: *grid };
        let mut update = LocalUpdate::default();
        let mut rng = stream(self.seed, Purpose::Audit, 2, 0);
        Learner::new(Worker::new(self.network.clone()))
            .local_update(learn, holding, &self.parameters, &mut rng, &mut update)
            .map_err(|_| AuditError::NotFinite)?;
        if learn.clip == Clip::Sample && learn.update == Update::Gradient {
            let denominator =
                batches.sampling.denominator(learn.batch_fraction, batches.public_samples);
            // On a grid it is the sum over the one sample.
            let divided = if grid.is_some() { 1.0 } else { f64::from(batches.public_samples) };
            let scale = divided / denominator;
            update.gradient.iter_mut().for_each(|g| *g *= scale);
        }
        Ok(update.gradient)
    }
}

impl Mechanism for DeviceReleases {
    fn releases(&self, with: bool, draw: u64) -> Result<Vec<f32>, AuditError> {
        let Device { learn, batches, grid, .. } = &self.device;
        let holding = Holding {
            data: &self.data,
            samples: &self.inputs[usize::from(with)],
            batches: *batches,
            grid: *grid,
        };
        let mut rng = stream(self.seed, Purpose::Audit, u64::from(with), draw);
        let mut learner = Learner::new(Worker::new(self.network.clone()));
        let mut update = LocalUpdate::default();
        let mut released = Vec::with_capacity(self.granted.len() * self.parameters.len());
        for granted in &self.granted {
            learner
                .local_update(learn, holding, &self.parameters, &mut rng, &mut update)
                .map_err(|_| AuditError::NotFinite)?;
            let private =
                PrivateUpdate::new(&update, granted, grid.as_ref(), &mut rng, Vec::new())?;
            let first = released.len();
            released.extend_from_slice(error_free(private).gradient());
            // A receiver no better than declared: it has the noise that is counted, and no more.
            if let Event::Release(Release { kappa, sigma_channel, .. }) = granted.event {
                let counted = kappa.sqrt() * sigma_channel;
                add_gaussian(&mut released[first..], counted, &mut rng)
                    .map_err(PrivatizeError::from)?;
            }
        }
        Ok(released)
    }
}

/// Records that the device needs to have: those of zero gradient matter only where batches have a
/// fixed size, or a mean is clipped as a whole.
fn records(device: &Device) -> u32 {
    let Device { learn, batches, .. } = device;
    match (learn.clip, learn.update, batches.sampling) {
        // A batch of one record, as often as the real batch has the record.
        (Clip::Device | Clip::None, ..) | (_, Update::Epoch, _) => {
            (1.0 / learn.batch_fraction).ceil().max(2.0) as u32
        }
        (Clip::Sample, _, BatchSampling::Fixed) => batches.public_samples.max(1),
        (Clip::Sample, ..) => 1,
    }
}

/// Records in a batch of a device of `records`, at least.
fn batch(device: &Device, records: u32) -> f64 {
    (device.learn.batch_fraction * f64::from(records)).round().max(1.0)
}

fn granted(release: &Release) -> Granted {
    Granted {
        device: 0,
        link: Link::ideal(0),
        scale: 1.0,
        sigma_channel: release.sigma_channel,
        share: f64::NAN,
        sigma_required: release.sigma(),
        event: Event::Release(release.clone()),
        epsilon: f64::NAN,
        angle: None,
    }
}
