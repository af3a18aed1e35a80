mod devices;

use super::*;
use crate::seed::Stream;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;

/// Labels of MNIST's training set, in an order that is not sorted.
fn mnist() -> Vec<u8> {
    let mut left = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    let mut labels = Vec::new();
    while left.iter().any(|&n| n > 0) {
        for (label, left) in (0..).zip(&mut left) {
            if *left > 0 {
                *left -= 1;
                labels.push(label);
            }
        }
    }
    labels
}

fn mix(iid: u32, non_iid: u32, labels: [u32; 2], sizes: [[u32; 2]; 2]) -> Mix {
    let [iid_samples, non_iid_samples] = sizes;
    Mix { iid, non_iid, labels, iid_samples, non_iid_samples }
}

fn dirichlet(devices: u32, concentration: f64) -> Dirichlet {
    Dirichlet { devices, concentration }
}

fn iid(devices: u32) -> Iid {
    Iid { devices, ..Iid::default() }
}

const LARGE: [[u32; 2]; 2] = [[3000, 5000]; 2];
const SMALL: [[u32; 2]; 2] = [[100, 200], [150, 400]];

fn held(device: &DeviceData) -> Vec<usize> {
    (0..device.label_counts.len()).filter(|&label| device.label_counts[label] > 0).collect()
}

fn sizes(partition: &Partition) -> Vec<usize> {
    partition.devices.iter().map(|device| device.samples.len()).collect()
}

/// Promises of every partition: disjoint, ascending, in range, counted right.
fn check_sound(partition: &Partition, labels: &[u8], classes: usize) {
    let mut seen = vec![false; labels.len()];
    for device in &partition.devices {
        let mut counts = vec![0; classes];
        assert!(device.samples.is_sorted());
        for &sample in &device.samples {
            assert!(!std::mem::replace(&mut seen[sample as usize], true), "shared {sample}");
            counts[usize::from(labels[sample as usize])] += 1;
        }
        assert_eq!(counts, device.label_counts);
    }
}

/// Promises of a mix besides.
fn check_mix(partition: &Partition, spec: &Mix) {
    let iid = spec.iid as usize;
    let within = |n: usize, [min, max]: [u32; 2]| (min as usize..=max as usize).contains(&n);
    assert_eq!(partition.devices.len(), spec.devices() as usize);
    for (k, device) in partition.devices.iter().enumerate() {
        assert_eq!(device.iid, Some(k < iid));
        if k < iid {
            assert!(within(device.samples.len(), spec.iid_samples));
        } else {
            assert!(within(device.samples.len(), spec.non_iid_samples));
            assert!(within(held(device).len(), spec.labels));
        }
    }
}

#[test]
fn the_paper_s_mixes_fit_mnist_for_200_seeds() {
    let labels = mnist();
    for (iid, non_iid) in [(3, 12), (5, 10), (7, 8), (9, 6), (0, 15), (15, 0)] {
        let spec = mix(iid, non_iid, [1, 2], LARGE);
        for seed in 0..200 {
            let partition = partition(&spec, &labels, 10, seed).unwrap();
            check_sound(&partition, &labels, 10);
            check_mix(&partition, &spec);
            // 15 uniform sizes have mean 60,000 and deviation 2236 before they are shrunk.
            assert!(sizes(&partition).iter().sum::<usize>() > 52_000, "{iid}+{non_iid} {seed}");
        }
    }
}

#[test]
fn small_devices_keep_the_sizes_they_drew() {
    let labels = mnist();
    let mut all: [Vec<usize>; 2] = Default::default();
    for seed in 0..300 {
        let spec = mix(5, 10, [1, 2], SMALL);
        let partition = partition(&spec, &labels, 10, seed).unwrap();
        check_sound(&partition, &labels, 10);
        check_mix(&partition, &spec);
        for (device, size) in partition.devices.iter().zip(sizes(&partition)) {
            all[usize::from(device.iid == Some(false))].push(size);
            if device.iid == Some(true) {
                let counts = &device.label_counts;
                assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
            }
        }
    }
    // Uniform draws, not shrunk: the mean is within four standard errors of the middle.
    for (sizes, [min, max]) in all.iter().zip(SMALL) {
        let n = sizes.len() as f64;
        let mean = sizes.iter().sum::<usize>() as f64 / n;
        let error = f64::from(max - min) / 12f64.sqrt() / n.sqrt();
        assert!((mean - f64::from(min + max) / 2.0).abs() < 4.0 * error, "{mean}");
        assert_eq!(sizes.iter().max(), Some(&(max as usize)));
    }
}

