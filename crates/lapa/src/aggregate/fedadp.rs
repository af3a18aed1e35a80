//! Rule fedadp (Wu & Wang 2021, arXiv 2012.00661): weights by the angle between a device's gradient and
//! the mean. It is the paper's benchmark BEDA.
//!
//! It reads what the base station received and public numbers only, so it costs no privacy.

use std::collections::BTreeMap;
use std::f64::consts::{FRAC_PI_2, PI};

use lapa_privacy::allocate::lapa::angle::contribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::softmax::softmax;
use super::{BuildRule, Rule, fedavg};
use crate::radio::Received;

/// Parameters of rule fedadp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FedadpConfig {
    /// Gradient to which a device's angle is taken.
    pub reference: Reference,
}

/// Gradient to which a device's angle is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// The mean of all devices of the round, as Wu & Wang have it.
    #[default]
    Mean,
    /// The mean of the others: large errors then do not turn the reference toward themselves. An
    /// extension of ours.
    LeaveOneOut,
}

impl BuildRule for FedadpConfig {
    fn build(&self, devices: usize) -> Box<dyn Rule> {
        Box::new(FedAdp::new(devices).to(self.reference))
    }
}

/// α of the contribution f(θ̃) = α(1 − exp(−exp(−α(θ̃ − 1)))): near α for angles well below 1, near 0
/// for right angles and more.
const ALPHA: f64 = 5.0;

/// Memory of FedAdp between rounds: the smoothed angle of every device that took part.
#[derive(Clone, Debug, PartialEq)]
pub struct FedAdp {
    devices: usize,
    angles: BTreeMap<u32, Smoothed>,
    reference: Reference,
}

/// θ̃_k: the mean of a device's angles so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Smoothed {
    angle: f64,
    rounds: u32,
}

impl FedAdp {
    /// Before the first round of `devices` devices.
    pub fn new(devices: usize) -> Self {
        Self { devices, angles: BTreeMap::new(), reference: Reference::Mean }
    }

    /// The same with angles to this gradient.
    pub fn to(self, reference: Reference) -> Self {
        Self { reference, ..self }
    }

    /// |D_k|·e^{f(θ̃_k)} / Σ_j |D_j|·e^{f(θ̃_j)} over the devices of the round, after taking this
    /// round's angles to their gradients' mean, weighted by |D_k|, into the smoothed ones.
    ///
    /// Sums are over 64-bit products in one order, whatever the threads and the processor.
    ///
    /// θ̃_k is the mean over the rounds in which the device took part. With
    /// [`Reference::LeaveOneOut`] the mean is that of the others.
    pub fn by_angles(
        &mut self,
        devices: &[u32],
        samples: &[u32],
        gradients: &[&[f32]],
    ) -> Vec<f64> {
        let shares = fedavg(samples);
        let global = mean(&shares, gradients);
        let whole = inner(&global, &global);
        let contributions: Vec<f64> = devices
            .iter()
            .zip(gradients)
            .zip(&shares)
            .map(|((&device, gradient), share)| {
                let own = inner(gradient, gradient);
                let mut to = inner(&global, gradient);
                let mut reference = whole;
                if self.reference == Reference::LeaveOneOut {
                    // ⟨m − s·g, g⟩ and ‖m − s·g‖², of which rounding may leave less than 0.
                    reference = (whole - share * (2.0 * to - share * own)).max(0.0);
                    to -= share * own;
                }
                let smoothed = self.angles.entry(device).or_default();
                smoothed.add(arccos(to, reference, own));
                contribution(smoothed.angle, ALPHA)
            })
            .collect();
        softmax(samples, &contributions)
    }
}

impl Rule for FedAdp {
    fn weights(&mut self, samples: &[u32], received: &[Received]) -> Vec<f64> {
        let devices: Vec<u32> = received.iter().map(Received::device).collect();
        let gradients: Vec<&[f32]> = received.iter().map(Received::gradient).collect();
        self.by_angles(&devices, samples, &gradients)
    }

    fn state(&self) -> Value {
        serde_json::to_value(&self.angles).unwrap_or_default()
    }

    fn restore(&mut self, state: Value) -> bool {
        let Ok(angles) = BTreeMap::<u32, Smoothed>::deserialize(state) else { return false };
        let fits = angles.iter().all(|(&device, smoothed)| {
            (device as usize) < self.devices && (0.0..=PI).contains(&smoothed.angle)
        });
        if fits {
            self.angles = angles;
        }
        fits
    }
}

impl Smoothed {
    /// θ̃ ← ((t − 1)/t)·θ̃ + θ/t, in a form that rounding cannot take past π.
    fn add(&mut self, angle: f64) {
        self.rounds = self.rounds.saturating_add(1);
        self.angle += (angle - self.angle) / f64::from(self.rounds);
    }
}

/// Σ_k |D_k|·g_k / Σ_j |D_j|
fn mean(shares: &[f64], gradients: &[&[f32]]) -> Vec<f64> {
    let mut mean = vec![0.0; gradients.first().map_or(0, |first| first.len())];
    for (share, gradient) in shares.iter().zip(gradients) {
        for (sum, &value) in mean.iter_mut().zip(*gradient) {
            *sum += share * f64::from(value);
        }
    }
    mean
}

/// θ = arccos(inner / (norm·norm)) by an inner product and two squared norms, clamped, since rounding
/// may take the cosine past ±1.
///
/// A right angle if a gradient is 0: it points neither with the others nor against them.
fn arccos(inner: f64, one: f64, other: f64) -> f64 {
    let cosine = inner / (one.sqrt() * other.sqrt());
    if cosine.is_finite() { cosine.clamp(-1.0, 1.0).acos() } else { FRAC_PI_2 }
}

/// ⟨x, y⟩ in eight interleaved partial sums: a single one would wait for each of its additions.
fn inner<X: Copy + Into<f64>, Y: Copy + Into<f64>>(x: &[X], y: &[Y]) -> f64 {
    let mut lanes = [0.0; 8];
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
    for (x, y) in xs.iter().zip(ys) {
        for lane in 0..8 {
            lanes[lane] += x[lane].into() * y[lane].into();
        }
    }
    for (lane, (&x, &y)) in lanes.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *lane += x.into() * y.into();
    }
    lanes.iter().sum()
}
