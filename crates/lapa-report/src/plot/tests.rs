//! Plots as files: what must be in them, and what must not go wrong.

mod accuracy;
mod sheets;

use std::fs;
use std::io::Cursor;
use std::path::Path;

use super::*;
use lapa::config::{Experiment, Override};
use lapa::observe::{DeviceRecords, Quantiles, RoundRecord};
use lapa::radio::{Link, Links};

fn record(round: u32, accuracy: Option<f64>, loss: Option<f64>) -> RoundRecord {
    RoundRecord {
        round,
        accuracy,
        loss,
        pid_error: None,
        epsilon_round: None,
        noise_mode: None,
        under_noised: 0,
        under_noising: None,
        seconds: 1.0,
        outages: 0,
        airtime_s: 0.0,
        energy_j: 0.0,
        uplink_bytes: 0,
        downlink_bytes: 0,
        devices: DeviceRecords::List(vec![]),
    }
}

fn banded() -> Figure {
    let curve = |slope: f64| {
        (1..50).map(move |x| {
            let (x, y) = (f64::from(x), slope * f64::from(x));
            (x, y, [y - 0.1, y + 0.1])
        })
    };
    Figure::new("Two <seeds> & $5 more", "Round", "Share")
        .percent()
        .line(Series::with_band("first", curve(0.01)))
        .line(Series::with_band("second", curve(0.02)))
}

/// Width, height and pixels of a PNG.
fn pixels(path: &Path) -> (usize, usize, Vec<[u8; 3]>) {
    let bytes = fs::read(path).unwrap();
    let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width as usize, info.height as usize, pixels.as_chunks().0.to_vec())
}

#[test]
fn the_same_plot_is_the_same_bytes() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = banded().save(&a.path().join("eps0.5")).unwrap();
    assert_eq!(first, ["eps0.5.svg", "eps0.5.png"].map(|name| a.path().join(name)));
    // Another plot in between, which must not leave a trace.
    plot_partition(&[vec![1, 2]], &b.path().join("other")).unwrap();
    let second = banded().save(&b.path().join("eps0.5")).unwrap();
    for (one, two) in first.iter().zip(&second) {
        assert_eq!(fs::read(one).unwrap(), fs::read(two).unwrap());
    }
    assert_eq!(fs::read_dir(a.path()).unwrap().count(), 2);
    assert_eq!(fs::read_to_string(&first[0]).unwrap(), banded().svg("eps0.5").unwrap());
}

