//! Something outside that a process depends on: reached for until it is there and fit,
//! then looked at now and again, so that `/readyz` tells the truth.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;
use tracing::{info, warn};

use crate::backoff::Backoff;
use crate::{Health, Shutdown, random};

/// How often a dependency that is there is looked at.
const EVERY: Duration = Duration::from_secs(5);

/// One dependency, named by how to get at it.
pub struct Dependency<S, P, C, E> {
    /// Its name on `/readyz` and in the log.
    pub name: &'static str,
    /// What is asked, by a clone each time.
    pub subject: S,
    /// Reaches for it; says what was found.
    pub prepare: P,
    /// Looks whether it still answers.
    pub check: C,
    /// False when somebody has to change something before trying again can help.
    pub is_transient: fn(&E) -> bool,
}

impl<S, P, C, E, PF, CF> Dependency<S, P, C, E>
where
    S: Clone,
    E: Error + Send + Sync + 'static,
    P: Fn(S) -> PF,
    PF: Future<Output = Result<String, E>>,
    C: Fn(S) -> CF,
    CF: Future<Output = Result<(), E>>,
{
    /// Watches it until the shutdown. After it was away it is prepared again.
    ///
    /// # Errors
    /// As soon as it turns out to be unfit for good.
    pub async fn watch(self, health: Health, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut backoff = Backoff::new(random::generator());
        let mut away = false;
        health.set(self.name, false, "not reached yet");
        while !shutdown.is_stopping() {
            let wait = match (self.prepare)(self.subject.clone()).await {
                Ok(found) => {
                    info!(dependency = self.name, %found, "{} is there", self.name);
                    health.set(self.name, true, found);
                    backoff.reset();
                    away = false;
                    self.stays(&health, &shutdown).await;
                    Duration::ZERO
                }
                Err(error) if (self.is_transient)(&error) => {
                    self.away(&error, &mut away, &health);
                    backoff.next()
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

    /// Returns once it no longer answers, or at the shutdown.
    async fn stays(&self, health: &Health, shutdown: &Shutdown) {
        loop {
            tokio::select! {
                () = sleep(EVERY) => {}
                () = shutdown.stopping() => return,
            }
            if let Err(error) = (self.check)(self.subject.clone()).await {
                self.away(&error, &mut false, health);
                return;
            }
        }
    }

    /// Tells it once, not at every attempt.
    fn away(&self, error: &E, told: &mut bool, health: &Health) {
        if !std::mem::replace(told, true) {
            warn!(dependency = self.name, error = error as &dyn Error, "{} is away; trying again", self.name);
        }
        health.set(self.name, false, error.to_string());
    }
}
