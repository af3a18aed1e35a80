//! `lapa report`.

use tempfile::TempDir;

use super::*;

/// A finished run in `r`.
fn finished() -> TempDir {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    lapa(place.path()).args(["run", "small.toml", "--out", "r", "--quiet"]).assert().success();
    place
}

#[test]
fn a_run_becomes_one_page_and_an_event_file() {
    let place = finished();
    let folder = place.path();
    let text = stdout(lapa(folder).args(["report", "r"]).assert());
    assert_eq!(text, "Report: r/report.html (open it in a browser)\n");
    let page = fs::read_to_string(folder.join("r/report.html")).unwrap();
    assert_eq!(pages::check(&page), Ok(()));
    assert!(page.contains("<h1>Run r</h1>") && page.contains("id=\"end\""), "{page}");
    assert!(!folder.join("r/tensorboard").exists());

    // Elsewhere, and again: the same page.
    let arguments = ["report", "r", "--out", "p.html", "--tensorboard", "--format", "json"];
    let result = stdout_json(lapa(folder).args(arguments));
    assert_eq!(keys(&result), ["report", "tensorboard"]);
    assert_eq!(result["report"], "p.html");
    assert_eq!(fs::read_to_string(folder.join("p.html")).unwrap(), page);
    let events = names(&folder.join("r/tensorboard"));
    assert_eq!(result["tensorboard"], format!("r/tensorboard/{}", events[0]));
    let [name] = &events[..] else { panic!("{events:?}") };
    let time = name.strip_prefix("events.out.tfevents.").unwrap().strip_suffix(".lapa").unwrap();
    assert!(time.len() == 10 && time.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
}

/// A run of a version that did not record who loses.
#[test]
fn an_older_folder_has_a_page_without_classes() {
    let place = finished();
    let folder = place.path();
    let page = |name: &str| {
        lapa(folder).args(["report", "r", "--out", name]).assert().success();
        fs::read_to_string(folder.join(name)).unwrap()
    };
    let page_of_today = page("new.html");
    for words in ["Accuracy by class", "Accuracy by device", "simulation only", "class,taken_for_0"]
    {
        assert!(page_of_today.contains(words), "{words}");
    }
    let file = folder.join("r/summary.json");
    let mut summary: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for name in ["class_accuracy", "confusion", "device_accuracy"] {
        summary.as_object_mut().unwrap().remove(name).unwrap();
    }
    fs::write(&file, summary.to_string()).unwrap();
    for name in ["confusion", "classes", "devices"] {
        fs::remove_file(folder.join(format!("r/plots/{name}.svg"))).unwrap();
    }
    let old = page("old.html");
    assert_eq!(pages::check(&old), Ok(()));
    assert!(old.contains("Test accuracy after each") && !old.contains("Accuracy by class"));
}

#[test]
fn what_is_no_finished_run_is_refused_with_a_way_out() {
    let place = finished();
    let folder = place.path();
    let error = failure(lapa(folder).args(["report", "nowhere"]), 2);
    assert!(error.contains("nowhere is not the folder of a run"), "{error}");
    let error = failure(lapa(folder).args(["report", "r", "--out", "no/such/page.html"]), 1);
    assert!(error.contains("cannot write no/such/page.html"), "{error}");
    fs::remove_file(folder.join("r/summary.json")).unwrap();
    let error = failure(lapa(folder).args(["report", "r"]), 2);
    assert!(error.contains("not finished; finish it with `lapa run --resume r`"), "{error}");
    assert!(!folder.join("r/report.html").exists());
}
