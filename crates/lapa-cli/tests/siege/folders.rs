//! Run folders: damaged files are refused or harmless, and nothing outside the folder changes.

use super::*;

#[test]
fn a_damaged_run_folder_is_refused_or_harmless() {
    let folder = place();
    let place = folder.path();
    survives(place, &run_arguments("whole", &[]), "the whole run");
    survives(place, &run_arguments("begun", &["run.rounds=4"]), "a shorter run");
    let whole = results(&place.join("whole"));
    let names: Vec<PathBuf> = files(&place.join("whole"))
        .iter()
        .map(|path| path.strip_prefix(place.join("whole")).unwrap().to_owned())
        .filter(|name| !name.starts_with("plots"))
        .collect();
    for case in cases(30, 1000) {
        let mut dice = Dice::new(4, case);
        copy(&place.join("whole"), &place.join("hit"));
        let name = &names[dice.below(names.len())];
        let path = place.join("hit").join(name);
        let bytes = fs::read(&path).unwrap();
        let mutated = match dice.below(3) {
            0 if !bytes.is_empty() => {
                let mut bytes = bytes;
                mutate::flip(&mut bytes, &mut dice);
                bytes
            }
            _ => mutate::bytes(&bytes, &mut dice),
        };
        fs::write(&path, mutated).unwrap();
        let case = format!("folder {case}, {}", name.display());
        // Without its summary the run is not finished, and its checkpoint is read.
        if dice.below(2) == 0 && !name.ends_with("summary.json") {
            fs::remove_file(place.join("hit/summary.json")).unwrap();
        }
        let resumed = survives(place, &["run", "--resume", "hit", "--quiet"], &case);
        if resumed.status.success() && !name.ends_with("model.safetensors") {
            assert!(results(&place.join("hit")).0 == whole.0, "{case}: another model");
        }
        survives(place, &["report", "hit", "--out", "report.html"], &case);
        survives(place, &["account", "--ledger", "hit/ledger.db"], &case);
        fs::remove_dir_all(place.join("hit")).unwrap();
    }
    assert!(results(&place.join("whole")) == whole);
}
