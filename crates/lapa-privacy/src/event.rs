//! A release as data: what left a device, and under which declarations.
//!
//! Both sensitivities are derived from the same event: the one the paper claims, and the one that
//! can be proved.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::EventError;
use crate::range::{check, not_negative, positive};

/// Something that left a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// A clipped, noised update.
    Release(Release),
    /// A device's label counts, sent once.
    Histogram(Histogram),
    /// Something without noise: ε = ∞.
    NonPrivate {
        /// Description of the release.
        what: String,
    },
}

impl Event {
    /// Mechanism of the release, for accountants.
    pub fn mechanism(&self) -> Result<Mechanism, EventError> {
        match self {
            Self::Release(release) => release.mechanism(),
            Self::Histogram(histogram) => histogram.mechanism(),
            Self::NonPrivate { .. } => Ok(Mechanism::NonPrivate),
        }
    }

    /// Standard deviation of the artificial noise on each coordinate of an update.
    pub fn sigma_artificial(&self) -> f64 {
        match self {
            Self::Release(release) => release.sigma_artificial,
            Self::Histogram(_) | Self::NonPrivate { .. } => 0.0,
        }
    }

    /// The ε that the paper claims for this event by itself; see [`Release::claimed_epsilon`]. It
    /// claims nothing for label histograms, which it does not count.
    pub fn claimed_epsilon(&self, delta: f64) -> f64 {
        match self {
            Self::Release(release) => release.claimed_epsilon(delta),
            Self::Histogram(_) => 0.0,
            Self::NonPrivate { .. } => f64::INFINITY,
        }
    }
}

/// One noised update of one device: g̃ = g + N(0, σ²) per real coordinate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// Unit that was clipped to `clip_norm`.
    pub clip: ClipUnit,
    /// Clipping norm C.
    pub clip_norm: f64,
    /// The public number that the sum of clipped sample gradients was divided by: n, n̂, b or
    /// b̄ = q·n̂. Without meaning for a device-level clip.
    pub denominator: f64,
    /// Records of the device, |D_k|, as the paper's sensitivity uses them.
    pub records: u32,
    /// Learning rate λ, as the paper's sensitivity uses it.
    pub learning_rate: f64,
    /// Adjacency of the data sets.
    pub adjacency: Adjacency,
    /// Sampling of the batch.
    pub sampling: Sampling,
    /// The distribution of the artificial noise.
    pub noise: NoiseKind,
    /// Standard deviation of the artificial noise per real coordinate.
    pub sigma_artificial: f64,
    /// Declared lower bound of the channel noise's standard deviation per real coordinate.
    pub sigma_channel: f64,
    /// κ: fraction of the channel noise's variance that may be counted.
    pub kappa: f64,
    /// True if other devices' updates arrive with the same channel noise, as over NOMA. The paper's
    /// claim counts such noise; it proves nothing, since the others' values tell most of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_channel: bool,
}

/// The number of a device's records of each label, with noise of σ on each count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Adjacency of the data sets.
    pub adjacency: Adjacency,
    /// The distribution of the noise.
    pub noise: NoiseKind,
    /// Standard deviation of the noise on each count; 0 means exact counts.
    pub sigma: f64,
}

impl Histogram {
    /// The most that one record can move the counts, in the Euclidean norm: √2 where it is replaced
    /// (one count falls, another rises), 1 where it comes, goes or is zeroed out: a zeroed record
    /// is counted nowhere.
    pub fn sensitivity(&self) -> f64 {
        match self.adjacency {
            Adjacency::ReplaceOne => std::f64::consts::SQRT_2,
            Adjacency::AddRemove | Adjacency::ZeroOut => 1.0,
        }
    }

    /// Mechanism of the release, for accountants.
    pub fn mechanism(&self) -> Result<Mechanism, EventError> {
        not_negative("sigma", self.sigma)?;
        let noise_multiplier = self.sigma / self.sensitivity();
        Ok(match self.noise {
            _ if self.sigma == 0.0 => Mechanism::NonPrivate,
            NoiseKind::Gaussian | NoiseKind::ComplexGaussian => {
                Mechanism::Gaussian { noise_multiplier }
            }
            NoiseKind::DiscreteGaussian => Mechanism::DiscreteGaussian { noise_multiplier },
        })
    }
}

/// Unit of clipping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClipUnit {
    /// Each sample's gradient.
    Sample,
    /// The device's whole update.
    Device,
}

/// Relation of neighboring data sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One record is replaced by one of zero gradient; the number of records is public.
    ZeroOut,
    /// One record is added or removed; the number of records is not public.
    AddRemove,
    /// One record is replaced by any other; the number of records is public.
    ReplaceOne,
}

/// Sampling of a batch, new and independent each round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// All records.
    Full,
    /// A fixed number of records, without replacement.
    Fixed,
    /// Each record by itself with probability q.
    Poisson {
        /// q
        rate: f64,
    },
}

