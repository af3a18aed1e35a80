//! Updates that are kept, since something needs each of them.

use crate::config::{Experiment, MANY_DEVICES, word_of};
use crate::radio::UplinkConfig;

/// Key and value of what reads every update of a round, which are then kept; `None` if updates are
/// summed as they arrive.
pub(crate) fn reader_of_updates(experiment: &Experiment) -> Option<String> {
    let Experiment { aggregate, privacy, transmit, .. } = experiment;
    let allocator = privacy.as_ref().map(|privacy| privacy.allocator);
    if aggregate.rule.build(0).reads_updates() {
        Some(format!("`aggregate.rule` = \"{}\"", word_of(aggregate.rule)))
    } else if let Some(allocator) = allocator.filter(|allocator| !allocator.is_fixed()) {
        Some(format!("`privacy.allocator` = \"{}\"", word_of(allocator)))
    } else if let UplinkConfig::Signal(_) = transmit.uplink {
        Some("`transmit.uplink` = \"signal\"".into())
    } else {
        None
    }
}

/// A warning of the memory that the updates of a large round take where each of them is kept.
pub(super) fn warning(experiment: &Experiment, q: usize) -> Option<String> {
    let devices = experiment.partition.scheme.devices() as usize;
    let updates = experiment.taking_part(devices);
    let reader = reader_of_updates(experiment).filter(|_| updates >= MANY_DEVICES)?;
    let megabytes = (4 * updates * q) as f64 / 1e6;
    Some(format!(
        "{reader} needs every update of a round: {updates} of them take {megabytes:.0} MB at a time"
    ))
}
