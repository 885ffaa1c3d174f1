//! For each call of the store, the API request that leads to it, and the jobs that must be there before.

use http::Method;
use serde_json::{Value, json};

use super::calls::Client;

/// A request: method, URL and body. A text is JSON lines.
pub(crate) type Request = (Method, String, Option<Value>);

impl Client<'_> {
    /// Prepares and returns the request that leads to a call of the store. `id` must be used nowhere else.
    pub(crate) async fn request(&self, call: &str, id: &str) -> Request {
        let path = |path: &str| format!("{}/v1/{path}", self.api);
        let far = json!({"topic": "far", "id": id, "url": "http://127.0.0.1:9/", "delay": "1h"});
        let job = path(&format!("jobs/far/{id}"));
        let limits = json!({"limits": {"rate": "10/s"}});
        match call {
            "submit" => return (Method::POST, path("jobs"), Some(far)),
            "import" => return (Method::POST, path("import"), Some(far.to_string().into())),
            "cancel" | "reschedule" | "get" | "get_stored" | "waits" | "replace" | "page" | "attempts" => {
                self.ok("POST", "jobs", far.clone()).await;
            }
            "run" => self.ok("POST", "jobs", with(far.clone(), "url", format!("{}/hook", self.aside))).await,
            _ => {}
        }
        match call {
            "replace" => (Method::POST, path("jobs"), Some(with(far, "if_exists", "replace".to_owned()))),
            "cancel" => (Method::DELETE, job, None),
            "reschedule" => (Method::PATCH, job, Some(json!({"delay": "2h"}))),
            "run" => (Method::POST, format!("{job}/run"), None),
            "get" | "waits" => (Method::GET, job, None),
            "get_stored" => (Method::GET, format!("{job}?include=request"), None),
            "attempts" => (Method::GET, format!("{job}/attempts"), None),
            "page" => (Method::GET, path("jobs"), None),
            "indexed" => {
                let dry_run = json!({"filter": {"tag": "customer:42"}, "dry_run": true});
                (Method::POST, path("jobs/cancel"), Some(dry_run))
            }
            "stats" => (Method::GET, path("stats"), None),
            "topics" => (Method::GET, path("topics"), None),
            "destinations" | "paused_destinations" | "failing" | "limits" | "limit_names" => {
                (Method::GET, path("destinations"), None)
            }
            "put_limit" | "mark_limit" => {
                (Method::PUT, path(&format!("destinations/{id}.example")), Some(limits))
            }
            "unmark_limit" => {
                self.ok("PUT", &format!("destinations/{id}.example"), limits).await;
                (Method::DELETE, path(&format!("destinations/{id}.example")), None)
            }
            "order_topic" => (Method::PUT, path(&format!("topics/{id}")), Some(json!({"order": "key"}))),
            "topic_order" | "unorder_topic" => {
                self.ok("PUT", &format!("topics/{id}"), json!({"order": "key"})).await;
                let method = if call == "topic_order" { Method::GET } else { Method::DELETE };
                (method, path(&format!("topics/{id}")), None)
            }
            "unblock" => (Method::POST, path("topics/far/keys/k/unblock"), None),
            "forecast_near" | "forecast_far" => (Method::GET, path("forecast"), None),
            "pause_destination" => (Method::POST, path("destinations/far.example/pause"), None),
            "resume_destination" => (Method::POST, path("destinations/far.example/resume"), None),
            "read_audit_log" => (Method::GET, path("audit-log"), None),
            "archive_status" => (Method::GET, path("archive"), None),
            "attach_archive" => (Method::DELETE, path("archive?drop=true"), None),
            "accept_loss" => (Method::POST, path("check/accept-loss"), Some(json!({"run_id": "0123abcd"}))),
            "check_confirm" | "check_repair" | "check_count" => {
                self.damage(id).await;
                (Method::POST, path("check/repair"), None)
            }
            "check_slots" => (Method::POST, path("check/repair"), None),
            _ if call.starts_with("check_") => (Method::GET, path("check"), None),
            "pull" | "lease_info" | "settle_receipts" | "renew" => self.of_consumer(call, id).await,
            "revive" | "purge" | "purge_many" | "dead" | "begin_bulk" | "bulks" => {
                self.of_dead_jobs(call, id).await
            }
            "list_schedule" | "list_schedules" | "schedules" | "change_schedules" | "unlist_schedule"
            | "unlisted_schedules" | "fire" => self.of_schedule(call, id).await,
            _ => self.of_topic(call, id).await,
        }
    }

    async fn of_consumer(&self, call: &str, id: &str) -> Request {
        self.ok("POST", "jobs", json!({"topic": id, "id": "one"})).await;
        let reserve = (
            Method::POST,
            format!("{}/v1/topics/{id}/reserve", self.api),
            Some(json!({"ttr": "30s", "wait": 0})),
        );
        if call == "pull" {
            return reserve;
        }
        let (status, answer) = self.send(&reserve).await;
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let receipt = answer["jobs"][0]["receipt"].as_str();
        let receipt = receipt.unwrap_or_else(|| panic!("{status} {answer}"));
        let action = match call {
            "renew" => "renew",
            "lease_info" => "retry",
            _ => "finish",
        };
        (Method::POST, format!("{}/v1/receipts/{receipt}/{action}", self.api), None)
    }

    async fn of_dead_jobs(&self, call: &str, id: &str) -> Request {
        let dead = json!({"topic": id, "id": "one", "url": format!("{}/hook", self.aside), "state": "dead",
            "reason": "exhausted"});
        self.ok("POST", "import", dead.to_string().into()).await;
        let topic = format!("{}/v1/topics/{id}", self.api);
        match call {
            "revive" => (Method::POST, format!("{}/v1/jobs/{id}/one/revive", self.api), None),
            "purge" => (Method::DELETE, format!("{topic}/dead/one"), None),
            "purge_many" => (Method::DELETE, format!("{topic}/dead"), None),
            "dead" => (Method::GET, format!("{topic}/dead"), None),
            "begin_bulk" => (Method::POST, format!("{topic}/dead/revive"), Some(json!({}))),
            _ => (Method::GET, format!("{}/v1/bulk", self.api), None),
        }
    }

    async fn of_schedule(&self, call: &str, id: &str) -> Request {
        let path = format!("schedules/{id}");
        let schedule = json!({"every": "1h", "job": {"topic": "far", "url": format!("{}/hook", self.aside)}});
        let url = format!("{}/v1/{path}", self.api);
        if call == "list_schedule" {
            return (Method::PUT, url, Some(schedule));
        }
        self.ok("PUT", &path, schedule).await;
        match call {
            "list_schedules" => (Method::GET, format!("{}/v1/schedules", self.api), None),
            "schedules" => (Method::GET, url, None),
            "change_schedules" => (Method::POST, format!("{url}/pause"), None),
            "unlist_schedule" => (Method::DELETE, url, None),
            "fire" => (Method::POST, format!("{url}/run"), None),
            _ => (Method::GET, format!("{}/v1/check", self.api), None),
        }
    }

    async fn of_topic(&self, call: &str, id: &str) -> Request {
        let topic = format!("{}/v1/topics/{id}", self.api);
        let policy = Some(json!({"timeout": "2s"}));
        if matches!(call, "resume" | "pause") {
            self.ok("POST", &format!("topics/{id}/pause"), Value::Null).await;
        } else if call != "put_policy" {
            self.ok("PUT", &format!("topics/{id}"), json!({"timeout": "3s"})).await;
        }
        match call {
            "pause" => (Method::POST, format!("{topic}/pause"), None),
            "resume" => (Method::POST, format!("{topic}/resume"), None),
            "put_policy" => (Method::PUT, topic, policy),
            "delete_policy" => (Method::DELETE, topic, None),
            "HGET" => (Method::GET, topic, None),
            other => panic!("no request leads to {other}"),
        }
    }
}

fn with(mut job: Value, field: &str, value: String) -> Value {
    job[field] = value.into();
    job
}
