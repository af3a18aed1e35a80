//! Gains and losses: accuracy by class and by device.

use lapa::model::Confusion;
use lapa::observe::{DeviceAccuracy, OneDevice};
use lapa::run::Summary;

use super::{Page, Table};

/// Classes and devices listed one by one; of more, the ends are.
const MOST_ROWS: usize = 60;
/// Rows of an end, and the largest confusions.
const END: usize = 10;

/// A share in percent.
fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// The worst class and the worst device of a run, a sentence each; none where nothing is known.
pub fn worst(summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(matrix) = &summary.confusion
        && let Some((class, accuracy)) = matrix.worst_classes().first()
    {
        let taken = matrix.mistakes().into_iter().find(|one| one.class == *class);
        let all = matrix.samples(*class);
        let taken = taken.map_or(String::new(), |one| {
            format!(", most often taken for {} ({} of {all})", one.taken_for, one.samples)
        });
        sentences.push(format!("Worst class {class}: {}{taken}", percent(*accuracy)));
    }
    if let Some(devices) = &summary.device_accuracy
        && let Some(worst) = devices.devices.first()
    {
        sentences.push(format!(
            "Worst device {}: {} on its own labels, median {} (known to the simulation only)",
            worst.device,
            percent(worst.accuracy),
            percent(devices.quantiles.median)
        ));
    }
    sentences
}

/// Adds the classes: each with its accuracy, and the largest confusions.
pub(super) fn classes(page: &mut Page, matrix: &Confusion) {
    let worst = matrix.worst_classes();
    let cut = worst.len() > MOST_ROWS;
    let caption = if cut {
        format!("The {END} worst and the {END} best of {} classes.", worst.len())
    } else {
        "From the worst to the best.".into()
    };
    let mut table = Table::new(&caption, &[">Class", ">Test samples", ">Accuracy", "Taken for"]);
    let mistakes = matrix.mistakes();
    for (at, (class, accuracy)) in worst.iter().enumerate() {
        if cut && (END..worst.len() - END).contains(&at) {
            continue;
        }
        let taken = mistakes.iter().filter(|one| one.class == *class).take(3);
        let taken = taken.map(|one| format!("{} ({})", one.taken_for, one.samples));
        table.row([
            class.to_string(),
            matrix.samples(*class).to_string(),
            percent(*accuracy),
            taken.collect::<Vec<_>>().join(", "),
        ]);
    }
    page.table(table);
    let mut table = Table::new("The largest confusions.", &[">Class", ">Taken for", ">Samples"]);
    for one in mistakes.iter().take(END) {
        table.row([one.class, one.taken_for, one.samples as usize].map(|n| n.to_string()));
    }
    if !mistakes.is_empty() {
        page.table(table);
    }
    page.details("Confusion matrix as CSV", &matrix.csv());
}

/// Adds the devices, with the warning that nobody else may know.
pub(super) fn devices(page: &mut Page, all: &DeviceAccuracy) {
    page.note(
        "Known to the simulation only: the labels of a device are private, and no base station could \
         compute these figures. No privacy guarantee covers them.",
    );
    let row =
        |one: &OneDevice| [one.device.to_string(), one.samples.to_string(), percent(one.accuracy)];
    let q = &all.quantiles;
    let [min, q25, median, q75, max] = [q.min, q.q25, q.median, q.q75, q.max].map(percent);
    page.paragraph(&format!(
        "Accuracy of a device: that of the classes, weighted by its own share of each. Over {} devices \
         {min} to {max}, quartiles {q25}, {median} and {q75}.",
        all.count
    ));
    let rows = all.devices.len();
    let ends = rows > MOST_ROWS || all.is_cut();
    let caption = if ends {
        format!("The {END} worst and the {END} best.")
    } else {
        "From the worst to the best.".into()
    };
    let mut table = Table::new(&caption, &[">Device", ">Samples", ">Accuracy"]);
    for (at, one) in all.devices.iter().enumerate() {
        if !ends || at < END || at >= rows - END {
            table.row(row(one));
        }
    }
    page.table(table);
}
