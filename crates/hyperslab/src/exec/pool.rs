//! Threads: made at the first read that wants them, bounded, and made anew in a forked child.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

/// Threads that one read uses by default: `HYPERSLAB_NUM_THREADS`, or as many as the process may use (affinity and
/// container limits counted).
pub(super) fn default_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        std::env::var("HYPERSLAB_NUM_THREADS")
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .filter(|&n| n > 0)
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    })
}

/// The helpers of this process. The thread that reads always works itself, so there is one helper less than threads.
struct Helpers {
    process: u32,
    pool: ThreadPool,
    /// Helpers without work. Only these are called, so that no read waits for another one's work to end.
    idle: AtomicUsize,
}

static HELPERS: RwLock<Option<Arc<Helpers>>> = RwLock::new(None);

/// The helpers, made if there are none. `None`: there cannot be any, or somebody is making them right now, perhaps in
/// the process that this one was forked from.
fn helpers() -> Option<Arc<Helpers>> {
    let process = std::process::id();
    if let Some(known) = HELPERS.try_read().ok()?.as_ref().filter(|h| h.process == process) {
        return Some(known.clone());
    }
    let count = default_threads().saturating_sub(1);
    if count == 0 {
        return None;
    }
    let mut slot = HELPERS.try_write().ok()?;
    let pool =
        ThreadPoolBuilder::new().num_threads(count).thread_name(|i| format!("hyperslab-{i}")).build().ok()?;
    let new = Arc::new(Helpers { process, pool, idle: AtomicUsize::new(count) });
    if let Some(old) = slot.replace(new.clone()) {
        // Its threads live in the parent process only: waiting for them would never end.
        std::mem::forget(old);
    }
    Some(new)
}

/// Runs `work` in the calling thread and in up to `threads - 1` others at once; gives the number that took part.
pub(super) fn run(threads: usize, work: &(dyn Fn() + Sync)) -> usize {
    if threads <= 1 {
        work();
        return 1;
    }
    let wanted = threads - 1;
    if wanted > default_threads().saturating_sub(1) {
        // More than the machine has, as only tests ask for.
        std::thread::scope(|scope| {
            for _ in 0..wanted.min(256) {
                scope.spawn(work);
            }
            work();
        });
        return threads;
    }
    let Some(helpers) = helpers() else {
        work();
        return 1;
    };
    let mut called = 0;
    let _ = helpers.idle.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |idle| {
        called = wanted.min(idle);
        Some(idle - called)
    });
    helpers.pool.in_place_scope(|scope| {
        for _ in 0..called {
            scope.spawn(|_| {
                work();
                helpers.idle.fetch_add(1, Ordering::Relaxed);
            });
        }
        work();
    });
    called + 1
}
