//! The workflow of a round, with the bytes of a real run (the paper's first figure).

use super::Evidence;
use super::chapter::{Chapter, Drawing};
use super::overhead::{Bytes, PARAMETERS, curve};

/// Boxes and arrows, with names in braces where the bytes of the run go.
const DRAWING: &str = include_str!("workflow.svg");

pub fn chapter(evidence: &Evidence) -> Chapter {
    let chapter = Chapter::new(
        "Workflow",
        "The steps of a round, with the bytes that a run of LAPA on MNIST sent.",
    );
    let Some(finished) = evidence.first(&curve()) else { return chapter };
    let (bytes, summary) = (Bytes::from_run(finished), &finished.summary);
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
    chapter.picture(
        "workflow",
        "The uplink carries gradients, and a few bytes that the paper does not mention.",
        Drawing::Svg(svg),
    )
}

fn kilobytes(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.2} MB", bytes as f64 / 1e6),
    }
}
