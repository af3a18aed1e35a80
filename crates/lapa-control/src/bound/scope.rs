//! Parts of an experiment that the theorem does not cover.

use lapa::aggregate::RuleConfig;
use lapa::config::{Access, Experiment, Update};
use lapa::model::{Layer, layers};
use lapa::radio::Threshold;

/// Reasons that the bound is no guarantee for this experiment, a sentence each. There is always one:
/// no built-in model has a strongly convex loss.
pub fn outside_theorem(experiment: &Experiment) -> Vec<String> {
    let learn = &experiment.learn;
    let mut reasons = vec![match layers(&experiment.model, 1)[..] {
        [Layer::Linear { .. }] => {
            "the loss of logistic regression is convex but not strongly convex: μ and δ are estimates \
             along one run, not constants, and the bound is not a guarantee"
                .to_owned()
        }
        _ => {
            "the loss of this model is not strongly convex: L, μ and δ are estimates along one run, \
             not constants, and the bound is not a guarantee"
                .to_owned()
        }
    }];
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
    if let Some(norm) = learn.clip_norm {
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
