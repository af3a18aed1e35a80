//! Formats of files of one's own: their words, and how each is read.

use std::path::Path;

use super::parts::Parts;
use super::{Result, arrays, cifar, folder, table};

/// Defines the formats, a line each.
macro_rules! formats {
    ($($name:ident: $word:literal, $about:literal, $read:path;)*) => {
        /// A format of files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Format {
            $(#[doc = $about] $name,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its word before the colon of `data.name`.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The files that stand behind the colon.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)* }
            }

            /// Reads what is at a path.
            pub(super) fn read(self, path: &Path) -> Result<Parts> {
                match self { $(Self::$name => $read(path),)* }
            }
        }
    };
}

formats! {
    Idx: "idx", "a folder with the four IDX files of a data set", folder::read;
    Cifar: "cifar", "a folder with the binary files of CIFAR-10 or CIFAR-100", cifar::read;
    Npz: "npz", "arrays x_train, y_train, x_test and y_test of NumPy, or a folder with such .npy files", arrays::read;
    Csv: "csv", "a table with the class in column `label`, or a folder with train.csv and test.csv", table::read;
}
