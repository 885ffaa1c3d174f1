//! Cases of events: which ones each transition of one job publishes, in order, and that none are without watchers.

mod many_jobs;

use std::collections::VecDeque;

use ringback_core::clock::Timestamp;
use ringback_core::job::{JobKey, NewJob};
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::state::State;
use ringback_core::store_types::{AttemptEnded, AttemptOutcome, Event, EventKind, SettleResult, StreamItem};
use ringback_store::Events;

pub(crate) use self::many_jobs::*;
use super::job_builders::{BRIEF, LONG, TOPIC, With, bury, ms, release, retry, seen, tags};
use super::workbench::{SOON, Workbench, now, until};
use crate::sample_jobs::noise;

/// A stream of events of a bench's shard.
struct Watching {
    events: Events,
    received: VecDeque<Event>,
}

impl Watching {
    async fn start(bench: &Workbench) -> Self {
        let mut watching = Self::silent(bench).await;
        watching.received.clear();
        bench.store().watch(bench.shard(), LONG).await.expect("watch");
        watching
    }

    /// Subscribes to events without watching the shard.
    async fn silent(bench: &Workbench) -> Self {
        let mut events = bench.store().events(ringback_service::random::generator());
        assert_eq!(heard(&mut events).await, StreamItem::Gap, "a stream begins with that");
        Self { events, received: VecDeque::new() }
    }

    async fn next(&mut self) -> Event {
        while self.received.is_empty() {
            match heard(&mut self.events).await {
                StreamItem::Events(events) => self.received.extend(events),
                other => panic!("something was lost: {other:?}"),
            }
        }
        self.received.pop_front().expect("there is one")
    }

    /// Asserts that the next events are these, about this job, with its tags and a recent time.
    async fn expect(&mut self, key: &JobKey, wanted: impl IntoIterator<Item = EventKind>) {
        for what in wanted {
            let event = self.next().await;
            assert_eq!((&event.key, &event.kind, &event.tags), (key, &what, &tags(key)));
            assert!(now().since(event.at) < SOON && event.at <= now(), "{}", event.at);
        }
    }

    /// Asserts that no further event was published: the next event is about a new job.
    async fn nothing(&mut self, bench: &Workbench, name: &str) {
        let job = bench.accept(bench.job_of("marks", name).after(LONG)).await;
        self.expect(&job.key, [EventKind::Submitted { due: job.due }]).await;
    }
}

async fn heard(events: &mut Events) -> StreamItem {
    tokio::time::timeout(SOON, events.next()).await.expect("events within the time allowed")
}

fn ended(number: u32, outcome: AttemptOutcome) -> EventKind {
    EventKind::Attempt(AttemptEnded { number, outcome, due: None, status: None, error: None, duration: None })
}

/// The event of an attempt that failed as [`seen`] says.
fn failed(number: u32, outcome: AttemptOutcome, due: Option<Timestamp>) -> EventKind {
    let LastAttempt { status, duration, .. } = seen();
    let duration = Some(duration);
    EventKind::Attempt(AttemptEnded { number, outcome, due, status, error: None, duration })
}

fn dead(reason: &str) -> EventKind {
    EventKind::Dead { reason: reason.into() }
}

fn complete(number: u32) -> [EventKind; 2] {
    [ended(number, AttemptOutcome::Complete), EventKind::Done]
}

/// Submits a job that is due now, expects its event, and returns its key.
async fn ready(bench: &Workbench, watching: &mut Watching, job: NewJob) -> JobKey {
    let job = bench.accept(job).await;
    watching.expect(&job.key, [EventKind::Submitted { due: job.due }]).await;
    job.key
}

pub(crate) async fn a_job_has_events_from_its_submit_to_its_end(bench: &Workbench) {
    let mut watching = Watching::start(bench).await;
    let job = bench.accept(bench.job("a").after(ms(20))).await;
    watching.expect(&job.key, [EventKind::Submitted { due: job.due }]).await;
    bench.promote_until(1).await;
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, Outcome::Complete).await;
    watching.expect(&job.key, [EventKind::Promoted]).await;
    watching.expect(&job.key, complete(1)).await;
    watching.nothing(bench, "mark").await;
}

