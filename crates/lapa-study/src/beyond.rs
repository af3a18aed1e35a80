//! Beyond the paper: policies at equal provable privacy of the worst device.

use std::path::Path;

use lapa::budget::round_up;
use lapa::config::ConfigError;
use lapa::run::Summary;
use lapa_report::plot::{Figure, Panels, Series};
use serde::Serialize;
use serde_json::json;

use crate::cell::Cell;
use crate::paper::curve::{base, cells};
use crate::paper::{
    Base, Chapter, Curve, DATA, Drawing, Evidence, Settings, band, figures_folder, shown,
    shown_gain, write_json, write_pages,
};
use crate::report::{Badge, Entry, ReportError, Table};
use crate::statistics::Estimate;

/// A way to spend a device's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// DP-SGD with the same noise in every round: what others do.
    Uniform,
    /// LAPA on the certified basis.
    Lapa,
    /// The best policy we know of.
    Best,
    /// ARB on the certified basis.
    Arb,
}

impl Policy {
    /// All of them; the last only on request.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Lapa, Self::Best, Self::Arb];

    /// On the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Lapa => "lapa",
            Self::Best => "best",
            Self::Arb => "arb",
        }
    }

    fn base(self) -> Base {
        match self {
            Self::Uniform | Self::Arb => base!("beyond/uniform.toml"),
            Self::Lapa => base!("beyond/lapa.toml"),
            Self::Best => base!("beyond/best.toml"),
        }
    }
}

/// A way to combine artificial noise with channel noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseMode {
    /// The channel's noise comes on top and counts for nothing (κ = 0).
    Always,
    /// Artificial noise only fills up what the channel's leaves open (κ = 1).
    TopUp,
    /// Artificial noise ends when the device's channel suffices (κ = 1).
    Switch,
}

impl NoiseMode {
    /// All of them; the last only on request.
    pub const ALL: [Self; 3] = [Self::Always, Self::TopUp, Self::Switch];

    /// On the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::TopUp => "top-up",
            Self::Switch => "switch",
        }
    }
}

/// Policies, noise modes and budgets to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Policies.
    pub policies: Vec<Policy>,
    /// Noise modes.
    pub noises: Vec<NoiseMode>,
    /// Budgets ε of every device; δ is 1e-5.
    pub epsilons: Vec<f64>,
}

impl Default for Comparison {
    fn default() -> Self {
        Self {
            policies: vec![Policy::Uniform, Policy::Lapa, Policy::Best],
            noises: vec![NoiseMode::Always, NoiseMode::TopUp],
            epsilons: vec![1.0, 2.0, 8.0],
        }
    }
}

/// One policy with one noise mode at one budget on one data set.
fn curve(policy: Policy, noise: NoiseMode, epsilon: f64, data: &str) -> Curve {
    let name = format!("{}, {}", policy.name(), noise.name());
    let mut curve = Curve::new(name, policy.base())
        .with(format!("data.name={data}"))
        .with(format!("privacy.epsilon={epsilon}"));
    if policy == Policy::Arb {
        curve = curve.with("privacy.allocator=arb");
    }
    match noise {
        NoiseMode::Always => curve,
        _ => {
            let noise = format!("control.noise={}", noise.name());
            curve.with("privacy.channel_trust=1").with(noise)
        }
    }
}

impl Comparison {
    /// Each policy with each noise mode.
    fn methods(&self) -> impl Iterator<Item = (Policy, NoiseMode)> {
        let noises = |&policy| self.noises.iter().map(move |&noise| (policy, noise));
        self.policies.iter().flat_map(noises)
    }

    /// Every method at every budget on every data set.
    fn all(&self) -> impl Iterator<Item = (Policy, NoiseMode, f64, &'static str)> {
        let budgets =
            DATA.into_iter().flat_map(|(data, _)| self.epsilons.iter().map(move |&e| (data, e)));
        budgets.flat_map(|(data, epsilon)| {
            self.methods().map(move |(policy, noise)| (policy, noise, epsilon, data))
        })
    }

    /// The cells.
    pub fn cells(&self, settings: Settings) -> Result<Vec<Cell>, ConfigError> {
        let curves = self.all().map(|(policy, noise, e, data)| curve(policy, noise, e, data));
        cells(curves, settings)
    }

    /// Gains over uniform with the same noise mode, and costs of the cells.
    fn rows(&self, evidence: &Evidence) -> Vec<Row> {
        let row = |(policy, noise, epsilon, data)| {
            let of = curve(policy, noise, epsilon, data);
            let uniform = curve(Policy::Uniform, noise, epsilon, data);
            let most = |value: fn(&Summary) -> f64| {
                evidence.most(&of, |finished| value(&finished.summary))
            };
            let gains = (policy != Policy::Uniform).then(|| evidence.gains(&uniform, &of));
            Row {
                data,
                epsilon,
                policy: policy.name(),
                noise: noise.name(),
                accuracy: Estimate::of_each(evidence.accuracies(&of)),
                gain: Estimate::of_each(gains.flatten()),
                epsilon_provable: most(|run| run.privacy.epsilon_provable),
                energy_j: most(|run| run.energy_j),
                uplink_bytes: most(|run| run.uplink_bytes as f64),
                rounds: most(|run| f64::from(run.rounds)),
            }
        };
        self.all().map(row).collect()
    }

