//! The page of an audit: what each attack found, beside what was claimed and proved.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lapa::budget::round_up;
use lapa::files::Folder;
use lapa_report::page::{Badge, Entry, Page, Table};
use serde_json::Value;

use crate::{Attack, Audit, AuditError, Exhibit, Finding, Statement, Verdict};

/// What every reader of an audit has to know.
pub const CAVEAT: &str = "An audit can only refute. A bound above a claim shows, with the stated \
                          confidence, that the claim is false. A bound below it proves nothing: a \
                          better attack may succeed.";

/// Caveat of every finding on the paper.
const ASIDE: &str = "No run says this of itself, and it bounds no ε: the verdicts on this run do not \
                     depend on it, nor does the exit code.";

impl Audit {
    /// Writes audit.html, audit.json and the drawings into `folder`; returns the page.
    pub fn write(&self, folder: &Folder) -> Result<PathBuf, AuditError> {
        let mut json = serde_json::to_string_pretty(&self.findings)
            .map_err(|error| failed(&folder.path().join("audit.json"), io::Error::other(error)))?;
        json.push('\n');
        put(folder, "audit.json", &json)?;
        for exhibit in self.findings.iter().flat_map(|finding| &finding.exhibits) {
            if let Exhibit::Drawing { name, svg, .. } = exhibit {
                let plots = folder.subfolder("plots");
                let plots = plots.map_err(|source| failed(folder.path(), source))?;
                put(&plots, &format!("{name}.svg"), svg)?;
            }
        }
        put(folder, "audit.html", &self.page())
    }

    /// The page as HTML.
    pub fn page(&self) -> String {
        let mut page = Page::new(&format!("Audit of {}", self.name));
        page.lead(&self.lead());
        page.section("Verdicts").note(CAVEAT);
        page.table(self.verdicts());
        self.notes.iter().for_each(|note| {
            page.paragraph(note);
        });
        for finding in self.about_the_run() {
            page.section(title(finding.attack));
            page.paragraph(about(finding.attack));
            match finding.verdict {
                Verdict::Refuted => page.warning(&finding.reason),
                _ => page.paragraph(&finding.reason),
            };
            show(finding, &mut page);
        }
        for finding in self.about_the_paper() {
            page.section("A sentence of the paper, not of this run");
            page.note(ASIDE);
            page.paragraph(about(finding.attack));
            let mut table = Table::new("", &["question", "standing"]);
            let standing = Entry::badge(badge(finding.verdict), finding.verdict.text());
            table.row([Entry::from(title(finding.attack)), standing]);
            page.table(table).paragraph(&finding.reason);
            show(finding, &mut page);
        }
        page.section("What was repeated");
        page.details("The whole configuration", &self.configuration);
        page.finish()
    }

    fn lead(&self) -> String {
        let Statement { epsilon_claimed_total, epsilon_provable, delta } = self.statement;
        let refuted: Vec<String> = self
            .about_the_run()
            .filter(|finding| finding.verdict == Verdict::Refuted)
            .map(|finding| finding.attack.to_string())
            .collect();
        let verdict = match refuted.is_empty() {
            true => "No attack refuted a claim; that is no proof.".to_owned(),
            false => format!("Refuted by: {}.", refuted.join(", ")),
        };
        format!(
            "The paper's sum over all devices: ε = {}. Provable for the worst device: ε = {}, at δ = \
             {delta:e}. {verdict}",
            round_up(epsilon_claimed_total),
            round_up(epsilon_provable),
        )
    }

    fn verdicts(&self) -> Table {
        let headers = [
            "attack",
            ">ε at least",
            ">ε at least, Gaussian",
            ">the paper's sum, all devices",
            ">provable, worst device",
            "verdict",
        ];
        let mut table = Table::new("", &headers);
        let said = |epsilon: Option<f64>| epsilon.map_or("–".into(), round_up);
        for finding in self.about_the_run() {
            table.row([
                Entry::from(finding.attack.to_string()),
                at_least(finding.epsilon_lower).into(),
                at_least(finding.epsilon_lower_gdp).into(),
                said(finding.epsilon_claimed_total).into(),
                said(finding.epsilon_provable).into(),
                Entry::badge(badge(finding.verdict), finding.verdict.text()),
            ]);
        }
        table
    }
}

/// A lower bound with four digits behind the point, never rounded up.
pub fn at_least(bound: Option<f64>) -> String {
    match bound {
        None => "–".into(),
        Some(bound) if bound.is_infinite() => "∞".into(),
        Some(bound) => format!("{:.4}", (bound * 1e4).floor() / 1e4),
    }
}

fn badge(verdict: Verdict) -> Badge {
    match verdict {
        Verdict::Refuted => Badge::Bad,
        Verdict::NotRefuted | Verdict::Confirmed => Badge::Good,
        Verdict::NotJudged => Badge::Unknown,
        Verdict::NotConfirmed => Badge::Mixed,
    }
}

/// Pictures of an attack, and its own figures.
fn show(finding: &Finding, page: &mut Page) {
    for exhibit in &finding.exhibits {
        match exhibit {
            Exhibit::Text(text) => page.paragraph(text),
            Exhibit::Table(table) => page.table(table.clone()),
            Exhibit::Drawing { svg, caption, .. } => page.figure(svg, caption),
        };
    }
    page.table(figures(finding));
}

