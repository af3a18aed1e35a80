//! One round: the order of the stages, and nowhere else.

use std::time::Instant;

use crate::aggregate;
use crate::federation::{Federation, FederationError};
use crate::observe::RoundRecord;

impl Federation {
    /// Runs the next round: learn → aggregate → observe.
    pub fn next_round(&mut self) -> Result<RoundRecord, FederationError> {
        let start = Instant::now();
        let round = self.round + 1;
        let devices = self.participants(round);
        self.learn(round, &devices)?;
        let weights = aggregate::fedavg(&self.updates);
        self.delta.combine(&weights, &self.updates);
        let learn = &self.experiment.learn;
        self.model.apply(&self.delta, learn.learning_rate, learn.momentum);
        self.round = round;
        let evaluation = self.evaluation_due().then(|| self.evaluate());
        if evaluation.is_some_and(|(_, loss)| !loss.is_finite()) {
            let learning_rate = learn.learning_rate;
            return Err(FederationError::LossNotFinite { round, learning_rate });
        }
        Ok(self.record(&devices, &weights, evaluation, start))
    }
}
