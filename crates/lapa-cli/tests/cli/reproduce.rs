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
    assert!(errors.contains("1 run (0 already finished)"), "{errors}");
    let verdicts = fs::read_to_string(folder.join("r/verdicts.json")).unwrap();
    assert_eq!(verdicts, GOLDEN);
    let page = fs::read_to_string(folder.join("r/report.html")).unwrap();
    assert!(page.contains("PREVIEW") && page.contains("id=\"end\""));
    let drawing = fs::read_to_string(folder.join("r/figures/workflow.svg")).unwrap();
    assert!(drawing.contains(">87.5 kB each<") && !drawing.contains('{'), "{drawing}");
    // Again: the cell is there, and the bytes are the same.
    let errors = stderr(lapa(folder).args(arguments).assert().success());
    assert!(errors.contains("1 run (1 already finished)"), "{errors}");
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
        (&["reproduce", "--seeds", "0"], "invalid value '0'"),
        (&["reproduce", "beyond", "--epsilon=-1"], "privacy.epsilon"),
    ] {
        let errors = stderr(lapa(place.path()).args(arguments).assert().code(2));
        let errors = errors.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>();
        assert!(errors.join(" ").contains(words), "{arguments:?}: {}", errors.join(" "));
    }
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
