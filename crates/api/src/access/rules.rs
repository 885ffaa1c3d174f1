//! What each operation of the API needs. An operation that is not listed needs the root key.

use axum::http::Method;
use ringback_core::access::Scope;

/// What a caller needs for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: the answer is the same for all.
    Nothing,
    /// A key with this scope.
    Scope(Scope),
    /// The root key.
    Root,
}

/// What an operation needs, by its method and the path of its route.
pub(super) fn need(method: &Method, path: &str) -> Need {
    let (is_read, is_write) = (*method == Method::GET || *method == Method::HEAD, *method != Method::GET);
    match path {
        "/" | "/openapi.json" | "/ui" | "/ui/" | "/ui/{*asset}" => Need::Nothing,
        "/v1/jobs" | "/v1/jobs/{topic}/{id}" | "/v1/bulk/{bulk}" if is_read => Need::Scope(Scope::Read),
        "/v1/jobs" | "/v1/jobs/batch" | "/v1/jobs/{topic}/{id}" | "/v1/jobs/{topic}/{id}/run" => {
            Need::Scope(Scope::Submit)
        }
        "/v1/jobs/{topic}/{id}/attempts"
        | "/v1/bulk"
        | "/v1/topics"
        | "/v1/topics/{topic}/revivals"
        | "/v1/destinations"
        | "/v1/events"
        | "/v1/forecast"
        | "/v1/stats" => Need::Scope(Scope::Read),
        "/v1/topics/{topic}"
        | "/v1/topics/{topic}/dead"
        | "/v1/topics/{topic}/revivals/{revival}"
        | "/v1/schedules"
        | "/v1/schedules/{id}"
        | "/v1/schedules/{id}/next"
        | "/v1/history"
        | "/v1/history/{topic}/{id}"
            if is_read =>
        {
            Need::Scope(Scope::Read)
        }
        "/v1/jobs/cancel"
        | "/v1/jobs/run"
        | "/v1/jobs/reschedule"
        | "/v1/bulk/{bulk}"
        | "/v1/schedules/{id}"
        | "/v1/schedules/{id}/pause"
        | "/v1/schedules/{id}/resume"
        | "/v1/schedules/{id}/run" => Need::Scope(Scope::Submit),
        "/v1/credentials" | "/v1/credentials/{credential}" => Need::Scope(Scope::Manage),
        "/v1/topics/{topic}/reserve" => Need::Scope(Scope::Consume),
        _ if path.starts_with("/v1/receipts/") && is_write => Need::Scope(Scope::Consume),
        "/v1/jobs/{topic}/{id}/revive"
        | "/v1/jobs/revive"
        | "/v1/jobs/purge"
        | "/v1/topics/{topic}"
        | "/v1/topics/{topic}/secrets"
        | "/v1/topics/{topic}/secrets/{secret}"
        | "/v1/topics/{topic}/pause"
        | "/v1/topics/{topic}/resume"
        | "/v1/destinations/{host}/pause"
        | "/v1/destinations/{host}/resume"
        | "/v1/topics/{topic}/dead"
        | "/v1/topics/{topic}/dead/{id}"
        | "/v1/topics/{topic}/dead/revive"
        | "/v1/topics/{topic}/revivals/{revival}"
        | "/v1/history"
        | "/v1/history/replay"
        | "/v1/audit-log" => Need::Scope(Scope::Manage),
        "/v1/export"
        | "/v1/export/topics"
        | "/v1/export/credentials"
        | "/v1/export/destinations"
        | "/v1/export/schedules"
        | "/v1/import" => Need::Scope(Scope::Import),
        _ => Need::Root,
    }
}

/// Whether an operation can be about all tenants at once: it reads, and names nothing that is one tenant's. The history is
/// asked for one tenant at a time.
pub(crate) fn takes_all_tenants(method: &Method, path: &str) -> bool {
    method.is_safe() && !path.contains('{') && path != "/v1/history"
}

