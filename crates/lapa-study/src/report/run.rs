//! The page of one finished run.

use std::io::Write;
use std::path::{Path, PathBuf};

use lapa::files;
use lapa::observe::{DeviceRecord, DeviceRecords, Quantiles};
use lapa::privatize::round_up;
use lapa::run::{CheckedRun, Manifest, Summary, SwitchingRound, UnderNoised};
use lapa_privacy::allocate::{AllocatorConfig, Basis};

use super::{Badge, Entry, Page, Table};
use super::{ReportError, tensorboard, write};

/// The drawings that a run leaves.
const PLOTS: [&str; 4] = ["accuracy", "loss", "noise", "privacy"];

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
        self.figures(&mut page)?;
        page.section("Cost").table(self.cost());
        if let Some(last) = self.0.records.last() {
            page.section("Devices in the last round");
            page.paragraph(
                "σ is the standard deviation of noise on each coordinate of an update; ε spent is \
                 what the device's releases so far are provably worth.",
            );
            page.table(match &last.devices {
                DeviceRecords::List(list) if list.len() <= MOST_DEVICES => devices(list),
                devices => quantiles(devices),
            });
        }
        page.section("How it was made");
        page.table(self.origin());
        page.details("The whole configuration", &self.0.experiment.to_toml());
        Ok(page.finish())
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
            Some(accuracy) => format!("Accuracy {:.2} % on the test set", 100.0 * accuracy),
            None => "The last round was not evaluated,".into(),
        };
        let epsilon = match self.noisy() {
            true => format!(
                "Provable for the worst device: ε {} at δ {:e}. The paper's sum: ε {} for the worst \
                 device, ε {} over all devices.",
                round_up(privacy.epsilon_provable),
                privacy.delta,
                round_up(privacy.epsilon_claimed_worst),
                round_up(privacy.epsilon_claimed_total),
            ),
            false => "No noise was added: ε is ∞.".into(),
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
                "{count} releases (one for each device and round) had less noise than their \
                 budgets ask for, the worst {} times less. The provable figure counts the noise \
                 that they really had.",
                round_up(worst)
            ));
        }
        let mut table = Table::new("", &["Figure", ">Value", "Standing", "What it is"]);
        let (standing, meaning) = self.provable();
        let figure = |epsilon: f64| Entry::from(round_up(epsilon));
        let words = |text: &str| Entry::from(text);
        table.row([
            words("ε provable"),
            figure(privacy.epsilon_provable),
            standing,
            words(meaning),
        ]);
        let (standing, meaning) = self.claimed();
        table.row([
            words("ε, the paper's sum, worst device"),
            figure(privacy.epsilon_claimed_worst),
            standing,
            words(meaning),
        ]);
        table.row([
            words("ε, the paper's sum, all devices"),
            figure(privacy.epsilon_claimed_total),
            Entry::badge(Badge::Unknown, "of no single device"),
            words(
                "The same added over all devices, as the paper's budget has it. Nobody's privacy \
                 adds up like this: devices hold different records.",
            ),
        ]);
        table.row([
            words("ε spent"),
            figure(privacy.epsilon_spent),
            Entry::badge(Badge::Unknown, "read afterwards"),
            words("What the worst device really spent, over all runs on the same ledger."),
        ]);
        let trust = self.0.experiment.channel_trust();
        if trust > 0.0 {
            table.row([
                words("ε without channel"),
                figure(privacy.epsilon_without_channel),
                Entry::badge(Badge::Unknown, "read afterwards"),
                words("The same if no noise of the radio channel is counted."),
            ]);
        }
        table.row([
            words("δ"),
            format!("{:e}", privacy.delta).into(),
            words(""),
            words("How likely the guarantee may fail, for all of the figures above."),
        ]);
        let (standing, assumes) = match trust {
            0.0 => (
                Entry::badge(Badge::Good, "assumes nothing"),
                "No noise of the channel is counted: the figures hold for any receiver.",
            ),
            _ => (
                Entry::badge(Badge::Mixed, "an assumption"),
                "Share of the variance of the receiver's noise that is counted. It holds only as \
                 long as nobody listens with a better receiver, or from nearer, than is declared.",
            ),
        };
        table.row([words("κ"), trust.to_string().into(), standing, words(assumes)]);
        page.table(table).paragraph(&privacy.privacy);
    }

    /// What the provable ε stands on.
    fn provable(&self) -> (Entry, &'static str) {
        let privacy = self.0.experiment.privacy.as_ref();
        if self.0.summary.privacy.epsilon_provable.is_infinite() {
            return (
                Entry::badge(Badge::Bad, "nothing proved"),
                "Something was released without noise.",
            );
        }
        match privacy.map(|privacy| (privacy.basis, privacy.allocator)) {
            None | Some((Basis::Certified, _)) => (
                Entry::badge(Badge::Good, "proved in advance"),
                "The worst device's budget, declared before round 1 and kept by its filter.",
            ),
            Some((Basis::Paper, AllocatorConfig::Uniform)) => (
                Entry::badge(Badge::Good, "proved"),
                "What the noise is worth for the worst device; the schedule was fixed in advance.",
            ),
            Some((Basis::Paper, _)) => (
                Entry::badge(Badge::Mixed, "a reading"),
                "What the noise is worth for the worst device. The schedule was chosen during the \
                 run, so it is no promise made in advance.",
            ),
        }
    }

    /// The paper's sum of one device, held against what is proved for one.
    fn claimed(&self) -> (Entry, &'static str) {
        let privacy = &self.0.summary.privacy;
        if privacy.epsilon_claimed_worst.is_infinite() {
            (
                Entry::badge(Badge::Unknown, "claims nothing"),
                "Without noise the paper's formulas claim nothing either.",
            )
        } else if privacy.epsilon_claimed_worst >= privacy.epsilon_provable {
            (
                Entry::badge(Badge::Good, "more than provable: harmless"),
                "The paper's formulas, added over the rounds of one device. Where it is larger than \
                 the provable ε it only overstates: adding is the coarsest way to compose releases.",
            )
        } else {
            (
                Entry::badge(Badge::Bad, "less than provable: promises too much"),
                "The paper's formulas, added over the rounds of one device. It is smaller than what \
                 this noise is provably worth, so that relying on it would be wrong.",
            )
        }
    }

    /// Caption of a drawing.
    fn caption(&self, plot: &str) -> String {
        match plot {
            "accuracy" => {
                "Test accuracy after each evaluated round. Look at whether it still rises at the \
                 end: then more rounds would help, if the budget allows them."
                    .into()
            }
            "loss" => {
                "Test loss after each evaluated round. A rise while accuracy stands still means \
                 that noise or the learning rate drives the model about."
                    .into()
            }
            "noise" => {
                let hidden = match self.0.summary.under_noised.device_rounds {
                    0 => "",
                    _ => {
                        " Medians hide single devices with too little: the warning above counts \
                          those."
                    }
                };
                format!(
                    "Noise on each coordinate, on a logarithmic axis: what the devices add, what \
                     the receiver adds, and what the budgets ask for. Of the receiver's only the \
                     share κ counts.{hidden}"
                )
            }
            _ => {
                let privacy = &self.0.summary.privacy;
                let gap = match privacy.epsilon_claimed_worst >= privacy.epsilon_spent {
                    true => {
                        "The paper's sum ends above the provable line: adding the epsilons of the \
                         rounds overstates what they cost together."
                    }
                    false => {
                        "The paper's sum ends below the provable line: the gap is what it leaves \
                         out."
                    }
                };
                format!("ε that the worst device has spent so far, on a logarithmic axis. {gap}")
            }
        }
    }

    fn figures(&self, page: &mut Page) -> Result<(), ReportError> {
        for name in PLOTS {
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
        let mut table = Table::new("", &["What", ">All rounds", "Unit"]);
        table.row(["Sent by the devices".into(), megabytes(summary.uplink_bytes), "MB".into()]);
        table.row([
            "Sent by the base station".into(),
            megabytes(summary.downlink_bytes),
            "MB".into(),
        ]);
        if summary.airtime_s > 0.0 {
            table.row(["On the air".into(), format!("{:.3}", summary.airtime_s), "s".into()]);
            let energy = format!("{:.4}", summary.energy_j);
            table.row(["Radiated by the devices, at most".into(), energy, "J".into()]);
        }
        let silent = "Devices told not to send, for a bad link".to_owned();
        table.row([silent, summary.outages.to_string(), "device-rounds".into()]);
        let last = "Last round with artificial noise".to_owned();
        match &summary.switching_round {
            Some(SwitchingRound::All(round)) => {
                table.row([last, round.to_string(), format!("of {}", summary.rounds)]);
            }
            Some(each) => {
                if let Some([least, median, most]) = each.spread() {
                    let unit = format!("of {}, median {median}", summary.rounds);
                    table.row([last, format!("{least} to {most}"), unit]);
                }
            }
            None => {}
        }
        table.row(["Computing".into(), format!("{:.1}", summary.seconds), "s".into()]);
        table
    }

    fn origin(&self) -> Table {
        let Manifest { version, seed, entropy, kernels, data, machine, .. } = &self.0.manifest;
        let mut table = Table::new("", &["What", "Which"]);
        let parameters = self.0.manifest.parameters;
        let computer = format!("{} {}, {} cores", machine.os, machine.arch, machine.cores);
        for (what, which) in [
            ("Version of lapa", version.clone()),
            ("Seed", seed.to_string()),
            ("Noise and batches from", entropy.clone()),
            ("Data", data.name.clone()),
            ("Model parameters", parameters.to_string()),
            ("Each device uploads", self.0.manifest.upload.clone()),
            ("Machine", format!("{computer}, {kernels} kernels")),
        ] {
            table.row([what.to_owned(), which]);
        }
        table
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1e6)
}