/// The distribution of artificial noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseKind {
    /// Gaussian, in floating point.
    Gaussian,
    /// Discrete Gaussian on a grid: no floating-point leak, no amplification by sampling.
    DiscreteGaussian,
    /// Complex Gaussian CN(0, σ²), the paper's eq. (19): a real coordinate carries half of σ². Basis
    /// paper only.
    ComplexGaussian,
}

impl NoiseKind {
    /// Variance of the noise over that of its real part.
    pub fn parts(self) -> f64 {
        match self {
            Self::Gaussian | Self::DiscreteGaussian => 1.0,
            Self::ComplexGaussian => 2.0,
        }
    }
}

/// Mechanism of a release, as accountants see it: noise in units of the sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mechanism")]
pub enum Mechanism {
    /// The Gaussian mechanism.
    Gaussian {
        /// z = σ/Δ
        noise_multiplier: f64,
    },
    /// The discrete Gaussian mechanism.
    DiscreteGaussian {
        /// z = σ/Δ
        noise_multiplier: f64,
    },
    /// The Gaussian mechanism on a Poisson sample.
    PoissonGaussian {
        /// q
        rate: f64,
        /// z = σ/Δ, where Δ is the most that one record adds to the sum. Replacing a record moves
        /// the sum by up to 2Δ, which the accountant knows from `adjacency`.
        noise_multiplier: f64,
        /// Adjacency of the data sets. Zero-out costs what add-remove costs.
        adjacency: Adjacency,
    },
    /// No noise.
    NonPrivate,
}

impl Release {
    /// The most that one record can move the released vector, in the Euclidean norm.
    ///
    /// - Device-level clip: 2C under every adjacency, since no bound per sample exists.
    /// - All records: 2C/n (replace-one), C/n̂ (add-remove).
    /// - Fixed batches of b: 2C/b (replace-one, and add-remove, where the slot of a removed record
    ///   is refilled).
    /// - Poisson batches: C/b̄ is what one record adds (any adjacency).
    ///
    /// Differs from the paper: its Δs = 2λC/|D_k| ([`Release::claimed_sensitivity`]) follows
    /// neither from a clip of the average nor for noise on g instead of λg.
    pub fn sensitivity(&self) -> Result<f64, EventError> {
        self.check()?;
        let pair = |instead| {
            let (sampling, adjacency) = (self.sampling, self.adjacency);
            Err(EventError::Pair { sampling, adjacency, instead })
        };
        let per_record = self.clip_norm / self.denominator;
        match (self.clip, self.sampling, self.adjacency) {
            (ClipUnit::Device, Sampling::Full | Sampling::Fixed, _) => Ok(2.0 * self.clip_norm),
            (ClipUnit::Device, Sampling::Poisson { .. }, _) => {
                pair("fixed or full batches with a device-level clip")
            }
            (ClipUnit::Sample, Sampling::Full, Adjacency::ReplaceOne) => Ok(2.0 * per_record),
            (ClipUnit::Sample, Sampling::Full, Adjacency::AddRemove) => Ok(per_record),
            (ClipUnit::Sample, Sampling::Fixed, Adjacency::ReplaceOne | Adjacency::AddRemove) => {
                Ok(2.0 * per_record)
            }
            (ClipUnit::Sample, Sampling::Poisson { .. }, _) => Ok(per_record),
            (ClipUnit::Sample, Sampling::Full | Sampling::Fixed, Adjacency::ZeroOut) => {
                pair("replace-one or add-remove, or poisson batches")
            }
        }
    }

    /// Δs = 2λC/|D_k|, as printed in the paper's eq. (18).
    pub fn claimed_sensitivity(&self) -> f64 {
        2.0 * self.learning_rate * self.clip_norm / f64::from(self.records)
    }

    /// Standard deviation that may be counted: √(σ_art² + κ·σ_ch²), without channel noise that
    /// devices share.
    pub fn sigma(&self) -> f64 {
        let kappa = if self.shared_channel { 0.0 } else { self.kappa };
        (self.sigma_artificial.powi(2) + kappa * self.sigma_channel.powi(2)).sqrt()
    }

    /// Standard deviation that the paper counts: of complex noise both parts, and channel noise also
    /// where devices share it.
    pub fn claimed_noise(&self) -> f64 {
        let artificial = self.noise.parts() * self.sigma_artificial.powi(2);
        (artificial + self.kappa * self.sigma_channel.powi(2)).sqrt()
    }

    /// Mechanism of the release, for accountants.
    pub fn mechanism(&self) -> Result<Mechanism, EventError> {
        let sensitivity = self.sensitivity()?;
        let sigma = self.sigma();
        if sigma == 0.0 {
            return Ok(Mechanism::NonPrivate);
        }
        let noise_multiplier = sigma / sensitivity;
        Ok(match (self.noise, self.sampling) {
            (NoiseKind::DiscreteGaussian, Sampling::Poisson { .. })
                if self.adjacency == Adjacency::ReplaceOne =>
            {
                Mechanism::DiscreteGaussian { noise_multiplier: noise_multiplier / 2.0 }
            }
            (NoiseKind::DiscreteGaussian, _) => Mechanism::DiscreteGaussian { noise_multiplier },
            (NoiseKind::Gaussian | NoiseKind::ComplexGaussian, Sampling::Poisson { rate }) => {
                Mechanism::poisson(rate, noise_multiplier, self.adjacency)
            }
            (
                NoiseKind::Gaussian | NoiseKind::ComplexGaussian,
                Sampling::Full | Sampling::Fixed,
            ) => Mechanism::Gaussian { noise_multiplier },
        })
    }

