//! Display of pilot, choice and run.

use std::ops::ControlFlow;

use lapa::config::{Control, Pilot};
use lapa_control::phases::PhaseEvent;

use super::flow;
use super::screen::Screen;
use crate::commands::power;
use crate::progress::{Mode, Steps};

/// Shows which of its three phases a run is in.
pub struct Phases {
    mode: Mode,
    pilot: &'static str,
    reached: u32,
    choice: Steps,
}

impl Phases {
    pub fn new(mode: Mode, control: &Control) -> Self {
        let pilot = match control.pilot {
            Pilot::Synthetic => "pilot run on synthetic digits (costs no privacy)",
            Pilot::Private(_) => "pilot run on the devices' own data (charged to their ledger)",
        };
        Self { mode, pilot, reached: 0, choice: Steps::new(mode) }
    }

    /// The last phase alone.
    pub fn last(mode: Mode) -> Self {
        Self { mode, pilot: "", reached: 3, choice: Steps::new(mode) }
    }

    /// Shows an event, and says whether to go on.
    pub fn show(&mut self, event: PhaseEvent<'_>, screen: &mut Screen) -> ControlFlow<()> {
        match event {
            PhaseEvent::Pilot(event) => {
                // The rehearsal comes after the search.
                self.choice.finish();
                self.reach(1, self.pilot);
                return screen.show(event);
            }
            PhaseEvent::Optimizing { optimizer, progress } => {
                self.reach(2, "optimizing transmit powers");
                self.choice.evaluation(&optimizer.to_string(), &progress);
            }
            PhaseEvent::Chosen(choice) => {
                self.finish();
                self.mode.notice(&power::sentence(choice));
            }
            PhaseEvent::Run(event) => {
                self.reach(3, "training");
                return screen.show(event);
            }
            PhaseEvent::Judged(sentence) => {
                screen.finish();
                self.mode.notice(sentence);
            }
        }
        flow()
    }

    fn reach(&mut self, phase: u32, what: &str) {
        if self.reached < phase {
            self.reached = phase;
            self.mode.notice(&format!("phase {phase} of 3: {what}"));
        }
    }

    pub fn finish(&mut self) {
        self.choice.finish();
    }
}
