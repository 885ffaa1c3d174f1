//! Bulk operations of tenants: nobody changes, counts or sees jobs of another tenant.

use http::Method;

use super::{ALL, Caller, stacks};
use crate::prelude::*;

fn job(topic: &str, id: &str) -> Value {
    json!({"topic": topic, "id": id, "url": "https://hooks.example.com/", "delay": "1h", "tags": ["a"]})
}

/// Cancels all of a caller's jobs with the tag `a`, and returns how many these were.
async fn cancel(stack: &Stack, caller: &Caller) -> u64 {
    let ask = json!({"filter": {"tag": "a"}});
    let begun = caller.post(stack, "/v1/jobs/cancel", &ask).await.expect(202);
    let path = format!("/v1/bulk/{}", begun["id"].as_str().expect("an id"));
    let done = caller.wait_get(stack, &path, |now| now["state"] == "done").await;
    done["changed"].as_u64().expect("a number")
}

async fn counted(stack: &Stack, caller: &Caller, is_root: bool) -> (u64, usize) {
    let ask = json!({"filter": {"tag": "a"}, "dry_run": true});
    let answer = caller.post(stack, "/v1/jobs/cancel", &ask).await.expect(200);
    assert_eq!(answer["examined"].is_null(), !is_root, "{answer}");
    let listed = caller.get(stack, "/v1/jobs?tag=a").await.expect(200);
    (answer["count"].as_u64().expect("a number"), listed["items"].as_array().expect("jobs").len())
}

#[tokio::test]
async fn an_operation_changes_the_jobs_of_its_caller_alone() {
    for options in stacks() {
        let stack = options.start().await;
        let (acme, other) = (Caller::of(&stack, "acme").await, Caller::of(&stack, "other").await);
        let limits = json!({"tenant": "acme", "scopes": ALL, "topics": ["t"]});
        let narrow = Caller::with(&stack, &limits).await;
        let (root, of_none) = (Caller::root(None), Caller::root(Some("~none")));
        for (caller, topics) in [(&acme, ["t", "u"]), (&other, ["t", "u"]), (&of_none, ["t", "u"])] {
            for topic in topics {
                for id in ["one", "two"] {
                    caller.post(&stack, "/v1/jobs", &job(topic, id)).await.expect(201);
                }
            }
        }
        let of_tenants = [(&acme, 4, false), (&other, 4, false), (&narrow, 2, false)];
        for (caller, count, is_root) in of_tenants.into_iter().chain([(&of_none, 4, true), (&root, 4, true)])
        {
            let counted = counted(&stack, caller, is_root).await;
            assert_eq!(counted, (count, usize::try_from(count).expect("small")));
        }
        let refused = json!({"filter": {"topic": "u"}});
        narrow.post(&stack, "/v1/jobs/cancel", &refused).await.expect(403);
        assert_eq!(cancel(&stack, &narrow).await, 2);
        assert_eq!(cancel(&stack, &acme).await, 2);
        assert_eq!(cancel(&stack, &root).await, 4);
        assert_eq!(counted(&stack, &other, false).await.0, 4);
        let lists = async |caller: &Caller| {
            let listed = caller.get(&stack, "/v1/bulk").await.expect(200);
            listed["items"].as_array().expect("operations").len()
        };
        let all = [lists(&acme).await, lists(&narrow).await, lists(&other).await, lists(&root).await];
        assert_eq!(all, [2, 1, 0, 3]);
        let items = acme.get(&stack, "/v1/bulk").await.expect(200);
        let path = format!("/v1/bulk/{}", items["items"][0]["id"].as_str().expect("an id"));
        for caller in [&other, &narrow] {
            caller.get(&stack, &path).await.expect(404);
            caller.send(&stack, Method::DELETE, &path, None).await.expect(404);
        }
        root.get(&stack, &path).await.expect(200);
        let reader = Caller::with(&stack, &json!({"tenant": "acme", "scopes": ["read"]})).await;
        reader.get(&stack, &path).await.expect(200);
        for action in ["cancel", "run", "reschedule", "revive", "purge"] {
            reader.post(&stack, &format!("/v1/jobs/{action}"), &json!({"all": true})).await.expect(403);
        }
    }
}
