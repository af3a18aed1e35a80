//! `synthetic`: one fixed set of 28×28 digits drawn by code.
//!
//! Every image bends, slants, turns, moves and inks a skeleton of its digit at random. The bytes
//! are the same on every platform: the arithmetic is +, −, ×, ÷ and √ only, which IEEE 754 rounds
//! exactly, and rotations use the rational points of the circle.

use rand::Rng;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::glyphs::GLYPHS;
use super::{CLASSES, DataName, Dataset, FeatureMap, FileHash, Split};
use crate::files;
use crate::seed::{self, Purpose, Stream};
use crate::shape::Shape;

/// Number of training images.
pub const TRAIN: usize = 20_000;
/// Number of test images.
pub const TEST: usize = 4_000;

const SIDE: usize = 28;

/// Fixed: the data set does not depend on the seed of a run.
const SEED: u64 = 0;

type Point = (f32, f32);

/// Draws `train` and `test` images. More of them begin with the same ones.
pub fn dataset(train: usize, test: usize) -> Dataset {
    let train = split(0, train);
    let test = split(1, test);
    let hashes = [
        ("train-images", train.values.bytes().unwrap_or_default()),
        ("train-labels", &train.labels),
        ("t10k-images", test.values.bytes().unwrap_or_default()),
        ("t10k-labels", &test.labels),
    ]
    .map(|(file, bytes)| FileHash { file: file.into(), sha256: files::hex(Sha256::digest(bytes)) });
    Dataset {
        name: DataName::Synthetic,
        source: "built in".into(),
        train,
        test,
        classes: CLASSES,
        features: FeatureMap::default(),
        hashes: hashes.into(),
        devices: None,
    }
}

/// One stream per image, so that threads can share the work without changing it.
fn split(which: u64, count: usize) -> Split {
    let mut images = vec![0; count * SIDE * SIDE];
    images.par_chunks_exact_mut(SIDE * SIDE).enumerate().for_each(|(i, image)| {
        let mut random = Random(seed::stream(SEED, Purpose::SyntheticData, which, i as u64));
        draw(i % CLASSES, &mut random, image);
    });
    let labels = (0..count).map(|i| (i % CLASSES) as u8).collect();
    Split { values: images.into(), labels, shape: Shape::new(1, SIDE, SIDE) }
}

/// Numbers whose bits are ours to promise, whatever the `rand` crate does to its distributions.
struct Random(Stream);

impl Random {
    /// Uniform in [low, high), in steps of 2⁻²⁴ of the range.
    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.0.next_u32() >> 8) as f32 / (1 << 24) as f32)
    }

    /// Uniform in [−limit, limit).
    fn within(&mut self, limit: f32) -> f32 {
        self.between(-limit, limit)
    }
}

fn draw(digit: usize, random: &mut Random, image: &mut [u8]) {
    let styles = GLYPHS[digit];
    let style = styles[random.between(0.0, styles.len() as f32) as usize];
    let place = Placement::new(random);
    let half_width = random.between(0.6, 1.7);
    let ink = random.between(120.0, 255.0);

    let mut cover = [0f32; SIDE * SIDE];
    for stroke in style {
        let (points, _) = stroke.points.as_chunks();
        let points: Vec<Point> = points.iter().map(|&[x, y]| place.map((x, y), random)).collect();
        let path = if stroke.smooth { smooth(&points) } else { points };
        for pair in path.windows(2) {
            paint(pair[0], pair[1], half_width, &mut cover);
        }
    }
    for (pixel, cover) in image.iter_mut().zip(cover) {
        // The sum of two uniforms: small noise is more likely than large noise.
        let noise = random.within(35.0) + random.within(35.0);
        *pixel = (cover * ink + noise + 0.5).clamp(0.0, 255.0) as u8;
    }
}

/// Map of the unit box onto the pixels.
struct Placement {
    bend: [f32; 6],
    slant: f32,
    width: f32,
    height: f32,
    cos: f32,
    sin: f32,
    center: Point,
}

impl Placement {
    fn new(random: &mut Random) -> Self {
        let height = random.between(6.5, 10.0);
        let t = random.within(0.2);
        Self {
            bend: std::array::from_fn(|_| random.within(0.14)),
            slant: random.within(0.3),
            width: height * random.between(0.75, 1.35),
            height,
            // (cos θ, sin θ) with t = tan(θ/2): up to 23° either way.
            cos: (1.0 - t * t) / (1.0 + t * t),
            sin: 2.0 * t / (1.0 + t * t),
            center: (13.5 + random.within(2.4), 13.5 + random.within(2.4)),
        }
    }

    /// Bends by a random quadratic map, which keeps joined strokes joined, and shakes a little.
    fn map(&self, (x, y): Point, random: &mut Random) -> Point {
        let [a, b, c, d, e, f] = self.bend;
        let u = x + a * x * x + b * x * y + c * y * y + random.within(0.09);
        let v = y + d * x * x + e * x * y + f * y * y + random.within(0.09);
        let (u, v) = ((u + self.slant * v) * self.width, v * self.height);
        (self.center.0 + self.cos * u - self.sin * v, self.center.1 + self.sin * u + self.cos * v)
    }
}

