//! Evidence in a run folder besides its ledger: its data, and its releases.

use std::path::{Path, PathBuf};

use lapa_privacy::ledger::Ledger;
use serde::{Deserialize, Serialize};

use super::{LEDGER, METRICS, Manifest, Result, RunError};
use crate::config::{Entropy, Experiment};
use crate::data::{FileHash, Origin};
use crate::federation::Federation;
use crate::observe::{ObserveError, RoundRecord, for_each_line};

/// The data set in a [`Manifest`](super::Manifest).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestData {
    /// Name in the configuration.
    pub name: String,
    /// Place where it was found.
    pub source: String,
    /// Files and their SHA-256, in a seeded simulation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileHash>,
    /// The same with the operating system's entropy: a plain hash would let anyone who sees it test
    /// a guess at the records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keyed_files: Vec<KeyedHash>,
}

/// A file and its digest under the key of the run's ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedHash {
    /// File name without folder.
    pub file: String,
    /// HMAC-SHA256 of the file's SHA-256, lower-case hexadecimal.
    pub hmac_sha256: String,
}

impl ManifestData {
    /// The data of a run that records in `ledger`.
    pub(super) fn new(data: &Origin, entropy: Entropy, ledger: &Ledger) -> Result<Self> {
        let Origin { name, source, hashes } = data;
        let (mut files, mut keyed_files) = (Vec::new(), Vec::new());
        match entropy {
            Entropy::Seed => files.clone_from(hashes),
            Entropy::Os => {
                for FileHash { file, sha256 } in hashes {
                    let hmac_sha256 = ledger.keyed_digest(sha256.as_bytes())?;
                    keyed_files.push(KeyedHash { file: file.clone(), hmac_sha256 });
                }
            }
        }
        Ok(Self { name: name.clone().into(), source: source.clone(), files, keyed_files })
    }
}

impl Manifest {
    /// Refuses data other than the run in `folder` began with. `experiment` is the folder's own.
    pub fn expect_data(&self, folder: &Path, experiment: &Experiment, data: &Origin) -> Result<()> {
        let same = match experiment.run.entropy {
            Entropy::Seed => self.data.files == data.hashes,
            Entropy::Os => {
                let path = ledger_of(folder, experiment)?;
                let ledger = Ledger::open_read_only(&path)?;
                let now = ManifestData::new(data, Entropy::Os, &ledger)?;
                self.data.keyed_files == now.keyed_files
            }
        };
        if same { Ok(()) } else { Err(RunError::OtherData(folder.into())) }
    }
}

/// The ledger of the run in `folder`, which must be there.
pub(super) fn ledger_of(folder: &Path, experiment: &Experiment) -> Result<PathBuf> {
    let ledger = experiment.run.ledger.clone().unwrap_or_else(|| folder.join(LEDGER));
    if ledger.is_file() {
        return Ok(ledger);
    }
    Err(RunError::NoLedger { path: folder.into(), ledger })
}

/// Refuses a ledger that does not have what metrics.jsonl shows: a copy of an earlier day, put back
/// after releases that it does not know.
pub(super) fn refuse_forgotten(folder: &Path, federation: &mut Federation) -> Result<()> {
    let metrics = folder.join(METRICS);
    let (round, spent) = shown(&metrics)?;
    let recorded = federation.books.last_recorded()?;
    let (reading, _) = federation.books.ledger_reading()?;
    let what = if round > recorded {
        format!("a release in round {round}, and the ledger ends with round {recorded}")
    } else if spent * (1.0 - LAST_DIGITS) > reading {
        format!("that epsilon {spent} was spent, and the ledger knows of {reading}")
    } else {
        return Ok(());
    };
    let ledger = federation.books.ledger().path().to_path_buf();
    Err(RunError::Forgotten { metrics, ledger, what })
}

/// The ledger adds in another order than a run, which may move the last digits.
const LAST_DIGITS: f64 = 1e-9;

/// The last round in which something was released, and the most that a device had spent, by the
/// lines of metrics.jsonl. After a crash the last lines may be torn, and count for nothing.
fn shown(path: &Path) -> Result<(u32, f64)> {
    let (mut last, mut most) = (0, 0.0f64);
    let read = for_each_line(path, |record: RoundRecord| {
        if let Some(spent) = record.devices.summary().spent_provable {
            last = record.round;
            most = most.max(spent.max);
        }
        Ok::<(), ObserveError>(())
    });
    match read {
        Ok(()) | Err(ObserveError::Line { .. } | ObserveError::Impossible { .. }) => {
            Ok((last, most))
        }
        Err(error) => Err(error.into()),
    }
}
