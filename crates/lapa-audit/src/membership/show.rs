//! What there is to see of a membership attack.

use lapa_report::page::Table;
use lapa_report::plot::{Figure, Series};

use super::{Attacked, Roc};
use crate::{AuditError, Exhibit};

/// Points of a curve that is drawn.
const DRAWN: usize = 300;

impl Attacked {
    /// What was done, the curves, their figures, and what the bound assumes.
    pub(super) fn exhibits(&self) -> Result<Vec<Exhibit>, AuditError> {
        Ok(vec![
            Exhibit::Text(self.what_was_done()),
            Exhibit::Drawing {
                name: "membership-roc".into(),
                svg: self.drawing()?,
                caption: "How many members an attacker finds (true positives) at the price of how \
                          many false alarms, on logarithmic axes: what matters is the left end, \
                          where the attacker is sure. No false alarm is drawn as half of one."
                    .into(),
            },
            Exhibit::Table(self.table()),
            Exhibit::Text(self.assumptions()),
        ])
    }

    fn what_was_done(&self) -> String {
        let coin = match self.swaps {
            true => "decides which of two records of one label a device holds",
            false => "decides whether a device holds a record or a zero gradient in its place",
        };
        format!(
            "The run was repeated in full with {} fair coins; each {coin}. The attacker sees the \
             final model and the data, not the coins, and has trained {} shadow models by the same \
             run with coins, batches and noise of its own. The attacked model has {:.2} % on the \
             test set; its mean loss is {:.4} on members and {:.4} on others.",
            self.coins,
            self.shadows,
            100.0 * self.accuracy,
            self.mean_losses[0],
            self.mean_losses[1],
        )
    }

    fn assumptions(&self) -> String {
        format!(
            "LiRA's {} surest guesses of {} coins were right {} times, which bounds ε from below \
             by {:.4} (Steinke, Nasr and Jagielski 2023). That bound assumes only that coins are \
             fair and independent; the number of guesses was chosen on shadow models. If \
             records of one run were independent, which they are not, false positives and \
             negatives would bound it by {:.4} (Clopper–Pearson, threshold from the other half of \
             the coins); no verdict rests on that, and the intervals of the areas assume it too.",
            self.guesses,
            self.coins,
            self.correct,
            round_down(self.epsilon_lower),
            round_down(self.epsilon_if_independent),
        )
    }

    fn table(&self) -> Table {
        let headers =
            ["attack", ">AUC", ">interval", ">TPR at FPR 1 %", ">at 0.1 %", ">balanced accuracy"];
        let caption = format!("{} members, {} others", self.lira.members(), self.lira.others());
        let mut table = Table::new(&caption, &headers);
        for (name, roc) in self.curves() {
            let [low, high] = roc.auc_interval(self.z);
            table.row([
                name.to_owned(),
                format!("{:.4}", roc.auc()),
                format!("{low:.4} to {high:.4}"),
                format!("{:.2} %", 100.0 * roc.tpr_at(1e-2)),
                format!("{:.2} %", 100.0 * roc.tpr_at(1e-3)),
                format!("{:.4}", roc.balanced_accuracy()),
            ]);
        }
        table
    }

    fn drawing(&self) -> Result<String, AuditError> {
        let figure = Figure::new(
            "Members found, by false alarms",
            "false positive rate",
            "true positive rate",
        );
        let figure = self.curves().into_iter().fold(figure.log_x().log_y(), |figure, curve| {
            figure.line(Series::new(curve.0, drawn(curve.1)))
        });
        let least = 1.0 / self.lira.others() as f64;
        let chance = Series::new("chance", [(least, least), (1.0, 1.0)]).dashed();
        Ok(figure.line(chance).svg("membership-roc")?)
    }

    fn curves(&self) -> [(&'static str, &Roc); 2] {
        [("LiRA", &self.lira), ("loss threshold", &self.loss)]
    }
}

/// Four digits, never up.
fn round_down(epsilon: f64) -> f64 {
    (epsilon * 1e4).floor() / 1e4
}

/// The points that logarithmic axes can tell apart. A threshold without false positives is drawn
/// at half of one.
fn drawn(roc: &Roc) -> Vec<(f64, f64)> {
    let least = 0.5 / roc.others() as f64;
    let step = (1.0 / least).powf(1.0 / DRAWN as f64);
    let mut drawn: Vec<(f64, f64)> = Vec::new();
    for &(fpr, tpr) in roc.points().iter().filter(|(_, tpr)| *tpr > 0.0) {
        let fpr = fpr.max(least);
        match drawn.last_mut() {
            Some(last) if fpr < last.0 * step => last.1 = tpr,
            _ => drawn.push((fpr, tpr)),
        }
    }
    drawn
}