#[test]
fn small_non_iid_devices_choose_labels_uniformly_and_split_them_by_dirichlet_5() {
    let labels = mnist();
    let mut holders = [0.0; 10];
    let mut one_label = 0.0;
    let mut squares = Vec::new();
    let mut sets = BTreeSet::new();
    for seed in 0..400 {
        let partition = partition(&mix(5, 10, [1, 2], SMALL), &labels, 10, seed).unwrap();
        let few = &partition.devices[5..];
        sets.insert(few.iter().map(held).collect::<Vec<_>>());
        for device in few {
            held(device).iter().for_each(|&label| holders[label] += 1.0);
            match held(device)[..] {
                [_] => one_label += 1.0,
                [first, _] => {
                    let n = device.samples.len() as f64;
                    squares.push((f64::from(device.label_counts[first]) / n - 0.5).powi(2));
                }
                _ => unreachable!(),
            }
        }
    }
    assert_eq!(sets.len(), 400, "every seed chooses its own labels");
    // 4000 devices: half of them with one label (standard error 32).
    assert!((one_label - 2000.0f64).abs() < 128.0, "{one_label}");
    let expected = holders.iter().sum::<f64>() / 10.0;
    let chi_square: f64 = holders.iter().map(|n| (n - expected).powi(2) / expected).sum();
    assert!(chi_square < 27.9, "0.1 % quantile with 9 degrees of freedom; {chi_square}");
    // Beta(5, 5) has variance 1/44.
    let variance = squares.iter().sum::<f64>() / squares.len() as f64;
    assert!((variance - 1.0 / 44.0).abs() < 0.003, "{variance}");
}

#[test]
fn without_iid_devices_the_labels_are_covered() {
    for seed in 0..50 {
        let partition = partition(&mix(0, 10, [1, 2], SMALL), &mnist(), 10, seed).unwrap();
        let union: BTreeSet<usize> = partition.devices.iter().flat_map(held).collect();
        assert_eq!(union.len(), 10);
    }
}

#[test]
fn a_mix_may_use_every_sample() {
    let labels: Vec<u8> = (0..6000).map(|i| (i % 10) as u8).collect();
    let one_each = mix(0, 10, [1, 1], [[600, 600]; 2]);
    let all_equal = mix(7, 0, [1, 1], [[857, 857], [1, 1]]);
    for (spec, used) in [(one_each, 6000), (all_equal, 5999)] {
        let partition = partition(&spec, &labels, 10, 1).unwrap();
        check_sound(&partition, &labels, 10);
        check_mix(&partition, &spec);
        assert_eq!(sizes(&partition).iter().sum::<usize>(), used);
    }
}

#[test]
fn dirichlet_shares_have_the_right_spread() {
    let labels = mnist();
    let (devices, c) = (10.0, 0.5);
    let spec = dirichlet(10, c);
    let mut squares = Vec::new();
    for seed in 0..200 {
        let partition = partition(&spec, &labels, 10, seed).unwrap();
        check_sound(&partition, &labels, 10);
        assert_eq!(sizes(&partition).iter().sum::<usize>(), 60_000);
        for device in &partition.devices {
            assert_eq!(device.iid, None);
            squares.push((f64::from(device.label_counts[5]) / 5421.0).powi(2));
        }
    }
    // E[p²] of a symmetric Dirichlet distribution.
    let expected = (c + 1.0) / (devices * (devices * c + 1.0));
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    assert!((mean / expected - 1.0).abs() < 0.15, "{mean} {expected}");
}

/// As it was before hopeless draws ended early: a thousand draws, whatever they leave empty.
fn patient_dirichlet(spec: &Dirichlet, supply: &[u32], rng: &mut Stream) -> Option<Plan> {
    use rand_distr::Distribution;
    let devices = spec.devices as usize;
    let concentrations = vec![spec.concentration; devices];
    let shares = rand_distr::multi::Dirichlet::new(&concentrations).unwrap();
    for _ in 0..1000 {
        let mut plan = vec![vec![0; supply.len()]; devices];
        for (label, &n) in supply.iter().enumerate() {
            let (mut sum, mut start) = (0.0, 0);
            for (device, share) in shares.sample(rng).into_iter().enumerate() {
                sum += share;
                let end = ((sum * f64::from(n)).round() as u32).clamp(start, n);
                plan[device][label] = end - start;
                start = end;
            }
            plan[devices - 1][label] += n - start;
        }
        if plan.iter().all(|counts| counts.iter().any(|&count| count > 0)) {
            return Some(plan);
        }
    }
    None
}

