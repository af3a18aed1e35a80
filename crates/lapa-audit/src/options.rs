//! How much an audit does, how sure it has to be, and how it reports.

use std::ops::ControlFlow;

use crate::{Attack, AuditError};

/// How much work an audit may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Minutes at most.
    #[default]
    Quick,
    /// As much as sharp bounds need.
    Full,
}

/// How an audit is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Of every bound and verdict, in (0, 1).
    pub confidence: f64,
    /// How much work.
    pub effort: Effort,
    /// Seed of the attacker's own choices.
    pub seed: u64,
}

impl Options {
    /// Refuses a confidence that is none.
    pub fn new(confidence: f64, effort: Effort, seed: u64) -> Result<Self, AuditError> {
        if confidence > 0.0 && confidence < 1.0 {
            Ok(Self { confidence, effort, seed })
        } else {
            Err(AuditError::Confidence { confidence })
        }
    }
}

/// How far an attack is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Which.
    pub attack: Attack,
    /// What it does now.
    pub what: &'a str,
    /// Steps done.
    pub done: u64,
    /// Of so many.
    pub of: u64,
    /// A warning of the run that is repeated.
    pub warning: Option<&'a str>,
}

/// Hears of progress, and may break the audit off.
pub type Listener<'a> = dyn FnMut(Progress<'_>) -> ControlFlow<()> + 'a;
