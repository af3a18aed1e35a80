//! One round: the order of the stages, and nowhere else.

use std::time::Instant;

use crate::federation::{Federation, FederationError};
use crate::observe::RoundRecord;
use crate::privatize::{Decision, Granted};
use crate::transmit::Link;

/// What the devices of a round are asked for; all of it is on record.
pub(crate) struct Asked {
    /// Who may release what, by device.
    pub granted: Vec<Granted>,
    /// Devices that are told not to send.
    pub passed_over: Vec<Link>,
    /// What the grants were decided with.
    pub decision: Decision,
}

impl Federation {
    /// Runs the next round: select → grant → learn → privatize → transmit → aggregate → observe.
    /// Releases are granted and on record before anything is computed.
    pub fn next_round(&mut self) -> Result<RoundRecord, FederationError> {
        let start = Instant::now();
        let round = self.round + 1;
        self.pretrain();
        self.collect_histograms()?;
        let devices = self.participants(round);
        let asked = self.ask(&devices)?;
        let sent = self.learn_and_privatize(round, &asked.granted)?;
        self.received = self.transmit(round, &asked.granted, sent)?;
        self.conclude(&asked, &asked.granted, start)
    }

    /// The next round's first stages, before any device does anything: select → grant.
    pub(crate) fn ask(&mut self, devices: &[u32]) -> Result<Asked, FederationError> {
        let round = self.round + 1;
        let selection = self.select(round, devices)?;
        let (granted, decision) = self.grant(round, &selection.chosen)?;
        Ok(Asked { granted, passed_over: selection.passed_over, decision })
    }

    /// The next round's last stages, when what `answered` have sent is received: aggregate →
    /// observe.
    pub(crate) fn conclude(
        &mut self,
        asked: &Asked,
        answered: &[Granted],
        start: Instant,
    ) -> Result<RoundRecord, FederationError> {
        let round = self.round + 1;
        let weights = self.weights(answered);
        self.delta.combine(&weights, &self.received);
        self.step();
        self.show_transcript(round, answered, &weights);
        self.round = round;
        let evaluation = self.evaluate_if_due()?;
        self.record(asked, answered, &weights, evaluation, start)
    }
}
