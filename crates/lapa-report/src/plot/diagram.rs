//! Boxes in lanes, with arrows between them.

use std::path::{Path, PathBuf};

use kuva::render::render::{Scene, TextAnchor};

use super::canvas::{arrow_head, fitted, line, rectangle, sheet, text, text_width};
use super::{PlotError, save, style};

/// Size of the title.
const TITLE: u32 = 18;
/// Size of the titles of boxes and lanes.
const HEADING: u32 = 14;
/// Size of all other text.
const SMALL: u32 = 12;
/// Distance of two lines of text in a box.
const LEADING: f64 = 17.0;
/// Room inside a box, and between a box and the edge of its lane.
const PAD: f64 = 12.0;
/// Distance of lanes, with room for a label.
const LANE_GAP: f64 = 46.0;
/// Least distance of columns.
const COLUMN_GAP: f64 = 40.0;
/// How far apart an arrow there and one back are from the middle.
const APART: f64 = 9.0;

/// Lane and column, each counted from 0.
type Place = (usize, usize);

#[derive(Clone, Debug)]
struct Node {
    place: Place,
    title: String,
    lines: Vec<String>,
}

/// A drawing of boxes in horizontal lanes, such as the steps of a protocol.
#[derive(Clone, Debug)]
pub struct Diagram {
    title: String,
    lanes: Vec<String>,
    boxes: Vec<Node>,
    arrows: Vec<(Place, Place, String)>,
}

/// Where columns and lanes are: start and length.
struct Grid {
    columns: Vec<[f64; 2]>,
    lanes: Vec<[f64; 2]>,
    size: [f64; 2],
}

