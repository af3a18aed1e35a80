//! The report of `lapa bound`, printed and drawn.

use std::path::{Path, PathBuf};

use lapa::config::{BoundForm, Control};
use lapa::observe::number;
use lapa::simulation::Simulation;
use lapa_control::bound::{
    Bound, Constants, DeviceNoise, Estimates, Known, Point, RateCondition, RateLimit, Setting,
    Spread, Terms, corrected, printed,
};
use lapa_report::plot::{Figure, Series};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::output::{paths, table};

/// Multiples of δ for which the limit of the learning rate is shown, beside δ = 1.
const MULTIPLES: [f64; 5] = [0.0, 0.5, 1.0, 2.0, 4.0];
/// Largest multiple of the initial gap at which a bound is drawn.
const MOST_DRAWN: f64 = 1e3;

/// The three constants that [control] has.
#[derive(Serialize)]
struct Three {
    #[serde(with = "number")]
    smoothness: f64,
    #[serde(with = "number")]
    convexity: f64,
    #[serde(with = "number")]
    dissimilarity: f64,
}

/// One form of the bound.
#[derive(Serialize)]
struct Form {
    #[serde(skip)]
    name: &'static str,
    /// Reason why there is none.
    error: Option<String>,
    #[serde(with = "number::optional")]
    contraction: Option<f64>,
    #[serde(with = "number")]
    learning_rate_limit: f64,
    learning_rate_holds: bool,
    tightening: Vec<RateLimit>,
    terms: Option<Terms>,
    #[serde(with = "number::optional")]
    total: Option<f64>,
    /// True if the measured gap stays below it wherever it was measured.
    measured_below: Option<bool>,
    /// True if it promises nothing: after the last round it is not below the gap of the first model.
    vacuous: Option<bool>,
    #[serde(skip)]
    bound: Option<Bound>,
}

/// The loss at a point of the pilot.
#[derive(Serialize)]
struct Measured {
    round: u32,
    #[serde(with = "number")]
    loss: f64,
    #[serde(with = "number")]
    gap: f64,
}

/// All there is to say.
#[derive(Serialize)]
pub struct Report {
    rounds: usize,
    coordinates: usize,
    #[serde(with = "number")]
    learning_rate: f64,
    #[serde(with = "number")]
    squared_weights: f64,
    estimates: Estimates,
    estimated: Three,
    /// Constants that hold for all records and models.
    known: Option<Three>,
    configured: Three,
    printed: Form,
    corrected: Form,
    /// Corrected with δ = 1, which is enough for full gradients.
    corrected_full_gradients: Form,
    measured: Vec<Measured>,
    warnings: Vec<String>,
}

impl Report {
    pub fn new(
        federation: &Simulation,
        rounds: Vec<Vec<DeviceNoise>>,
        points: &[Point],
        estimates: Estimates,
        warnings: Vec<String>,
    ) -> Result<Self, Failure> {
        let experiment = federation.experiment();
        let learning_rate = experiment.learn.learning_rate;
        let estimated = estimates.constants(learning_rate);
        let known = Known::of(experiment);
        let constants = known.map_or(estimated, |known| known.replace(estimated));
        let setting = Setting {
            initial_gap: estimates.initial_gap,
            constants,
            coordinates: federation.network().parameter_count(),
            rounds,
        };
        let measured = points.iter().map(|&Point { round, loss, .. }| Measured {
            round,
            loss,
            gap: loss - estimates.lowest_loss,
        });
        let measured: Vec<Measured> = measured.collect();
        let form = |form, name, setting: &Setting| Form::new(form, name, setting, &measured);
        let agreeing =
            Setting { constants: Constants { dissimilarity: 1.0, ..constants }, ..setting.clone() };
        let printed = form(BoundForm::Printed, "printed", &setting)?;
        let corrected = form(BoundForm::Corrected, "corrected", &setting)?;
        let full = form(BoundForm::Corrected, "corrected, δ = 1", &agreeing)?;
        let Control { smoothness, convexity, dissimilarity, .. } = experiment.control;
        let three = |constants: Constants| Three {
            smoothness: constants.smoothness,
            convexity: constants.convexity,
            dissimilarity: constants.dissimilarity,
        };
        let known = known.filter(|known| known.convexity > 0.0);
        Ok(Self {
            rounds: setting.rounds.len(),
            coordinates: setting.coordinates,
            learning_rate,
            squared_weights: setting.squared_weights(),
            estimates,
            estimated: three(estimated),
            known: known.map(|_| three(Constants { dissimilarity: 1.0, ..constants })),
            configured: Three { smoothness, convexity, dissimilarity },
            printed,
            corrected,
            corrected_full_gradients: full,
            measured,
            warnings,
        })
    }

