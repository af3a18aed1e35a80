//! Maps of claims over readings: where each holds, and how sure that is.

use lapa_report::plot::{Tile, Tiles, Tone};

use super::chapter::{Chapter, Drawing, shown_gain};
use super::reading::{self, Reading};
use super::{Finding, Standing, Tested, Verdict};
use crate::report::{Badge, Entry, Table};

/// A claim under several readings, the main one first.
type Row = Vec<Verdict>;

fn tone(finding: Finding) -> Tone {
    match finding {
        Finding::Shown => Tone::For,
        Finding::Consistent => Tone::MaybeFor,
        Finding::Undecided => Tone::MaybeAgainst,
        Finding::Contradicted => Tone::Against,
        Finding::Same | Finding::NotTested => Tone::Unknown,
    }
}

/// Tone and letters of a claim under a reading.
fn mark(verdict: &Verdict) -> Tile {
    let above = verdict.combined.is_some_and(|combined| combined.above);
    let same = verdict.combined.is_some_and(|combined| combined.same);
    let (tone, text) = match verdict.standing {
        Standing::Holds => (Tone::For, "+"),
        Standing::InPart if above => (Tone::MaybeFor, "±"),
        Standing::InPart => (Tone::MaybeAgainst, "±"),
        Standing::Undecided if same => (Tone::Unknown, "="),
        Standing::Undecided if above => (Tone::MaybeFor, "?"),
        Standing::Undecided => (Tone::MaybeAgainst, "?"),
        Standing::DoesNotHold => (Tone::Against, "−"),
        Standing::NotTested => (Tone::Unknown, ""),
    };
    Tile { tone, text: text.into() }
}

pub(super) fn badge(standing: Standing) -> Badge {
    match standing {
        Standing::Holds => Badge::Good,
        Standing::InPart | Standing::Undecided => Badge::Mixed,
        Standing::DoesNotHold => Badge::Bad,
        Standing::NotTested => Badge::Unknown,
    }
}

pub(super) fn finding_badge(finding: Finding) -> Badge {
    match finding {
        Finding::Shown => Badge::Good,
        Finding::Consistent | Finding::Same | Finding::Undecided => Badge::Mixed,
        Finding::Contradicted => Badge::Bad,
        Finding::NotTested => Badge::Unknown,
    }
}

/// The readings of some rows, in the order of their file.
fn readings(rows: &[Row]) -> Vec<&'static Reading> {
    let is_used = |reading: &&Reading| rows.iter().flatten().any(|v| v.reading == reading.name);
    reading::all().iter().filter(is_used).collect()
}

/// All readings against all claims, with a gap between claims that are no parts of the same one.
fn overview(rows: &[Row]) -> Tiles {
    let rows: Vec<&Row> = rows.iter().filter(|row| !row.is_empty()).collect();
    let number =
        |row: &Row| row[0].claim.trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned();
    let mut columns: Vec<Option<&Row>> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        columns.extend((at > 0 && number(rows[at - 1]) != number(row)).then_some(None));
        columns.push(Some(row));
    }
    let names = columns.iter().map(|row| row.map_or(String::new(), |row| row[0].claim.clone()));
    let all: Vec<Row> = rows.iter().map(|row| (*row).clone()).collect();
    let tiles = readings(&all).into_iter().fold(Tiles::new("", names).small(), |tiles, reading| {
        let marks = columns.iter().map(|row| {
            let verdict = row.as_ref()?.iter().find(|verdict| verdict.reading == reading.name)?;
            Some(mark(verdict))
        });
        tiles.row(&reading.name, marks.collect())
    });
    tiles
        .sign(Tone::For, "+", "holds")
        .sign(Tone::MaybeFor, "±", "in part, leans to it")
        .sign(Tone::MaybeAgainst, "?", "not sure, leans against it")
        .sign(Tone::Against, "−", "does not hold")
}

/// Readings against the comparisons of a claim with all its parts.
fn closer(rows: &[&Row]) -> Tiles {
    let first = |row: &&Row| row.first().map(|verdict| verdict.comparisons.clone());
    let mut columns = Vec::new();
    for (at, comparisons) in rows.iter().filter_map(first).enumerate() {
        columns.extend((at > 0).then(String::new));
        columns.extend(comparisons.into_iter().map(|comparison| comparison.what));
    }
    let of = |row: &Row, reading: &Reading| -> Vec<Option<Tile>> {
        let verdict = row.iter().find(|verdict| verdict.reading == reading.name);
        let width = row.first().map_or(0, |verdict| verdict.comparisons.len());
        let Some(verdict) = verdict else { return vec![None; width] };
        let tile = |comparison: &super::Comparison| {
            let mean = comparison.ours.map(|ours| ours.mean);
            let text = mean.map_or(String::new(), |mean| format!("{mean:+.1}"));
            Some(Tile { tone: tone(comparison.finding), text })
        };
        verdict.comparisons.iter().map(tile).collect()
    };
    let used = readings(&rows.iter().map(|row| (*row).clone()).collect::<Vec<_>>());
    let tiles = used.into_iter().fold(Tiles::new("", columns), |tiles, reading| {
        let mut line = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            line.extend((at > 0).then_some(None));
            line.extend(of(row, reading));
        }
        tiles.row(&reading.name, line)
    });
    Finding::TESTED
        .into_iter()
        .fold(tiles, |tiles, finding| tiles.legend(tone(finding), finding.text()))
}

