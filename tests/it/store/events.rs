//! Events: what each edge tells to who watches, in order, and that nothing is told while nobody does.

use std::collections::VecDeque;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::contract::{
    AttemptEnded, AttemptOutcome, Event, EventKind, PullOutcome, RedriveStart, Redriven, Settled, StreamItem,
};
use ringback_core::job::{Due, History, ImportJob, JobKey, NewJob};
use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::state::State;
use ringback_store::Events;
use ringback_testkit::eventually;

use super::bench::{Bench, SOON, now};
use super::dead::{all, of_topic, places};
use super::jobs::{BRIEF, LONG, TOPIC, With, bury, ms, release, retry, seen};

/// A stream of events of a bench's shard.
struct Watching {
    events: Events,
    told: VecDeque<Event>,
}

impl Watching {
    async fn start(bench: &Bench) -> Self {
        let mut watching = Self::silent(bench).await;
        watching.told.clear();
        bench.store().watch(bench.shard(), LONG).await.expect("watch");
        watching
    }

    /// A subscription alone.
    async fn silent(bench: &Bench) -> Self {
        let mut events = bench.store().events(ringback_service::random::generator());
        assert_eq!(heard(&mut events).await, StreamItem::Gap, "a stream begins with that");
        Self { events, told: VecDeque::new() }
    }

    async fn next(&mut self) -> Event {
        while self.told.is_empty() {
            match heard(&mut self.events).await {
                StreamItem::Events(events) => self.told.extend(events),
                other => panic!("something was lost: {other:?}"),
            }
        }
        self.told.pop_front().expect("there is one")
    }

    /// What is told next is this, of this job, and of just now.
    async fn expect(&mut self, key: &JobKey, wanted: impl IntoIterator<Item = EventKind>) {
        for what in wanted {
            let event = self.next().await;
            assert_eq!((&event.key, &event.kind), (key, &what));
            assert!(now().since(event.at) < SOON && event.at <= now(), "{}", event.at);
        }
    }

