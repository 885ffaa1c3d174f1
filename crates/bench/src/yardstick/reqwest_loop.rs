//! The yardstick of delivery: a bare reqwest client that sends the same bodies, without any queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::job::{URL, job};
use crate::receiver::{Channel, Receiver};
use ringback_testkit::http_client;

/// Requests in flight at a time: as many as a notifier has for one destination.
const CONCURRENCY: usize = 64;

/// Sends the bodies of `jobs` jobs. Returns jobs per second by the receiver's count.
pub(crate) async fn run(receiver: &Receiver, jobs: usize) -> f64 {
    receiver.expect(0..jobs);
    let (client, url) = (http_client(), receiver.url(Channel::Main));
    // The bodies are made before, so that only sending counts.
    let all: Arc<Vec<(String, Bytes)>> = Arc::new((0..jobs).map(id_and_body).collect());
    let next = Arc::new(AtomicUsize::new(0));
    let mut running = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (client, url, all, next) = (client.clone(), url.clone(), Arc::clone(&all), Arc::clone(&next));
        running.spawn(async move {
            while let Some((id, body)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let request = client.post(&url).header("ringback-job-id", id).body(body.clone());
                let answer = request.header("content-type", "application/json").send().await;
                answer.expect("an answer").bytes().await.expect("the whole answer");
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("every request is answered");
    }
    receiver.wait_for(jobs, Duration::from_secs(60)).await;
    receiver.board().rate()
}

fn id_and_body(number: usize) -> (String, Bytes) {
    let job = job(number, URL, &Value::Null);
    (job["id"].as_str().unwrap_or_default().to_owned(), job["body"].to_string().into())
}
