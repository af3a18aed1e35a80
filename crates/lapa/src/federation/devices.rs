//! What happens on the devices: who takes part, learns, adds noise and sends.

use std::sync::Mutex;

use lapa_privacy::Adjacency;
use lapa_privacy::mechanism::os_stream;
use lapa_wireless::units::Db;
use rand::Rng;
use rand::seq::index;

use super::{Federation, FederationError, taking_part};
use crate::config::{Entropy, Experiment, NoneSelected};
use crate::crew::lock;
use crate::learn::{Batches, Holding};
use crate::privatize::{self, Decision, Granted, PrivateUpdate, PrivatizeError};
use crate::seed::{Purpose, stream};
use crate::transmit::{Link, Received};

/// Numbers of a device's update before noise, which only a simulation can know.
pub(crate) struct Insight {
    /// As [`LocalUpdate::norm`](crate::learn::LocalUpdate::norm).
    pub norm: f64,
    /// As [`LocalUpdate::clipped`](crate::learn::LocalUpdate::clipped).
    pub clipped: f64,
}

/// Who of a round's devices sends. It follows from public numbers alone.
pub(crate) struct Selection {
    /// Devices whose links are good enough.
    pub chosen: Vec<Link>,
    /// Devices that are told not to send.
    pub passed_over: Vec<Link>,
}

impl Federation {
    /// The devices of a round, ascending: a random share, at least one.
    pub(crate) fn participants(&self, round: u32) -> Vec<u32> {
        let all = self.partition.devices.len();
        let count = taking_part(&self.experiment, all);
        if count == all {
            return (0..all as u32).collect();
        }
        let mut rng = stream(self.experiment.run.seed, Purpose::Participation, round.into(), 0);
        let mut devices: Vec<u32> =
            index::sample(&mut rng, all, count).into_iter().map(|device| device as u32).collect();
        devices.sort_unstable();
        devices
    }

    /// Tells devices whose links fall short not to send: they compute nothing and are not charged.
    pub(crate) fn select(
        &mut self,
        round: u32,
        devices: &[u32],
    ) -> Result<Selection, FederationError> {
        let Some(links) = &mut self.links else {
            let chosen = devices.iter().map(|&device| Link::ideal(device)).collect();
            return Ok(Selection { chosen, passed_over: Vec::new() });
        };
        let threshold = self.experiment.aggregate.threshold;
        let (mut chosen, passed_over): (Vec<Link>, Vec<Link>) =
            links.of(round, devices)?.into_iter().partition(|link| link.passes(&threshold));
        if !passed_over.is_empty() && !links.noma().perfect_sic {
            // With fewer devices on the air there is less interference.
            let devices: Vec<u32> = chosen.iter().map(|link| link.device).collect();
            chosen = links.of(round, &devices)?;
        }
        if chosen.is_empty() {
            self.report_none_selected(round, &passed_over)?;
        }
        Ok(Selection { chosen, passed_over })
    }

    fn report_none_selected(
        &mut self,
        round: u32,
        passed_over: &[Link],
    ) -> Result<(), FederationError> {
        let threshold = self.experiment.aggregate.threshold;
        let best = passed_over.iter().map(|link| link.sinr).fold(0.0, f64::max);
        let error = FederationError::NoneSelected {
            round,
            threshold,
            best_sinr_db: Db::of(best).0,
            best_ser: passed_over.iter().map(|link| link.ser).fold(1.0, f64::min),
        };
        match self.experiment.aggregate.none_selected {
            NoneSelected::Error => return Err(error),
            NoneSelected::Skip if !self.has_skipped => {
                self.has_skipped = true;
                self.warnings.push(format!("{error}; such rounds leave the model as it is"));
            }
            NoneSelected::Skip => {}
        }
        Ok(())
    }

    /// Asks for the releases of a round and has them recorded; devices without one sit it out.
    pub(crate) fn grant(
        &mut self,
        round: u32,
        links: &[Link],
    ) -> Result<(Vec<Granted>, Decision), FederationError> {
        let devices: Vec<u32> = links.iter().map(|link| link.device).collect();
        let weights = self.weighting.prior(&devices, &self.samples_of(&devices));
        Ok(self.budgets.grant(round, links, &weights)?)
    }

