//! Weights in the records are those of the rules, from what the base station has.

use std::sync::Arc;

use lapa::aggregate::{FedAdp, GroundMetric, histogram, noise_aware, wasserstein};
use lapa::device::{Batches, Device, Learner, Streams};
use lapa::model::{Shape, Worker};
use lapa::seed::{Purpose, stream};

use super::*;

fn weights_of(record: &RoundRecord) -> Vec<f64> {
    devices(record).iter().map(|device| device.weight).collect()
}

fn samples_of(record: &RoundRecord) -> Vec<u32> {
    devices(record).iter().map(|device| device.samples).collect()
}

/// |D_k|·e^{1/max(D_k, 0.2)}, normalized, with the divergence of p_k from g written out.
#[test]
fn weights_by_divergence_follow_from_the_label_counts() {
    let kl = |p: &[f64], g: &[f64]| -> f64 {
        p.iter().zip(g).map(|(p, g)| if *p > 0.0 { p * p.ln() - p * g.ln() } else { 0.0 }).sum()
    };
    for rule in ["kl", "js"] {
        let changes =
            [format!("aggregate.rule={rule}"), format!("aggregate.{rule}.histograms=public")];
        let mut federation = federation(&[&changes[0], &changes[1]]);
        let counts = federation.records().dealt().unwrap().devices.clone();
        let shares = |counts: &[u32]| -> Vec<f64> {
            let total: u32 = counts.iter().sum();
            counts.iter().map(|&count| f64::from(count) / f64::from(total)).collect()
        };
        let all = (0..10).map(|label| counts.iter().map(|d| d.label_counts[label]).sum());
        let global = shares(&all.collect::<Vec<u32>>());
        let terms = counts.iter().map(|device| {
            let own = shares(&device.label_counts);
            let middle: Vec<f64> = own.iter().zip(&global).map(|(p, g)| (p + g) / 2.0).collect();
            let divergence = match rule {
                "kl" => kl(&own, &global),
                _ => kl(&own, &middle) / 2.0 + kl(&global, &middle) / 2.0,
            };
            device.samples.len() as f64 * (1.0 / divergence.max(0.2)).exp()
        });
        let terms: Vec<f64> = terms.collect();
        let record = federation.next_round().unwrap();
        for (weight, term) in weights_of(&record).into_iter().zip(&terms) {
            assert_close(weight, term / terms.iter().sum::<f64>(), 1e-9);
        }
    }
}

/// Eq. (22) written out: the selected devices keep the weights of eq. (21) over all devices, and the
/// others have none.
#[test]
fn weights_that_are_not_renormalized_are_those_of_all_devices() {
    let public = ["aggregate.rule=wasserstein", "aggregate.wasserstein.histograms=public"];
    let selected = ["transmit.uplink=analog", "aggregate.ser_threshold=0.01"];
    let of = |changes: &[&str]| {
        let mut federation = federation(&[&public[..], changes].concat());
        federation.next_round().unwrap()
    };
    let all = weights_of(&of(&[]));
    let printed = of(&[&selected[..], &["aggregate.renormalize=false"]].concat());
    let usual = of(&selected);
    assert!((1..4).contains(&printed.outages), "{}", printed.outages);
    let kept: f64 = weights_of(&printed).iter().sum();
    assert!(kept < 0.99 && kept > 0.0, "{kept}");
    for (k, device) in devices(&printed).iter().enumerate() {
        if device.selected {
            assert_close(device.weight, all[k], 1e-12);
            assert_close(weights_of(&usual)[k], all[k] / kept, 1e-12);
        } else {
            assert_eq!((device.weight, weights_of(&usual)[k]), (0.0, 0.0));
        }
    }
}

/// |D_k|·e^{1/max(W_k, floor)}, normalized, with W_k = ½Σ|p − g| or Σ|P − G|, written out.
#[test]
fn wasserstein_weights_follow_from_the_label_counts() {
    for (changes, metric, floor) in [
        (&[][..], GroundMetric::TotalVariation, 0.2),
        (&["aggregate.wasserstein.metric=label-distance"], GroundMetric::LabelDistance, 0.5),
        (&["aggregate.wasserstein.floor=0.6"], GroundMetric::TotalVariation, 0.6),
        (&["transmit.uplink=digital"], GroundMetric::TotalVariation, 0.2),
        (&["privacy.epsilon=4"], GroundMetric::TotalVariation, 0.2),
    ] {
        let public = ["aggregate.rule=wasserstein", "aggregate.wasserstein.histograms=public"];
        let mut federation = federation(&[&public[..], changes].concat());
        let counts: Vec<Vec<f64>> = federation
            .records()
            .dealt()
            .unwrap()
            .devices
            .iter()
            .map(|device| device.label_counts.iter().map(|&count| f64::from(count)).collect())
            .collect();
        let total: f64 = counts.iter().flatten().sum();
        let global: Vec<f64> =
            (0..10).map(|label| counts.iter().map(|c| c[label]).sum::<f64>() / total).collect();
        let terms: Vec<f64> = counts
            .iter()
            .map(|counts| {
                let n: f64 = counts.iter().sum();
                let apart: Vec<f64> = counts.iter().zip(&global).map(|(c, g)| c / n - g).collect();
                let distance: f64 = match metric {
                    GroundMetric::TotalVariation => apart.iter().map(|d| d.abs() / 2.0).sum(),
                    GroundMetric::LabelDistance => {
                        (1..=10).map(|end| apart[..end].iter().sum::<f64>().abs()).sum()
                    }
                };
                n * (1.0 / distance.max(floor)).exp()
            })
            .collect();
        let sum: f64 = terms.iter().sum();
        for _ in 0..2 {
            let record = federation.next_round().unwrap();
            let distances = wasserstein::distances(metric, &counts);
            let rule = wasserstein::weights(&samples_of(&record), &distances, floor);
            assert_eq!(weights_of(&record), rule, "{changes:?}");
            for (weight, term) in weights_of(&record).into_iter().zip(&terms) {
                assert_close(weight, term / sum, 1e-9);
            }
        }
    }
}