    /// Draws both bounds over the measured gap.
    pub fn draw(&self, stem: &Path) -> Result<[PathBuf; 2], Failure> {
        let measured = self.measured.iter().map(|point| (f64::from(point.round), point.gap));
        let title = "Optimality gap and its bounds";
        let mut figure = Figure::new(title, "Round", "Optimality gap F − F*").log_y();
        for form in self.forms() {
            if let Some(bound) = &form.bound {
                let curve = bound.after.iter().enumerate();
                let curve = curve.map(|(round, terms)| (round as f64, terms.total()));
                let most = MOST_DRAWN * self.estimates.initial_gap;
                let curve = curve.take_while(|&(_, total)| total <= most);
                figure = figure.line(Series::new(format!("bound, {}", form.name), curve));
            }
        }
        Ok(figure.line(Series::new("measured", measured)).save(stem)?)
    }

    fn forms(&self) -> [&Form; 3] {
        [&self.printed, &self.corrected, &self.corrected_full_gradients]
    }

    pub fn json(&self, plots: &[PathBuf; 2]) -> Result<Value, Failure> {
        let mut value = serde_json::to_value(self)?;
        value["plots"] = serde_json::json!(plots);
        Ok(value)
    }

    pub fn text(&self, plots: &[PathBuf; 2]) -> String {
        let (constants, rate, bounds) =
            (self.constants_text(), self.rate_text(), self.bounds_text());
        format!("{constants}{rate}{bounds}plots: {}\n", paths(plots))
    }

    fn constants_text(&self) -> String {
        let Estimates { secants, curvatures, convexity, dissimilarity_squared, .. } =
            self.estimates;
        let (ours, theirs) = (&self.estimated, &self.configured);
        let range = |of: Spread| format!("{} to {}", digits(of.least), digits(of.most));
        let median = |of: Spread| format!("{}, median {}", range(of), digits(of.median));
        let curvatures =
            curvatures.map_or(String::new(), |of| format!("; largest curvatures {}", range(of)));
        let smoothness = format!("gradient secants {}{curvatures}", range(secants));
        let above_zero = digits(self.estimates.convexity_above_zero);
        let convexity = format!("{}; with F* = 0: {above_zero}", median(convexity));
        let dissimilarity = format!("δ² {}", median(dissimilarity_squared));
        let rows = [
            ("L", ours.smoothness, theirs.smoothness, smoothness),
            ("μ", ours.convexity, theirs.convexity, convexity),
            ("δ", ours.dissimilarity, theirs.dissimilarity, dissimilarity),
        ]
        .map(|(name, ours, theirs, seen)| vec![name.into(), digits(ours), digits(theirs), seen]);
        let known = self.known.as_ref().map_or(String::new(), |known| {
            format!(
                "The loss is strongly convex. L = {} and μ = {} hold for all records and all models, δ = 1 for \
                 full gradients:\nthe bounds use this L and this μ\n",
                digits(known.smoothness),
                digits(known.convexity),
            )
        });
        format!(
            "{}The estimates use the devices' exact losses and gradients. Do not copy them into \
             [control] unless the data are\npublic or synthetic: the powers would leak the data.\n\n\
             F(w⁰) − F* = {}, with F* = {}, the lowest loss (after round {})\n\n",
            table(&["constant", ">estimated", ">in [control]", "range along the run"], &rows)
                + &known,
            digits(self.estimates.initial_gap),
            digits(self.estimates.lowest_loss),
            self.estimates.lowest_round,
        )
    }

