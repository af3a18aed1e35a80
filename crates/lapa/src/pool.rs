//! Worker threads, and how work is dealt to them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::schedule;

/// Worker threads, each with scratch memory of its own.
pub(crate) struct Pool<T> {
    scratch: Vec<Mutex<T>>,
    threads: rayon::ThreadPool,
}

impl<T: Send> Pool<T> {
    /// A pool of `threads`, each with memory made by `scratch`.
    pub fn new(threads: usize, scratch: impl FnMut() -> T) -> Result<Self, PoolError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|source| PoolError { threads, source })?;
        let scratch = std::iter::repeat_with(scratch).take(threads).map(Mutex::new).collect();
        Ok(Self { scratch, threads: pool })
    }

    /// Does `work` for each slot, the large ones first; the results in the order of the slots, or
    /// the error of the first slot that has one.
    pub fn for_each<R: Send, E: Send>(
        &self,
        sizes: &[usize],
        work: impl Fn(&mut T, usize) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let order = schedule::order(sizes, self.scratch.len());
        let results: Vec<Mutex<Option<Result<R, E>>>> =
            sizes.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        self.threads.broadcast(|thread| {
            let mut scratch = lock(&self.scratch[thread.index()]);
            while let Some(&slot) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                *lock(&results[slot]) = Some(work(&mut scratch, slot));
            }
        });
        let unlock = |result: Mutex<_>| result.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Every slot is in the order once, so each has its result.
        results.into_iter().filter_map(unlock).collect()
    }
}

/// Failure to start threads.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {threads} threads: {source}")]
pub struct PoolError {
    /// The number asked for.
    pub threads: usize,
    /// The reason.
    source: rayon::ThreadPoolBuildError,
}

/// Locks; a poisoned lock only means that another thread panicked, which rayon passes on.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
