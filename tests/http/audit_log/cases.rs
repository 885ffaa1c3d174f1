//! All API calls that leave entries in the audit log, in the order to make them, and the contents of their entries.

use http::Method;

use crate::prelude::*;

/// Texts that no entry has.
pub(super) const SECRETS: [&str; 4] = [
    "hunter2-of-the-header",
    "hunter2-of-the-credential",
    "aHVudGVyMi1vZi10aGUtc2lnbmF0dXJlcw",
    "hunter2-of-the-query",
];

/// Operations that need an archive.
pub(super) const ARCHIVED: [&str; 3] = ["erase_history", "replay_history", "accept_clock"];

/// A call, and what its entry has.
pub(super) struct Case {
    pub(super) operation: &'static str,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Value>,
    /// Whether the root key makes it; otherwise the key of a tenant.
    pub(super) is_roots: bool,
    pub(super) entry: Value,
    /// The name by which later paths have the `id` of the answer.
    pub(super) names: Option<&'static str>,
}

fn case(operation: &'static str, method: Method, path: &str, body: Value, entry: Value) -> Case {
    let (path, body) = (path.to_owned(), Some(body).filter(|body| !body.is_null()));
    Case { operation, method, path, body, is_roots: false, entry, names: None }
}

/// A call that is made with the root key.
fn root(operation: &'static str, method: Method, path: &str, body: Value, entry: Value) -> Case {
    Case { is_roots: true, ..case(operation, method, path, body, entry) }
}

/// A call whose answer has an id that later paths refer to by `name`.
fn naming(name: &'static str, case: Case) -> Case {
    Case { names: Some(name), ..case }
}

pub(super) fn cases(has_archive: bool) -> Vec<Case> {
    let mut all: Vec<_> = imports()
        .into_iter()
        .chain(jobs())
        .chain(dead_jobs())
        .chain(many_jobs())
        .chain(destinations())
        .chain(topics())
        .chain(schedules())
        .chain(of_root())
        .collect();
    if has_archive {
        all.extend(of_archive());
    } else {
        let entry = json!({"after": {"run_id": "8b1f", "jobs": 3}, "target": {}});
        all.insert(
            0,
            root("accept_loss", Method::POST, "/v1/check/accept-loss", json!({"run_id": "8b1f"}), entry),
        );
    }
    all
}

fn imports() -> Vec<Case> {
    let line = |id: &str, state: &str| {
        let job = json!({"topic": "pay", "id": id, "url": "https://merchant.example/hook"});
        let job = match state {
            "dead" => with(with(job, "state", "dead"), "reason", "exhausted"),
            _ => with(job, "delay", "1h"),
        };
        job.to_string()
    };
    let lines = ["moved", "run-now", "cancelled"].map(|id| line(id, "delayed"));
    let dead = ["revived", "purged", "revive", "all"].map(|id| line(id, "dead"));
    let import = |lines: &[String]| json!({"lines": lines.join("\n")});
    let counts =
        |n: u64| json!({"count": n, "after": {"created": n, "repeated": 0, "refused": 0}, "target": {}});
    vec![
        case("import_jobs", Method::POST, "/v1/import", import(&lines), counts(3)),
        case("import_jobs", Method::POST, "/v1/import", import(&dead), counts(4)),
    ]
}

/// Bulk operations, whose filters match no job, and the stop of one.
fn many_jobs() -> Vec<Case> {
    let operation = |name, action: &str, fields: Value| {
        let ask = with(fields, "filter", json!({"tag": "nothing", "error": "hunter"}));
        let entry = json!({"after": {"action": action, "filter": {"tag": "nothing"}, "state": "running"}});
        case(name, Method::POST, &format!("/v1/jobs/{action}"), ask, entry)
    };
    // If there is a carrier, the operation is done by then.
    let stopped = json!({"target": {"bulk": "{bulk}"}, "count": 0});
    vec![
        operation("run_jobs", "run", json!({})),
        operation("revive_jobs", "revive", json!({})),
        operation("reschedule_jobs", "reschedule", json!({"delay": "1h"})),
        operation("purge_jobs", "purge", json!({})),
        naming("bulk", operation("cancel_jobs", "cancel", json!({}))),
        case("stop_bulk_operation", Method::DELETE, "/v1/bulk/{bulk}", Value::Null, stopped),
    ]
}

