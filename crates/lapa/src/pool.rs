//! Worker threads, and how work is dealt to them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::schedule;

/// Worker threads, each with scratch memory of its own.
pub(crate) struct Pool<T> {
    scratch: Vec<Mutex<T>>,
    threads: Threads,
}

/// Worker threads that several pools may share: only one of them works at a time.
pub(crate) type Threads = Arc<rayon::ThreadPool>;

/// Starts this many worker threads.
pub(crate) fn start(threads: usize) -> Result<Threads, PoolError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map(Arc::new).map_err(|source| PoolError { threads, source })
}

impl<T: Send> Pool<T> {
    /// A pool on these threads, each with memory made by `scratch`.
    pub fn new(threads: Threads, scratch: impl FnMut() -> T) -> Self {
        let count = threads.current_num_threads();
        let scratch = std::iter::repeat_with(scratch).take(count).map(Mutex::new).collect();
        Self { scratch, threads }
    }

    /// Worker threads.
    pub fn threads(&self) -> usize {
        self.scratch.len()
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
