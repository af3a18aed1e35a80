//! Plots as SVG text.

use std::path::Path;

use kuva::backend::svg::SvgBackend;
use kuva::render::render::Scene;

/// Draws an SVG: the same bytes for the same plot and file name, and free to be scaled.
pub(super) fn svg(scene: &Scene, stem: &Path) -> String {
    let size = format!("<svg viewBox=\"0 0 {} {}\" ", scene.width, scene.height);
    let svg = SvgBackend::new().with_pretty(true).render_scene(scene).replacen("<svg ", &size, 1);
    let name = stem.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    renumber_clips(&svg, &name)
}

/// The drawing library numbers its clip paths through the life of the process. Here they count from
/// 0 in each plot and carry its name, so that several plots can be part of one page.
fn renumber_clips(svg: &str, name: &str) -> String {
    let mut parts = svg.split("kuva-clip-");
    let mut renumbered = parts.next().unwrap_or_default().to_owned();
    let mut seen = Vec::new();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        let index = seen.iter().position(|&s| s == number).unwrap_or_else(|| {
            seen.push(number);
            seen.len() - 1
        });
        renumbered += &format!("{name}-clip-{index}{rest}");
    }
    renumbered
}

#[cfg(test)]
mod tests {
    use super::renumber_clips;

    #[test]
    fn clips_count_from_zero_in_order_of_appearance() {
        let svg = r##"<a id="kuva-clip-31"/><b id="kuva-clip-4"/><c d="url(#kuva-clip-31)"/>"##;
        let own = r##"<a id="p-clip-0"/><b id="p-clip-1"/><c d="url(#p-clip-0)"/>"##;
        assert_eq!(renumber_clips(svg, "p"), own);
    }
}
