//! Updates of a round as they arrive.

use crate::aggregate::GlobalDelta;
use crate::radio::Received;

/// Updates of a round: kept, or added to the weighted sum at once where nobody reads them.
pub(crate) struct Inbox {
    pub(super) delta: GlobalDelta,
    /// The weight of each device that will answer, if it is known before; `None` has no part in the
    /// sum.
    known: Option<Vec<Option<f64>>>,
    /// Devices that arrived, in their order.
    pub(super) devices: Vec<u32>,
    pub(super) kept: Vec<Received>,
    /// Memory of earlier updates.
    rooms: Vec<Vec<f32>>,
}

impl Inbox {
    /// An inbox that keeps updates, or sums them with the `known` weights of all who will answer.
    pub(super) fn new(
        mut delta: GlobalDelta,
        known: Option<Vec<Option<f64>>>,
        before: Vec<Received>,
    ) -> Self {
        if known.is_some() {
            delta.gradient.clear();
        }
        let rooms = before.into_iter().map(Received::into_gradient).collect();
        Self { delta, known, devices: Vec::new(), kept: Vec::new(), rooms }
    }

    /// True if updates are summed as they arrive, so that they may come in blocks.
    pub(crate) fn sums(&self) -> bool {
        self.known.is_some()
    }

    /// Takes the next updates, in the order of the devices.
    pub(crate) fn take(&mut self, received: Vec<Received>) {
        let Some(known) = &self.known else {
            self.devices.extend(received.iter().map(Received::device));
            return self.kept.extend(received);
        };
        for received in received {
            if let Some(Some(weight)) = known.get(self.devices.len()) {
                self.delta.add(*weight, received.gradient());
            }
            self.devices.push(received.device());
            self.rooms.push(received.into_gradient());
        }
    }

    /// Memory for an update.
    pub(crate) fn room(&mut self) -> Vec<f32> {
        self.rooms.pop().unwrap_or_default()
    }

    /// The weights of the devices that arrived, where they were known; 0 for those without a part.
    pub(super) fn known_weights(&mut self) -> Option<Vec<f64>> {
        let known = self.known.take()?;
        Some(known.into_iter().map(Option::unwrap_or_default).collect())
    }
}
