//! Data sets: images and labels.

mod arrays;
mod cifar;
mod client;
mod columns;
mod convert;
mod error;
mod features;
mod fetch;
mod folder;
mod format;
mod glyphs;
mod guarded;
mod idx;
mod images;
mod known;
mod normalize;
mod npy;
mod parts;
mod picture;
mod samples;
mod source;
mod strips;
mod synthetic;
mod table;

pub use convert::Target;
pub use error::{DataError, Result, Tried};
pub use features::{FeatureMap, FeatureNorm, Features, Inputs};
pub use fetch::FetchEvent;
pub use folder::cache_dir;
pub use format::Format;
pub use normalize::{Number, PerChannel};
pub(crate) use samples::look_up;
pub use samples::{Split, Tables, Values};

use std::path::PathBuf;

use format::Request;
use known::Known;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Classes of the data sets that have a name.
pub const CLASSES: usize = 10;

/// The data set.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// The data set. synthetic is drawn by code; The forms with PATH are files of one's own.
    #[schemars(with = "String", extend("pattern" = pattern(), "examples" = examples()))]
    pub name: DataName,
    /// Files of one's own: number of classes; labels are below it. Default: the largest label of the
    /// test set, which is public, and one more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 256), extend("examples" = [CLASSES]))]
    pub classes: Option<u32>,
    /// Rows and columns to which pictures are resized (images:PATH, parquet:PATH). Default: all must be
    /// of the same size.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(inner(range(min = 1, max = 4096)), extend("examples" = [[32, 32]]))]
    pub size: Option<[u32; 2]>,
    /// Factor of every value before mean and std. Default: 1/255 for bytes, 1 for floats.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 1e-9, max = 1e9), extend("examples" = [0.01]))]
    pub scale: Option<Number>,
    /// Mean that is subtracted after the scale, one number or one for each channel (for each column of a
    /// table). It is public: take a published one, not that of private records. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "normalize::means", extend("examples" = [[0.5, 0.5, 0.5]]))]
    pub mean: Option<PerChannel>,
    /// Standard deviation, by which the rest is divided; public as the mean is. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "normalize::deviations", extend("examples" = [[0.25, 0.25, 0.25]]))]
    pub std: Option<PerChannel>,
}

/// Names that stand for themselves.
pub(crate) const NAMES: [&str; 4] = ["mnist", "fashion-mnist", "cifar-10", "synthetic"];

/// Allowed forms of `data.name`.
fn examples() -> Vec<String> {
    let files = Format::ALL.iter().map(|format| format!("{}:PATH", format.word()));
    NAMES.into_iter().map(str::to_owned).chain(files).collect()
}

/// The same as a regular expression.
fn pattern() -> String {
    format!("^({})$", examples().join("|").replace("PATH", ".+"))
}

/// Name of a data set: `mnist`, `fashion-mnist`, `cifar-10`, `synthetic`, or a format and a path: `idx:PATH`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DataName {
    /// MNIST handwritten digits.
    #[default]
    Mnist,
    /// Fashion-MNIST.
    FashionMnist,
    /// CIFAR-10.
    Cifar10,
    /// Digits drawn by code; needs no files.
    Synthetic,
    /// Files of one's own.
    Files(Format, PathBuf),
}

impl From<DataName> for String {
    fn from(name: DataName) -> String {
        match name {
            DataName::Mnist => "mnist".into(),
            DataName::FashionMnist => "fashion-mnist".into(),
            DataName::Cifar10 => "cifar-10".into(),
            DataName::Synthetic => "synthetic".into(),
            DataName::Files(format, path) => format!("{}:{}", format.word(), path.display()),
        }
    }
}

impl TryFrom<String> for DataName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match name.as_str() {
            "mnist" => Ok(Self::Mnist),
            "fashion-mnist" => Ok(Self::FashionMnist),
            "cifar-10" => Ok(Self::Cifar10),
            "synthetic" => Ok(Self::Synthetic),
            other => {
                let files = other.split_once(':').filter(|(_, path)| !path.is_empty());
                let known = files.and_then(|(word, path)| {
                    let format = Format::ALL.iter().find(|format| format.word() == word)?;
                    Some(Self::Files(*format, path.into()))
                });
                known.ok_or_else(|| {
                    let mut allowed = examples();
                    let last = allowed.pop().unwrap_or_default();
                    let allowed = allowed.join(", ");
                    format!("unknown data set `{other}`: use {allowed} or {last}")
                })
            }
        }
    }
}

/// Origin of a data set: its name, where it was found, and the hashes of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name in the configuration.
    pub name: DataName,
    /// Place where it was found.
    pub source: String,
    /// Files and their SHA-256.
    pub hashes: Vec<FileHash>,
}

impl Dataset {
    /// The origin of the data.
    pub fn origin(&self) -> Origin {
        let Self { name, source, hashes, .. } = self;
        Origin { name: name.clone(), source: source.clone(), hashes: hashes.clone() }
    }
}

