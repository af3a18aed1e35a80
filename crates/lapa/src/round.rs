//! One round: the protocol between base station and devices, and nowhere else.
//!
//! ```text
//! ask       select ─▶ allocate ─▶ record            base station; the ledger has every release
//! answer    learn ─▶ clip ─▶ noise ─▶ uplink        devices, wherever they are
//! conclude  aggregate ─▶ evaluate ─▶ report         base station; sees only what it received
//! ```

use lapa_privacy::ledger::Recorded;

use crate::aggregate::Histograms;
use crate::error::FederationError;
use crate::federation::{Asked, Federation, record};
use crate::observe::{Insight, RoundRecord};
use crate::radio::Radio;
use crate::station::Inbox;

/// Devices, wherever they are: simulated here, or remote with a network in between.
pub(crate) trait Fleet {
    /// True if every device that is asked answers.
    fn answers_all(&self, radio: &Radio) -> bool;

    /// Puts the answers to a round, from the global `model`, into the `inbox`, by device. Returns what
    /// only a simulation knows of them.
    fn answer(
        &mut self,
        asked: &mut Asked,
        model: &[f32],
        radio: &mut Radio,
        inbox: &mut Inbox,
    ) -> Result<Vec<Insight>, FederationError>;
}

/// Asks `devices` for the next round: select, allocate, record.
pub(crate) fn ask(on: &mut Federation, devices: &[u32]) -> Result<Asked, FederationError> {
    let start = crate::clock::now();
    let round = on.station.round() + 1;
    let selection = on.radio.select(round, devices)?;
    let allocation = on.station.allocate(&selection.chosen, &on.books);
    let (granted, recorded) =
        on.books.record(round, &selection.chosen, &allocation.costs)?.into_iter().unzip();
    Ok(Asked { round, selection, allocation, granted, recorded, start })
}

/// Concludes a round with the answers of `fleet`: aggregate, evaluate, report.
pub(crate) fn conclude(
    on: &mut Federation,
    fleet: &mut impl Fleet,
    mut asked: Asked,
) -> Result<RoundRecord, FederationError> {
    let (devices, all) = (asked.devices(), fleet.answers_all(&on.radio));
    let mut inbox = on.station.open_inbox(&devices, &asked.selection, all);
    let model = &on.station.model().parameters;
    let insights = fleet.answer(&mut asked, model, &mut on.radio, &mut inbox)?;
    let weights = on.station.aggregate(inbox, &asked.selection);
    let evaluation = on.station.evaluate_if_due()?;
    record(on, &asked, &weights, &insights, evaluation)
}

/// Asks for label histograms, once before round 1, where the weights read them: recorded before
/// anything is drawn. `None` where labels are declared public.
pub(crate) fn ask_histograms(
    on: &mut Federation,
) -> Result<Option<Vec<Option<Recorded>>>, FederationError> {
    match on.experiment.aggregate.rule.histograms() {
        Some(Histograms::Public) | None => Ok(None),
        Some(sent @ (Histograms::Noisy(_) | Histograms::Exact)) => {
            Ok(Some(on.books.record_histograms(sent.budget_fraction())?))
        }
    }
}