pub(crate) async fn events_of_failures_have_the_response_and_the_next_due_time(bench: &Workbench) {
    let mut watching = Watching::start(bench).await;
    let key = ready(bench, &mut watching, bench.job("a")).await;
    let lease = bench.take_one(&key).await;
    bench.settle(lease, retry(ms(10))).await;
    let due = bench.get(&key).await.due;
    watching.expect(&key, [failed(1, AttemptOutcome::Retry, Some(due))]).await;
    bench.promote_until(1).await;
    let lease = bench.take_one(&key).await;
    let last = LastAttempt { status: None, error: Some("timeout".to_owned()), ..seen() };
    bench.settle(lease, Outcome::Bury { reason: ringback_core::outcome::Reason::Gone, last }).await;
    let attempt = EventKind::Attempt(AttemptEnded {
        number: 2,
        outcome: AttemptOutcome::Bury,
        due: None,
        status: None,
        error: Some("timeout".into()),
        duration: Some(seen().duration),
    });
    watching.expect(&key, [EventKind::Promoted, attempt, dead("gone")]).await;
    watching.nothing(bench, "mark").await;
}

pub(crate) async fn releases_have_events_with_and_without_a_delay(bench: &Workbench) {
    let mut watching = Watching::start(bench).await;
    let key = ready(bench, &mut watching, bench.job("a")).await;
    let lease = bench.take_one(&key).await;
    bench.settle(lease, release(ms(0))).await;
    watching.expect(&key, [ended(1, AttemptOutcome::Release)]).await;
    let lease = bench.take_one(&key).await;
    bench.settle(lease, release(LONG)).await;
    let due = Some(bench.get(&key).await.due);
    let EventKind::Attempt(attempt) = ended(2, AttemptOutcome::Release) else { unreachable!("it is one") };
    watching.expect(&key, [EventKind::Attempt(AttemptEnded { due, ..attempt })]).await;
    watching.nothing(bench, "mark").await;
}

pub(crate) async fn cancels_have_events_when_the_job_ends(bench: &Workbench) {
    let mut watching = Watching::silent(bench).await;
    let delayed = bench.job_in(State::Delayed, bench.job("a")).await.key;
    let died = bench.job_in(State::Dead, bench.job("b")).await.key;
    let lease = bench.reserved(bench.job("c")).await;
    let ready = bench.accept(bench.job("d")).await.key;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    for key in [delayed, died, ready] {
        bench.cancel(&key).await;
        bench.cancel(&key).await;
        watching.expect(&key, [EventKind::Cancelled]).await;
    }
    let key = lease.key.clone();
    bench.cancel(&key).await;
    bench.cancel(&key).await;
    watching.nothing(bench, "before").await;
    bench.settle(lease, retry(LONG)).await;
    watching.expect(&key, [failed(1, AttemptOutcome::Retry, None), EventKind::Cancelled]).await;
    watching.nothing(bench, "after").await;
}

pub(crate) async fn a_success_has_its_response_in_the_event_when_the_job_was_reserved_under_watch(
    bench: &Workbench,
) {
    let mut watching = Watching::silent(bench).await;
    let mut before = bench.reserved(bench.job("before")).await;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    for name in ["plain", "large"] {
        let mut job = bench.job(name);
        if name == "large" {
            job = job.body(noise(b'x', 10_000).into());
        }
        let key = ready(bench, &mut watching, job).await;
        let mut lease = bench.take_one(&key).await;
        lease.record_response(204, ms(17));
        bench.settle(lease, Outcome::Complete).await;
        let EventKind::Attempt(attempt) = ended(1, AttemptOutcome::Complete) else {
            unreachable!("it is one")
        };
        let seen = AttemptEnded { status: Some(204), duration: Some(ms(17)), ..attempt };
        watching.expect(&key, [EventKind::Attempt(seen), EventKind::Done]).await;
        assert_eq!(bench.state(&key).await, Some(State::Done));
    }
    before.record_response(204, ms(17));
    let key = before.key.clone();
    bench.settle(before, Outcome::Complete).await;
    watching.expect(&key, complete(1)).await;
    // The recorded response is of a success: other outcomes bring their own.
    let key = ready(bench, &mut watching, bench.job("fails")).await;
    let mut lease = bench.take_one(&key).await;
    lease.record_response(500, ms(1));
    bench.settle(lease, bury()).await;
    watching.expect(&key, [failed(1, AttemptOutcome::Bury, None), dead("exhausted")]).await;
    watching.nothing(bench, "mark").await;
}