/// The conditions under which a claim stands like this, as `when A; when B`.
fn conditions(row: &Row, standing: Standing) -> Option<String> {
    let when = |verdict: &Verdict| {
        let reading = reading::all().iter().find(|reading| reading.name == verdict.reading);
        reading.map(|reading| format!("when {} ({})", reading.when, reading.name))
    };
    let those = row.iter().filter(|verdict| verdict.standing == standing);
    let conditions: Vec<String> = those.filter_map(when).collect();
    (!conditions.is_empty()).then(|| conditions.join("; "))
}

/// The conditions under which a claim holds, in words.
pub(super) fn sentence(row: &Row) -> String {
    let count = |wanted: &[Standing]| row.iter().filter(|v| wanted.contains(&v.standing)).count();
    let holds = count(&[Standing::Holds]);
    let decided = holds + count(&[Standing::InPart, Standing::DoesNotHold]);
    if decided + count(&[Standing::Undecided]) == 0 {
        return "Not tested.".into();
    }
    let is_most = 2 * holds > decided;
    let mut text = match (holds, decided) {
        (_, 0) => "No reading decides".to_owned(),
        (0, _) => format!("Holds in none of the readings that decide ({decided})"),
        (1, 1) => "Holds in the one reading that decides".into(),
        _ if holds == decided => format!("Holds in all {decided} readings that decide"),
        _ if is_most => format!("Holds in most readings that decide ({holds} of {decided})"),
        _ => format!("Holds in some readings that decide ({holds} of {decided})"),
    };
    let groups = [
        (Standing::Holds, "Holds"),
        (Standing::InPart, "In part"),
        (Standing::DoesNotHold, "Does not hold"),
        (Standing::Undecided, "Undecided"),
    ];
    // The largest group goes without its conditions: the others say it in fewer words.
    let largest = groups.iter().max_by_key(|(standing, _)| count(&[*standing]));
    let largest = largest.filter(|(standing, _)| count(&[*standing]) > 3);
    for group @ (standing, words) in &groups {
        let conditions = conditions(row, *standing).filter(|_| largest != Some(group));
        if let Some(conditions) = conditions {
            text += &format!(". {words} {conditions}");
        }
    }
    if let Some((standing, words)) = largest.filter(|(standing, _)| *standing != Standing::Holds) {
        let others = count(&[*standing]);
        text += &format!(". {words} in the other {others}");
    }
    text + "."
}

/// One row for each claim, with the region in which it holds.
fn regions(rows: &[Row]) -> Table {
    let caption = "A claim holds under a reading if the mean over its comparisons is shown and each of \
                   them has the paper's sign; in part, if something is shown; it does not hold, if \
                   only contradictions are sure. Readings share their seeds and are not corrected for \
                   one another: with no true difference, a claim holds in about one of twenty by \
                   chance.";
    let headers = ["Claim", "The paper says", "Main reading, MNIST", "Readings"];
    let mut table = Table::new(caption, &headers);
    for row in rows {
        let Some(main) = row.first() else { continue };
        table.row([
            Entry::from(main.claim.as_str()),
            main.statement.as_str().into(),
            Entry::badge(badge(main.standing), main.standing.text()),
            sentence(row).into(),
        ]);
    }
    table
}

/// The readings, with their conditions and reasons.
fn reasons(rows: &[Row]) -> Table {
    let caption = "Readings, as they were written down before their cells ran.";
    let mut table = Table::new(caption, &["Reading", "When", "Because", "Changes"]);
    for reading in readings(rows) {
        let base = reading.on.iter().map(|base| format!("as {base}"));
        let changes = base.chain(reading.set.iter().map(|change| format!("`{change}`")));
        let changes = changes.collect::<Vec<_>>().join(", ");
        table.row([&reading.name, &reading.when, &reading.because, &changes].map(String::as_str));
    }
    table
}

/// Names of the maps of single claims: the number of the claim, and the names of its drawing.
const CLOSER: [(&str, &str); 6] = [
    ("1", "map-claim-1"),
    ("2", "map-claim-2"),
    ("3", "map-claim-3"),
    ("4", "map-claim-4"),
    ("5", "map-claim-5"),
    ("9", "map-claim-9"),
];