#[test]
fn the_svg_has_all_text_in_a_font_that_any_viewer_has() {
    let dir = tempfile::tempdir().unwrap();
    let [svg, _] = banded().save(&dir.path().join("p")).unwrap();
    let svg = fs::read_to_string(svg).unwrap();
    for text in ["Two &lt;seeds&gt; &amp; $5 more", "Round", "Share", "first", "second", "100%"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text} is missing");
    }
    assert_eq!(svg.matches("font-family").count(), 1);
    assert!(svg.contains(r#", sans-serif" fill"#) && !svg.contains("@font-face"));
    assert!(svg.contains(r#"viewBox="0 0 720 450""#));
}

/// With a font of the system missing, there would be no dark pixel where a label belongs.
#[test]
fn the_png_is_large_and_has_text() {
    let dir = tempfile::tempdir().unwrap();
    let [_, png] = banded().save(&dir.path().join("p")).unwrap();
    let (width, height, pixels) = pixels(&png);
    assert_eq!((width, height), (1440, 900));
    let dark = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
        let places = rows.flat_map(|y| columns.clone().map(move |x| y * width + x));
        places.filter(|&i| pixels[i].iter().all(|&c| c < 100)).count()
    };
    assert!(dark(20..80, 300..1140) > 200, "title");
    assert!(dark(850..900, 300..1140) > 100, "label below");
    assert!(dark(200..700, 0..50) > 100, "label at the left");
    assert_eq!(dark(0..10, 0..width) + dark(895..900, 0..width), 0, "clipped text");
    assert_eq!(dark(0..height, 0..4) + dark(0..height, width - 4..width), 0, "clipped text");
}

#[test]
fn a_run_has_curves_of_its_evaluated_rounds() {
    let dir = tempfile::tempdir().unwrap();
    let names = |records: &[RoundRecord]| -> Vec<String> {
        let files = plot_run(records, None, &Folder::open(dir.path()).unwrap()).unwrap();
        files.iter().map(|f| f.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert!(names(&[]).is_empty());
    assert!(names(&[record(1, None, None)]).is_empty());
    let both = ["accuracy.svg", "accuracy.png", "loss.svg", "loss.png"];
    assert_eq!(names(&[record(1, Some(0.0), Some(0.0)), record(2, None, None)]), both);
    assert_eq!(names(&[record(7, Some(1.0), Some(f64::INFINITY))]), both[..2]);

    names(&[record(1, None, None), record(5, Some(0.5), None), record(10, Some(0.9), None)]);
    let svg = fs::read_to_string(dir.path().join("accuracy.svg")).unwrap();
    assert_eq!(svg.matches("<circle").count(), 2);
    assert!(svg.contains(">50%</text>") && svg.contains(">10</text>"), "{svg}");
}

#[test]
fn points_that_cannot_be_drawn_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let stem = dir.path().join("p");
    let odd = [(1.0, f64::NAN), (f64::INFINITY, 1.0), (0.0, 1.0), (1.0, -1.0), (2.0, 3.0)];
    let figure = Figure::new("", "", "").log_x().log_y().line(Series::new("", odd));
    let [svg, _] = figure.save(&stem).unwrap();
    assert_eq!(fs::read_to_string(svg).unwrap().matches("<circle").count(), 1);

    let nothing = Figure::new("", "", "").log_y().line(Series::new("", [(1.0, 0.0)]));
    let error = nothing.save(&stem).unwrap_err();
    assert!(matches!(error, PlotError::NoPoints { .. }), "{error}");
    assert!(matches!(plot_partition(&[vec![0]], &stem), Err(PlotError::NoPoints { .. })));

    let infinite = [(1.0, 0.5, [f64::NEG_INFINITY, f64::INFINITY]), (2.0, 0.5, [f64::NAN, 0.6])];
    Figure::new("", "", "").line(Series::with_band("", infinite)).save(&stem).unwrap();
}

#[test]
fn extreme_values_can_be_drawn() {
    let dir = tempfile::tempdir().unwrap();
    for (i, y) in [1e-300, 1e300, 0.0, -1e12, 0.1 + 1e-17].into_iter().enumerate() {
        let figure = Figure::new("", "", "").line(Series::new("", [(1.0, y), (1e9, y * 1.5)]));
        figure.save(&dir.path().join(i.to_string())).unwrap();
    }
}

#[test]
fn a_partition_has_a_bar_per_device_and_a_part_per_label() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<Vec<u32>> = (0..100).map(|k| vec![k % 2, 3, 0, 1]).collect();
    let [svg, _] = plot_partition(&rows, &dir.path().join("partition")).unwrap();
    let svg = fs::read_to_string(svg).unwrap();
    // The background, the clip, and a key per label come on top of the 50·1 + 100·2 parts.
    assert_eq!(svg.matches("<rect").count(), 250 + 4 + 2);
    for device in 0..100 {
        let labeled = svg.contains(&format!(r#"middle">{device}</text>"#));
        assert_eq!(labeled, device % 5 == 0, "device {device}");
    }
}

#[test]
fn a_missing_folder_is_named() {
    let error = banded().save(Path::new("no/such/folder/p")).unwrap_err();
    assert!(error.to_string().contains("no/such/folder/p.svg"), "{error}");
}

fn experiment(flags: &[&str]) -> Experiment {
    let flags: Vec<_> = flags.iter().map(|flag| Override::parse(flag).unwrap()).collect();
    Experiment::from_toml("", "test", &flags).unwrap()
}

fn links(experiment: &Experiment) -> (Links, Vec<Link>) {
    let mut links = Links::new(experiment.setting()).unwrap();
    let devices: Vec<u32> = (0..experiment.partition.scheme.devices()).collect();
    let list = links.draw(1, &devices).unwrap();
    (links, list)
}

#[test]
fn links_are_drawn_at_their_places_in_the_color_of_their_error_rate() {
    let dir = tempfile::tempdir().unwrap();
    let experiment = experiment(&[]);
    let (places, list) = links(&experiment);
    let lapa::config::Places::Regions(regions) = &experiment.radio.places else { unreachable!() };
    let [svg, png] = plot_links(&places, &list, regions, &dir.path().join("link")).unwrap();
    assert_eq!(pixels(&png).0, 1440);
    let svg = fs::read_to_string(svg).unwrap();
    // A class has a key of its color besides its devices.
    for (color, above, most) in [
        ("#0072B2", -1.0, 1e-3),
        ("#009E73", 1e-3, 1e-2),
        ("#E69F00", 1e-2, 1e-1),
        ("#D55E00", 1e-1, 1.0),
    ] {
        let devices = list.iter().filter(|link| above < link.ser && link.ser <= most).count();
        let circle = |line: &&str| {
            line.contains("<circle") && line.to_lowercase().contains(&color.to_lowercase())
        };
        assert_eq!(svg.lines().filter(circle).count(), devices + 1, "{color}");
    }
    for text in ["≤ 0.001", "above 0.1", "base station", "x (m)", "y (m)", "Symbol error rate"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text} is missing");
    }
}

#[test]
fn of_very_many_links_some_are_drawn_and_the_title_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (places, list) =
        links(&experiment(&["partition.scheme=iid", "partition.iid.devices=5001"]));
    let [svg, _] = plot_links(&places, &list, &[], &dir.path().join("link")).unwrap();
    let svg = fs::read_to_string(svg).unwrap();
    assert_eq!(svg.matches("<circle").count(), 1667 + 4);
    assert!(svg.contains("(1667 of 5001 devices)"));
}

#[test]
fn places_of_any_extent_can_be_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let stem = dir.path().join("p");
    let places = |points: &[[f64; 2]]| {
        Scatter::new("", "", "", "").group("a", "#000000", Marker::Dot, points.to_vec()).save(&stem)
    };
    places(&[[0.0, 0.0]]).unwrap();
    places(&[[0.0, -1e9], [1e-9, 1e9]]).unwrap();
    places(&[[-5e6, 3.0], [f64::NAN, 0.0]]).unwrap();
    assert!(matches!(places(&[[f64::INFINITY, 0.0]]), Err(PlotError::NoPoints { .. })));
}

#[test]
fn a_sweep_has_its_thresholds_and_no_rate_is_too_small() {
    let dir = tempfile::tempdir().unwrap();
    let rates = |min, median, max| Quantiles { min, q25: min, median, q75: max, max };
    let points = [(0.1, rates(0.1, 0.2, 0.7)), (1.0, rates(0.0, 1e-300, 0.01))];
    let stem = dir.path().join("link-power");
    let [svg, _] = plot_sweep("Power", true, &points, &[1e-2, 1e-9], &stem).unwrap();
    let svg = fs::read_to_string(svg).unwrap();
    assert_eq!(svg.matches("<circle").count(), 2);
    assert!(svg.contains(">SER 0.01</text>") && !svg.contains("SER 0.000000001"));
    assert!(svg.contains(">1e-6</text>") && !svg.contains(">1e-7</text>"));
    plot_sweep("Power", false, &points[1..], &[], &stem).unwrap();
}

#[test]
fn a_level_is_on_the_axis_and_labeled() {
    let dir = tempfile::tempdir().unwrap();
    let figure = Figure::new("", "", "").line(Series::new("", [(1.0, 1.0), (2.0, 2.0)]));
    let [svg, _] =
        figure.level("limit", 9.0).level("none", f64::NAN).save(&dir.path().join("p")).unwrap();
    let svg = fs::read_to_string(svg).unwrap();
    assert!(
        svg.contains(">limit</text>") && svg.contains(">8</text>") && !svg.contains("none</text>")
    );
}
