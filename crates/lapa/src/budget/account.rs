//! The account of one device in the books of a run.

use lapa_privacy::ledger::add_up;
use lapa_privacy::{Adjacency, Event, Filter};

use super::{DeviceBudget, Result};

/// Spending of one device. One that never spent anything has none.
#[derive(Default)]
pub(super) struct Account {
    /// The most that this run may spend, in the filter's currency; `None` where its budget is whole.
    pub start: Option<f64>,
    /// Spending of other runs on the same ledger before this one began.
    pub others: f64,
    /// The same, if no channel noise counts.
    pub others_without_channel: f64,
    /// Spending of this run.
    pub own: f64,
    /// The same, if no channel noise counts.
    pub own_without_channel: f64,
    /// The paper's sum of epsilons over this run.
    pub claimed: f64,
    /// T_th so far: the last round with artificial noise, 0 if there was none; `None` before the
    /// first release.
    pub switching_round: Option<u32>,
    /// True once an update of this run went without artificial noise.
    pub has_switched: bool,
    /// The last round of this run with an update, and the σ of its artificial noise.
    pub latest: (u32, f64),
    /// The budget ε that a remote device declares; `None` in a simulation.
    pub declared: Option<f64>,
}

impl Account {
    /// Adds an event of this run and its cost to the spending of a device with this `budget`.
    pub fn charge(
        &mut self,
        budget: &DeviceBudget,
        round: u32,
        event: &Event,
        cost: f64,
    ) -> Result<()> {
        self.own = add_up(self.own, cost);
        let without_channel = budget.cost_without_channel(event, cost)?;
        self.own_without_channel = add_up(self.own_without_channel, without_channel);
        self.claimed += event.claimed_epsilon(budget.delta);
        if let Event::Release(release) = event {
            let last = if release.sigma_artificial > 0.0 { round } else { 0 };
            self.switching_round = self.switching_round.max(Some(last));
            self.has_switched |= last == 0;
            self.latest = (round, release.sigma_artificial * release.noise.parts().sqrt());
        }
        Ok(())
    }
}

/// The currency of costs: those of two adjacencies, or with other parts of channel noise counted, do
/// not add up, even for one kind of filter.
pub fn kind_of_costs(filter: &Filter, adjacency: Adjacency, trust: f64) -> String {
    // Unwrap safety: a kind holds only finite numbers and words.
    let mut kind = serde_json::to_value(filter.kind()).expect("a kind can be written");
    kind["adjacency"] = adjacency.to_string().into();
    if trust > 0.0 {
        kind["channel_trust"] = trust.into();
    }
    kind.to_string()
}
