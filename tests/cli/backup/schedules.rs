//! Schedules in a backup are restored with the exact text of their jobs' bodies, whatever JSON these are.

use http::Method;

use super::api_only;
use super::files::{restore, restored};
use super::ringback;
use crate::prelude::*;

async fn put(stack: &Stack, id: &str, body: &str) {
    let schedule =
        format!(r#"{{"cron":"@yearly","job":{{"topic":"t","url":"http://127.0.0.1:9/","body":{body}}}}}"#);
    let json = Some(("application/json", schedule.into()));
    let reply = stack.request(Method::PUT, &format!("/v1/schedules/{id}"), json).await;
    assert_eq!(reply.status, 201, "{:?}", reply.body);
}

#[tokio::test]
async fn schedules_are_restored_with_bodies_that_are_not_values() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = api_only(None, 4).start().await;
    let bodies = [r#"{"u":"\ud800"}"#, "1e400", "1.0", r#"{"a":1,"a":2}"#];
    for (n, body) in bodies.iter().enumerate() {
        put(&first, &format!("s{n}"), body).await;
    }
    let path = dir.path().join("first").to_str().expect("UTF-8").to_owned();
    let run = ringback(&first.url(""), &["backup", &path]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let other = api_only(Some("embedded:./data"), 3).start().await;
    // A schedule that is there with another body stays.
    put(&other, "s1", "1e401").await;
    let run = restore(&other, &path, &["--json"]).await;
    assert_eq!(
        run.json()["schedules"],
        json!({"lines": 4, "created": 3, "repeated": 0, "refused": 1}),
        "{run:?}"
    );
    let again = restored(&first, &path).await;
    assert_eq!(again["schedules"], json!({"lines": 4, "created": 0, "repeated": 4, "refused": 0}), "{again}");
    let export = String::from_utf8(other.get("/v1/export/schedules").await.body.to_vec()).expect("UTF-8");
    for body in [bodies[0], "1e401", bodies[2], bodies[3]] {
        assert!(export.contains(&format!("\"body\":{body}")), "{body}: {export}");
    }
}
