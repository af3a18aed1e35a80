//! One repeated run, which serves several attacks.

use lapa::config::{Experiment, ObserveDevices, Start};
use lapa::error::FederationError;
use lapa::observe::{DeviceRecords, RoundRecord};
use lapa::radio::UplinkConfig;
use lapa::simulation::{Event, Setup, Simulation};
use lapa_privacy::Release;

use crate::canary::{Planted, Scorer, most_canaries, plant};
use crate::ledger::{Checks, ReceivedUpdate, disagreements, update_releases};
use crate::subject::network;
use crate::{Attack, AuditError, Listener, Options, Progress, Statement, Subject};

/// A run that was repeated with canaries in it.
pub struct Repeated {
    /// The experiment, as it was repeated.
    pub(crate) experiment: Experiment,
    /// The public number of samples of each device.
    pub(crate) public_samples: Vec<u32>,
    /// The updates on the ledger, by device.
    pub(crate) releases: Vec<Vec<Release>>,
    /// True if anything was released without noise.
    pub(crate) unprotected: bool,
    /// Canaries and their scores.
    pub(crate) scorer: Scorer,
    /// Tests on the transcript.
    pub(crate) checks: Checks,
    /// Disagreements of ledger, transcript and configuration.
    pub(crate) disagreements: Vec<String>,
    /// Privacy statement of the repeated run.
    pub statement: Statement,
}

/// Most bytes of canaries and their gradients: 8 GiB.
const MOST_BYTES: u64 = 8 << 30;

/// Fails where canaries and their gradients are beyond [`MOST_BYTES`].
fn check_size(subject: &Subject, options: &Options) -> Result<(), AuditError> {
    let (experiment, data) = (&subject.experiment, &subject.data);
    let parameters = network(experiment, data)?.parameter_count() as u64;
    let pixels = data.train.shape.len() as u64;
    let canaries = most_canaries(options.effort) as u64;
    let (needed, allowed) = (canaries.saturating_mul(pixels + 4 * parameters), MOST_BYTES);
    if needed <= allowed {
        Ok(())
    } else {
        Err(AuditError::TooLarge { pixels, parameters, canaries, needed, allowed })
    }
}

/// Repeats the subject's run with canaries among the records, and reads its transcript as it
/// streams.
///
/// Unless noise of the receiver is counted, the attacker has the best of receivers: what was sent
/// is what it hears, and what the claims are about.
pub fn repeat(
    subject: &Subject,
    options: &Options,
    listener: &mut Listener<'_>,
) -> Result<Repeated, AuditError> {
    check_size(subject, options)?;
    let planted = plant(subject, options)?;
    let mut experiment = subject.experiment.clone();
    experiment.observe.devices = ObserveDevices::List;
    // Nobody looks at the accuracy.
    experiment.run.evaluate_every = experiment.run.rounds.max(1);
    if experiment.channel_trust() == 0.0 {
        experiment.transmit.uplink = UplinkConfig::default();
    }
    let network = || network(&experiment, &planted.data);
    let mut scorer = Scorer::new(&planted, &experiment, network()?, options.seed);
    let network = network()?;
    let Planted { data, partition, sizes, .. } = planted;
    let mut simulation = Setup::with_records(experiment.clone(), data, network, partition, &sizes)?
        .keep_transcript()
        .in_memory()
        .map_err(FederationError::from)?;
    let checks = observe(&mut simulation, &experiment, &mut scorer, listener)?;
    let statement = Statement::from(&simulation.privacy().map_err(FederationError::from)?);
    let recorded = simulation.books().releases()?;
    let public_samples = simulation.public_samples().to_vec();
    let (releases, unprotected) = update_releases(&recorded, public_samples.len());
    let disagreements = disagreements(&experiment, &public_samples, &recorded, &checks.heard);
    Ok(Repeated {
        experiment,
        public_samples,
        releases,
        unprotected,
        scorer,
        checks,
        disagreements,
        statement,
    })
}

/// Runs the simulation, and scores canaries and tests the transcript on the way.
fn observe(
    simulation: &mut Simulation,
    experiment: &Experiment,
    scorer: &mut Scorer,
    listener: &mut Listener<'_>,
) -> Result<Checks, AuditError> {
    let (rounds, trust) = (experiment.run.rounds, experiment.channel_trust());
    let mut checks = Checks::new();
    let mut parameters = simulation.model().parameters.clone();
    simulation.run(&mut |simulation, event| {
        let mut progress = Progress {
            attack: Attack::Canary,
            what: "repeating the run with canaries",
            done: simulation.round().into(),
            of: rounds.into(),
            warning: None,
        };
        match event {
            Event::Warning(warning) => progress.warning = Some(warning),
            Event::Round(record) => {
                let heard = heard(simulation, record, trust);
                checks.observe(record.round, &heard);
                // After a training on digits the first model is not known beforehand.
                if record.round > 1 || experiment.model.start == Start::Random {
                    scorer.observe(record.round, &parameters, &heard);
                }
                parameters.clone_from(&simulation.model().parameters);
            }
        }
        listener(progress)
    })?;
    Ok(checks)
}

/// Transcript of a round: what was received, with the noise that counts.
fn heard<'a>(
    simulation: &'a Simulation,
    record: &RoundRecord,
    trust: f64,
) -> Vec<ReceivedUpdate<'a>> {
    let DeviceRecords::List(devices) = &record.devices else { return Vec::new() };
    let sigma = |device: u32| {
        let of_device = devices.iter().find(|record| record.device == device);
        of_device.map_or(0.0, |record| {
            record.sigma_artificial.hypot(trust.sqrt() * record.sigma_channel)
        })
    };
    let received = simulation.received().iter();
    received
        .map(|received| ReceivedUpdate {
            device: received.device(),
            gradient: received.gradient(),
            sigma: sigma(received.device()),
        })
        .collect()
}
