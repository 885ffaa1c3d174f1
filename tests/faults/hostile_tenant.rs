//! A topic beside another topic whose receiver never answers: the checker of histories finds its jobs about as
//! punctual as alone.

use ringback_testkit::history::{Entry, Invariant, InvariantResult, Policy, Report, Tenant};
use ringback_testkit::recorded::{Bounds, Recorded, RecordedJob};
use tokio::time::sleep;

use crate::prelude::*;

/// The topic that must not suffer, and how many jobs it has.
const CALM: &str = "calm";
const JOBS: usize = 120;
/// The hostile topic, which has as many jobs.
const HOSTILE: &str = "hostile";
/// The pause between two jobs.
const PAUSE: Duration = Duration::from_millis(15);
/// The limit until all jobs have ended; hostile jobs end with their timeouts.
const DRAIN: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_receiver_that_never_answers_does_not_delay_another_topic() {
    let alone = run(None).await;
    assert!(alone.clean, "{alone}");
    let beside = run(Some(alone.lateness_ms.p99)).await;
    assert!(beside.clean, "{beside}");
    assert_eq!(beside.standing(Invariant::TenantsApart).verdict, InvariantResult::Held, "{beside}");
}

/// Runs the calm topic and checks the history. `alone` is that topic's lateness in ms by itself; if it is given, the
/// hostile topic runs too.
async fn run(alone: Option<f64>) -> Report {
    let stack = Stack::start().await;
    let mut bounds = Bounds { live: Some(DRAIN), ..Bounds::default() };
    bounds.policies.push(Policy { p: 1, delays: Vec::new(), max: 1, jitter: 0.0 });
    let recorded = Recorded::start("hostile tenant", &bounds);
    let (sink, hole) = (Sink::recorded(recorded.history()).await, Sink::recorded(recorded.history()).await);
    hole.answer(Answer::status(200).held());
    recorded.read_clock(stack.redis()).await;
    if let Some(alone) = alone {
        recorded.history().write(&Entry::Tenant(Tenant { topic: CALM, alone: (alone * 1_000.0) as u64 }));
    }
    let api = stack.api_urls().remove(0);
    for n in 0..JOBS {
        if alone.is_some() {
            let mut job = RecordedJob::new(HOSTILE, &n.to_string(), Some(hole.url("/hook")));
            job.timeout = Some(1_000);
            job.policy = Some((1, json!({"preset": "none"})));
            recorded.submit(&api, &job).await;
        }
        let mut job = RecordedJob::new(CALM, &n.to_string(), Some(sink.url("/hook")));
        job.delay = Some(300);
        recorded.submit(&api, &job).await;
        sleep(PAUSE).await;
    }
    recorded.drain(&stack, &[CALM, HOSTILE], DRAIN).await;
    recorded.read_clock(stack.redis()).await;
    recorded.end(&stack, &[CALM, HOSTILE], true).await;
    recorded.check()
}
