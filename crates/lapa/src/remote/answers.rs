//! Cached answers of a device on the disk: the same question gets the same answer, for nothing.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{RemoteError, Result};
use crate::atomic::write_bytes;
use crate::files::{self, Folder};
use crate::run::RunError;

/// A question, as it is told from others.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub run: &'a str,
    pub round: u32,
    /// The request: "train", "privatize" or "histogram".
    pub what: &'static str,
    pub cost: f64,
    /// The model, if it is part of the question.
    pub values: &'a [f32],
}

impl Question<'_> {
    fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for text in [self.run, self.what] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        hash.update(self.round.to_le_bytes());
        hash.update(self.cost.to_bits().to_le_bytes());
        for value in self.values {
            hash.update(value.to_bits().to_le_bytes());
        }
        files::hex(hash.finalize())
    }
}

/// The first line of the file; the values follow.
#[derive(Serialize, Deserialize)]
struct Head {
    question: String,
    round: u32,
    sigma: f64,
}

/// The cached answer of a run.
pub(super) enum Cached<T> {
    /// Nothing, or an answer to an earlier round.
    Nothing,
    /// The answer to this very question, and the noise on it.
    Same(Vec<T>, f64),
    /// An answer to another question for this round, or to a later round.
    Other {
        /// That round.
        round: u32,
    },
}

/// The last answers of a device, one per run, in a folder beside its ledger.
pub(super) struct Answers {
    folder: PathBuf,
    device: u32,
}

/// Numbers as bytes, the same on every machine.
pub(super) trait Number: Copy {
    fn put(self, bytes: &mut Vec<u8>);
    fn all(bytes: &[u8]) -> Option<Vec<Self>>;
}

macro_rules! number {
    ($float:ty) => {
        impl Number for $float {
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn all(bytes: &[u8]) -> Option<Vec<Self>> {
                let (values, rest) = bytes.as_chunks();
                rest.is_empty().then(|| values.iter().map(|&b| Self::from_le_bytes(b)).collect())
            }
        }
    };
}

number!(f32);
number!(f64);

impl Answers {
    pub fn beside(ledger: &Path, device: u32) -> Self {
        let mut folder = ledger.as_os_str().to_owned();
        folder.push("-answers");
        Self { folder: folder.into(), device }
    }

    /// The folder, which is made with the first question and thus after the ledger.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// No other process answers for the device while this lives.
    pub fn lock(&self) -> Result<File> {
        let folder = Folder::create(&self.folder);
        let folder = folder.map_err(RunError::io("create", &self.folder))?;
        let name = format!("{}.lock", self.device);
        let path = self.folder.join(&name);
        let file = folder.lock_file(name).map_err(RunError::io("open", &path))?;
        file.lock().map_err(RunError::io("lock", &path))?;
        Ok(file)
    }

    /// The stored answer to a question.
    pub fn find<T: Number>(&self, question: &Question<'_>) -> Result<Cached<T>> {
        let path = self.path(question.run);
        let bytes = match files::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Cached::Nothing),
            Err(error) => return Err(RunError::io("read", &path)(error).into()),
        };
        let damaged = |what: &str| RemoteError::damaged(&path)(what);
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let end = end.ok_or_else(|| damaged("it has no first line"))?;
        let head: Head =
            serde_json::from_slice(&bytes[..end]).map_err(RemoteError::damaged(&path))?;
        if head.round < question.round {
            return Ok(Cached::Nothing);
        }
        if head.question != question.hash() {
            return Ok(Cached::Other { round: head.round });
        }
        let values = T::all(&bytes[end + 1..]).ok_or_else(|| damaged("a value is cut off"))?;
        Ok(Cached::Same(values, head.sigma))
    }

    /// Keeps an answer in place of the run's last one.
    pub fn keep<T: Number>(&self, question: &Question<'_>, values: &[T], sigma: f64) -> Result<()> {
        let path = self.path(question.run);
        let head = Head { question: question.hash(), round: question.round, sigma };
        let mut bytes = serde_json::to_vec(&head).map_err(RemoteError::damaged(&path))?;
        bytes.push(b'\n');
        values.iter().for_each(|value| value.put(&mut bytes));
        Ok(write_bytes(&path, bytes).map_err(RunError::io("write", &path))?)
    }

    /// One file per run. A run's name is anything, so its hash is used.
    fn path(&self, run: &str) -> PathBuf {
        let name = &files::hex(Sha256::digest(run))[..16];
        self.folder.join(format!("{}-{name}", self.device))
    }
}
