//! Retries of calls after transient failures, for long commands: pauses that double, and a time limit. `ringback
//! retry`, which settles a job, is in `consumer`.

use std::time::Duration;

use reqwest::Response;
use tokio::time::{Instant, sleep};

use crate::client::{Call, Client, ClientError, Reply};
use crate::progress::Progress;

/// The pause before the first retry. Each further pause doubles, up to [`MAX_PAUSE`].
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two tries, unless the server asks for a longer one.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The retries of one call.
pub(crate) struct Retry {
    retry_for: Duration,
    pause: Duration,
    /// Set by the first failure, because a call may itself take longer than the time for retries.
    deadline: Option<Instant>,
}

impl Retry {
    /// Retries for as long as `retry_for` after the first failure.
    pub(crate) fn new(retry_for: Duration) -> Self {
        Self { retry_for, pause: FIRST_PAUSE, deadline: None }
    }

    /// Waits before the next try, as long as the server asked for, or a pause that doubles each time.
    ///
    /// # Errors
    /// The error itself, at once, when it is permanent or the time for retries would end before the pause.
    pub(crate) async fn pause(&mut self, error: ClientError, progress: &Progress) -> Result<(), ClientError> {
        let pause = error.retry_after().unwrap_or_default().max(self.pause);
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.retry_for);
        if !error.is_transient() || Instant::now() + pause > deadline {
            return Err(error);
        }
        progress.waiting(&error, self.retry_for);
        sleep(pause).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        Ok(())
    }
}

/// The calls of a command that takes long: an unreachable or busy server is tried again.
#[derive(Clone, Copy)]
pub(crate) struct PatientCalls<'a> {
    pub(crate) client: &'a Client,
    /// How long each call is tried.
    pub(crate) retry_for: Duration,
    pub(crate) progress: &'a Progress,
}

impl PatientCalls<'_> {
    /// [`Client::ask`], with retries.
    ///
    /// # Errors
    /// The last error.
    pub(crate) async fn ask(&self, call: Call, within: Duration) -> Result<Reply, ClientError> {
        let mut retry = Retry::new(self.retry_for);
        loop {
            match self.client.ask(call.clone(), within).await {
                Ok(reply) => return Ok(reply),
                Err(error) => retry.pause(error, self.progress).await?,
            }
        }
    }

    /// [`Client::open`] for a stream, with retries until it begins. `what` names the feature for a server that does not
    /// know the route.
    ///
    /// # Errors
    /// The last error.
    pub(crate) async fn open(&self, call: &Call, what: &'static str) -> Result<Response, ClientError> {
        let mut retry = Retry::new(self.retry_for);
        loop {
            match self.client.open(call.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => retry.pause(error.for_route(what), self.progress).await?,
            }
        }
    }
}
