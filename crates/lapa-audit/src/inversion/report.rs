//! Report of the inversion, in figures, words and pictures.

use lapa::config::{Clip, word_of};
use lapa::model::{Layer, LayerInfo};
use lapa_report::page::Table;
use lapa_report::plot::{Picture, Pictures};
use serde_json::{Value, json};

use super::attacker::Attacker;
use super::cases::{Case, Cases};
use super::first_layer;
use crate::scale::is_image;
use crate::{Attack, AuditError, Exhibit, Finding, Options, Statement, Subject, Verdict};

/// Images that are shown.
const SHOWN: usize = 4;
/// A reconstruction of as many dB or more is taken for a success.
const SUCCESS: f64 = 20.0;

/// Name of the subject's own noise: the allocator, or the channel without artificial noise.
pub(super) fn own_name(subject: &Subject) -> String {
    match &subject.experiment.privacy {
        None => "channel".into(),
        Some(privacy) => word_of(privacy.allocator),
    }
}

/// The finding.
pub(super) fn finding(
    subject: &Subject,
    statement: &Statement,
    options: &Options,
    attacker: &Attacker,
    cases: &Cases,
) -> Result<Finding, AuditError> {
    let finding = Finding::new(Attack::Inversion, statement, options.confidence);
    let (verdict, reason) = verdict(subject, options, cases);
    let phases: Value = cases.all.iter().filter(|case| case.is_phase).map(figures).collect();
    let mut finding = Finding { verdict, reason, ..finding }
        .figure("alpha", alpha(options, &own_phases(subject, cases)))
        .figure("images", attacker.images.len())
        .figure("single_images_only", attacker.single_images_only)
        .figure("cases", phases)
        .figure("squared_distance", cases.squared.as_ref().map_or(Value::Null, figures))
        .figure("batches", cases.batches.iter().map(figures).collect::<Value>());
    for text in explanations(subject, attacker) {
        finding = finding.show(Exhibit::Text(text.into()));
    }
    finding = finding.show(Exhibit::Table(table(cases)));
    if !is_image(attacker.shape) {
        return Ok(finding);
    }
    Ok(finding.show(pictures(subject, attacker, cases)?))
}

fn figures(case: &Case) -> Value {
    let successes = case.qualities().filter(|quality| quality.psnr >= SUCCESS).count();
    json!({
        "round": case.round,
        "noise": case.noise,
        "sigma": case.sigma,
        "mse": case.mean(|quality| quality.mse),
        "psnr": case.mean(|quality| quality.psnr),
        "ssim": case.mean(|quality| quality.ssim),
        "from_20_db": successes,
        "of": case.qualities().count(),
        "labels": case.label_share(),
        "class_mean_mse": case.class_mean_error(),
        "p_better_than_class_mean": case.p_better(),
    })
}

/// The cases with the subject's own noise, early, midway and late.
fn own_phases<'a>(subject: &Subject, cases: &'a Cases) -> Vec<&'a Case> {
    let name = own_name(subject);
    cases
        .all
        .iter()
        .filter(|case| case.is_phase && case.noise == name && case.sigma > 0.0)
        .collect()
}

/// α of each test: all of them together err with at most 1 − confidence (Bonferroni).
fn alpha(options: &Options, own: &[&Case]) -> f64 {
    (1.0 - options.confidence) / own.len().max(1) as f64
}

fn verdict(subject: &Subject, options: &Options, cases: &Cases) -> (Verdict, String) {
    let own = own_phases(subject, cases);
    let alpha = alpha(options, &own);
    let tests = format!(
        "one-sided paired t-tests of the squared errors over the images, α = {alpha:.4} each"
    );
    let better: Vec<String> = own
        .iter()
        .filter(|case| case.p_better() < alpha)
        .map(|case| format!("after round {} (p = {:.1e})", case.round, case.p_better()))
        .collect();
    if own.is_empty() {
        let reason = "This run adds no noise and claims nothing about reconstructions, which bound no \
                      ε.";
        return (Verdict::NotJudged, reason.into());
    }
    let found = better.join(", ");
    match (better.is_empty(), subject.experiment.is_certified()) {
        (true, true) => {
            let reason = format!(
                "With the noise of this run, no reconstruction beats the mean image of its class, \
                 which needs no gradient ({tests}). This proves nothing: another attack may do \
                 better. Reconstructions bound no ε."
            );
            (Verdict::NotRefuted, reason)
        }
        (false, true) => {
            let reason = format!(
                "Certified noise should hide every image, but reconstructions beat the mean image of \
                 the class {found} ({tests}). This bounds no ε."
            );
            (Verdict::Refuted, reason)
        }
        (unbeaten, false) => {
            let seen = if unbeaten {
                "With the noise of this run, no reconstruction beats the mean image of its class"
                    .into()
            } else {
                format!(
                    "In spite of the noise, reconstructions beat the mean image of the class {found}"
                )
            };
            let reason = format!(
                "{seen} ({tests}). The paper claims nothing about reconstructions, and they bound no ε."
            );
            (Verdict::NotJudged, reason)
        }
    }
}

fn is_group_norm(layer: &LayerInfo) -> bool {
    matches!(layer.layer, Layer::GroupNorm { .. })
}

