//! `lapa account`: the calculator and the ledger.

use std::fs;

use tempfile::TempDir;

use super::privacy::{rows, run_private, write_private};
use super::*;

const ACCOUNTANTS: [&str; 6] = ["naive", "advanced", "zcdp", "rdp", "gdp", "pld"];

/// Answers of the calculator, as JSON, in the order of [`ACCOUNTANTS`]; none for null. A null says
/// why in a note, unless the accountant has no theorem at all for Poisson batches.
fn account(question: &str) -> [Option<f64>; 6] {
    let place = TempDir::new().unwrap();
    let mut command = lapa(place.path());
    command.arg("account").args(question.split(' ')).args(["--format", "json"]);
    let answer = stdout_json(&mut command);
    assert_eq!(keys(&answer)[..6], ACCOUNTANTS);
    let sampled = question.contains("--sampling-rate");
    ACCOUNTANTS.map(|key| {
        let unsupported = sampled && !["rdp", "pld"].contains(&key)
            || question.contains("replace-one") && key == "rdp";
        match &answer[key] {
            Value::Null => {
                assert!(unsupported || answer["notes"][key].is_string(), "{question}: {key}");
                None
            }
            Value::String(word) => {
                assert_eq!(word, "inf", "{question}: {key}");
                Some(f64::INFINITY)
            }
            value => {
                assert!(!unsupported, "{question}: {key}");
                Some(value.as_f64().unwrap())
            }
        }
    })
}

/// ε of each accountant at δ = 1e-5.
fn epsilons(question: &str) -> [Option<f64>; 6] {
    account(&format!("{question} --delta 1e-5"))
}

/// An upper bound may be `slack` above the true value, never below.
fn assert_just_above(value: Option<f64>, golden: f64, slack: f64) {
    let value = value.unwrap();
    assert!(golden <= value && value <= golden * (1.0 + slack), "{value} for {golden}");
}

/// A hundred rounds at ε₀ = 0.1 each by the classic formula, where every accountant applies.
#[test]
fn plain_gaussians_match_published_values() {
    let [naive, advanced, zcdp, rdp, gdp, pld] = epsilons("--sigma 48.4481 --rounds 100");
    for (value, golden) in
        [(naive, 10.0), (advanced, 5.85), (zcdp, 1.01), (rdp, 0.822), (gdp, 0.751)]
    {
        let value = value.unwrap();
        assert!((value - golden).abs() < 2e-3, "{value} for {golden}");
    }
    assert_just_above(pld, gdp.unwrap(), 5e-3);

    let [_, _, _, rdp, gdp, pld] = epsilons("--sigma 5 --rounds 100");
    assert!((gdp.unwrap() - 9.997_256).abs() < 1e-6, "{gdp:?}");
    assert_just_above(pld, 9.997_256, 5e-3);
    // The reference has fewer orders to choose from.
    let rdp = rdp.unwrap();
    assert!((10.7255 - 1e-2..=10.7256).contains(&rdp), "{rdp}");
}

/// Values of dp-accounting 0.6.0. RDP may only gain by having more orders.
#[test]
fn poisson_batches_match_published_values() {
    for (question, rdp, pld, replaced) in [
        ("--sigma 1 --rounds 100 --sampling-rate 0.1", 7.903_850, 7.046_603, 10.516_380),
        ("--sigma 1 --rounds 1000 --sampling-rate 0.01", 2.101_367, 1.828_244, 2.843_446),
    ] {
        for adjacency in ["", " --adjacency zero-out", " --adjacency add-remove"] {
            let [naive, advanced, zcdp, by_rdp, gdp, by_pld] =
                epsilons(&format!("{question}{adjacency}"));
            assert_eq!([naive, advanced, zcdp, gdp], [None; 4]);
            assert_just_above(by_pld, pld, 5e-3);
            let by_rdp = by_rdp.unwrap();
            assert!(rdp * (1.0 - 1e-3) <= by_rdp && by_rdp <= rdp, "{by_rdp}");
        }
        let [.., by_rdp, gdp, by_pld] = epsilons(&format!("{question} --adjacency replace-one"));
        assert_eq!([by_rdp, gdp], [None; 2]);
        assert_just_above(by_pld, replaced, 5e-3);
    }
}

