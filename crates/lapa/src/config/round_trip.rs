//! Property tests: what is written reads back the same, and no text panics.

use super::*;
use crate::data::DataName;
use crate::station::aggregate::GroundMetric;
use lapa_wireless::fading::Fading;
use lapa_wireless::noma::Receiver;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

fn read(text: &str) -> Result<Experiment, ConfigError> {
    Experiment::from_toml(text, "lapa.toml", &[])
}

fn run() -> impl Strategy<Value = Run> {
    (1..=1_000_000u32, any::<u64>(), 0..=1024usize, 1e-9..=1.0f64, 1..99u32, 1..99u32).prop_map(
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
    let starts = select(vec![Start::Random, Start::Digits]);
    (names, norms, clips, starts).prop_map(|(name, norm, clip, start)| match (name, norm, clip) {
        (ModelName::Cnn, Norm::Batch, Clip::Sample) => {
            (ModelSpec { name, norm, start }, Clip::Device)
        }
        (ModelName::Cnn, _, _) => (ModelSpec { name, norm, start }, clip),
        _ => (ModelSpec { name, norm: Norm::None, start }, clip),
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
                budget_share: None,
                channel_trust: 0.0,
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

fn radio() -> impl Strategy<Value = Radio> {
    let fadings = select(vec![Fading::Rayleigh, Fading::Independent, Fading::None]);
    let place = || -1e6..=1e6f64;
    let span = || (-9e5..=9e5f64, 0.0..=1e5f64).prop_map(|(min, more)| [min, min + more]);
    let region = (span(), span(), 1..=u32::MAX);
    let regions = prop::collection::vec(region, 1..4).prop_map(|regions| {
        regions.into_iter().map(|(x, y, devices)| RegionSpec { x, y, devices }).collect()
    });
    let numbers = (1..=1024u32, 1e3..=1e12f64, 1.0..=10.0f64, -100.0..=100.0f64, 1e-25..=1.0f64);
    ([place(), place(), place()], regions, fadings, any::<u32>(), numbers).prop_map(
        |(base_station, regions, fading, redraw_every, (antennas, carrier_hz, p, gain, noise))| {
            Radio {
                base_station,
                positions: None,
                antennas,
                carrier_hz,
                path_loss_exponent: p,
                base_gain_dbi: gain,
                device_gain_dbi: -gain / 2.0,
                noise_power_w: noise,
                fading,
                redraw_every,
                regions: Some(regions),
            }
        },
    )
}

/// Digital where updates may be unclipped; and channel noise is never counted here.
fn transmit() -> impl Strategy<Value = Transmit> {
    let uplinks = select(vec![UplinkName::Ideal, UplinkName::Digital, UplinkName::Signal]);
    let accesses = select(vec![Access::Noma, Access::Orthogonal]);
    let receivers = select(vec![Receiver::Matched, Receiver::ZeroForcing, Receiver::Mmse]);
    let modulations =
        select(vec![ModulationName::Bpsk, ModulationName::Qpsk, ModulationName::Qam64]);
    let words = (uplinks, accesses, receivers, modulations, any::<bool>());
    (words, 0.0..=1e6f64, 1.0..=1e12f64, 1..=16u32, 1e-9..=1e9f64).prop_map(
        |(
            (uplink, access, receiver, modulation, perfect_sic),
            power,
            symbol_rate_hz,
            bits,
            range,
        )| {
            let digital = uplink != UplinkName::Ideal;
            let interferes = access == Access::Noma && !perfect_sic;
            let symbols = (uplink == UplinkName::Signal).then_some(SymbolKind::Digital);
            Transmit {
                uplink,
                power_w: Powers::All(power),
                max_power_w: power.max(1e-12),
                access,
                receiver: if interferes { receiver } else { Receiver::Matched },
                perfect_sic: !interferes,
                modulation,
                symbol_rate_hz,
                symbols,
                bits: digital.then_some(bits),
                range: digital.then_some(range),
            }
        },
    )
}

fn aggregate() -> impl Strategy<Value = Aggregate> {
    let rules = select(vec![Rule::Fedavg, Rule::Fedadp, Rule::Wasserstein, Rule::NoiseAware]);
    let metrics = select(vec![GroundMetric::TotalVariation, GroundMetric::LabelDistance]);
    let none = select(vec![NoneSelected::Skip, NoneSelected::Error]);
    (rules, metrics, none, 1e-3..=100.0f64, 1e-12..=1.0f64, 0..3).prop_map(
        |(rule, metric, none_selected, floor, ser, which)| {
            let wasserstein = rule == Rule::Wasserstein;
            Aggregate {
                rule,
                metric: wasserstein.then_some(metric),
                floor: wasserstein.then_some(floor),
                noise_weight: (rule == Rule::NoiseAware).then_some(floor),
                histograms: rule.reads_labels().then_some(Histograms::Public),
                histogram_share: None,
                ser_threshold: (which == 1).then_some(ser),
                sinr_threshold_db: (which == 2).then_some(floor),
                none_selected,
            }
        },
    )
}

/// No noise of the channel is counted here, so artificial noise is always there.
fn control() -> impl Strategy<Value = Control> {
    let powers = select(vec![PowerChoice::File, PowerChoice::Equal, PowerChoice::Full]);
    let pilots = select(vec![Pilot::Synthetic, Pilot::Private]);
    let bounds = select(vec![BoundForm::Corrected, BoundForm::Printed]);
    let shares = (0.0..0.9f64, 1e-9..=1.0f64, 1e-9..=1.0f64);
    (powers, pilots, bounds, 1e-12..1e9f64, 1..=4096u32, shares).prop_map(
        |(power, pilot, bound, number, count, (share, rate, soft_update))| Control {
            noise: NoiseControl::Always,
            switch_rule: None,
            power,
            total_power_w: number,
            least_power_w: 0.0,
            pilot,
            pilot_share: (pilot == Pilot::Private).then_some(share.max(0.02)),
            evaluation: EvaluationChoice::Trace,
            bound,
            smoothness: number.max(1e-9),
            convexity: rate,
            dissimilarity: 1.0 + share,
            evaluations: count,
            episodes: count,
            steps: 2 * count,
            hidden: count,
            batch: count,
            discount: share,
            soft_update,
            actor_rate: rate,
            critic_rate: soft_update,
        },
    )
}

fn experiments() -> impl Strategy<Value = Experiment> {
    let idx = "idx:a \"b\"\\c\n";
    let data = select(vec![
        ("mnist", None),
        ("fashion-mnist", None),
        ("synthetic", None),
        (idx, None),
        (idx, Some(256)),
    ]);
    let words = (
        select(vec![Profile::Certified, Profile::Paper]),
        select(vec![Update::Gradient, Update::Epoch]),
        select(vec![ObserveDevices::List, ObserveDevices::Summary]),
    );
    let numbers = (1e-6..=1.0f64, 1e-9..1e9f64, 0.0..1.0f64, 1e-9..1e9f64);
    let air = (radio(), transmit(), aggregate(), control());
    (run(), data, partition(), model_and_clip(), words, numbers, privacy(), air).prop_map(
        |(
            run,
            data,
            partition,
            (mut model, mut clip),
            (profile, mut update, devices),
            numbers,
            (privacy, needed_clip, needed_update),
            (radio, mut transmit, aggregate, mut control),
        )| {
            clip = needed_clip.unwrap_or(clip);
            update = needed_update.unwrap_or(update);
            if data.0 == "synthetic" {
                model.start = Start::Random;
            }
            if clip == Clip::Sample && model.norm == Norm::Batch {
                model.norm = Norm::Group;
            }
            if control.power != PowerChoice::File {
                let average = control.total_power_w / f64::from(partition.devices);
                transmit.power_w = Powers::All(average.min(transmit.max_power_w));
            }
            // A pilot needs a budget that it is a part of.
            let divides = privacy.basis == lapa_privacy::allocate::Basis::Certified
                && privacy.initial_sigma.is_none()
                && privacy.adjacency != lapa_privacy::Adjacency::ReplaceOne;
            if !divides {
                (control.pilot, control.pilot_share) = (Pilot::Synthetic, None);
            }
            Experiment {
                profile,
                run,
                data: Data {
                    name: DataName::try_from(data.0.to_owned()).unwrap(),
                    classes: data.1,
                },
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
                radio,
                transmit,
                aggregate,
                control,
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
