//! Ledgers: damage never lowers a figure.

use super::*;

#[test]
fn a_damaged_ledger_is_refused_or_proves_no_less() {
    let place = place();
    let place = place.path();
    let shared = ["run.ledger=whole.db", "learn.sampling=fixed", "privacy.epsilon=4"];
    survives(place, &run_arguments("first", &shared), "the first run");
    let whole = provable(place, "whole.db", "the whole ledger").unwrap();
    let bytes = fs::read(place.join("whole.db")).unwrap();
    for case in cases(100, 1500) {
        let mut dice = Dice::new(5, case);
        let mut damaged = bytes.clone();
        match dice.below(8) {
            0 => damaged.truncate(dice.below(damaged.len())),
            _ => mutate::flip(&mut damaged, &mut dice),
        }
        fs::write(place.join("damaged.db"), damaged).unwrap();
        let name = format!("ledger {case}");
        if let Some(figures) = provable(place, "damaged.db", &name) {
            assert_eq!(figures.len(), whole.len(), "{name}: devices are lost");
            for (now, before) in figures.iter().zip(&whole) {
                assert!(now >= before, "{name}: provable {now} after {before}");
            }
        }
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(place.join(format!("damaged.db{ending}")));
        }
    }
}
