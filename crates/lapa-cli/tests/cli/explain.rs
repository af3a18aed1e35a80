//! `lapa explain`.

use tempfile::TempDir;

use super::privacy::{number, private, run_private, write_private};
use super::*;

fn explain(place: &Path, folder: &str) -> (String, Value) {
    let text = stdout(lapa(place).args(["explain", folder]).assert());
    let json = stdout_json(lapa(place).args(["explain", folder, "--format", "json"]));
    (one_line(text.as_bytes()), json)
}

#[test]
fn a_finished_run_is_explained_in_full() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let mut run = lapa(place);
    let printed = stdout(run.args(["run", "private.toml", "--quiet", "--out", "r"]).assert());
    let privacy: Vec<&str> =
        printed.lines().skip_while(|line| !line.starts_with("Privacy (δ = 1e-5)")).collect();
    assert!(privacy[0].contains(": proven ε ≤ 8; spent so far "), "{printed}");
    let second = "Protects one record (zero-out adjacency) against anyone who sees every transmission, \
                  unless they know the seed; details: lapa explain r";
    assert_eq!(privacy[1], second);
    assert_eq!(privacy[2], "Results: r. Next: lapa report r");

    let (text, json) = explain(place, "r");
    assert!(text.starts_with("Run r: finished, 6 of 6 rounds Privacy (δ = 1e-5): proven ε ≤ 8;"));
    for part in [
        "proven ε = 8: the budget of the worst device, declared before round 1 and enforced",
        "more than 2981 times as likely",
        "δ = 1e-5: probability with which the guarantee may fail",
        "Guarantee: proven. The records of each device are (8, 1e-5)-differentially private under \
         zero-out adjacency (one record is replaced by a record with zero gradient).",
        "Adversary: anyone who sees every transmission.",
        "Theorem: each release uses at least the planned noise",
        "Not covered: the guarantee protects single records",
        "Simulation: noise and batches follow from the seed",
        "Ledger: r/ledger.db (all releases: lapa account --ledger r/ledger.db)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!((&json["finished"], &json["round"]), (&true.into(), &6.into()));
    assert_eq!(json["figures"]["epsilon_provable"], 8.0);
    assert_eq!(json["meanings"].as_array().unwrap().len(), 5);
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(place.join("r/summary.json")).unwrap()).unwrap();
    let proof: Vec<&str> =
        json["proof"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(proof.join("\n"), summary["privacy"].as_str().unwrap());

    fs::remove_file(place.join("r/ledger.db")).unwrap();
    assert!(explain(place, "r").0.ends_with("Ledger: r/ledger.db (missing)"));
}

/// Without its summary a run looks as it does while it goes on; a line of its metrics may be torn.
#[test]
fn an_unfinished_run_tells_what_was_spent_so_far() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let summary = run_private(place, "r", &["privacy.allocator=lapa"]);
    let before = explain(place, "r").1;
    fs::remove_file(place.join("r/summary.json")).unwrap();
    let (text, json) = explain(place, "r");
    assert!(text.contains("Run r: not finished, 6 of 6 rounds"), "{text}");
    assert_eq!(json["figures"]["epsilon_provable"], 8.0);
    for key in ["epsilon_spent", "epsilon_claimed_worst"] {
        assert_eq!(number(&json["figures"][key]), number(&summary[key]), "{key}");
    }
    assert!(json["figures"]["epsilon_claimed_total"].is_null());
    assert_eq!(json["proof"], before["proof"], "the ledger has the theorem");

    let metrics = place.join("r/metrics.jsonl");
    let lines = fs::read_to_string(&metrics).unwrap();
    let two: Vec<&str> = lines.split_inclusive('\n').take(2).collect();
    fs::write(&metrics, format!("{}{{\"round\": 3, \"accu", two.concat())).unwrap();
    let (text, json) = explain(place, "r");
    assert!(text.contains("not finished, 2 of 6 rounds"), "{text}");
    let spent = number(&json["figures"]["epsilon_spent"]);
    assert!(0.0 < spent && spent < number(&summary["epsilon_spent"]), "{spent}");

    fs::write(&metrics, "").unwrap();
    let (text, _) = explain(place, "r");
    assert!(text.contains("0 of 6 rounds") && text.contains("spent so far 0;"), "{text}");
}

#[test]
fn a_run_without_noise_proves_nothing() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    private(place, "r", &["privacy=none"]).assert().success();
    let (text, json) = explain(place, "r");
    assert!(text.contains("nothing is proven (ε = ∞); spent so far ∞"), "{text}");
    assert_eq!(json["figures"]["epsilon_provable"], "inf");
    assert_eq!(json["proof"].as_array().unwrap().len(), 1);
}

/// Where ε is ∞ nothing is said to be protected.
#[test]
fn a_run_that_proves_nothing_protects_nothing() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let mut run = lapa(place);
    run.args(["run", "private.toml", "--quiet", "--out", "r", "-c", "profile=paper"]);
    run.args(["-c", "privacy.epsilon=8", "-c", "aggregate.rule=wasserstein"]);
    let printed = stdout(run.assert());
    assert!(printed.contains("nothing is proven (ε = ∞)"), "{printed}");
    assert!(
        !printed.contains("Protects") && printed.contains("details: lapa explain r"),
        "{printed}"
    );
}

#[test]
fn a_folder_without_a_run_is_refused_with_what_is_missing() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let refusal = |folder: &str| failure(lapa(place).args(["explain", folder]), 2);
    assert!(refusal("nowhere").contains("nowhere: no such folder"));
    assert!(refusal("private.toml").contains("private.toml: no such folder"));
    let text = refusal("digits");
    assert!(
        text.contains("digits is not the folder of a run: config.resolved.toml is missing"),
        "{text}"
    );
    run_private(place, "r", &[]);
    fs::remove_file(place.join("r/summary.json")).unwrap();
    fs::remove_file(place.join("r/metrics.jsonl")).unwrap();
    assert!(refusal("r").contains("r is not the folder of a run: metrics.jsonl is missing"));
}
