//! How the devices' budgets stand: what was spent, what was declared.

use lapa_privacy::ledger::{Ledger, Recorded, add_up};
use lapa_privacy::{Filter, Release};

use super::{Budgets, PrivatizeError};

/// What a device has spent so far, over all runs on its ledger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// The paper's sum of epsilons.
    pub claimed: f64,
    /// What can be proved; ∞ after a release without noise.
    pub provable: f64,
}

impl Budgets {
    /// What a device has spent: what can be proved, over this run and what others had spent before
    /// it on the same ledger, and the paper's sum over this run.
    pub fn spent(&mut self, device: u32) -> Result<Spent, PrivatizeError> {
        let account = &self.accounts[device as usize];
        let (claimed, spent) = (account.claimed, add_up(account.others, account.own));
        let provable = self.readings.provable(account.terms.filter.as_ref(), spent, self.delta)?;
        Ok(Spent { claimed, provable })
    }

    /// What is proved of a device's releases if no noise of the channel is counted.
    pub fn spent_without_channel(&mut self, device: u32) -> Result<f64, PrivatizeError> {
        let account = &self.accounts[device as usize];
        let spent = add_up(account.others_without_channel, account.own_without_channel);
        self.readings.provable(account.terms.filter.as_ref(), spent, self.delta)
    }

    /// The paper's sum of epsilons of a device over this run.
    pub fn claimed(&self, device: u32) -> f64 {
        self.accounts[device as usize].claimed
    }

    /// For each device, what can be proved of all that the ledger has of it by now, and the
    /// largest budget that any run declared for it (0 where nothing is enforced), or that the device
    /// declared by itself, if it is elsewhere.
    pub fn ledger_readings(&mut self) -> Result<Vec<(f64, f64)>, PrivatizeError> {
        let mut declared = vec![0.0f64; self.accounts.len()];
        for terms in self.ledger.terms()? {
            if terms.data != self.data || terms.terms.epsilon.is_infinite() {
                continue;
            }
            if let Some(largest) = declared.get_mut(terms.device as usize) {
                *largest = largest.max(terms.terms.epsilon);
            }
        }
        let mut readings = Vec::with_capacity(declared.len());
        for (device, declared) in (0..).zip(declared) {
            let spent = self.ledger.spent(&self.data, device)?.unwrap_or_default();
            let account = &self.accounts[device as usize];
            let provable =
                self.readings.provable(account.terms.filter.as_ref(), spent, self.delta)?;
            readings.push((provable, account.declared.unwrap_or(declared)));
        }
        Ok(readings)
    }

    /// The last round of this run that the ledger has; 0 before the first.
    pub(crate) fn last_recorded(&self) -> Result<u32, PrivatizeError> {
        Ok(self.ledger.last_round(&self.run)?)
    }

    /// The ledger of the releases.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Every release on the ledger, of all runs, in the order of recording.
    pub fn releases(&self) -> Result<Vec<Recorded>, PrivatizeError> {
        Ok(self.ledger.releases()?)
    }

    /// The budget that each device was given before round 1; none where nothing is enforced.
    pub fn declared(&self, device: u32) -> Option<&Filter> {
        self.accounts[device as usize].terms.filter.as_ref()
    }

    /// True if devices are elsewhere, so that their budgets are what they declare.
    pub fn on_trust(&self) -> bool {
        self.accounts.iter().any(|account| account.declared.is_some())
    }

    /// What each release of a device declares, noise apart.
    pub fn release(&self, device: u32) -> &Release {
        &self.accounts[device as usize].terms.release
    }

    /// The public scale of a device's update without artificial noise; none where updates are not
    /// sent as amplitudes.
    pub fn quiet_scale(&self, device: u32) -> Result<Option<f64>, PrivatizeError> {
        let release = self.release(device);
        Ok(self.amplitudes.as_ref().map(|by| by.scale(release)).transpose()?)
    }

    /// σ_required if `part` of a device's budget is spent evenly over the rounds; none where
    /// devices have no budgets of their own, or those go by the release.
    pub fn even_sigma(&self, device: u32, part: f64) -> Result<Option<f64>, PrivatizeError> {
        let account = &self.accounts[device as usize];
        match &account.terms.filter {
            Some(filter) if !account.is_plan() => {
                let share = part * filter.capacity() / f64::from(self.rounds);
                account.terms.required(share, self.delta).map(Some)
            }
            _ => Ok(None),
        }
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
