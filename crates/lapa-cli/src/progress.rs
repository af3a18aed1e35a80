//! Progress on standard error: a bar on a terminal, plain lines otherwise, nothing if quiet.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lapa::data::FetchEvent;
use lapa::observe::RoundRecord;
use lapa_control::optimize::Progress;

use crate::output::{say, visible};

/// How much is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A live bar.
    Bar,
    /// A line now and then.
    Lines,
    /// Nothing.
    Quiet,
}

impl Mode {
    /// What fits standard error, unless quiet.
    pub fn choose(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Bar,
            (false, false) => Self::Lines,
        }
    }

    /// Says something that is not progress but must be known.
    pub fn notice(self, text: &str) {
        if self != Self::Quiet {
            say(text);
        }
    }
}

/// Does `work`, and says from time to time that it is not over where it takes longer than a second.
pub fn patiently<T>(mode: Mode, what: &str, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (working, over) = mpsc::channel::<()>();
        scope.spawn(move || {
            let (start, mut pause) = (lapa::clock::now(), Duration::from_secs(1));
            while over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let seconds = start.elapsed().as_secs_f64();
                mode.notice(&format!("{what} … {} so far", duration(seconds)));
                pause = Duration::from_secs(5);
            }
        });
        let result = work();
        drop(working);
        result
    })
}

/// Shows how a data set is fetched. Says nothing while all is in the cache.
pub struct FetchProgress {
    mode: Mode,
    bar: Option<ProgressBar>,
}

impl FetchProgress {
    pub fn new(mode: Mode) -> Self {
        Self { mode, bar: None }
    }

