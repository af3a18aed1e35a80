//! Keys that have other names here: those of earlier versions, and those of other programs.

/// Keys of earlier versions, and where they are now.
pub(super) const MOVED: &[(&str, &[&str])] = &[
    (
        "partition.devices",
        &["partition.dirichlet.devices", "partition.shards.devices", "partition.iid.devices"],
    ),
    ("partition.iid", &["partition.mix.iid"]),
    ("partition.non_iid", &["partition.mix.non_iid"]),
    ("partition.labels", &["partition.mix.labels"]),
    ("partition.iid_samples", &["partition.mix.iid_samples", "partition.iid.samples"]),
    ("partition.non_iid_samples", &["partition.mix.non_iid_samples"]),
    ("partition.concentration", &["partition.dirichlet.concentration"]),
    ("partition.shards", &["partition.shards.per_device"]),
    ("privacy.sampling", &["learn.sampling"]),
    ("privacy.entropy", &["run.entropy"]),
    ("privacy.ledger", &["run.ledger"]),
    ("privacy.budget_share", &["privacy.budget_fraction"]),
    ("privacy.pid_proportional", &["privacy.lapa.proportional"]),
    ("privacy.pid_integral", &["privacy.lapa.integral"]),
    ("privacy.pid_window", &["privacy.lapa.window"]),
    ("privacy.pid_error", &["privacy.lapa.error"]),
    ("privacy.decay", &["privacy.lapa.decay"]),
    ("transmit.symbols", &["transmit.signal.symbols"]),
    ("transmit.bits", &["transmit.digital.bits", "transmit.signal.digital.bits"]),
    ("transmit.range", &["transmit.digital.range", "transmit.signal.digital.range"]),
    ("aggregate.metric", &["aggregate.wasserstein.metric"]),
    ("aggregate.floor", &["aggregate.wasserstein.floor"]),
    ("aggregate.noise_weight", &["aggregate.noise-aware.noise_weight"]),
    (
        "aggregate.histograms",
        &["aggregate.wasserstein.histograms", "aggregate.noise-aware.histograms"],
    ),
    (
        "aggregate.histogram_share",
        &[
            "aggregate.wasserstein.noisy.budget_fraction",
            "aggregate.noise-aware.noisy.budget_fraction",
        ],
    ),
    ("control.switch_rule", &["control.switch.rule"]),
    ("control.pilot_share", &["control.private.budget_fraction"]),
    ("control.evaluations", &["control.cma-es.evaluations"]),
    ("control.episodes", &["control.ddpg.episodes"]),
    ("control.steps", &["control.ddpg.steps"]),
    ("control.hidden", &["control.ddpg.hidden"]),
    ("control.batch", &["control.ddpg.batch"]),
    ("control.discount", &["control.ddpg.discount"]),
    ("control.soft_update", &["control.ddpg.soft_update"]),
    ("control.actor_rate", &["control.ddpg.actor_rate"]),
    ("control.critic_rate", &["control.ddpg.critic_rate"]),
];

/// Values of earlier versions, and what to write instead.
const WITHDRAWN: &[(&str, &str, &str)] =
    &[("privacy.allocator", "none", "remove [privacy], or set privacy = \"none\"")];

const CLIENTS: &str = "`devices` of the scheme's table, for example `partition.dirichlet.devices`; \
                       scheme mix has `partition.mix.iid` and `partition.mix.non_iid`";

/// Words that people bring from other programs, and what they are called here.
const ALIASES: &[(&str, &str)] = &[
    ("lr", "`learn.learning_rate`"),
    ("step_size", "`learn.learning_rate`"),
    ("server_momentum", "`learn.momentum`"),
    ("batch_size", "`learn.batch_fraction`, a part of the device's samples"),
    ("sample_rate", "`learn.batch_fraction`, with `learn.sampling = \"poisson\"`"),
    ("epochs", "`learn.local_epochs`, with `learn.update = \"epoch\"`"),
    ("max_grad_norm", "`learn.clip_norm`"),
    ("clipping_norm", "`learn.clip_norm`"),
    ("l2_norm_clip", "`learn.clip_norm`"),
    ("num_clients", CLIENTS),
    ("clients", CLIENTS),
    ("num_devices", CLIENTS),
    ("alpha", "`partition.dirichlet.concentration`"),
    ("dirichlet_alpha", "`partition.dirichlet.concentration`"),
    ("num_rounds", "`run.rounds`"),
    ("global_rounds", "`run.rounds`"),
    ("random_seed", "`run.seed`"),
    ("num_workers", "`run.threads`"),
    ("fraction_fit", "`run.participation`"),
    ("client_fraction", "`run.participation`"),
    ("dataset", "`data.name`"),
    ("num_classes", "`data.classes`"),
    ("arch", "`model.name`"),
    ("noise_multiplier", "`privacy.epsilon`, or `privacy.initial_sigma` for a standard deviation"),
    ("target_epsilon", "`privacy.epsilon`"),
    ("target_delta", "`privacy.delta`"),
    ("snr_db", "`radio.noise_power_w` and `transmit.power_w`, from which `lapa link` tells it"),
    ("num_antennas", "`radio.antennas`"),
    ("tx_power", "`transmit.power_w`"),
    ("strategy", "`aggregate.rule`"),
];

/// The keys that an old key became.
pub(super) fn moved(path: &str) -> Option<&'static [&'static str]> {
    MOVED.iter().find(|(old, _)| *old == path).map(|(_, new)| *new)
}

/// Replacement of an old value.
pub(super) fn withdrawn(path: &str, value: &str) -> Option<&'static str> {
    let is_it = |(key, old, _): &&(&str, &str, &str)| *key == path && *old == value;
    WITHDRAWN.iter().find(is_it).map(|(.., instead)| *instead)
}

/// Our name for another program's word.
pub(super) fn alias(key: &str) -> Option<&'static str> {
    let key = key.to_lowercase().replace('-', "_");
    ALIASES.iter().find(|(word, _)| *word == key).map(|(_, ours)| *ours)
}
