//! Exhibits of a membership attack.

use lapa_report::page::Table;
use lapa_report::plot::{Figure, Series};

use super::{AttackResult, Roc};
use crate::{AuditError, Exhibit, at_least};

/// Points of a curve that is drawn.
const DRAWN: usize = 300;

impl AttackResult {
    /// Description, curves, their figures, and the assumptions of the bound.
    pub(super) fn exhibits(&self) -> Result<Vec<Exhibit>, AuditError> {
        Ok(vec![
            Exhibit::Text(self.what_was_done()),
            Exhibit::Drawing {
                name: "membership-roc".into(),
                svg: self.drawing()?,
                caption: "True positive rate (members found) against false positive rate (false \
                          alarms), on logarithmic axes. The left end matters most: there the \
                          attacker is sure. Zero false alarms are drawn as half of one."
                    .into(),
            },
            Exhibit::Table(self.table()),
            Exhibit::Text(self.assumptions()),
        ])
    }

    fn what_was_done(&self) -> String {
        let coin = if self.swaps {
            "selects one of two records of the same label"
        } else {
            "keeps a record or replaces it by a zero gradient"
        };
        format!(
            "The whole run was repeated with {} fair coins; each {coin}. The attacker sees the final \
             model and the data but not the coins, and has trained {} shadow models by the same run \
             with its own coins, batches and noise. The attacked model has a test accuracy of {:.2} \
             %; its mean loss is {:.4} on members and {:.4} on non-members.",
            self.coins,
            self.shadows,
            100.0 * self.accuracy,
            self.mean_losses[0],
            self.mean_losses[1],
        )
    }

    fn assumptions(&self) -> String {
        format!(
            "LiRA's {} most confident guesses, of {} coins, were correct {} times, so ε ≥ {} \
             (Steinke, Nasr and Jagielski 2023). This bound assumes only that the coins are fair and \
             independent; the number of guesses was chosen on shadow models. If the records of one \
             run were independent, which they are not, false positives and negatives would give ε ≥ \
             {} (Clopper–Pearson, threshold from the other half of the coins). No verdict uses \
             that value; the intervals of the areas make the same assumption.",
            self.guesses,
            self.coins,
            self.correct,
            at_least(Some(self.epsilon_lower)),
            at_least(Some(self.epsilon_if_independent)),
        )
    }

    fn table(&self) -> Table {
        let headers =
            ["attack", ">AUC", ">interval", ">TPR at FPR 1 %", ">at 0.1 %", ">balanced accuracy"];
        let caption = format!("{} members, {} non-members", self.lira.members, self.lira.others);
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
        let figure =
            Figure::new("ROC of membership inference", "False positive rate", "True positive rate");
        let figure = self.curves().into_iter().fold(figure.log_x().log_y(), |figure, curve| {
            figure.line(Series::new(curve.0, drawn(curve.1)))
        });
        let least = 1.0 / self.lira.others as f64;
        let chance = Series::new("chance", [(least, least), (1.0, 1.0)]).dashed();
        Ok(figure.line(chance).svg("membership-roc")?)
    }

    fn curves(&self) -> [(&'static str, &Roc); 2] {
        [("LiRA", &self.lira), ("loss threshold", &self.loss)]
    }
}

/// The points that logarithmic axes can tell apart. A threshold without false positives is drawn
/// at half of one.
fn drawn(roc: &Roc) -> Vec<(f64, f64)> {
    let least = 0.5 / roc.others as f64;
    let step = (1.0 / least).powf(1.0 / DRAWN as f64);
    let mut drawn: Vec<(f64, f64)> = Vec::new();
    for &(fpr, tpr) in roc.points.iter().filter(|(_, tpr)| *tpr > 0.0) {
        let fpr = fpr.max(least);
        match drawn.last_mut() {
            Some(last) if fpr < last.0 * step => last.1 = tpr,
            _ => drawn.push((fpr, tpr)),
        }
    }
    drawn
}
