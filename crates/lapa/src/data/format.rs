//! Formats of files of one's own: their words, and how each is read.

use std::path::Path;

use super::parts::Parts;
use super::{FetchEvent, Result, arrays, cifar, columns, folder, images, table};

/// Files to be read.
pub struct Request<'a> {
    /// Path behind the colon.
    pub path: &'a Path,
    /// Rows and columns to which pictures are resized.
    pub size: Option<[u32; 2]>,
    /// Hears of the progress.
    pub on_event: &'a mut dyn FnMut(FetchEvent),
}

/// Defines the formats, a line each.
macro_rules! formats {
    ($($name:ident: $word:literal, $about:literal, $read:expr;)*) => {
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
            pub(super) fn read(self, request: Request) -> Result<Parts> {
                let read: fn(Request) -> Result<Parts> = match self { $(Self::$name => $read,)* };
                read(request)
            }
        }
    };
}

formats! {
    Idx: "idx", "a folder with the four IDX files of a data set", |request| folder::read(request.path);
    Cifar: "cifar", "a folder with the binary files of CIFAR-10 or CIFAR-100", |request| cifar::read(request.path);
    Npz: "npz", "arrays x_train, y_train, x_test and y_test of NumPy, or a folder with such .npy files", |request| arrays::read(request.path);
    Csv: "csv", "a table with the class in column `label`, or a folder with train.csv and test.csv", |request| table::read(request.path);
    Images: "images", "a folder with train/CLASS/*.png and test/CLASS/*.png, or .jpg", images::read;
    Parquet: "parquet", "a table in Parquet with pictures or numbers, or a folder with train*.parquet and test*.parquet", columns::read;
}

impl Format {
    /// True for files of pictures, which may have to be resized.
    pub(crate) fn has_pictures(self) -> bool {
        matches!(self, Self::Images | Self::Parquet)
    }
}