/// A data set in memory.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Its name.
    pub name: DataName,
    /// Its place, in words.
    pub source: String,
    /// Training samples, which the devices share out.
    pub train: Split,
    /// Test samples, which the server holds.
    pub test: Split,
    /// Number of classes; labels are below it.
    pub classes: usize,
    /// The feature map that has been applied to all samples.
    pub features: FeatureMap,
    /// The device of each training sample, from 0, where the files have a column of devices.
    pub devices: Option<Vec<u32>>,
    /// Name and SHA-256 of each file, uncompressed (of the generated bytes for `synthetic`).
    pub hashes: Vec<FileHash>,
}

/// A file and its SHA-256 in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// File name without folder.
    pub file: String,
    /// SHA-256, lower-case hexadecimal.
    pub sha256: String,
}

/// One line of `lapa data list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataInfo {
    /// The name to use in an experiment.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Number of training images.
    pub train: usize,
    /// Number of test images.
    pub test: usize,
    /// True if it is ready for use.
    pub state: CacheState,
    /// Its folder in the cache; `None` if it needs no files or the environment names no cache.
    pub folder: Option<PathBuf>,
}

/// State of a data set in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// Drawn by code, needs no files.
    BuiltIn,
    /// All files are there and have the pinned SHA-256.
    Verified,
    /// At least one file is not there; it will be fetched.
    Missing,
    /// A file is not what it should be, for this reason; it will be fetched again.
    Altered(String),
}

/// The data set, ready for training; fetches and caches it first if need be. As [`Data::load`],
/// with the classes of the test labels.
pub fn load(name: &DataName, on_event: &mut dyn FnMut(FetchEvent)) -> Result<Dataset> {
    Data::named(name.clone()).load(on_event)
}

impl Data {
    /// A data set without a word on its classes and values.
    pub const fn named(name: DataName) -> Self {
        Self { name, classes: None, size: None, scale: None, mean: None, std: None }
    }

    /// True for files of pictures, which may have to be resized.
    pub(crate) fn has_pictures(&self) -> bool {
        matches!(&self.name, DataName::Files(format, _) if format.has_pictures())
    }

    /// The data set, ready for training; fetches and caches it first if need be.
    pub fn load(&self, on_event: &mut dyn FnMut(FetchEvent)) -> Result<Dataset> {
        let mut loaded = self.read(on_event)?;
        self.normalize(&mut loaded.train)?;
        self.normalize(&mut loaded.test)?;
        Ok(loaded)
    }

    /// The data set as it is stored.
    fn read(&self, on_event: &mut dyn FnMut(FetchEvent)) -> Result<Dataset> {
        let set = match &self.name {
            DataName::Mnist => known::mnist(),
            DataName::FashionMnist => known::fashion_mnist(),
            DataName::Cifar10 => known::cifar_10(),
            DataName::Synthetic => return Ok(digits(synthetic::TRAIN, synthetic::TEST)),
            DataName::Files(format, path) => {
                let parts = format.read(Request { path, size: self.size, on_event })?;
                return parts.join(self.name.clone(), path.display().to_string(), self.classes);
            }
        };
        let found = fetch::ensure(&set, &cache_dir()?.join(set.name), on_event)?;
        found.parts.join(self.name.clone(), found.source, Some(CLASSES as u32))
    }
}

/// As many synthetic digits as asked for: public data for whatever must spend no privacy.
pub fn digits(train: usize, test: usize) -> Dataset {
    synthetic::dataset(train, test)
}

/// Makes sure that the files of a data set are there and good, and says in which folder they are;
/// `None` for `synthetic`, which has none.
pub fn get(name: &DataName, on_event: &mut dyn FnMut(FetchEvent)) -> Result<Option<PathBuf>> {
    if *name == DataName::Synthetic {
        return Ok(None);
    }
    load(name, on_event)?;
    Ok(Some(match name {
        DataName::Files(_, path) => path.clone(),
        _ => cache_dir()?.join(String::from(name.clone())),
    }))
}

/// The data sets that have a name, and what the cache holds of them.
pub fn list() -> Vec<DataInfo> {
    let info = |set: Known| {
        let folder = cache_dir().ok().map(|cache| cache.join(set.name));
        let state = folder.as_deref().map(|folder| fetch::state(&set, folder));
        let state = state.unwrap_or(CacheState::Missing);
        let Known { name, description, train, test, .. } = set;
        DataInfo { name, description, train, test, state, folder }
    };
    let synthetic = DataInfo {
        name: "synthetic",
        description: "synthetic digits, 28×28 gray, no files needed",
        train: synthetic::TRAIN,
        test: synthetic::TEST,
        state: CacheState::BuiltIn,
        folder: None,
    };
    let known = [known::mnist(), known::fashion_mnist(), known::cifar_10()];
    known.into_iter().map(info).chain([synthetic]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_being_written_down() {
        let files = ["idx:some/folder", "cifar:a:b", "csv:table.csv"];
        for name in NAMES.into_iter().chain(files) {
            assert_eq!(String::from(DataName::try_from(name.to_string()).unwrap()), name);
        }
        for name in ["MNIST", "", "idx:", "idx", "xml:a"] {
            let error = DataName::try_from(name.to_string()).unwrap_err();
            assert!(
                error.starts_with(&format!("unknown data set `{name}`: use mnist, ")),
                "{error}"
            );
        }
    }
}
