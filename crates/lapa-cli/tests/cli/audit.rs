//! `lapa audit`.

use tempfile::TempDir;

use super::*;

/// Five small devices whose budgets are proved.
const CERTIFIED: &str = "\
profile = 'certified'
data.name = 'synthetic'
model.name = 'logistic'
run = { rounds = 6, seed = 3 }
partition.mix = { iid = 2, non_iid = 3, iid_samples = 100, non_iid_samples = 120 }
privacy.epsilon = 2
";

fn place(config: &str) -> TempDir {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("small.toml"), config).unwrap();
    place
}

const FIELDS: [&str; 8] = [
    "attack",
    "epsilon_lower",
    "epsilon_lower_gdp",
    "confidence",
    "epsilon_claimed_total",
    "epsilon_provable",
    "verdict",
    "reason",
];

#[test]
fn a_sound_run_is_not_refuted_and_leaves_a_page() {
    let place = place(CERTIFIED);
    let folder = place.path();
    lapa(folder).args(["run", "small.toml", "--out", "r", "--quiet"]).assert().success();
    let before = names(&folder.join("r"));
    let ledger = fs::read(folder.join("r/ledger.db")).unwrap();
    let arguments = ["audit", "r", "--attack", "canary,ledger", "--quiet", "--format", "json"];
    let findings = stdout_json(lapa(folder).args(arguments));
    let findings = findings.as_array().unwrap();
    let attacks: Vec<_> = findings.iter().map(|finding| finding["attack"].clone()).collect();
    assert_eq!(attacks, ["canary", "ledger"]);
    for finding in findings {
        assert_eq!(keys(finding)[..FIELDS.len()], FIELDS);
        assert_eq!(finding["verdict"], "not-refuted", "{finding}");
        assert_eq!(finding["epsilon_provable"], 2.0);
    }
    // The run is as it was, but for the audit.
    assert_eq!(fs::read(folder.join("r/ledger.db")).unwrap(), ledger);
    let mut after = names(&folder.join("r"));
    after.retain(|name| name != "audit");
    assert_eq!(after, before);
    let page = fs::read_to_string(folder.join("r/audit/audit.html")).unwrap();
    assert_eq!(pages::check(&page), Ok(()));
    assert!(page.contains("<h1>Audit of r</h1>") && page.contains("An audit can only refute."));
    let kept = fs::read_to_string(folder.join("r/audit/audit.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept.as_array().unwrap(), findings);
}

/// The printed formulas claim far less than one record can do.
#[test]
fn the_paper_s_claim_is_refuted_with_exit_code_1() {
    let place = place(&format!("{SMALL}[privacy]\nepsilon = 1\n"));
    let folder = place.path();
    let command = ["audit", "small.toml", "--attack", "mechanism", "--quiet"];
    let output = lapa(folder).args(command).assert().code(1).get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("This refutes the paper's sum over all devices"), "{text}");
    assert!(text.contains("Report: audits/small/audit.html"), "{text}");
    assert!(folder.join("audits/small/audit.json").is_file());
}

#[test]
fn what_cannot_be_audited_is_refused_with_a_reason() {
    let place = place(CERTIFIED);
    let folder = place.path();
    lapa(folder).args(["run", "small.toml", "--out", "r", "--quiet"]).assert().success();
    let refused = |arguments: &[&str], words: &str| {
        let error = failure(lapa(folder).arg("audit").args(arguments), 2);
        assert!(error.contains(words), "{error}");
    };
    refused(&["r", "-c", "run.seed=1"], "-c run.seed=1: r is a finished run");
    refused(&["small.toml", "--confidence", "1"], "--confidence = 1: expected a number above 0");
    refused(&["small.toml", "--attack", "guess"], "invalid value 'guess'");
    refused(&["nowhere.toml"], "cannot read nowhere.toml");
    refused(&["small.toml", "-c", "run.entropy=os"], "run.entropy = \"os\"");
    fs::remove_file(folder.join("r/summary.json")).unwrap();
    refused(&["r"], "not finished; finish it with `lapa run --resume r`");
    assert!(!folder.join("audits").exists() && !folder.join("r/audit").exists());
}
