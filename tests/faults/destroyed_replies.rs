//! Replies of Redis to submits are destroyed by a proxy, so that nobody knows their outcome. After a repetition each
//! job exists once, is delivered once, and is counted once.

use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::history::FaultClass;
use ringback_testkit::recorded::{Bounds, Recorded, RecordedJob};
use ringback_testkit::{RedisErrors, RedisFault, RedisServer, Role, variable};
use tokio::time::sleep;

use super::recorded_load::TOPIC;
use crate::prelude::*;

/// How many replies are destroyed, unless `RINGBACK_TEST_DESTROYED_REPLIES` says another.
const REPLIES: usize = 1_000;
/// The jobs of a call of Redis, which answers about all of them.
const JOBS: usize = 100;
/// How a reply is destroyed, in turn.
const HOW: [RedisFault; 3] = [RedisFault::CloseAfter, RedisFault::Half, RedisFault::Garbage];
/// The pause before a call is repeated.
const PAUSE: Duration = Duration::from_millis(20);

#[tokio::test]
async fn jobs_whose_submits_lost_their_replies_exist_once_and_are_counted_once() {
    let wanted = variable("RINGBACK_TEST_DESTROYED_REPLIES").unwrap_or(REPLIES);
    let redis = RedisServer::start().await;
    let proxy = RedisErrors::start(redis.port()).await;
    let behind = format!("redis://127.0.0.1:{}", proxy.port());
    let options = Stack::options().store(&redis.url()).role_env(Role::Api, "RINGBACK_STORE", &behind);
    // One shard, so that all jobs of a batch are in one call. The check at the end is in the history.
    let stack = options.env("RINGBACK_SHARDS", "1").unchecked().start().await;
    let recorded = Recorded::start("destroyed replies", &Bounds::default());
    let (sink, api) = (Sink::recorded(recorded.history()).await, stack.api_urls().remove(0));

    let (mut destroyed, mut ids) = (0, Vec::new());
    for round in 0.. {
        if destroyed >= wanted {
            break;
        }
        assert!(round < 10 * wanted / JOBS, "{destroyed} replies were destroyed");
        let job = |n| RecordedJob::new(TOPIC, &format!("{round}-{n}"), Some(sink.url("/hook")));
        let jobs: Vec<_> = (0..JOBS).map(job).collect();
        let fault = recorded.fault("destroyed-reply", FaultClass::Network);
        proxy.arm("submit", HOW[round % HOW.len()]);
        let mut answers = recorded.submit_all(&api, &jobs).await;
        proxy.disarm();
        recorded.healed(fault);
        let is_unknown = |status: &Option<u16>| status.is_none_or(|status| status >= 500);
        assert!(answers.iter().all(is_unknown), "{answers:?}");
        while answers.iter().any(is_unknown) {
            sleep(PAUSE).await;
            answers = recorded.submit_all(&api, &jobs).await;
        }
        // A job that is created only now had not reached the store before, so only repeated jobs count.
        destroyed += answers.iter().filter(|status| **status == Some(200)).count();
        ids.extend(jobs.into_iter().map(|job| job.id));
    }
    sink.wait_for_jobs(&ids, 1, SOON).await;
    stack.wait_count("done", ids.len() as u64, SOON).await;
    recorded.drain(&stack, &[TOPIC], SOON).await;
    recorded.end(&stack, &[TOPIC], true).await;

    let (report, counts) = (recorded.check(), sink.counts());
    let doubled = counts.values().filter(|count| **count > 1).count();
    let states = stack.stats().await["states"].clone();
    let accepted: u64 =
        states.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
    let miscounted = accepted.abs_diff(ids.len() as u64);
    let wrong = doubled as u64 + miscounted;
    Reached::new(Figure::UnknownOutcomes, "destroyed replies", destroyed as u64).wrong(wrong).write();
    recorded.assert_clean(&report, "");
    assert_eq!((doubled, miscounted), (0, 0), "{states}");
}