    fn rate_text(&self) -> String {
        let columns = &self.corrected.tightening;
        let row = |form: &Form| {
            let mut cells = vec![
                form.name.to_owned(),
                form.contraction.map_or("–".into(), |a| format!("{a:.6}")),
                if form.learning_rate_holds { "holds" } else { "violated" }.into(),
            ];
            cells.extend(form.tightening.iter().map(|row| digits(row.limit)));
            cells.resize(3 + columns.len(), "–".into());
            cells
        };
        let delta = |row: &RateLimit| format!(">λ < at δ = {}", digits(row.dissimilarity));
        let deltas: Vec<String> = columns.iter().map(delta).collect();
        let mut header = vec!["bound", ">A", "condition on λ"];
        header.extend(deltas.iter().map(String::as_str));
        format!(
            "{}λ = {}, ΣG² = {}; the limit on λ scales as 1/δ²\n\n",
            table(&header, &self.forms().map(row)),
            self.learning_rate,
            digits(self.squared_weights),
        )
    }

    fn bounds_text(&self) -> String {
        let row = |form: &Form| {
            let terms = match form.terms {
                Some(terms) => [terms.initial, terms.channel, terms.artificial, terms.total()]
                    .map(digits)
                    .to_vec(),
                None => vec!["–".into(); 4],
            };
            let holds = match (form.measured_below, form.vacuous) {
                (Some(false), _) => "no",
                (Some(true), Some(true)) => "vacuous",
                (Some(true), _) => "yes",
                (None, _) => "–",
            };
            [vec![form.name.to_owned()], terms, vec![holds.into()]].concat()
        };
        let header = ["bound", ">initial", ">channel", ">artificial", ">total", "bound holds"];
        let last = self.measured.last().map_or(f64::NAN, |point| point.gap);
        let mut text = table(&header, &self.forms().map(row));
        if self.forms().iter().any(|form| form.vacuous == Some(true)) {
            let gap = digits(self.estimates.initial_gap);
            text += &format!(
                "vacuous: not below the initial gap {gap}, so the bound says nothing about training\n"
            );
        }
        for form in self.forms() {
            if let Some(error) = &form.error {
                text += &format!("no {} bound: {error}\n", form.name);
            }
        }
        let (rounds, last) = (self.rounds, digits(last));
        text + &format!(
            "measured after {rounds} rounds: {last} (one run; the bounds hold in expectation)\n"
        )
    }
}

impl Form {
    fn new(
        form: BoundForm,
        name: &'static str,
        setting: &Setting,
        measured: &[Measured],
    ) -> Result<Self, Failure> {
        let constants = &setting.constants;
        // Rounding may leave a little more than 1 of a single device's weight.
        let squared_weights = setting.squared_weights().min(1.0);
        let condition = RateCondition::new(form, constants, squared_weights)?;
        let bound = match form {
            BoundForm::Printed => printed(setting, None),
            BoundForm::Corrected => corrected(setting),
        };
        let (bound, error) = match bound {
            Ok(bound) => (Some(bound), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let multiples = if constants.dissimilarity > 1.0 { &MULTIPLES[..] } else { &[1.0] };
        let terms = bound.as_ref().map(Bound::last);
        let below = |bound: &Bound| {
            measured.iter().all(|point| point.gap <= bound.after[point.round as usize].total())
        };
        Ok(Self {
            name,
            error,
            contraction: bound.as_ref().map(|bound| bound.contraction),
            learning_rate_limit: condition.limit(),
            learning_rate_holds: condition.holds(),
            tightening: condition.tightening(multiples),
            terms,
            total: terms.as_ref().map(Terms::total),
            measured_below: bound.as_ref().map(below),
            vacuous: terms.as_ref().map(|terms| terms.total() >= setting.initial_gap),
            bound,
        })
    }
}

/// Four significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if (1e-3..1e5).contains(&size) => {
            let decimals = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.decimals$}")
        }
        _ => format!("{value:.3e}"),
    }
}
