//! The workflow of a round, with the bytes of a real run (the paper's first figure).

use super::chapter::{Chapter, Drawing, Picture};
use super::overhead::{Bytes, PARAMETERS, curve};
use super::{Curve, PaperFigure, Seen, Verdict};

/// Boxes and arrows, with names in braces where the bytes of the run go.
const DRAWING: &str = include_str!("workflow.svg");

/// The steps of a round and what travels between them.
pub struct Workflow;

impl PaperFigure for Workflow {
    fn name(&self) -> &'static str {
        "workflow"
    }

    fn curves(&self) -> Vec<Curve> {
        vec![curve()]
    }

    fn chapter(&self, seen: &Seen) -> Chapter {
        let cells = seen.finished(&curve());
        let pictures = cells.as_deref().and_then(|cells| cells.first()).map(|finished| {
            let (bytes, summary) = (Bytes::of(finished), &finished.summary);
            let (rounds, devices) = (u64::from(summary.rounds), u64::from(summary.devices));
            let svg = [
                ("{gradient}", kilobytes(bytes.gradients / rounds / devices)),
                ("{gradients}", kilobytes(bytes.gradients / rounds)),
                ("{histograms}", bytes.histograms.to_string()),
                ("{model}", kilobytes(bytes.models / rounds)),
                ("{parameters}", PARAMETERS.to_string()),
            ]
            .iter()
            .fold(DRAWING.to_owned(), |svg, (name, value)| svg.replace(name, value));
            Picture {
                name: "workflow".into(),
                caption: "The uplink carries gradients, and a few bytes that the paper does not \
                          mention."
                    .into(),
                drawing: Drawing::Svg(svg),
            }
        });
        Chapter {
            title: "Workflow".into(),
            text: "The steps of a round, with the bytes that a run of LAPA on MNIST sent.".into(),
            pictures: pictures.into_iter().collect(),
            tables: Vec::new(),
        }
    }

    fn judge(&self, _: &Seen) -> Vec<Verdict> {
        Vec::new()
    }
}

fn kilobytes(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.2} MB", bytes as f64 / 1e6),
    }
}
