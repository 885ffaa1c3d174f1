//! The operations that leave entries. `openapi` has all operations; a test names those that leave none, with the reason.

use http::Method;

/// The name, method and path of each. The name is the `operationId`, but for a path that exists twice.
const OPERATIONS: [(&str, Method, &str); 42] = [
    ("cancel", Method::DELETE, "/v1/jobs/{topic}/{id}"),
    ("reschedule", Method::PATCH, "/v1/jobs/{topic}/{id}"),
    ("run", Method::POST, "/v1/jobs/{topic}/{id}/run"),
    ("revive", Method::POST, "/v1/jobs/{topic}/{id}/revive"),
    ("cancel_jobs", Method::POST, "/v1/jobs/cancel"),
    ("run_jobs", Method::POST, "/v1/jobs/run"),
    ("revive_jobs", Method::POST, "/v1/jobs/revive"),
    ("reschedule_jobs", Method::POST, "/v1/jobs/reschedule"),
    ("purge_jobs", Method::POST, "/v1/jobs/purge"),
    ("stop_bulk_operation", Method::DELETE, "/v1/bulk/{bulk}"),
    ("import", Method::POST, "/v1/import"),
    ("put_policy", Method::PUT, "/v1/topics/{topic}"),
    ("patch_policy", Method::PATCH, "/v1/topics/{topic}"),
    ("delete_topic", Method::DELETE, "/v1/topics/{topic}"),
    ("pause", Method::POST, "/v1/topics/{topic}/pause"),
    ("resume", Method::POST, "/v1/topics/{topic}/resume"),
    ("pause_destination", Method::POST, "/v1/destinations/{host}/pause"),
    ("resume_destination", Method::POST, "/v1/destinations/{host}/resume"),
    ("add_secret", Method::POST, "/v1/topics/{topic}/secrets"),
    ("delete_secret", Method::DELETE, "/v1/topics/{topic}/secrets/{secret}"),
    ("put_credential", Method::PUT, "/v1/credentials/{credential}"),
    ("delete_credential", Method::DELETE, "/v1/credentials/{credential}"),
    ("purge_dead", Method::DELETE, "/v1/topics/{topic}/dead"),
    ("purge", Method::DELETE, "/v1/topics/{topic}/dead/{id}"),
    ("purge", Method::DELETE, "/v1/topics/{topic}/dead/revive"),
    ("revive_dead", Method::POST, "/v1/topics/{topic}/dead/revive"),
    ("stop_revival", Method::DELETE, "/v1/topics/{topic}/revivals/{revival}"),
    ("put_schedule", Method::PUT, "/v1/schedules/{id}"),
    ("delete_schedule", Method::DELETE, "/v1/schedules/{id}"),
    ("pause_schedule", Method::POST, "/v1/schedules/{id}/pause"),
    ("resume_schedule", Method::POST, "/v1/schedules/{id}/resume"),
    ("run_schedule", Method::POST, "/v1/schedules/{id}/run"),
    ("add_key", Method::POST, "/v1/keys"),
    ("delete_key", Method::DELETE, "/v1/keys/{key}"),
    ("put_quota", Method::PUT, "/v1/quotas/{tenant}"),
    ("delete_quota", Method::DELETE, "/v1/quotas/{tenant}"),
    ("detach_archive", Method::DELETE, "/v1/archive"),
    ("erase_history", Method::DELETE, "/v1/history"),
    ("replay_history", Method::POST, "/v1/history/replay"),
    ("repair", Method::POST, "/v1/audit/repair"),
    ("accept_loss", Method::POST, "/v1/audit/accept-loss"),
    ("accept_clock", Method::POST, "/v1/audit/accept-clock"),
];

/// The names of all, each once.
pub(crate) fn operations() -> Vec<&'static str> {
    let mut names: Vec<_> = OPERATIONS.iter().map(|(name, ..)| *name).collect();
    names.dedup();
    names
}

/// The operation of a method and the path of a route, if it leaves an entry.
pub(super) fn operation(method: &Method, path: &str) -> Option<&'static str> {
    let found = OPERATIONS.iter().find(|(_, of, at)| of == method && *at == path);
    found.map(|(name, ..)| *name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use utoipa::OpenApi as _;

    use super::*;
    use crate::openapi::Document;

    /// The operations that leave no entry, although they are not reads.
    const WITHOUT: [(&str, &str); 9] = [
        ("submit", "jobs are submitted all the time; the job itself says when"),
        ("submit_batch", "as submit"),
        ("reserve", "consumers do it all the time; the attempts of the job are logged"),
        ("finish", "as reserve"),
        ("finish_all", "as reserve"),
        ("retry", "as reserve"),
        ("bury", "as reserve"),
        ("release", "as reserve"),
        ("renew", "as reserve"),
    ];

    #[test]
    fn each_operation_that_is_no_read_leaves_an_entry_or_is_named_as_one_that_does_not() {
        let mut found = BTreeSet::new();
        for (path, item) in Document::openapi().paths.paths {
            for (method, operation) in [
                (Method::POST, item.post),
                (Method::PUT, item.put),
                (Method::PATCH, item.patch),
                (Method::DELETE, item.delete),
            ] {
                let Some(name) = operation.and_then(|operation| operation.operation_id) else { continue };
                let is_without = WITHOUT.iter().any(|(without, _)| *without == name);
                let left = super::operation(&method, &path);
                assert_ne!(left.is_some(), is_without, "{method} {path}: {name}");
                let is_same = left.is_none_or(|left| left == name || name == "purge_job_named_revive");
                assert!(is_same, "{name}");
                found.insert((method.to_string(), path.clone()));
            }
        }
        for (name, method, path) in &OPERATIONS {
            assert!(found.contains(&(method.to_string(), (*path).to_owned())), "{name} is an operation");
        }
    }
}
