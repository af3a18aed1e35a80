//! Dynamic noise control with optimized and with average power (Sections IV and V-D): claims 5 and
//! 11.

use lapa::budget::round_up;
use lapa::run::Summary;
use lapa_report::plot::Panels;

use super::chapter::{
    Chapter, Drawing, accuracy_table, by_data, convergence_figure, data_names, gains_figure,
};
use super::claim::{Claim, Contrast};
use super::curve::{Base, base};
use super::{Curve, DATA, Evidence, Scope};
use crate::cell::Finished;
use crate::report::Table;

pub(super) const BASE: Base = base!("paper/power.toml");

/// LAPA with optimized power, LAPA with average power, and ARB.
fn methods(data: &str) -> [Curve; 3] {
    let optimized = Curve::new("LAPA, optimized power (Configuration 5)", BASE);
    let average = Curve::new("LAPA, average power", BASE).with("control.power=equal");
    let arb = Curve::new("ARB, average power (Benchmark 4)", BASE).with("control.power=equal");
    [optimized, average, arb.with("privacy.allocator=arb")]
        .map(|curve| curve.with(format!("data.name={data}")))
}

/// LAPA with powers by static optimization, once and without learning.
fn fixed(data: &str) -> [Curve; 2] {
    [("closed form", "closed-form"), ("CMA-ES", "cma-es")].map(|(name, power)| {
        let curve = Curve::new(name, BASE).with(format!("control.power={power}"));
        curve.with(format!("data.name={data}"))
    })
}

/// The other way to take turns on the channel.
fn orthogonal(data: &str) -> Curve {
    let [_, average, _] = methods(data);
    average.with("transmit.access=orthogonal")
}

pub(super) fn average(data: &str) -> Curve {
    let [_, average, _] = methods(data);
    average
}

/// Privacy of the methods on MNIST, the worst over seeds.
fn privacy_table(evidence: &Evidence) -> Table {
    let caption = "MNIST, worst seed: proven ε with channel noise counted (κ = 1) and without it, \
                   number of releases with less noise than required, and the largest factor.";
    let headers = ["Method", ">ε, κ = 1", ">ε, κ = 0", ">under-noised", ">worst factor"];
    let mut table = Table::new(caption, &headers);
    for curve in methods(DATA[0].0) {
        let most = |value: fn(&Summary) -> f64, shown: fn(f64) -> String| {
            let most = evidence.most(&curve, |finished| value(&finished.summary));
            most.map_or("–".into(), shown)
        };
        table.row([
            curve.name.clone(),
            most(|run| run.privacy.epsilon_provable, round_up),
            most(|run| run.privacy.epsilon_without_channel, round_up),
            most(|run| run.under_noised.device_rounds as f64, |count| format!("{count:.0}")),
            most(
                |run| run.under_noised.worst_factor.unwrap_or(1.0),
                |factor| format!("{factor:.1}"),
            ),
        ]);
    }
    table
}

pub fn curves() -> Vec<Curve> {
    DATA.into_iter().flat_map(|(data, _)| methods(data)).collect()
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let mut panels = Panels::new("Noise control by transmit power").columns(2);
    for (data, name) in DATA {
        panels = panels.panel(convergence_figure(evidence, name, &methods(data)));
    }
    for (data, name) in DATA {
        let [optimized, average, arb] = methods(data);
        let title = format!("{name}, gains");
        panels = panels.panel(gains_figure(evidence, &title, &arb, &[optimized, average]));
    }
    let rows = by_data(|data| methods(data).into(), "");
    Chapter::new(
        "Noise control with optimized and average power",
        "Channel noise replaces artificial noise, over NOMA with perfect cancellation and one scale \
         for all rounds, as in the paper. Powers are chosen by DDPG after three pilots on the \
         devices' own records, or are equal, also where equal powers are better on the pilots or in a \
         rehearsal. The rule compares sums over the devices, as printed, and \
         leaves some devices with less noise than they need. The methods are not equally private; see \
         the table.",
    )
    .picture(
        "noise-control",
        "How much does optimized power gain over average power, and LAPA over ARB?",
        Drawing::Panels(panels),
    )
    .table(accuracy_table(evidence, "Method", data_names(), rows))
    .table(privacy_table(evidence))
}

/// The paper's gains in points on a data set: optimized over average power, and over ARB.
const PAPER: [[f64; 2]; 2] = [[1.465, 5.872], [0.910, 2.705]];

/// Claims that need no second data set.
fn claims_on_mnist() -> Vec<Claim> {
    let (data, name) = DATA[0];
    let [ours, average, _] = methods(data);
    let learned = fixed(data)
        .map(|other| Contrast::gain(format!("{name}: DDPG over {}", other.name), &other, &ours));
    let under_noised = |curve: &Curve, powers: &str| {
        let what = format!("{name}, {powers}: one, less the releases with too little noise");
        Contrast::new(what, "releases", vec![curve.clone()], |cells| {
            let count = |run: &&Finished| 1.0 - run.summary.under_noised.device_rounds as f64;
            cells[0].iter().map(count).collect()
        })
        .exact()
    };
    let noised = [(&average, "average power"), (&ours, "optimized power")];
    let what = format!("{name}: orthogonal access minus NOMA");
    let curves = [&orthogonal(data), &average];
    let airtime = Contrast::of_each(what, "s", curves, |run| run.summary.airtime_s).exact();
    vec![
        Claim::new("5d", "Learned powers beat powers by static optimization", learned.into()),
        Claim::new(
            "11",
            "No release has less noise than its budget asks for",
            noised.map(|(curve, powers)| under_noised(curve, powers)).into(),
        ),
        Claim::new("13", "NOMA needs less airtime than taking turns", vec![airtime]),
    ]
}

pub fn claims(scope: Scope) -> Vec<Claim> {
    let mut claims = vec![
        Claim::new("5a", "Optimized power beats average power", Vec::new()),
        Claim::new("5b", "LAPA beats ARB at average power", Vec::new()),
        Claim::new("5c", "LAPA with optimized power beats ARB at average power", Vec::new()),
    ];
    for (&(data, name), [over_average, over_arb]) in scope.data().iter().zip(PAPER) {
        let [ours, average, arb] = methods(data);
        let gain = |what: &str, of, over| Contrast::gain(format!("{name}: {what}"), over, of);
        let contrasts = [
            gain("optimized over average power", &ours, &average).paper(over_average),
            gain("LAPA over ARB, both at average power", &average, &arb)
                .paper(over_arb - over_average),
            gain("optimized LAPA over ARB at average power", &ours, &arb).paper(over_arb),
        ];
        for (claim, contrast) in claims.iter_mut().zip(contrasts) {
            claim.contrasts.push(contrast);
        }
    }
    claims.extend(claims_on_mnist());
    claims
}
