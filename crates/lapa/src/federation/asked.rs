//! A round that was asked for.

use std::time::Instant;

use lapa_privacy::ledger::Recorded;

use crate::budget::Granted;
use crate::radio::{Link, Selection};
use crate::station::Allocation;

/// A round that was asked for. Every release of it is on record.
pub(crate) struct Asked {
    pub round: u32,
    pub selection: Selection,
    pub allocation: Allocation,
    pub granted: Vec<Granted>,
    /// The ledger's proofs, one for each grant: devices spend them on their noise.
    pub recorded: Vec<Recorded>,
    pub start: Instant,
}

impl Asked {
    /// The granted devices, each with its link and the angle that its cost was decided with.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Granted, &Link, Option<f64>)> {
        let mut chosen = self.selection.chosen.iter().zip(&self.allocation.angles);
        self.granted.iter().filter_map(move |granted| {
            let (link, &angle) = chosen.find(|(link, _)| link.device == granted.device)?;
            Some((granted, link, angle))
        })
    }

    /// The granted devices.
    pub(crate) fn devices(&self) -> Vec<u32> {
        self.granted.iter().map(|granted| granted.device).collect()
    }

    /// The links of the granted devices.
    pub(crate) fn on_air(&self) -> Vec<Link> {
        self.entries().map(|(_, &link, _)| link).collect()
    }
}
