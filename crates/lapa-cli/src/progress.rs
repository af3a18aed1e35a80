//! Progress on standard error: a bar on a terminal, plain lines otherwise, nothing if quiet.

use std::collections::BTreeMap;
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

/// Shows how a data set is fetched, and its features computed. Says nothing while all is in the cache.
pub struct FetchProgress(Display, Steps);

impl FetchProgress {
    pub fn new(mode: Mode) -> Self {
        Self(Display::new(mode), Steps::new(mode))
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
            FetchEvent::Features { features, done, of } => {
                self.1.show(features, done as u64, of as u64, "samples");
                if done == of {
                    self.1.finish();
                    self.1 = Steps::new(self.0.mode);
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

impl Drop for FetchProgress {
    /// Files of one's own are read without a word at the end.
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Shows how steps of one kind go, then those of the next: rounds, evaluations, repetitions.
pub struct Steps {
    display: Display,
    interval: Duration,
    /// What the steps are.
    what: String,
    /// Steps that were done when it began, and when it was shown last.
    first: u64,
    shown: u64,
    accuracy: Option<f64>,
}

impl Steps {
    pub fn new(mode: Mode) -> Self {
        let (interval, what) = (LINE_INTERVAL, String::new());
        Self { display: Display::new(mode), interval, what, first: 0, shown: 0, accuracy: None }
    }

    /// The same for long steps, of which plain lines come seldom.
    pub fn long(mode: Mode) -> Self {
        Self { interval: STUDY_INTERVAL, ..Self::new(mode) }
    }

    /// So many steps are done, the first time before any is.
    pub fn show(&mut self, what: &str, done: u64, of: u64, message: &str) {
        let begins = self.what != what;
        if begins {
            self.finish();
            (self.display, self.what) = (Display::new(self.display.mode), what.into());
            (self.first, self.shown) = (done, done);
        }
        let is_last = done == of && done != self.shown;
        if !(self.display.is_due(self.interval) || begins || is_last) {
            return;
        }
        self.shown = done;
        match self.display.mode {
            Mode::Quiet => {}
            Mode::Lines if done == self.first => {}
            Mode::Lines => {
                let left = of.saturating_sub(done) as f64 / (done - self.first) as f64;
                let eta = duration(self.display.start.elapsed().as_secs_f64() * left);
                let message = if message.is_empty() { "" } else { &format!("  {message}") };
                say(&format!("{what} {done}/{of}{message}  ETA {eta}"));
            }
            Mode::Bar => {
                let style = "{prefix} {pos}/{len} {bar:30.cyan/blue} {msg} {elapsed} (ETA {eta})";
                let bar = self.display.bar(of, style);
                bar.set_prefix(what.to_owned());
                bar.set_message(message.to_owned());
                bar.set_position(done);
                if begins {
                    bar.reset_eta();
                    bar.enable_steady_tick(Duration::from_millis(200));
                }
            }
        }
    }

    /// A round of a run is done.
    pub fn round(&mut self, record: &RoundRecord, rounds: u32) {
        self.accuracy = record.accuracy.or(self.accuracy);
        self.rounds(record.round, rounds);
    }

    /// So many rounds of a run are done, the first time before any is.
    pub fn rounds(&mut self, done: u32, rounds: u32) {
        let accuracy = match self.accuracy {
            Some(accuracy) => format!("accuracy {:.2} %", 100.0 * accuracy),
            None => "accuracy –".into(),
        };
        self.show("round", done.into(), rounds.into(), &accuracy);
    }

    /// J so far, as an optimizer of powers has it.
    pub fn evaluation(&mut self, optimizer: &str, progress: &Progress) {
        let Progress { evaluations, of, best } = *progress;
        self.show(optimizer, evaluations, of, &format!("J {best:.4e}"));
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        self.display.say(text);
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
