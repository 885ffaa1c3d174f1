//! What a process gives to the roles that run in it: shutdown, health, metrics and the clock.

use std::future::Future;
use std::sync::Arc;

use opentelemetry::metrics::Meter;
use ringback_core::clock::Clock;

use crate::admin_port::Health;
use crate::scrape::{GaugeValues, Scrapes};
use crate::shutdown::Shutdown;
use crate::tasks::Tasks;
use crate::telemetry::CLOCK_AHEAD;

/// The handles that a role needs from its process.
#[derive(Clone)]
pub struct Context {
    /// Signals the role to stop.
    pub shutdown: Shutdown,
    /// The checks behind `/readyz`. The process is not ready before the first one is set.
    pub health: Health,
    /// Creates the metrics that `/metrics` shows.
    pub meter: Meter,
    /// The sources of gauges that are read when `/metrics` is asked for.
    pub scrapes: Scrapes,
    /// The time of day: the machine's clock, except in simulations.
    pub clock: Arc<dyn Clock>,
}

impl Context {
    /// This context with the clock of a role on a store, and with a metric of how many seconds the time of the store is
    /// ahead of this machine's clock.
    #[must_use]
    pub fn on_store(self, clock: Arc<dyn Clock>, ahead: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.scrapes.add(move || {
            std::future::ready(vec![GaugeValues { metric: CLOCK_AHEAD, values: vec![(Vec::new(), ahead())] }])
        });
        Self { clock, ..self }
    }

    /// Spawns a task that has to read something before the process is ready. Sets the check `name` to not ready, until
    /// the task calls the function that it is given. The task is dropped when the shutdown begins.
    pub fn spawn_reader<F>(
        &self,
        name: &'static str,
        tasks: &mut Tasks,
        task: impl FnOnce(Box<dyn FnOnce() + Send>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (health, shutdown) = (self.health.clone(), self.shutdown.clone());
        health.set(name, false, "not read yet");
        let task = task(Box::new(move || health.set(name, true, "known")));
        tasks.spawn(name, async move {
            tokio::select! {
                biased;
                () = task => {}
                () = shutdown.stopping() => {}
            }
        });
    }
}
