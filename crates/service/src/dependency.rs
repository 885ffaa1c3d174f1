//! An external dependency, such as the store: connects to it, retries while it is unavailable, and
//! keeps its check on `/readyz` up to date.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;
use tracing::{info, warn};

use crate::admin_port::Health;
use crate::context::Context;
use crate::outage::Outage;
use crate::shutdown::Shutdown;
use crate::tasks::Tasks;
use crate::telemetry::with_causes;

/// The interval between two checks of a dependency that is available.
const CHECK_INTERVAL: Duration = Duration::from_millis(800);

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
    /// Returns true for an error by which the dependency refuses this process, for example its password. Before
    /// the dependency was reached for the first time it ends the process; after that it is waited out, because
    /// a password or a permission can be changed while the process runs.
    pub is_refusal: fn(&E) -> bool,
}

/// The state of a dependency that is watched.
struct Watched {
    outage: Outage,
    was_reached: bool,
    /// Whether a refusal was logged in this outage.
    is_refusal_logged: bool,
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
    /// An error that no retry can cure, or a refusal before the dependency was reached for the first time.
    pub async fn watch(self, health: Health, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut watched = Watched { outage: Outage::new(), was_reached: false, is_refusal_logged: false };
        health.set(self.name, false, "not reached yet");
        while !shutdown.is_stopping() {
            let wait = match (self.prepare)(self.subject.clone()).await {
                Ok(found) => {
                    info!(dependency = self.name, %found, "connected to the {}", self.name);
                    health.set(self.name, true, found);
                    watched.is_reached();
                    self.until_unavailable(&mut watched, &health, &shutdown).await;
                    Duration::ZERO
                }
                Err(error) if self.can_be_waited_out(&error, &watched) => {
                    self.report_unavailable(&error, &mut watched, &health);
                    watched.outage.wait()
                }
                Err(error) => return Err(error.into()),
            };
            tokio::select! {
                biased;
                () = sleep(wait) => {}
                () = shutdown.stopping() => {}
            }
        }
        Ok(())
    }

    fn can_be_waited_out(&self, error: &E, watched: &Watched) -> bool {
        if (self.is_refusal)(error) { watched.was_reached } else { (self.is_transient)(error) }
    }

    /// Checks the dependency regularly, showing its text on `/readyz`. Returns if a check fails, or at the shutdown.
    async fn until_unavailable(&self, watched: &mut Watched, health: &Health, shutdown: &Shutdown) {
        loop {
            tokio::select! {
                biased;
                () = sleep(CHECK_INTERVAL) => {}
                () = shutdown.stopping() => return,
            }
            match (self.check)(self.subject.clone()).await {
                Ok(found) => health.set(self.name, true, found),
                Err(error) => return self.report_unavailable(&error, watched, health),
            }
        }
    }

    /// Sets the check to not ready. Logs the begin of an outage, and once in it that this process is refused.
    fn report_unavailable(&self, error: &E, watched: &mut Watched, health: &Health) {
        health.set(self.name, false, in_one_line(error));
        let (name, begins) = (self.name, watched.outage.begins());
        if (self.is_refusal)(error) {
            if !std::mem::replace(&mut watched.is_refusal_logged, true) {
                let error = with_causes(error);
                warn!(
                    dependency = name,
                    error,
                    "the {name} refuses this process, or is not as its settings ask; retrying: fix it there, or restart it with the right settings"
                );
            }
        } else if begins {
            warn!(dependency = name, error = with_causes(error), "the {name} is unavailable; retrying");
        }
    }
}

fn in_one_line(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl Watched {
    fn is_reached(&mut self) {
        self.outage.ends();
        (self.was_reached, self.is_refusal_logged) = (true, false);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Why a call failed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
    enum Failure {
        #[error("away")]
        Away,
        #[error("refused")]
        Refused,
        #[error("unfit")]
        Unfit,
    }

    /// The results of the calls to come.
    type Script = Arc<Mutex<VecDeque<Result<(), Failure>>>>;

    fn next(script: &Script, health: &Health) -> Result<(), Failure> {
        let result = script.lock().expect("nobody panics").pop_front().expect("the shutdown has begun");
        if let Ok(()) = result {
            assert!(!health.is_ready(), "each success here is that of a prepare after a failure");
        }
        result
    }

    /// Watches a dependency until its script is at its end or the watch fails. Successes are those of `prepare`;
    /// the check after each fails.
    async fn watch(script: &[Result<(), Failure>]) -> Result<(), Failure> {
        let shutdown = Shutdown::new(Duration::from_secs(1));
        let health = Health::new(&shutdown);
        let (script, of_health) = (Script::new(Mutex::new(script.iter().copied().collect())), health.clone());
        let stopping = shutdown.clone();
        let watch = Dependency {
            name: "test",
            subject: Arc::clone(&script),
            prepare: move |script: Script| {
                let result = next(&script, &of_health).map(|()| String::new());
                if script.lock().expect("nobody panics").is_empty() {
                    stopping.begin();
                }
                async move { result }
            },
            check: |_: Script| async { Err(Failure::Away) },
            is_transient: |error: &Failure| *error == Failure::Away,
            is_refusal: |error: &Failure| *error == Failure::Refused,
        };
        let ended = watch.watch(health, shutdown).await;
        ended.map_err(|error| *error.downcast_ref().expect("a failure of the script"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_ends_a_process_that_never_reached_the_dependency_and_no_other() {
        use Failure::{Away, Refused, Unfit};
        assert_eq!(watch(&[Err(Refused), Ok(())]).await, Err(Refused));
        assert_eq!(watch(&[Err(Away), Err(Refused), Ok(())]).await, Err(Refused));
        assert_eq!(
            watch(&[Ok(()), Err(Refused), Err(Away), Err(Refused), Ok(()), Err(Refused)]).await,
            Ok(())
        );
        assert_eq!(watch(&[Ok(()), Err(Refused), Err(Unfit), Ok(())]).await, Err(Unfit));
    }
}