/// Explanations of the attack and of its limits.
fn explanations(subject: &Subject, attacker: &Attacker) -> Vec<&'static str> {
    let learn = &subject.experiment.learn;
    let mut texts = vec![
        "The attacker knows all images of a device's batch but one, and subtracts their gradients \
         from the update. The gradient of one image remains, with the noise of the update multiplied \
         by the batch size. Labels are read from the gradient of the last layer.",
        if first_layer::is_fully_connected(&attacker.network) {
            "The first layer is fully connected: its gradient contains a single image exactly, \
             so no search is needed. Adam searches for batches only."
        } else {
            "Adam searches for an image whose gradient has the observed direction and that \
             varies little from pixel to pixel."
        },
    ];
    if attacker.single_images_only {
        texts.push(
            "Batch norm makes the gradient of each image depend on all others of its batch. Batches \
             were therefore not attacked; single images were attacked as a batch of one, over which \
             batch norm normalizes.",
        );
    } else if attacker.network.layers().iter().any(is_group_norm) {
        texts.push(
            "Group norm hides the scale of the features, so the search ends in a wrong minimum more \
             often than without normalization.",
        );
    }
    if !is_image(attacker.shape) {
        texts.push(
            "Records are vectors, not images: nothing can be shown as a picture, and no neighbors are \
             known to be alike. SSIM compares all values of a record at once; it says how close the \
             numbers are, not what an eye would see.",
        );
    }
    if attacker.scale.is_some() {
        texts.push(
            "Errors count in units of the range that the test set has (of each column of a table, of each \
             channel of an image), and what lies outside of it is cut to its ends.",
        );
    }
    if learn.clip == Clip::Device {
        texts.push(
            "Clipping of the whole update is ignored: it changes the length but not the direction, \
             and the attack uses the direction.",
        );
    }
    texts
}

fn table(cases: &Cases) -> Table {
    let caption = format!(
        "Means over images. A reconstruction of {SUCCESS} dB or more shows the image; the mean image \
         of the class is the best guess without a gradient."
    );
    let headers = [
        "attack",
        ">after round",
        "noise",
        ">σ per gradient coordinate",
        ">labels",
        ">MSE",
        ">PSNR",
        ">SSIM",
        ">≥ 20 dB",
        ">MSE of class mean",
    ];
    let mut table = Table::new(&caption, &headers);
    let singles = cases.all.iter().filter(|case| case.is_phase).map(|case| ("cosine", case));
    let squared = cases.squared.iter().map(|case| ("squared (DLG)", case));
    let batches = cases.batches.iter().map(|case| ("cosine, small batch", case));
    for (attack, case) in singles.chain(squared).chain(batches) {
        let successes = case.qualities().filter(|quality| quality.psnr >= SUCCESS).count();
        table.row([
            attack.to_string(),
            case.round.to_string(),
            case.noise.clone(),
            format!("{:.3}", case.sigma),
            format!("{:.0} %", 100.0 * case.label_share()),
            format!("{:.4}", case.mean(|quality| quality.mse)),
            format!("{:.1} dB", case.mean(|quality| quality.psnr)),
            format!("{:.2}", case.mean(|quality| quality.ssim)),
            format!("{successes} of {}", case.qualities().count()),
            format!("{:.4}", case.class_mean_error()),
        ]);
    }
    table
}

/// Original, class mean, and what was made of the gradients early and late.
fn pictures(subject: &Subject, attacker: &Attacker, cases: &Cases) -> Result<Exhibit, AuditError> {
    let own = own_name(subject);
    let phases: Vec<&Case> = cases.all.iter().filter(|case| case.is_phase).collect();
    let of = |noise: &str| -> Vec<&Case> {
        phases.iter().copied().filter(|case| case.noise == noise).collect()
    };
    let (without, with) = (of("none"), of(&own));
    let shown: Vec<&Case> = [without.first(), with.first(), without.last(), with.last()]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    let name = |case: &&Case| {
        if case.sigma > 0.0 {
            format!("round {}, {}", case.round + 1, case.noise)
        } else {
            format!("round {}, no noise", case.round + 1)
        }
    };
    let columns = ["original".to_string(), "class mean".to_string()];
    let columns = columns.into_iter().chain(shown.iter().map(name));
    let mut pictures = Pictures::new("Reconstructed images", attacker.shape, columns);
    for (i, image) in attacker.images.iter().enumerate().take(SHOWN) {
        let decibel = |psnr: f64| format!("{psnr:.1} dB");
        let (mean, quality) = attacker.class_mean(image);
        let mut row = vec![
            Picture { pixels: image.pixels.clone(), caption: String::new() },
            Picture { pixels: mean.to_vec(), caption: decibel(quality.psnr) },
        ];
        for outcome in shown.iter().filter_map(|case| case.outcomes.get(i)) {
            let found = outcome.guesses.iter().zip(&outcome.qualities);
            row.extend(found.map(|(guess, quality)| Picture {
                pixels: guess.clone(),
                caption: decibel(quality.psnr),
            }));
        }
        pictures = pictures.row(format!("label {}", image.label), row);
    }
    Ok(Exhibit::Drawing {
        name: "inversion".into(),
        svg: pictures.svg("inversion")?,
        caption: "Original images, the mean images of their classes, and the reconstructions from \
                  their gradients, without noise and with the noise of the run. Below each: peak \
                  signal-to-noise ratio."
            .into(),
    })
}
