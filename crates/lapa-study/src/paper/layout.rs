//! Where the devices are (Section V-A).

use lapa::config::Places;
use lapa::radio::Links;
use lapa_report::plot::{Marker, Scatter};

use super::chapter::{Chapter, Drawing, Picture};
use super::noise_control::average;
use super::{Curve, DATA, PaperFigure, Seen, Settings, Verdict};

/// Device distribution in the simulation environment.
pub struct Layout;

/// Base station, devices and regions, with seed 0; none if there is no layout.
fn scatter() -> Option<Scatter> {
    let settings = Settings { seeds: 1, quick: false };
    let curve = average(DATA[0].0, super::noise_control::Switch::Sum);
    let experiment = curve.cells(settings).ok()?.swap_remove(0).experiment().clone();
    let links = Links::new(&experiment).ok()?;
    let base = links.base_station();
    let mut plot = Scatter::new("Device positions", "x (m)", "y (m)", "");
    if let Places::Regions(regions) = &experiment.radio.places {
        for (number, region) in ["I", "II"].iter().zip(regions) {
            plot = plot.rectangle(format!("Region {number}"), region.x, region.y);
        }
    }
    let places = (0..experiment.partition.scheme.devices()).map(|device| {
        let position = links.placement(device).position;
        [position.x.0, position.y.0]
    });
    Some(plot.group("device", "#1f77b4", Marker::Dot, places.collect::<Vec<_>>()).group(
        "base station",
        "#d62728",
        Marker::Triangle,
        vec![[base.x.0, base.y.0]],
    ))
}

impl PaperFigure for Layout {
    fn name(&self) -> &'static str {
        "layout"
    }

    fn curves(&self) -> Vec<Curve> {
        Vec::new()
    }

    fn chapter(&self, _: &Seen) -> Chapter {
        let picture = |scatter| Picture {
            name: "layout".into(),
            caption: "Two regions at distances of 40 to 70 m: path loss alone makes a difference \
                      of up to 9 dB between devices."
                .into(),
            drawing: Drawing::Scatter(scatter),
        };
        Chapter {
            title: "Device layout".into(),
            text: "7 of 15 devices in Region I and 8 in Region II, placed at random; seed 0."
                .into(),
            pictures: scatter().map(picture).into_iter().collect(),
            tables: Vec::new(),
        }
    }

    fn judge(&self, _: &Seen) -> Vec<Verdict> {
        Vec::new()
    }
}
