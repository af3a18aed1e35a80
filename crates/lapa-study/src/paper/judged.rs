//! Verdicts of a folder: those of this sitting, and those of earlier ones that still stand.

use std::path::Path;

use lapa::files;
use serde::{Deserialize, Serialize};

use super::{Claim, Evidence, FIGURES, Scope, Selection, Settings, Verdict, reading};

/// Contents of `verdicts.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct Judged {
    version: String,
    first_seed: u64,
    seeds: u32,
    quick: bool,
    figures: Vec<String>,
    /// Claims under the main reading, in the conditions of the figures.
    pub verdicts: Vec<Verdict>,
    /// Claims under all readings, in the conditions of the map; empty if only the main one was taken.
    pub map: Vec<Vec<Verdict>>,
}

/// The verdict on a claim under the reading of `settings`, if it is among these.
fn find<'a>(verdicts: &'a [Verdict], claim: &Claim, settings: Settings) -> Option<&'a Verdict> {
    let is_it = |v: &&Verdict| v.claim == claim.id && v.reading == settings.reading.name;
    verdicts.iter().find(is_it)
}

impl Judged {
    /// Verdicts of this sitting, and of earlier ones on other claims or under other readings. An earlier
    /// one stands if it is about the very cells that this program would run.
    pub fn new(selection: &Selection, evidence: &Evidence, earlier: Option<Self>) -> Self {
        let settings = evidence.settings;
        let (own, own_map) = (selection.verdicts(evidence), selection.map(evidence).concat());
        let (old, old_map) =
            earlier.map_or_else(Default::default, |e| (e.verdicts, e.map.concat()));
        let pick = |own: &[Verdict], old: &[Verdict], claim: &Claim, settings: Settings| {
            let stands = |v: &&Verdict| v.cells.is_some() && v.cells == claim.checksum(settings);
            let verdict = find(own, claim, settings);
            verdict.or_else(|| find(old, claim, settings).filter(stands)).cloned()
        };
        let everything = Selection {
            figures: FIGURES.into(),
            claims: Vec::new(),
            readings: reading::all().iter().collect(),
        };
        let verdicts = everything.claims(Scope::Figure);
        let verdicts = verdicts.iter().filter_map(|claim| pick(&own, &old, claim, settings));
        let row = |claim: &Claim| -> Vec<Verdict> {
            let readings = everything.readings.iter().filter(|r| r.bears_on(claim.id));
            readings
                .filter_map(|reading| pick(&own_map, &old_map, claim, settings.under(reading)))
                .collect()
        };
        let mut map: Vec<_> = everything.claims(Scope::Map).iter().map(row).collect();
        map.retain(|row| !row.is_empty());
        if map.iter().flatten().all(|verdict| verdict.reading == reading::MAIN) {
            map.clear();
        }
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            first_seed: settings.first_seed,
            seeds: settings.seeds,
            quick: settings.quick,
            figures: selection.figures.iter().map(|figure| figure.name.to_owned()).collect(),
            verdicts: verdicts.collect(),
            map,
        }
    }
}

/// The verdicts that a folder has; `None` if there are none that can be read.
pub(super) fn read(path: &Path) -> Option<Judged> {
    serde_json::from_str(&files::read_to_string(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::{FIRST_SEED, Reading, figures_of};
    use crate::store::Results;

    fn judged(claim: &str, readings: &[&str], earlier: Option<Judged>) -> Judged {
        let claims = vec![claim.to_owned()];
        let is_wanted = |r: &&Reading| r.is_main() || readings.contains(&r.name.as_str());
        let readings = reading::all().iter().filter(is_wanted).collect();
        let selection = Selection { figures: figures_of(&claims), claims, readings };
        // No cell is finished: nothing is tested, but it is known which cells there would be.
        let (settings, results) = (Settings::new(FIRST_SEED, 2), Results::default());
        Judged::new(
            &selection,
            &Evidence { settings, results: &results, complexity: None },
            earlier,
        )
    }

    fn names(verdicts: &[Verdict]) -> Vec<[&str; 2]> {
        verdicts.iter().map(|v| [v.claim.as_str(), v.reading.as_str()]).collect()
    }

    #[test]
    fn sittings_add_up_in_the_order_of_claims_and_readings() {
        let ninth = judged("9a", &["no-norm"], None);
        let both = judged("3b", &["small"], Some(ninth));
        assert_eq!(names(&both.verdicts), [["3b", "main"], ["9a", "main"]]);
        let expected = [["3b", "main"], ["3b", "small"], ["9a", "main"], ["9a", "no-norm"]];
        assert_eq!(names(&both.map.concat()), expected);
        let again = judged("9a", &["small"], Some(both));
        let expected = [&expected[..3], &[["9a", "small"]], &expected[3..]].concat();
        assert_eq!(names(&again.map.concat()), expected);
    }

    #[test]
    fn verdicts_on_other_cells_do_not_stay() {
        let mut earlier = judged("9a", &["no-norm"], None);
        let row = &mut earlier.map[0];
        row[1].cells = row[0].cells.clone();
        let both = judged("3b", &["small"], Some(earlier));
        assert_eq!(names(&both.map.concat()), [["3b", "main"], ["3b", "small"], ["9a", "main"]]);
    }
}
