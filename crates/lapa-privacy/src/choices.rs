//! Choices of a configuration: one enum for each kind of thing that a word names.

use serde::Serialize;
use serde_json::Value;

/// The word of a choice, as a configuration has it.
pub fn word_of(choice: impl Serialize) -> String {
    match serde_json::to_value(choice).unwrap_or_default() {
        Value::Object(chosen) => chosen.keys().next().cloned().unwrap_or_default(),
        word => word.as_str().unwrap_or_default().into(),
    }
}

/// An enum of parameter structs that all implement one trait, the seam. It dereferences to that
/// trait, so that code asks the seam and never matches the variants. A new choice is one line.
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $seam:ident {
            $($(#[$doc:meta])* $variant:ident($parameters:ty),)+
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$doc])* $variant($parameters),)+
        }

        impl ::std::ops::Deref for $name {
            type Target = dyn $seam;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$variant(parameters) => parameters,)+
                }
            }
        }

        impl ::std::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self {
                    $(Self::$variant(parameters) => parameters,)+
                }
            }
        }
    };
}
