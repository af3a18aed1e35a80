//! The radio between devices and the base station: links, selection, uplinks. Its numbers are public.

mod error;
mod links;
mod selection;
pub mod settings;
mod uplink;

pub use error::RadioError;
pub use lapa_wireless::uplink::{Coding, UplinkError};
pub use links::{Link, LinkError, Links};
pub(crate) use selection::Selection;
pub use selection::{BelowThreshold, NoneSelected, Selector, Threshold};
pub use uplink::{
    Airtime, AnalogConfig, Arrival, BuildUplink, IdealConfig, PerLink, Superposed, Uplink,
    UplinkConfig, Variance,
};

use std::sync::Mutex;

use crate::device::PrivateUpdate;
use crate::pool::{Pool, lock};
use crate::seed::{Draws, Entropy, Purpose};
use lapa_wireless::units::Db;
use settings::Transmit;

/// An update as the base station received it. Weights, allocators, logs and checkpoints read this
/// and public numbers only.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    device: u32,
    gradient: Vec<f32>,
    sigma: f64,
}

impl Received {
    /// The device that sent it.
    pub fn device(&self) -> u32 {
        self.device
    }

    /// The noisy gradient.
    pub fn gradient(&self) -> &[f32] {
        &self.gradient
    }

    /// Declared standard deviation of the noise on each coordinate, artificial and of the link; 0
    /// where there is none.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// An update that arrived over a network, from a device that declared this noise.
    pub(crate) fn new(device: u32, gradient: Vec<f32>, sigma: f64) -> Self {
        Self { device, gradient, sigma }
    }

    /// Gives the memory back for the next round.
    pub(crate) fn into_gradient(self) -> Vec<f32> {
        self.gradient
    }
}

/// Sections of an experiment that its radio follows.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// `[radio]`
    pub radio: &'a settings::Radio,
    /// `[transmit]`
    pub transmit: &'a Transmit,
    /// Rule of selection.
    pub selector: Selector,
    /// Number of devices.
    pub devices: u32,
    /// Seed of places and fading.
    pub seed: u64,
}

/// The radio of a run.
pub struct Radio {
    /// Radio links; `None` where nothing depends on them.
    links: Option<Links>,
    uplink: Uplink,
    selector: Selector,
    /// Source of channel noise.
    pub(crate) draws: Draws,
    /// A setting that only simulations have: values outside of the quantizer's range are counted.
    range: Option<f64>,
    warnings: Vec<String>,
    has_skipped: bool,
    has_cut: bool,
}

impl Radio {
    /// The radio of an experiment.
    pub(crate) fn new(setting: Setting<'_>, draws: Draws) -> Result<Self, RadioError> {
        let Setting { transmit, selector, .. } = setting;
        let ideal = transmit.uplink.is_ideal() && selector.threshold == Threshold::None;
        Ok(Self {
            links: if ideal { None } else { Some(Links::new(setting)?) },
            uplink: transmit.uplink.build(transmit)?,
            selector,
            draws,
            range: transmit.uplink.digital().map(|digital| digital.range),
            warnings: optimistic(transmit).into_iter().collect(),
            has_skipped: false,
            has_cut: false,
        })
    }

    /// Takes an uplink of one's own.
    pub(crate) fn replace_uplink(
        &mut self,
        own: Uplink,
        setting: Setting<'_>,
    ) -> Result<(), RadioError> {
        if self.links.is_none() {
            self.links = Some(Links::new(setting)?);
        }
        (self.uplink, self.range) = (own, None);
        Ok(())
    }

    /// Fails before the first round where the receiver cannot separate `devices`.
    pub(crate) fn try_links(&mut self, devices: &[u32]) -> Result<(), RadioError> {
        Ok(self.links.as_mut().map_or(Ok(()), |links| links.draw(1, devices).map(|_| ()))?)
    }

