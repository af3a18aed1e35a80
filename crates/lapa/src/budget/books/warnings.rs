//! Warnings of the books, each given once.

use lapa_privacy::allocate::Basis;

use super::Books;
use crate::budget::Result;
use crate::config::Experiment;

impl Books {
    /// Warnings before round 1.
    pub(super) fn warn_at_start(
        &mut self,
        experiment: &Experiment,
        public_samples: &[u32],
    ) -> Result<()> {
        self.warn_of_delta(public_samples);
        self.warn_of_shared_noise();
        if self.is_noisy() && experiment.partition.scheme.shared().is_some() {
            self.warnings.push(
                "partition.scheme = \"virtual\": devices share records, so the guarantee is for a \
                 record of one device, not for all copies of an image"
                    .into(),
            );
        }
        if experiment.run.ledger.is_some() && self.ledger.is_new()? {
            self.warnings.push(format!(
                "new ledger {}: nothing was ever released on it, so all budgets are whole",
                self.ledger.path().display()
            ));
        }
        Ok(())
    }

    fn warn_of_delta(&mut self, public_samples: &[u32]) {
        let delta = self.budgets.first().map_or(0.0, |budget| budget.delta);
        let fewest = public_samples.iter().min().copied().unwrap_or_default();
        if self.is_noisy() && delta * f64::from(fewest) >= 1.0 {
            self.warnings.push(format!(
                "privacy.delta = {delta:e} is not below 1/{fewest}, one over the samples of the \
                 smallest device: a mechanism that reveals a record at random would pass"
            ));
        }
    }

    /// The paper counts the receiver's noise over NOMA, where devices share it.
    fn warn_of_shared_noise(&mut self) {
        let Some(budget) = self.budgets.first() else { return };
        if budget.noisy && budget.release.shared_channel {
            self.warnings.push(format!(
                "privacy.channel_trust = {} over NOMA with perfect cancellation: the paper counts \
                 receiver noise that the devices share; its claims do so here, the proven epsilon \
                 counts artificial noise alone",
                budget.trust
            ));
        }
    }

    /// The printed formula of σ holds for ε_k in (0, 1) only.
    pub(super) fn warn_of_range(&mut self, round: u32, device: u32, epsilon: f64) {
        let budget = self.budget(device);
        let claims = budget.basis == Basis::Paper && budget.noisy;
        if claims && epsilon >= 1.0 && !self.out_of_range {
            self.out_of_range = true;
            self.warnings.push(format!(
                "round {round}, device {device}: epsilon is {epsilon:.3}, but the printed formula \
                 for sigma holds for epsilon in (0, 1) only"
            ));
        }
    }

    /// Warnings since the last call.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}
