//! One device's book, and what a ledger is told of it.

use lapa_privacy::ledger::{DataKey, Ledger, Terms};
use lapa_privacy::{Adjacency, Event, Filter, FilterKind, Release};

use super::terms::{DeviceTerms, PrivatizeError};

/// A share below this part of an equal share is refused rather than sent as pure noise.
const FLOOR: f64 = 0.01;

/// The kind of a device's terms where nothing is enforced.
const UNLIMITED: &str = "unlimited";

/// One device's book.
pub(super) struct Account {
    pub(super) terms: DeviceTerms,
    /// What this run may spend in all, in the filter's currency.
    pub(super) start: f64,
    /// What other runs on the same ledger had spent when this one began.
    pub(super) others: f64,
    /// The same, if no noise of the channel is counted.
    pub(super) others_without_channel: f64,
    /// What this run has spent.
    pub(super) own: f64,
    /// The same, if no noise of the channel is counted.
    pub(super) own_without_channel: f64,
    /// The paper's sum of epsilons over this run.
    pub(super) claimed: f64,
    /// T_th so far: the last round with artificial noise, 0 if there was none; none before the
    /// first release.
    pub(super) switching_round: Option<u32>,
    /// The budget ε that a device elsewhere says it holds itself to; none in a simulation.
    pub(super) declared: Option<f64>,
}

/// Refuses a new run to which the ledger has nothing to give, before it leaves a trace there.
pub(super) fn refuse_if_nothing_is_left(
    ledger: &Ledger,
    data: &DataKey,
    run: &str,
    rounds: u32,
    devices: &[DeviceTerms],
) -> Result<(), PrivatizeError> {
    if ledger.terms()?.iter().any(|declared| declared.run == run) {
        return Ok(());
    }
    let mut budget = 0.0f64;
    for (device, terms) in (0..).zip(devices) {
        let Some(filter) = &terms.filter else { return Ok(()) };
        let spent = ledger.spent(&data.data, device)?.unwrap_or_default();
        if filter.capacity() - spent >= floor(filter, rounds) {
            return Ok(());
        }
        budget = budget.max(filter.budget().epsilon());
    }
    Err(PrivatizeError::NothingLeft { ledger: ledger.path().into(), epsilon: budget })
}

/// The least share that is worth sending.
pub(super) fn floor(filter: &Filter, rounds: u32) -> f64 {
    match filter.kind() {
        FilterKind::Plan { .. } => 1.0,
        FilterKind::Gdp | FilterKind::Renyi { .. } => FLOOR * filter.capacity() / f64::from(rounds),
    }
}

impl Account {
    /// What an event that cost `cost` costs if no noise of the channel is counted.
    pub(super) fn cost_without_channel(
        &self,
        event: &Event,
        cost: f64,
    ) -> Result<f64, PrivatizeError> {
        match event {
            Event::Release(release) if release.kappa > 0.0 => {
                self.terms.cost(&Release { kappa: 0.0, ..release.clone() })
            }
            _ => Ok(cost),
        }
    }

    /// ∞ for a histogram without noise.
    pub(super) fn histogram_share(&self, share: Option<f64>) -> f64 {
        share.map_or(f64::INFINITY, |share| share * self.start)
    }

    pub(super) fn is_plan(&self) -> bool {
        self.terms.filter.as_ref().is_some_and(|f| matches!(f.kind(), FilterKind::Plan { .. }))
    }

    pub(super) fn floor(&self, rounds: u32) -> f64 {
        self.terms.filter.as_ref().map_or(0.0, |filter| floor(filter, rounds))
    }
}

/// What a device's terms are in the ledger.
pub(super) fn ledger_terms(terms: &DeviceTerms, delta: f64, trust: f64) -> Terms {
    match &terms.filter {
        None => {
            Terms { kind: UNLIMITED.into(), epsilon: f64::INFINITY, delta, capacity: f64::INFINITY }
        }
        Some(filter) => Terms {
            kind: kind_of_costs(filter, terms.release.adjacency, trust),
            epsilon: filter.budget().epsilon(),
            delta,
            capacity: filter.capacity(),
        },
    }
}

/// What costs are counted in: those of two adjacencies, or with other shares of channel noise
/// counted, do not add up, even in one currency.
pub fn kind_of_costs(filter: &Filter, adjacency: Adjacency, trust: f64) -> String {
    // Unwrap safety: a kind holds only finite numbers and words.
    let mut kind = serde_json::to_value(filter.kind()).expect("a kind can be written");
    kind["adjacency"] = adjacency.to_string().into();
    if trust > 0.0 {
        kind["channel_trust"] = trust.into();
    }
    kind.to_string()
}