    /// Nothing was told that was not fetched: what comes next is of a new job.
    async fn nothing(&mut self, bench: &Bench, name: &str) {
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

/// Of an attempt that failed as [`seen`] has it.
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

/// Submits a job that is due now.
async fn ready(bench: &Bench, watching: &mut Watching, job: NewJob) -> JobKey {
    let job = bench.accept(job).await;
    watching.expect(&job.key, [EventKind::Submitted { due: job.due }]).await;
    job.key
}

pub(super) async fn a_job_is_told_of_from_its_submit_to_its_end(bench: &Bench) {
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

pub(super) async fn failures_are_told_with_what_was_seen_and_when_it_goes_on(bench: &Bench) {
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

pub(super) async fn releases_are_told_and_wait_or_do_not(bench: &Bench) {
    let mut watching = Watching::start(bench).await;
    let key = ready(bench, &mut watching, bench.job("a")).await;
    let lease = bench.take_one(&key).await;
    bench.settle(lease, release(ms(0))).await;
    watching.expect(&key, [ended(1, AttemptOutcome::Release)]).await;
    let lease = bench.take_one(&key).await;
    bench.settle(lease, release(LONG)).await;
    let due = Some(bench.get(&key).await.due);
    let EventKind::Attempt(told) = ended(2, AttemptOutcome::Release) else { unreachable!("it is one") };
    watching.expect(&key, [EventKind::Attempt(AttemptEnded { due, ..told })]).await;
    watching.nothing(bench, "mark").await;
}

pub(super) async fn cancels_are_told_when_the_job_ends(bench: &Bench) {
    let mut watching = Watching::silent(bench).await;
    let delayed = bench.job_in(State::Delayed, bench.job("a")).await.key;
    let buried = bench.job_in(State::Dead, bench.job("b")).await.key;
    let lease = bench.reserved(bench.job("c")).await;
    let ready = bench.accept(bench.job("d")).await.key;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    for key in [delayed, buried, ready] {
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

pub(super) async fn a_success_is_told_with_its_answer_where_the_job_was_reserved_under_watch(bench: &Bench) {
    let mut watching = Watching::silent(bench).await;
    let mut before = bench.reserved(bench.job("before")).await;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    for name in ["plain", "large"] {
        let mut job = bench.job(name);
        if name == "large" {
            job = job.body(vec![b'x'; 10_000]);
        }
        let key = ready(bench, &mut watching, job).await;
        let mut lease = bench.take_one(&key).await;
        lease.record_response(204, ms(17));
        bench.settle(lease, Outcome::Complete).await;
        let EventKind::Attempt(told) = ended(1, AttemptOutcome::Complete) else { unreachable!("it is one") };
        let seen = AttemptEnded { status: Some(204), duration: Some(ms(17)), ..told };
        watching.expect(&key, [EventKind::Attempt(seen), EventKind::Done]).await;
        assert_eq!(bench.state(&key).await, Some(State::Done));
    }
    before.record_response(204, ms(17));
    let key = before.key.clone();
    bench.settle(before, Outcome::Complete).await;
    watching.expect(&key, complete(1)).await;
    // What was seen is of a success: other words have their own.
    let key = ready(bench, &mut watching, bench.job("fails")).await;
    let mut lease = bench.take_one(&key).await;
    lease.record_response(500, ms(1));
    bench.settle(lease, bury()).await;
    watching.expect(&key, [failed(1, AttemptOutcome::Bury, None), dead("exhausted")]).await;
    watching.nothing(bench, "mark").await;
}

pub(super) async fn lost_leases_are_told_as_attempts(bench: &Bench) {
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
    assert_eq!(bench.settle(late, Outcome::Complete).await, Settled::Late);
    watching.expect(&key, [ended(1, AttemptOutcome::Lost), EventKind::Done]).await;
    watching.nothing(bench, "mark").await;
}

pub(super) async fn what_consumers_say_is_told(bench: &Bench) {
    let mut watching = Watching::start(bench).await;
    let key = ready(bench, &mut watching, bench.pull_job("a")).await;
    let job = bench.pull_one(&key, LONG).await;
    bench.say(job.receipt, PullOutcome::Retry { after: ms(5), error: Some("out of paper".to_owned()) }).await;
    let event = watching.next().await;
    let EventKind::Attempt(told) = event.kind else { panic!("an attempt: {event:?}") };
    assert_eq!((told.number, told.outcome, told.status), (1, AttemptOutcome::Retry, None));
    assert_eq!((told.error.as_deref(), told.due), (Some("out of paper"), Some(bench.get(&key).await.due)));
    assert!(told.duration.is_some_and(|took| took < SOON));
    bench.promote_until(1).await;
    watching.expect(&key, [EventKind::Promoted]).await;
    let job = bench.pull_one(&key, LONG).await;
    bench.say(job.receipt, PullOutcome::Release { after: ms(0) }).await;
    watching.expect(&key, [ended(2, AttemptOutcome::Release)]).await;
    let job = bench.pull_one(&key, LONG).await;
    assert_eq!(bench.say(job.receipt, PullOutcome::Finish).await, Settled::Applied);
    bench.say(job.receipt, PullOutcome::Finish).await;
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
    bench.say(job.receipt, PullOutcome::Bury { reason: "unwanted".to_owned(), error: None }).await;
    assert!(matches!(
        watching.next().await.kind,
        EventKind::Attempt(AttemptEnded { outcome: AttemptOutcome::Bury, error: None, .. })
    ));
    watching.expect(&key, [dead("unwanted")]).await;
    watching.nothing(bench, "mark").await;
}

pub(super) async fn imports_are_told_as_submits_and_deaths(bench: &Bench) {
    let mut watching = Watching::start(bench).await;
    let last = LastAttempt { status: None, error: Some("timeout".to_owned()), ..seen() };
    let history = History { attempts: 3, failures: 2, last: Some(last), ..History::default() };
    let buried = History { dead: Some("gone".to_owned()), ..history.clone() };
    let jobs = [(bench.job("a").after(LONG), history), (bench.job("b"), buried)]
        .map(|(job, history)| ImportJob { job, history: Some(history) });
    let told = bench.store().import(bench.shard(), &jobs).await.expect("import");
    let submitted = |n: usize| EventKind::Submitted { due: told[n].job.due };
    watching.expect(&told[0].job.key, [submitted(0)]).await;
    watching.expect(&told[1].job.key, [submitted(1), dead("gone")]).await;
    bench.store().import(bench.shard(), &jobs).await.expect("import");
    watching.nothing(bench, "mark").await;
}

pub(super) async fn what_a_call_makes_ready_is_told_as_promoted(bench: &Bench) {
    let mut watching = Watching::silent(bench).await;
    let (run, now_due, later) = (
        bench.job_in(State::Delayed, bench.job("a")).await.key,
        bench.job_in(State::Delayed, bench.job("b")).await.key,
        bench.job_in(State::Delayed, bench.job("c")).await.key,
    );
    let revived = bench.job_in(State::Dead, bench.job("d")).await.key;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    let store = bench.store();
    store.reschedule(&later, Due::In(2 * LONG), bench.token()).await.expect("reschedule");
    store.reschedule(&now_due, Due::In(Duration::ZERO), bench.token()).await.expect("reschedule");
    watching.expect(&now_due, [EventKind::Promoted]).await;
    store.run(&run, bench.token()).await.expect("run");
    watching.expect(&run, [EventKind::Promoted]).await;
    store.revive(&revived, bench.token()).await.expect("revive");
    watching.expect(&revived, [EventKind::Promoted]).await;
    watching.nothing(bench, "mark").await;
}

pub(super) async fn each_revived_job_of_many_is_told(bench: &Bench) {
    let mut watching = Watching::silent(bench).await;
    for name in ["a", "b", "c"] {
        bench.job_in(State::Dead, bench.job(name)).await;
    }
    let begun = bench.store().start_redrive(bench.token(), &of_topic(TOPIC), 50).await.expect("begin");
    let RedriveStart::Redrive(revival) = begun else { panic!("one can begin") };
    let places = places(bench, &revival.wanted()).await;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    let revived = bench.store().revive_many(bench.shard(), revival.id, &places).await.expect("revive");
    assert_eq!(revived, Redriven::Jobs(3));
    assert_eq!(all(bench, &of_topic(TOPIC)).await.len(), 0);
    let mut keys = Vec::new();
    for _ in 0..3 {
        let event = watching.next().await;
        assert_eq!(event.kind, EventKind::Promoted);
        keys.push(event.key.id.to_string());
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3);
    watching.nothing(bench, "mark").await;
}

pub(super) async fn what_is_purged_and_expired_is_not_told(bench: &Bench) {
    let bench = &bench.with(|options| options.keep_dead = ms(1)).await;
    let mut watching = Watching::silent(bench).await;
    let purged = bench.job_in(State::Dead, bench.job("a")).await.key;
    bench.job_in(State::Dead, bench.job("b")).await;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    bench.store().purge(&purged).await.expect("purge");
    eventually(SOON, "the other expires", async || match bench.expire(10).await.moved {
        1 => Ok(()),
        n => Err(n),
    })
    .await;
    watching.nothing(bench, "mark").await;
    bench.audit().await;
}

pub(super) async fn a_large_batch_is_told_whole_and_in_order(bench: &Bench) {
    const JOBS: usize = 500;
    let mut watching = Watching::start(bench).await;
    let topics = ["one", "two", "three"];
    let jobs: Vec<_> = (0..JOBS).map(|n| bench.job_of(topics[n % 3], &format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    for job in &jobs {
        let event = watching.next().await;
        assert_eq!(event.key, job.key);
    }
    let mut leases = bench.take(JOBS).await;
    while leases.len() < JOBS {
        leases.extend(bench.take(JOBS).await);
    }
    let keys: Vec<_> = leases.iter().map(|lease| lease.key.clone()).collect();
    // In the second half some fail, so that both ways of a settle are taken.
    let items = leases.into_iter().enumerate().map(|(n, lease)| {
        let outcome = if n % 7 == 6 { bury() } else { Outcome::Complete };
        (lease, outcome)
    });
    let settled = bench.settle_all(items.collect()).await;
    assert!(settled.iter().all(|settled| *settled == Settled::Applied));
    let mut ends = std::collections::HashMap::new();
    for _ in 0..2 * JOBS {
        let event = watching.next().await;
        let told: &mut Vec<_> = ends.entry(event.key).or_default();
        told.push(event.kind);
    }
    for (n, key) in keys.iter().enumerate() {
        let wanted = if n % 7 == 6 {
            vec![failed(1, AttemptOutcome::Bury, None), dead("exhausted")]
        } else {
            complete(1).to_vec()
        };
        assert_eq!(ends[key], wanted, "{key}");
    }
    watching.nothing(bench, "mark").await;
}

pub(super) async fn an_exchange_tells_what_it_settles(bench: &Bench) {
    let mut watching = Watching::start(bench).await;
    let key = ready(bench, &mut watching, bench.job("a")).await;
    let lease = bench.take_one(&key).await;
    let next = ready(bench, &mut watching, bench.job("b")).await;
    let (_, mut reserved) = bench.exchange(vec![(lease, Outcome::Complete)], &bench.ask(1)).await;
    watching.expect(&key, complete(1)).await;
    let lease = reserved.leases.remove(0);
    // The same again is only a repetition.
    assert_eq!(bench.settle(lease, bury()).await, Settled::Applied);
    watching.expect(&next, [failed(1, AttemptOutcome::Bury, None), dead("exhausted")]).await;
    watching.nothing(bench, "mark").await;
}

pub(super) async fn nothing_is_told_before_and_after_a_shard_is_watched(bench: &Bench) {
    let mut watching = Watching::silent(bench).await;
    bench.accept(bench.job("before")).await;
    let watch = async |lasts| bench.store().watch(bench.shard(), lasts).await.expect("watch");
    let since = watch(ms(50)).await;
    assert_eq!(watch(ms(50)).await, since, "it is watched by now");
    let seen = now();
    eventually(SOON, "the watch has run out", async || {
        if now().since(seen) > ms(100) { Ok(()) } else { Err("not yet") }
    })
    .await;
    bench.accept(bench.job("after")).await;
    bench.cancel(&bench.key(TOPIC, "after")).await;
    let anew = watch(LONG).await;
    assert!(anew > since, "it had run out");
    assert_eq!(watch(LONG).await, anew, "whoever asks");
    // A shorter watch does not end a longer one.
    bench.store().watch(bench.shard(), ms(1)).await.expect("watch");
    let asked = now();
    eventually(SOON, "it would have run out", async || {
        if now().since(asked) > ms(10) { Ok(()) } else { Err("not yet") }
    })
    .await;
    watching.nothing(bench, "mark").await;
}
