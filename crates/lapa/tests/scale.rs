//! Many devices: large rounds are summed as they arrive, records may be shared.

use lapa::config::{Experiment, Override};
use lapa::data::digits;
use lapa::error::FederationError;
use lapa::observe::DeviceRecords;
use lapa::partition::{PartitionError, Records, Skew, Virtual, partition};
use lapa::simulation::{Setup, Simulation};

fn experiment(changes: &[&str]) -> Experiment {
    let base = [
        "data.name=synthetic",
        "model.name=logistic",
        "run.rounds=3",
        "partition.scheme=virtual",
        "partition.virtual.samples=[10, 30]",
        "privacy.epsilon=8",
    ];
    let all = base.iter().chain(changes).map(|change| Override::parse(change).unwrap());
    Experiment::from_toml("", "", &all.collect::<Vec<_>>()).unwrap()
}

/// Nobody reads single updates, so that the base station sums them as they arrive: the bits are those
/// of a run that keeps them, for any number of threads.
#[test]
fn large_rounds_are_summed_in_the_order_of_the_devices() {
    for more in [
        &["transmit.uplink=ideal"][..],
        &["transmit.uplink=analog", "aggregate.sinr_threshold_db=5"],
        &[
            "transmit.uplink=analog",
            "aggregate.sinr_threshold_db=5",
            "aggregate.below_threshold=weight-zero",
            "aggregate.renormalize=false",
        ],
    ] {
        let run = |threads: &str, keep: bool| {
            let changes = [more, &["partition.virtual.devices=230", threads]].concat();
            let setup = Setup::new(experiment(&changes), digits(2000, 100)).unwrap();
            let setup = if keep { setup.keep_transcript() } else { setup };
            let mut simulation = setup.in_memory().unwrap();
            let mut records: Vec<_> = (0..3).map(|_| simulation.next_round().unwrap()).collect();
            records.iter_mut().for_each(|record| record.seconds = 0.0);
            assert_eq!(simulation.received().is_empty(), !keep, "{more:?}");
            assert!(matches!(records[0].devices, DeviceRecords::Summary(_)));
            (records, simulation.model().clone())
        };
        let kept = run("run.threads=2", true);
        assert!(kept.1.parameters.iter().any(|&w| w != 0.0));
        for threads in ["run.threads=1", "run.threads=2", "run.threads=3"] {
            assert_eq!(run(threads, false), kept, "{more:?}, {threads}");
        }
    }
}

/// Rules and allocators that read updates keep them.
#[test]
fn updates_that_are_read_are_kept() {
    for more in ["aggregate.rule=fedadp", "privacy.allocator=lapa"] {
        let changes = ["partition.virtual.devices=120", more];
        let mut simulation = Simulation::new(experiment(&changes), digits(2000, 100)).unwrap();
        simulation.next_round().unwrap();
        assert_eq!(simulation.received().len(), 120, "{more}");
    }
}

/// A million devices start and train with a few of them a round.
#[test]
fn a_million_devices_are_registered() {
    let changes = ["partition.virtual.devices=1000000", "run.participation=0.00001"];
    let changes = [&changes[..], &["transmit.uplink=analog"]].concat();
    let mut simulation = Simulation::new(experiment(&changes), digits(2000, 100)).unwrap();
    let record = simulation.next_round().unwrap();
    let DeviceRecords::List(list) = &record.devices else { panic!("ten devices are a list") };
    assert_eq!((list.len(), simulation.books().devices()), (10, 1_000_000));
    assert!(simulation.privacy().unwrap().privacy.contains("share the images"));
}

