//! Submits that are refused for a reason. On a busy machine one may be refused for another: it took too long. Then it is
//! repeated.

use crate::prelude::*;

/// Submits a job until it is accepted or refused for this reason. Returns whether it was accepted.
pub(super) async fn is_accepted(stack: &Stack, job: &Value, reason: &str) -> bool {
    let what = format!("a submit is accepted, or refused because {reason}");
    eventually(SOON, &what, async || match stack.submit(job).await {
        (200 | 201, _) => Ok(true),
        (503, problem) if is_because(&problem, reason) => Ok(false),
        (status, answer) => Err(format!("{status} {answer}")),
    })
    .await
}

/// Whether a problem has a reason in its detail.
pub(super) fn is_because(problem: &Value, reason: &str) -> bool {
    problem["detail"].as_str().is_some_and(|detail| detail.contains(reason))
}
