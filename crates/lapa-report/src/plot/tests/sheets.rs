//! Plots of several parts: panels, forests, layouts.

use super::*;
use lapa::model::Shape;

fn figure(title: &str, names: &[&str]) -> Figure {
    let curve = |top: f64| (1..40).map(move |x| (f64::from(x), top * f64::from(x) / 40.0));
    let lines = names.iter().enumerate();
    lines.fold(Figure::new(title, "Round", "Accuracy"), |figure, (i, name)| {
        figure.line(Series::new(*name, curve(1.0 + i as f64)))
    })
}

/// The texts of an SVG in order, and that all its elements are closed.
fn texts(svg: &str) -> Vec<String> {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1).filter_map(|part| part.split('>').next()) {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None if tag.ends_with('/') || tag.starts_with(['?', '!']) => {}
            None => open.extend(tag.split_whitespace().next()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let ends = svg.split("</text>").map(|part| part.rsplit('>').next().unwrap().to_owned());
    ends.take(svg.matches("</text>").count()).collect()
}

/// No dark pixel touches the edge of a PNG, where text would be cut.
fn assert_free_edge(png: &Path) {
    let (width, height, pixels) = pixels(png);
    let edge = |i: usize| {
        let (x, y) = (i % width, i / width);
        x.min(width - 1 - x) < 4 || y.min(height - 1 - y) < 4
    };
    let dark = (0..pixels.len()).filter(|&i| edge(i) && pixels[i].iter().all(|&c| c < 100));
    assert_eq!(dark.count(), 0, "{}", png.display());
}

/// Saves twice, with another plot in between, and gives the SVG.
fn saved(save: impl Fn(&Path) -> Result<[PathBuf; 2], PlotError>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let first = save(&dir.path().join("p")).unwrap();
    let bytes = first.each_ref().map(|path| fs::read(path).unwrap());
    banded().save(&dir.path().join("other")).unwrap();
    let second = save(&dir.path().join("p")).unwrap();
    assert_eq!(bytes, second.each_ref().map(|path| fs::read(path).unwrap()));
    assert_free_edge(&first[1]);
    String::from_utf8(bytes[0].clone()).unwrap()
}

#[test]
fn panels_share_colors_and_a_legend() {
    let svg = saved(|stem| {
        let panels = Panels::new("All & more").columns(2).panel(figure("one", &["a", "b"]));
        panels.panel(figure("two", &["b", "c"])).panel(figure("three", &["c"])).save(stem)
    });
    let texts = texts(&svg);
    for text in ["All &amp; more", "one", "two", "three", "a", "b", "c"] {
        assert_eq!(texts.iter().filter(|t| *t == text).count(), 1, "{text}");
    }
    assert_eq!(svg.matches("<clipPath").count(), 3);
    // A curve per panel that has the name, and the key in the legend.
    for (color, times) in [("#0072B2", 2), ("#D55E00", 3), ("#009E73", 3)] {
        let color = format!(r#"stroke="{}""#, color.to_lowercase());
        assert_eq!(svg.to_lowercase().matches(&color).count(), times, "{color}");
    }
    // The first panel has the same label below it, the others have none there.
    assert_eq!(texts.iter().filter(|t| *t == "Round").count(), 2);
}

#[test]
fn panels_of_a_row_can_share_the_vertical_axis() {
    let count = |share: bool, text: &str| {
        let svg = saved(|stem| {
            let panels = Panels::new("").columns(2);
            let panels = if share { panels.share_y() } else { panels };
            panels.panel(figure("", &["a"])).panel(figure("", &["a", "b", "c"])).save(stem)
        });
        texts(&svg).iter().filter(|t| *t == text).count()
    };
    assert_eq!([false, true].map(|share| count(share, "Accuracy")), [2, 1]);
    // Up to 1 in the first panel, up to 3 in the second one.
    assert_eq!([false, true].map(|share| count(share, "0.2")), [1, 0]);
    assert_eq!([false, true].map(|share| count(share, "2.5")), [1, 1]);
}

#[test]
fn panels_without_points_are_refused() {
    let stem = Path::new("p");
    let none = Panels::new("").save(stem);
    let one = Panels::new("").panel(figure("", &["a"])).panel(figure("", &[])).save(stem);
    for result in [none, one] {
        assert!(matches!(result, Err(PlotError::NoPoints { .. })), "{result:?}");
    }
}

#[test]
fn marks_are_labeled_and_on_the_axis() {
    let svg = saved(|stem| {
        let figure = figure("t", &["a"]).mark("T_th", 60.0).mark("none", f64::NAN);
        figure.save(stem)
    });
    let texts = texts(&svg);
    assert!(texts.contains(&"T_th".into()) && texts.contains(&"60".into()), "{texts:?}");
    assert!(!texts.contains(&"none".into()));
    assert_eq!(svg.matches("stroke-dasharray").count(), 1);
}

#[test]
fn curves_can_have_dashes() {
    let curve = || Series::with_band("", (1..=3).map(|x| (f64::from(x), 1.0, [0.5, 2.0])));
    let solid = saved(|stem| Figure::new("", "", "").line(curve()).save(stem));
    let dashed = saved(|stem| Figure::new("", "", "").line(curve().dashed()).save(stem));
    assert_eq!(solid.matches("stroke-dasharray").count(), 0);
    assert_eq!(dashed.matches("stroke-dasharray").count(), 1);
}

#[test]
fn a_forest_has_a_point_per_row_and_its_references() {
    let nothing = [f64::NEG_INFINITY, f64::INFINITY];
    let forest = Forest::new("Differences", "points").reference("paper");
    let forest = forest.group("first").row("a", 1.0, [0.5, 1.5], Some(1.2));
    let forest =
        forest.group("second").row("b", -1.0, nothing, None).row("c", f64::NAN, nothing, None);
    let svg = saved(|stem| forest.save(stem));
    let texts = texts(&svg);
    for text in ["Differences", "points", "first", "second", "paper", "a", "b", "c", "0.0"] {
        assert!(texts.contains(&text.into()), "{text}: {texts:?}");
    }
    // Two means and two keys.
    assert_eq!(svg.matches("<circle").count(), 4);
    let empty = Forest::new("", "").row("a", f64::NAN, nothing, Some(1.0)).save(Path::new("p"));
    assert!(matches!(empty, Err(PlotError::NoPoints { .. })), "{empty:?}");
}

#[test]
fn a_layout_has_labeled_rectangles() {
    let svg = saved(|stem| {
        let plot = Scatter::new("", "x", "y", "").rectangle("near", [0.0, 9.0], [0.0, 5.0]);
        plot.group("devices", "#0072B2", Marker::Dot, [[1.0, 1.0]]).save(stem)
    });
    assert!(texts(&svg).contains(&"near".into()));
}

/// Against the pixels of the letters.
#[test]
fn text_is_not_wider_than_measured() {
    let dir = tempfile::tempdir().unwrap();
    for text in ["Fashion-MNIST, 80/10/10", "OQGDN wmMW%@", "0123456789 = ×+≤→", "pqbd εσ sucky"]
    {
        let mut scene = canvas::sheet(400.0, 40.0);
        scene.add(canvas::text(
            10.0,
            25.0,
            text,
            16,
            kuva::render::render::TextAnchor::Start,
            false,
        ));
        let [_, png] = save(scene, &dir.path().join("p")).unwrap();
        let (width, _, pixels) = pixels(&png);
        let dark = (0..pixels.len()).filter(|&i| pixels[i].iter().all(|&c| c < 150));
        let seen = dark.map(|i| i % width).max().unwrap() as f64 / 2.0 - 10.0;
        let measured = canvas::text_width(text, 16);
        assert!((0.8 * measured..measured + 1.0).contains(&seen), "{text}: {seen} of {measured}");
    }
}

fn pictures() -> Pictures {
    let picture = |f: &dyn Fn(usize) -> f32| Picture {
        pixels: (0..784).map(f).collect(),
        caption: "21.3 dB".into(),
    };
    let ramp = picture(&|i| (i % 28) as f32 / 27.0);
    // As many different neighbors as an image can have, values outside and no number among them.
    let noise = picture(&|i| [0.0, 0.3, f32::NAN, 0.7, 2.0, -1.0, 1.0][i * i % 7]);
    Pictures::new("Digits", Shape::new(1, 28, 28), ["original".to_string(), "found".to_string()])
        .row("label 7", vec![ramp.clone(), noise])
        .row("label 1", vec![ramp])
}

#[test]
fn pictures_are_small_paths_with_labels() {
    let dir = tempfile::tempdir().unwrap();
    let [svg, png] = pictures().save(&dir.path().join("p")).unwrap();
    let svg = fs::read_to_string(svg).unwrap();
    assert_eq!(svg, pictures().svg("p").unwrap());
    for text in ["Digits", "original", "found", "label 7", "label 1", "21.3 dB"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text} is missing");
    }
    assert!(!svg.contains("<image") && svg.len() < 3 * 15_000, "{} bytes", svg.len());
    let mut page = crate::page::Page::new("Pictures");
    page.figure(&svg, "Two rows");
    page.finish();
    let (_, _, pixels) = pixels(&png);
    // The ramp ends with black, and has shades in between.
    assert!(pixels.contains(&[0; 3]) && pixels.contains(&[122; 3]));
    let empty = Pictures::new("", Shape::new(1, 28, 28), []).save(&dir.path().join("e"));
    assert!(matches!(empty, Err(PlotError::NoPoints { .. })));
}

#[test]
fn tiles_stand_where_their_rows_and_columns_meet() {
    let tile = |tone, text: &str| Some(Tile { tone, text: text.into() });
    let columns = ["σ₀ = 0.05: LAPA over ARB", "σ₀ = 0.2: LAPA over ARB", "", "MNIST: a & b"];
    let tiles = Tiles::new("Claims", columns.map(str::to_owned))
        .row(
            "main",
            vec![
                tile(Tone::For, "+1.5"),
                tile(Tone::MaybeFor, "+0.2"),
                None,
                tile(Tone::Unknown, ""),
            ],
        )
        .row("a reading with a long name", vec![None, tile(Tone::MaybeAgainst, "-0.3"), None, None])
        .row("small", vec![tile(Tone::Against, "-12.7"), None, None, tile(Tone::For, "+100.25")])
        .legend(Tone::For, "shown")
        .legend(Tone::Against, "contradicted");
    let svg = saved(|stem| tiles.save(stem));
    let texts = texts(&svg);
    for text in ["Claims", "main", "+1.5", "-12.7", "MNIST: a &amp; b", "contradicted"] {
        assert!(texts.iter().any(|t| t == text), "{text}: {texts:?}");
    }
    // Two tiles and the one of the legend.
    assert_eq!(svg.matches("#0072b2").count(), 2 * 3, "fill and border of each");
    let empty = Tiles::new("", columns.map(str::to_owned)).row("main", vec![None; 4]);
    let place = tempfile::tempdir().unwrap();
    assert!(matches!(empty.save(&place.path().join("p")), Err(PlotError::NoPoints { .. })));
}
