//! The carriers that are alive, as a heartbeat reports them.

use std::time::Duration;

/// The live carriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCarriers {
    /// Their names, sorted, so that all carriers see the same order.
    pub carriers: Vec<String>,
    /// When the first of the other carriers expires, unless it sends a heartbeat before.
    pub next_change: Option<Duration>,
    /// When the next redrive becomes free to take. `None` when a wake-up announces it instead.
    pub next_redrive: Option<Duration>,
}
