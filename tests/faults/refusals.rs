//! Submits that must be refused for a certain reason. One that is refused because it took too long is repeated.

use crate::prelude::*;

/// Submits a job until it is accepted or refused for `reason`. Returns whether it was accepted. Panics after [`SOON`].
pub(super) async fn is_accepted(stack: &Stack, job: &Value, reason: &str) -> bool {
    let what = format!("a submit is accepted, or refused because {reason}");
    eventually(SOON, &what, async || match stack.submit(job).await {
        (200 | 201, _) => Ok(true),
        (503, problem) if is_because(&problem, reason) => Ok(false),
        (status, answer) => Err(format!("{status} {answer}")),
    })
    .await
}

/// Whether the detail of a problem contains a reason.
pub(super) fn is_because(problem: &Value, reason: &str) -> bool {
    problem["detail"].as_str().is_some_and(|detail| detail.contains(reason))
}