/// Wherever a plan was found it is the same, and so is every draw that follows.
#[test]
fn dirichlet_plans_are_those_of_a_thousand_patient_draws() {
    let supply = [400; 10];
    let mut found = 0;
    for devices in [2, 50, 300, 600, 900, 2000] {
        for seed in 0..4 {
            let spec = dirichlet(devices, 0.5);
            let [mut ours, mut theirs] = [0; 2].map(|_| stream(seed, Purpose::Partition, 0, 0));
            let plan = spec.plan(&supply, &mut ours).ok();
            assert_eq!(plan, patient_dirichlet(&spec, &supply, &mut theirs), "{devices} {seed}");
            if plan.is_some() {
                use rand::Rng;
                assert_eq!(ours.next_u64(), theirs.next_u64());
                found += 1;
            }
        }
    }
    assert!((8..24).contains(&found), "some are found, some are not: {found}");
}

#[test]
fn hopeless_dirichlet_partitions_are_refused_after_a_draw() {
    let spec = dirichlet(59_999, 0.5);
    let error = partition(&spec, &mnist(), 10, 0).unwrap_err();
    assert!(matches!(error, PartitionError::EmptyDevice { draws: 1, .. }), "{error}");
}

#[test]
fn extreme_concentrations_do_not_panic() {
    for c in [5e-324, 1e-300, 1e-30, 1e-6, 1e6, 1e30, 1e300, f64::MAX] {
        let spec = dirichlet(3, c);
        if let Ok(partition) = partition(&spec, &mnist(), 10, 0) {
            assert_eq!(sizes(&partition).iter().sum::<usize>(), 60_000);
        }
    }
}

#[test]
fn shards_hold_at_most_as_many_labels_as_shards() {
    let labels: Vec<u8> = (0..6000).map(|i| (i % 10) as u8).collect();
    let spec = Shards { devices: 15, per_device: 2 };
    for seed in 0..50 {
        let partition = partition(&spec, &labels, 10, seed).unwrap();
        check_sound(&partition, &labels, 10);
        // 30 shards of 200 do not straddle labels of 600.
        assert!(partition.devices.iter().all(|device| held(device).len() <= 2));
        assert_eq!(sizes(&partition), [400; 15]);
    }
}

#[test]
fn iid_devices_share_the_training_set_equally() {
    let labels = mnist();
    let partition = partition(&iid(7), &labels, 10, 4).unwrap();
    check_sound(&partition, &labels, 10);
    let sizes = sizes(&partition);
    assert_eq!(sizes.iter().sum::<usize>(), 60_000);
    assert!(sizes.iter().all(|&size| size == 8571 || size == 8572));
    assert!(partition.devices.iter().all(|device| device.iid == Some(true)));
    // Hypergeometric counts: mean 60000 p / 7, deviation below √mean.
    for device in &partition.devices {
        let mean: f64 = 5421.0 / 7.0;
        assert!((f64::from(device.label_counts[5]) - mean).abs() < 5.0 * mean.sqrt());
    }
}

#[test]
fn rows_show_the_partition() {
    let labels = [0, 1, 1, 0, 1, 0];
    let partition = partition(&mix(1, 1, [1, 1], [[4, 4], [1, 1]]), &labels, 2, 0).unwrap();
    let records = Records::Dealt(partition);
    let rows = [0, 1].map(|device| records.row(device, &labels, 2));
    assert_eq!((rows[0].device, rows[0].kind, rows[0].samples), (0, "iid", 4));
    assert_eq!(rows[0].label_counts, [2, 2]);
    assert_eq!((rows[1].device, rows[1].kind, rows[1].samples), (1, "non-iid", 1));
}

#[test]
fn refusals_give_the_numbers() {
    let refuses = |spec: &dyn PartitionScheme, expected: &str| {
        assert_eq!(partition(spec, &mnist(), 10, 0).unwrap_err().to_string(), expected);
    };
    refuses(&iid(0), "the partition has no devices: at least 1 is needed");
    refuses(
        &iid(60_001),
        "`partition.iid.devices` = 60001: expected at most 60000, the number of training samples, \
         since every device needs one of its own; use fewer devices, or partition.scheme = \"virtual\", \
         whose devices share records",
    );
    refuses(
        &mix(5, 10, [1, 11], LARGE),
        "`partition.mix.labels` requires up to 11 labels, but the data set has 10",
    );
    refuses(
        &mix(5, 10, [3, 4], [[1, 1], [2, 9]]),
        "`partition.mix.labels` requires at least 3 labels, but `partition.mix.non_iid_samples` allows \
         devices of 2 samples",
    );
    refuses(
        &mix(5, 10, [1, 2], [[3000, 5000], [5000, 6000]]),
        "[partition]: the 15 devices need at least 65000 samples in total, but the training set has 60000: lower \
         the number of devices or the minimum of their samples",
    );
    // Only three labels of MNIST hold two devices of 3000, so 13 would fit.
    refuses(
        &mix(0, 15, [1, 1], LARGE),
        "cannot give each of 15 non-IID devices at least 3000 samples of at most 1 \
         labels: next to the 0 IID devices, the 10 labels have 5421 to 6742 samples left. Raise \
         the maximum of `partition.mix.labels`, or lower the minimum of `partition.mix.non_iid_samples` \
         or `partition.mix.iid_samples`, or use fewer devices",
    );
    refuses(
        &dirichlet(500, 0.001),
        "with `partition.dirichlet.concentration` = 0.001, every draw (tried: 2) left some of the 500 devices \
         (`partition.dirichlet.devices`) without any of the 60000 samples: raise the concentration, use \
         fewer devices, or partition.scheme = \"virtual\", whose devices share records",
    );
    refuses(
        &dirichlet(5, f64::NAN),
        "`partition.dirichlet.concentration` = NaN: expected a finite number above 0",
    );
    refuses(
        &Shards { devices: 15, per_device: 6000 },
        "`partition.shards.devices` = 15 with `partition.shards.per_device` = 6000 each: expected at least one \
         shard per device, and no more shards in total than the 60000 training samples; use fewer of either, \
         or partition.scheme = \"virtual\", whose devices share records",
    );
    refuses(
        &Iid { samples: Some([4, 3]), ..iid(5) },
        "`partition.iid.samples` = [4, 3]: expected [min, max] with 1 ≤ min ≤ max",
    );
}

