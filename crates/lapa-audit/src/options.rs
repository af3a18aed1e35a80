//! Options of an audit, and reports of its progress.

use std::ops::ControlFlow;

use crate::{Attack, AuditError};

/// Effort of an audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Minutes at most.
    #[default]
    Quick,
    /// Enough for sharp bounds.
    Full,
}

/// Options of an audit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Confidence of every bound and verdict, in (0, 1).
    pub confidence: f64,
    /// The effort.
    pub effort: Effort,
    /// Seed of the attacker's own choices.
    pub seed: u64,
}

impl Options {
    /// Options with a confidence in (0, 1).
    pub fn new(confidence: f64, effort: Effort, seed: u64) -> Result<Self, AuditError> {
        if confidence > 0.0 && confidence < 1.0 {
            Ok(Self { confidence, effort, seed })
        } else {
            Err(AuditError::Confidence(confidence))
        }
    }
}

/// Progress of an attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The attack.
    pub attack: Attack,
    /// Its current step.
    pub what: &'a str,
    /// Steps done.
    pub done: u64,
    /// Number of steps.
    pub of: u64,
    /// A warning of the run that is repeated.
    pub warning: Option<&'a str>,
}

/// Hears of progress, and may break the audit off.
pub type Listener<'a> = dyn FnMut(Progress<'_>) -> ControlFlow<()> + 'a;
