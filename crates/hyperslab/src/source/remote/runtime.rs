//! What carries requests: a small runtime of its own, made when it is first used.
//!
//! A process that was forked has none of its parent's threads, and may not use its parent's connections: it gets a runtime
//! and a client of its own.

use crate::error::{Error, ErrorKind, Result};
use std::future::Future;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Threads that move bytes; decoding happens elsewhere.
const THREADS: usize = 2;

/// Time to reach a server.
const CONNECT: Duration = Duration::from_secs(15);

/// Redirections that are followed.
const REDIRECTIONS: usize = 10;

/// The runtime and the connections of this process.
pub(super) struct Engine {
    pub(super) process: u32,
    runtime: Runtime,
    /// For plain HTTP.
    pub(super) client: reqwest::Client,
}

static ENGINE: Mutex<Option<Arc<Engine>>> = Mutex::new(None);

/// The engine of this process.
pub(super) fn engine() -> Result<Arc<Engine>> {
    let process = std::process::id();
    let mut engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    match engine.as_ref() {
        Some(engine) if engine.process == process => return Ok(engine.clone()),
        _ => {}
    }
    let made = Arc::new(Engine::new(process)?);
    // That of the parent would wait for threads that do not exist here.
    std::mem::forget(engine.replace(made.clone()));
    Ok(made)
}

impl Engine {
    fn new(process: u32) -> Result<Engine> {
        let failed = |e: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Io, format!("cannot set up network access: {e}"))
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("hyperslab-remote")
            .enable_all()
            .build()
            .map_err(|e| failed(&e))?;
        // Somebody else in this process may have chosen already; theirs is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("hyperslab/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::limited(REDIRECTIONS))
            .referer(false)
            .build()
            .map_err(|e| failed(&e))?;
        Ok(Engine { process, runtime, client })
    }

    /// Runs `work` on the runtime and waits for it, from any thread, one of another runtime included.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = sync_channel(1);
        self.runtime.spawn(async move {
            // Nobody waits any more if the receiver is gone.
            let _ = sender.send(work.await);
        });
        receiver.recv().unwrap_or_else(|_| Err(Error::new(ErrorKind::Io, "a network request was lost")))
    }
}

/// Does `work` on all `items`, at most `most` at a time; the answers stand in the order of the items.
pub(super) async fn all<I, T, F>(items: Vec<I>, most: usize, work: impl Fn(I) -> F) -> Vec<Result<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let lost = || Err(Error::new(ErrorKind::Io, "a network request was lost"));
    let mut answers: Vec<Result<T>> = items.iter().map(|_| lost()).collect();
    let mut running = tokio::task::JoinSet::new();
    let mut items = items.into_iter().enumerate();
    loop {
        while running.len() < most.max(1) {
            let Some((i, item)) = items.next() else { break };
            let work = work(item);
            running.spawn(async move { (i, work.await) });
        }
        match running.join_next().await {
            Some(Ok((i, answer))) => {
                if let Some(place) = answers.get_mut(i) {
                    *place = answer;
                }
            }
            // It panicked; its answer stays lost.
            Some(Err(_)) => {}
            None => return answers,
        }
    }
}
