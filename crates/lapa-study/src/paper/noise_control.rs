//! Dynamic noise control with optimized and with average power (Section V-D): claim 5.

use lapa::budget::round_up;
use lapa_report::plot::Panels;

use super::chapter::{Chapter, Drawing, Picture, accuracy_table, convergence_figure};
use super::curve::{Base, base};
use super::{Comparison, Curve, DATA, PaperFigure, Seen, Verdict};
use crate::cell::Finished;
use crate::report::Table;

pub(super) const BASE: Base = base!("paper/power.toml");

/// Optimized against average power under the paper's switch, and under one that protects every
/// device.
pub struct NoiseControl;

/// When the channel's noise stands in for artificial noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    /// For all devices at once, by a sum: as printed.
    Sum,
    /// For each device by itself.
    PerDevice,
}

impl Switch {
    pub const ALL: [Self; 2] = [Self::Sum, Self::PerDevice];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum rule, as printed",
            Self::PerDevice => "per-device rule",
        }
    }

    pub fn apply(self, curve: Curve) -> Curve {
        match self {
            Self::Sum => curve.with("control.switch.rule=sum"),
            Self::PerDevice => curve.with("control.switch.rule=per-device"),
        }
    }
}

fn on(curve: Curve, data: &str, switch: Switch) -> Curve {
    switch.apply(curve.with(format!("data.name={data}")))
}

fn optimized(data: &str, switch: Switch) -> Curve {
    on(
        Curve::new("LAPA, power by DDPG (Configuration 5)", BASE).with("control.power=ddpg"),
        data,
        switch,
    )
}

pub(super) fn average(data: &str, switch: Switch) -> Curve {
    on(Curve::new("LAPA, average power", BASE), data, switch)
}

fn arb(data: &str, switch: Switch) -> Curve {
    let curve = Curve::new("ARB, average power (Benchmark 4)", BASE);
    on(curve.with("privacy.allocator=arb"), data, switch)
}

pub(super) fn of(data: &str, switch: Switch) -> [Curve; 3] {
    [optimized(data, switch), average(data, switch), arb(data, switch)]
}

/// What the methods on MNIST are worth, the worst over seeds.
fn privacy_table(seen: &Seen) -> Table {
    let caption = "MNIST, worst seed: proven ε with channel noise counted (κ = 1) and without it, \
                   number of releases with less noise than required, and the largest factor.";
    let headers = ["Method", ">ε, κ = 1", ">ε, κ = 0", ">under-noised", ">worst factor"];
    let mut table = Table::new(caption, &headers);
    for switch in Switch::ALL {
        for curve in of(DATA[0].0, switch) {
            let most = |value: &dyn Fn(&Finished) -> f64| {
                seen.each(&curve, value)?.into_iter().reduce(f64::max)
            };
            let epsilon = |value: Option<f64>| value.map_or("–".into(), round_up);
            let privacy = |finished: &Finished| finished.summary.privacy.epsilon_provable;
            let without = |finished: &Finished| finished.summary.privacy.epsilon_without_channel;
            let under = |finished: &Finished| finished.summary.under_noised.device_rounds as f64;
            let factor =
                |finished: &Finished| finished.summary.under_noised.worst_factor.unwrap_or(1.0);
            table.row([
                format!("{}; {}", curve.name, switch.name()),
                epsilon(most(&privacy)),
                epsilon(most(&without)),
                most(&under).map_or("–".into(), |count| format!("{count:.0}")),
                most(&factor).map_or("–".into(), |factor| format!("{factor:.1}")),
            ]);
        }
    }
    table
}

impl PaperFigure for NoiseControl {
    fn name(&self) -> &'static str {
        "noise-control"
    }

    fn curves(&self) -> Vec<Curve> {
        let all = |(data, _)| Switch::ALL.into_iter().flat_map(move |switch| of(data, switch));
        DATA.into_iter().flat_map(all).collect()
    }

    fn chapter(&self, seen: &Seen) -> Chapter {
        let mut panels = Panels::new("Noise control by transmit power").columns(2);
        for switch in Switch::ALL {
            for (data, name) in DATA {
                let title = format!("{name}, {}", switch.name());
                panels = panels.panel(convergence_figure(seen, &title, &of(data, switch)));
            }
        }
        let columns = DATA.map(|(_, name)| name.to_owned());
        let rows = Switch::ALL.into_iter().flat_map(|switch| {
            (0..of(DATA[0].0, switch).len()).map(move |row| {
                let curves = DATA.map(|(data, _)| of(data, switch)[row].clone());
                (format!("{}; {}", curves[0].name, switch.name()), curves.to_vec())
            })
        });
        Chapter {
            title: "Noise control with optimized and average power".into(),
            text: "Channel noise replaces artificial noise. Powers are chosen by DDPG after a pilot \
                   on synthetic digits, or are equal. Top: the paper's sum rule, which compares sums \
                   over the devices and leaves some devices with less noise than they need. Bottom: \
                   every device switches by itself. The methods are not equally private; see the \
                   table."
                .into(),
            pictures: vec![Picture {
                name: "noise-control".into(),
                caption: "How much does optimized power gain over average power, and does the gain \
                          remain when every device is protected?"
                    .into(),
                drawing: Drawing::Panels(panels),
            }],
            tables: vec![accuracy_table(seen, "Method", &columns, rows), privacy_table(seen)],
        }
    }

    fn judge(&self, seen: &Seen) -> Vec<Verdict> {
        let paper = [[1.465, 5.872], [0.910, 2.705]];
        let judged = |switch: Switch| {
            let mut comparisons = Vec::new();
            for ((data, name), [over_average, over_arb]) in DATA.into_iter().zip(paper) {
                let [ours, average, arb] = of(data, switch);
                let what = |text: &str| format!("{name}: {text}");
                let gains = |over, of| seen.gains(over, of);
                comparisons.extend([
                    Comparison::positive(
                        what("optimized over average power"),
                        Some(over_average),
                        gains(&average, &ours),
                    ),
                    Comparison::positive(
                        what("LAPA over ARB, both at average power"),
                        Some(over_arb - over_average),
                        gains(&arb, &average),
                    ),
                    Comparison::positive(
                        what("optimized LAPA over ARB at average power"),
                        Some(over_arb),
                        gains(&arb, &ours),
                    ),
                ]);
            }
            comparisons
        };
        let statement = "LAPA with optimized power beats average power, and both beat ARB";
        let honest = "The same with enough noise on every device (not in the paper)";
        vec![
            Verdict::new("5", statement, judged(Switch::Sum)),
            Verdict::new("5, every device protected", honest, judged(Switch::PerDevice)),
        ]
    }
}
