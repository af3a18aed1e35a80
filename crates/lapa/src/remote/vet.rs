//! Answers that a base station takes.

use lapa_privacy::{Adjacency, ClipUnit, Event, Release};

use crate::budget::Granted;

/// An answer that was left out, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropped {
    /// The sender.
    pub device: u32,
    /// The reason.
    pub reason: Reason,
}

/// Reason to leave out an answer.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Reason {
    /// The device was not asked.
    #[error("it was not asked")]
    NotAsked,
    /// It is not an update of this model.
    #[error("{given} values for a model of {expected}")]
    Length {
        /// Its number of values.
        given: usize,
        /// The number expected.
        expected: usize,
    },
    /// A value is not a number, or infinite.
    #[error("value {index} is not finite")]
    NotFinite {
        /// The position.
        index: usize,
    },
    /// It is longer than anything that a device makes that clips and noises as agreed.
    #[error(
        "its norm is {norm:.3e}, but what is clipped and noised as agreed has at most {most:.3e}"
    )]
    TooLong {
        /// Its Euclidean norm.
        norm: f64,
        /// The most that is believed.
        most: f64,
    },
}

/// Refuses an answer of another length, or with a value that is not finite.
pub(super) fn finite<T: Copy>(
    answer: &[T],
    expected: usize,
    is_finite: fn(T) -> bool,
) -> Result<(), Reason> {
    if answer.len() != expected {
        return Err(Reason::Length { given: answer.len(), expected });
    }
    match answer.iter().position(|&value| !is_finite(value)) {
        Some(index) => Err(Reason::NotFinite { index }),
        None => Ok(()),
    }
}

/// Refuses an answer that no honest device gives to what was `granted`.
pub(super) fn vet(granted: &Granted, answer: &[f32], expected: usize) -> Result<(), Reason> {
    finite(answer, expected, f32::is_finite)?;
    let norm = answer.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
    if let Event::Release(release) = &granted.event
        && let Some(most) = longest(release, expected)
        && norm > most
    {
        return Err(Reason::TooLong { norm, most });
    }
    Ok(())
}

/// The longest update of an honest device: what is clipped, and noise, whose norm passes
/// σ(√q + 12) with a probability below e⁻⁷² (Gaussian concentration of a 1-Lipschitz function).
/// `None` if the device's number of samples, and so the size of a batch, is not public.
fn longest(release: &Release, coordinates: usize) -> Option<f64> {
    let clipped = match release.clip {
        ClipUnit::Device => release.clip_norm,
        // At most all samples are in a batch.
        ClipUnit::Sample if release.adjacency != Adjacency::AddRemove => {
            release.clip_norm * (f64::from(release.records) / release.denominator).max(1.0)
        }
        ClipUnit::Sample => return None,
    };
    let noise = release.sigma_artificial * ((coordinates as f64).sqrt() + 12.0);
    // Rounding to single precision adds no more than a millionth.
    Some((clipped + noise) * (1.0 + 1e-6))
}
