//! Store calls that carry a token, so that a repeated call returns the result of the first.

use ringback_core::contract::StoreError;

use crate::error::Unavailable;
use crate::limits::Deadline;

/// Makes a call, and once more if the connection broke before the answer.
pub(super) async fn idempotent_call<T: Send, F: Future<Output = Result<T, StoreError>> + Send>(
    deadline: Deadline,
    call: impl Fn() -> F + Send,
) -> Result<T, Unavailable> {
    let result = deadline.bound(async {
        match call().await {
            Err(StoreError::Away(_)) => call().await,
            result => result,
        }
    });
    Ok(result.await.map_err(|_elapsed| Unavailable::TooLate)??)
}
