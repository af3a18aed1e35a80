//! Choices of a configuration: one enum for each kind of thing that a word names.

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
