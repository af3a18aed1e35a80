//! The driver of a simulation: all rounds in a row, with a listener.

use std::ops::ControlFlow;

use super::Simulation;
use crate::error::{FederationError, Result};
use crate::observe::Cancelled;
use crate::observe::RoundRecord;

/// Events of a simulation.
pub enum Event<'a> {
    /// Something the user should know.
    Warning(&'a str),
    /// A round is over.
    Round(&'a RoundRecord),
}

/// A listener that may fail.
type Listener<'a, E> = dyn FnMut(&mut Simulation, Event<'_>) -> Result<ControlFlow<()>, E> + 'a;

impl Simulation {
    /// Runs the rounds that are left. The listener hears of each warning and round, and may break
    /// off after any: the error is then [`Cancelled`].
    pub fn run(
        &mut self,
        listener: &mut dyn FnMut(&Self, Event<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        match self
            .drive::<FederationError>(&mut |simulation, event| Ok(listener(simulation, event)))?
        {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Cancelled.into()),
        }
    }

    /// As [`Simulation::run`], for a listener that may fail. It breaks only before the last round
    /// is over.
    pub(crate) fn drive<E: From<FederationError>>(
        &mut self,
        listener: &mut Listener<'_, E>,
    ) -> Result<ControlFlow<()>, E> {
        let rounds = self.experiment().run.rounds;
        let mut flow = self.warn(listener)?;
        while self.round() < rounds {
            if flow.is_break() {
                return Ok(flow);
            }
            let record = self.next_round()?;
            flow = listener(self, Event::Round(&record))?;
            if self.warn(listener)?.is_break() {
                flow = ControlFlow::Break(());
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn warn<E>(&mut self, listener: &mut Listener<'_, E>) -> Result<ControlFlow<()>, E> {
        let mut flow = ControlFlow::Continue(());
        for warning in self.federation.take_warnings() {
            if listener(self, Event::Warning(&warning))?.is_break() {
                flow = ControlFlow::Break(());
            }
        }
        Ok(flow)
    }
}