/// One line per device.
fn devices(list: &[DeviceRecord]) -> Table {
    let headers = [
        ">Device",
        ">Samples",
        "Link",
        ">SINR in dB",
        ">Symbol errors",
        ">Weight",
        ">σ artificial",
        ">σ channel",
        ">σ required",
        ">ε spent",
    ];
    let mut table = Table::new("", &headers);
    for device in list {
        let link = match device.selected {
            true => Entry::badge(Badge::Good, "sends"),
            false => Entry::badge(Badge::Bad, "told not to send"),
        };
        table.row([
            device.device.to_string().into(),
            device.samples.to_string().into(),
            link,
            fixed(device.sinr_db, 1).into(),
            small(device.ser).into(),
            fixed(device.weight, 3).into(),
            small(device.sigma_artificial).into(),
            small(device.sigma_channel).into(),
            small(device.sigma_required).into(),
            Entry::from(round_up(device.spent_provable)),
        ]);
    }
    table
}

/// One line per quantity.
fn quantiles(devices: &DeviceRecords) -> Table {
    let summary = devices.summary();
    let caption = format!("{} devices sent.", summary.count);
    let headers = ["Quantity", ">Least", ">Lower quartile", ">Median", ">Upper quartile", ">Most"];
    let mut table = Table::new(&caption, &headers);
    let mut row = |name: &str, quantiles: Option<Quantiles>, shown: fn(f64) -> String| {
        let cells = match quantiles {
            Some(q) => [q.min, q.q25, q.median, q.q75, q.max].map(shown),
            None => std::array::from_fn(|_| "–".to_owned()),
        };
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("SINR in dB", summary.sinr_db, |sinr| fixed(sinr, 1));
    row("Symbol errors", summary.ser, small);
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
