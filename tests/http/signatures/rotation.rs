//! A rotation under load: whatever a receiver has, the old secret or the new one, each attempt is valid for it.

use std::time::Duration;

use ringback_testkit::{Answer, Script, Sink, StackOptions, now};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::packages::{self, Signed};
use super::{add, sealed};
use crate::sample_jobs::{SOON, job, with};

/// How many jobs there are of each part of a rotation.
const JOBS: usize = 150;
/// How soon a secret signs everywhere.
const APPLIED: Duration = Duration::from_secs(1);

#[tokio::test]
async fn each_attempt_of_a_rotation_is_accepted_by_the_libraries_of_the_specification() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (sealed(options).start().await, Sink::start().await);
        // Every other attempt fails, so that jobs are retried under another secret than they began with.
        sink.answer(Script::first(JOBS, Answer::status(500)).finally(Answer::status(200)));
        let (_, old) = add(&stack, &json!({})).await;
        sleep(APPLIED).await;
        let submit = async |part: &str| {
            let jobs: Vec<_> = (0..JOBS)
                .map(|n| with(job(&sink, &format!("{part}-{n}")), "delay", format!("{}ms", n * 10)))
                .collect();
            assert_eq!(stack.batch(&jobs).await.1["accepted"], JOBS);
            jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
        };
        let mut ids = submit("before").await;
        sleep(Duration::from_millis(500)).await;
        let (_, new) = add(&stack, &json!({"keep": "5s"})).await;
        let (rotated, kept_until) = (now(), Instant::now() + Duration::from_secs(5));
        ids.extend(submit("during").await);
        sink.wait_for_jobs(&ids, 1, SOON).await;
        tokio::time::sleep_until(kept_until + APPLIED).await;
        let over = now();
        ids = submit("after").await;
        sink.wait_for_jobs(&ids, 1, SOON).await;

        let arrivals = sink.arrivals();
        let (mut signed, mut refused) = (Vec::new(), Vec::new());
        for arrival in &arrivals {
            let old_is_valid = arrival.at < over;
            let new_is_valid =
                arrival.at.duration_since(rotated).unsigned_abs() > APPLIED && arrival.at > rotated;
            if old_is_valid && arrival.at.duration_since(rotated) < jiff::SignedDuration::from_secs(4) {
                signed.push(Signed::of(arrival, &old));
            }
            if new_is_valid {
                signed.push(Signed::of(arrival, &new));
            }
            if !old_is_valid {
                refused.push(Signed::of(arrival, &old));
            }
        }
        assert!(signed.len() > 3 * JOBS && refused.len() >= JOBS, "{} and {}", signed.len(), refused.len());
        assert!(arrivals.iter().any(|arrival| arrival.attempt() > Some(1)), "some were retried");
        packages::all_accept(&signed);
        packages::none_accepts(&refused);
    }
}