/// Channels are drawn for those who send: the registered devices may be many more than fit at once.
#[test]
fn channels_are_counted_for_those_who_send() {
    let million = ["partition.virtual.devices=1000000", "radio.antennas=1024"];
    let changes = [&million[..], &["transmit.uplink=analog"]].concat();
    let few = [&changes[..], &["run.participation=0.00001"]].concat();
    assert!(Simulation::new(experiment(&few), digits(2000, 100)).is_ok());
    let all = [&changes[..], &["run.participation=0.1"]].concat();
    let error = Simulation::new(experiment(&all), digits(2000, 100)).err().unwrap().to_string();
    for part in ["100000 devices", "102400000 channel", "1.5 GiB", "lower run.participation"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

/// Sizes are uniform, labels by a Dirichlet-multinomial distribution: over K devices of n samples the
/// mean count of a label is n/L, its variance n·p(1 − p)(n + c)/(1 + c)/K with p = 1/L and c = L·α. Six
/// standard deviations for 10 labels and the size: α below 10⁻⁷.
#[test]
fn virtual_devices_draw_sizes_and_labels_as_declared() {
    let mut data = digits(2000, 1);
    let labels = data.train.labels.clone();
    let (devices, n, concentration) = (4000u32, 20u32, 0.4);
    let mut of = |samples: [u32; 2], seed| {
        let scheme = Virtual { devices, samples, concentration };
        Records::new(&scheme, Skew::default(), &mut data, seed).unwrap()
    };
    let records = of([n, n], 3);
    let mut counts = [0u32; 10];
    for device in 0..devices {
        let samples = records.of(device);
        assert!(samples.is_sorted_by(|a, b| a < b) && samples.len() == n as usize);
        let labels = records.label_counts(device, &labels, 10);
        counts.iter_mut().zip(labels).for_each(|(sum, count)| *sum += count);
    }
    let (k, n, p, c) = (f64::from(devices), f64::from(n), 0.1, 10.0 * concentration);
    let deviation = (n * p * (1.0 - p) * (n + c) / (1.0 + c) / k).sqrt();
    for count in counts {
        assert!((f64::from(count) / k - n * p).abs() < 6.0 * deviation, "{counts:?}");
    }
    // Devices draw by themselves: as many again do not change those before them.
    assert_eq!(records.of(7), of([20, 20], 3).of(7));
    assert_ne!(records.of(7), of([20, 20], 4).of(7));
    let ranged = of([10, 30], 3);
    let sizes = ranged.sizes();
    assert!(sizes.iter().all(|size| (10..=30).contains(size)));
    let mean = sizes.iter().map(|&size| f64::from(size)).sum::<f64>() / k;
    assert!((mean - 20.0).abs() < 6.0 * ((21.0f64.powi(2) - 1.0) / 12.0 / k).sqrt(), "{mean}");
}

#[test]
fn shared_records_are_refused_where_each_must_be_on_one_device() {
    let labels: Vec<u8> = (0..100).map(|i| i % 10).collect();
    let scheme = Virtual { samples: [5, 11], ..Virtual::default() };
    assert_eq!(partition(&scheme, &labels, 10, 0), Err(PartitionError::Shared));
    let skew = Skew { noise: Some(0.1), ..Skew::default() };
    let error = Records::new(&scheme, skew, &mut digits(100, 1), 0).unwrap_err();
    assert_eq!(error, PartitionError::SharedSkew);
    let error = Records::new(&scheme, Skew::default(), &mut digits(100, 1), 0).unwrap_err();
    assert_eq!(error, PartitionError::RareLabel { samples: 11, rarest: 10 });
    assert!(error.to_string().contains("`partition.virtual.samples`"), "{error}");
    // Impossible sizes are refused before anything is taken.
    let many = ["partition.virtual.devices=130000", "model.name=cnn", "aggregate.rule=fedadp"];
    let error = Simulation::new(experiment(&many), digits(2000, 100)).err().unwrap();
    let FederationError::TooLarge(error) = error else { panic!("{error}") };
    assert_eq!(error.updates, 130_000);
    let kept = "the updates of 130000 devices at a time (`aggregate.rule` = \"fedadp\" needs each of them)";
    assert!(error.to_string().contains(kept), "{error}");
    let few = ["partition.virtual.devices=130000", "model.name=cnn"];
    assert!(Simulation::new(experiment(&few), digits(2000, 100)).is_ok());
}
