//! Errors as a person sees them, and the exit code they lead to.

use std::process::ExitCode;

use lapa::config::ConfigError;
use lapa::data::DataError;
use lapa::federation::FederationError;
use lapa::observe::ObserveError;
use lapa::partition::PartitionError;
use lapa::plot::PlotError;
use lapa::privatize::PrivatizeError;
use lapa::run::RunError;
use lapa::transmit::LinkError;
use lapa_audit::AuditError;
use lapa_control::phases::PhaseError;
use lapa_study::report::ReportError;
use lapa_study::sweep::SweepError;
use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report};

use crate::output::{say_drawn, visible};

/// What a command returns: an exit code, or an error.
pub type Outcome = Result<ExitCode, Failure>;

/// Why a command failed.
pub struct Failure {
    /// 1: it failed; 2: it was asked for something that cannot be.
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

    /// Prints the errors and gives the exit code.
    pub fn report(self) -> ExitCode {
        self.reports.iter().for_each(|report| say_drawn(&format!("{report:?}")));
        ExitCode::from(self.code)
    }
}

fn diagnostic(message: &str) -> MietteDiagnostic {
    MietteDiagnostic::new(visible(message))
}

/// The error and its causes, where a cause says more than the error that wraps it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl From<ConfigError> for Failure {
    /// A report for each mistake.
    fn from(error: ConfigError) -> Self {
        let mut reports: Vec<Report> =
            std::iter::once(&error).chain(error.related()).map(mistake).collect();
        if error.more() > 0 {
            reports.push(Report::new(diagnostic(&format!("{} more mistakes", error.more()))));
        }
        Self { code: 2, reports }
    }
}

/// One mistake in a configuration, with the line that holds it.
fn mistake(error: &ConfigError) -> Report {
    let mut diagnostic = diagnostic(&format!("{}: {}", error.place(), error.message()));
    diagnostic.help = error.help().map(visible);
    match (error.file_name(), error.source_text(), error.span()) {
        (Some(name), Some(text), Some(span)) if is_short(text, &span) => {
            // Where the span is among the characters that are spelled out.
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

impl From<PartitionError> for Failure {
    fn from(error: PartitionError) -> Self {
        Self::usage(chain(&error))
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Config(error) => error.into(),
            RunError::Exists(_) | RunError::NoName(_) | RunError::NotARun(_) => {
                Self::usage(error.to_string())
            }
            RunError::Federation(
                FederationError::Partition(_)
                | FederationError::Model { .. }
                | FederationError::TooLarge(_)
                | FederationError::Links(_)
                | FederationError::Privatize(PrivatizeError::InitialSigma { .. }),
            ) => Self::usage(chain(&error)),
            _ => Self::failed(error),
        }
    }
}

impl From<PhaseError> for Failure {
    fn from(error: PhaseError) -> Self {
        match error {
            PhaseError::Run(error) => error.into(),
            PhaseError::Optimize(_)
            | PhaseError::Objective(_)
            | PhaseError::Training(_)
            | PhaseError::Observe(_)
            | PhaseError::Agent(_)
            | PhaseError::Io { .. } => Self::failed(error),
            _ => Self::usage(chain(&error)),
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Run(error) => error.into(),
            ReportError::Unfinished(_) => Self::usage(error.to_string()),
            _ => Self::failed(error),
        }
    }
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Federation(error) => RunError::from(error).into(),
            AuditError::RealReleases
            | AuditError::Confidence { .. }
            | AuditError::TooLarge { .. } => Self::usage(error.to_string()),
            _ => Self::failed(error),
        }
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Config(error) => error.into(),
            error => Self::usage(error.to_string()),
        }
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Self::failed(error)
    }
}

impl From<PlotError> for Failure {
    fn from(error: PlotError) -> Self {
        Self::failed(error)
    }
}

impl From<ObserveError> for Failure {
    fn from(error: ObserveError) -> Self {
        Self::failed(error)
    }
}
