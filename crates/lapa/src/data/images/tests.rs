use super::*;
use crate::data::{Data, DataName, Dataset};
use crate::shape::Shape;

fn load(folder: &Path, size: Option<[u32; 2]>) -> Result<Dataset, String> {
    let name = DataName::try_from(format!("images:{}", folder.display())).unwrap();
    let data = Data { size, ..Data::named(name) };
    data.load(&mut |_| {}).map_err(|error| error.to_string())
}

/// Writes a PNG of two rows of two pixels, all of the same value; three values for color.
fn write(folder: &Path, name: &str, pixel: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut encoder = png::Encoder::new(fs::File::create(path).unwrap(), 2, 2);
    encoder.set_color(if pixel.len() == 1 {
        png::ColorType::Grayscale
    } else {
        png::ColorType::Rgb
    });
    encoder.write_header().unwrap().write_image_data(&pixel.repeat(4)).unwrap();
}

fn pets() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("train/cat/b", 2),
        ("train/cat/a", 1),
        ("train/dog/a", 3),
        ("test/cat/x", 4),
        ("test/dog/y", 5),
    ] {
        write(place.path(), &format!("{name}.png"), &[value]);
    }
    place
}

#[test]
fn classes_are_the_sorted_folders_of_test() {
    let place = pets();
    fs::write(place.path().join("train/.hidden"), "").unwrap();
    fs::create_dir(place.path().join("test/eel")).unwrap();
    let mut events = Vec::new();
    let name = DataName::try_from(format!("images:{}", place.path().display())).unwrap();
    let data = Data::named(name).load(&mut |event| events.push(event)).unwrap();
    assert_eq!((data.train.shape, data.classes), (Shape::new(1, 2, 2), 3));
    assert_eq!((&data.train.labels[..], &data.test.labels[..]), (&[0, 0, 1][..], &[0, 1][..]));
    assert_eq!(data.train.values.bytes().unwrap(), [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    let Some(FetchEvent::Progress { file, bytes, total }) = events.last() else { panic!() };
    assert!(file == "train" && bytes == total, "{events:?}");
    let large = load(place.path(), Some([3, 5])).unwrap();
    assert_eq!(large.test.shape, Shape::new(1, 3, 5));
    assert_eq!(large.test.values.bytes().unwrap()[..15], [4; 15]);
    // Another picture, or another class for it, is another data set.
    write(place.path(), "train/cat/b.png", &[9]);
    assert_ne!(load(place.path(), None).unwrap().hashes[0], data.hashes[0]);
    assert_eq!(load(place.path(), None).unwrap().hashes[1], data.hashes[1]);
}

#[test]
fn one_test_picture_in_color_makes_all_samples_so() {
    let place = pets();
    write(place.path(), "train/dog/a.png", &[1, 2, 3]);
    let error = load(place.path(), None).unwrap_err();
    assert!(error.contains("train/dog/a.png: in color; expected gray"), "{error}");
    write(place.path(), "test/cat/x.png", &[7, 8, 9]);
    let data = load(place.path(), None).unwrap();
    assert_eq!(data.train.shape, Shape::new(3, 2, 2));
    assert_eq!(data.test.values.bytes().unwrap()[..12], [7, 7, 7, 7, 8, 8, 8, 8, 9, 9, 9, 9]);
    assert_eq!(data.test.values.bytes().unwrap()[12..], [5; 12]);
}

#[test]
fn what_does_not_fit_is_named() {
    let empty = tempfile::tempdir().unwrap();
    assert!(load(empty.path(), None).unwrap_err().contains("test: cannot read the folder"));
    type Change = fn(&Path);
    let changes: [(Change, &str); 5] = [
        (|place| fs::remove_dir_all(place.join("test/dog")).unwrap(), "test: 1 folders of classes"),
        (
            |place| write(place, "train/cow/a.png", &[1]),
            "train/cow: not among the folders of test: cat, dog",
        ),
        (
            |place| fs::write(place.join("train/cat/a.gif"), "").unwrap(),
            "a.gif: expected a name that ends in",
        ),
        (
            |place| fs::write(place.join("train/dog/a.png"), "x").unwrap(),
            "train/dog/a.png: no PNG and no JPEG",
        ),
        (
            |place| {
                let bytes = fs::read(place.join("test/cat/x.png")).unwrap();
                let mut encoder = png::Encoder::new(
                    fs::File::create(place.join("train/cat/a.png")).unwrap(),
                    3,
                    1,
                );
                encoder.set_color(png::ColorType::Grayscale);
                encoder.write_header().unwrap().write_image_data(&bytes[..3]).unwrap();
            },
            "train/cat/a.png: a picture of 1×3; expected 2×2 as the first one",
        ),
    ];
    for (change, expected) in changes {
        let place = pets();
        change(place.path());
        let error = load(place.path(), None).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
