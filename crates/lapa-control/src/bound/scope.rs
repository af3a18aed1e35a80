//! What of an experiment the theorem does not cover.

use lapa::aggregate::Rule;
use lapa::aggregate::Threshold;
use lapa::config::{Access, Experiment, ModelName, Update};
use lapa::transmit::UplinkConfig;

/// Why the bound is no guarantee for this experiment, a sentence each. It never is: no built-in
/// model has a strongly convex loss.
pub fn outside_theorem(experiment: &Experiment) -> Vec<String> {
    let learn = &experiment.learn;
    let mut reasons = vec![match experiment.model.name {
        ModelName::Cnn | ModelName::Mlp => {
            "the loss of this model is not convex, let alone strongly: L, μ and δ are \
             estimates along one run, not constants, and the bound is not a guarantee"
                .to_owned()
        }
        ModelName::Logistic => {
            "the loss of logistic regression is convex but not strongly: μ and δ are \
             estimates along one run, not constants, and the bound is not a guarantee"
                .to_owned()
        }
    }];
    if learn.update == Update::Epoch {
        reasons.push(
            "learn.update = \"epoch\" takes many local steps a round; the theorem is on one \
             gradient a round"
                .into(),
        );
    }
    if learn.momentum != 0.0 {
        reasons.push(format!(
            "learn.momentum = {}: the theorem has none; with it a step goes further than λ",
            learn.momentum
        ));
    }
    if learn.update == Update::Gradient && learn.batch_fraction < 1.0 {
        reasons.push(format!(
            "learn.batch_fraction = {}: the theorem has full gradients, without the noise of \
             batches",
            learn.batch_fraction
        ));
    }
    if let Some(norm) = learn.clip_norm {
        reasons.push(format!(
            "learn.clip_norm = {norm}: devices send clipped gradients, the theorem has none"
        ));
    }
    if experiment.transmit.uplink != UplinkConfig::Ideal && !experiment.transmit.uplink.is_analog()
    {
        reasons.push(
            "transmit.uplink: bits that are decoded wrongly are no Gaussian noise, and are missing \
             from the channel term"
                .into(),
        );
    }
    let selects = experiment.aggregate.threshold != Threshold::None;
    if experiment.run.participation < 1.0 || selects || experiment.aggregate.rule == Rule::Fedadp {
        reasons.push(
            "weights change from round to round (participation, selection or rule fedadp); the \
             theorem has one F, with weights that stay"
                .into(),
        );
    }
    if experiment.transmit.access == Access::Noma && !experiment.transmit.perfect_sic {
        reasons.push("interference between devices is missing from the channel term".into());
    }
    reasons
}