/// The attack's own figures that are single values.
fn figures(finding: &Finding) -> Table {
    let mut table = Table::new("Figures", &["figure", ">value"]);
    table.row(["confidence".to_owned(), finding.confidence.to_string()]);
    for (name, value) in &finding.figures {
        let value = match value {
            Value::Number(number) => number.as_f64().map_or(number.to_string(), short),
            Value::String(text) => text.clone(),
            Value::Bool(truth) => truth.to_string(),
            // Lists are for programs; drawings and tables show them.
            Value::Null | Value::Array(_) | Value::Object(_) => continue,
        };
        table.row([name.replace('_', " "), value]);
    }
    table
}

fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1e-3..1e6 if value.fract() == 0.0 => format!("{value}"),
        1e-3..1e6 => format!("{value:.4}"),
        _ => format!("{value:.3e}"),
    }
}

fn title(attack: Attack) -> &'static str {
    match attack {
        Attack::Mechanism => "The mechanism, drawn many times",
        Attack::Canary => "Canaries in one run",
        Attack::Membership => "Membership inference",
        Attack::Inversion => "Images out of gradients",
        Attack::Leakage => "Does the risk fall over rounds?",
        Attack::Ledger => "The transcript against the ledger",
    }
}

fn about(attack: Attack) -> &'static str {
    match attack {
        Attack::Mechanism => {
            "All releases of one device over the whole run are drawn again and again, with one \
             record in its data and without it; the best test there is tries to tell which."
        }
        Attack::Canary => {
            "Records made to be noticed are put into the devices' data or left out, each by a coin. \
             Whoever sees what the base station received guesses the coins."
        }
        Attack::Membership => {
            "The base station has a data set that overlaps the devices' and compares the model's \
             losses on records that may have been trained on."
        }
        Attack::Inversion => {
            "An image is sought whose gradient is the one that was sent: exact where arithmetic \
             allows it, else by descent."
        }
        Attack::Leakage => {
            "The paper says that the risk of leakage falls about exponentially as training \
             converges. The same attack is made at models along the run."
        }
        Attack::Ledger => {
            "The ledger says how much noise each release had. What was received is held against \
             it: how much it scatters, and whether devices or rounds share their noise."
        }
    }
}

fn put(folder: &Folder, name: &str, text: &str) -> Result<PathBuf, AuditError> {
    let path = folder.path().join(name);
    match folder.replace(name, |file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(path),
        Err(source) => Err(failed(&path, source)),
    }
}

fn failed(path: &Path, source: io::Error) -> AuditError {
    AuditError::Io { path: path.into(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lapa_report::page::check::check;

    use super::*;

    fn audit() -> Audit {
        let statement =
            Statement { epsilon_claimed_total: 2.0, epsilon_provable: 8.0, delta: 1e-5 };
        let finding = |attack| Finding::new(attack, &statement, 0.95).figure("draws", 1000);
        let svg = "<svg width=\"9\"><g id=\"a\"></g></svg>".to_owned();
        let drawing = Exhibit::Drawing { name: "roc".into(), svg, caption: "<ROC>".into() };
        Audit {
            name: "<run>".into(),
            statement,
            findings: vec![
                finding(Attack::Canary).judge(3.0, None).show(drawing),
                finding(Attack::Inversion).show(Exhibit::Text("a & b".into())),
                Finding { verdict: Verdict::NotConfirmed, ..finding(Attack::Leakage) },
            ],
            configuration: "x = 1".into(),
            notes: vec!["Repeated.".into()],
        }
    }

    #[test]
    fn the_page_is_whole_and_says_that_audits_only_refute() {
        let html = audit().page();
        check(&html).unwrap();
        assert!(html.contains(CAVEAT) && html.contains("Refuted by: canary."));
    }

    /// Lead and verdicts are about the run; the paper's sentence comes after them, in words of its
    /// own and without an ε.
    #[test]
    fn a_sentence_of_the_paper_stands_apart() {
        let mut audit = audit();
        audit.findings.remove(0);
        assert!(!audit.is_refuted());
        let html = audit.page();
        check(&html).unwrap();
        assert!(!html.contains("Refuted by") && html.contains("No attack refuted a claim"));
        let (run, paper) =
            html.split_once("A sentence of the paper, not of this run</h2>").unwrap();
        assert!(!run.contains("leakage") && !run.contains("not confirmed"));
        let badge = "<span class=\"badge mixed\">paper&#39;s statement not confirmed</span>";
        assert!(paper.contains(badge) && paper.contains("bounds no ε"));
        let json = serde_json::to_value(&audit.findings).unwrap();
        assert_eq!(json[1]["verdict"], "not-confirmed");
        assert!(
            json[1]["epsilon_claimed_total"].is_null() && json[1]["epsilon_provable"].is_null()
        );
    }

    #[test]
    fn page_findings_and_drawings_are_left_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let page = audit().write(&Folder::open(folder.path()).unwrap()).unwrap();
        assert_eq!(page, folder.path().join("audit.html"));
        let json = fs::read_to_string(folder.path().join("audit.json")).unwrap();
        let findings: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(findings[0]["verdict"], "refuted");
        assert_eq!(findings[1]["verdict"], "not-judged");
        assert!(folder.path().join("plots/roc.svg").is_file());
    }

    #[test]
    fn lower_bounds_are_never_rounded_up() {
        assert_eq!(at_least(Some(4.231_99)), "4.2319");
        assert_eq!(at_least(None), "–");
    }
}
