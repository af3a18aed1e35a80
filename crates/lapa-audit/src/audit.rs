//! All attacks on a subject, one after the other.

use crate::{
    Attack, AuditError, Finding, Listener, Options, Statement, Subject, Verdict, canary, inversion,
    ledger, mechanism, membership, repeat,
};

/// Note on the repeated run.
const REPEATED: &str = "The run was repeated in memory with canaries among its records. Its folder \
                        and its ledger are unchanged, and no budget was spent.";

/// Result of an audit.
pub struct Audit {
    /// Name of the subject, as users know it.
    pub name: String,
    /// Privacy statement of the run.
    pub statement: Statement,
    /// Findings of the attacks.
    pub findings: Vec<Finding>,
    /// The configuration that was repeated.
    pub configuration: String,
    /// Notes on how the run was repeated, in sentences.
    pub notes: Vec<String>,
}

impl Audit {
    /// Makes `attacks` on `subject`, and compares what they find with `statement`: what a finished
    /// run says of itself. Where there is none, it is what the repeated run says.
    pub fn run(
        name: String,
        subject: &Subject,
        statement: Option<Statement>,
        attacks: &[Attack],
        options: &Options,
        listener: &mut Listener<'_>,
    ) -> Result<Self, AuditError> {
        // One repeated run serves all attacks that read its transcript or its ledger.
        let reads =
            |attack: &Attack| matches!(attack, Attack::Mechanism | Attack::Canary | Attack::Ledger);
        let (statement, repeated) = match statement {
            Some(statement) if !attacks.iter().any(reads) => (statement, None),
            stated => {
                let repeated = repeat(subject, options, listener)?;
                (stated.unwrap_or(repeated.statement), Some(repeated))
            }
        };
        let mut findings = Vec::new();
        if let Some(repeated) = &repeated {
            if attacks.contains(&Attack::Mechanism) {
                findings.push(mechanism::run(repeated, &statement, options, listener)?);
            }
            if attacks.contains(&Attack::Canary) {
                findings.push(canary::run(repeated, &statement, options));
            }
            if attacks.contains(&Attack::Ledger) {
                findings.push(ledger::run(repeated, &statement, options));
            }
        }
        if attacks.contains(&Attack::Membership) {
            findings.extend(membership::run(subject, &statement, options, listener)?);
        }
        if attacks.contains(&Attack::Inversion) || attacks.contains(&Attack::Leakage) {
            let found = inversion::run(subject, &statement, options, listener)?;
            findings.extend(found.into_iter().filter(|finding| attacks.contains(&finding.attack)));
        }
        Ok(Self {
            name,
            statement,
            findings,
            configuration: subject.experiment.to_toml(),
            notes: repeated.iter().map(|_| REPEATED.into()).collect(),
        })
    }

    /// True if a claim about the run's privacy is refuted.
    pub fn is_refuted(&self) -> bool {
        self.about_the_run().any(|finding| finding.verdict == Verdict::Refuted)
    }

    /// The findings on what is said of the run.
    pub fn about_the_run(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.attack.is_about_the_run())
    }

    /// The findings on sentences of the paper, which no run says of itself.
    pub fn about_the_paper(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.attack.is_about_the_run())
    }
}
