#[path = "../../../../lapa-report/tests/support/pages.rs"]
mod pages;

use std::fs;
use std::ops::ControlFlow;

use lapa::config::{Experiment, Override};
use lapa::data::DataName;
use lapa::run::Run;

use super::*;

const SMALL: &str = r#"
    profile = "paper"
    run = { rounds = 3, evaluate_every = 1, threads = 1 }
    data.name = "synthetic"
    partition.mix = { iid = 2, non_iid = 3, iid_samples = 60, non_iid_samples = 90 }
    model.name = "logistic"
    radio.noise_power_w = 1e-12
    transmit = { uplink = "analog", access = "orthogonal" }
"#;
const SWITCH: &str = r#"
    privacy = { initial_sigma = 0.05, channel_trust = 1 }
    control = { noise = "switch", switch.rule = "sum" }
"#;
const CERTIFIED: &str = r#"
    privacy = { basis = "certified", epsilon = 8 }
    learn = { clip = "sample", learning_rate = 5 }
"#;
const VIRTUAL: [&str; 3] =
    ["partition.scheme=virtual", "partition.virtual.devices=8", "partition.virtual.samples=60"];
const PLAIN: &str = r#"
    privacy = "none"
    observe.devices = "summary"
"#;

fn begin(folder: &Path, more: &str, flags: &[&str]) -> Run {
    let flags: Vec<_> = flags.iter().map(|flag| Override::parse(flag).unwrap()).collect();
    let experiment = Experiment::from_toml(&format!("{SMALL}{more}"), "test", &flags).unwrap();
    let data = lapa::data::load(&DataName::Synthetic, &mut |_| {}).unwrap();
    Run::create(experiment, data, folder).unwrap()
}

fn page(name: &str, more: &str) -> String {
    page_with(name, more, &[])
}

fn page_with(name: &str, more: &str, flags: &[&str]) -> String {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join(name);
    let run = begin(&folder, more, flags);
    lapa_report::run::execute(run, &mut |_| ControlFlow::Continue(())).unwrap();
    let run = FinishedRun::open(&folder).unwrap();
    let path = run.write_page(None).unwrap();
    assert_eq!(path, folder.join("report.html"));
    let html = fs::read_to_string(path).unwrap();
    assert_eq!(pages::check(&html), Ok(()));
    html
}

#[test]
fn a_page_shows_provable_beside_claimed_and_warns_of_too_little_noise() {
    let html = page("<script>x", SWITCH);
    assert!(html.contains("<h1>Run &lt;script&gt;x</h1>"), "{html}");
    for text in [
        "Warning:",
        "had less noise than their budgets require",
        "<span class=\"badge bad\">below the spent ε: do not rely on it</span>",
        "Paper&#39;s sum, worst device",
        "Paper&#39;s sum, all devices",
        "it misses the gap between them",
        "the warning above counts them",
        "<span class=\"badge mixed\">odometer reading</span>",
        "<span class=\"badge mixed\">assumption</span>",
        "Spent ε without channel noise",
        "Last round with artificial noise",
        "<td class=\"number\">∞</td>",
        "rule = &quot;sum&quot;",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert_eq!(html.matches("<svg ").count(), CURVES.len() + CLASSES.len() + DEVICES.len());
}

#[test]
fn captions_and_badges_are_true_of_a_certified_run() {
    let html = page("certified", CERTIFIED);
    for text in [
        "<span class=\"badge good\">above the spent ε: harmless</span>",
        "The paper&#39;s sum ends above the proven line",
    ] {
        assert!(html.contains(text), "{text}");
    }
    // There is no warning, and no gap that the paper's sum leaves out.
    for text in ["warning above", "misses the gap", "Warning:"] {
        assert!(!html.contains(text), "{text}");
    }
}

#[test]
fn shared_records_are_not_said_to_be_different() {
    let html = page_with("virtual", CERTIFIED, &VIRTUAL);
    for text in [
        "Proven for one record of the worst device, not for an image that several devices hold: ε ≤ 8",
        "it is no guarantee for an image that several devices hold.",
        "Nothing is claimed for an image with all of its copies.",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("different records"));
    assert!(page("mix", CERTIFIED).contains("devices hold different records"));
}

#[test]
fn without_noise_nothing_is_proved_and_nothing_is_drawn_of_it() {
    let html = page("plain", PLAIN);
    for text in ["No noise was added, so ε = ∞.", "nothing proven", "no claim", "Median"] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("Warning:") && !html.contains("without channel noise"));
    assert_eq!(html.matches("<svg ").count(), 2 + 3);
}

#[test]
fn an_unfinished_run_has_no_page_and_says_how_to_go_on() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("r");
    drop(begin(&folder, SWITCH, &[]));
    let error = FinishedRun::open(&folder).err().unwrap().to_string();
    assert!(error.contains(&format!("lapa run --resume {}", folder.display())), "{error}");
    let error = FinishedRun::open(place.path()).err().unwrap().to_string();
    assert!(error.contains("is not the folder of a run"), "{error}");
}
