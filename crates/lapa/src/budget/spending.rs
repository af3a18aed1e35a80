//! Readings of the books: what was spent, what was declared.

use lapa_privacy::ledger::{Entry, Ledger, add_up};
use lapa_privacy::{Filter, Release};

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
        let account = &self.accounts[device as usize];
        let spent = add_up(account.others, account.own);
        let provable = account.budget.provable(spent, &mut self.odometer)?;
        Ok(Spent { claimed: account.claimed, provable })
    }

    /// Proven ε of a device's releases if no channel noise is counted.
    pub fn spent_without_channel(&mut self, device: u32) -> Result<f64> {
        let account = &self.accounts[device as usize];
        let spent = add_up(account.others_without_channel, account.own_without_channel);
        account.budget.provable(spent, &mut self.odometer)
    }

    /// The paper's sum of epsilons of a device over this run.
    pub fn claimed(&self, device: u32) -> f64 {
        self.accounts[device as usize].claimed
    }

    /// For each device, what can be proved of all that the ledger has of it by now, and the
    /// largest budget that any run declared for it (0 where nothing is enforced), or that the device
    /// declared by itself, if it is elsewhere.
    pub fn ledger_readings(&mut self) -> Result<Vec<(f64, f64)>> {
        let mut declared = vec![0.0f64; self.accounts.len()];
        for declaration in self.ledger.declarations()? {
            let epsilon = declaration.budget.epsilon;
            if declaration.data != self.data || epsilon.is_infinite() {
                continue;
            }
            if let Some(largest) = declared.get_mut(declaration.device as usize) {
                *largest = largest.max(epsilon);
            }
        }
        let mut readings = Vec::with_capacity(declared.len());
        for ((device, account), declared) in (0..).zip(&self.accounts).zip(declared) {
            let spent = self.ledger.spent(&self.data, device)?.unwrap_or_default();
            let provable = account.budget.provable(spent, &mut self.odometer)?;
            readings.push((provable, account.declared.unwrap_or(declared)));
        }
        Ok(readings)
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
        &self.accounts[device as usize].budget
    }

    /// The filter of a device, declared before round 1; `None` where nothing is enforced.
    pub fn declared(&self, device: u32) -> Option<&Filter> {
        self.budget(device).filter.as_ref()
    }

    /// Budget that is left to this run on a device, in the filter's currency.
    pub fn left(&self, device: u32) -> f64 {
        let account = &self.accounts[device as usize];
        account.start - account.own
    }

    /// True if devices are remote, so that their budgets are what they declare.
    pub fn on_trust(&self) -> bool {
        self.accounts.iter().any(|account| account.declared.is_some())
    }

    /// Release of a device, noise apart.
    pub fn release(&self, device: u32) -> &Release {
        &self.budget(device).release
    }

    /// The public scale of a device's update without artificial noise; none where updates are not
    /// sent as amplitudes.
    pub fn quiet_scale(&self, device: u32) -> Result<Option<f64>> {
        let release = self.release(device);
        Ok(self.amplitudes.as_ref().map(|by| by.scale(release)).transpose()?)
    }

    /// σ_c²: artificial noise up to this variance does not raise the scale of an update; 0 where each
    /// release has its own scale, and without amplitudes.
    pub fn noise_within_scale(&self) -> f64 {
        self.amplitudes.as_ref().map_or(0.0, Amplitudes::within_squared)
    }

    /// σ_required if `part` of a device's budget is spent evenly over the rounds; none where
    /// devices have no budgets of their own, or those go by the release.
    pub fn even_sigma(&self, device: u32, part: f64) -> Result<Option<f64>> {
        let budget = self.budget(device);
        if budget.filter.is_none() || budget.is_plan() {
            return Ok(None);
        }
        budget.required(part * budget.capacity() / f64::from(self.rounds)).map(Some)
    }

    /// T_th of a device so far: the last round in which it added artificial noise, 0 if it added
    /// none; none before its first release.
    pub fn switching_round(&self, device: u32) -> Option<u32> {
        self.accounts[device as usize].switching_round
    }

    /// Devices.
    pub fn devices(&self) -> u32 {
        self.accounts.len() as u32
    }
}
