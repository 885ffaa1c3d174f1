//! Ordered topics on the command line: `policy set --order`, `submit --key`, `topic`, `get` and `unblock`.

use super::{Run, reports, ringback};
use crate::prelude::*;

/// Runs a command that must succeed.
async fn done(server: &str, line: &str) -> Run {
    let run = ringback(server, &line.split(' ').collect::<Vec<_>>()).await;
    assert_eq!(run.code, Some(0), "{line}: {run:?}");
    run
}

#[tokio::test]
async fn a_topic_is_ordered_and_a_key_that_a_dead_job_holds_is_unblocked() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let server = stack.url("");
        done(&server, "policy set orders --order key --order-on-dead hold").await;
        let run = done(&server, "topic orders").await;
        let order: Vec<_> = run.out.lines().skip(3).map(|line| line.split("  ").next()).collect();
        assert_eq!(order, [Some("ORDERED BY"), Some("key")], "{run:?}");
        assert!(run.out.contains(" hold ") && run.out.contains(" ordered "), "{run:?}");

        let run = done(&server, "submit --topic orders --key order-7 --ttr 30s --json").await;
        let first = run.json()["id"].as_str().expect("an id").to_owned();
        assert!(first.starts_with("order-7~"), "{first}");
        done(&server, "submit --topic orders --key order-7 --id order-7~shipped --ttr 30s").await;
        let waits = |text: &str| format!("\nwaiting   {text}, 1 job before it\n");
        let run = done(&server, "get orders/order-7~shipped").await;
        assert!(
            run.out.contains(&waits(&format!("for {first}, the first job of its key order-7"))),
            "{run:?}"
        );

        let reserved = stack.reserve_one("orders", &json!({})).await;
        assert_eq!(reserved["id"], json!(first));
        stack.settle(&reserved, "bury", &json!({"reason": "no-such-order"})).await.expect(200);
        let run = done(&server, "get orders/order-7~shipped").await;
        let held = format!(
            "until the dead job {first}, which holds the key order-7, is revived or purged, or `ringback unblock orders order-7` passes it over"
        );
        assert!(run.out.contains(&waits(&held)), "{run:?}");

        let run = done(&server, "unblock orders order-7").await;
        assert_eq!(run.out, "the next job of the key order-7 of topic orders goes\n", "{run:?}");
        reports(&server, &["unblock", "orders", "order-7"], 1, "no dead job holds the key order-7").await;
        let run = ringback(&server, &["unblock", "orders", "order-7", "--json"]).await;
        assert_eq!((run.code, &run.json()["unblocked"]), (Some(1), &json!(false)), "{run:?}");
        assert_eq!(stack.reserve_one("orders", &json!({})).await["id"], "order-7~shipped");

        let run = done(&server, "policy set orders --unset order").await;
        assert_eq!(run.err, "no longer set: order, order_on_dead\n", "{run:?}");
        assert_eq!(done(&server, "topic orders").await.out.lines().count(), 2);
    }
}

#[tokio::test]
async fn wrong_keys_and_orders_are_refused_with_what_is_allowed() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    reports(&server, &["unblock", "orders", "a~b"], 64, "a key is 1 to 101 of").await;
    reports(&server, &["submit", "--topic", "t", "--key", "a b"], 64, "a key is 1 to 101 of").await;
    let submit = ["submit", "--topic", "t", "--key", "a", "--id", "b"];
    reports(&server, &submit, 1, "id: b is not an id of a job with the key a").await;
    reports(&server, &["policy", "set", "t", "--order", "id"], 64, "[possible values: key]").await;
    reports(&server, &["policy", "set", "t", "--order-on-dead", "hold"], 1, "only together with").await;
}
