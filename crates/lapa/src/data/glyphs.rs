//! Skeletons of the ten digits: x to the right, y down, about [−0.6, 0.6] × [−1, 1].

/// A line through points.
pub struct Stroke {
    /// True for a smooth curve, false for one with corners.
    pub smooth: bool,
    /// The points, in order: x, y, x, y, …
    pub points: &'static [f32],
}

const fn curve(points: &'static [f32]) -> Stroke {
    Stroke { smooth: true, points }
}

const fn lines(points: &'static [f32]) -> Stroke {
    Stroke { smooth: false, points }
}

/// The ways of writing each digit.
pub static GLYPHS: [&[&[Stroke]]; 10] = [
    &[ZERO],
    &[ONE, ONE_FLAG, ONE_FOOT],
    &[TWO, TWO_LOOP],
    &[THREE, THREE_FLAT],
    &[FOUR, FOUR_OPEN],
    &[FIVE],
    &[SIX, SIX_STRAIGHT],
    &[SEVEN, SEVEN_BAR],
    &[EIGHT],
    &[NINE, NINE_HOOK],
];

const ZERO: &[Stroke] = &[curve(&[
    0.1, -1.0, -0.35, -0.8, -0.55, 0.0, -0.35, 0.8, 0.0, 1.0, 0.35, 0.8, 0.55, 0.0, 0.38, -0.75,
    0.0, -1.0,
])];

const ONE: &[Stroke] = &[lines(&[0.05, -1.0, 0.0, 1.0])];
const ONE_FLAG: &[Stroke] = &[lines(&[-0.4, -0.55, 0.05, -1.0, 0.05, 1.0])];
const ONE_FOOT: &[Stroke] =
    &[lines(&[-0.4, -0.6, 0.0, -1.0, 0.0, 1.0]), lines(&[-0.45, 1.0, 0.45, 1.0])];

const TWO_TOP: Stroke =
    curve(&[-0.55, -0.55, -0.3, -0.92, 0.15, -0.98, 0.5, -0.6, 0.35, -0.1, -0.1, 0.45, -0.6, 1.0]);
const TWO: &[Stroke] = &[TWO_TOP, lines(&[-0.6, 1.0, 0.6, 1.0])];
const TWO_LOOP: &[Stroke] = &[curve(&[
    -0.5, -0.6, -0.25, -0.95, 0.2, -0.95, 0.48, -0.55, 0.25, 0.1, -0.2, 0.75, -0.5, 0.95, -0.58,
    0.7, -0.3, 0.62, 0.15, 0.9, 0.6, 0.88,
])];

const THREE_BELLY: Stroke =
    curve(&[-0.1, -0.08, 0.35, 0.08, 0.55, 0.5, 0.25, 0.92, -0.2, 1.0, -0.58, 0.72]);
const THREE: &[Stroke] =
    &[curve(&[-0.5, -0.75, -0.1, -1.0, 0.4, -0.8, 0.38, -0.35, -0.1, -0.08]), THREE_BELLY];
const THREE_FLAT: &[Stroke] = &[lines(&[-0.5, -1.0, 0.5, -1.0, -0.1, -0.08]), THREE_BELLY];

const FOUR: &[Stroke] =
    &[lines(&[0.25, -1.0, -0.6, 0.35, 0.65, 0.35]), lines(&[0.25, -1.0, 0.25, 1.0])];
const FOUR_OPEN: &[Stroke] =
    &[lines(&[-0.4, -1.0, -0.55, 0.1, 0.55, 0.05]), lines(&[0.4, -0.85, 0.3, 1.0])];

const FIVE: &[Stroke] = &[
    lines(&[0.52, -1.0, -0.38, -1.0, -0.45, -0.1]),
    curve(&[-0.45, -0.1, -0.05, -0.28, 0.4, -0.05, 0.55, 0.4, 0.25, 0.9, -0.2, 1.0, -0.58, 0.75]),
];

const SIX: &[Stroke] = &[curve(&[
    0.42, -0.95, -0.05, -0.8, -0.42, -0.2, -0.52, 0.45, -0.2, 0.95, 0.25, 0.95, 0.5, 0.5, 0.25,
    0.1, -0.15, 0.1, -0.48, 0.45,
])];
const SIX_STRAIGHT: &[Stroke] = &[curve(&[
    0.2, -1.0, -0.25, -0.3, -0.5, 0.4, -0.25, 0.9, 0.2, 0.98, 0.5, 0.6, 0.3, 0.2, -0.1, 0.15,
    -0.45, 0.45,
])];

const SEVEN_HOOK: Stroke = lines(&[-0.55, -0.95, 0.55, -1.0, 0.1, 0.0, -0.15, 1.0]);
const SEVEN: &[Stroke] = &[SEVEN_HOOK];
const SEVEN_BAR: &[Stroke] = &[SEVEN_HOOK, lines(&[-0.25, 0.0, 0.45, -0.05])];

const EIGHT: &[Stroke] = &[curve(&[
    0.4, -0.8, 0.0, -1.0, -0.4, -0.75, -0.3, -0.3, 0.1, 0.0, 0.5, 0.4, 0.35, 0.88, 0.0, 1.0, -0.38,
    0.88, -0.48, 0.4, -0.1, 0.0, 0.32, -0.35, 0.4, -0.8,
])];

const NINE_LOOP: Stroke = curve(&[
    0.45, -0.5, 0.25, -0.92, -0.15, -0.98, -0.45, -0.6, -0.3, -0.15, 0.1, -0.08, 0.45, -0.5,
]);
const NINE: &[Stroke] = &[NINE_LOOP, lines(&[0.45, -0.6, 0.3, 1.0])];
const NINE_HOOK: &[Stroke] =
    &[NINE_LOOP, curve(&[0.45, -0.6, 0.48, 0.2, 0.3, 0.85, -0.1, 1.0, -0.45, 0.75])];
