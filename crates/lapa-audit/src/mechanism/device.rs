//! The releases of one device, by the code that runs.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;

use lapa::budget::PrivacyError;
use lapa::config::{BatchSampling, Clip, Learn, Update};
use lapa::data::Split;
use lapa::device::{AnswerError, Batches, Device as Simulated, Learner, NoiseError, Streams};
use lapa::model::{Layer, Network, Shape, Worker};
use lapa::seed::{Purpose, Stream, stream};
use lapa_privacy::ledger::{DataKey, DeclaredBudget, Ledger, Recorded, Repeat, Request};
use lapa_privacy::sampler::{Grid, add_gaussian};
use lapa_privacy::{Adjacency, Event, Release};
use rand::{Rng, TryRng};

use super::Releases;
use crate::AuditError;

/// Learning and releases of a device, as declared.
#[derive(Clone)]
pub struct Device {
    /// `[learn]`
    pub learn: Learn,
    /// Rule of its batches.
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
    pub(super) device: Device,
    recorded: Vec<Recorded>,
    /// A record of no noise, to see what a device uploads before it.
    bare: Recorded,
    network: Arc<Network>,
    pub(super) parameters: Vec<f32>,
    data: Split,
    /// The device's samples on the input without the record, and with it.
    pub(super) inputs: [Vec<u32>; 2],
    seed: u64,
}

/// Samples of the little data set: the record, what is in its place, and all others.
const RECORD: u32 = 0;
const OTHER_RECORD: u32 = 1;
const REST: u32 = 2;

impl DeviceReleases {
    /// The releases of `device` on two neighboring inputs, drawn from `seed`.
    pub fn new(mut device: Device, neighbors: Neighbors, seed: u64) -> Result<Self, AuditError> {
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
        let data = Split {
            values: images.to_vec().into(),
            labels: vec![0, 1, 0],
            shape: Shape::new(1, 1, 1),
        };
        let adjacency = device.releases.first().map(|release| release.adjacency);
        let place = match (adjacency, neighbors) {
            (Some(Adjacency::ReplaceOne), Neighbors::Longest) => Some(OTHER_RECORD),
            (Some(Adjacency::ReplaceOne), Neighbors::NotFinite) => Some(REST),
            _ => None,
        };
        let rest = vec![REST; records as usize - 1];
        let inputs = [place, Some(RECORD)]
            .map(|first| first.into_iter().chain(rest.iter().copied()).collect::<Vec<u32>>());
        let (recorded, bare) = record(&device.releases)?;
        if device.learn.clip == Clip::Device {
            device.batches.public_samples = records;
        }
        Ok(Self { device, recorded, bare, network: network.into(), parameters, data, inputs, seed })
    }

    /// The chance that the record is in a round's batch.
    pub fn inclusion(&self) -> f64 {
        let Device { learn, batches, .. } = &self.device;
        match (learn.update, batches.sampling) {
            (Update::Epoch, _) | (_, BatchSampling::Full) => 1.0,
            (_, BatchSampling::Poisson) => learn.batch_fraction,
            (_, BatchSampling::Fixed) => {
                let records = self.inputs[1].len() as u32;
                (batch(&self.device, records) / f64::from(records)).min(1.0)
            }
        }
    }

    /// Upload of a device before noise if its batch holds the record, or the one in its place. All
    /// others have a gradient of zero.
    pub fn upload(&self, with: bool) -> Result<Vec<f64>, AuditError> {
        let Device { learn, batches, grid, .. } = &self.device;
        let Some(&first) = self.inputs[usize::from(with)].first().filter(|&&first| first != REST)
        else {
            return Ok(vec![0.0; self.parameters.len()]);
        };
        let alone = Batches { sampling: BatchSampling::Full, ..*batches };
        let device =
            Simulated { samples: vec![first].into(), batches: alone, ..self.simulated(with) };
        let rng = RefCell::new(stream(self.seed, Purpose::Audit, 2, 0));
        let mut learner = Learner::new(Worker::new(self.network.clone()));
        let uploaded = self.answer(&device, &self.bare, &rng, &mut learner)?;
        let mut uploaded: Vec<f64> = uploaded.into_iter().map(f64::from).collect();
        if learn.clip == Clip::Sample && learn.update == Update::Gradient {
            let denominator =
                batches.sampling.denominator(learn.batch_fraction, batches.public_samples);
            // On a grid it is the sum over the one sample.
            let divided = if grid.is_some() { 1.0 } else { f64::from(batches.public_samples) };
            let scale = divided / denominator;
            uploaded.iter_mut().for_each(|g| *g *= scale);
        }
        Ok(uploaded)
    }

