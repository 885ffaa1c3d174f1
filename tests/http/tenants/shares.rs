//! Shares of tenants: one tenant leaves half of the bulk operations and of the waiting consumers to the others.

use std::net::IpAddr;

use futures_util::future::join_all;
use http::Method;
use reqwest::Client;

use super::{Caller, ROOT};
use crate::prelude::*;

#[tokio::test]
async fn a_tenant_leaves_half_of_the_bulk_operations_to_the_others() {
    // Without a carrier, bulk operations never end.
    for options in StackOptions::api_on_each_store() {
        let stack = options.env("RINGBACK_ROOT_KEY", ROOT).start().await;
        let begin = async |caller: &Caller, n: usize| {
            let path = format!("/v1/topics/t{n}/dead/revive");
            caller.send(&stack, Method::POST, &path, Some(&json!({}))).await
        };
        let (greedy, other) = (Caller::of(&stack, "greedy").await, Caller::of(&stack, "other").await);
        let mut first = None;
        for (caller, share) in [(&greedy, 8), (&other, 4)] {
            for n in 0..share {
                let begun = begin(caller, n).await.expect(202);
                first.get_or_insert(begun["id"].as_str().expect("an id").to_owned());
            }
            let problem = begin(caller, share).await.expect(409);
            let expected = format!("the tenant has {share} running bulk operations");
            assert!(problem["detail"].as_str().expect("a text").starts_with(&expected), "{problem}");
        }
        let root = Caller::root(None);
        for n in 0..4 {
            begin(&root, n).await.expect(202);
        }
        begin(&root, 4).await.refused(409, "16 bulk operations");
        let path = format!("/v1/bulk/{}", first.expect("one"));
        greedy.send(&stack, Method::DELETE, &path, None).await.expect(200);
        begin(&greedy, 9).await.expect(409);
        begin(&root, 9).await.expect(202);
    }
}

#[tokio::test]
async fn a_tenant_leaves_half_of_the_waiting_consumers_to_the_others() {
    let options =
        StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).env("RINGBACK_API_CONNECTIONS", "16");
    let stack = options.start().await;
    let greedy = Caller::of(&stack, "greedy").await;
    // One address may have half of the connections, the next address half of the rest.
    let [one, two] =
        [2, 3].map(|host| Caller { client: client_at([127, 0, 0, host].into()), ..greedy.clone() });
    let wait = async |caller: &Caller, wait: &str| {
        caller.post(&stack, "/v1/topics/t/reserve", &json!({"wait": wait})).await
    };
    let calls = (0..9).map(|n| wait(if n < 6 { &one } else { &two }, "2s"));
    let (refused, answered): (Vec<_>, Vec<_>) =
        join_all(calls).await.into_iter().partition(|reply| reply.status == 503);
    assert_eq!((refused.len(), answered.len()), (1, 8));
    refused[0].refused(503, "8 consumers of your tenant");
    answered.into_iter().for_each(|reply| drop(reply.expect(200)));
    // A reserve without a wait needs no place.
    let calls = join_all((0..9).map(|n| wait(if n < 6 { &one } else { &two }, "0s")));
    calls.await.into_iter().for_each(|reply| drop(reply.expect(200)));
}

fn client_at(address: IpAddr) -> Client {
    Client::builder().local_address(address).no_proxy().build().expect("a client")
}
