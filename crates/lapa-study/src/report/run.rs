//! The page of one finished run.

use std::io::Write;
use std::path::{Path, PathBuf};

use lapa::budget::round_up;
use lapa::files;
use lapa::observe::{DeviceRecord, DeviceRecords, Quantiles};
use lapa::run::{CheckedRun, Manifest, Summary, SwitchingRound, UnderNoised};

use super::privacy::{PrivacyFigures, shares_records};
use super::{Badge, Entry, Page, Table};
use super::{ReportError, accuracy, tensorboard, write};

/// The curves that a run leaves.
const CURVES: [&str; 4] = ["accuracy", "loss", "noise", "privacy"];
/// Its drawings of classes and of devices.
const CLASSES: [&str; 2] = ["confusion", "classes"];
const DEVICES: [&str; 1] = ["devices"];

/// Devices listed one by one; of more, quantiles are shown.
const MOST_DEVICES: usize = 60;

/// A finished run, to be put on a page.
pub struct FinishedRun(CheckedRun);

impl FinishedRun {
    /// Reads the run in `path`. Only [`FinishedRun::write_page`] without a place of its own and
    /// [`FinishedRun::write_tensorboard`] write there.
    pub fn open(path: &Path) -> Result<Self, ReportError> {
        let run = CheckedRun::read(path)?;
        Ok(Self(run.ok_or_else(|| ReportError::Unfinished(path.into()))?))
    }

    /// Writes the page to `out`, or to `report.html` in the run's folder, and returns where it is.
    pub fn write_page(&self, out: Option<&Path>) -> Result<PathBuf, ReportError> {
        let page = self.page()?;
        let Some(path) = out else {
            let path = self.folder().join("report.html");
            let written = self.0.folder.replace("report.html", |f| f.write_all(page.as_bytes()));
            return written.map(|()| path.clone()).map_err(ReportError::io("write", &path));
        };
        write(path, page.as_bytes())?;
        Ok(path.into())
    }

    /// Writes the curves for TensorBoard to `tensorboard/` in the run's folder, and returns the
    /// file.
    pub fn write_tensorboard(&self) -> Result<PathBuf, ReportError> {
        let folder = self.0.folder.subfolder("tensorboard");
        let folder = folder.map_err(ReportError::io("write curves to", self.folder()))?;
        tensorboard::write_events(&self.0.manifest, &self.0.records, &folder)
    }

    fn folder(&self) -> &Path {
        self.0.folder.path()
    }

    /// The page as HTML: what matters first, then figures, costs, and all that it was made with.
    pub fn page(&self) -> Result<String, ReportError> {
        let mut page = Page::new(&format!("Run {}", self.name()));
        page.lead(&self.lead());
        page.section("Privacy");
        self.privacy(&mut page);
        page.section("Curves");
        self.figures(&mut page, &CURVES)?;
        self.accuracy(&mut page)?;
        page.section("Cost").table(self.cost());
        if let Some(last) = self.0.records.last() {
            page.section("Devices in the last round");
            page.paragraph(
                "σ is the standard deviation of the noise per coordinate of an update. ε spent is the \
                 proven ε of the device's releases so far.",
            );
            page.table(match &last.devices {
                DeviceRecords::List(list) if list.len() <= MOST_DEVICES => devices(list),
                devices => quantiles(devices),
            });
        }
        page.section("Provenance");
        page.table(self.origin());
        page.details("Complete configuration", &self.0.experiment.to_toml());
        Ok(page.finish())
    }

    /// Accuracy by class and by device, of a run that recorded them.
    fn accuracy(&self, page: &mut Page) -> Result<(), ReportError> {
        let summary = &self.0.summary;
        if let Some(matrix) = &summary.confusion {
            page.section("Accuracy by class");
            self.figures(page, &CLASSES)?;
            accuracy::classes(page, matrix);
        }
        if let Some(devices) = &summary.device_accuracy {
            page.section("Accuracy by device");
            self.figures(page, &DEVICES)?;
            accuracy::devices(page, devices);
        }
        Ok(())
    }

