//! Faults of single calls, for simulations: a call that fails, that has no reply, whose reply comes late, or that comes
//! late itself.
//! Only a store in memory can have them.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use ringback_core::store_types::StoreError;
use tokio::time::sleep;

/// Decides what goes wrong with each call of a store.
pub trait CallFaults: Send + Sync + 'static {
    fn next(&self) -> CallFault;
}

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// It takes effect and is answered, after these times.
    Delayed { request: Duration, answer: Duration },
    /// It fails and has no effect.
    Failed,
    /// It takes effect, and its answer is an error.
    AnswerLost,
    /// Its answer is an error at once, and it takes effect after this time, whatever its caller does meanwhile.
    Late(Duration),
    /// It has no effect and no answer.
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
