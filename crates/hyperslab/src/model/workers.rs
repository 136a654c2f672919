//! Threads for formats, which have none of their own.

use std::fmt;
use std::sync::Arc;

/// Runs pieces of work at once. The only owner of threads is `exec`; who opens a file hands them to its format
/// ([`Hierarchy::employ`](super::Hierarchy::employ)).
pub trait Workers: Send + Sync + fmt::Debug {
    /// Calls `work` with each number below `count`, in any order and from any number of threads, and returns when all
    /// calls have.
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync));
}

/// The calling thread alone.
#[derive(Debug)]
pub struct Alone;

impl Workers for Alone {
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(work);
    }
}

/// The workers of one hierarchy, the calling thread alone until it is given others.
#[derive(Debug, Default)]
pub struct Employed(std::sync::OnceLock<Arc<dyn Workers>>);

impl Employed {
    /// Takes workers in; the first ones stay.
    pub fn employ(&self, workers: Arc<dyn Workers>) {
        let _ = self.0.set(workers);
    }

    /// The workers.
    pub fn get(&self) -> &dyn Workers {
        self.0.get().map_or(&Alone, |workers| &**workers)
    }
}