pub(crate) async fn lost_leases_have_events_as_attempts(bench: &Workbench) {
    let mut watching = Watching::start(bench).await;
    let job = bench.job("a").timeout(BRIEF);
    let key = ready(bench, &mut watching, job).await;
    for number in 1..=5 {
        bench.take_one(&key).await;
        let state = if number < 5 { State::Ready } else { State::Dead };
        bench.recover_until(&key, state).await;
        watching.expect(&key, [ended(number, AttemptOutcome::Lost)]).await;
    }
    watching.expect(&key, [dead("lost")]).await;

    let key = ready(bench, &mut watching, bench.job("b").timeout(BRIEF)).await;
    bench.take_one(&key).await;
    bench.cancel(&key).await;
    bench.recover_until(&key, State::Cancelled).await;
    watching.expect(&key, [ended(1, AttemptOutcome::Lost), EventKind::Cancelled]).await;

    let key = ready(bench, &mut watching, bench.job("c").timeout(BRIEF)).await;
    let late = bench.take_one(&key).await;
    bench.recover_until(&key, State::Ready).await;
    assert_eq!(bench.settle(late, Outcome::Complete).await, SettleResult::Late);
    watching.expect(&key, [ended(1, AttemptOutcome::Lost), EventKind::Done]).await;
    watching.nothing(bench, "mark").await;
}

pub(crate) async fn settles_by_consumers_have_events(bench: &Workbench) {
    let mut watching = Watching::start(bench).await;
    let key = ready(bench, &mut watching, bench.pull_job("a")).await;
    let job = bench.pull_one(&key, LONG).await;
    bench
        .settle_receipt(
            job.receipt,
            Outcome::Retry { after: ms(5), last: LastAttempt::by_consumer(Some("out of paper".to_owned())) },
        )
        .await;
    let event = watching.next().await;
    let EventKind::Attempt(attempt) = event.kind else { panic!("an attempt: {event:?}") };
    assert_eq!((attempt.number, attempt.outcome, attempt.status), (1, AttemptOutcome::Retry, None));
    assert_eq!(
        (attempt.error.as_deref(), attempt.due),
        (Some("out of paper"), Some(bench.get(&key).await.due))
    );
    assert!(attempt.duration.is_some_and(|took| took < SOON));
    bench.promote_until(1).await;
    watching.expect(&key, [EventKind::Promoted]).await;
    let job = bench.pull_one(&key, LONG).await;
    bench.settle_receipt(job.receipt, Outcome::Release { after: ms(0) }).await;
    watching.expect(&key, [ended(2, AttemptOutcome::Release)]).await;
    let job = bench.pull_one(&key, LONG).await;
    assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, SettleResult::Applied);
    bench.settle_receipt(job.receipt, Outcome::Complete).await;
    assert!(matches!(
        watching.next().await.kind,
        EventKind::Attempt(AttemptEnded {
            number: 3,
            outcome: AttemptOutcome::Complete,
            status: None,
            error: None,
            duration: Some(took),
            ..
        }) if took < SOON
    ));
    watching.expect(&key, [EventKind::Done]).await;

    let key = ready(bench, &mut watching, bench.pull_job("b")).await;
    let job = bench.pull_one(&key, LONG).await;
    bench
        .settle_receipt(
            job.receipt,
            Outcome::Bury {
                reason: Reason::Custom("unwanted".to_owned()),
                last: LastAttempt::by_consumer(None),
            },
        )
        .await;
    assert!(matches!(
        watching.next().await.kind,
        EventKind::Attempt(AttemptEnded { outcome: AttemptOutcome::Bury, error: None, .. })
    ));
    watching.expect(&key, [dead("unwanted")]).await;
    watching.nothing(bench, "mark").await;
}

pub(crate) async fn a_shard_publishes_events_only_while_it_is_watched(bench: &Workbench) {
    let mut watching = Watching::silent(bench).await;
    bench.accept(bench.job("before")).await;
    let watch = async |lasts| bench.store().watch(bench.shard(), lasts).await.expect("watch");
    let brief = ms(1_500);
    let since = watch(brief).await;
    assert_eq!(watch(brief).await, since, "it is watched by now");
    until(now().plus(brief + ms(50))).await;
    bench.accept(bench.job("after")).await;
    bench.cancel(&bench.key(TOPIC, "after")).await;
    let anew = watch(LONG).await;
    assert!(anew > since, "it had run out");
    assert_eq!(watch(LONG).await, anew, "whoever asks");
    // A shorter watch does not end a longer one.
    bench.store().watch(bench.shard(), ms(1)).await.expect("watch");
    until(now().plus(ms(5))).await;
    watching.nothing(bench, "mark").await;
}