prop_compose! {
    /// Label vectors with possibly scarce or missing labels.
    fn label_vectors()(classes in 1..12usize)(
        labels in prop::collection::vec(0..classes as u8, 1..600),
        classes in Just(classes),
    ) -> (Vec<u8>, usize) {
        (labels, classes)
    }
}

fn ranges(limit: u32) -> impl Strategy<Value = [u32; 2]> {
    (1..=limit, 0..=limit).prop_map(|(min, more)| [min, min + more])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_mix_is_sound_or_refused(
        (labels, classes) in label_vectors(),
        iid in 0..6u32,
        non_iid in 0..6u32,
        held in ranges(3),
        iid_samples in ranges(50),
        non_iid_samples in ranges(50),
        seed: u64,
    ) {
        let spec = mix(iid, non_iid, held, [iid_samples, non_iid_samples]);
        let found = partition(&spec, &labels, classes, seed);
        prop_assert_eq!(&found, &partition(&spec, &labels, classes, seed));
        if let Ok(partition) = found {
            check_sound(&partition, &labels, classes);
            check_mix(&partition, &spec);
        }
    }

    #[test]
    fn the_other_schemes_use_every_sample_and_leave_no_device_empty(
        (labels, classes) in label_vectors(),
        devices in 1..40u32,
        concentration in 0.05..50.0f64,
        shards in 1..4u32,
        seed: u64,
    ) {
        let dirichlet = dirichlet(devices, concentration);
        let shards = Shards { devices, per_device: shards };
        let iid = iid(devices);
        for (spec, is_iid) in [(&dirichlet as &dyn PartitionScheme, false), (&shards, false), (&iid, true)] {
            let found = partition(spec, &labels, classes, seed);
            prop_assert_eq!(&found, &partition(spec, &labels, classes, seed));
            if let Ok(partition) = found {
                check_sound(&partition, &labels, classes);
                prop_assert_eq!(partition.devices.len(), devices as usize);
                prop_assert_eq!(sizes(&partition).iter().sum::<usize>(), labels.len());
                prop_assert!(sizes(&partition).iter().all(|&size| size > 0));
            } else {
                prop_assert!(!is_iid || devices as usize > labels.len());
            }
        }
    }

    #[test]
    fn sized_iid_devices_stay_in_their_range(
        (labels, classes) in label_vectors(),
        devices in 1..20u32,
        [min, max] in ranges(60),
        seed: u64,
    ) {
        let spec = Iid { samples: Some([min, max]), ..iid(devices) };
        let found = partition(&spec, &labels, classes, seed);
        prop_assert_eq!(found.is_ok(), (devices * min) as usize <= labels.len());
        if let Ok(partition) = found {
            check_sound(&partition, &labels, classes);
            let range = min as usize..=max as usize;
            prop_assert!(sizes(&partition).iter().all(|size| range.contains(size)));
        }
    }

    #[test]
    fn another_seed_gives_another_partition(seed: u64) {
        let labels: Vec<u8> = (0..600).map(|i| (i % 10) as u8).collect();
        let specs: [&dyn PartitionScheme; 4] = [
            &mix(2, 2, [1, 2], [[30, 40]; 2]),
            &dirichlet(4, 0.5),
            &Shards { devices: 4, per_device: 2 },
            &iid(4),
        ];
        for spec in specs {
            let other = seed.wrapping_add(1);
            prop_assert_ne!(partition(spec, &labels, 10, seed), partition(spec, &labels, 10, other));
        }
    }
}
