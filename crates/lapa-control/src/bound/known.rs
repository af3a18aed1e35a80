//! Constants of the loss that hold for all records and all parameters.

use lapa::config::Experiment;
use lapa::data::Features;
use lapa::model::{Layer, ModelSpec, layers};

use super::setting::Constants;

/// Largest squared norm of features that are normalized to 1 and rounded to halves.
const SQUARED_NORM: f64 = 1.002;

/// L and μ of a loss, whatever the records: they follow from public numbers, and so cost no privacy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// L
    pub smoothness: f64,
    /// μ, the weight decay; 0 if the loss is convex and no more.
    pub convexity: f64,
    /// Largest norm of a sample's gradient, without weight decay.
    pub gradient_norm: f64,
}

impl Known {
    /// The constants of softmax regression on features of norm 1; `None` for other models.
    ///
    /// The Hessian of a sample's loss is (diag p − ppᵀ) ⊗ x̃x̃ᵀ with x̃ = (x, 1). Its first factor lies
    /// between 0 and 1/2 (D. Böhning, "Multinomial logistic regression algorithm", 1992), so c‖w‖²/2
    /// more has c ≤ μ ≤ L ≤ ‖x̃‖²/2 + c. The gradient (p − e_y) ⊗ x̃ is at most √2·‖x̃‖ long.
    pub fn of(experiment: &Experiment) -> Option<Self> {
        let (model, decay) = (&experiment.model, experiment.learn.weight_decay);
        let has_unit_norm = model.features != Features::None && model.feature_norm.has_unit();
        let square = 1.0 + SQUARED_NORM;
        (is_softmax_regression(model) && has_unit_norm).then(|| Self {
            smoothness: 0.5 * square + decay,
            convexity: decay,
            gradient_norm: (2.0 * square).sqrt(),
        })
    }

    /// These constants in place of estimates.
    pub fn replace(&self, estimated: Constants) -> Constants {
        let Self { smoothness, convexity, .. } = *self;
        let convexity = if convexity > 0.0 { convexity } else { estimated.convexity };
        Constants { smoothness, convexity: convexity.min(smoothness), ..estimated }
    }
}

/// True for a model of one fully connected layer.
pub(super) fn is_softmax_regression(model: &ModelSpec) -> bool {
    matches!(layers(model, 1)[..], [Layer::Linear { .. }])
}