    /// Stages 3 and 4 for all devices with a grant: each learns and adds its noise at once, so that
    /// no more raw updates exist than threads.
    pub(crate) fn learn_and_privatize(
        &mut self,
        round: u32,
        granted: &[Granted],
    ) -> Result<Vec<PrivateUpdate>, FederationError> {
        let mut rooms: Vec<_> = self.received.drain(..).map(Received::into_gradient).collect();
        rooms.resize_with(granted.len(), Vec::new);
        let rooms: Vec<_> = rooms.into_iter().map(Mutex::new).collect();
        let Self { experiment, data, partition, model, public_samples, crew, .. } = self;
        let draws = self.draws;
        let grid = privatize::grid(experiment)?;
        let samples = |slot: usize| &partition.devices[granted[slot].device as usize].samples;
        let sizes: Vec<usize> = (0..granted.len()).map(|slot| samples(slot).len()).collect();
        let done = crew.for_each(&sizes, |learner, slot| {
            let device = granted[slot].device;
            let holding = Holding {
                data: &data.train,
                samples: samples(slot),
                batches: batches(experiment, public_samples[device as usize]),
                grid,
            };
            let stream = |purpose| rng(experiment, draws, purpose, round, device);
            let mut update = learner.take_update();
            let (learn, batches) = (&experiment.learn, &mut *stream(Purpose::Batch)?);
            learner.local_update(learn, holding, &model.parameters, batches, &mut update).map_err(
                |_| {
                    let learning_rate = learn.learning_rate;
                    FederationError::Diverged { round, device, learning_rate }
                },
            )?;
            let (granted, room) = (&granted[slot], std::mem::take(&mut *lock(&rooms[slot])));
            let noise = &mut *stream(Purpose::Noise)?;
            let private = PrivateUpdate::new(&update, granted, grid.as_ref(), noise, room)?;
            let seen = Insight { norm: update.norm, clipped: update.clipped };
            learner.keep_update(update);
            Ok::<_, FederationError>((private, seen))
        })?;
        let (private, insights) = done.into_iter().unzip();
        self.insights = insights;
        Ok(private)
    }

    /// Stage 5 for all devices with a grant.
    pub(crate) fn transmit(
        &mut self,
        round: u32,
        granted: &[Granted],
        sent: Vec<PrivateUpdate>,
    ) -> Result<Vec<Received>, FederationError> {
        self.senders = granted.iter().map(|granted| granted.device).collect();
        let (experiment, draws, uplink) = (&self.experiment, self.draws, &self.uplink);
        let arrivals = match &self.links {
            Some(links) if !uplink.is_separable() => {
                let on_air: Vec<Link> = granted.iter().map(|granted| granted.link).collect();
                let mut rng = rng(experiment, draws, Purpose::Channel, round, 0)?;
                uplink.send_signals(sent, links, &on_air, &mut *rng)?
            }
            _ => {
                let slots: Vec<_> =
                    sent.into_iter().map(|update| Mutex::new(Some(update))).collect();
                let arrivals = self.crew.for_each(&vec![1; granted.len()], |_, slot| {
                    let (update, link) = (lock(&slots[slot]).take(), &granted[slot].link);
                    let mut rng = rng(experiment, draws, Purpose::Channel, round, link.device)?;
                    let arrival = update.map(|update| uplink.send(update, link, &mut *rng));
                    arrival.transpose().map_err(FederationError::from)
                })?;
                // Every slot is taken once.
                arrivals.into_iter().flatten().collect()
            }
        };
        let cut = arrivals.iter().map(|arrival| arrival.cut).max().unwrap_or_default();
        let coordinates = self.network.parameter_count();
        // Known to devices only, so a matter of simulations.
        let simulated = experiment.run.entropy == Entropy::Seed;
        if simulated && cut * 100 > coordinates && !self.has_cut {
            self.has_cut = true;
            let range = experiment.transmit.uplink.digital().unwrap_or_default().range;
            self.warnings.push(format!(
                "round {round}: {cut} of {coordinates} coordinates of an update are outside of \
                 range = {range} of digital symbols ([transmit]) and were cut to it"
            ));
        }
        Ok(arrivals.into_iter().map(|arrival| arrival.received).collect())
    }
}

/// The random stream of a device in a round: that of the seed `draws`, or a new one of the
/// operating system.
pub(crate) fn rng(
    experiment: &Experiment,
    draws: u64,
    purpose: Purpose,
    round: u32,
    device: u32,
) -> Result<Box<dyn Rng>, PrivatizeError> {
    Ok(match experiment.run.entropy {
        Entropy::Seed => Box::new(stream(draws, purpose, round.into(), device.into())),
        Entropy::Os => Box::new(os_stream()?),
    })
}

/// How a device of `public_samples` draws its batches.
pub(crate) fn batches(experiment: &Experiment, public_samples: u32) -> Batches {
    Batches {
        sampling: experiment.learn.sampling,
        public_samples,
        zero_if_not_finite: experiment.is_certified(),
        keeps_places: experiment.adjacency() != Adjacency::AddRemove,
    }
}
