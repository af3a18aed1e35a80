//! J of a run by its own rounds.

use lapa::error::FederationError;
use lapa::observe::{RoundRecord, number};
use lapa::optimize::Objective;
use lapa::radio::Links;
use lapa::simulation::Simulation;
use serde::{Deserialize, Serialize};

use super::{PhaseError, Pilot, check, problem};

/// J, the noise terms of the bound, by the noise that a run's own rounds asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgment {
    /// With the powers of the run.
    #[serde(with = "number")]
    pub own: f64,
    /// With equal powers, if its rounds had asked for the same noise.
    #[serde(with = "number")]
    pub equal: f64,
}

impl Judgment {
    /// J of a run; `None` without amplitudes or without noise.
    pub fn from_records(
        simulation: &Simulation,
        records: &[RoundRecord],
    ) -> Result<Option<Self>, PhaseError> {
        let experiment = simulation.experiment();
        if check(experiment).is_err() {
            return Ok(None);
        }
        let mut problem = problem(experiment, &Pilot::new(simulation, records)?)?;
        let devices: Vec<u32> = (0..experiment.partition.scheme.devices()).collect();
        let links = Links::new(experiment.setting()).map_err(FederationError::from)?;
        let own: Vec<f64> = links.powers_of(&devices).iter().map(|p| p.0.sqrt()).collect();
        let equal = problem.limits().equal();
        let mut worth = |amplitudes: &[f64]| problem.evaluate(amplitudes).map(|e| e.objective);
        Ok(Some(Self { own: worth(&own)?, equal: worth(&equal)? }))
    }

    /// The comparison in words; the pilots `promised` J over that of equal power.
    pub fn sentence(&self, promised: f64) -> String {
        let ratio = self.own / self.equal;
        let worse = if ratio > 1.0 { ": worse than equal power" } else { "" };
        format!(
            "J of this run is {ratio:.3} times that of equal power in the same rounds{worse}; the \
             pilots promised {promised:.3}"
        )
    }
}