    /// The folder's name, also of `.`.
    fn name(&self) -> String {
        let path = self.folder();
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn lead(&self) -> String {
        let Summary { rounds, devices, privacy, .. } = &self.0.summary;
        let accuracy = match self.0.summary.accuracy {
            Some(accuracy) => format!("Test accuracy {:.2} %", 100.0 * accuracy),
            None => "Last round not evaluated,".into(),
        };
        let epsilon = if self.noisy() {
            format!(
                "Proven for {}: ε ≤ {} at δ = {:e}. The paper's sum: ε = {} for the worst device, ε = {} \
                 over all devices.",
                if shares_records(&self.0.experiment) {
                    "one record of the worst device, not for an image that several devices hold"
                } else {
                    "the worst device"
                },
                round_up(privacy.epsilon_provable),
                privacy.delta,
                round_up(privacy.epsilon_claimed_worst),
                round_up(privacy.epsilon_claimed_total),
            )
        } else {
            "No noise was added, so ε = ∞.".into()
        };
        format!("{accuracy} after {rounds} rounds on {devices} devices. {epsilon}")
    }

    fn noisy(&self) -> bool {
        self.0.experiment.privacy.is_some()
    }

    fn privacy(&self, page: &mut Page) {
        let privacy = &self.0.summary.privacy;
        if let UnderNoised { device_rounds: count @ 1.., worst_factor: Some(worst) } =
            self.0.summary.under_noised
        {
            page.warning(&format!(
                "{count} releases (one per device and round) had less noise than their budgets \
                 require, the worst {} times less. The proven ε counts the noise they actually \
                 had.",
                round_up(worst)
            ));
        }
        page.table(self.privacy_figures());
        for paragraph in privacy.privacy.lines() {
            page.paragraph(paragraph);
        }
    }

    /// Each privacy figure with its status and meaning.
    fn privacy_figures(&self) -> Table {
        let CheckedRun { experiment, summary, .. } = &self.0;
        let mut table = Table::new("", &["Figure", ">Value", "Status", "Meaning"]);
        for figure in PrivacyFigures::from(&summary.privacy).explained(experiment) {
            let status = match figure.status {
                (_, "") => "".into(),
                (badge, status) => Entry::badge(badge, status),
            };
            let meaning = capital(&figure.meaning) + ".";
            table.row([capital(figure.name).into(), figure.value.into(), status, meaning.into()]);
        }
        let trust = experiment.channel_trust();
        let (status, meaning) = match trust {
            0.0 => (
                Entry::badge(Badge::Good, "no assumption"),
                "No channel noise is counted: the figures hold against any receiver.",
            ),
            _ => (
                Entry::badge(Badge::Mixed, "assumption"),
                "Fraction of the receiver noise variance that is counted. It holds only if nobody \
                 listens with a better receiver, or from a shorter distance, than declared.",
            ),
        };
        table.row(["κ".into(), trust.to_string().into(), status, meaning.into()]);
        table
    }

    /// Caption of a drawing.
    fn caption(&self, plot: &str) -> String {
        match plot {
            "accuracy" => {
                "Test accuracy after each evaluated round. If it still rises at the end, more rounds \
                 would help, if the budget allows them."
                    .into()
            }
            "loss" => {
                "Test loss after each evaluated round. Rising loss at constant accuracy: noise or \
                 learning rate too large."
                    .into()
            }
            "noise" => {
                let hidden = match self.0.summary.under_noised.device_rounds {
                    0 => "",
                    _ => {
                        " Medians hide single devices with too little noise: the warning above \
                          counts them."
                    }
                };
                format!(
                    "Noise per coordinate, on a logarithmic axis: artificial noise of the devices, \
                     receiver noise, and the noise that the budgets require. Only the fraction κ of \
                     the receiver noise counts.{hidden}"
                )
            }
            "confusion" => {
                "Test samples of each class (rows) by the class they were taken for (columns), in percent \
                 of the row. The color grows with the root of the share, so that rare mistakes can be seen."
                    .into()
            }
            "classes" => "Share of the test samples of each class that is classified correctly.".into(),
            "devices" => "Accuracy of each device for its own mix of labels, the worst first.".into(),
            _ => {
                let privacy = &self.0.summary.privacy;
                let gap = if privacy.epsilon_claimed_worst >= privacy.epsilon_spent {
                        "The paper's sum ends above the proven line: summing the ε of the rounds \
                         overstates their total cost."
                    } else {
                        "The paper's sum ends below the proven line: it misses the gap between \
                         them."
                    };
                format!("ε spent by the worst device so far, on a logarithmic axis. {gap}")
            }
        }
    }

    fn figures(&self, page: &mut Page, names: &[&str]) -> Result<(), ReportError> {
        for name in names {
            let path = self.folder().join("plots").join(format!("{name}.svg"));
            // A plot without a single finite value was left out.
            if path.is_file() {
                let svg = files::read_to_string(&path).map_err(ReportError::io("read", &path))?;
                page.figure(&svg, &self.caption(name));
            }
        }
        Ok(())
    }

    fn cost(&self) -> Table {
        let summary = &self.0.summary;
        let mut table = Table::new("", &["Quantity", ">All rounds", "Unit"]);
        let mut row = |name: &str, value: String, unit: &str| {
            table.row([name, &value, unit]);
        };
        row("Uplink traffic", megabytes(summary.uplink_bytes), "MB");
        row("Downlink traffic", megabytes(summary.downlink_bytes), "MB");
        if summary.airtime_s > 0.0 {
            row("Airtime", format!("{:.3}", summary.airtime_s), "s");
            row("Radiated energy, at most", format!("{:.4}", summary.energy_j), "J");
        }
        row("Skipped transmissions (weak link)", summary.outages.to_string(), "device-rounds");
        let (last, rounds) = ("Last round with artificial noise", format!("of {}", summary.rounds));
        if let Some(SwitchingRound::All(round)) = &summary.switching_round {
            row(last, round.to_string(), &rounds);
        } else if let Some([least, median, most]) =
            summary.switching_round.as_ref().and_then(SwitchingRound::spread)
        {
            row(last, format!("{least} to {most}"), &format!("{rounds}, median {median}"));
        }
        row("Computing time", format!("{:.1}", summary.seconds), "s");
        table
    }

    fn origin(&self) -> Table {
        let manifest = &self.0.manifest;
        let Manifest { version, seed, entropy, kernels, machine, .. } = manifest;
        let mut table = Table::new("", &["Property", "Value"]);
        let computer = format!("{} {}, {} cores", machine.os, machine.arch, machine.cores);
        for (what, which) in [
            ("lapa version", version.clone()),
            ("Seed", seed.to_string()),
            ("Entropy of noise and batches", entropy.clone()),
            ("Data", manifest.data.name.clone()),
            ("Model parameters", manifest.parameters.to_string()),
            ("Upload of each device", manifest.upload.clone()),
            ("Machine", format!("{computer}, {kernels} kernels")),
        ] {
            table.row([what.to_owned(), which]);
        }
        table
    }
}

/// The text with a capital, unless it begins with a symbol.
fn capital(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1e6)
}

