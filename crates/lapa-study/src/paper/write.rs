//! Everything a reproduction leaves in its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lapa::files::{self, Folder};
use lapa_report::plot::{Forest, PlotError};
use serde::Serialize;
use serde_json::json;

use super::chapter::{Chapter, Drawing};
use super::judged::{self, Judged};
use super::{Evidence, Scope, Selection, Verdict, map};
use crate::report::{Entry, Page, ReportError, Table, markdown, write};

/// Comparisons with a number of the paper make an overview.
fn overview(verdicts: &[Verdict]) -> Option<Drawing> {
    let mut forest = Forest::new("Gains in the paper and here", "Gain in accuracy (points)")
        .reference("the paper");
    let mut any = false;
    for verdict in verdicts {
        let numbered = verdict.comparisons.iter().filter(|c| c.unit == "points");
        let rows: Vec<_> =
            numbered.filter_map(|c| Some((&c.what, c.ours?, Some(c.paper?)))).collect();
        if rows.is_empty() {
            continue;
        }
        any = true;
        forest = forest.group(format!("Claim {}", verdict.claim));
        for (what, ours, paper) in rows {
            forest = forest.row(what, ours.mean, ours.interval.unwrap_or([f64::NAN; 2]), paper);
        }
    }
    any.then_some(Drawing::Forest(forest))
}

/// One row for each claim under the main reading.
fn verdict_table(verdicts: &[Verdict]) -> Table {
    let headers = ["Claim", "The paper says", "Verdict", "Comparisons"];
    let mut table = Table::new("The main reading, in the conditions of the figures.", &headers);
    for verdict in verdicts {
        table.row([
            Entry::from(verdict.claim.as_str()),
            verdict.statement.as_str().into(),
            Entry::badge(map::badge(verdict.standing), verdict.standing.text()),
            verdict.counts().into(),
        ]);
    }
    let risk = "The risk of leakage falls about exponentially over rounds";
    table.row(["8", risk, "by attacks: `lapa audit`", "–"]);
    table
}

/// Draws the figures, judges the claims and writes the report: `verdicts.json`, `timings.json`,
/// `report.html`, `report.md` and `figures/`. Verdicts of earlier sittings in the folder stay.
pub fn write_all(
    out: &Path,
    selection: &Selection,
    evidence: &Evidence,
) -> Result<Vec<Verdict>, ReportError> {
    let path = out.join("verdicts.json");
    let judged = Judged::new(selection, evidence, judged::read(&path));
    let mut chapters = Vec::new();
    if !judged.map.is_empty() {
        chapters.push(map::chapter(&judged.map));
    }
    chapters.push(if judged.verdicts.is_empty() {
        Chapter::new("Setting", scope(evidence))
    } else {
        Chapter::new("Verdicts", scope(evidence)).table(verdict_table(&judged.verdicts))
    });
    if let Some(drawing) = overview(&judged.verdicts) {
        let text = "The gains for which the paper gives a number, next to ours.";
        let caption =
            "Which of our 95 % intervals include 0, and which include the number of the paper?";
        let chapter = Chapter::new("Numbers of the paper", text);
        chapters.push(chapter.picture("overview", caption, drawing));
    }
    for figure in &selection.figures {
        let mut chapter = (figure.chapter)(evidence);
        let own: BTreeSet<&str> =
            (figure.claims)(Scope::Map).iter().map(|claim| claim.id).collect();
        let own = judged.verdicts.iter().filter(|verdict| own.contains(verdict.claim.as_str()));
        chapter.tables.extend(own.map(map::comparison_table));
        chapters.push(chapter);
    }
    let folder = figures_folder(out)?;
    for chapter in &mut chapters {
        for picture in std::mem::take(&mut chapter.pictures) {
            match picture.save(&folder) {
                // A figure whose cells are missing is left out; its tables show dashes.
                Err(ReportError::Plot(PlotError::NoPoints { .. })) => continue,
                saved => saved?,
            }
            chapter.pictures.push(picture);
        }
    }
    write_json(&path, &judged)?;
    write_json(&out.join("timings.json"), &timings(selection, evidence))?;
    let title = if evidence.settings.quick {
        "Reproduction of the paper: preview"
    } else {
        "Reproduction of the paper"
    };
    write_pages(out, "report", title, &lead(evidence), &chapters)?;
    Ok(judged.verdicts)
}

/// Seeds of a verdict.
const SEEDS: u32 = 15;

/// Summary of the page, in a sentence or two.
fn lead(evidence: &Evidence) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if evidence.settings.quick {
        format!(
            "lapa {version}. PREVIEW with one seed and 30 rounds: the curves are short, there are no \
             intervals, and no claim is tested."
        )
    } else {
        let seeds = evidence.settings.seeds;
        let note = if seeds < SEEDS {
            format!(" PRELIMINARY: verdicts are meant for {SEEDS} seeds.")
        } else {
            String::new()
        };
        format!(
            "lapa {version}, {seeds} seeds. Every figure of the paper's evaluation, reproduced, with a \
             verdict on each claim.{note}"
        )
    }
}

/// Settings that all figures share.
fn scope(evidence: &Evidence) -> String {
    let note = if evidence.settings.quick {
        " This is a preview: no claim is tested, and the last five evaluations include rounds in \
             which the model still learns fast."
    } else {
        ""
    };
    format!(
        "All figures use the paper's formulas (basis paper), with receiver noise of 10⁻¹³ W and weights \
         that sum to 1. No method is tuned separately: all methods of a comparison share learning rate, \
         rounds, clip and partition (all of the training images on 15 devices, 3000–5000 on each). \
         Accuracy is the mean of the last five evaluations. Seeds count from {}: those below were used \
         to choose what the paper leaves open. Intervals are Student's t intervals over the seeds, on \
         paired differences where methods are compared.{note}",
        evidence.settings.first_seed
    )
}

/// Times of the cells. They are not part of the verdicts, which are the same every time.
fn timings(selection: &Selection, evidence: &Evidence) -> impl Serialize {
    let cells = selection.cells(evidence.settings).unwrap_or_default();
    let seconds: BTreeMap<&str, f64> = cells
        .iter()
        .filter_map(|cell| Some((cell.id(), evidence.results.get(cell)?.seconds)))
        .collect();
    json!({
        "cells": seconds.len(),
        "core_seconds": seconds.values().sum::<f64>(),
        "seconds_of_cells": seconds,
        "complexity": evidence.complexity,
    })
}

/// Path of the folder `figures` in `out`; both are made if need be.
pub(crate) fn figures_folder(out: &Path) -> Result<PathBuf, ReportError> {
    let path = out.join("figures");
    let made = Folder::create(out).and_then(|out| out.subfolder("figures"));
    made.map(|_| path.clone()).map_err(ReportError::io("create", &path))
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
            let path = out.join("figures").join(picture.name).with_extension("svg");
            let svg = files::read_to_string(&path).map_err(ReportError::io("read", &path))?;
            page.figure(&svg, picture.caption);
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