fn destinations() -> Vec<Case> {
    let entry = |before: Value, after: Value| json!({"target": {"host": "merchant.example:8443"}, "before": {"pauses": before}, "after": {"pauses": after}});
    let (none, one) = (json!([]), json!(["merchant.example:8443"]));
    let path = |verb: &str| format!("/v1/destinations/merchant.example:8443/{verb}");
    let (limited, limits) =
        ("/v1/destinations/merchant.example:8443", json!({"rate": "10/s", "burst": 20, "in_flight": 5}));
    vec![
        case(
            "pause_destination",
            Method::POST,
            &path("pause"),
            Value::Null,
            entry(none.clone(), one.clone()),
        ),
        case("resume_destination", Method::POST, &path("resume"), Value::Null, entry(one, none)),
        case(
            "force_breaker",
            Method::POST,
            &path("breaker"),
            json!({"state": "closed"}),
            json!({
                "target": {"host": "merchant.example:8443"},
                "before": {"breaker": "auto", "pauses": []},
                "after": {"breaker": "closed", "pauses": []},
            }),
        ),
        case(
            "put_limits",
            Method::PUT,
            limited,
            json!({"limits": limits}),
            json!({"target": {"host": "merchant.example:8443"}, "before": {"limits": null}, "after": {"limits": limits}}),
        ),
        case(
            "delete_limits",
            Method::DELETE,
            limited,
            Value::Null,
            json!({"target": {"host": "merchant.example:8443"}, "before": {"limits": limits}, "after": {"limits": null}}),
        ),
    ]
}

/// The target of an entry about a job of the topic `pay`.
fn target(id: &str) -> Value {
    json!({"topic": "pay", "id": id})
}

fn jobs() -> Vec<Case> {
    let none = || Value::Null;
    vec![
        case(
            "reschedule",
            Method::PATCH,
            "/v1/jobs/pay/moved",
            json!({"at": "2029-01-01T00:00:00Z"}),
            json!({"target": target("moved"), "before": {"state": "delayed"}, "after": {"state": "delayed", "due_at": "2029-01-01T00:00:00.000Z"}}),
        ),
        case(
            "pause",
            Method::POST,
            "/v1/topics/pay/pause",
            none(),
            json!({"target": {"topic": "pay"}, "before": {"paused": false}, "after": {"paused": true}}),
        ),
        case(
            "run",
            Method::POST,
            "/v1/jobs/pay/run-now/run",
            none(),
            json!({"target": target("run-now"), "before": null, "after": {"state": "ready"}}),
        ),
        case(
            "cancel",
            Method::DELETE,
            "/v1/jobs/pay/cancelled",
            none(),
            json!({"target": target("cancelled"), "after": {"state": "cancelled"}}),
        ),
    ]
}

