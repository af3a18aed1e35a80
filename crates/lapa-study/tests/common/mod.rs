//! Small quick cells.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use lapa::config::{ConfigError, Data, Experiment, Override};
use lapa::data::{DataName, Split};
use lapa_study::cell::Cell;
use lapa_study::execute::{Datasets, Event, Executed, execute};
use lapa_study::store::Store;

/// Data sets of the cells.
pub const SYNTHETIC: Data = Data { name: DataName::Synthetic, classes: None };

/// The first few hundred synthetic digits.
pub fn data() -> Datasets {
    static DATA: OnceLock<Datasets> = OnceLock::new();
    let data = DATA.get_or_init(|| {
        let mut data = SYNTHETIC.load(&mut |_| {}).unwrap();
        let shorten = |split: &mut Split, len: usize| {
            *split = split.select(&(0..len as u32).collect::<Vec<_>>());
        };
        shorten(&mut data.train, 600);
        shorten(&mut data.test, 100);
        Datasets::from([(SYNTHETIC.into(), data)])
    });
    data.clone()
}

/// Four devices and a small model; `changes` win.
pub fn experiment(changes: &[Override]) -> Result<Experiment, ConfigError> {
    let text = "
        data.name = 'synthetic'
        run = { rounds = 6, seed = 3, evaluate_every = 2 }
        model.name = 'logistic'
        learn = { batch_fraction = 0.25, momentum = 0 }
        privacy = { epsilon = 20 }
        partition.mix = { iid = 2, non_iid = 2, iid_samples = [60, 120], non_iid_samples = [60, 120] }
    ";
    Experiment::from_toml(text, "test", changes)
}

/// More samples than there are: refused when the run begins, not when the file is read.
pub const TOO_MANY: &str = "partition.mix.iid_samples=[5000,6000]";

/// Events of cells, in order.
#[derive(Default)]
pub struct Heard {
    pub started: Vec<usize>,
    pub finished: Vec<usize>,
    pub failed: Vec<usize>,
    pub warnings: Vec<String>,
}

/// Runs cells and listens; breaks off once `most` are finished.
pub fn run(cells: &[Cell], store: &Store, threads: usize, most: usize) -> (Executed, Heard) {
    let mut heard = Heard::default();
    let executed = execute(cells, store, &data(), threads, &mut |event| {
        match event {
            Event::Started { cell } => heard.started.push(cell),
            Event::Finished { cell, .. } => heard.finished.push(cell),
            Event::Failed { cell, .. } => heard.failed.push(cell),
            Event::Round { .. } => {}
            Event::Warning { warning, .. } => heard.warnings.push(warning.into()),
        }
        if heard.finished.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    (executed.unwrap(), heard)
}
