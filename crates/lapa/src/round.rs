//! One round: the order of the stages, and nowhere else.

use std::time::Instant;

use crate::federation::{Federation, FederationError};
use crate::observe::RoundRecord;
use crate::transmit;

impl Federation {
    /// Runs the next round: grant → learn → privatize → transmit → aggregate → observe. Releases
    /// are granted and on record before anything is computed.
    pub fn next_round(&mut self) -> Result<RoundRecord, FederationError> {
        let start = Instant::now();
        let round = self.round + 1;
        let devices = self.participants(round);
        let (granted, decision) = self.grant(round, &devices)?;
        self.learn(round, &granted)?;
        let sent = self.privatize(round, &granted)?;
        self.received = sent.into_iter().map(transmit::error_free).collect();
        let weights = self.weights(&granted);
        self.delta.combine(&weights, &self.received);
        self.step();
        self.show_transcript(round, &granted, &weights);
        self.round = round;
        let evaluation = self.evaluate_if_due()?;
        self.record(&granted, decision, &weights, evaluation, start)
    }
}
