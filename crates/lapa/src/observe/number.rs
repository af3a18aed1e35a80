//! Reals in JSON: infinity is the string `"inf"` (or `"-inf"`), NaN is refused.
//!
//! JSON has no infinity, and serde_json would turn one into null, which here means "does not
//! apply". NaN never reaches a file: training that diverged is an error, not a measurement.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::{Error, Serializer};

/// Writes a real; for `#[serde(with = "number")]`.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match *value {
        f64::INFINITY => serializer.serialize_str("inf"),
        f64::NEG_INFINITY => serializer.serialize_str("-inf"),
        value if value.is_nan() => Err(S::Error::custom("NaN cannot be recorded")),
        value => serializer.serialize_f64(value),
    }
}

/// Reads a real; for `#[serde(with = "number")]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(Real)
}

/// The infinity that a string stands for.
pub fn infinity(text: &str) -> Option<f64> {
    match text {
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

struct Real;

impl Visitor<'_> for Real {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number, \"inf\" or \"-inf\"")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<f64, E> {
        infinity(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// The same for a real that may not apply, written as null.
pub mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Wrapped(#[serde(with = "super")] f64);

    /// Writes a real or null; for `#[serde(with = "number::optional")]`.
    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(Wrapped).serialize(serializer)
    }

    /// Reads a real or null; for `#[serde(with = "number::optional")]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(d)?.map(|Wrapped(value)| value))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Pair {
        #[serde(with = "super")]
        a: f64,
        #[serde(with = "super::optional")]
        b: Option<f64>,
    }

    #[test]
    fn infinity_is_a_string_and_null_does_not_apply() {
        for (pair, json) in [
            (Pair { a: f64::INFINITY, b: Some(f64::NEG_INFINITY) }, r#"{"a":"inf","b":"-inf"}"#),
            (Pair { a: 0.1, b: None }, r#"{"a":0.1,"b":null}"#),
            (Pair { a: 2.0, b: Some(1e-300) }, r#"{"a":2.0,"b":1e-300}"#),
        ] {
            assert_eq!(serde_json::to_string(&pair).unwrap(), json);
            assert_eq!(serde_json::from_str::<Pair>(json).unwrap(), pair);
        }
        let whole: Pair = serde_json::from_str(r#"{"a":-2,"b":3}"#).unwrap();
        assert_eq!(whole, Pair { a: -2.0, b: Some(3.0) });
    }

    #[test]
    fn nan_and_other_text_are_refused() {
        assert!(serde_json::to_string(&Pair { a: f64::NAN, b: None }).is_err());
        assert!(serde_json::to_string(&Pair { a: 0.0, b: Some(f64::NAN) }).is_err());
        for json in [r#"{"a":"nan","b":null}"#, r#"{"a":null,"b":null}"#, r#"{"a":1,"b":"x"}"#] {
            let error = serde_json::from_str::<Pair>(json).unwrap_err().to_string();
            assert!(error.contains(r#"a number, "inf" or "-inf""#), "{error}");
        }
    }
}