/// Labels as they were sent and the noise that is in the records, through the rule.
#[test]
fn noise_aware_weights_follow_from_labels_and_recorded_noise() {
    for changes in [
        &["aggregate.noise-aware.noise_weight=2"][..],
        &["privacy.epsilon=4"],
        &["privacy.epsilon=4", "transmit.uplink=analog", "radio.noise_power_w=1e-12"],
        &["privacy.epsilon=4", "transmit.uplink=analog", "aggregate.sinr_threshold_db=6"],
    ] {
        let mut federation = federation(&[&["aggregate.rule=noise-aware"][..], changes].concat());
        for _ in 0..2 {
            let record = federation.next_round().unwrap();
            let labels = federation.weighting().labels().unwrap();
            let shares: Vec<Vec<f64>> = labels.iter().map(|l| histogram::shares(l)).collect();
            let sent: Vec<_> = devices(&record).iter().filter(|d| d.selected).collect();
            let distributions: Vec<&[f64]> =
                sent.iter().map(|d| &*shares[d.device as usize]).collect();
            let samples: Vec<u32> = sent.iter().map(|d| d.samples).collect();
            let variances: Vec<f64> =
                sent.iter().map(|d| d.sigma_artificial.powi(2) + d.sigma_channel.powi(2)).collect();
            let lapa::aggregate::RuleConfig::NoiseAware(config) =
                federation.experiment().aggregate.rule
            else {
                panic!()
            };
            let eta = config.noise_weight;
            let global = histogram::global(labels);
            let rule = noise_aware::weights(&distributions, &global, &samples, &variances, eta);
            for (device, weight) in sent.iter().zip(rule) {
                assert!((device.weight - weight).abs() < 1e-9, "{changes:?}");
            }
        }
    }
}

/// The gradients that the devices of a federation send in round 1, over an ideal link.
fn gradients(federation: &Simulation) -> Vec<Vec<f32>> {
    let experiment = federation.experiment();
    let network = lapa::model::network(&experiment.model, Shape::new(1, 28, 28), 10).unwrap();
    let mut learner = Learner::new(Worker::new(Arc::new(network)));
    let gradient = |(device, data): (u64, &lapa::partition::DeviceData)| {
        let device = Device {
            number: device as u32,
            learn: &experiment.learn,
            records: &federation.data().train,
            samples: (&data.samples).into(),
            batches: Batches {
                sampling: experiment.learn.sampling,
                public_samples: data.samples.len() as u32,
                zero_if_not_finite: false,
                keeps_places: true,
            },
            grid: None,
        };
        let draw = |purpose| stream(experiment.run.seed, purpose, 1, device.number.into());
        let (mut batch, mut noise) = (draw(Purpose::Batch), draw(Purpose::Noise));
        let streams = Streams { batch: &mut batch, noise: &mut noise };
        let (model, bare) = (&federation.model().parameters, bare(device.number));
        let reply = device.answer(model, bare, 1.0, streams, &mut learner, Vec::new()).unwrap();
        reply.update.into_gradient()
    };
    (0..).zip(&federation.records().dealt().unwrap().devices).map(gradient).collect()
}

/// FedAdp's first round: e^{f(θ)} with θ the angle to the mean of what was sent, written out.
#[test]
fn fedadp_weights_follow_from_what_was_sent() {
    let mut federation = federation(&["aggregate.rule=fedadp"]);
    let gradients = gradients(&federation);
    let record = federation.next_round().unwrap();
    let samples = samples_of(&record);
    let slices: Vec<&[f32]> = gradients.iter().map(Vec::as_slice).collect();
    let rule = FedAdp::new(4).by_angles(&[0, 1, 2, 3], &samples, &slices);
    assert_eq!(weights_of(&record), rule);

    let total: f64 = samples.iter().copied().map(f64::from).sum();
    let mean: Vec<f64> = (0..COORDINATES)
        .map(|i| {
            let terms = samples.iter().zip(&gradients);
            terms.map(|(&n, g)| f64::from(n) / total * f64::from(g[i])).sum()
        })
        .collect();
    let norm = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
    let terms: Vec<f64> = samples
        .iter()
        .zip(&gradients)
        .map(|(&n, gradient)| {
            let gradient: Vec<f64> = gradient.iter().copied().map(f64::from).collect();
            let inner: f64 = gradient.iter().zip(&mean).map(|(a, b)| a * b).sum();
            let angle = (inner / norm(&gradient) / norm(&mean)).acos();
            let contribution = 5.0 * (1.0 - (-(-5.0 * (angle - 1.0)).exp()).exp());
            f64::from(n) * contribution.exp()
        })
        .collect();
    let sum: f64 = terms.iter().sum();
    for (weight, term) in rule.into_iter().zip(&terms) {
        assert_close(weight, term / sum, 1e-6);
    }
}
