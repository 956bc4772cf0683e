//! Ctrl-C and the signals that ask a program to end.

use crate::failure::Failure;
use crate::terminal::Verbosity;
use m3impute::{Cancel, Error};
use m3impute_io::AtomicFile;
use std::sync::Mutex;
use std::time::Duration;

/// Work that was asked to stop may take that long to do so: every verb ends within a second.
const GRACE: Duration = Duration::from_millis(300);

/// The first signal asks the work to stop and clean up. Work that goes on for long all the same (it waits for a pipe or
/// a disk, or is between two looks at the flag) is cut off; a second signal does so at once.
pub fn cancel_on_signal(verbosity: Verbosity) -> Cancel {
    let cancel = Cancel::default();
    let raised = cancel.clone();
    on_signal(move || {
        if raised.is_cancelled() {
            cut_off(&verbosity);
        }
        raised.cancel();
        std::thread::spawn(move || {
            std::thread::sleep(GRACE);
            cut_off(&verbosity);
        });
    });
    cancel
}

/// Calls `act` at each Ctrl-C and each request to end. Without a handler, which cannot be refused in practice, a signal
/// ends the program, as it would without this. A terminal that is closed ends the program too, unless it runs under
/// `nohup`: that signal is left as it was found.
#[cfg(unix)]
fn on_signal(act: impl Fn() + Send + 'static) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
        std::thread::spawn(move || signals.forever().for_each(|_| act()));
    }
}

#[cfg(not(unix))]
fn on_signal(act: impl Fn() + Send + 'static) {
    let _ = ctrlc::set_handler(act);
}

/// Ends the program as if the work had stopped by itself: no file is left half, or beside another.
fn cut_off(verbosity: &Verbosity) -> ! {
    AtomicFile::abandon_all();
    end_alone();
    std::process::exit(Failure::from(Error::Cancelled).report(verbosity).into())
}

/// Lets one thread end the program; others wait here until it is gone.
pub fn end_alone() {
    static ENDING: Mutex<()> = Mutex::new(());
    std::mem::forget(ENDING.lock());
}
