//! `lapa audit`: attacks on a run, and what they refute.

mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lapa::budget::round_up;
use lapa_audit::{Attack, Audit, AuditError, CAVEAT, Effort, Options, Verdict, at_least};

use super::run::{flow, stop_on_interrupt};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::progress::{AuditProgress, Mode};
use source::Audited;

/// Attack a run, and hold what leaked against what was claimed and proved.
///
/// Repeats the run's configuration in memory, with records of the attacker's own in it: the run's
/// folder and its ledger stay as they are, and no budget is spent. Every attack is one that the
/// paper's honest-but-curious base station could make, which sees all models and all that it
/// received, and has data that overlap the devices'.
///
///   mechanism    all releases of one device, drawn many times with and without one record; the
///                best test there is tells them apart
///   canary       records made to be noticed, in or out by a coin; the transcript tells the coins
///   membership   loss threshold, and LiRA with shadow models trained by this engine
///   inversion    labels and images out of gradients, early, middle and late, with and without
///                noise; and whether that risk falls over rounds as the paper says
///   ledger       whether what was received scatters as the ledger says it must
///
/// A lower bound on ε above a claim refutes it. Audits can only refute: attacks that fail prove
/// nothing. `ε at least` assumes nothing of the mechanism; `Gaussian` is sharper and refutes
/// claims about Gaussian noise.
///
/// Leaves in DIR: audit.html (one page, with plots and images), audit.json, plots/.
///
/// Exit codes: 0 no claim about the run was refuted, 1 one was or the audit failed, 2 bad usage.
///
/// Examples:
///   lapa audit runs/quickstart-1
///   lapa audit my.toml --attack canary,ledger --confidence 0.99
///   lapa audit my.toml -c privacy.epsilon=2 --attack membership --budget full --format json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// A finished run's folder, or a configuration [default: the quickstart].
    #[arg(value_name = "RUN|CONFIG")]
    subject: Option<PathBuf>,
    /// Change a key of a configuration, as `section.key=value`; may be given several times.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    change: Vec<String>,
    /// Which attacks.
    #[arg(long, value_enum, value_name = "NAME,…", value_delimiter = ',', default_value = "all")]
    attack: Vec<Name>,
    /// How sure every bound and verdict has to be, between 0 and 1.
    #[arg(long, value_name = "P", default_value = "0.95")]
    confidence: f64,
    /// How much work: minutes, or as much as sharp bounds need.
    #[arg(long, value_enum, default_value_t)]
    budget: Budget,
    /// Seed of the attacker's own choices: coins, draws, starts.
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// The folder for the results [default: RUN/audit, or audits/NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print no progress.
    #[arg(long)]
    quiet: bool,
    /// How the result is printed: a table, or an array of findings.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What `--attack` takes.
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

/// What `--budget` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Budget {
    #[default]
    Quick,
    Full,
}

pub fn execute(arguments: Arguments) -> Outcome {
    let mode = Mode::choose(arguments.quiet);
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
    let mut progress = AuditProgress::new(mode);
    let audit = audited.audit(&attacks, &options, &mut |step| {
        progress.show(&step);
        flow()
    });
    progress.finish();
    let audit = match audit {
        Err(AuditError::Cancelled(_)) => {
            output::say("\nstopped: an audit leaves nothing before its end");
            return Ok(ExitCode::FAILURE);
        }
        audit => audit?,
    };
    let page = audit.write(&out)?;
    match arguments.format {
        Format::Json => output::json(&audit.findings)?,
        Format::Text => output::text_out(&text(&audit, &page))?,
    }
    Ok(if audit.is_refuted() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn text(audit: &Audit, page: &Path) -> String {
    let said = |epsilon: Option<f64>| epsilon.map_or("–".into(), round_up);
    let rows: Vec<Vec<String>> = audit
        .about_the_run()
        .map(|finding| {
            vec![
                finding.attack.to_string(),
                at_least(finding.epsilon_lower),
                at_least(finding.epsilon_lower_gdp),
                said(finding.epsilon_claimed_total),
                said(finding.epsilon_provable),
                finding.verdict.text().to_owned(),
            ]
        })
        .collect();
    let header = ["attack", ">ε at least", ">Gaussian", ">paper's sum", ">provable", "verdict"];
    let mut text = output::table(&header, &rows);
    let confidence = audit.findings.first().map_or(0.0, |finding| finding.confidence);
    text += &format!(
        "at confidence {confidence}, δ {:e}; the paper's sum is over all devices, provable is for the \
         worst\n",
        audit.statement.delta
    );
    for finding in audit.about_the_run() {
        if finding.verdict != Verdict::NotRefuted {
            text += &format!("{}: {}\n", finding.attack, finding.reason);
        }
    }
    for finding in audit.about_the_paper() {
        text += &format!(
            "not about this run: {}, {}. {}\n",
            finding.attack,
            finding.verdict.text(),
            finding.reason
        );
    }
    for note in &audit.notes {
        text += &format!("{note}\n");
    }
    text += &format!("{CAVEAT}\nthe page is {}: open it in a browser\n", page.display());
    text
}
