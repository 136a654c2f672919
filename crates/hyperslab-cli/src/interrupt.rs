//! Ctrl-C, and being asked to end, while something is written: nothing partial is left.

use crate::output::{Failure, Outcome};
use hyperslab::{Cancel, Error, ErrorKind};
use std::process::exit;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the program ends with then, as shells have it.
pub(crate) const EXIT: u8 = 130;

struct State {
    /// How many things there are that have to be taken back in order.
    busy: u32,
    asked: bool,
}

static STATE: Mutex<State> = Mutex::new(State { busy: 0, asked: false });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for signals from now on. One ends the program at once, unless it is [busy](Busy): then the token that is given is used,
/// whoever is at work stops, and takes back what was done. A second one ends the program in any case; what is left of it then is
/// removed, or taken back, by the next one that looks at the file.
pub(crate) fn token() -> Outcome<Cancel> {
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let asked = move || {
        let mut state = state();
        stop.cancel();
        if state.busy == 0 || state.asked {
            exit(EXIT.into());
        }
        state.asked = true;
    };
    ctrlc::set_handler(asked).map_err(|e| Failure::Other(format!("cannot wait for signals: {e}")))?;
    Ok(cancel)
}

/// Fails if a signal asked to stop.
pub(crate) fn check() -> Outcome<()> {
    match state().asked {
        true => Err(Failure::Library(Error::new(ErrorKind::Cancelled, "stopped by a signal"))),
        false => Ok(()),
    }
}

/// Something is being made that has to be taken back where it is not finished.
#[derive(Debug)]
pub(crate) struct Busy(());

impl Busy {
    pub(crate) fn new() -> Busy {
        state().busy += 1;
        Busy(())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        state().busy -= 1;
    }
}
