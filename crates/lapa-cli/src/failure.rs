//! Errors as a person sees them, and the exit code they lead to.

use std::process::ExitCode;

use lapa::blame::{Blame, chain};
use lapa::config::ConfigError;
use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report};

use crate::output::{say_drawn, visible};

/// Result of a command: an exit code, or an error.
pub type CommandResult = Result<ExitCode, Failure>;

/// The failure of a command.
pub struct Failure {
    /// Exit code: 1 for a failure, 2 for invalid input.
    code: u8,
    reports: Vec<Report>,
}

impl Failure {
    /// Bad usage or configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, reports: vec![Report::new(diagnostic(&message.into()))] }
    }

    /// Anything else.
    pub fn failed(error: impl std::error::Error) -> Self {
        Self { code: 1, reports: vec![Report::new(diagnostic(&chain(&error)))] }
    }

    /// Invalid configuration, with a report for each mistake.
    fn config(error: &ConfigError) -> Self {
        let mut reports: Vec<Report> =
            std::iter::once(error).chain(error.related()).map(mistake).collect();
        if error.more() > 0 {
            reports.push(Report::new(diagnostic(&format!("{} more mistakes", error.more()))));
        }
        Self { code: 2, reports }
    }

    /// Prints the errors and gives the exit code.
    pub fn report(self) -> ExitCode {
        self.reports.iter().for_each(|report| say_drawn(&format!("{report:?}")));
        ExitCode::from(self.code)
    }
}

fn diagnostic(message: &str) -> MietteDiagnostic {
    MietteDiagnostic::new(visible(message))
}

impl<E: Blame> From<E> for Failure {
    fn from(error: E) -> Self {
        match error.config() {
            Some(error) => Self::config(error),
            None if error.is_usage() => Self::usage(chain(&error)),
            None => Self::failed(error),
        }
    }
}

/// One mistake in a configuration, with the line that holds it.
fn mistake(error: &ConfigError) -> Report {
    let mut diagnostic = diagnostic(&format!("{}: {}", error.place(), error.message()));
    diagnostic.help = error.help().map(visible);
    match (error.file_name(), error.source_text(), error.span()) {
        (Some(name), Some(text), Some(span)) if is_short(text, &span) => {
            // The place of the span among the characters that are spelled out.
            let at = |byte: usize| text.get(..byte).map_or(0, |before| visible(before).len());
            let span = at(span.start)..at(span.end);
            diagnostic.labels = Some(vec![LabeledSpan::underline(span)]);
            let source = NamedSource::new(visible(name), visible(text));
            Report::new(diagnostic).with_source_code(source)
        }
        _ => Report::new(diagnostic),
    }
}

/// True if the place of an error and the lines around it are short enough to be shown.
fn is_short(text: &str, span: &std::ops::Range<usize>) -> bool {
    const MOST: usize = 2000;
    let (bytes, end) = (text.as_bytes(), text.len());
    let before = &bytes[span.start.saturating_sub(MOST)..span.start.min(end)];
    let after = &bytes[span.end.min(end)..(span.end + MOST).min(end)];
    // The line itself, and one more.
    let ends =
        |part: &[u8]| part.len() < MOST || part.iter().filter(|&&byte| byte == b'\n').count() >= 2;
    span.len() < MOST && ends(before) && ends(after)
}
