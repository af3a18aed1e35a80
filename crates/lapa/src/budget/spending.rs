//! Readings of the books: what was spent, what was declared.

use lapa_privacy::ledger::{Entry, Ledger, add_up};
use lapa_privacy::{Filter, Release};

use super::account::Account;
use super::amplitudes::Amplitudes;
use super::{Books, DeviceBudget, Result};

/// Spending of a device so far, over all runs on its ledger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// The paper's sum of epsilons.
    pub claimed: f64,
    /// Proven ε; ∞ after a release without noise.
    pub provable: f64,
}

impl Books {
    /// Spending of a device: proven ε, over this run and what others had spent before
    /// it on the same ledger, and the paper's sum over this run.
    pub fn spent(&mut self, device: u32) -> Result<Spent> {
        let Some(account) = self.accounts.get(&device) else {
            return Ok(Spent { claimed: 0.0, provable: 0.0 });
        };
        let spent = add_up(account.others, account.own);
        let provable = self.budgets[device as usize].provable(spent, &mut self.odometer)?;
        Ok(Spent { claimed: account.claimed, provable })
    }

    /// Proven ε of the worst device's releases if no channel noise is counted.
    pub fn worst_without_channel(&mut self) -> Result<f64> {
        let mut worst = 0.0f64;
        for (&device, account) in &self.accounts {
            let spent = add_up(account.others_without_channel, account.own_without_channel);
            let budget = &self.budgets[device as usize];
            worst = worst.max(budget.provable(spent, &mut self.odometer)?);
        }
        Ok(worst)
    }

    /// The paper's sums of epsilons over this run, of each device that released something.
    pub fn claimed(&self) -> impl Iterator<Item = f64> {
        self.accounts.values().map(|account| account.claimed)
    }

    /// Proven ε of all that the ledger has of the worst device by now, and the largest budget that any
    /// run declared for a device (0 where nothing is enforced), or that a device declared by itself, if
    /// it is elsewhere.
    pub fn ledger_reading(&mut self) -> Result<(f64, f64)> {
        let own = |(_, account): (_, &Account)| account.declared;
        let mut declared = self.accounts.iter().filter_map(own).fold(0.0, f64::max);
        for declaration in self.ledger.declarations()? {
            let (epsilon, devices) = (declaration.budget.epsilon, declaration.devices);
            let remote = self.accounts.range(devices.clone()).filter_map(own).count();
            let all_remote = remote as u64 > u64::from(devices.end() - devices.start());
            if declaration.data == self.data && epsilon.is_finite() && !all_remote {
                declared = declared.max(epsilon);
            }
        }
        let mut worst = 0.0f64;
        for (device, spent) in self.ledger.spending(&self.data)? {
            if let Some(budget) = self.budgets.get(device as usize) {
                worst = worst.max(budget.provable(spent, &mut self.odometer)?);
            }
        }
        Ok((worst, declared))
    }

    /// The last round of this run that the ledger has; 0 before the first.
    pub(crate) fn last_recorded(&self) -> Result<u32> {
        Ok(self.ledger.last_round(&self.run)?)
    }

    /// The ledger of the releases.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Every release on the ledger, of all runs, in the order of recording.
    pub fn releases(&self) -> Result<Vec<Entry>> {
        Ok(self.ledger.releases()?)
    }

    /// The budget of a device.
    pub(super) fn budget(&self, device: u32) -> &DeviceBudget {
        &self.budgets[device as usize]
    }

    /// The filter of a device, declared before round 1; `None` where nothing is enforced.
    pub fn declared(&self, device: u32) -> Option<&Filter> {
        self.budget(device).filter.as_ref()
    }

    /// Budget that is left to this run on a device, in the filter's currency.
    pub fn left(&self, device: u32) -> f64 {
        self.start(device) - self.accounts.get(&device).map_or(0.0, |account| account.own)
    }

    /// True if devices are remote, so that their budgets are what they declare.
    pub fn on_trust(&self) -> bool {
        self.accounts.values().any(|account| account.declared.is_some())
    }

    /// Release of a device, noise apart.
    pub fn release(&self, device: u32) -> &Release {
        &self.budget(device).release
    }

    /// Public scale of a device's update without artificial noise; `None` unless updates are sent as
    /// amplitudes.
    pub fn quiet_scale(&self, device: u32) -> Result<Option<f64>> {
        let release = self.release(device);
        Ok(self.amplitudes.as_ref().map(|by| by.scale(release)).transpose()?)
    }

    /// σ_c²: artificial noise up to this variance does not raise the scale of an update; 0 where each
    /// release has its own scale, and without amplitudes.
    pub fn noise_within_scale(&self) -> f64 {
        self.amplitudes.as_ref().map_or(0.0, Amplitudes::within_squared)
    }

    /// σ_required if `part` of a device's budget is spent evenly over the rounds; `None` if
    /// devices have no budgets of their own, or budgets that count releases.
    pub fn even_sigma(&self, device: u32, part: f64) -> Result<Option<f64>> {
        let budget = self.budget(device);
        if budget.filter.is_none() || budget.is_plan() {
            return Ok(None);
        }
        budget.required(part * budget.capacity() / f64::from(self.rounds)).map(Some)
    }

    /// T_th of a device so far: the last round in which it added artificial noise, 0 if there was no
    /// such round; `None` before its first release.
    pub fn switching_round(&self, device: u32) -> Option<u32> {
        self.accounts.get(&device).and_then(|account| account.switching_round)
    }

    /// Devices.
    pub fn devices(&self) -> u32 {
        self.budgets.len() as u32
    }
}
