//! Parts of an experiment that the theorem does not cover.

use lapa::aggregate::RuleConfig;
use lapa::config::{Access, Experiment, Update};
use lapa::radio::Threshold;

use super::known::{Known, is_softmax_regression};

/// Reasons that the bound is no guarantee for this experiment, a sentence each. There is none for full,
/// unclipped gradients of a strongly convex loss: softmax regression on features of norm 1 with weight
/// decay.
pub fn outside_theorem(experiment: &Experiment) -> Vec<String> {
    let learn = &experiment.learn;
    let known = Known::of(experiment);
    let mut reasons: Vec<String> = about_convexity(experiment, known).into_iter().collect();
    if learn.update == Update::Epoch {
        reasons.push(
            "learn.update = \"epoch\" takes many local steps per round; the theorem assumes one \
             gradient per round"
                .into(),
        );
    }
    if learn.momentum != 0.0 {
        reasons.push(format!(
            "learn.momentum = {}: the theorem assumes no momentum, which makes steps larger than λ",
            learn.momentum
        ));
    }
    if learn.update == Update::Gradient && learn.batch_fraction < 1.0 {
        reasons.push(format!(
            "learn.batch_fraction = {}: the theorem assumes full gradients, without sampling noise",
            learn.batch_fraction
        ));
    }
    let is_clipped = |norm: f64| known.is_none_or(|known| norm < known.gradient_norm);
    if let Some(norm) = learn.clip_norm.filter(|&norm| is_clipped(norm)) {
        reasons.push(format!("learn.clip_norm = {norm}: the theorem assumes unclipped gradients"));
    }
    if !experiment.transmit.uplink.is_ideal() && !experiment.transmit.uplink.is_analog() {
        reasons.push(
            "transmit.uplink: bit errors are not Gaussian noise, and the channel term does not include \
             them"
                .into(),
        );
    }
    let selects = experiment.aggregate.threshold != Threshold::None;
    if experiment.run.participation < 1.0
        || selects
        || matches!(experiment.aggregate.rule, RuleConfig::Fedadp(_))
    {
        reasons.push(
            "the weights change from round to round (participation, selection or rule fedadp); the \
             theorem assumes fixed weights"
                .into(),
        );
    }
    if experiment.transmit.access == Access::Noma && !experiment.transmit.perfect_sic {
        reasons.push("the channel term does not include interference between devices".into());
    }
    reasons
}

/// The reason that the loss is not strongly convex, if it is not known to be.
fn about_convexity(experiment: &Experiment, known: Option<Known>) -> Option<String> {
    let reason = match known {
        Some(known) if known.convexity > 0.0 => return None,
        Some(_) => {
            "the loss of logistic regression is convex but not strongly convex without \
             learn.weight_decay: μ and δ are estimates along one run, not constants, and the bound is \
             not a guarantee"
        }
        None if is_softmax_regression(&experiment.model) => {
            "the loss of logistic regression is convex but not strongly convex: μ and δ are estimates \
             along one run, not constants, and the bound is not a guarantee; model.features with \
             learn.weight_decay has constants"
        }
        None => {
            "the loss of this model is not strongly convex: L, μ and δ are estimates along one run, \
             not constants, and the bound is not a guarantee"
        }
    };
    Some(reason.into())
}
