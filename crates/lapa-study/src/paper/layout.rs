//! Positions of the devices (Section V-A).

use lapa::config::Places;
use lapa::radio::Links;
use lapa_report::plot::{Marker, Scatter};

use super::chapter::{Chapter, Drawing};
use super::noise_control::average;
use super::{DATA, Evidence};

/// Base station, devices and regions, with the first seed, if there is a layout.
fn scatter(evidence: &Evidence) -> Option<Scatter> {
    let cells = average(DATA[0].0).cells(evidence.settings).ok()?;
    let experiment = cells.first()?.experiment().clone();
    let links = Links::new(experiment.setting()).ok()?;
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
    let plot = plot.group("device", "#1f77b4", Marker::Dot, places);
    Some(plot.group("base station", "#d62728", Marker::Triangle, [[base.x.0, base.y.0]]))
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let chapter = Chapter::new(
        "Device layout",
        "7 of 15 devices in Region I and 8 in Region II, placed at random; first seed.",
    );
    let Some(scatter) = scatter(evidence) else { return chapter };
    chapter.picture(
        "layout",
        "Two regions at distances of 40 to 70 m: path loss alone makes a difference of up to 9 dB \
         between devices.",
        Drawing::Scatter(scatter),
    )
}