    fn simulated(&self, with: bool) -> Simulated<'_> {
        let Device { learn, batches, grid, .. } = &self.device;
        Simulated {
            number: 0,
            learn,
            records: &self.data,
            samples: (&self.inputs[usize::from(with)]).into(),
            batches: *batches,
            grid: *grid,
        }
    }

    /// The answer of a device that draws its batch and its noise from one stream.
    fn answer(
        &self,
        device: &Simulated<'_>,
        recorded: &Recorded,
        rng: &RefCell<Stream>,
        learner: &mut Learner,
    ) -> Result<Vec<f32>, AuditError> {
        // Unwrap safety: the ledger is in memory.
        let again = recorded.again().expect("a record in memory");
        let (mut batch, mut noise) = (Shared(rng), Shared(rng));
        let streams = Streams { batch: &mut batch, noise: &mut noise };
        let reply = device.answer(&self.parameters, again, 1.0, streams, learner, Vec::new());
        let reply = reply.map_err(|error| match error {
            AnswerError::NotFinite(_) => AuditError::NotFinite,
            AnswerError::Noise(error) => error.into(),
        })?;
        Ok(reply.update.into_gradient())
    }
}

/// A stream that is drawn from in two places.
struct Shared<'a>(&'a RefCell<Stream>);

impl TryRng for Shared<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.borrow_mut().next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.borrow_mut().next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.borrow_mut().fill_bytes(bytes);
        Ok(())
    }
}

impl Releases for DeviceReleases {
    fn vectors(&self, with: bool, draw: u64) -> Result<Vec<f32>, AuditError> {
        let device = self.simulated(with);
        let rng = RefCell::new(stream(self.seed, Purpose::Audit, u64::from(with), draw));
        let mut learner = Learner::new(Worker::new(self.network.clone()));
        let mut released = Vec::with_capacity(self.recorded.len() * self.parameters.len());
        for recorded in &self.recorded {
            let first = released.len();
            released.extend(self.answer(&device, recorded, &rng, &mut learner)?);
            // A receiver no better than declared: it has the noise that is counted, and no more.
            if let Event::Release(Release { kappa, sigma_channel, .. }) = *recorded.event() {
                let counted = kappa.sqrt() * sigma_channel;
                add_gaussian(&mut released[first..], counted, &mut *rng.borrow_mut())
                    .map_err(NoiseError::from)?;
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

/// Records of the releases, and of one without noise, in a ledger that is gone with the audit.
fn record(releases: &[Release]) -> Result<(Vec<Recorded>, Recorded), AuditError> {
    let mut ledger = Ledger::in_memory().map_err(PrivacyError::from)?;
    let data = DataKey { data: "audit".into(), partition: "audit".into() };
    let (epsilon, capacity) = (f64::INFINITY, f64::INFINITY);
    let budget = DeclaredBudget { kind: "audit".into(), epsilon, delta: 0.5, capacity };
    ledger.begin_run("audit", &data, &[(0, budget)]).map_err(PrivacyError::from)?;
    let bare = Event::NonPrivate { what: "an upload before its noise".into() };
    let events = releases.iter().cloned().map(Event::Release).chain([bare]);
    let mut recorded = Vec::with_capacity(releases.len() + 1);
    let request = [Request { device: 0, cost: f64::INFINITY }];
    for (round, event) in (1..).zip(events) {
        let offers = ledger.offer("audit", round, Repeat::Replay, 0.0, &request);
        let one = offers.and_then(|offers| offers.record([(event, f64::INFINITY)]));
        recorded.extend(one.map_err(PrivacyError::from)?.into_iter().flatten());
    }
    // Unwrap safety: nothing is refused without a limit.
    let bare = recorded.pop().expect("an unlimited budget grants everything");
    Ok((recorded, bare))
}