    pub fn show(&mut self, event: FetchEvent) {
        match event {
            FetchEvent::Trying { source } => {
                self.clear();
                self.mode.notice(&format!("data: trying {source}"));
            }
            FetchEvent::Rejected { source, reason } => {
                self.clear();
                self.mode.notice(&format!("data: {source} rejected: {reason}"));
            }
            FetchEvent::Waiting { lock } => {
                let lock = lock.display();
                self.mode.notice(&format!("data: waiting for another process ({lock})"));
            }
            FetchEvent::Progress { file, bytes, total } if self.mode == Mode::Bar => {
                let bar = self.bar.get_or_insert_with(|| {
                    // Unwrap safety: the template is a constant and well-formed.
                    let style = "{msg} {bar:30} {bytes}/{total_bytes}";
                    ProgressBar::new(total).with_style(ProgressStyle::with_template(style).unwrap())
                });
                bar.set_message(file);
                bar.set_length(total);
                bar.set_position(bytes);
            }
            FetchEvent::Progress { .. } => {}
            FetchEvent::Done { source, folder } => {
                self.clear();
                self.mode.notice(&format!("data: {source}, cached in {}", folder.display()));
            }
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Shows how the rounds go.
pub struct RoundProgress {
    mode: Mode,
    bar: Option<ProgressBar>,
    rounds: u32,
    accuracy: Option<f64>,
    first: u32,
    start: Instant,
    last_line: Option<Instant>,
}

/// Plain lines come no faster than this, except the last.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

impl RoundProgress {
    pub fn new(mode: Mode, rounds: u32) -> Self {
        let start = lapa::clock::now();
        Self { mode, bar: None, rounds, accuracy: None, first: 0, start, last_line: None }
    }

    pub fn start(&mut self, done: u32) {
        (self.first, self.start) = (done, lapa::clock::now());
        if self.mode == Mode::Bar {
            // Unwrap safety: the template is a constant and well-formed.
            let style = "round {pos}/{len} {bar:30.cyan/blue} {msg} {elapsed} (ETA {eta})";
            let bar = ProgressBar::new(self.rounds.into())
                .with_style(ProgressStyle::with_template(style).unwrap())
                .with_position(done.into());
            bar.reset_eta();
            bar.enable_steady_tick(Duration::from_millis(200));
            self.bar = Some(bar);
        }
    }

    pub fn round(&mut self, record: &RoundRecord) {
        self.accuracy = record.accuracy.or(self.accuracy);
        let accuracy = match self.accuracy {
            Some(accuracy) => format!("accuracy {:.2} %", 100.0 * accuracy),
            None => "accuracy –".into(),
        };
        if let Some(bar) = &self.bar {
            bar.set_message(accuracy);
            bar.set_position(record.round.into());
        } else if self.mode == Mode::Lines {
            let due = self.last_line.is_none_or(|last| last.elapsed() >= LINE_INTERVAL);
            if due || record.round == self.rounds {
                self.last_line = Some(lapa::clock::now());
                let done = f64::from(record.round - self.first);
                let left = f64::from(self.rounds - record.round);
                let eta = self.start.elapsed().as_secs_f64() / done * left;
                let Self { rounds, .. } = self;
                say(&format!("round {}/{rounds}  {accuracy}  ETA {eta:.0} s", record.round));
            }
        }
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(visible(text)),
            None => say(text),
        }
    }

    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Shows how an optimizer of powers goes.
pub struct ChoiceProgress {
    mode: Mode,
    name: String,
    bar: Option<ProgressBar>,
    start: Instant,
    last: Option<Instant>,
}

/// A bar is redrawn no faster than this.
const BAR_INTERVAL: Duration = Duration::from_millis(100);

impl ChoiceProgress {
    pub fn new(mode: Mode, name: impl Into<String>) -> Self {
        Self { mode, name: name.into(), bar: None, start: lapa::clock::now(), last: None }
    }

    pub fn show(&mut self, progress: &Progress) {
        let interval = if self.mode == Mode::Bar { BAR_INTERVAL } else { LINE_INTERVAL };
        let since = self.last.unwrap_or(self.start);
        if self.mode == Mode::Quiet || since.elapsed() < interval {
            return;
        }
        self.last = Some(lapa::clock::now());
        let best = format!("J {:.4e}", progress.best);
        if self.mode == Mode::Lines {
            let Progress { evaluations, of, .. } = progress;
            say(&format!("{}: {evaluations}/{of} evaluations  {best}", self.name));
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            // Unwrap safety: the template is a constant and well-formed.
            let style = "{prefix} {pos}/{len} {bar:30.cyan/blue} {msg} {elapsed} (ETA {eta})";
            ProgressBar::new(progress.of)
                .with_style(ProgressStyle::with_template(style).unwrap())
                .with_prefix(self.name.clone())
        });
        bar.set_message(best);
        bar.set_position(progress.evaluations);
    }

    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Shows how the attacks of an audit go, one after the other.
pub struct AuditProgress {
    mode: Mode,
    /// What is under way, and its bar.
    bar: Option<(String, ProgressBar)>,
    start: Instant,
    last: Option<Instant>,
    /// Each warning is said once, though several runs are repeated.
    warned: BTreeSet<String>,
}

impl AuditProgress {
    pub fn new(mode: Mode) -> Self {
        Self { mode, bar: None, start: lapa::clock::now(), last: None, warned: BTreeSet::new() }
    }

    pub fn show(&mut self, progress: &lapa_audit::Progress<'_>) {
        if let Some(warning) = progress.warning
            && self.warned.insert(warning.to_string())
        {
            match &self.bar {
                Some((_, bar)) => bar.suspend(|| say(&format!("warning: {warning}"))),
                None => say(&format!("warning: {warning}")),
            }
        }
        let interval = if self.mode == Mode::Bar { BAR_INTERVAL } else { STUDY_INTERVAL };
        let since = self.last.unwrap_or(self.start);
        if self.mode == Mode::Quiet || since.elapsed() < interval {
            return;
        }
        self.last = Some(lapa::clock::now());
        let lapa_audit::Progress { attack, what, done, of, .. } = progress;
        let name = format!("{attack}: {what}");
        if self.mode == Mode::Lines {
            say(&format!("{name} {done}/{of}"));
            return;
        }
        if self.bar.as_ref().is_none_or(|(shown, _)| *shown != name) {
            self.finish();
            // Unwrap safety: the template is a constant and well-formed.
            let style = "{prefix} {pos}/{len} {bar:30.cyan/blue} {elapsed} (ETA {eta})";
            let bar = ProgressBar::new(*of)
                .with_style(ProgressStyle::with_template(style).unwrap())
                .with_prefix(name.clone());
            self.bar = Some((name, bar));
        }
        if let Some((_, bar)) = &self.bar {
            bar.set_position(*done);
        }
    }

    pub fn finish(&mut self) {
        if let Some((_, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Shows how the cells of a study go. Their work is in samples.
pub struct StudyProgress {
    mode: Mode,
    bar: Option<ProgressBar>,
    cells: usize,
    done: usize,
    work: f64,
    finished: f64,
    /// Of the cells under way.
    under_way: BTreeMap<usize, f64>,
    start: Instant,
    last: Option<Instant>,
}

/// Plain lines about a study come no faster than this.
const STUDY_INTERVAL: Duration = Duration::from_secs(10);

impl StudyProgress {
    pub fn new(mode: Mode, cells: usize, work: f64) -> Self {
        let bar = (mode == Mode::Bar && cells > 0).then(|| {
            // Unwrap safety: the template is a constant and well-formed.
            let style = "{bar:30.cyan/blue} {msg}, {elapsed} elapsed";
            ProgressBar::new(1000).with_style(ProgressStyle::with_template(style).unwrap())
        });
        let start = lapa::clock::now();
        let under_way = BTreeMap::new();
        Self { mode, bar, cells, done: 0, work, finished: 0.0, under_way, start, last: None }
    }

    /// A cell has done this much of its work.
    pub fn moved(&mut self, cell: usize, work: f64) {
        self.under_way.insert(cell, work);
        self.show(false);
    }

    /// A cell is over.
    pub fn finished(&mut self, cell: usize, work: f64) {
        self.under_way.remove(&cell);
        self.finished += work;
        self.done += 1;
        self.show(self.done == self.cells);
    }

    fn show(&mut self, last: bool) {
        let interval = if self.mode == Mode::Bar { BAR_INTERVAL } else { STUDY_INTERVAL };
        let due = self.last.unwrap_or(self.start).elapsed() >= interval;
        if self.mode == Mode::Quiet || !(due || last) {
            return;
        }
        self.last = Some(lapa::clock::now());
        let done = self.finished + self.under_way.values().sum::<f64>();
        let seconds = self.start.elapsed().as_secs_f64();
        let eta = if done > 0.0 {
            duration(seconds * (self.work - done).max(0.0) / done)
        } else {
            "–".into()
        };
        let text = format!("{}/{} runs  ETA {eta}", self.done, self.cells);
        match &self.bar {
            Some(bar) => {
                bar.set_position((1000.0 * done / self.work) as u64);
                bar.set_message(text);
            }
            None => say(&text),
        }
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(visible(text)),
            None => say(text),
        }
    }

    pub fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Seconds for people: `42 s`, `7 min`, `1 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6000.0 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}
