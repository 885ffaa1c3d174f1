//! The signals that stop a process, and SIGHUP. The first of SIGTERM and SIGINT begins the shutdown, the second one ends
//! its grace period. What SIGHUP does depends on whether the process has a terminal, as it had when it was started.

use std::fs::{self, File};
use std::future::pending;
use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::shutdown::Shutdown;

/// A signal that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Caught {
    pub(crate) name: &'static str,
    pub(crate) number: u8,
}

impl Caught {
    /// The exit status that a shell reports for a process killed by this signal.
    pub(crate) fn exit_code(self) -> u8 {
        128 + self.number
    }
}

/// What SIGHUP does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hangup {
    /// The terminal is gone, so the process stops.
    Stop,
    /// A service reads its certificates again and goes on, as daemons do.
    GoOn,
    /// Nothing, because the process was started so (`nohup`).
    Ignore,
}

/// Whether this process obeys SIGHUP. It is found out once: a terminal that hangs up is gone before the signal arrives.
static HANGUP: LazyLock<Hangup> = LazyLock::new(|| {
    if is_hangup_ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default()) {
        Hangup::Ignore
    } else if File::open("/dev/tty").is_ok() {
        Hangup::Stop
    } else {
        Hangup::GoOn
    }
});

/// Whether the `status` of a process (proc(5)) shows that it ignores SIGHUP.
fn is_hangup_ignored(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal 1 is the lowest bit.
    ignored.is_some_and(|mask| mask & 1 == 1)
}

/// The signals that ask a process to stop.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if it is ignored.
    hangup: Option<Signal>,
}

impl Signals {
    /// Begins to listen. From now on these signals do not end the process by themselves.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn listen() -> io::Result<Self> {
        let hangup = (*HANGUP != Hangup::Ignore).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    /// Waits for a signal to stop: SIGTERM, SIGINT, or SIGHUP of the terminal. Without a terminal SIGHUP is logged.
    pub async fn stop(&mut self) -> Caught {
        loop {
            tokio::select! {
                caught = asked(&mut self.interrupt, &mut self.terminate) => return caught,
                () = next(self.hangup.as_mut()) => match *HANGUP {
                    Hangup::Stop => return Caught { name: "SIGHUP", number: 1 },
                    Hangup::GoOn | Hangup::Ignore => {
                        tracing::info!(signal = "SIGHUP", "going on, with certificates that are read again");
                    }
                }
            }
        }
    }

    /// Begins the shutdown at the first signal: for `delay`, unless another signal comes, the process is not ready and
    /// works on. Ends the grace period at the next SIGTERM or SIGINT, and returns that.
    pub(crate) async fn obey(&mut self, shutdown: &Shutdown, delay: Duration) -> Caught {
        let first = self.stop().await;
        if !delay.is_zero() {
            tracing::info!(signal = first.name, ?delay, "not ready from now on; working on for a while");
            shutdown.announce();
            tokio::select! {
                () = sleep(delay) => {}
                _ = asked(&mut self.interrupt, &mut self.terminate) => {}
            }
        }
        tracing::info!(signal = first.name, grace = ?shutdown.grace(), "shutting down");
        shutdown.begin();
        // A terminal that is closed may send SIGHUP twice: from the kernel and from the shell.
        let second = asked(&mut self.interrupt, &mut self.terminate).await;
        shutdown.expire();
        second
    }
}

async fn asked(interrupt: &mut Signal, terminate: &mut Signal) -> Caught {
    tokio::select! {
        _ = interrupt.recv() => Caught { name: "SIGINT", number: 2 },
        _ = terminate.recv() => Caught { name: "SIGTERM", number: 15 },
    }
}

/// Waits for the next of some signals; for ever if there are none.
async fn next(signals: Option<&mut Signal>) {
    match signals {
        Some(signals) => drop(signals.recv().await),
        None => pending().await,
    }
}

/// The signals at which certificates are to be read again, if there are any.
pub struct ReadAgain(Option<Signal>);

impl ReadAgain {
    /// Begins to listen. Unless SIGHUP means to read certificates again, no signal ever comes.
    #[must_use]
    pub fn listen() -> Self {
        Self((*HANGUP == Hangup::GoOn).then(|| signal(SignalKind::hangup()).ok()).flatten())
    }

    pub async fn next(&mut self) {
        next(self.0.as_mut()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hangup_is_the_lowest_bit_of_the_mask() {
        for (status, is_ignored) in [
            ("Name:\tapi\nSigIgn:\t0000000000001001\nSigCgt:\t0\n", true),
            ("Name:\tapi\nSigIgn:\t0000000000001000\nSigCgt:\t1\n", false),
            ("SigIgn:\tnonsense", false),
            ("", false),
        ] {
            assert_eq!(is_hangup_ignored(status), is_ignored, "{status:?}");
        }
    }
}