/// Whether an operation is for the root key alone.
pub(crate) fn is_for_root_alone(method: &Method, path: &str) -> bool {
    need(method, path) == Need::Root
}

#[cfg(test)]
mod tests {
    use utoipa::OpenApi as _;

    use super::*;
    use crate::app;
    use crate::openapi::Document;

    #[test]
    fn reading_changes_nothing_and_the_audit_and_the_keys_are_roots() {
        for (method, path, wanted) in [
            ("GET", "/v1/jobs/{topic}/{id}", Need::Scope(Scope::Read)),
            ("DELETE", "/v1/jobs/{topic}/{id}", Need::Scope(Scope::Submit)),
            ("PATCH", "/v1/jobs/{topic}/{id}", Need::Scope(Scope::Submit)),
            ("POST", "/v1/jobs/cancel", Need::Scope(Scope::Submit)),
            ("POST", "/v1/jobs/purge", Need::Scope(Scope::Manage)),
            ("DELETE", "/v1/bulk/{bulk}", Need::Scope(Scope::Submit)),
            ("GET", "/v1/bulk/{bulk}", Need::Scope(Scope::Read)),
            ("GET", "/v1/topics/{topic}/dead", Need::Scope(Scope::Read)),
            ("DELETE", "/v1/topics/{topic}/dead", Need::Scope(Scope::Manage)),
            ("POST", "/v1/receipts/finish", Need::Scope(Scope::Consume)),
            ("PUT", "/v1/topics/{topic}", Need::Scope(Scope::Manage)),
            ("PATCH", "/v1/topics/{topic}", Need::Scope(Scope::Manage)),
            ("GET", "/v1/destinations", Need::Scope(Scope::Read)),
            ("POST", "/v1/destinations/{host}/pause", Need::Scope(Scope::Manage)),
            ("POST", "/v1/destinations/{host}/resume", Need::Scope(Scope::Manage)),
            ("GET", "/v1/audit", Need::Root),
            ("GET", "/v1/audit-log", Need::Scope(Scope::Manage)),
            ("DELETE", "/v1/archive", Need::Root),
            ("GET", "/v1/history/{topic}/{id}", Need::Scope(Scope::Read)),
            ("DELETE", "/v1/history", Need::Scope(Scope::Manage)),
            ("POST", "/v1/history/replay", Need::Scope(Scope::Manage)),
            ("POST", "/v1/audit/accept-loss", Need::Root),
            ("POST", "/v1/audit/accept-clock", Need::Root),
            ("GET", "/v1/keys", Need::Root),
            ("DELETE", "/v1/keys/{key}", Need::Root),
            ("PUT", "/v1/quotas/{tenant}", Need::Root),
            ("GET", "/v1/not-there-yet", Need::Root),
        ] {
            assert_eq!(need(&method.parse().unwrap(), path), wanted, "{method} {path}");
        }
    }

    #[test]
    fn each_operation_that_is_not_roots_is_listed() {
        let (roots, document) = (["/v1/archive", "/v1/audit", "/v1/keys", "/v1/quotas"], Document::openapi());
        let paths: Vec<_> = app::table().into_iter().map(|(path, _)| path).collect();
        for path in paths {
            let is_roots = path != "/v1/audit-log" && roots.iter().any(|root| path.starts_with(root));
            for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                let is_operation = document.paths.paths.get(path).is_some_and(|item| {
                    let operations = [
                        (Method::GET, &item.get),
                        (Method::POST, &item.post),
                        (Method::PUT, &item.put),
                        (Method::PATCH, &item.patch),
                        (Method::DELETE, &item.delete),
                    ];
                    operations.iter().any(|(name, operation)| *name == method && operation.is_some())
                });
                if is_operation {
                    assert_eq!(need(&method, path) == Need::Root, is_roots, "{method} {path}");
                }
            }
        }
    }
}
