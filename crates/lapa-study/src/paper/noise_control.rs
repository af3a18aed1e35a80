//! Dynamic noise control with optimized and with average power (Section V-D): claim 5.

use lapa::budget::round_up;
use lapa::run::Summary;
use lapa_report::plot::Panels;

use super::chapter::{Chapter, Drawing, accuracy_table, by_data, convergence_figure, data_names};
use super::curve::{Base, base};
use super::{Comparison, Curve, DATA, Seen, Verdict};
use crate::report::Table;

pub(super) const BASE: Base = base!("paper/power.toml");

/// Rule by which channel noise replaces artificial noise.
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

/// LAPA with optimized power, LAPA with average power, and ARB.
fn of(data: &str, switch: Switch) -> [Curve; 3] {
    let optimized = Curve::new("LAPA, power by DDPG (Configuration 5)", BASE);
    let arb = Curve::new("ARB, average power (Benchmark 4)", BASE);
    [
        optimized.with("control.power=ddpg"),
        Curve::new("LAPA, average power", BASE),
        arb.with("privacy.allocator=arb"),
    ]
    .map(|curve| switch.apply(curve.with(format!("data.name={data}"))))
}

pub(super) fn average(data: &str, switch: Switch) -> Curve {
    let [_, average, _] = of(data, switch);
    average
}

/// Privacy of the methods on MNIST, the worst over seeds.
fn privacy_table(seen: &Seen) -> Table {
    let caption = "MNIST, worst seed: proven ε with channel noise counted (κ = 1) and without it, \
                   number of releases with less noise than required, and the largest factor.";
    let headers = ["Method", ">ε, κ = 1", ">ε, κ = 0", ">under-noised", ">worst factor"];
    let mut table = Table::new(caption, &headers);
    for switch in Switch::ALL {
        for curve in of(DATA[0].0, switch) {
            let most = |value: fn(&Summary) -> f64, shown: fn(f64) -> String| {
                let most = seen.most(&curve, |finished| value(&finished.summary));
                most.map_or("–".into(), shown)
            };
            table.row([
                format!("{}; {}", curve.name, switch.name()),
                most(|run| run.privacy.epsilon_provable, round_up),
                most(|run| run.privacy.epsilon_without_channel, round_up),
                most(|run| run.under_noised.device_rounds as f64, |count| format!("{count:.0}")),
                most(
                    |run| run.under_noised.worst_factor.unwrap_or(1.0),
                    |factor| format!("{factor:.1}"),
                ),
            ]);
        }
    }
    table
}

pub fn curves() -> Vec<Curve> {
    let all = |(data, _)| Switch::ALL.into_iter().flat_map(move |switch| of(data, switch));
    DATA.into_iter().flat_map(all).collect()
}

pub fn chapter(seen: &Seen) -> Chapter {
    let mut panels = Panels::new("Noise control by transmit power").columns(2);
    for switch in Switch::ALL {
        for (data, name) in DATA {
            let title = format!("{name}, {}", switch.name());
            panels = panels.panel(convergence_figure(seen, &title, &of(data, switch)));
        }
    }
    let rows = Switch::ALL.into_iter().flat_map(|switch| {
        by_data(|data| of(data, switch).into(), &format!("; {}", switch.name()))
    });
    Chapter::new(
        "Noise control with optimized and average power",
        "Channel noise replaces artificial noise, over NOMA with perfect cancellation and one scale \
         for all rounds, as in the paper. Powers are chosen by DDPG after three pilots on the \
         devices' own records, or are equal. Top: the paper's sum rule, which compares sums over the \
         devices and leaves some devices with less noise than they need. Bottom: every device \
         switches by itself. The methods are not equally private; see the table.",
    )
    .picture(
        "noise-control",
        "How much does optimized power gain over average power, and does the gain remain when \
         every device is protected?",
        Drawing::Panels(panels),
    )
    .table(accuracy_table(seen, "Method", data_names(), rows))
    .table(privacy_table(seen))
}

pub fn judge(seen: &Seen) -> Vec<Verdict> {
    let paper = [[1.465, 5.872], [0.910, 2.705]];
    let judged = |switch: Switch| {
        let mut comparisons = Vec::new();
        for ((data, name), [over_average, over_arb]) in DATA.into_iter().zip(paper) {
            let [ours, average, arb] = of(data, switch);
            for (what, paper, over, of) in [
                ("optimized over average power", over_average, &average, &ours),
                ("LAPA over ARB, both at average power", over_arb - over_average, &arb, &average),
                ("optimized LAPA over ARB at average power", over_arb, &arb, &ours),
            ] {
                let (what, gains) = (format!("{name}: {what}"), seen.gains(over, of));
                comparisons.push(Comparison::positive(what, Some(paper), gains));
            }
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