    /// Draws, tabulates and writes `beyond.json`, `beyond.html`, `beyond.md` and figures to `out`.
    pub fn write(&self, out: &Path, evidence: &Evidence) -> Result<Vec<Row>, ReportError> {
        let folder = figures_folder(out)?;
        let rows = self.rows(evidence);
        let value = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "seeds": evidence.settings.seeds,
            "quick": evidence.settings.quick,
            "rows": rows,
        });
        write_json(&out.join("beyond.json"), &value)?;
        let quick = if evidence.settings.quick {
            " PREVIEW: few rounds and one seed; the last five evaluations, whose mean is shown, \
                 include rounds in which the model still learns fast."
        } else {
            ""
        };
        let text = format!(
            "Every method has the same proven (ε, 10⁻⁵) for the worst device before its first \
             round, on devices of full size. Noise `always` counts no channel noise; `top-up` \
             counts the receiver noise (κ = 1), which holds as long as no receiver is better than \
             declared. {} seeds.{quick}",
            evidence.settings.seeds
        );
        let chapter = Chapter::new("Policies at equal proven privacy", text).picture(
            "beyond",
            "Compare each policy with uniform at the same ε. In the legend: the largest energy \
             that all devices together radiated.",
            Drawing::Panels(self.panels(evidence)),
        );
        let chapter = DATA
            .iter()
            .fold(chapter, |chapter, (data, name)| chapter.table(table(name, data, &rows)));
        chapter.pictures[0].save(&folder)?;
        let title = "Beyond the paper: accuracy at equal proven privacy";
        write_pages(out, "beyond", title, "", &[chapter])?;
        Ok(rows)
    }

    /// Accuracy over ε, with the energy of a run in the legend: three quantities in one plot.
    fn panels(&self, evidence: &Evidence) -> Panels {
        let mut panels = Panels::new("Privacy, accuracy and energy").columns(2);
        for (data, name) in DATA {
            let figure = Figure::new(name, "Proven ε of the worst device", "Test accuracy");
            let mut figure = figure.percent().log_x();
            for (policy, noise) in self.methods() {
                let curves = self.epsilons.iter().map(|&e| (e, curve(policy, noise, e, data)));
                let seen_of: Vec<_> =
                    curves.filter_map(|(e, curve)| Some((e, evidence.finished(&curve)?))).collect();
                let points = seen_of.iter().map(|(epsilon, cells)| {
                    let values: Vec<f64> = cells.iter().map(|cell| cell.accuracy()).collect();
                    band(*epsilon, &values)
                });
                let cells = seen_of.iter().flat_map(|(_, cells)| cells);
                let energy = cells.map(|cell| cell.summary.energy_j).reduce(f64::max);
                let energy = energy.map_or("–".into(), |energy| format!("{energy:.1} J"));
                let label = format!("{}, {} ({energy})", policy.name(), noise.name());
                let series = Series::with_band(label, points);
                let series = if noise == NoiseMode::Always { series } else { series.dashed() };
                figure = figure.line(series);
            }
            panels = panels.panel(figure);
        }
        panels
    }
}

/// One method at one budget.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    data: &'static str,
    epsilon: f64,
    policy: &'static str,
    noise: &'static str,
    /// Final accuracy in percent.
    accuracy: Option<Estimate>,
    /// Points over uniform with the same noise mode, paired by seeds.
    gain: Option<Estimate>,
    /// The worst device's, the worst over seeds.
    epsilon_provable: Option<f64>,
    energy_j: Option<f64>,
    uplink_bytes: Option<f64>,
    rounds: Option<f64>,
}

impl Row {
    /// Data, policy, noise, ε, ε as proved, accuracy and gain, for people.
    pub fn texts(&self) -> Vec<String> {
        vec![
            self.data.to_owned(),
            self.policy.to_owned(),
            self.noise.to_owned(),
            self.epsilon.to_string(),
            self.epsilon_provable.map_or("–".into(), round_up),
            shown(self.accuracy),
            shown_gain(self.gain),
        ]
    }
}

fn table(name: &str, data: &str, rows: &[Row]) -> Table {
    let caption = format!(
        "{name}: accuracy in percent and gain over uniform in points, ± half-width of the 95 % \
         interval over the seeds; proven ε of the worst seed."
    );
    let headers = [
        "Policy",
        "Noise",
        ">ε",
        ">ε proven",
        ">accuracy",
        ">vs. uniform",
        "verdict",
        ">energy (J)",
    ];
    let mut table = Table::new(&caption, &headers);
    for row in rows.iter().filter(|row| row.data == data) {
        let sure = match row.gain.and_then(|gain| gain.interval) {
            Some([low, _]) if low > 0.0 => Entry::badge(Badge::Good, "better"),
            Some([_, high]) if high < 0.0 => Entry::badge(Badge::Bad, "worse"),
            Some(_) => Entry::badge(Badge::Mixed, "undecided"),
            None => Entry::from("–"),
        };
        let mut entries: Vec<Entry> = row.texts().into_iter().skip(1).map(Entry::from).collect();
        let energy = row.energy_j.map_or("–".into(), |energy| format!("{energy:.2}"));
        entries.extend([sure, energy.into()]);
        table.row(entries);
    }
    table
}
