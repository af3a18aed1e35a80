//! Artificial and channel noise over rounds, with the switching round (Section IV-A).

use lapa::run::SwitchingRound;
use lapa_report::plot::{Figure, Panels, Series};

use super::chapter::{Chapter, Drawing};
use super::noise_control::average;
use super::{Curve, DATA, Evidence};
use crate::cell::{Finished, Round};

/// The paper's rule, and one in which every device switches by itself.
fn rules() -> [Curve; 2] {
    let mut printed = average(DATA[0].0);
    let mut alone = printed.clone().with("control.switch.rule=per-device");
    printed.name = "printed rule: by the sum, for good".into();
    alone.name = "each device by itself".into();
    [printed, alone]
}

/// Noise over the rounds of one run: medians over the devices.
fn panel(finished: &Finished, title: &str) -> Figure {
    type Part = fn(&Round) -> Option<f64>;
    let parts: [(&str, Part); 3] = [
        ("required", |round| round.sigma_required),
        ("artificial", |round| round.sigma_artificial),
        ("channel", |round| round.sigma_channel),
    ];
    let figure = Figure::new(title, "Round", "Standard deviation").log_y();
    let figure = parts.into_iter().fold(figure, |figure, (name, part)| {
        let points =
            finished.rounds.iter().filter_map(|round| Some((f64::from(round.round), part(round)?)));
        figure.line(Series::new(name, points))
    });
    let Some(switching) = &finished.summary.switching_round else { return figure };
    match (switching, switching.spread()) {
        (SwitchingRound::All(round), _) => figure.mark("T_th", f64::from(*round)),
        (_, Some([_, median, _])) => figure.mark("median T_th", f64::from(median)),
        (_, None) => figure,
    }
}

pub fn curves() -> Vec<Curve> {
    rules().into()
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let panels = rules().into_iter().fold(
        Panels::new("Noise control over a run").columns(2),
        |panels, curve| match evidence.first(&curve) {
            Some(first) => panels.panel(panel(first, &curve.name)),
            None => panels,
        },
    );
    Chapter::new(
        "The noise-control mechanism",
        "LAPA on MNIST at average power, first seed: required noise, artificial noise and channel \
         noise, medians over the transmitting devices. With one scale for all rounds channel noise \
         stays constant, as in Section IV-A.",
    )
    .picture(
        "mechanism",
        "Artificial noise ends at T_th: for all devices at once with the printed rule; with the \
         per-device rule the median falls when half of them have ended it.",
        Drawing::Panels(panels),
    )
}
