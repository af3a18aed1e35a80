//! `lapa reproduce`.

use tempfile::TempDir;

use super::*;

/// The verdicts of a quick look at one figure. What is counted in it is bytes, so that it holds on
/// every processor.
const GOLDEN: &str = include_str!("reproduce-overhead-quick.json");

#[test]
fn a_quick_look_gives_the_same_bytes_and_runs_nothing_twice() {
    if !has_mnist() {
        return;
    }
    let place = TempDir::new().unwrap();
    let folder = place.path();
    let arguments = ["reproduce", "overhead", "workflow", "--quick", "--out", "r"];
    let assert = lapa(folder).args(arguments).assert().success();
    let errors = stderr(assert);
    assert!(errors.contains("2 runs (0 already finished)"), "{errors}");
    let verdicts = fs::read_to_string(folder.join("r/verdicts.json")).unwrap();
    assert_eq!(verdicts, GOLDEN);
    let page = fs::read_to_string(folder.join("r/report.html")).unwrap();
    assert_eq!(pages::check(&page), Ok(()));
    assert!(page.contains("PREVIEW") && page.contains("id=\"end\""));
    let drawing = fs::read_to_string(folder.join("r/figures/workflow.svg")).unwrap();
    assert!(drawing.contains(">87.5 kB each<") && !drawing.contains('{'), "{drawing}");
    // Again: the cell is there, and the bytes are the same.
    let errors = stderr(lapa(folder).args(arguments).assert().success());
    assert!(errors.contains("2 runs (2 already finished)"), "{errors}");
    assert_eq!(fs::read_to_string(folder.join("r/verdicts.json")).unwrap(), GOLDEN);
}

#[test]
fn bad_figures_and_flags_are_named() {
    let place = TempDir::new().unwrap();
    for (arguments, words) in [
        (&["reproduce", "aggregaton"][..], "unknown figure `aggregaton`: use workflow, mechanism"),
        (&["reproduce", "beyond", "layout"], "`beyond` runs alone"),
        (
            &["reproduce", "layout", "--epsilon", "2"],
            "--epsilon works with `lapa reproduce beyond`",
        ),
        (&["reproduce", "beyond", "--policy", "beste"], "invalid value 'beste'"),
        (&["reproduce", "--claims", "3,31"], "unknown claim `31`: use 1a, 1b, 1c"),
        (&["reproduce", "--readings", "smal"], "unknown reading `smal`: use main, small"),
        (&["reproduce", "--shard", "5/4"], "invalid value '5/4' for '--shard <I/N>': use I/N"),
        (&["reproduce", "--shard", "1"], "use I/N with I from 1 to N"),
        (&["reproduce", "beyond", "--shard", "1/2"], "--shard does not work with"),
        (&["reproduce", "layout", "--claims", "3"], "cannot be used with"),
        (&["reproduce", "--seeds", "0"], "invalid value '0'"),
        (&["reproduce", "beyond", "--epsilon=-1"], "privacy.epsilon"),
    ] {
        let errors = stderr(lapa(place.path()).args(arguments).assert().code(2));
        let errors = errors.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>();
        assert!(errors.join(" ").contains(words), "{arguments:?}: {}", errors.join(" "));
    }
}

/// Two parts of the runs, then the figures.
#[test]
fn parts_of_the_runs_make_the_whole() {
    if !has_mnist() {
        return;
    }
    let place = TempDir::new().unwrap();
    let folder = place.path();
    let shard = |part: &str| {
        let arguments = ["reproduce", "--claims", "6", "--quick", "--out", "r", "--shard", part];
        stderr(lapa(folder).args(arguments).assert().success())
    };
    let errors = shard("1/2");
    assert!(errors.contains("part 1 of 2 is done; 1 run of other parts still"), "{errors}");
    assert!(!folder.join("r/verdicts.json").exists());
    shard("2/2");
    let verdicts = fs::read_to_string(folder.join("r/verdicts.json")).unwrap();
    assert!(verdicts.contains("\"claim\": \"6a\"") && !verdicts.contains("\"claim\": \"12\""));
}

#[test]
fn a_figure_without_runs_needs_no_data() {
    let place = TempDir::new().unwrap();
    let arguments = ["reproduce", "layout", "--quick", "--out", "r", "--quiet"];
    lapa(place.path()).args(arguments).assert().success();
    assert!(place.path().join("r/figures/layout.png").is_file());
    // The mean of the last five evaluations is no final accuracy after 30 rounds.
    let page = fs::read_to_string(place.path().join("r/report.html")).unwrap();
    assert!(page.contains("include rounds in which the model still learns fast"), "{page}");
}