/// A Catmull–Rom spline through the points, as short chords.
fn smooth(points: &[Point]) -> Vec<Point> {
    const CHORDS: usize = 4;
    let last = points.len() - 1;
    let mut path = vec![points[0]];
    for i in 0..last {
        let (p1, p2) = (points[i], points[i + 1]);
        let p0 = points[i.saturating_sub(1)];
        let p3 = points[(i + 2).min(last)];
        for step in 1..=CHORDS {
            let t = step as f32 / CHORDS as f32;
            // Uniform Catmull–Rom basis (Catmull and Rom, 1974).
            let blend = |a: f32, b: f32, c: f32, d: f32| {
                0.5 * (2.0 * b
                    + t * ((c - a)
                        + t * ((2.0 * a - 5.0 * b + 4.0 * c - d)
                            + t * (3.0 * b - a - 3.0 * c + d))))
            };
            path.push((blend(p0.0, p1.0, p2.0, p3.0), blend(p0.1, p1.1, p2.1, p3.1)));
        }
    }
    path
}

/// Raises the cover of the pixels near a line; the edge is one pixel soft.
fn paint((x1, y1): Point, (x2, y2): Point, half_width: f32, cover: &mut [f32]) {
    let reach = half_width + 0.5;
    let pixels = |a: f32, b: f32| {
        let first = (a.min(b) - reach).max(0.0) as usize;
        let end = (a.max(b) + reach + 1.0).clamp(0.0, SIDE as f32) as usize;
        first..end
    };
    let (dx, dy) = (x2 - x1, y2 - y1);
    let length_squared = dx * dx + dy * dy + 1e-6;
    for row in pixels(y1, y2) {
        for col in pixels(x1, x2) {
            let (px, py) = (col as f32 - x1, row as f32 - y1);
            let along = ((px * dx + py * dy) / length_squared).clamp(0.0, 1.0);
            let (ex, ey) = (px - along * dx, py - along * dy);
            let here = (reach - (ex * ex + ey * ey).sqrt()).clamp(0.0, 1.0);
            let pixel = &mut cover[row * SIDE + col];
            *pixel = pixel.max(here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_never_change() {
        let data = dataset(TRAIN, TEST);
        let hashes: Vec<&str> = data.hashes.iter().map(|hash| hash.sha256.as_str()).collect();
        assert_eq!(
            hashes,
            [
                "1c873ee0db027d9b31d90d9bdd77dbd4022f1b7830a118d462c9bd08ac1bd0cf",
                "296a5410adaa8ef50b536f7635cdfc297e4bfd3b52b1ac10a0e71affdd12e9c8",
                "5cb202573932f655adb2a6e642357a11050c8949c8ee85c7bd5e23ff798fcc47",
                "18f60181177257fa959576b2e27a6e81f2d1e246d592a7c27d824f6b4d9c1072"
            ]
        );
    }

    #[test]
    fn labels_are_balanced_and_images_differ() {
        let Dataset { train, test, classes, .. } = dataset(TRAIN, TEST);
        assert_eq!((train.len(), test.len(), classes), (TRAIN, TEST, CLASSES));
        for (split, each) in [(&train, TRAIN / CLASSES), (&test, TEST / CLASSES)] {
            for class in 0..CLASSES {
                assert_eq!(split.labels.iter().filter(|&&l| l as usize == class).count(), each);
            }
        }
        let images = |split: &Split| {
            let pixels = split.values.bytes().unwrap().chunks_exact(SIDE * SIDE);
            pixels.map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let mut all = [images(&train), images(&test)].concat();
        all.sort();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    }

    /// The distance to the nearest of many points of the line stands in for the exact one.
    #[test]
    fn paint_agrees_with_a_dense_walk_along_the_line() {
        let ((x1, y1), (x2, y2), half_width) = ((6.2, 20.1), (15.7, 3.4), 1.3);
        let mut cover = [0f32; SIDE * SIDE];
        paint((x1, y1), (x2, y2), half_width, &mut cover);
        for (i, &found) in cover.iter().enumerate() {
            let (col, row) = ((i % SIDE) as f64, (i / SIDE) as f64);
            let distance = (0..=5000)
                .map(|step| f64::from(step) / 5000.0)
                .map(|t| {
                    let x = f64::from(x1) + t * f64::from(x2 - x1);
                    let y = f64::from(y1) + t * f64::from(y2 - y1);
                    (x - col).hypot(y - row)
                })
                .fold(f64::INFINITY, f64::min);
            let expected = (f64::from(half_width) + 0.5 - distance).clamp(0.0, 1.0);
            assert!((f64::from(found) - expected).abs() < 1e-3, "pixel {i}: {found}, {expected}");
        }
    }

    #[test]
    fn curves_pass_through_their_points() {
        let points = [(0.0, 1.0), (2.0, -1.0), (3.0, 4.0), (5.0, 5.0)];
        let path = smooth(&points);
        for (i, point) in points.iter().enumerate() {
            assert_eq!(path[4 * i], *point);
        }
    }

    #[test]
    fn ink_that_leaves_the_picture_is_cut_off() {
        let mut cover = [0f32; SIDE * SIDE];
        for end in [(-50.0, -3.0), (60.0, 14.0), (14.0, 99.0), (-1e9, 1e9)] {
            paint((14.0, 14.0), end, 1.0, &mut cover);
        }
        assert_eq!(cover[14 * SIDE + 14], 1.0);
    }
}
