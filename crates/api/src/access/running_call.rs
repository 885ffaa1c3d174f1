//! `Standing`: whether a call that has begun may continue. A key that is deleted or expires also ends the calls that it
//! has begun: those that wait, those whose body is still arriving, and streams.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use ringback_admission::Principal;
use ringback_core::clock::Clock;
use ringback_store::SharedConfig;
use tokio::time::sleep;

use crate::error::ApiError;

/// How often a call that waits checks whether its key has expired.
const EXPIRY_EVERY: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(crate) struct Standing {
    caller: Arc<Principal>,
    config: SharedConfig,
    clock: Arc<dyn Clock>,
}

impl Standing {
    pub(crate) const fn new(caller: Arc<Principal>, config: SharedConfig, clock: Arc<dyn Clock>) -> Self {
        Self { caller, config, clock }
    }

    /// Checks that the caller may go on now.
    ///
    /// # Errors
    /// 401 if its key was deleted or has expired.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        check(&self.caller, &self.config, &*self.clock)
    }

    /// Awaits `wait`. If the caller's key ends first, `wait` or its output is dropped. A caller without a key only
    /// waits.
    ///
    /// # Errors
    /// 401 once the key is deleted or has expired.
    pub(crate) async fn bound<F: Future>(&self, wait: F) -> Result<F::Output, ApiError> {
        if self.caller.key_id().is_none() {
            return Ok(wait.await);
        }
        tokio::select! {
            biased;
            () = self.end() => Err(ended()),
            come = wait => self.check().map(|()| come),
        }
    }

    /// Waits until the caller's key is deleted or has expired.
    async fn end(&self) {
        // Begun before the first look, so that no change is missed.
        let mut readings = self.config.readings();
        while self.check().is_ok() {
            let expiry = async {
                if self.caller.expires().is_none() {
                    std::future::pending::<()>().await;
                }
                sleep(EXPIRY_EVERY).await;
            };
            tokio::select! {
                () = readings.next() => {}
                () = expiry => {}
            }
        }
    }
}

/// Checks that a caller may go on now.
///
/// # Errors
/// 401 if its key was deleted or has expired.
pub(crate) fn check(caller: &Principal, config: &SharedConfig, clock: &dyn Clock) -> Result<(), ApiError> {
    if caller.may_go_on(config, clock.now()) { Ok(()) } else { Err(ended()) }
}

fn ended() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "the key was deleted or has expired since this call began")
}
