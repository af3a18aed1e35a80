//! Devices and a base station that share no memory: what a real federation runs.
//!
//! The same pieces as in a simulation, cut where the network is. A [`Device`] holds records, a
//! ledger of its own and nothing else; it decides by itself what it releases, whatever it is asked.
//! A [`BaseStation`] has public numbers and what devices answered. How questions and answers travel
//! is not decided here: they are numbers.
//!
//! ```
//! use lapa::config::Experiment;
//! use lapa::data;
//! use lapa::remote::{BaseStation, Device, Model};
//!
//! let text = "
//!     data.name = 'synthetic'
//!     model.name = 'logistic'
//!     run = { rounds = 2, seed = 3 }
//!     transmit.uplink = 'ideal'
//!     partition.mix = { iid = 2, non_iid = 0, iid_samples = [20, 40] }
//!     privacy.epsilon = 8
//! ";
//! let experiment = Experiment::from_toml(text, "example", &[])?;
//! let digits = data::digits(200, 50);
//! let folder = tempfile::tempdir()?;
//! let ledger = |device: u32| folder.path().join(format!("{device}.db"));
//! let mut devices = Vec::new();
//! for device in 0..2 {
//!     devices.push(Device::of_partition(&experiment, &digits, device, true, &ledger(device))?);
//! }
//! let infos: Vec<_> = devices.iter_mut().map(Device::describe).collect::<Result<_, _>>()?;
//! let model = Model::Configured(digits.clone().into());
//! let mut station = BaseStation::open(&experiment, model, &infos, &folder.path().join("run"))?;
//! let run = station.run().to_string();
//! let mut answers = std::collections::BTreeMap::new();
//! for question in station.ask(&[0, 1])? {
//!     let device = &mut devices[question.device as usize];
//!     let answer = device.train(&run, question.round, station.parameters(), question.cost)?;
//!     answers.insert(question.device, answer.into_gradient());
//! }
//! let step = station.step(answers)?;
//! assert_eq!((step.record.round, step.dropped.len()), (1, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod device;
mod device_ledger;
mod error;
mod mailbox;
mod refusal;
mod station;
mod vet;

pub use device::{Answer, Device};
pub use device_ledger::Spending;
pub use error::{RemoteError, Result};
pub use refusal::Refusal;
pub use station::{BaseStation, Model, Question, Step};
pub use vet::{Dropped, Reason};

use lapa_privacy::NoiseKind;
use serde::{Deserialize, Serialize};

use crate::config::{Entropy, Experiment, word_of};
use crate::radio::Threshold;

/// A device as its base station knows it: public numbers only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The device, from 0.
    pub device: u32,
    /// Its public number of samples: |D_k|, or n̂ where that is not public.
    pub samples: u32,
    /// Parameters of its model.
    pub parameters: usize,
    /// Classes of its labels; 0 where the model is trained outside of the engine.
    pub classes: usize,
    /// Rounds that it expects of a run.
    pub rounds: u32,
    /// Budget ε that it enforces; ∞ without enforcement.
    #[serde(with = "crate::observe::number")]
    pub epsilon: f64,
    /// Largest budget ε that it ever enforced, in any run on its ledger, this one
    /// included: what it promises over all of them.
    #[serde(default, with = "crate::observe::number")]
    pub epsilon_ever: f64,
    /// δ
    pub delta: f64,
    /// Budget that is left, in the currency of its filter; ∞ where nothing is enforced.
    #[serde(with = "crate::observe::number")]
    pub left: f64,
    /// True if its noise follows from a seed: a simulation, which protects nobody.
    pub seeded: bool,
}

/// The experiment of a real federation, checked.
fn checked(experiment: &Experiment, seeded: bool) -> Result<Experiment> {
    let mut experiment = experiment.clone();
    let refuse = |what: String, instead| Err(RemoteError::Config { what, instead });
    if !experiment.transmit.uplink.is_ideal() {
        let what = format!(
            "transmit.uplink = \"{}\" simulates a radio link between devices in one process",
            word_of(experiment.transmit.uplink)
        );
        return refuse(what, "transmit.uplink = \"ideal\"");
    }
    if experiment.aggregate.threshold != Threshold::None {
        let what = "a threshold on links ([aggregate]) needs the links of a simulation".into();
        return refuse(what, "no ser_threshold and no sinr_threshold_db");
    }
    if let Some(ledger) = &experiment.run.ledger {
        let what = format!("run.ledger = \"{}\" is one for all devices", ledger.display());
        return refuse(what, "a ledger of its own for each device");
    }
    if !seeded && !experiment.is_certified() {
        let what =
            "this configuration gives a device no budget that it could hold itself to".into();
        return refuse(what, "privacy.epsilon on privacy.basis = \"certified\"");
    }
    experiment.run.entropy = if seeded { Entropy::Seed } else { Entropy::Os };
    Ok(experiment)
}

/// Refuses settings that a model trained outside of the engine does not go with.
fn check_outside_model(experiment: &Experiment) -> Result<()> {
    let refuse = |what: &str, instead| Err(RemoteError::Config { what: what.into(), instead });
    if experiment.noise() == NoiseKind::DiscreteGaussian {
        let what = "privacy.noise = \"discrete-gaussian\" rounds the gradients of single samples, \
                    which a model that is trained outside of the engine does not show";
        return refuse(what, "privacy.noise = \"gaussian\"");
    }
    if experiment.learn.clip_norm.is_none() {
        return refuse("nothing is clipped", "learn.clip_norm");
    }
    if experiment.aggregate.rule.histograms().is_some() {
        let what = "aggregate.rule goes by labels, of which a model that is trained outside of the engine tells \
                    nothing";
        return refuse(what, "aggregate.rule = \"fedavg\" or \"fedadp\"");
    }
    Ok(())
}