#[test]
fn a_batch_of_everyone_is_no_sampling() {
    let plain = epsilons("--sigma 5 --rounds 100");
    for adjacency in ["zero-out", "add-remove"] {
        let question = format!("--sigma 5 --rounds 100 --adjacency {adjacency}");
        assert_eq!(epsilons(&question), plain);
        let place = TempDir::new().unwrap();
        let mut command = lapa(place.path());
        command.arg("account").args(question.split(' ')).args(["--sampling-rate", "1"]);
        let all = stdout_json(command.args(["--delta", "1e-5", "--format", "json"]));
        assert_eq!(all["gdp"].as_f64(), plain[4]);
    }
}

#[test]
fn noise_for_a_target_meets_it_by_the_same_accountant() {
    for target in ["0.1", "1", "8", "300"] {
        for terms in [
            "--rounds 1 --delta 1e-5",
            "--rounds 100 --delta 1e-9",
            "--rounds 200 --delta 1e-5 --sampling-rate 0.1",
            "--rounds 50 --delta 1e-3 --sampling-rate 0.02 --adjacency replace-one",
        ] {
            let sigmas = account(&format!("--target-epsilon {target} {terms}"));
            assert!(sigmas.iter().flatten().count() > 0);
            for (index, sigma) in sigmas.into_iter().enumerate() {
                let Some(sigma) = sigma else { continue };
                let met = account(&format!("--sigma {sigma} {terms}"))[index].unwrap();
                let (name, target) = (ACCOUNTANTS[index], target.parse::<f64>().unwrap());
                assert!(met <= target, "{name} {terms}: {met} at {sigma}");
                // Not with far more noise than needed either.
                let less = account(&format!("--sigma {} {terms}", sigma * 0.99))[index].unwrap();
                assert!(less > target, "{name} {terms}: {less} at 0.99 of {sigma}");
            }
        }
    }
}

/// [`account`] refuses a null without its reason, which is what NaN would become.
#[test]
fn extremes_have_an_answer_or_a_reason() {
    for rounds in ["1", "4294967295"] {
        for delta in ["1e-18", "1e-2"] {
            let terms = format!("--rounds {rounds} --delta {delta}");
            for given in ["--target-epsilon 1e-3", "--target-epsilon 1e6"] {
                let sigmas = account(&format!("{given} {terms}"));
                assert!(sigmas.iter().all(|s| s.is_some_and(|s| s > 0.0)), "{given} {terms}");
            }
            for given in ["--sigma 1e-6", "--sigma 1e9"] {
                let epsilons = account(&format!("{given} {terms}"));
                assert!(epsilons.iter().all(|e| e.is_some_and(|e| e >= 0.0)), "{given} {terms}");
                account(&format!("{given} {terms} --sampling-rate 0.01"));
            }
        }
    }
    for given in ["1e-3 --rounds 1", "1e6 --rounds 1", "1e6 --rounds 4294967295"] {
        for delta in ["1e-18", "1e-2"] {
            account(&format!("--target-epsilon {given} --delta {delta} --sampling-rate 0.01"));
        }
    }
}

#[test]
fn the_total_delta_of_the_papers_sums_is_told() {
    let place = TempDir::new().unwrap();
    let ask = |sigma: &str| {
        let mut command = lapa(place.path());
        command.args(["account", "--sigma", sigma, "--rounds", "100", "--delta", "1e-5"]);
        stdout(command.assert())
    };
    let text = ask("48.4481");
    assert!(text.contains("total δ = 1.000e-3") && text.contains("1.010e-3"), "{text}");
    assert!(!text.contains("outside"), "{text}");
    let text = ask("0.6");
    assert!(text.contains("outside the theorem"), "{text}");
    // Never rounded down.
    assert!(ask("5").contains("9.998"));
}

