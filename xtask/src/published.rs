//! Tasks that others have printed: what they say, and how we run them. The sources stand in
//! `experiments/published/README.md`.

use clap::ValueEnum;

/// A task of `experiments/published`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// FLUTE's logistic regression: 1,000 clients, 10 in a round.
    LrMnist,
    /// Four devices with noise of their own, ε = 4.
    FourDevices,
    /// BlazeFL's CNN: 100 clients, 5 local epochs.
    Cnn,
}

/// A published task.
pub struct Task {
    pub name: Name,
    /// Name of the configuration, and of the task in `published_tasks.py`.
    pub file: &'static str,
    pub title: &'static str,
    /// Rounds with `--quick`; all rounds are the configuration's.
    pub quick_rounds: u32,
    /// Rounds of the peers and those with `--quick`, if peers run the task here.
    pub peer_rounds: Option<(u32, u32)>,
    pub printed: &'static [Printed],
}

/// A result that others have printed.
pub struct Printed {
    pub who: &'static str,
    /// Their hardware, and where we read it.
    pub place: &'static str,
    pub seconds: f64,
    /// Accuracy as they print it.
    pub accuracy: &'static str,
}

const fn printed(
    who: &'static str,
    place: &'static str,
    seconds: f64,
    accuracy: &'static str,
) -> Printed {
    Printed { who, place, seconds, accuracy }
}

/// All tasks.
pub const TASKS: [Task; 3] = [
    Task {
        name: Name::LrMnist,
        file: "lr-mnist",
        title: "LR-MNIST",
        quick_rounds: 10,
        peer_rounds: Some((100, 10)),
        printed: &[
            printed("FLUTE", "2 GPUs (not named), read from their README", 91.0, "~80 %"),
            printed("FLUTE", "CPU (not named), read from their README", 200.0, "~80 %"),
            printed(
                "FedML Parrot 0.7.303",
                "GPUs (not named), read from FLUTE's README",
                189.0,
                "~81 %",
            ),
            printed("Flower 1.0.0", "CPU (not named), read from FLUTE's README", 1814.0, "~80 %"),
        ],
    },
    Task {
        name: Name::FourDevices,
        file: "four-devices",
        title: "Four devices, ε = 4",
        quick_rounds: 200,
        peer_rounds: None,
        printed: &[
            printed(
                "Yangfan-Jiang, CNN",
                "a GPU (not named), read from their notebook",
                3044.31,
                "96.33 %",
            ),
            printed(
                "Yangfan-Jiang, scattering",
                "a GPU (not named), read from their notebook",
                1538.17,
                "97.42 %",
            ),
        ],
    },
    Task {
        name: Name::Cnn,
        file: "cnn",
        title: "CNN, 100 × 500",
        quick_rounds: 1,
        peer_rounds: Some((5, 1)),
        printed: &[
            printed(
                "BlazeFL, 2 threads",
                "EPYC 7542, 4 Quadro RTX 6000, read from the chart in their README",
                94.0,
                "–",
            ),
            printed(
                "BlazeFL, 16 threads",
                "EPYC 7542, 4 Quadro RTX 6000, read from the chart in their README",
                25.0,
                "–",
            ),
            printed(
                "Flower, 2 workers",
                "EPYC 7542, 4 Quadro RTX 6000, read from the chart in BlazeFL's README",
                209.0,
                "–",
            ),
            printed(
                "Flower, 16 workers",
                "EPYC 7542, 4 Quadro RTX 6000, read from the chart in BlazeFL's README",
                65.0,
                "–",
            ),
        ],
    },
];
