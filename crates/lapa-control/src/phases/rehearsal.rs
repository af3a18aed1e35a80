//! The rehearsal: a training with chosen powers before the run.

use std::path::Path;

use lapa::config::{Control, Experiment, Pilot as PilotData, Powers};
use lapa::data::Dataset;
use lapa::optimize::PowerChoice;

use super::{
    Judgment, Listener, PhaseError, PhaseEvent, charged, pilot_data, pilot_experiment,
    run_in_memory,
};

/// J over that of equal power in a training that has the powers and the noise control of the run and the
/// data of its pilots. Pilots have equal power, and LAPA's shares follow what is received: with other
/// powers a run asks for other noise than they did. `None` on basis certified with a pilot on private
/// data, since budgets are divided between that and the run.
///
/// On the devices' own data it is charged to `ledger`, as a pilot is.
pub(super) fn rehearse(
    experiment: &Experiment,
    data: &Dataset,
    powers_w: &[f64],
    ledger: &Path,
    on_event: &mut Listener<'_>,
) -> Result<Option<f64>, PhaseError> {
    let control = &experiment.control;
    if control.pilot != PilotData::Synthetic && experiment.is_certified() {
        return Ok(None);
    }
    // A pilot after the last, with noise of its own.
    let mut rehearsal = pilot_experiment(experiment, Some(ledger.into()), control.pilots);
    rehearsal.transmit.power_w = Powers::Each(powers_w.into());
    rehearsal.control = Control { power: PowerChoice::File, ..control.clone() };
    let mut simulation = charged(rehearsal, pilot_data(experiment, data)?)?;
    let on_event =
        &mut |event: lapa::simulation::Event<'_>| on_event(PhaseEvent::Pilot(event.into()));
    let records = match run_in_memory(&mut simulation, on_event) {
        // So much noise that training fails is worse than any other.
        Err(error) if error.has_diverged() => return Ok(Some(f64::INFINITY)),
        records => records?,
    };
    let judgment = Judgment::from_records(&simulation, &records)?;
    Ok(judgment.map(|judgment| judgment.own / judgment.equal))
}
