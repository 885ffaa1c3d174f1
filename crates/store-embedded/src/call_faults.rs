//! Faults of single calls, for simulations: a call that takes time, fails, has no answer, loses its answer, or takes
//! effect late. Only a store in memory can have them.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use ringback_core::store_types::StoreError;
use tokio::time::sleep;

/// Chooses the fault of each call of a store.
pub trait CallFaults: Send + Sync + 'static {
    fn next(&self) -> CallFault;
}

/// The fault of one call. All errors are [`StoreError::Away`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The call takes effect after `request`, and is answered `answer` later.
    Delayed { request: Duration, answer: Duration },
    /// The call fails and has no effect.
    Failed,
    /// The call takes effect, and its answer is an error.
    AnswerLost,
    /// The answer is an error at once, and the call takes effect after this time, even if its caller is gone.
    Late(Duration),
    /// The call has no effect and no answer.
    Swallowed,
}

impl CallFault {
    pub(crate) async fn around<T: Send + 'static>(
        self,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Delayed { request, answer } => {
                // A sleep takes a millisecond even if it is for no time.
                if !request.is_zero() {
                    sleep(request).await;
                }
                let answered = call.await;
                if !answer.is_zero() {
                    sleep(answer).await;
                }
                answered
            }
            Self::Failed => Err(away()),
            Self::AnswerLost => call.await.and_then(|_| Err(away())),
            Self::Late(after) => {
                let late = async move {
                    sleep(after).await;
                    let _ = call.await;
                };
                #[expect(clippy::disallowed_methods, reason = "it outlives its caller")]
                tokio::spawn(late);
                Err(away())
            }
            Self::Swallowed => pending().await,
        }
    }
}

fn away() -> StoreError {
    StoreError::Away(Arc::new(std::io::Error::other("a fault of a simulation")))
}
