//! Configurations of the golden runs: a change of each on a small base.

/// Five small devices that train the paper's CNN on the digits of `digits/` for four rounds.
pub const BASE: &str = "\
data.name = 'idx:digits'
[run]
rounds = 4
evaluate_every = 2
checkpoint_every = 2
seed = 3
threads = 1
[partition.mix]
iid = 2
non_iid = 3
iid_samples = [20, 40]
non_iid_samples = [20, 40]
";

/// A run: its name and the keys that differ from the base.
pub type Case = (&'static str, &'static [&'static str]);

/// Runs with convolutions, on the vector kernels and on the portable ones.
pub const CONVOLUTIONAL: &[Case] = &[
    ("certified-ideal", &[]),
    ("certified-uniform", &["privacy.epsilon=8"]),
    ("certified-full-batches", &["privacy.epsilon=8", "learn.sampling=full"]),
    ("certified-lapa", &["privacy.epsilon=8", "privacy.allocator=lapa"]),
    ("paper-ideal", &["profile=paper"]),
    ("paper-lapa", &["profile=paper", "privacy.initial_sigma=0.01"]),
    ("epoch-device-clip", &["profile=paper", "learn.update=epoch"]),
    ("epoch-sample-clip", &["learn.update=epoch"]),
    ("no-norm", &["model.norm=none", "privacy.epsilon=8"]),
    ("digital", &["transmit.uplink=digital", "privacy.epsilon=8"]),
];

/// Runs without convolutions: the kernels make no difference.
pub const LINEAR: &[Case] = &[
    ("certified-fixed", &["privacy.epsilon=8", "learn.sampling=fixed"]),
    ("certified-arb", &["privacy.epsilon=4", "privacy.allocator=arb", "learn.averaging=0.5"]),
    (
        "certified-lapa-full",
        &["privacy.epsilon=8", "privacy.allocator=lapa", "learn.sampling=full"],
    ),
    ("certified-sigma", &["privacy.initial_sigma=0.05"]),
    ("discrete-gaussian", &["privacy.epsilon=8", "privacy.noise=discrete-gaussian"]),
    ("add-remove", &["privacy.epsilon=8", "privacy.adjacency=add-remove"]),
    ("paper-uniform", &["profile=paper", "privacy.epsilon=800", "privacy.allocator=uniform"]),
    ("paper-arb", &["profile=paper", "privacy.initial_sigma=0.01", "privacy.allocator=arb"]),
    (
        "paper-optimal-split",
        &["profile=paper", "privacy.initial_sigma=0.01", "privacy.allocator=optimal-split"],
    ),
    (
        "paper-raw-error",
        &[
            "profile=paper",
            "privacy.initial_sigma=0.01",
            "privacy.allocator=lapa",
            "privacy.lapa.error=raw",
            "privacy.lapa.window=2",
            "privacy.lapa.proportional=0.01",
            "privacy.lapa.integral=0.02",
            "privacy.lapa.decay=3",
        ],
    ),
    ("fedadp", &["privacy.epsilon=8", "aggregate.rule=fedadp", "run.participation=0.6"]),
    ("wasserstein-noisy", &["privacy.epsilon=8", "aggregate.rule=wasserstein"]),
    (
        "wasserstein-exact",
        &["profile=paper", "privacy.initial_sigma=0.01", "aggregate.rule=wasserstein"],
    ),
    (
        "noise-aware",
        &[
            "privacy.epsilon=8",
            "aggregate.rule=noise-aware",
            "aggregate.noise-aware.histograms=public",
        ],
    ),
    ("kl", &["privacy.epsilon=8", "aggregate.rule=kl"]),
    ("js", &["privacy.epsilon=8", "aggregate.rule=js"]),
    ("analog-noma", &["privacy.epsilon=8", "transmit.uplink=analog"]),
    (
        "analog-selected",
        &[
            "profile=paper",
            "transmit.uplink=analog",
            "transmit.receiver=mmse",
            "transmit.perfect_sic=false",
            "radio.fading=independent",
            "radio.redraw_every=2",
            "aggregate.ser_threshold=0.1",
        ],
    ),
    (
        "weight-zero",
        &[
            "privacy.epsilon=8",
            "transmit.uplink=analog",
            "aggregate.ser_threshold=0.1",
            "aggregate.below_threshold=weight-zero",
        ],
    ),
    ("unit-scale", &["privacy.epsilon=8", "transmit.uplink=analog", "transmit.scale=unit"]),
    (
        "signal-analog",
        &["privacy.epsilon=8", "transmit.uplink=signal", "transmit.access=orthogonal"],
    ),
    (
        "signal-digital",
        &[
            "transmit.uplink=signal",
            "transmit.signal.symbols=digital",
            "transmit.modulation=16-qam",
        ],
    ),
    (
        "printed",
        &[
            "profile=printed",
            "privacy.initial_sigma=0.05",
            "privacy.channel_trust=1",
            "transmit.uplink=analog",
            "radio.noise_power_w=1e-11",
            "aggregate.rule=wasserstein",
            "control.noise=switch",
            "control.power=ddpg",
            "control.pilots=2",
            "control.ddpg.episodes=4",
            "control.ddpg.steps=25",
        ],
    ),
    ("switch-sum", &TRUSTED_SUM),
    ("switch-sum-latched", &TRUSTED_SUM_LATCHED),
    ("switch-per-device", &TRUSTED_PER_DEVICE),
    ("top-up", &TRUSTED_TOP_UP),
    (
        "top-up-certified",
        &[
            "privacy.epsilon=8",
            "privacy.channel_trust=0.5",
            "radio.noise_power_w=1e-12",
            "transmit.uplink=analog",
            "transmit.access=orthogonal",
            "control.noise=top-up",
        ],
    ),
    (
        "dirichlet",
        &[
            "partition.scheme=dirichlet",
            "partition.dirichlet.concentration=5",
            "partition.dirichlet.devices=4",
        ],
    ),
    ("shards", &["partition.scheme=shards", "partition.shards.devices=4"]),
    ("iid", &["partition.scheme=iid", "partition.iid.samples=30", "partition.iid.devices=4"]),
    (
        "virtual",
        &[
            "privacy.epsilon=8",
            "partition.scheme=virtual",
            "partition.virtual.devices=200",
            "partition.virtual.samples=[10, 20]",
            "run.participation=0.6",
        ],
    ),
    ("mlp", &["model.name=mlp", "privacy.epsilon=8", "observe.devices=summary"]),
    ("local-epochs", &["profile=paper", "learn.update=epoch", "learn.local_epochs=2"]),
    ("from-digits", &["model.start=digits", "privacy.epsilon=8"]),
];

/// Runs after a pilot that chooses the transmit powers.
pub const STAGED: &[Case] = &[
    ("closed-form", &["control.power=closed-form"]),
    ("cma-es", &["control.power=cma-es", "control.cma-es.evaluations=200"]),
    (
        "ddpg",
        &[
            "control.power=ddpg",
            "control.ddpg.episodes=3",
            "control.ddpg.steps=60",
            "control.ddpg.hidden=8",
            "control.ddpg.batch=16",
        ],
    ),
    (
        "td3",
        &[
            "control.power=ddpg",
            "control.ddpg.variant=td3",
            "control.ddpg.episodes=3",
            "control.ddpg.steps=60",
            "control.ddpg.hidden=8",
            "control.ddpg.batch=16",
        ],
    ),
    (
        "random-search",
        &["control.power=random-search", "control.ddpg.episodes=3", "control.ddpg.steps=60"],
    ),
    ("equal-power", &["control.power=equal"]),
    ("full-power", &["control.power=full"]),
];

macro_rules! trusted {
    ($($change:expr),*) => {
        [
            "profile=paper",
            "privacy.initial_sigma=0.05",
            "privacy.channel_trust=1",
            "radio.noise_power_w=1e-12",
            "transmit.uplink=analog",
            "transmit.access=orthogonal",
            $($change),*
        ]
    };
}
const TRUSTED_SUM: [&str; 8] = trusted!("control.noise=switch", "control.switch.rule=sum");
const TRUSTED_SUM_LATCHED: [&str; 8] =
    trusted!("control.noise=switch", "control.switch.rule=sum-latched");
const TRUSTED_PER_DEVICE: [&str; 7] = trusted!("control.noise=switch");
pub const TRUSTED_TOP_UP: [&str; 7] = trusted!("control.noise=top-up");