    /// Selects the devices that send in a round, and those of them that have weight 0. Devices that
    /// do not send compute nothing and are not charged.
    pub(crate) fn select(&mut self, round: u32, devices: &[u32]) -> Result<Selection, RadioError> {
        let Some(links) = &mut self.links else {
            let chosen = devices.iter().map(|&device| Link::ideal(device)).collect();
            return Ok(Selection { chosen, weightless: Vec::new(), skipped: Vec::new() });
        };
        let to_send = match self.selector.below_threshold {
            BelowThreshold::Skip => self.selector.threshold,
            BelowThreshold::WeightZero => Threshold::None,
        };
        let (mut chosen, skipped): (Vec<Link>, Vec<Link>) =
            links.draw(round, devices)?.into_iter().partition(|link| link.passes(&to_send));
        let short = chosen.iter().filter(|link| !link.passes(&self.selector.threshold));
        let weightless: Vec<u32> = short.map(|link| link.device).collect();
        if !skipped.is_empty() && !links.noma().perfect_sic {
            // With fewer devices on the air there is less interference.
            let devices: Vec<u32> = chosen.iter().map(|link| link.device).collect();
            chosen = links.draw(round, &devices)?;
        }
        if chosen.len() == weightless.len() {
            self.report_none_selected(round, &[&chosen[..], &skipped].concat())?;
        }
        Ok(Selection { chosen, weightless, skipped })
    }

    fn report_none_selected(&mut self, round: u32, short: &[Link]) -> Result<(), RadioError> {
        let best = short.iter().map(|link| link.sinr).fold(0.0, f64::max);
        let error = RadioError::NoneSelected {
            round,
            threshold: self.selector.threshold,
            best_sinr_db: Db::of(best).0,
            best_ser: short.iter().map(|link| link.ser).fold(1.0, f64::min),
        };
        if self.selector.none_selected == NoneSelected::Error {
            return Err(error);
        }
        if !self.has_skipped {
            self.has_skipped = true;
            self.warnings.push(format!("{error}; such rounds leave the model as it is"));
        }
        Ok(())
    }

    /// Delivers the updates of devices with these links, in the same order, over the uplink.
    pub(crate) fn deliver<T: Send>(
        &mut self,
        round: u32,
        on_air: &[Link],
        sent: Vec<PrivateUpdate>,
        pool: &Pool<T>,
    ) -> Result<Vec<Received>, RadioError> {
        let coordinates = sent.first().map_or(0, |update| update.gradient().len());
        let draws = self.draws;
        let arrivals: Vec<Arrival> = match (&self.links, &self.uplink) {
            (Some(links), Uplink::Superposed(uplink)) => {
                let mut rng = draws.stream(Purpose::Channel, round, 0)?;
                uplink.send(sent, links, on_air, &mut *rng)?
            }
            (None, Uplink::Superposed(_)) => return Err(LinkError::NoLinks.into()),
            (_, Uplink::PerLink(uplink)) => {
                let slots: Vec<_> =
                    sent.into_iter().map(|update| Mutex::new(Some(update))).collect();
                let arrivals = pool.for_each(&vec![1; on_air.len()], |_, slot| {
                    let (update, link) = (lock(&slots[slot]).take(), &on_air[slot]);
                    let mut rng = draws.stream(Purpose::Channel, round, link.device)?;
                    let arrival = update.map(|update| uplink.send(update, link, &mut *rng));
                    arrival.transpose().map_err(RadioError::from)
                })?;
                // Every slot is taken once.
                arrivals.into_iter().flatten().collect()
            }
        };
        self.warn_of_cut(round, coordinates, &arrivals);
        Ok(arrivals.into_iter().map(|arrival| arrival.received).collect())
    }

    fn warn_of_cut(&mut self, round: u32, coordinates: usize, arrivals: &[Arrival]) {
        let cut = arrivals.iter().map(|arrival| arrival.cut).max().unwrap_or_default();
        // Only a simulation can know.
        let simulated = self.draws.entropy == Entropy::Seed;
        if simulated && cut * 100 > coordinates && !self.has_cut {
            self.has_cut = true;
            let range = self.range.unwrap_or_default();
            self.warnings.push(format!(
                "round {round}: {cut} of {coordinates} coordinates of an update are outside of \
                 the quantizer's range ±{range} and were cut to it"
            ));
        }
    }

    /// The uplink.
    pub fn uplink(&self) -> &Uplink {
        &self.uplink
    }

    /// Warnings since the last call.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

/// The fast uplinks model each device alone, so they ignore SIC error propagation.
fn optimistic(transmit: &Transmit) -> Option<String> {
    let fast = matches!(transmit.uplink, UplinkConfig::Analog(_) | UplinkConfig::Digital(_));
    (fast && !transmit.perfect_sic).then(|| {
        "transmit.perfect_sic = false: this uplink takes devices decoded before for cancelled \
         exactly, and the others for Gaussian noise, which favors devices decoded late; \
         transmit.uplink = \"signal\" decodes symbols"
            .into()
    })
}