fn dead_jobs() -> Vec<Case> {
    let none = || Value::Null;
    vec![
        case(
            "revive",
            Method::POST,
            "/v1/jobs/pay/revived/revive",
            none(),
            json!({"target": target("revived"), "before": {"state": "dead"}, "after": {"state": "ready"}}),
        ),
        case(
            "purge",
            Method::DELETE,
            "/v1/topics/pay/dead/purged",
            none(),
            json!({"target": target("purged"), "before": {"state": "dead"}, "count": 1}),
        ),
        case(
            "purge",
            Method::DELETE,
            "/v1/topics/pay/dead/revive",
            none(),
            json!({"target": target("revive"), "count": 1}),
        ),
        naming(
            "bulk",
            case(
                "revive_dead",
                Method::POST,
                "/v1/topics/pay/dead/revive",
                json!({"reason": "nobody-has-it"}),
                json!({"target": {"topic": "pay"}, "after": {"rate": 100, "action": "revive"}}),
            ),
        ),
        case(
            "purge_dead",
            Method::DELETE,
            "/v1/topics/pay/dead",
            none(),
            json!({"target": {"topic": "pay"}, "count": 1}),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table of calls")]
fn topics() -> Vec<Case> {
    let [header, credential, signature, query] = SECRETS;
    let none = || Value::Null;
    let policy = |timeout: &str| {
        let url = format!("https://merchant.example/hook?token={query}");
        json!({"timeout": timeout, "url": url, "headers": {"authorization": format!("Bearer {header}")}})
    };
    let shown = |timeout: &str| json!({"timeout": timeout, "url": "https://merchant.example/hook?…", "headers": {"authorization": "[masked by ringback]"}});
    let credentials = json!({"to": ["https://bank.example"], "bearer": credential});
    vec![
        case(
            "resume",
            Method::POST,
            "/v1/topics/pay/resume",
            none(),
            json!({"before": {"paused": true}, "after": {"paused": false}}),
        ),
        case(
            "put_policy",
            Method::PUT,
            "/v1/topics/pay",
            policy("3s"),
            json!({"target": {"topic": "pay"}, "before": null, "after": shown("3s")}),
        ),
        case(
            "put_policy",
            Method::PUT,
            "/v1/topics/pay",
            policy("4s"),
            json!({"before": shown("3s"), "after": shown("4s"), "count": null}),
        ),
        case(
            "patch_policy",
            Method::PATCH,
            "/v1/topics/pay",
            json!({"timeout": "5s"}),
            json!({"before": shown("4s"), "after": shown("5s"), "count": null}),
        ),
        naming(
            "secret",
            case(
                "add_secret",
                Method::POST,
                "/v1/topics/pay/secrets",
                json!({"secret": format!("whsec_{signature}==")}),
                json!({"target": {"topic": "pay"}, "before": null, "after": null}),
            ),
        ),
        case(
            "delete_secret",
            Method::DELETE,
            "/v1/topics/pay/secrets/{secret}",
            none(),
            json!({"target": {"topic": "pay", "secret": "{secret}"}}),
        ),
        case(
            "put_credential",
            Method::PUT,
            "/v1/credentials/bank",
            credentials,
            json!({"target": {"credential": "bank"}, "before": null, "after": null}),
        ),
        case(
            "delete_credential",
            Method::DELETE,
            "/v1/credentials/bank",
            none(),
            json!({"target": {"credential": "bank"}}),
        ),
        case(
            "delete_topic",
            Method::DELETE,
            "/v1/topics/pay?force=true",
            none(),
            json!({"target": {"topic": "pay"}, "before": shown("5s"), "after": {"deleted": true}, "count": 3}),
        ),
    ]
}

fn schedules() -> Vec<Case> {
    let none = || Value::Null;
    let job = json!({"topic": "reports", "body": "in the body", "context": {"k": "in the context"}});
    let target = || json!({"schedule": "daily", "topic": "reports"});
    let plan = |every: &str| json!({"every": every, "job": job});
    let paused = |before: bool| json!({"target": target(), "before": {"paused": before}, "after": {"paused": !before}});
    let path = "/v1/schedules/daily";
    let shown = |every: &str| json!({"every": every, "job": {"topic": "reports"}});
    vec![
        case(
            "put_schedule",
            Method::PUT,
            path,
            plan("7d"),
            json!({"target": target(), "before": null, "after": shown("7d")}),
        ),
        case(
            "put_schedule",
            Method::PUT,
            path,
            plan("5d"),
            json!({"before": shown("7d"), "after": shown("5d")}),
        ),
        case("pause_schedule", Method::POST, &format!("{path}/pause"), none(), paused(false)),
        case("resume_schedule", Method::POST, &format!("{path}/resume"), none(), paused(true)),
        case(
            "run_schedule",
            Method::POST,
            &format!("{path}/run"),
            none(),
            json!({"target": target(), "count": 1}),
        ),
        case(
            "delete_schedule",
            Method::DELETE,
            path,
            none(),
            json!({"target": target(), "before": shown("5d"), "after": null}),
        ),
    ]
}

fn of_root() -> Vec<Case> {
    let none = || Value::Null;
    let key = json!({"tenant": "other", "scopes": ["read"]});
    vec![
        naming(
            "key",
            root(
                "add_key",
                Method::POST,
                "/v1/keys",
                key,
                json!({"after": {"tenant": "other", "scopes": ["read"]}}),
            ),
        ),
        root(
            "delete_key",
            Method::DELETE,
            "/v1/keys/{key}",
            none(),
            json!({"target": {"key": "{key}"}, "after": null}),
        ),
        root(
            "put_quota",
            Method::PUT,
            "/v1/quotas/other",
            json!({"jobs": 5}),
            json!({"target": {"quota": "other"}, "before": null, "after": {"jobs": 5}}),
        ),
        root(
            "put_quota",
            Method::PUT,
            "/v1/quotas/other",
            json!({"jobs": 6}),
            json!({"before": {"jobs": 5}, "after": {"jobs": 6}}),
        ),
        root(
            "delete_quota",
            Method::DELETE,
            "/v1/quotas/other",
            none(),
            json!({"target": {"quota": "other"}, "before": {"jobs": 6}}),
        ),
        root(
            "repair",
            Method::POST,
            "/v1/check/repair",
            none(),
            json!({"target": {}, "after": {"missing": 0}}),
        ),
        root(
            "detach_archive",
            Method::DELETE,
            "/v1/archive?drop=true",
            none(),
            json!({"target": {}, "after": {"attached": false}}),
        ),
    ]
}

fn of_archive() -> Vec<Case> {
    let none = || Value::Null;
    let filter = json!({"filter": {"topic": "nothing", "tag": "customer:1"}});
    let counts = json!({"submitted": 0, "existing": 0, "refused": 0, "complete": true});
    vec![
        case(
            "replay_history",
            Method::POST,
            "/v1/history/replay",
            filter,
            json!({"target": {"topic": "nothing", "tag": "customer:1"}, "after": counts, "count": 0}),
        ),
        case(
            "erase_history",
            Method::DELETE,
            "/v1/history?topic=pay&id=nobody",
            none(),
            json!({"target": {"topic": "pay", "id": "nobody"}, "after": {"complete": true}, "count": 0}),
        ),
    ]
}
