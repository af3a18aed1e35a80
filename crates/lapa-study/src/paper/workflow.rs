//! The workflow of a round, with the bytes of a real run (the paper's first figure).

use lapa_report::plot::Diagram;

use super::chapter::{Chapter, Drawing, Picture};
use super::overhead::{Bytes, PARAMETERS, curve};
use super::{Curve, PaperFigure, Seen, Verdict};

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
            let per_upload = |bytes: u64| kilobytes(bytes / rounds / devices);
            let up = format!("{} each", per_upload(bytes.gradients));
            let down = format!("{} per round", kilobytes(bytes.models / rounds));
            let clip = format!("{PARAMETERS} coordinates");
            let histograms = format!("histograms: {} B, once", bytes.histograms);
            let gradient = format!("gradients: {} per round", kilobytes(bytes.gradients / rounds));
            let diagram = Diagram::new("One round, with the bytes of a run")
                .lane("Device k")
                .lane("Radio")
                .lane("Base station")
                .boxed((0, 0), "learn", ["gradient of a batch", &clip])
                .boxed((0, 1), "clip", ["norm at most C"])
                .boxed((0, 2), "add noise", ["by the device's", "budget"])
                .boxed((1, 2), "uplink", [gradient.as_str(), &histograms])
                .boxed((2, 2), "aggregate", ["weights by labels", "and links"])
                .boxed((2, 1), "allocate", ["change of the global", "gradient, angles"])
                .boxed((2, 0), "step", ["the global model"])
                .boxed((1, 0), "downlink", ["model and budget"])
                .arrow((0, 0), (0, 1), "")
                .arrow((0, 1), (0, 2), "")
                .arrow((0, 2), (1, 2), up)
                .arrow((1, 2), (2, 2), "")
                .arrow((2, 2), (2, 1), "")
                .arrow((2, 1), (2, 0), "")
                .arrow((2, 0), (1, 0), down)
                .arrow((1, 0), (0, 0), "");
            Picture {
                name: "workflow".into(),
                caption: "The uplink carries gradients, and a few bytes that the paper does not \
                          mention."
                    .into(),
                drawing: Drawing::Diagram(diagram),
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
