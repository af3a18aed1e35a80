//! The readings of experiments/paper/readings.toml against the configurations that they change.

use std::collections::BTreeSet;

use lapa_study::cell::Cell;
use lapa_study::paper::{
    Claim, FIGURES, FIRST_SEED, Reading, Scope, Selection, Settings, claim_names, reading,
};

const SETTINGS: fn() -> Settings = || Settings::new(FIRST_SEED, 1);

fn selection(readings: Vec<&'static Reading>) -> Selection {
    Selection { figures: FIGURES.into(), claims: Vec::new(), readings }
}

fn names(cells: &[Cell]) -> BTreeSet<&str> {
    cells.iter().map(Cell::id).collect()
}

/// Cells of a claim under a reading, curve by curve.
fn cells(claim: &Claim, reading: &'static Reading) -> Vec<Cell> {
    let curves = claim.contrasts.iter().flat_map(|contrast| &contrast.curves);
    curves.flat_map(|curve| curve.cells(SETTINGS().under(reading)).unwrap()).collect()
}

/// Names of the cells without the rounds of their evaluations.
fn trainings(cells: Vec<Cell>) -> BTreeSet<String> {
    let training = |cell: Cell| {
        let mut experiment = cell.experiment().clone();
        experiment.run.evaluate_from = None;
        Cell::new(experiment).id().to_owned()
    };
    cells.into_iter().map(training).collect()
}

#[test]
fn every_reading_makes_cells_of_its_own_for_each_claim_that_it_names() {
    let claims = selection(Vec::new()).claims(Scope::Map);
    for reading in &reading::all()[1..] {
        for name in &reading.claims {
            let named = |claim: &&Claim| reading::is_part(claim.id, name);
            let named: Vec<&Claim> = claims.iter().filter(named).collect();
            assert!(!named.is_empty(), "{}: unknown claim {name}", reading.name);
            let changed = |claim: &&Claim| {
                let [main, own] = [reading::main(), reading].map(|reading| cells(claim, reading));
                trainings(main) != trainings(own)
            };
            assert!(named.iter().any(changed), "{}: nothing changes for {name}", reading.name);
        }
    }
}

#[test]
fn the_map_of_the_main_reading_is_part_of_the_figures() {
    let main = selection(vec![reading::main()]).cells(SETTINGS()).unwrap();
    let main = names(&main);
    for claim in selection(Vec::new()).claims(Scope::Map) {
        for cell in cells(&claim, reading::main()) {
            assert!(main.contains(cell.id()), "claim {}", claim.id);
        }
    }
}

#[test]
fn a_claim_about_all_rounds_has_them_evaluated_under_every_reading() {
    for claim in selection(Vec::new()).claims(Scope::Map) {
        for reading in reading::all().iter().filter(|reading| reading.bears_on(claim.id)) {
            for cell in cells(&claim, reading) {
                let run = &cell.experiment().run;
                let evaluated = (1..=run.rounds).filter(|round| run.is_evaluated(*round)).count();
                assert!(evaluated >= 5, "{}, claim {}: {evaluated}", reading.name, claim.id);
                if claim.id == "4d" {
                    assert_eq!(run.evaluate_from, None, "{}", reading.name);
                }
            }
        }
    }
}

#[test]
fn methods_of_a_contrast_differ_under_every_reading() {
    for claim in selection(Vec::new()).claims(Scope::Map) {
        for reading in reading::all().iter().filter(|reading| reading.bears_on(claim.id)) {
            for contrast in claim.contrasts.iter().filter(|contrast| contrast.curves.len() == 2) {
                let cells = contrast.curves.iter();
                let cells = cells.flat_map(|c| c.cells(SETTINGS().under(reading)).unwrap());
                let cells: Vec<Cell> = cells.collect();
                assert_eq!(names(&cells).len(), 2, "{}, {}", reading.name, contrast.what);
            }
        }
    }
}

#[test]
fn seeds_are_none_that_choices_were_made_with() {
    let seeds = |settings: Settings| -> Vec<u64> {
        let curve = &selection(Vec::new()).claims(Scope::Map)[0].contrasts[0].curves[0];
        let cells = curve.cells(settings).unwrap();
        cells.iter().map(|cell| cell.experiment().run.seed).collect()
    };
    assert_eq!(seeds(Settings::new(FIRST_SEED, 15)), (100..115).collect::<Vec<_>>());
    let other = &reading::all()[1];
    assert_eq!(seeds(Settings::new(FIRST_SEED, 15).under(other)), (100..110).collect::<Vec<_>>());
}

#[test]
fn claims_have_names_of_their_own() {
    let names = claim_names();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}
