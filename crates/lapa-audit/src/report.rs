//! The page of an audit: what each attack found, beside what was claimed and proved.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lapa::budget::round_up;
use lapa::files::FileError;
use lapa::files::Folder;
use lapa_report::page::{Badge, Entry, Page, Table};
use serde_json::Value;

use crate::{Attack, Audit, AuditError, Exhibit, Finding, Statement, Verdict};

/// Caveat of every audit.
pub const CAVEAT: &str = "An audit can only refute. A lower bound above a claimed ε shows, at the \
                          stated confidence, that the claim is false. A lower bound below it proves \
                          nothing: a better attack may succeed.";

/// Caveat of every finding on the paper.
const ASIDE: &str = "This is a statement of the paper, not a claim of the run, and it bounds no ε. \
                     Neither the verdicts on this run nor the exit code depend on it.";

impl Audit {
    /// Writes audit.html, audit.json and the drawings into `folder`; returns the page.
    pub fn write(&self, folder: &Folder) -> Result<PathBuf, AuditError> {
        let mut json = serde_json::to_string_pretty(&self.findings)
            .map_err(|error| failed(&folder.path().join("audit.json"))(error.into()))?;
        json.push('\n');
        put(folder, "audit.json", &json)?;
        for exhibit in self.findings.iter().flat_map(|finding| &finding.exhibits) {
            if let Exhibit::Drawing { name, svg, .. } = exhibit {
                let plots = folder.subfolder("plots");
                let plots = plots.map_err(failed(folder.path()))?;
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
        for note in &self.notes {
            page.paragraph(note);
        }
        for finding in self.about_the_run() {
            let [title, text] = about(finding.attack);
            page.section(title).paragraph(text);
            match finding.verdict {
                Verdict::Refuted => page.warning(&finding.reason),
                _ => page.paragraph(&finding.reason),
            };
            show(finding, &mut page);
        }
        for finding in self.about_the_paper() {
            let [title, text] = about(finding.attack);
            page.section("A statement of the paper, not of this run").note(ASIDE).paragraph(text);
            let mut table = Table::new("", &["question", "result"]);
            let standing = Entry::badge(badge(finding.verdict), finding.verdict.text());
            table.row([Entry::from(title), standing]);
            page.table(table).paragraph(&finding.reason);
            show(finding, &mut page);
        }
        page.section("Audited configuration");
        page.details("Complete configuration", &self.configuration);
        page.finish()
    }

    fn lead(&self) -> String {
        let Statement { epsilon_claimed_total, epsilon_provable, delta } = self.statement;
        let refuted: Vec<String> = self
            .about_the_run()
            .filter(|finding| finding.verdict == Verdict::Refuted)
            .map(|finding| finding.attack.to_string())
            .collect();
        let verdict = if refuted.is_empty() {
            "No attack refuted a claim; this does not prove the claims.".to_owned()
        } else {
            format!("Refuted by: {}.", refuted.join(", "))
        };
        format!(
            "Proven for the worst device: ε ≤ {} at δ = {delta:e}. The paper's sum over all devices: ε \
             = {}. {verdict}",
            round_up(epsilon_provable),
            round_up(epsilon_claimed_total),
        )
    }

    fn verdicts(&self) -> Table {
        let headers = [
            "attack",
            ">measured: ε ≥",
            ">measured, if Gaussian: ε ≥",
            ">paper's sum, all devices",
            ">proven, worst device",
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
    let mut table = Table::new("Figures", &["quantity", ">value"]);
    table.row(["confidence".to_owned(), finding.confidence.to_string()]);
    for (name, value) in &finding.figures {
        let value = match value {
            Value::Number(number) => number.as_f64().map_or(number.to_string(), short),
            Value::String(text) => text.clone(),
            Value::Bool(truth) => truth.to_string(),
            // Lists are for programs; drawings and tables show them.
            Value::Null | Value::Array(_) | Value::Object(_) => continue,
        };
        table.row([label(name), value]);
    }
    table
}

/// A figure's name for readers.
fn label(name: &str) -> String {
    match name {
        "canary_norm" => "gradient norm of a canary, mean".into(),
        "canary_own_norm" => "part of it orthogonal to the other canaries".into(),
        "distance" => "distance between the two means".into(),
        "inclusion" => "probability that the record joins a batch".into(),
        "mu_lower" => "lower bound on μ (Gaussian DP)".into(),
        "p_noise" => "p-value: less noise than declared".into(),
        "p_devices" => "p-value: same noise on two devices".into(),
        "p_rounds" => "p-value: same noise in two rounds".into(),
        "p_sampling_rate" => "p-value: larger batches than declared".into(),
        "roc_area" => "area under the ROC curve".into(),
        "score_absent" => "mean score of absent canaries".into(),
        "score_present" => "mean score of present canaries".into(),
        _ => name.replace('_', " "),
    }
}

fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1e-3..1e6 if value.fract() == 0.0 => format!("{value}"),
        1e-3..1e6 => format!("{value:.4}"),
        _ => format!("{value:.3e}"),
    }
}

/// Title and description of an attack.
fn about(attack: Attack) -> [&'static str; 2] {
    match attack {
        Attack::Mechanism => [
            "Distinguishing test on the mechanism",
            "All releases of one device are drawn many times, with one record in its data and \
             without it. The optimal test (the likelihood ratio) guesses which.",
        ],
        Attack::Canary => [
            "Canaries in one run",
            "Canaries, crafted records, are included in the devices' data with probability ½ each. \
             An attacker who sees what the base station received guesses which were included.",
        ],
        Attack::Membership => [
            "Membership inference",
            "The base station holds a data set that overlaps the devices' data. It decides from the \
             model's losses which of its records were trained on.",
        ],
        Attack::Inversion => [
            "Gradient inversion",
            "The attack reconstructs training images from the gradients that were sent: exactly \
             where the model allows it, else by gradient descent.",
        ],
        Attack::Leakage => [
            "Does the leakage risk fall over the rounds?",
            "The paper states that the risk of leakage falls about exponentially as training \
             converges. This attack repeats gradient inversion at several rounds of the run.",
        ],
        Attack::Ledger => [
            "Transcript compared with the ledger",
            "The ledger records how much noise each release had. The received values are compared \
             with it: their spread, and whether devices or rounds share their noise.",
        ],
    }
}

fn put(folder: &Folder, name: &str, text: &str) -> Result<PathBuf, AuditError> {
    let path = folder.path().join(name);
    folder.replace(name, |file| file.write_all(text.as_bytes())).map_err(failed(&path))?;
    Ok(path)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    FileError::on("write", path)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        assert!(!html.contains("Refuted by") && html.contains("No attack refuted a claim"));
        let (run, paper) =
            html.split_once("A statement of the paper, not of this run</h2>").unwrap();
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