#[test]
fn bad_questions_are_refused_with_what_is_allowed() {
    let place = TempDir::new().unwrap();
    let refusal = |question: &str| {
        let mut command = lapa(place.path());
        failure(command.arg("account").args(question.split_whitespace()), 2)
    };
    for (question, flag, allowed) in [
        ("--sigma 0 --rounds 9 --delta 1e-5", "'0' for '--sigma", "from 1e-6 to 1e9"),
        ("--sigma -1 --rounds 9 --delta 1e-5", "'-1' for '--sigma", "from 1e-6 to 1e9"),
        ("--sigma nan --rounds 9 --delta 1e-5", "'nan' for '--sigma", "from 1e-6 to 1e9"),
        ("--target-epsilon 0 --rounds 9 --delta 1e-5", "'--target-epsilon", "from 1e-3 to 1e6"),
        ("--sigma 1 --rounds 0 --delta 1e-5", "'0' for '--rounds", "1..=4294967295"),
        ("--sigma 1 --rounds 1.5 --delta 1e-5", "'1.5' for '--rounds", ""),
        ("--sigma 1 --rounds 9 --delta 0", "'0' for '--delta", "from 1e-18 to below 1"),
        ("--sigma 1 --rounds 9 --delta 1", "'1' for '--delta", "from 1e-18 to below 1"),
        (
            "--sigma 1 --rounds 9 --delta 1e-5 --sampling-rate 0",
            "'0' for '--sampling-rate",
            "above 0 and at most 1",
        ),
        (
            "--sigma 1 --rounds 9 --delta 1e-5 --sampling-rate 1.5",
            "'1.5' for '--sampling-rate",
            "above 0 and at most 1",
        ),
        (
            "--sigma 1 --rounds 9 --delta 1e-5 --adjacency some",
            "'some' for '--adjacency",
            "zero-out, add-remove, replace-one",
        ),
        ("", "--sigma <S>", "--target-epsilon <E>|--ledger <PATH>"),
        ("--rounds 9 --delta 1e-5", "--sigma <S>", "--target-epsilon <E>|--ledger <PATH>"),
        ("--sigma 1 --rounds 9", "not provided", "--delta <D>"),
        (
            "--sigma 1 --target-epsilon 1 --rounds 9 --delta 1e-5",
            "'--sigma <S>' cannot be used with",
            "'--target-epsilon <E>'",
        ),
    ] {
        let text = refusal(question);
        assert!(text.contains(flag) && text.contains(allowed), "{question}: {text}");
    }
}

#[test]
fn a_ledger_is_costed_per_device() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    write_private(place);
    let refusal = |path: &str| failure(lapa(place).args(["account", "--ledger", path]), 2);
    let text = refusal("none.db");
    assert!(text.contains("none.db: no such ledger"), "{text}");
    let before = fs::read(place.join("private.toml")).unwrap();
    let text = refusal("private.toml");
    assert!(text.contains("private.toml: not a ledger"), "{text}");
    assert_eq!(fs::read(place.join("private.toml")).unwrap(), before);
    refusal("digits");
    assert_eq!(names(place), ["digits", "private.toml"]);

    run_private(place, "run", &["learn.sampling=fixed"]);
    let devices = rows(place, "run/ledger.db");
    assert_eq!(devices.len(), 5);
    for (row, device) in devices.iter().zip(0..) {
        assert_eq!(row["device"], device);
        assert_eq!((&row["runs"], &row["releases"]), (&1.into(), &6.into()));
        assert_eq!((&row["declared"], &row["delta"]), (&8.0.into(), &1e-5.into()));
        // The filter spends all of it, and the exact curve is the best of the three.
        let [provable, gdp, rdp, pld] =
            ["provable", "gdp", "rdp", "pld"].map(|key| row[key].as_f64().unwrap());
        assert!(provable == gdp && gdp <= pld && pld < rdp, "{row}");
        assert!((7.999..=8.0).contains(&provable), "{row}");
    }
    let account = ["account", "--ledger", "run/ledger.db"];
    let text = stdout(lapa(place).args(account).assert());
    assert!(text.contains("run/ledger.db") && text.contains("declared"), "{text}");
    // JSON has no less than the table.
    let value = stdout_json(lapa(place).args(account).args(["--format", "json"]));
    for (figure, column) in
        [("declared", "declared"), ("claimed", "paper's sum"), ("provable", "provable")]
    {
        let meaning = value["meaning"][figure].as_str().unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(&format!("{column}: {}", words(meaning))), "{text}");
    }
    let provable = value["meaning"]["provable"].as_str().unwrap();
    assert!(
        provable.contains("chosen adaptively it is an odometer reading, not a guarantee"),
        "{provable}"
    );
}
