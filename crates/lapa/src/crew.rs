//! The threads of a federation, and how work is dealt to them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::learn::Learner;
use crate::model::{Network, Worker};
use crate::schedule;

/// Worker threads, each with the memory of one learner.
pub(crate) struct Crew {
    learners: Vec<Mutex<Learner>>,
    pool: rayon::ThreadPool,
}

impl Crew {
    /// As many threads, 0 for one per core.
    pub fn new(threads: usize, network: &Arc<Network>) -> Result<Self, CrewError> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|source| CrewError { threads, source })?;
        let learner = |_| Mutex::new(Learner::new(Worker::new(network.clone())));
        Ok(Self { learners: (0..threads).map(learner).collect(), pool })
    }

    pub fn threads(&self) -> usize {
        self.learners.len()
    }

    /// Does `work` for each slot, the large ones first; the results in the order of the slots, or
    /// the error of the first slot that has one.
    pub fn for_each<T: Send, E: Send>(
        &self,
        sizes: &[usize],
        work: impl Fn(&mut Learner, usize) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        let order = schedule::order(sizes, self.learners.len());
        let results: Vec<Mutex<Option<Result<T, E>>>> =
            sizes.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        self.pool.broadcast(|thread| {
            let mut learner = lock(&self.learners[thread.index()]);
            while let Some(&slot) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                *lock(&results[slot]) = Some(work(&mut learner, slot));
            }
        });
        let results = results.into_iter().map(unlock);
        // Every slot is in the order once, so each has its result.
        results.flatten().collect()
    }
}

/// No threads.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {threads} threads: {source}")]
pub struct CrewError {
    /// How many were asked for.
    pub threads: usize,
    /// The reason.
    source: rayon::ThreadPoolBuildError,
}

/// Locks; a poisoned lock only means that another thread panicked, which rayon passes on.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unlock<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
