//! Plots of classes and devices.

use lapa::files::Folder;
use lapa::model::Confusion;
use lapa::observe::{DeviceAccuracy, OneDevice};

use super::*;

/// Classes of 100 samples, of which some are taken for the next class.
fn matrix(classes: usize) -> Confusion {
    let row = |class: usize| {
        let mut row = vec![0; classes];
        let wrong = (class * 7 % 40) as u32;
        row[class] = 100 - wrong;
        row[(class + 1) % classes] += wrong;
        row
    };
    Confusion::try_from((0..classes).map(row).collect::<Vec<_>>()).unwrap()
}

fn devices(count: u32) -> DeviceAccuracy {
    let one = |device: u32| OneDevice {
        device,
        samples: 60,
        accuracy: f64::from(1 + device * 7 % count) / f64::from(count),
    };
    DeviceAccuracy::of((0..count).map(one).collect()).unwrap()
}

fn svg(files: &[PathBuf], name: &str) -> String {
    let file = files.iter().find(|path| path.ends_with(format!("{name}.svg"))).unwrap();
    fs::read_to_string(file).unwrap()
}

#[test]
fn few_classes_have_their_shares_in_the_cells() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let files = plot_classes(&matrix(10), &folder).unwrap();
    assert_eq!(files.len(), 4);
    let map = svg(&files, "confusion");
    // Class 5 has 35 wrong samples, class 0 none.
    for text in ["Class", "Taken for", "right", "wrong", "35", "65", "100", "9"] {
        assert!(map.contains(&format!(">{text}</text>")), "{text} is missing");
    }
    let mut page = crate::page::Page::new("Classes");
    page.figure(&map, "Confusion");
    page.figure(&svg(&files, "classes"), "Classes");
    page.finish();
    let (_, _, pixels) = pixels(&dir.path().join("confusion.png"));
    // A class that is all right, and 35 % wrong: 14 shades of 24.
    assert!(pixels.contains(&[0, 114, 178]) && pixels.contains(&[221, 153, 112]));
}

#[test]
fn many_classes_and_devices_take_no_more_room() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let map = svg(&plot_classes(&matrix(256), &folder).unwrap(), "confusion");
    assert!(map.len() < 60_000, "{} bytes", map.len());
    assert!(map.contains(">240</text>") && !map.contains(">241</text>"));
    let few = svg(&plot_devices(&devices(30), &folder).unwrap(), "devices");
    assert!(few.contains(">Device</text>") && few.contains("100%"), "{few}");
    let many = svg(&plot_devices(&devices(5000), &folder).unwrap(), "devices");
    assert!(many.contains("the ten worst, the ten best") && many.len() < 30_000);
}

/// A model that is always wrong has a map, and no bars.
#[test]
fn nothing_right_leaves_no_bars() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let wrong = Confusion::try_from(vec![vec![0, 5], vec![7, 0]]).unwrap();
    assert_eq!(plot_classes(&wrong, &folder).unwrap().len(), 2);
}
