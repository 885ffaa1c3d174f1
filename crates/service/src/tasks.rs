//! Supervised tasks, which run as long as the process: one that ends early ends the process.

use std::collections::HashMap;
use std::future::Future;

use anyhow::{Context as _, anyhow};
use tokio::task::{Id, JoinError, JoinSet};

use crate::shutdown::Shutdown;

/// The return value of a supervised task: nothing, or a result whose error ends the service.
pub trait Ending: Send + 'static {
    /// Converts the value into a result.
    ///
    /// # Errors
    /// The error of the task.
    fn into_result(self) -> anyhow::Result<()>;
}

impl Ending for () {
    fn into_result(self) -> anyhow::Result<()> {
        Ok(())
    }
}

impl<E: Into<anyhow::Error> + Send + 'static> Ending for Result<(), E> {
    fn into_result(self) -> anyhow::Result<()> {
        self.map_err(Into::into)
    }
}

/// A set of supervised tasks. Dropping it aborts those that still run.
#[derive(Debug, Default)]
pub struct Tasks {
    running: JoinSet<anyhow::Result<()>>,
    names: HashMap<Id, String>,
}

impl Tasks {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a task that has to run until the shutdown. Errors refer to it as `name`.
    pub fn spawn<F>(&mut self, name: impl Into<String>, task: F)
    where
        F: Future<Output: Ending> + Send + 'static,
    {
        let handle = self.running.spawn(async move { task.await.into_result() });
        self.names.insert(handle.id(), name.into());
    }

    /// Waits for all tasks.
    ///
    /// # Errors
    /// Before the shutdown: at once if a task fails, panics or ends. During the shutdown: the first
    /// failure, after all tasks have ended.
    pub async fn join_all(&mut self, shutdown: &Shutdown) -> anyhow::Result<()> {
        let mut result = Ok(());
        while let Some(joined) = self.running.join_next_with_id().await {
            let ended = self.ending(joined, shutdown);
            if !shutdown.is_stopping() {
                return ended;
            }
            result = result.and(ended);
        }
        result
    }

    fn ending(
        &mut self,
        joined: Result<(Id, anyhow::Result<()>), JoinError>,
        shutdown: &Shutdown,
    ) -> anyhow::Result<()> {
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let name = self.names.remove(&id).unwrap_or_default();
        match joined {
            Ok((_, Ok(()))) if shutdown.is_stopping() => Ok(()),
            Ok((_, Ok(()))) => Err(anyhow!("the task {name} ended unexpectedly")),
            Ok((_, Err(error))) => Err(error).with_context(|| format!("the task {name} failed")),
            Err(error) => Err(error).with_context(|| format!("the task {name} panicked")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use super::*;

    fn panic_now() {
        panic!("the broom broke");
    }

    fn shutdown() -> Shutdown {
        Shutdown::new(Duration::from_secs(30))
    }

    #[tokio::test]
    async fn a_panic_ends_the_service_though_others_go_on() {
        let mut tasks = Tasks::new();
        tasks.spawn("promoter", pending::<()>());
        tasks.spawn("janitor", async { panic_now() });
        let error = tasks.join_all(&shutdown()).await.unwrap_err();
        assert_eq!(error.to_string(), "the task janitor panicked");
    }

    #[tokio::test]
    async fn a_task_that_just_ends_is_a_failure() {
        let mut tasks = Tasks::new();
        tasks.spawn("promoter", async {});
        let error = tasks.join_all(&shutdown()).await.unwrap_err();
        assert_eq!(error.to_string(), "the task promoter ended unexpectedly");
    }

    #[tokio::test]
    async fn the_error_of_a_task_is_kept() {
        let mut tasks = Tasks::new();
        tasks.spawn("http", async { Err::<(), _>(std::io::Error::other("address in use")) });
        let error = tasks.join_all(&shutdown()).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "the task http failed: address in use");
    }

    #[tokio::test]
    async fn tasks_that_end_after_the_shutdown_began_are_fine() {
        let shutdown = shutdown();
        let mut tasks = Tasks::new();
        for name in ["promoter", "recoverer"] {
            let shutdown = shutdown.clone();
            tasks.spawn(name, async move { shutdown.stopping().await });
        }
        shutdown.begin();
        tasks.join_all(&shutdown).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_during_the_shutdown_lets_the_others_finish_first() {
        let shutdown = shutdown();
        shutdown.begin();
        let (done, finished) = tokio::sync::oneshot::channel();
        let mut tasks = Tasks::new();
        tasks.spawn("quick", async { Err::<(), _>(anyhow!("lost the store")) });
        tasks.spawn("slow", async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            done.send(()).ok();
        });
        let error = tasks.join_all(&shutdown).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "the task quick failed: lost the store");
        finished.await.unwrap();
    }
}
