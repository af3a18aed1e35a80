//! The paper as printed: for each printed form that is not a default elsewhere, its one key.

use serde_json::{Value, json};

/// Keys and their printed values. Those of a choice that is not made do not apply.
pub(super) fn printed() -> [(&'static str, Value); 16] {
    [
        // Eq. (3): a plain step.
        ("learn.momentum", json!(0.0)),
        // Eq. (10): the norm of the difference itself.
        ("privacy.lapa.error", json!("raw")),
        // Eq. (19): CN(0, σ²).
        ("privacy.noise", json!("complex-gaussian")),
        // Eq. (20): ‖x − y‖ of labels. Eq. (21) has no floor; this is the least.
        ("aggregate.wasserstein.metric", json!("label-distance")),
        ("aggregate.wasserstein.floor", json!(1e-3)),
        // Eq. (22): the denominator of all devices; those below γ_th are received with weight 0.
        ("aggregate.renormalize", json!(false)),
        ("aggregate.below_threshold", json!("weight-zero")),
        // Eq. (6): devices are decoded in the order of their index.
        ("transmit.sic_order", json!("index")),
        // Section II-B: ŝ_k = s_k + σ/(p_k‖h_k‖), with all of σ² on a coordinate.
        ("transmit.analog.variance", json!("full")),
        // Section IV-A: channel noise is constant, and eq. (23) knows one T_th.
        ("transmit.scale", json!("fixed")),
        ("control.switch.rule", json!("sum-latched")),
        // Eq. (24).
        ("control.bound", json!("printed")),
        // Section IV-C: the environment is the federation itself; eqs. (30) to (32), Υ and τ.
        ("control.pilot", json!("private")),
        ("control.ddpg.variant", json!("printed")),
        ("control.ddpg.discount", json!(0.99)),
        ("control.ddpg.soft_update", json!(0.001)),
    ]
}
