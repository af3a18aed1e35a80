//! Memory of a simulation, counted before any of it is taken.

use crate::config::{BatchSampling, Experiment, MANY_DEVICES, Update};
use crate::error::{FederationError, Result, TooLarge};
use crate::model::{EVALUATION_BLOCK, Network, Shape};
use crate::station::reader_of_updates;

use super::devices::BLOCK;

/// Most bytes for the model, the updates of a round and the threads' buffers: 8 GiB.
const MOST_BYTES: u64 = 8 << 30;

/// Worker threads that have something to do: 0 is one per core, and more than there are devices and
/// blocks of test images would idle.
pub(crate) fn threads(experiment: &Experiment, devices: usize, test_images: usize) -> usize {
    let threads = match experiment.run.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    threads.min(devices.max(test_images.div_ceil(EVALUATION_BLOCK)).max(1))
}

/// Updates of a round that are in memory at a time: all of them if something reads them, else a block.
pub(crate) fn updates(experiment: &Experiment, devices: usize, threads: usize) -> usize {
    let all = experiment.taking_part(devices);
    if reader_of_updates(experiment).is_some() || all < MANY_DEVICES {
        all
    } else {
        all.min(BLOCK * threads)
    }
}

/// Fails where the model, the updates of a round and the buffers are beyond [`MOST_BYTES`].
///
/// `shape` is that of the images, and the classes; `largest` are the samples of the device with the
/// most, 0 where no device is trained here; `updates` are in memory at a time; `images` are
/// at most in one split of the data.
pub(crate) fn check_memory(
    experiment: &Experiment,
    (shape, classes): (Shape, usize),
    network: &Network,
    largest: u32,
    updates: usize,
    threads: usize,
    images: usize,
) -> Result<()> {
    let q = network.parameter_count() as u64;
    let on_grid = experiment.grid()?.is_some();
    let batch = if on_grid { largest.min(1) as usize } else { largest_batch(experiment, largest) };
    let footprint = network.footprint();
    let evaluated = match network.statistics_count() {
        0 => 1,
        // Batch norm takes its statistics from whole blocks.
        _ => EVALUATION_BLOCK.min(images),
    };
    // Parameters, velocity, average, gradient and a copy; 32-bit updates, and 64-bit sums on a
    // grid; weights, gradient and sums of each thread.
    let bytes = |copies: u64, each: u64| q.saturating_mul(each).saturating_mul(copies);
    let model_bytes = bytes(5, 4);
    let update_bytes = bytes(updates as u64, if on_grid { 12 } else { 4 });
    // Devices and base station have buffers of their own.
    let buffer_bytes = footprint
        .of_batch(batch)
        .saturating_add(footprint.of_batch(evaluated))
        .saturating_add(bytes(1, 16))
        .saturating_mul(threads as u64);
    let needed = model_bytes.saturating_add(update_bytes).saturating_add(buffer_bytes);
    if needed <= MOST_BYTES {
        return Ok(());
    }
    Err(FederationError::TooLarge(Box::new(TooLarge {
        model: experiment.model.name,
        shape,
        classes,
        parameters: q,
        model_bytes,
        updates,
        reader: reader_of_updates(experiment).filter(|_| updates > 1),
        update_bytes,
        batch,
        threads,
        buffer_bytes,
        needed,
        allowed: MOST_BYTES,
    })))
}

/// Size of the largest batch of a device with `samples` samples. Poisson batches are larger with
/// a probability below 10⁻¹⁵ (Bernstein's inequality).
fn largest_batch(experiment: &Experiment, samples: u32) -> usize {
    let (learn, all) = (&experiment.learn, samples as usize);
    let mean = learn.batch_fraction * f64::from(samples);
    match (learn.update, experiment.learn.sampling) {
        // In equal batches, as `Learner` cuts them.
        (Update::Epoch, _) => all.div_ceil((1.0 / learn.batch_fraction).round().max(1.0) as usize),
        (_, BatchSampling::Full) => all,
        (_, BatchSampling::Fixed) => (mean.ceil() as usize + 1).min(all),
        (_, BatchSampling::Poisson) => ((mean + 9.0 * mean.sqrt() + 25.0).ceil() as usize).min(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ModelName, Override};
    use crate::model::Layer;
    use crate::model::{cnn, logistic, mlp, resnet8};

    fn experiment(changes: &[&str]) -> Experiment {
        let changes: Vec<_> =
            changes.iter().map(|change| Override::parse(change).unwrap()).collect();
        Experiment::from_toml("", "", &changes).unwrap()
    }

    fn check(layers: &[Layer], rows: usize, cols: usize, load: (u32, usize)) -> Option<TooLarge> {
        let shape = Shape::new(1, rows, cols);
        let network = Network::new(shape, layers).unwrap();
        let (largest, updates) = load;
        let experiment = experiment(&["learn.sampling=full"]);
        match check_memory(&experiment, (shape, 10), &network, largest, updates, 2, 300) {
            Ok(()) => None,
            Err(FederationError::TooLarge(error)) => Some(*error),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn models_are_refused_with_their_numbers() {
        let group = crate::config::Norm::Group;
        assert_eq!(check(&cnn(group, 10), 28, 28, (60_000, 60_000)), None);
        assert_eq!(check(&cnn(group, 10), 512, 512, (10, 15)), None);
        // 508·508·10 floats of the first convolution alone are 10 MB for each image.
        let error = check(&cnn(group, 10), 512, 512, (4000, 15)).unwrap();
        assert!(error.buffer_bytes > 2 * 4000 * 10_000_000, "{error}");
        // Two images of half a gigapixel: 215 GB of weights.
        let error = check(&mlp(10), 16384, 32768, (2, 1)).unwrap();
        assert_eq!(error.parameters, 16384 * 32768 * 100 + 100 + 1010);
        assert!(error.needed > 4 * error.parameters, "{error}");
        let text = error.to_string();
        for part in
            ["16384×32768", "10 classes", "53687092310 parameters", "8589934592 are allowed"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(check(&cnn(group, 10), 16384, 32768, (2, 1)).is_some());
        assert!(check(&logistic(10), 512, 512, (1, 4096)).is_some());
        // 128·128·16 floats, and their gradients, of each of the first ten layers.
        assert_eq!(check(&resnet8(group, 10), 128, 128, (10, 15)), None);
        let many = check(&resnet8(group, 10), 128, 128, (4000, 15)).unwrap();
        assert!(many.buffer_bytes > 2 * 4000 * 10 * 8 * 16 * 128 * 128, "{many}");
        assert_eq!(error.model, ModelName::Cnn, "as configured");
    }

    #[test]
    fn threads_without_work_are_not_started() {
        let experiment = experiment(&["run.threads=1024"]);
        assert_eq!(threads(&experiment, 15, 10_000), 40);
        assert_eq!(threads(&experiment, 2000, 10_000), 1024);
        assert_eq!(threads(&experiment, 0, 0), 1);
    }
}