/// The chapter with the map of all claims, and those of single ones.
pub(super) fn chapter(rows: &[Row]) -> Chapter {
    let mut chapter = Chapter::new(
        "Map",
        "Every claim under every reading that bears on it. The main reading is the nearest to the text; \
         the others are plausible too, and were written down before their cells ran. Comparisons are \
         tested in the direction that the paper says: shown and contradicted are one-sided at 5 %, \
         corrected by Holm over the comparisons of a claim; consistent and undecided have the one or \
         the other sign, and may be chance.",
    )
    .picture(
        "map",
        "Read down a column: a claim that is blue throughout depends on no choice of ours.",
        Drawing::Tiles(overview(rows)),
    )
    .table(regions(rows));
    for (claim, name) in CLOSER {
        let is_part = |row: &&Row| row.first().is_some_and(|v| reading::is_part(&v.claim, claim));
        let rows: Vec<&Row> = rows.iter().filter(is_part).collect();
        if !rows.is_empty() {
            let caption = "Mean differences, in the unit of the claim, by reading and comparison.";
            chapter = chapter.picture(name, caption, Drawing::Tiles(closer(&rows)));
        }
    }
    chapter.table(reasons(rows))
}

/// One row for each comparison of a claim.
pub(super) fn comparison_table(verdict: &Verdict) -> Table {
    let headers = [
        "Comparison",
        ">paper",
        ">ours",
        "Unit",
        ">seeds for it",
        "Word",
        ">p",
        ">p against",
        ">detectable",
        "paper in interval",
    ];
    let Verdict { claim, statement, seeds, .. } = verdict;
    let caption = format!(
        "Claim {claim}: {statement}. {seeds} seeds; p one-sided, after Holm's correction, of a \
         claim about means; detectable: with a power of 80 %."
    );
    let mut table = Table::new(&caption, &headers);
    let yes_no = |value: Option<bool>| value.map_or("–", |value| if value { "yes" } else { "no" });
    let number = |value: Option<f64>, shown: fn(f64) -> String| value.map_or("–".into(), shown);
    let p_of =
        |tested: Option<Tested>, p: fn(Tested) -> f64| number(tested.map(p), |p| format!("{p:.4}"));
    for comparison in &verdict.comparisons {
        let tested = comparison.tested.filter(|_| !comparison.exact);
        let seeds = comparison.seeds_for_it();
        table.row([
            Entry::from(comparison.what.as_str()),
            number(comparison.paper, |paper| format!("{paper:+.3}")).into(),
            shown_gain(comparison.ours).into(),
            comparison.unit.as_str().into(),
            seeds.map_or("–".into(), |[for_it, all]| format!("{for_it} of {all}")).into(),
            Entry::badge(finding_badge(comparison.finding), comparison.finding.text()),
            p_of(tested, |tested| tested.p).into(),
            p_of(tested, |tested| tested.p_against).into(),
            number(comparison.detectable, |least| format!("{least:.2}")).into(),
            yes_no(comparison.paper_in_interval).into(),
        ]);
    }
    if verdict.comparisons.len() > 1 && !verdict.comparisons.iter().any(|c| c.exact) {
        let dash = || Entry::from("–");
        let finding = Finding::from_test(verdict.combined);
        table.row([
            "mean of these".into(),
            dash(),
            dash(),
            dash(),
            dash(),
            Entry::badge(finding_badge(finding), finding.text()),
            p_of(verdict.combined, |tested| tested.p).into(),
            p_of(verdict.combined, |tested| tested.p_against).into(),
            dash(),
            dash(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(standings: &[(&str, Standing)]) -> Row {
        let verdict = |(reading, standing): &(&str, Standing)| Verdict {
            claim: "1".into(),
            statement: String::new(),
            reading: (*reading).into(),
            seeds: 10,
            cells: None,
            standing: *standing,
            combined: None,
            comparisons: Vec::new(),
        };
        standings.iter().map(verdict).collect()
    }

    #[test]
    fn a_sentence_names_the_fewer_readings() {
        use Standing::{DoesNotHold, Holds, InPart, NotTested, Undecided};
        for (standings, expected) in [
            (&[("main", NotTested)][..], "Not tested."),
            (
                &[("main", Undecided)],
                "No reading decides. Undecided when read as near to the text as it \
                                      trains (main).",
            ),
            (
                &[("main", Holds), ("small", Holds)],
                "Holds in all 2 readings that decide. Holds when read \
                                      as near to the text as it trains (main); when devices have \
                                      hundreds of samples (small).",
            ),
            (
                &[
                    ("main", Holds),
                    ("small", Holds),
                    ("uneven", Holds),
                    ("former", Holds),
                    ("gains-0", InPart),
                ],
                "Holds in most readings that decide (4 of 5). In part when gains are 0 (gains-0).",
            ),
            (
                &[
                    ("main", DoesNotHold),
                    ("small", DoesNotHold),
                    ("uneven", DoesNotHold),
                    ("former", DoesNotHold),
                    ("gains-0", Holds),
                ],
                "Holds in some readings that decide (1 of 5). Holds when gains are 0 (gains-0). Does not \
                 hold in the other 4.",
            ),
        ] {
            assert_eq!(sentence(&row(standings)), expected);
        }
    }
}