    /// ε_k = Δs·√(2 ln(1.25/δ))/σ: the paper's condition on σ, below its eq. (19), solved for ε.
    ///
    /// Its theorem needs ε_k in (0, 1); the formula is evaluated regardless.
    ///
    /// Differs from the paper: it counts the artificial noise until the switch, and then all of
    /// the channel's (Section IV-A); here σ is that of both ([`Release::claimed_noise`]).
    pub fn claimed_epsilon(&self, delta: f64) -> f64 {
        self.claimed_sensitivity() * classic_factor(delta) / self.claimed_noise()
    }

    /// σ = Δs·√(2 ln(1.25/δ))/ε_k: the noise that the paper's condition asks for.
    pub fn claimed_sigma(&self, epsilon: f64, delta: f64) -> f64 {
        self.claimed_sensitivity() * classic_factor(delta) / epsilon
    }

    /// Refuses numbers without meaning.
    fn check(&self) -> Result<(), EventError> {
        positive("clip_norm", self.clip_norm)?;
        positive("denominator", self.denominator)?;
        positive("records", self.records.into())?;
        not_negative("sigma_artificial", self.sigma_artificial)?;
        not_negative("sigma_channel", self.sigma_channel)?;
        let rate = if let Sampling::Poisson { rate } = self.sampling { rate } else { 1.0 };
        for (name, value) in [("kappa", self.kappa), ("sampling rate", rate)] {
            check(name, value, (0.0..=1.0).contains(&value), "from 0 to 1")?;
        }
        Ok(())
    }
}

/// √(2 ln(1.25/δ)), the c of the paper's condition (Dwork & Roth 2014, Theorem A.1).
pub(crate) fn classic_factor(delta: f64) -> f64 {
    (2.0 * (1.25 / delta).ln()).sqrt()
}

impl Mechanism {
    /// The Gaussian mechanism on a Poisson sample; with q = 1 it is the plain one.
    pub fn poisson(rate: f64, noise_multiplier: f64, adjacency: Adjacency) -> Self {
        match (rate < 1.0, adjacency) {
            (true, _) => Self::PoissonGaussian { rate, noise_multiplier, adjacency },
            (false, Adjacency::ReplaceOne) => {
                Self::Gaussian { noise_multiplier: noise_multiplier / 2.0 }
            }
            (false, _) => Self::Gaussian { noise_multiplier },
        }
    }

    /// Gaussian noise of `sigma` times the most that one record can change; on Poisson samples, of a
    /// rate, times the most that one record can add.
    pub fn gaussian(rate: Option<f64>, sigma: f64, adjacency: Adjacency) -> Self {
        let unit = match rate {
            None => Self::Gaussian { noise_multiplier: 1.0 },
            Some(rate) => Self::poisson(rate, 1.0, adjacency),
        };
        // Replacing a record moves a full batch by twice what one record adds.
        unit.with_noise(sigma * unit.noise_multiplier())
    }

    /// z = σ/Δ; 0 without noise.
    pub fn noise_multiplier(&self) -> f64 {
        match *self {
            Self::Gaussian { noise_multiplier }
            | Self::DiscreteGaussian { noise_multiplier }
            | Self::PoissonGaussian { noise_multiplier, .. } => noise_multiplier,
            Self::NonPrivate => 0.0,
        }
    }

    /// The same mechanism with another noise multiplier.
    pub fn with_noise(self, noise_multiplier: f64) -> Self {
        match self {
            Self::Gaussian { .. } => Self::Gaussian { noise_multiplier },
            Self::DiscreteGaussian { .. } => Self::DiscreteGaussian { noise_multiplier },
            Self::PoissonGaussian { rate, adjacency, .. } => {
                Self::PoissonGaussian { rate, noise_multiplier, adjacency }
            }
            Self::NonPrivate => Self::NonPrivate,
        }
    }
}

impl fmt::Display for Adjacency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroOut => "zero-out",
            Self::AddRemove => "add-remove",
            Self::ReplaceOne => "replace-one",
        })
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Fixed => "fixed-size",
            Self::Poisson { .. } => "poisson",
        })
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Gaussian { .. } | Self::PoissonGaussian { .. } => "Gaussian",
            Self::DiscreteGaussian { .. } => "discrete Gaussian",
            Self::NonPrivate => return f.write_str("a release without noise"),
        };
        write!(f, "the {kind} mechanism with noise multiplier {}", self.noise_multiplier())?;
        if let Self::PoissonGaussian { rate, adjacency, .. } = self {
            write!(f, " on a Poisson sample of rate {rate} under {adjacency} adjacency")?;
        }
        Ok(())
    }
}
