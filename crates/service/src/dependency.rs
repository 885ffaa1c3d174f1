//! An external dependency, such as the store: connects to it, retries while it is unavailable, and
//! keeps its check on `/readyz` up to date.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;
use tracing::{info, warn};

use crate::admin::Health;
use crate::backoff::Outage;
use crate::context::Context;
use crate::shutdown::Shutdown;
use crate::tasks::Tasks;
use crate::telemetry::with_causes;

/// The interval between two checks of a dependency that is available.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// A dependency, and the calls that reach it.
pub struct Dependency<S, P, C, E> {
    /// The name in log lines and on `/readyz`.
    pub name: &'static str,
    /// The client; every call gets a clone.
    pub subject: S,
    /// Connects and verifies the dependency. The text it returns is shown on `/readyz`.
    pub prepare: P,
    /// Checks that the dependency still answers. The text it returns is shown on `/readyz`.
    pub check: C,
    /// Returns false for an error that no retry can cure.
    pub is_transient: fn(&E) -> bool,
}

impl<S, P, C, E, PF, CF> Dependency<S, P, C, E>
where
    S: Clone + Send + Sync + 'static,
    E: Error + Send + Sync + 'static,
    P: Fn(S) -> PF + Send + Sync + 'static,
    PF: Future<Output = Result<String, E>> + Send + 'static,
    C: Fn(S) -> CF + Send + Sync + 'static,
    CF: Future<Output = Result<String, E>> + Send + 'static,
{
    /// Watches the dependency while `tasks` run, and returns when all of them have ended.
    ///
    /// # Errors
    /// The error of the first task that failed, or of [`watch`](Self::watch).
    pub async fn run(self, mut tasks: Tasks, context: Context) -> anyhow::Result<()> {
        tasks.spawn(self.name, self.watch(context.health, context.shutdown.clone()));
        tasks.join_all(&context.shutdown).await
    }

    /// Watches the dependency until the shutdown. After an outage it is prepared again.
    ///
    /// # Errors
    /// At once on an error that is not transient.
    pub async fn watch(self, health: Health, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut outage = Outage::new();
        health.set(self.name, false, "not reached yet");
        while !shutdown.is_stopping() {
            let wait = match (self.prepare)(self.subject.clone()).await {
                Ok(found) => {
                    info!(dependency = self.name, %found, "connected to the {}", self.name);
                    health.set(self.name, true, found);
                    outage.ends();
                    self.until_unavailable(&mut outage, &health, &shutdown).await;
                    Duration::ZERO
                }
                Err(error) if (self.is_transient)(&error) => {
                    self.report_unavailable(&error, &mut outage, &health);
                    outage.wait()
                }
                Err(error) => return Err(error.into()),
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = shutdown.stopping() => {}
            }
        }
        Ok(())
    }

    /// Returns when a check fails, or at the shutdown.
    async fn until_unavailable(&self, outage: &mut Outage, health: &Health, shutdown: &Shutdown) {
        loop {
            tokio::select! {
                () = sleep(CHECK_INTERVAL) => {}
                () = shutdown.stopping() => return,
            }
            match (self.check)(self.subject.clone()).await {
                Ok(found) => health.set(self.name, true, found),
                Err(error) => return self.report_unavailable(&error, outage, health),
            }
        }
    }

    fn report_unavailable(&self, error: &E, outage: &mut Outage, health: &Health) {
        if outage.begins() {
            let error = with_causes(error);
            warn!(dependency = self.name, error, "the {} is unavailable; retrying", self.name);
        }
        health.set(self.name, false, error.to_string());
    }
}
