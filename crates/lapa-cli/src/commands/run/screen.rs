//! Display of a run in progress.

use std::ops::ControlFlow;

use lapa::run::RunEvent;

use super::{flow, report};
use crate::commands::explain::protection;
use crate::output::count;
use crate::progress::{Mode, Steps};

/// Shows the events of a run.
pub struct Screen {
    mode: Mode,
    progress: Steps,
    rounds: u32,
    /// The links of the last round.
    pub links: String,
    /// Unit of protection and adversary of the run.
    pub protection: String,
}

impl Screen {
    pub fn new(mode: Mode) -> Self {
        let (links, protection) = (String::new(), String::new());
        Self { mode, progress: Steps::new(mode), rounds: 0, links, protection }
    }

    /// Shows an event, and says whether to go on.
    pub fn show(&mut self, event: RunEvent<'_>) -> ControlFlow<()> {
        let mode = self.mode;
        match event {
            RunEvent::Started { folder, done, simulation } => {
                let experiment = simulation.experiment();
                self.rounds = experiment.run.rounds;
                let data = simulation.data();
                let name = String::from(data.name.clone());
                mode.notice(&format!(
                    "{}, {name} ({}), {} parameters, {}, seed {}, {}\nfolder: {}",
                    count(simulation.records().devices(), "device"),
                    data.source,
                    simulation.network().parameter_count(),
                    count(experiment.run.rounds as usize, "round"),
                    experiment.run.seed,
                    count(simulation.threads(), "thread"),
                    folder.display(),
                ));
                self.protection = protection(experiment);
                match done {
                    0 => {}
                    done if done == self.rounds => mode.notice("all rounds are already finished"),
                    done => mode.notice(&format!("resuming after round {done}")),
                }
                self.progress = Steps::new(mode);
                self.progress.rounds(done, self.rounds);
            }
            RunEvent::Warning(text) => self.progress.say(&format!("warning: {text}")),
            RunEvent::Round(record) => {
                if record.round == self.rounds {
                    self.links = report::link_table(&record.devices);
                }
                self.progress.round(record, self.rounds);
            }
            RunEvent::Checkpoint { .. } => {}
            RunEvent::Finishing(_) => self.finish(),
        }
        flow()
    }

    pub fn finish(&mut self) {
        self.progress.finish();
    }
}
