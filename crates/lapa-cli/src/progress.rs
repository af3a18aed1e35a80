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
use lapa::optimize::Progress;

use crate::output::{say, visible};

/// Amount of progress to show.
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
    /// The mode that fits standard error, unless quiet.
    pub fn choose(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Bar,
            (false, false) => Self::Lines,
        }
    }

    /// Prints a notice, which is not progress.
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

/// A bar on a terminal, and the time of the last line elsewhere.
struct Display {
    mode: Mode,
    bar: Option<ProgressBar>,
    start: Instant,
    last: Option<Instant>,
}

/// A bar is redrawn no faster than this.
const BAR_INTERVAL: Duration = Duration::from_millis(100);
/// Plain lines come no faster than this, except the last.
const LINE_INTERVAL: Duration = Duration::from_secs(1);
/// Plain lines about a study come no faster than this.
const STUDY_INTERVAL: Duration = Duration::from_secs(10);

impl Display {
    fn new(mode: Mode) -> Self {
        Self { mode, bar: None, start: lapa::clock::now(), last: None }
    }

    /// True if it is time to show something; plain lines come once in an interval.
    fn is_due(&mut self, lines: Duration) -> bool {
        let interval = if self.mode == Mode::Bar { BAR_INTERVAL } else { lines };
        let since = self.last.unwrap_or(self.start);
        if self.mode == Mode::Quiet || since.elapsed() < interval {
            return false;
        }
        self.last = Some(lapa::clock::now());
        true
    }

    /// The bar, which is made if there is none.
    fn bar(&mut self, length: u64, style: &str) -> &ProgressBar {
        self.bar.get_or_insert_with(|| {
            // Unwrap safety: the templates are constants and well-formed.
            ProgressBar::new(length).with_style(ProgressStyle::with_template(style).unwrap())
        })
    }

    /// A line that stays.
    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(visible(text)),
            None => say(text),
        }
    }

    fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Shows how a data set is fetched. Says nothing while all is in the cache.
pub struct FetchProgress(Display);

impl FetchProgress {
    pub fn new(mode: Mode) -> Self {
        Self(Display::new(mode))
    }

    pub fn show(&mut self, event: FetchEvent) {
        let text = match event {
            FetchEvent::Trying { source } => format!("data: trying {source}"),
            FetchEvent::Rejected { source, reason } => format!("data: {source} rejected: {reason}"),
            FetchEvent::Waiting { lock } => {
                let lock = lock.display();
                return self.0.mode.notice(&format!("data: waiting for another process ({lock})"));
            }
            FetchEvent::Progress { file, bytes, total } => {
                if self.0.mode == Mode::Bar {
                    let bar = self.0.bar(total, "{msg} {bar:30} {bytes}/{total_bytes}");
                    bar.set_message(file);
                    bar.set_length(total);
                    bar.set_position(bytes);
                }
                return;
            }
            FetchEvent::Done { source, folder } => {
                format!("data: {source}, cached in {}", folder.display())
            }
        };
        self.0.finish();
        self.0.mode.notice(&text);
    }
}

/// Shows how the rounds go.
pub struct RoundProgress {
    display: Display,
    rounds: u32,
    accuracy: Option<f64>,
    first: u32,
}

impl RoundProgress {
    /// Progress of a run of which some rounds are `done`.
    pub fn new(mode: Mode, rounds: u32, done: u32) -> Self {
        let mut display = Display::new(mode);
        if mode == Mode::Bar {
            let style = "round {pos}/{len} {bar:30.cyan/blue} {msg} {elapsed} (ETA {eta})";
            let bar = display.bar(rounds.into(), style);
            bar.set_position(done.into());
            bar.reset_eta();
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { display, rounds, accuracy: None, first: done }
    }

    pub fn round(&mut self, record: &RoundRecord) {
        self.accuracy = record.accuracy.or(self.accuracy);
        let accuracy = match self.accuracy {
            Some(accuracy) => format!("accuracy {:.2} %", 100.0 * accuracy),
            None => "accuracy –".into(),
        };
        let (display, rounds) = (&mut self.display, self.rounds);
        if let Some(bar) = &display.bar {
            bar.set_message(accuracy);
            bar.set_position(record.round.into());
        } else if display.mode == Mode::Lines {
            let due = display.last.is_none_or(|last| last.elapsed() >= LINE_INTERVAL);
            if due || record.round == rounds {
                display.last = Some(lapa::clock::now());
                let done = f64::from(record.round - self.first);
                let left = f64::from(rounds - record.round);
                let eta = display.start.elapsed().as_secs_f64() / done * left;
                say(&format!("round {}/{rounds}  {accuracy}  ETA {eta:.0} s", record.round));
            }
        }
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        self.display.say(text);
    }

    pub fn finish(&mut self) {
        self.display.finish();
    }
}

/// Shows how an optimizer of powers goes.
pub struct ChoiceProgress {
    display: Display,
    name: String,
}

impl ChoiceProgress {
    pub fn new(mode: Mode, name: impl Into<String>) -> Self {
        Self { display: Display::new(mode), name: name.into() }
    }

