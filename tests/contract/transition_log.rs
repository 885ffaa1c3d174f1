//! Cases of the log of transitions: one line with the states before and after for each; none for calls without effect.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use ringback_core::job::{Callback, Due, History, IfExists, ImportJob, JobKey, NewJob};
use ringback_core::limits::{MAX_LOST, MAX_RENEWED};
use ringback_core::outcome::{LastAttempt, Reason};
use ringback_core::store_types::{BulkStart, BulkTarget, SettleResult};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use super::dead_letters::{cursors, of_topic};
use super::job_builders::{BRIEF, LONG, With, bury, ms, release, retry};
use super::workbench::{SOON, Workbench};
use crate::prelude::*;

static LOGGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.lock().expect("nobody panics with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Turns the log of transitions on in this process, once. Returns a topic that no other case uses.
fn on() -> String {
    static ON: Once = Once::new();
    static TOPICS: AtomicU64 = AtomicU64::new(0);
    ON.call_once(|| {
        let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(|| Log);
        let transitions = Targets::new().with_target("ringback_store::transitions", LevelFilter::DEBUG);
        tracing_subscriber::registry().with(lines.with_filter(transitions)).init();
    });
    format!("transitions-{}", TOPICS.fetch_add(1, Ordering::Relaxed))
}

/// The transitions of a job in a JSON log, each with its name, states and reason.
pub(crate) fn transitions_in(log: &str, topic: &str, id: &str) -> Vec<String> {
    // Filters lines as text first, because reading all of them takes long. The last line may be incomplete.
    let of_topic = log.lines().filter(|line| line.contains("job changed") && line.contains(topic));
    let lines = of_topic.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let own = lines.filter(|line| line["job.topic"] == topic && line["job.id"] == id);
    own.map(|line| {
        assert_eq!((&line["level"], &line["message"]), (&"DEBUG".into(), &"job changed".into()), "{line}");
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let transition = format!("{}: {} -> {}, {}", text("why"), text("from"), text("to"), text("reason"));
        transition.trim_end_matches(", ").to_owned()
    })
    .collect()
}

fn transitions_of(key: &JobKey) -> Vec<String> {
    let logged = LOGGED.lock().expect("nobody panics with it");
    transitions_in(str::from_utf8(&logged).expect("text"), key.topic.as_str(), key.id.as_str())
}

pub(crate) async fn a_life_is_logged_transition_by_transition(bench: &Workbench) {
    let topic = on();
    let key = bench.accept(bench.job_of(&topic, "a").after(LONG)).await.key;
    let due = Due::In(LONG / 2);
    bench.store().reschedule(&key, due, bench.token()).await.expect("reschedule");
    bench.store().run(&key, bench.token()).await.expect("run");
    let mut lease = bench.take_one(&key).await;
    bench.store().renew(&mut lease, LONG).await.expect("renew");
    bench.settle(lease, retry(ms(1))).await;
    bench.promote_until(1).await;
    for wait in [ms(0), ms(1)] {
        let lease = bench.take_one(&key).await;
        bench.settle(lease, release(wait)).await;
    }
    bench.promote_until(1).await;
    let lease = bench.take_one(&key).await;
    bench.settle(lease, bury()).await;
    bench.store().revive(&key, bench.token()).await.expect("revive");
    let lease = bench.take_one(&key).await;
    bench.settle(lease, Outcome::Complete).await;
    let expected = [
        "submit: nothing -> delayed",
        "reschedule: delayed -> delayed",
        "run: delayed -> ready",
        "reserve: ready -> reserved",
        "renew: reserved -> reserved",
        "retry: reserved -> delayed",
        "promote: delayed -> ready",
        "reserve: ready -> reserved",
        "release: reserved -> ready",
        "reserve: ready -> reserved",
        "release: reserved -> delayed",
        "promote: delayed -> ready",
        "reserve: ready -> reserved",
        "bury: reserved -> dead, exhausted",
        "revive: dead -> ready",
        "reserve: ready -> reserved",
        "complete: reserved -> done",
    ];
    assert_eq!(transitions_of(&key), expected);
}

pub(crate) async fn expired_leases_and_what_becomes_of_them_are_logged(bench: &Workbench) {
    let topic = on();
    let late = bench.stale_lease(bench.job_of(&topic, "late")).await;
    let key = late.key.clone();
    assert_eq!(bench.settle(late, Outcome::Complete).await, SettleResult::Late);
    let expected = [
        "submit: nothing -> ready",
        "reserve: ready -> reserved",
        "recover: reserved -> ready, lease expired",
        "complete: ready -> done, late",
    ];
    assert_eq!(transitions_of(&key), expected);

    let key = bench.accept(bench.job_of(&topic, "lost").timeout(BRIEF)).await.key;
    for n in 1..=MAX_LOST {
        bench.take_one(&key).await;
        bench.recover_until(&key, if n < MAX_LOST { State::Ready } else { State::Dead }).await;
    }
    let transitions = transitions_of(&key);
    assert_eq!(transitions.last().map(String::as_str), Some("recover: reserved -> dead, lost"));
    assert_eq!(transitions.len(), 1 + 2 * MAX_LOST as usize, "{transitions:?}");

    let cancelled = bench.accept(bench.job_of(&topic, "cancelled").timeout(BRIEF)).await.key;
    bench.take_one(&cancelled).await;
    bench.cancel(&cancelled).await;
    bench.recover_until(&cancelled, State::Cancelled).await;
    let expected = [
        "submit: nothing -> ready",
        "reserve: ready -> reserved",
        "cancel: reserved -> reserved, requested",
        "recover: reserved -> cancelled, cancel requested",
    ];
    assert_eq!(transitions_of(&cancelled), expected);
}

pub(crate) async fn cancels_purges_and_evictions_are_logged(bench: &Workbench) {
    let topic = on();
    let bench = bench.with(|options| options.keep_dead = ms(1)).await;
    let states = [(State::Delayed, "delayed"), (State::Ready, "ready"), (State::Dead, "dead")];
    for (state, name) in states {
        let key = bench.job_in(state, bench.job_of(&topic, name)).await.key;
        bench.cancel(&key).await;
        let last = transitions_of(&key).pop();
        assert_eq!(last, Some(format!("cancel: {name} -> cancelled")));
        bench.cancel(&key).await;
        assert_eq!(transitions_of(&key).pop(), last, "a repetition changes nothing");
    }
    let lease = bench.reserved(bench.job_of(&topic, "asked")).await;
    let key = lease.key.clone();
    bench.cancel(&key).await;
    bench.cancel(&key).await;
    bench.settle(lease, retry(ms(1))).await;
    let expected = [
        "submit: nothing -> ready",
        "reserve: ready -> reserved",
        "cancel: reserved -> reserved, requested",
        "retry: reserved -> cancelled, cancel requested",
    ];
    assert_eq!(transitions_of(&key), expected);

    let purged = bench.job_in(State::Dead, bench.job_of(&topic, "purged")).await.key;
    bench.store().purge(&purged).await.expect("purge");
    assert_eq!(transitions_of(&purged).pop().as_deref(), Some("purge: dead -> gone"));
    let many = bench.job_in(State::Dead, bench.job_of(&topic, "many")).await.key;
    let cursors = cursors(&bench, &of_topic(&topic)).await;
    assert_eq!(bench.store().purge_many(bench.shard(), &cursors).await.expect("purge"), 1);
    assert_eq!(transitions_of(&many).pop().as_deref(), Some("purge: dead -> gone"));
    let evicted = bench.job_in(State::Dead, bench.job_of(&topic, "evicted")).await.key;
    eventually(SOON, "the dead job is evicted", async || match bench.evict(10).await.moved {
        0 => Err("it is still there"),
        _ => Ok(()),
    })
    .await;
    assert_eq!(transitions_of(&evicted).pop().as_deref(), Some("evict: dead -> gone"));
}

pub(crate) async fn bulk_revives_imports_and_replacing_submits_are_logged(bench: &Workbench) {
    let topic = on();
    let job = bench.job_in(State::Dead, bench.job_of(&topic, "revived")).await;
    let filter = of_topic(&topic);
    let BulkStart::Bulk(bulk) =
        bench.store().start_bulk(bench.token(), &BulkTarget::Dead(filter.clone()), 50).await.expect("begin")
    else {
        panic!("one is not too many")
    };
    let cursors = cursors(bench, &filter).await;
    for _repeated in 0..2 {
        bench.store().revive_many(bench.shard(), bulk.id, &cursors).await.expect("revive");
    }
    let transitions = transitions_of(&job.key);
    assert_eq!(
        transitions[transitions.len() - 2..],
        ["bury: reserved -> dead, exhausted", "revive: dead -> ready"]
    );

    let dead = History {
        dead: Some("gone".to_owned()),
        created: None,
        attempts: 1,
        failures: 1,
        last: Some(LastAttempt::default()),
    };
    let jobs = [("pending", None), ("dead", Some(dead))]
        .map(|(name, history)| ImportJob { job: bench.job_of(&topic, name), history });
    for _repeated in 0..2 {
        bench.store().import(bench.shard(), &jobs).await.expect("import");
    }
    assert_eq!(transitions_of(&jobs[0].job.key), ["import: nothing -> ready"]);
    assert_eq!(transitions_of(&jobs[1].job.key), ["import: nothing -> dead, gone"]);

    let key = bench.accept(bench.job_of(&topic, "replaced").after(LONG)).await.key;
    let job =
        NewJob { if_exists: IfExists::Replace { token: bench.token() }, ..bench.job_of(&topic, "replaced") };
    for _repeated in 0..2 {
        bench.submit(std::slice::from_ref(&job)).await;
    }
    let mut expected = vec!["submit: nothing -> delayed", "submit: delayed -> ready, replaced"];
    assert_eq!(transitions_of(&key), expected);
    for (wait, max_delay) in [(LONG, None), (LONG / 2, Some(LONG))] {
        let if_exists = IfExists::Postpone { token: bench.token(), max_delay };
        let job = NewJob { if_exists, ..bench.job_of(&topic, "replaced").after(wait) };
        bench.submit(&[job]).await;
    }
    expected.extend(["submit: ready -> delayed, postponed", "submit: delayed -> delayed, postponed"]);
    assert_eq!(transitions_of(&key), expected);
}

pub(crate) async fn transitions_of_pull_jobs_are_logged_by_name(bench: &Workbench) {
    let topic = on();
    let pull_job = |name: &str| -> NewJob {
        let mut job = bench.job_of(&topic, name);
        job.delivery.callback = Callback::pull();
        job
    };
    let key = bench.accept(pull_job("a")).await.key;
    let job = bench.pull_from(&topic, LONG).await;
    bench.store().renew_receipt(&job.receipt, LONG, MAX_RENEWED).await.expect("renew");
    let reason = Reason::Custom("no such picture".to_owned());
    let outcome = Outcome::Bury { reason, last: LastAttempt::by_consumer(None) };
    bench.settle_receipt(job.receipt, outcome.clone()).await;
    bench.settle_receipt(job.receipt, outcome).await;
    let expected = [
        "submit: nothing -> ready",
        "reserve: ready -> reserved",
        "renew: reserved -> reserved",
        "bury: reserved -> dead, no such picture",
    ];
    assert_eq!(transitions_of(&key), expected);

    let key = bench.accept(pull_job("expires")).await.key;
    bench.pull_from(&topic, BRIEF).await;
    let expired = bench.expired_leases(1).await;
    let outcomes = [(expired[0].receipt, retry(LONG))];
    bench.store().settle_expired(bench.shard(), &outcomes).await.expect("settle");
    assert_eq!(transitions_of(&key)[1..], ["reserve: ready -> reserved", "retry: reserved -> delayed"]);
}

pub(crate) async fn an_exchange_logs_what_it_settles_and_what_it_reserves(bench: &Workbench) {
    let topic = on();
    let lease = bench.reserved(bench.job_of(&topic, "a")).await;
    let (first, second) = (lease.key.clone(), bench.accept(bench.job_of(&topic, "b")).await.key);
    let ask = bench.ask(10);
    let (_, reserved) = bench.exchange(vec![(lease, Outcome::Complete)], &ask).await;
    assert_eq!(reserved.leases.len(), 1);
    assert_eq!(bench.reserve(&ask).await.leases.len(), 1, "the same again");
    assert_eq!(transitions_of(&first).pop().as_deref(), Some("complete: reserved -> done"));
    assert_eq!(transitions_of(&second), ["submit: nothing -> ready", "reserve: ready -> reserved"]);
    let again = bench.submit(&[bench.job_of(&topic, "b")]).await;
    assert_eq!(again.len(), 1);
    assert_eq!(transitions_of(&second).len(), 2, "a repeated submit changes nothing");
}
