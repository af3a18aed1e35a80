//! Archives that come out the same wherever they are made, and checksums.

use std::io;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// A file of an archive.
pub struct Entry {
    /// Path in the archive, with `/`.
    pub path: String,
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// A gzipped tar file of the entries in the order of their paths. All belong to root and have one
/// time, in seconds since 1970.
pub fn tar_gz(mut entries: Vec<Entry>, seconds: u64) -> io::Result<Vec<u8>> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    // The header of gzip has neither a name nor a time.
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for Entry { path, bytes, executable } in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(if executable { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(seconds);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, path, &bytes[..])?;
    }
    archive.into_inner()?.finish()
}

/// The SHA-256 of bytes in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn entry(path: &str, executable: bool) -> Entry {
        Entry { path: path.into(), bytes: path.into(), executable }
    }

    #[test]
    fn the_order_of_files_does_not_matter() {
        let one = tar_gz(vec![entry("a/lapa", true), entry("a/README", false)], 5).unwrap();
        let two = tar_gz(vec![entry("a/README", false), entry("a/lapa", true)], 5).unwrap();
        assert_eq!(one, two);
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&one[..]));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.mtime().unwrap(), 5);
            assert_eq!(entry.path().unwrap().to_str(), Some(text.as_str()));
            found.push((text, entry.header().mode().unwrap()));
        }
        assert_eq!(found, [("a/README".into(), 0o644), ("a/lapa".into(), 0o755)]);
    }

    #[test]
    fn sha256_is_that_of_fips_180() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }
}