    pub fn show(&mut self, progress: &Progress) {
        if !self.display.is_due(LINE_INTERVAL) {
            return;
        }
        let Progress { evaluations, of, .. } = *progress;
        let best = format!("J {:.4e}", progress.best);
        if self.display.mode == Mode::Lines {
            return say(&format!("{}: {evaluations}/{of} evaluations  {best}", self.name));
        }
        let style = "{prefix} {pos}/{len} {bar:30.cyan/blue} {msg} {elapsed} (ETA {eta})";
        let bar = self.display.bar(of, style);
        bar.set_prefix(self.name.clone());
        bar.set_message(best);
        bar.set_position(evaluations);
    }

    pub fn finish(&mut self) {
        self.display.finish();
    }
}

/// Shows how the attacks of an audit go, one after the other.
pub struct AuditProgress {
    display: Display,
    /// Name of the step under way.
    shown: String,
    /// Each warning is said once, though several runs are repeated.
    warned: BTreeSet<String>,
}

impl AuditProgress {
    pub fn new(mode: Mode) -> Self {
        Self { display: Display::new(mode), shown: String::new(), warned: BTreeSet::new() }
    }

    pub fn show(&mut self, progress: &lapa_audit::Progress<'_>) {
        if let Some(warning) = progress.warning
            && self.warned.insert(warning.to_string())
        {
            self.display.say(&format!("warning: {warning}"));
        }
        if !self.display.is_due(STUDY_INTERVAL) {
            return;
        }
        let lapa_audit::Progress { attack, what, done, of, .. } = progress;
        let name = format!("{attack}: {what}");
        if self.display.mode == Mode::Lines {
            return say(&format!("{name} {done}/{of}"));
        }
        if self.shown != name {
            self.finish();
            self.shown = name;
        }
        let style = "{prefix} {pos}/{len} {bar:30.cyan/blue} {elapsed} (ETA {eta})";
        let bar = self.display.bar(*of, style);
        bar.set_prefix(self.shown.clone());
        bar.set_position(*done);
    }

    pub fn finish(&mut self) {
        self.display.finish();
    }
}

/// Shows how the cells of a study go. Their work is in samples.
pub struct StudyProgress {
    display: Display,
    cells: usize,
    done: usize,
    work: f64,
    finished: f64,
    /// Progress of the cells under way.
    under_way: BTreeMap<usize, f64>,
}

impl StudyProgress {
    pub fn new(mode: Mode, cells: usize, work: f64) -> Self {
        let mut display = Display::new(mode);
        if mode == Mode::Bar && cells > 0 {
            display.bar(1000, "{bar:30.cyan/blue} {msg}, {elapsed} elapsed");
        }
        Self { display, cells, done: 0, work, finished: 0.0, under_way: BTreeMap::new() }
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
        let due = self.display.is_due(STUDY_INTERVAL);
        if self.display.mode == Mode::Quiet || !(due || last) {
            return;
        }
        let done = self.finished + self.under_way.values().sum::<f64>();
        let seconds = self.display.start.elapsed().as_secs_f64();
        let eta = if done > 0.0 {
            duration(seconds * (self.work - done).max(0.0) / done)
        } else {
            "–".into()
        };
        let text = format!("{}/{} runs  ETA {eta}", self.done, self.cells);
        match &self.display.bar {
            Some(bar) => {
                bar.set_position((1000.0 * done / self.work) as u64);
                bar.set_message(text);
            }
            None => say(&text),
        }
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        self.display.say(text);
    }

    pub fn end(&mut self) {
        self.display.finish();
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