impl Diagram {
    /// A diagram without lanes and boxes yet. An empty title takes no room.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), lanes: vec![], boxes: vec![], arrows: vec![] }
    }

    /// Names the next lane, from the top down.
    pub fn lane(mut self, name: impl Into<String>) -> Self {
        self.lanes.push(name.into());
        self
    }

    /// Adds a box at (lane, column), each counted from 0, in place of one that is there already.
    pub fn boxed<'a>(
        mut self,
        place: (usize, usize),
        title: impl Into<String>,
        lines: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let lines = lines.into_iter().map(str::to_owned).collect();
        self.boxes.retain(|other| other.place != place);
        self.boxes.push(Node { place, title: title.into(), lines });
        self
    }

    /// Adds an arrow between the boxes at two places. It runs straight within a lane or a column
    /// and behind any box on its way; else around one corner where its lane is free, or through
    /// the gap next to that lane.
    pub fn arrow(
        mut self,
        from: (usize, usize),
        to: (usize, usize),
        label: impl Into<String>,
    ) -> Self {
        self.arrows.push((from, to, label.into()));
        self
    }

    /// Writes `stem.svg` and `stem.png`.
    pub fn save(&self, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
        if self.boxes.is_empty() {
            return Err(PlotError::NoPoints { stem: stem.into() });
        }
        let missing = |place: &Place| self.boxes.iter().all(|one| one.place != *place);
        let ends = self.arrows.iter().flat_map(|(from, to, _)| [*from, *to]);
        if let Some((lane, column)) = ends.into_iter().find(missing) {
            return Err(PlotError::NoBox { stem: stem.into(), lane, column });
        }
        let grid = self.grid();
        let [width, height] = grid.size;
        let mut scene = sheet(width.ceil(), height.ceil());
        let size = fitted(&self.title, TITLE, width - 2.0 * PAD);
        scene.add(text(0.5 * width, 2.2 * PAD, &self.title, size, TextAnchor::Middle, false));
        for (name, [top, length]) in self.lanes.iter().zip(&grid.lanes) {
            scene.add(rectangle([PAD, *top], [width - 2.0 * PAD, *length], "#F3F5F7", "none"));
            let y = top + 0.5 * length + 0.36 * f64::from(HEADING);
            scene.add(text(2.0 * PAD, y, name, HEADING, TextAnchor::Start, false));
        }
        for (from, to, label) in &self.arrows {
            let back = self.arrows.iter().any(|(f, t, _)| f == to && t == from);
            self.draw_arrow(&grid, *from, *to, label, back, &mut scene);
        }
        for one in &self.boxes {
            one.draw(&grid, &mut scene);
        }
        save(scene, stem)
    }

    fn grid(&self) -> Grid {
        let count = |index: fn(&Node) -> usize| self.boxes.iter().map(index).max().unwrap_or(0) + 1;
        let largest = |sizes: &mut dyn Iterator<Item = f64>| sizes.fold(0.0, f64::max);
        let names = largest(&mut self.lanes.iter().map(|name| text_width(name, HEADING)));
        let (mut columns, mut lanes) = (Vec::new(), Vec::new());
        let mut x = if names > 0.0 { 4.0 * PAD + names } else { 2.0 * PAD };
        for c in 0..count(|one| one.place.1) {
            let here = self.boxes.iter().filter(|one| one.place.1 == c);
            let width = largest(&mut here.map(Node::width));
            columns.push([x, width]);
            x += width + self.gap_after(c, width);
        }
        let mut y = if self.title.is_empty() { PAD } else { 4.0 * PAD };
        for l in 0..count(|one| one.place.0).max(self.lanes.len()) {
            let here = self.boxes.iter().filter(|one| one.place.0 == l);
            let height = largest(&mut here.map(Node::height)) + 2.0 * PAD;
            lanes.push([y, height]);
            y += height + LANE_GAP;
        }
        let last = columns.last().map_or(x, |[start, width]| start + width);
        // Labels beside the arrows of the last column may need room of their own.
        let right = (last + 2.0 * PAD).max(x - COLUMN_GAP + 2.0 * PAD);
        Grid { columns, lanes, size: [right, y - LANE_GAP + PAD] }
    }

    /// Free room right of a column: enough for the labels of arrows that cross or pass it.
    fn gap_after(&self, column: usize, width: f64) -> f64 {
        let needs = self.arrows.iter().map(|((from_lane, from), (to_lane, to), label)| {
            let label = text_width(label, SMALL);
            if from != to && *from.min(to) == column {
                label + 2.5 * PAD
            } else if from_lane != to_lane && from == to && *from == column {
                label + 2.0 * PAD + APART - 0.5 * width + COLUMN_GAP
            } else {
                0.0
            }
        });
        needs.fold(COLUMN_GAP, f64::max)
    }

    /// Whether a lane has no box from a column up to and with another one.
    fn is_free(&self, lane: usize, from: usize, to: usize) -> bool {
        let taken = |one: &Node| {
            let (l, c) = one.place;
            l == lane && c != from && (from.min(to)..=from.max(to)).contains(&c)
        };
        !self.boxes.iter().any(taken)
    }

    fn draw_arrow(
        &self,
        grid: &Grid,
        from: Place,
        to: Place,
        label: &str,
        back: bool,
        scene: &mut Scene,
    ) {
        let size = |place: Place| {
            let one = self.boxes.iter().find(|one| one.place == place);
            [grid.columns[place.1][1], one.map_or(0.0, Node::height)]
        };
        let ([fx, fy], [tx, ty]) = (grid.middle(from), grid.middle(to));
        let ([fw, fh], [tw, th]) = (size(from), size(to));
        let sign = |forth: bool| if forth { 1.0 } else { -1.0 };
        let rightwards = sign(to.1 > from.1);
        let downwards = sign(to.0 > from.0);
        let aside = if back { APART } else { 0.0 };
        // The gap between lanes next to the start.
        let gap = match to.0 > from.0 {
            true => grid.lanes[from.0][0] + grid.lanes[from.0][1] + 0.5 * LANE_GAP,
            false => grid.lanes[from.0][0] - 0.5 * LANE_GAP,
        };
        let rise = 0.36 * f64::from(SMALL);
        let (path, at, anchor) = if from.0 == to.0 {
            let y = fy - aside * rightwards;
            let path = vec![[fx + 0.5 * rightwards * fw, y], [tx - 0.5 * rightwards * tw, y]];
            let below = back && rightwards < 0.0;
            let stand = if below { y + 6.0 + 2.0 * rise } else { y - 6.0 };
            let at = [0.5 * (path[0][0] + path[1][0]), stand];
            (path, at, TextAnchor::Middle)
        } else if from.1 == to.1 {
            let x = fx + aside * downwards;
            let path = vec![[x, fy + 0.5 * downwards * fh], [x, ty - 0.5 * downwards * th]];
            match back && downwards < 0.0 {
                true => (path, [x - 7.0, gap + rise], TextAnchor::End),
                false => (path, [x + 7.0, gap + rise], TextAnchor::Start),
            }
        } else if self.is_free(from.0, from.1, to.1) {
            let start = fx + 0.5 * rightwards * fw;
            let path = vec![[start, fy], [tx, fy], [tx, ty - 0.5 * downwards * th]];
            (path, [0.5 * (start + tx), fy - 6.0], TextAnchor::Middle)
        } else {
            let path = vec![
                [fx, fy + 0.5 * downwards * fh],
                [fx, gap],
                [tx, gap],
                [tx, ty - 0.5 * downwards * th],
            ];
            (path, [0.5 * (fx + tx), gap - 6.0], TextAnchor::Middle)
        };
        for ends in path.windows(2) {
            scene.add(line(ends[0], ends[1], style::GRAY, 1.6, false));
        }
        if let [.., before, tip] = path[..] {
            let along = [0, 1].map(|i| f64::total_cmp(&tip[i], &before[i]) as i8).map(f64::from);
            scene.add(arrow_head(tip, along, style::GRAY));
        }
        scene.add(text(at[0], at[1], label, SMALL, anchor, false));
    }
}

impl Grid {
    /// The middle of a place.
    fn middle(&self, (lane, column): Place) -> [f64; 2] {
        [self.columns[column], self.lanes[lane]].map(|[start, length]| start + 0.5 * length)
    }
}

impl Node {
    fn width(&self) -> f64 {
        // Bold letters are wider.
        let title = 1.12 * text_width(&self.title, HEADING);
        let lines = self.lines.iter().map(|line| text_width(line, SMALL));
        lines.fold(title, f64::max) + 2.0 * PAD
    }

    fn height(&self) -> f64 {
        LEADING * (1 + self.lines.len()) as f64 + 1.6 * PAD
    }

    /// As wide as its column.
    fn draw(&self, grid: &Grid, scene: &mut Scene) {
        let [x, y] = grid.middle(self.place);
        let size = [grid.columns[self.place.1][1], self.height()];
        let top = y - 0.5 * size[1];
        let border = style::LINES[self.place.0 % style::LINES.len()];
        scene.add(rectangle([x - 0.5 * size[0], top], size, "#FFFFFF", border));
        let stand = |i: usize| top + 0.8 * PAD + LEADING * (i as f64 + 0.75);
        scene.add(text(x, stand(0), &self.title, HEADING, TextAnchor::Middle, true));
        for (i, line) in self.lines.iter().enumerate() {
            scene.add(text(x, stand(i + 1), line, SMALL, TextAnchor::Middle, false));
        }
    }
}
