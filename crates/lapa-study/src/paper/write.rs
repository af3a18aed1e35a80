//! Everything a reproduction leaves in its folder.

use std::path::Path;

use lapa::files::{self, Folder};
use lapa_report::plot::{Forest, PlotError};
use serde::Serialize;
use serde_json::json;

use super::chapter::{Chapter, Drawing, Picture, shown_gain};
use super::{Comparison, PaperFigure, Seen, Verdict, Word, cells, verdicts};
use crate::report::{Badge, Entry, Page, ReportError, Table, markdown, write};

/// Comparisons with a number of the paper make an overview.
fn overview(verdicts: &[Verdict]) -> Option<Picture> {
    let numbered = |verdict: &Verdict| {
        let with_number = |c: &&Comparison| c.paper.is_some() && c.unit == "points";
        verdict.comparisons.iter().filter(with_number).cloned().collect::<Vec<_>>()
    };
    let mut forest = Forest::new("Gains in the paper and here", "Gain in accuracy (points)")
        .reference("the paper");
    let mut rows = 0;
    for verdict in verdicts {
        let comparisons = numbered(verdict);
        if comparisons.iter().all(|comparison| comparison.ours.is_none()) {
            continue;
        }
        forest = forest.group(format!("Claim {}", verdict.claim));
        for Comparison { what, paper, ours, .. } in comparisons {
            let Some(ours) = ours else { continue };
            let interval = ours.interval.unwrap_or([f64::NAN; 2]);
            forest = forest.row(what, ours.mean, interval, paper);
            rows += 1;
        }
    }
    (rows > 0).then(|| Picture {
        name: "overview".into(),
        caption: "Which of our 95 % intervals include 0, and which include the number of the \
                  paper?"
            .into(),
        drawing: Drawing::Forest(forest),
    })
}

fn badge(word: Word) -> Badge {
    match word {
        Word::Reproduced => Badge::Good,
        Word::InPart => Badge::Mixed,
        Word::NotReproduced => Badge::Bad,
        Word::NotJudged => Badge::Unknown,
    }
}

/// One row for each claim.
fn verdict_table(verdicts: &[Verdict]) -> Table {
    let headers = ["Claim", "Statement of the paper", "Verdict", ">comparisons that hold"];
    let caption = "Reproduced: every comparison has the sign of the paper, with a 95 % interval that \
                   excludes 0. In part: only some do.";
    let mut table = Table::new(caption, &headers);
    for verdict in verdicts {
        let hold = verdict.comparisons.iter().filter(|c| c.holds == Some(true)).count();
        table.row([
            Entry::from(verdict.claim.as_str()),
            verdict.statement.as_str().into(),
            Entry::badge(badge(verdict.word), verdict.word.text()),
            format!("{hold} of {}", verdict.comparisons.len()).into(),
        ]);
    }
    table
}

/// One row for each comparison of a claim.
fn comparison_table(verdict: &Verdict) -> Table {
    let headers =
        ["Comparison", ">paper", ">ours", "Unit", "holds", "our interval includes the paper"];
    let caption = format!("Claim {}: {}.", verdict.claim, verdict.statement);
    let mut table = Table::new(&caption, &headers);
    let yes_no = |value: Option<bool>| match value {
        Some(true) => "yes",
        Some(false) => "no",
        None => "–",
    };
    for comparison in &verdict.comparisons {
        let holds = match comparison.holds {
            Some(true) => Entry::badge(Badge::Good, "yes"),
            Some(false) => Entry::badge(Badge::Bad, "no"),
            None => Entry::badge(Badge::Unknown, "–"),
        };
        table.row([
            Entry::from(comparison.what.as_str()),
            comparison.paper.map_or("–".into(), |paper| format!("{paper:+.3}")).into(),
            shown_gain(comparison.ours).into(),
            comparison.unit.as_str().into(),
            holds,
            yes_no(comparison.paper_in_interval).into(),
        ]);
    }
    table
}

