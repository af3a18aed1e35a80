//! The ledger of one real device, which trusts nobody.
//!
//! The device decides by itself: whatever it is asked for, nothing is drawn before the release is
//! on record, and nothing is recorded past its budget. The ledger counts all that the device ever
//! released, in any run and whatever its records were at the time.

use std::collections::BTreeSet;
use std::sync::Arc;

use lapa_privacy::ledger::{DataKey, Declaration, Ledger, Recorded, Repeat, Request, left_of};
use lapa_privacy::{Decision, FilterKind};

use super::{Refusal, RemoteError, Result};
use crate::budget::{DeviceBudget, Odometer, Priced, PrivacyError, declare, floor};
use crate::config::Experiment;
use crate::simulation::repeat;

/// Name of the device's account in its own ledger: one for all its records.
const OWN: &str = "device";

/// The number of that account in a new ledger, whatever the device's own number is: that is a
/// federation's, the ledger and its budget are the device's.
const ACCOUNT: u32 = 0;

/// State of a device's budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spending {
    /// ε of all that was released, ex post; ∞ after a release without noise.
    pub epsilon: f64,
    /// The budget ε; ∞ where nothing is enforced.
    pub declared: f64,
    /// δ
    pub delta: f64,
    /// Cost that may still be spent, in the currency of the filter.
    pub left: f64,
    /// The whole of it.
    pub capacity: f64,
    /// Number of releases.
    pub releases: u32,
}

/// The budget of one device, in its own ledger.
pub(super) struct DeviceLedger {
    device: u32,
    /// Its account in the ledger.
    account: u32,
    budget: Arc<DeviceBudget>,
    rounds: u32,
    /// The part of the budget that one run may spend.
    run_fraction: Option<f64>,
    repeat: Repeat,
    ledger: Ledger,
    odometer: Odometer,
}

impl DeviceLedger {
    /// The budget of a device in `ledger`. `samples` are the public numbers of samples of all
    /// devices that are known to it, and its own is at `place`.
    pub fn new(
        experiment: &Experiment,
        device: u32,
        samples: &[u32],
        place: usize,
        ledger: Ledger,
    ) -> Result<Self> {
        let mut known = ledger.declarations()?;
        known.retain(|declared| declared.data == OWN);
        let account = account(&ledger, &known)?;
        let kind: Option<FilterKind> =
            known.first().and_then(|known| serde_json::from_str(&known.budget.kind).ok());
        let mut all = declare(experiment, samples, &|_| kind)?;
        Ok(Self {
            device,
            account,
            budget: all.swap_remove(place),
            rounds: experiment.run.rounds,
            run_fraction: experiment.budget_fraction(),
            repeat: repeat(experiment.run.entropy),
            ledger,
            odometer: Odometer::default(),
        })
    }

    /// Records the release of a round of `run` for a cost. When this returns it is on the disk, and
    /// noise may be drawn.
    pub fn record(&mut self, run: &str, round: u32, cost: f64) -> Result<Recorded> {
        self.check_cost(cost)?;
        self.charge(run, round, cost, DeviceBudget::price_alone)
    }

    /// Records the device's label histogram for a cost.
    pub fn record_histogram(&mut self, run: &str, cost: f64) -> Result<Recorded> {
        let limited = self.budget.filter.is_some();
        if cost.is_nan() || cost <= 0.0 || (limited && cost.is_infinite()) {
            return Err(self.strange_cost(cost, "a number above 0".into()).into());
        }
        self.charge(run, 0, cost, DeviceBudget::price_histogram)
    }

    /// Refusal of another question for a round that was answered.
    pub fn answered(&self, run: &str, round: u32) -> Refusal {
        Refusal::Answered { device: self.device, run: run.into(), round }
    }

    /// The device.
    pub fn device(&self) -> u32 {
        self.device
    }

    /// Number of its account in the ledger.
    pub fn account(&self) -> u32 {
        self.account
    }

    /// State of the budget, over all that was ever released.
    pub fn spending(&mut self) -> Result<Spending, PrivacyError> {
        let spent = self.spent()?;
        let releases = self.ledger.releases()?;
        let capacity = self.budget.capacity();
        Ok(Spending {
            epsilon: self.budget.provable(spent, &mut self.odometer)?,
            declared: self.budget.epsilon(),
            delta: self.budget.delta,
            left: left_of(capacity, spent),
            capacity,
            releases: releases.iter().filter(|entry| entry.data == OWN).count() as u32,
        })
    }

