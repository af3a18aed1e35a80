use std::fs;
use std::ops::ControlFlow;

use lapa::config::Experiment;
use lapa::data::DataName;
use lapa::run::Run;

use super::*;
use lapa::page::check::check;

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
const PLAIN: &str = r#"
    privacy.allocator = "none"
    observe.devices = "summary"
"#;

fn begin(folder: &Path, more: &str) -> Run {
    let experiment = Experiment::from_toml(&format!("{SMALL}{more}"), "test", &[]).unwrap();
    let data = lapa::data::load(&DataName::Synthetic, &mut |_| {}).unwrap();
    Run::create(experiment, data, folder).unwrap()
}

fn page(name: &str, more: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join(name);
    begin(&folder, more).execute(&mut |_| ControlFlow::Continue(())).unwrap();
    let run = FinishedRun::open(&folder).unwrap();
    let path = run.write_page(None).unwrap();
    assert_eq!(path, folder.join("report.html"));
    let html = fs::read_to_string(path).unwrap();
    check(&html).unwrap();
    html
}

#[test]
fn a_page_shows_provable_beside_claimed_and_warns_of_too_little_noise() {
    let html = page("<script>x", SWITCH);
    assert!(html.contains("<h1>Run &lt;script&gt;x</h1>"), "{html}");
    for text in [
        "Warning:",
        "had less noise than their budgets ask for",
        "<span class=\"badge bad\">less than provable: promises too much</span>",
        "ε, the paper&#39;s sum, worst device",
        "ε, the paper&#39;s sum, all devices",
        "the gap is what it leaves out",
        "the warning above counts those",
        "<span class=\"badge mixed\">a reading</span>",
        "<span class=\"badge mixed\">an assumption</span>",
        "ε without channel",
        "Last round with artificial noise",
        "<td class=\"number\">∞</td>",
        "switch_rule = &quot;sum&quot;",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert_eq!(html.matches("<svg ").count(), PLOTS.len());
}

#[test]
fn captions_and_badges_are_true_of_a_certified_run() {
    let html = page("certified", CERTIFIED);
    for text in [
        "<span class=\"badge good\">more than provable: harmless</span>",
        "The paper&#39;s sum ends above the provable line",
    ] {
        assert!(html.contains(text), "{text}");
    }
    // There is no warning, and no gap that the paper's sum leaves out.
    for text in ["warning above", "leaves out", "Warning:"] {
        assert!(!html.contains(text), "{text}");
    }
}

#[test]
fn without_noise_nothing_is_proved_and_nothing_is_drawn_of_it() {
    let html = page("plain", PLAIN);
    for text in ["No noise was added: ε is ∞.", "nothing proved", "claims nothing", "Median"] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("Warning:") && !html.contains("ε without channel"));
    assert_eq!(html.matches("<svg ").count(), 2);
}

#[test]
fn an_unfinished_run_has_no_page_and_says_how_to_go_on() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("r");
    drop(begin(&folder, SWITCH));
    let error = FinishedRun::open(&folder).err().unwrap().to_string();
    assert!(error.contains(&format!("lapa run --resume {}", folder.display())), "{error}");
    let error = FinishedRun::open(place.path()).err().unwrap().to_string();
    assert!(error.contains("is not the folder of a run"), "{error}");
}
