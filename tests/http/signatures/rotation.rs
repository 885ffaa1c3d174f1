//! A rotation of a topic's secret under load: receivers find each attempt valid by the old secret or by the new one.

use ringback_testkit::{Arrival, Script, now};
use tokio::time::{Instant, sleep};

use super::packages::{self, Signed};
use super::{add, sealed, wait_signed_by};
use crate::prelude::*;

/// How many jobs there are of each part of a rotation.
const JOBS: usize = 150;
/// How long the old secret goes on signing.
const KEEP: Duration = Duration::from_secs(6);
/// How soon a secret signs everywhere.
const APPLIED: Duration = Duration::from_secs(1);

#[tokio::test]
async fn each_attempt_of_a_rotation_is_accepted_by_the_libraries_of_the_specification() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (sealed(options).start().await, Sink::start().await);
        let (_, old) = add(&stack, &json!({})).await;
        wait_signed_by(&stack, &sink, &[&old]).await;
        // The first attempts fail, so that jobs are retried under another secret.
        sink.answer(Script::first(JOBS, Answer::status(500)).finally(Answer::status(200)));
        let submit = async |part: &str| {
            let jobs: Vec<_> = (0..JOBS)
                .map(|n| with(job(&sink, &format!("{part}-{n}")), "delay", format!("{}ms", n * 10)))
                .collect();
            assert_eq!(stack.batch(&jobs).await.1["accepted"], JOBS);
            jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
        };
        let mut ids = submit("before").await;
        sleep(Duration::from_millis(500)).await;
        let (asked, kept_until) = (now(), Instant::now() + KEEP);
        let (_, new) = add(&stack, &json!({"keep": KEEP.as_secs()})).await;
        ids.extend(submit("during").await);
        sink.wait_for_jobs(&ids, 1, SOON).await;
        wait_signed_by(&stack, &sink, &[&new, &old]).await;
        let rotated = now();
        tokio::time::sleep_until(kept_until + APPLIED).await;
        let over = now();
        ids = submit("after").await;
        sink.wait_for_jobs(&ids, 1, SOON).await;

        // Leaves out jobs by which the test has waited for a secret: the libraries accept only bodies that are text.
        let is_of_a_part = |arrival: &Arrival| !arrival.job_id().starts_with("signed-");
        let arrivals: Vec<_> = sink.arrivals().into_iter().filter(is_of_a_part).collect();
        let (mut signed, mut refused) = (Vec::new(), Vec::new());
        for arrival in &arrivals {
            let old_is_valid = arrival.at < over;
            // The time that an attempt needs is left out.
            if arrival.at.duration_since(asked)
                < jiff::SignedDuration::try_from(KEEP - APPLIED).expect("short")
            {
                signed.push(Signed::of(arrival, &old));
            }
            if arrival.at.duration_since(rotated) > jiff::SignedDuration::try_from(APPLIED).expect("short") {
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