    /// The largest budget ε that it ever held itself to, in any run on its ledger or now: its
    /// promise over all of them. ∞ where nothing is enforced.
    pub fn largest_epsilon(&self) -> Result<f64, PrivacyError> {
        let known = self.ledger.declarations()?;
        let own = known.iter().filter(|declared| declared.data == OWN);
        Ok(own.map(|declared| declared.budget.epsilon).fold(self.budget.epsilon(), f64::max))
    }

    fn spent(&self) -> Result<f64, PrivacyError> {
        Ok(self.ledger.spent(OWN, self.account)?)
    }

    /// Charges the whole cost or nothing: what is left is not a server's to round down to.
    fn charge(
        &mut self,
        run: &str,
        round: u32,
        cost: f64,
        price: impl Fn(&DeviceBudget, f64) -> Result<Priced, PrivacyError>,
    ) -> Result<Recorded> {
        let data = DataKey { data: OWN.into(), partition: OWN.into() };
        let listed = [(self.account, self.budget.declared())];
        self.ledger.begin_run(run, &data, &listed)?;
        let (capacity, epsilon) = (self.budget.capacity(), self.budget.epsilon());
        let mut of_run = f64::INFINITY;
        if let (Some(fraction), Some(_)) = (self.run_fraction, &self.budget.filter) {
            let own = self.ledger.own_spent(run, self.account, None)?;
            of_run = left_of((fraction * capacity).next_up(), own);
        }
        let left = left_of(capacity, self.spent()?).min(of_run);
        let refusal = Refusal::MoreThanLeft { device: self.device, cost, left, capacity, epsilon };
        // The least that is worth it is the whole.
        let whole = cost;
        let request = [Request { device: self.account, cost }];
        let offers = self.ledger.offer(run, round, self.repeat, whole, &request)?;
        let granted = offers.granted().next().flatten();
        if granted.and(Decision::of(cost, of_run, whole).granted()).is_none() {
            return Err(refusal.into());
        }
        let Priced { event, cost, .. } = price(&self.budget, cost)?;
        let recorded = offers.record([(event, cost)])?;
        recorded.into_iter().next().flatten().ok_or_else(|| refusal.into())
    }

    fn check_cost(&self, cost: f64) -> Result<(), Refusal> {
        let finite = cost.is_finite();
        let (fits, allowed) = match &self.budget.filter {
            _ if !self.budget.noisy => {
                (cost == f64::INFINITY, "infinity, since no noise is added".into())
            }
            None => (cost > 0.0 && finite, "a finite number above 0".into()),
            Some(_) if self.budget.is_plan() => (cost == 1.0, "1, a planned release".into()),
            Some(filter) => {
                // Half of the least cost that a base station sends.
                let least = 0.5 * floor(filter, self.rounds);
                (cost >= least && finite, format!("a finite number from {least:e}"))
            }
        };
        if fits { Ok(()) } else { Err(self.strange_cost(cost, allowed)) }
    }

    fn strange_cost(&self, cost: f64, allowed: String) -> Refusal {
        Refusal::Cost { device: self.device, cost, allowed }
    }
}

/// The account of a device in its ledger, whose declarations are `known`: the one that is there.
/// Several accounts are spending on the records of one device without a common budget.
fn account(ledger: &Ledger, known: &[Declaration]) -> Result<u32> {
    let ends = |declared: &Declaration| [*declared.devices.start(), *declared.devices.end()];
    let numbers: BTreeSet<u32> = known.iter().flat_map(ends).collect();
    if numbers.len() > 1 {
        let numbers = Vec::from_iter(numbers);
        return Err(RemoteError::Ledger(format!(
            "{}: it has accounts of devices {numbers:?}, but a ledger is one device's, whatever \
             its number, and has one budget; what these released cannot be told apart any more: \
             take it as spent, and use a new ledger for records that this one was never used for \
             only",
            ledger.path().display()
        )));
    }
    Ok(numbers.first().copied().unwrap_or(ACCOUNT))
}
