//! The answers of remote devices, as they arrived over a network.

use std::collections::BTreeMap;

use super::vet::{Dropped, Reason, vet};
use crate::error::FederationError;
use crate::federation::Asked;
use crate::observe::Insight;
use crate::radio::{Radio, Received};
use crate::round::Fleet;
use crate::station::Inbox;

/// A fleet whose answers are already here. Answers that no honest device gives are left out.
pub(super) struct Mailbox {
    pub answers: BTreeMap<u32, Vec<f32>>,
    pub dropped: Vec<Dropped>,
    pub missing: Vec<u32>,
}

impl Mailbox {
    pub fn new(answers: BTreeMap<u32, Vec<f32>>) -> Self {
        Self { answers, dropped: Vec::new(), missing: Vec::new() }
    }
}

impl Fleet for Mailbox {
    fn answers_all(&self, _: &Radio) -> bool {
        false
    }

    fn answer(
        &mut self,
        asked: &mut Asked,
        model: &[f32],
        _: &mut Radio,
        inbox: &mut Inbox,
    ) -> Result<Vec<Insight>, FederationError> {
        let mut received = Vec::new();
        for granted in &asked.granted {
            let device = granted.device;
            let Some(answer) = self.answers.remove(&device) else {
                self.missing.push(device);
                continue;
            };
            match vet(granted, &answer, model.len()) {
                Ok(()) => received.push(Received::new(device, answer, granted.sigma())),
                Err(reason) => self.dropped.push(Dropped { device, reason }),
            }
        }
        let others = std::mem::take(&mut self.answers).into_keys();
        let dropped = others.map(|device| Dropped { device, reason: Reason::NotAsked });
        self.dropped.extend(dropped);
        inbox.take(received);
        Ok(Vec::new())
    }
}