/// One line per device.
fn devices(list: &[DeviceRecord]) -> Table {
    let link = |device: &DeviceRecord| {
        if device.selected {
            Entry::badge(Badge::Good, "transmits")
        } else {
            Entry::badge(Badge::Bad, "skipped (weak link)")
        }
    };
    type Column = (&'static str, fn(&DeviceRecord) -> String);
    let numbers: [Column; 7] = [
        (">SINR (dB)", |device| fixed(device.sinr_db, 1)),
        (">Symbol error rate", |device| small(device.ser)),
        (">Weight", |device| fixed(device.weight, 3)),
        (">σ artificial", |device| small(device.sigma_artificial)),
        (">σ channel", |device| small(device.sigma_channel)),
        (">σ required", |device| small(device.sigma_required)),
        (">ε spent", |device| round_up(device.spent_provable)),
    ];
    let mut table = Table::new("", &[">Device", ">Samples", "Link"]);
    table.headers.extend(numbers.iter().map(|(header, _)| (*header).to_owned()));
    for device in list {
        let first = [device.device, device.samples].map(|number| number.to_string().into());
        let rest = numbers.iter().map(|(_, cell)| cell(device).into());
        table.row(first.into_iter().chain([link(device)]).chain(rest));
    }
    table
}

/// One line per quantity.
fn quantiles(devices: &DeviceRecords) -> Table {
    let summary = devices.summary();
    let caption = format!("{} devices transmitted.", summary.count);
    let headers = ["Quantity", ">Min", ">Lower quartile", ">Median", ">Upper quartile", ">Max"];
    let mut table = Table::new(&caption, &headers);
    let mut row = |name: &str, quantiles: Option<Quantiles>, shown: fn(f64) -> String| {
        let cells = match quantiles {
            Some(q) => [q.min, q.q25, q.median, q.q75, q.max].map(shown),
            None => std::array::from_fn(|_| "–".to_owned()),
        };
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("SINR (dB)", summary.sinr_db, |sinr| fixed(sinr, 1));
    row("Symbol error rate", summary.ser, small);
    row("Weight", summary.weight, |weight| fixed(weight, 3));
    row("σ artificial", summary.sigma_artificial, small);
    row("σ channel", summary.sigma_channel, small);
    row("σ required", summary.sigma_required, small);
    row("ε spent", summary.spent_provable, round_up);
    table
}

/// A number of ordinary size.
fn fixed(value: f64, decimals: usize) -> String {
    if value.is_infinite() { infinity(value) } else { format!("{value:.decimals$}") }
}

/// A number that may be very small.
fn small(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        value if value.is_infinite() => infinity(value),
        value => format!("{value:.2e}"),
    }
}

fn infinity(value: f64) -> String {
    if value > 0.0 { "∞".into() } else { "−∞".into() }
}

#[cfg(test)]
mod tests;
