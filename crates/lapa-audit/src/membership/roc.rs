//! ROC curve of the scores of members and others.

/// True and false positive rates over all thresholds.
#[derive(Clone, Debug, PartialEq)]
pub struct Roc {
    /// (FPR, TPR) from (0, 0) to (1, 1), both rising; records of one score come together.
    pub(super) points: Vec<(f64, f64)>,
    /// Members among the records.
    pub(super) members: usize,
    /// Records that are no members.
    pub(super) others: usize,
}

impl Roc {
    /// The curve of an attacker who takes high scores for members.
    ///
    /// # Panics
    /// If there is not one score for each record, or there are no members or no others.
    pub fn new(scores: &[f64], members: &[bool]) -> Self {
        assert_eq!(scores.len(), members.len(), "scores");
        let count = members.iter().filter(|member| **member).count();
        let others = members.len() - count;
        assert!(count > 0 && others > 0, "members and others");
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let (mut points, mut hits) = (vec![(0.0, 0.0)], [0usize; 2]);
        for group in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
            group.iter().for_each(|&record| hits[usize::from(members[record])] += 1);
            points.push((hits[0] as f64 / others as f64, hits[1] as f64 / count as f64));
        }
        Self { points, members: count, others }
    }

    /// The area under the curve: how likely a member has a higher score than another record.
    pub fn auc(&self) -> f64 {
        self.steps().map(|[(f, t), (g, u)]| (g - f) * 0.5 * (t + u)).sum()
    }

    /// An interval around the area, `z` standard errors to each side (DeLong et al. 1988). It takes
    /// records for independent, which records of one run are not quite.
    pub fn auc_interval(&self, z: f64) -> [f64; 2] {
        let auc = self.auc();
        // The share of the others below a member, and of the members above another: their means
        // over members and over others are both the area.
        let (mut above, mut below) = (0.0, 0.0);
        for [(f, t), (g, u)] in self.steps() {
            above += (u - t) * (1.0 - 0.5 * (f + g) - auc).powi(2);
            below += (g - f) * (0.5 * (t + u) - auc).powi(2);
        }
        // Means of squares; the n/(n − 1) of sample variances cancels one n.
        let variance = |mean: f64, n: usize| mean / (n.max(2) - 1) as f64;
        let error = (variance(above, self.members) + variance(below, self.others)).sqrt();
        [(auc - z * error).max(0.0), (auc + z * error).min(1.0)]
    }

    /// The highest TPR at a threshold whose FPR is at most `fpr`.
    pub fn tpr_at(&self, fpr: f64) -> f64 {
        let allowed = self.points.iter().take_while(|(f, _)| *f <= fpr);
        allowed.last().map_or(0.0, |(_, t)| *t)
    }

    /// The best (TPR + 1 − FPR)/2 over all thresholds. It is chosen after the fact: at chance it is
    /// a little above ½.
    pub fn balanced_accuracy(&self) -> f64 {
        self.points.iter().map(|(f, t)| 0.5 * (1.0 + t - f)).fold(0.5, f64::max)
    }

    fn steps(&self) -> impl Iterator<Item = [(f64, f64); 2]> {
        self.points.windows(2).map(|ends| [ends[0], ends[1]])
    }
}
