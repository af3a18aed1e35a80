//! Property tests: what is written reads back the same, and no text panics.

use super::*;
use crate::data::DataName;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

fn read(text: &str) -> Result<Experiment, ConfigError> {
    Experiment::from_toml(text, "lapa.toml", &[])
}

fn run() -> impl Strategy<Value = Run> {
    (1..=u32::MAX, any::<u64>(), 0..=1024usize, 1e-9..=1.0f64, 1..99u32, 1..99u32).prop_map(
        |(rounds, seed, threads, participation, evaluate_every, checkpoint_every)| Run {
            rounds,
            seed,
            threads,
            participation,
            evaluate_every,
            checkpoint_every,
        },
    )
}

fn partition() -> impl Strategy<Value = PartitionSpec> {
    let schemes = select(vec![Scheme::Mix, Scheme::Dirichlet, Scheme::Shards, Scheme::Iid]);
    let pair = || (1..9000u32, 0..9000u32).prop_map(|(min, more)| Some([min, min + more]));
    let ranges = [pair().boxed(), pair().boxed(), pair().boxed()];
    (schemes, 1..9000u32, 0..9000u32, ranges, 1e-9..1e9f64, any::<bool>()).prop_map(
        |(scheme, iid, non_iid, [labels, iid_samples, non_iid_samples], concentration, sized)| {
            let none = PartitionSpec {
                scheme,
                devices: iid,
                iid: None,
                non_iid: None,
                labels: None,
                iid_samples: None,
                non_iid_samples: None,
                concentration: None,
                shards: None,
            };
            match scheme {
                Scheme::Mix => PartitionSpec {
                    devices: iid + non_iid,
                    iid: Some(iid),
                    non_iid: Some(non_iid),
                    labels,
                    iid_samples,
                    non_iid_samples,
                    ..none
                },
                Scheme::Dirichlet => PartitionSpec { concentration: Some(concentration), ..none },
                Scheme::Shards => PartitionSpec { shards: Some(non_iid + 1), ..none },
                Scheme::Iid => PartitionSpec { iid_samples: iid_samples.filter(|_| sized), ..none },
            }
        },
    )
}

fn model_and_clip() -> impl Strategy<Value = (ModelSpec, Clip)> {
    let names = select(vec![ModelName::Cnn, ModelName::Mlp, ModelName::Logistic]);
    let norms = select(vec![Norm::Batch, Norm::Group, Norm::None]);
    let clips = select(vec![Clip::None, Clip::Device, Clip::Sample]);
    (names, norms, clips).prop_map(|(name, norm, clip)| match (name, norm, clip) {
        (ModelName::Cnn, Norm::Batch, Clip::Sample) => (ModelSpec { name, norm }, Clip::Device),
        (ModelName::Cnn, _, _) => (ModelSpec { name, norm }, clip),
        _ => (ModelSpec { name, norm: Norm::None }, clip),
    })
}

/// Sections that go together with the clip and the update; the rest is drawn freely.
fn privacy() -> impl Strategy<Value = (Privacy, Option<Clip>, Option<Update>)> {
    use lapa_privacy::allocate::{Basis, PidError};
    use lapa_privacy::{Adjacency, NoiseKind};
    let allocators = select(vec![
        AllocatorName::None,
        AllocatorName::Uniform,
        AllocatorName::Arb,
        AllocatorName::Lapa,
        AllocatorName::OptimalSplit,
    ]);
    let bases = select(vec![Basis::Paper, Basis::Certified]);
    let entropies = select(vec![Entropy::Seed, Entropy::Os]);
    let errors = select(vec![PidError::Raw, PidError::Relative, PidError::Debiased]);
    let ledgers = select(vec![None, Some("a \"b\"\\c.db"), Some("ledger.db")]);
    let numbers = (1e-3..=1e6f64, 1e-18..=1e-2f64, any::<bool>(), 0.0..9.0f64, 2..99u32);
    (allocators, bases, entropies, errors, ledgers, numbers).prop_map(
        |(allocator, basis, entropy, error, ledger, (epsilon, delta, by_sigma, pid, window))| {
            let certified = basis == Basis::Certified;
            let (none, lapa) = (allocator == AllocatorName::None, allocator == AllocatorName::Lapa);
            let allocator = match allocator {
                AllocatorName::OptimalSplit if certified => AllocatorName::Uniform,
                other => other,
            };
            let amplified = certified && !none;
            let privacy = Privacy {
                basis,
                allocator,
                epsilon: (!none && !by_sigma).then_some(epsilon),
                delta,
                initial_sigma: (!none && by_sigma).then_some(epsilon),
                sampling: match amplified {
                    true => BatchSampling::Poisson,
                    false => BatchSampling::Fixed,
                },
                adjacency: match amplified {
                    true => Adjacency::ZeroOut,
                    false => Adjacency::ReplaceOne,
                },
                noise: NoiseKind::Gaussian,
                entropy,
                ledger: ledger.map(Into::into),
                pid_proportional: lapa.then_some(pid),
                pid_integral: lapa.then_some(pid / 2.0),
                pid_window: lapa.then_some(window),
                pid_error: lapa.then_some(error),
                decay: lapa.then_some(pid + 0.1),
            };
            let clip = match (none, certified) {
                (true, _) => None,
                (false, true) => Some(Clip::Sample),
                (false, false) => Some(Clip::Device),
            };
            (privacy, clip, amplified.then_some(Update::Gradient))
        },
    )
}

fn experiments() -> impl Strategy<Value = Experiment> {
    let data = select(vec!["mnist", "fashion-mnist", "synthetic", "idx:a \"b\"\\c\n"]);
    let words = (
        select(vec![Profile::Certified, Profile::Paper]),
        select(vec![Update::Gradient, Update::Epoch]),
        select(vec![ObserveDevices::List, ObserveDevices::Summary]),
    );
    let numbers = (1e-6..=1.0f64, 1e-9..1e9f64, 0.0..1.0f64, 1e-9..1e9f64);
    (run(), data, partition(), model_and_clip(), words, numbers, privacy()).prop_map(
        |(
            run,
            data,
            partition,
            (mut model, mut clip),
            (profile, mut update, devices),
            numbers,
            (privacy, needed_clip, needed_update),
        )| {
            clip = needed_clip.unwrap_or(clip);
            update = needed_update.unwrap_or(update);
            if clip == Clip::Sample && model.norm == Norm::Batch {
                model.norm = Norm::Group;
            }
            Experiment {
                profile,
                run,
                data: Data { name: DataName::try_from(data.to_owned()).unwrap() },
                partition,
                model,
                learn: Learn {
                    update,
                    batch_fraction: numbers.0,
                    learning_rate: numbers.1,
                    momentum: numbers.2,
                    averaging: numbers.2 / 2.0,
                    clip,
                    clip_norm: (clip != Clip::None).then_some(numbers.3),
                },
                privacy,
                observe: Observe { devices },
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn written_experiments_read_back_the_same(experiment in experiments()) {
        let text = experiment.to_toml();
        prop_assert_eq!(read(&text).unwrap(), experiment, "{}", text);
    }

    #[test]
    fn no_text_panics(
        text in "(\\[?(run|learn|x)\\]?[.=\n]?(rounds|clip|labels)? ?= ?[-0-9\\[\\]{}\"a-z.ü]{0,6}\n?){0,4}"
    ) {
        if let Err(error) = read(&text) {
            prop_assert!(error.to_string().starts_with("lapa.toml:"));
        }
        if let Ok(flag) = Override::parse(&text) {
            let _ = Experiment::from_toml("", "lapa.toml", &[flag]);
        }
    }
}
