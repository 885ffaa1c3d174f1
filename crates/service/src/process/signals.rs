//! SIGTERM and SIGINT: the first signal begins the shutdown, the second one ends its grace period.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::shutdown::Shutdown;

/// A signal that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caught {
    pub(super) name: &'static str,
    pub(super) number: u8,
}

impl Caught {
    /// The exit status that a shell reports for a process killed by this signal.
    pub(super) fn exit_code(self) -> u8 {
        128 + self.number
    }
}

pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Begins the shutdown at the first signal. Returns at the second one.
    pub(super) async fn obey(&mut self, shutdown: &Shutdown) -> Caught {
        let first = self.next().await;
        tracing::info!(signal = first.name, grace = ?shutdown.grace(), "shutting down");
        shutdown.begin();
        let second = self.next().await;
        shutdown.expire();
        second
    }

    async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught { name: "SIGINT", number: 2 },
            _ = self.terminate.recv() => Caught { name: "SIGTERM", number: 15 },
        }
    }
}
