//! One round: the order of the stages, and nowhere else.

use std::time::Instant;

use crate::federation::{Federation, FederationError};
use crate::observe::RoundRecord;

impl Federation {
    /// Runs the next round: select → grant → learn → privatize → transmit → aggregate → observe.
    /// Releases are granted and on record before anything is computed.
    pub fn next_round(&mut self) -> Result<RoundRecord, FederationError> {
        let start = Instant::now();
        let round = self.round + 1;
        self.pretrain();
        self.collect_histograms()?;
        let devices = self.participants(round);
        let selection = self.select(round, &devices)?;
        let (granted, decision) = self.grant(round, &selection.chosen)?;
        self.learn(round, &granted)?;
        let sent = self.privatize(round, &granted)?;
        self.received = self.transmit(round, &granted, sent)?;
        let weights = self.weights(&granted);
        self.delta.combine(&weights, &self.received);
        self.step();
        self.show_transcript(round, &granted, &weights);
        self.round = round;
        let evaluation = self.evaluate_if_due()?;
        self.record(&granted, &selection.passed_over, decision, &weights, evaluation, start)
    }
}