/// Draws the figures, judges the claims and writes the report. What it writes: `verdicts.json`,
/// `timings.json`, `report.html`, `report.md` and `figures/`.
pub fn write_all(
    out: &Path,
    figures: &[&dyn PaperFigure],
    seen: &Seen,
) -> Result<Vec<Verdict>, ReportError> {
    let verdicts = verdicts(figures, seen);
    let folder = out.join("figures");
    let made = Folder::create(out).and_then(|out| out.subfolder("figures"));
    made.map_err(ReportError::io("create", &folder))?;
    let mut chapters = vec![Chapter {
        title: "Verdicts".into(),
        text: scope(seen),
        pictures: Vec::new(),
        tables: vec![verdict_table(&verdicts)],
    }];
    if let Some(picture) = overview(&verdicts) {
        picture.save(&folder)?;
        chapters.push(Chapter {
            title: "Numbers of the paper".into(),
            text: "The gains for which the paper gives a number, next to ours.".into(),
            pictures: vec![picture],
            tables: Vec::new(),
        });
    }
    for figure in figures {
        let mut chapter = figure.chapter(seen);
        for picture in std::mem::take(&mut chapter.pictures) {
            match picture.save(&folder) {
                // A figure whose cells are missing is left out; its tables show dashes.
                Err(ReportError::Plot(PlotError::NoPoints { .. })) => {}
                saved => {
                    saved?;
                    chapter.pictures.push(picture);
                }
            }
        }
        let judged = figure.judge(seen);
        chapter.tables.extend(judged.iter().map(comparison_table));
        chapters.push(chapter);
    }
    write_json(
        &out.join("verdicts.json"),
        &json!({
            "version": env!("CARGO_PKG_VERSION"),
            "seeds": seen.settings.seeds,
            "quick": seen.settings.quick,
            "figures": figures.iter().map(|figure| figure.name()).collect::<Vec<_>>(),
            "verdicts": verdicts,
        }),
    )?;
    write_json(&out.join("timings.json"), &timings(figures, seen))?;
    let title = if seen.settings.quick {
        "Reproduction of the paper: preview"
    } else {
        "Reproduction of the paper"
    };
    write_pages(out, "report", title, &lead(seen), &chapters)?;
    Ok(verdicts)
}

/// What the page is, in a sentence or two.
fn lead(seen: &Seen) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if seen.settings.quick {
        format!(
            "lapa {version}. PREVIEW with one seed and 30 rounds: the curves are short, there are no \
             intervals, and no claim is tested."
        )
    } else {
        format!(
            "lapa {version}, {} seeds. Every figure of the paper's evaluation, reproduced, with a \
             verdict on each claim.",
            seen.settings.seeds
        )
    }
}

/// What all figures share.
fn scope(seen: &Seen) -> String {
    let note = if seen.settings.quick {
        " This is a preview: no claim is tested, and the last five evaluations include rounds in \
             which the model still learns fast."
    } else {
        ""
    };
    format!(
        "All figures use the paper's formulas (basis paper) in the forms that work: relative PID \
         error, receiver noise of 10⁻¹³ W, weights that sum to 1. No method is tuned separately: all \
         methods of a comparison share learning rate, rounds, clip and partition (15 devices; IID \
         devices have 100–300 samples, the others 200–600). Accuracy is the mean of the last five \
         evaluations. Intervals are Student's t intervals over the seeds, on paired differences where \
         methods are compared.{note}"
    )
}

/// How long cells took: not part of the verdicts, which are the same every time.
fn timings(figures: &[&dyn PaperFigure], seen: &Seen) -> impl Serialize {
    let cells = cells(figures, seen.settings).unwrap_or_default();
    let mut seconds: Vec<(String, f64)> = cells
        .iter()
        .filter_map(|cell| Some((cell.id().to_owned(), seen.results.get(cell)?.seconds)))
        .collect();
    seconds.sort_by(|a, b| a.0.cmp(&b.0));
    seconds.dedup_by(|a, b| a.0 == b.0);
    json!({
        "cells": seconds.len(),
        "core_seconds": seconds.iter().map(|(_, seconds)| seconds).sum::<f64>(),
        "seconds_of_cells": seconds.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "complexity": seen.complexity,
    })
}

/// Writes `name.html`, which stands alone, and `name.md`, whose figures are those in `figures/`.
pub(crate) fn write_pages(
    out: &Path,
    name: &str,
    title: &str,
    lead: &str,
    chapters: &[Chapter],
) -> Result<(), ReportError> {
    let mut page = Page::new(title);
    page.lead(lead);
    for Chapter { title, text, pictures, tables } in chapters {
        page.section(title).paragraph(text);
        for picture in pictures {
            let path = out.join("figures").join(&picture.name).with_extension("svg");
            let svg = files::read_to_string(&path).map_err(ReportError::io("read", &path))?;
            page.figure(&svg, &picture.caption);
        }
        for table in tables {
            page.table(table.clone());
        }
    }
    write(&out.join(name).with_extension("html"), page.finish().as_bytes())?;
    let text = markdown(title, lead, chapters);
    write(&out.join(name).with_extension("md"), text.as_bytes())
}

/// Writes a value as JSON, with a line for each field.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ReportError> {
    lapa::atomic::write_json(path, value).map_err(ReportError::io("write", path))
}
