//! `lapa audit`: attacks on a run, and what they refute.

mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lapa_audit::{Attack, Audit, AuditError, CAVEAT, Effort, Finding, Options, Verdict, at_least};

use super::run::{flow, stop_on_interrupt};
use crate::failure::{CommandResult, Failure};
use crate::output::{self, Column, Printing, or_dash};
use crate::progress::{Mode, Steps};
use source::Audited;

/// Attack a run and compare the measured leakage with the claimed and proven ε
///
/// Repeats the run's configuration in memory with records of the attacker in it. The run folder and
/// its ledger stay unchanged, and no budget is spent. All attacks are available to the paper's
/// honest-but-curious base station, which sees every model and every received update and holds data
/// that overlap the devices' data.
///
///   mechanism    releases of one device, drawn many times with and without one record; the
///                likelihood ratio test tells them apart
///   canary       canaries: crafted records, each included with probability ½; the attacker guesses
///                which from the transcript
///   membership   membership inference: loss threshold, and LiRA with shadow models
///   inversion    gradient inversion: labels and images reconstructed in early, middle and late
///                rounds, with and without noise; does the risk fall as the paper states?
///   ledger       statistical test that the received values have the noise that the ledger records
///
/// A lower bound above a claimed ε refutes the claim. Audits can only refute: failed attacks prove
/// nothing. The column `ε ≥` holds for any mechanism; `Gaussian ε ≥` is tighter and refutes claims
/// about Gaussian noise.
///
/// Writes to DIR: audit.html (one page with plots and images), audit.json, plots/.
///
/// Exit codes: 0 no claim about the run refuted, 1 a claim refuted or audit failed, 2 bad usage.
///
/// Examples:
///   lapa audit runs/quickstart-1
///   lapa audit my.toml --attack canary,ledger --confidence 0.99
///   lapa audit my.toml -c privacy.epsilon=2 --attack membership --budget full --format json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Folder of a finished run, or a configuration file [default: the quickstart].
    #[arg(value_name = "RUN|CONFIG")]
    subject: Option<PathBuf>,
    /// Set a key of the configuration, as `section.key=value`; repeatable.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    change: Vec<String>,
    /// Attacks to make.
    #[arg(long, value_enum, value_name = "NAME,…", value_delimiter = ',', default_value = "all")]
    attack: Vec<Name>,
    /// Confidence of every bound and verdict, between 0 and 1.
    #[arg(long, value_name = "P", default_value = "0.95")]
    confidence: f64,
    /// Effort: quick takes minutes, full as long as tight bounds need.
    #[arg(long, value_enum, default_value_t)]
    budget: Budget,
    /// Seed of the attacker's random choices.
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// Folder for the results [default: RUN/audit, or audits/NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

/// Values of `--attack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    All,
    Mechanism,
    Canary,
    Membership,
    Inversion,
    Ledger,
}

impl Name {
    fn attacks(self) -> &'static [Attack] {
        match self {
            Self::All => &Attack::ALL,
            Self::Mechanism => &[Attack::Mechanism],
            Self::Canary => &[Attack::Canary],
            Self::Membership => &[Attack::Membership],
            Self::Inversion => &[Attack::Inversion, Attack::Leakage],
            Self::Ledger => &[Attack::Ledger],
        }
    }
}

/// Values of `--budget`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Budget {
    #[default]
    Quick,
    Full,
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let mode = Mode::choose(arguments.printing.quiet);
    let effort = match arguments.budget {
        Budget::Quick => Effort::Quick,
        Budget::Full => Effort::Full,
    };
    let options = Options::new(arguments.confidence, effort, arguments.seed)
        .map_err(|error| Failure::usage(format!("--{error}")))?;
    let audited = Audited::read(arguments.subject.as_deref(), &arguments.change, mode)?;
    let out = audited.results(arguments.out.as_deref())?;
    stop_on_interrupt("stopping")?;
    let attacks: Vec<Attack> = Attack::ALL
        .into_iter()
        .filter(|attack| arguments.attack.iter().any(|name| name.attacks().contains(attack)))
        .collect();
    // Several runs are repeated, and each warning is said once.
    let (mut progress, mut warned) = (Steps::long(mode), BTreeSet::new());
    let audit = audited.audit(&attacks, &options, &mut |step| {
        if let Some(warning) = step.warning.filter(|&warning| warned.insert(warning.to_owned())) {
            progress.say(&format!("warning: {warning}"));
        }
        progress.show(&format!("{}: {}", step.attack, step.what), step.done, step.of, "");
        flow()
    });
    progress.finish();
    let audit = match audit {
        Err(AuditError::Cancelled(_)) => {
            output::say("\nstopped; an unfinished audit writes no results");
            return Ok(ExitCode::FAILURE);
        }
        audit => audit?,
    };
    let page = audit.write(&out)?;
    output::print(arguments.printing.format, &audit.findings, || text(&audit, &page))?;
    Ok(if audit.is_refuted() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn text(audit: &Audit, page: &Path) -> String {
    let columns: [Column<Finding>; 6] = [
        ("attack", |finding| finding.attack.to_string()),
        (">ε ≥", |finding| at_least(finding.epsilon_lower)),
        (">Gaussian ε ≥", |finding| at_least(finding.epsilon_lower_gdp)),
        (">paper's sum", |finding| or_dash(finding.epsilon_claimed_total)),
        (">proven ε", |finding| or_dash(finding.epsilon_provable)),
        ("verdict", |finding| finding.verdict.text().to_owned()),
    ];
    let mut text = output::columns(audit.about_the_run(), &columns);
    let confidence = audit.findings.first().map_or(0.0, |finding| finding.confidence);
    text += &format!(
        "confidence {confidence}, δ = {:e}; the paper's sum covers all devices, the proven ε is that of \
         the worst device\n",
        audit.statement.delta
    );
    for finding in audit.about_the_run() {
        if finding.verdict != Verdict::NotRefuted {
            text += &format!("{}: {}\n", finding.attack, finding.reason);
        }
    }
    for Finding { attack, verdict, reason, .. } in audit.about_the_paper() {
        text += &format!("not about this run: {attack}: {}. {reason}\n", verdict.text());
    }
    for note in &audit.notes {
        text += &format!("{note}\n");
    }
    text += &format!("{CAVEAT}\nReport: {} (open it in a browser)\n", page.display());
    text
}
