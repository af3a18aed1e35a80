//! Ranges of a configuration: a number, or the smallest and the largest.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// A number, or `[min, max]`.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum OneOrPair {
    One(#[schemars(range(min = 1))] u32),
    Pair(#[schemars(inner(range(min = 1)))] [u32; 2]),
}

/// Reads a range.
pub(super) fn pair<'de, D: Deserializer<'de>>(from: D) -> Result<[u32; 2], D::Error> {
    Ok(match OneOrPair::deserialize(from)? {
        OneOrPair::One(number) => [number, number],
        OneOrPair::Pair(pair) => pair,
    })
}

/// Reads a range that may be absent.
pub(super) fn optional_pair<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<[u32; 2]>, D::Error> {
    pair(from).map(Some)
}
