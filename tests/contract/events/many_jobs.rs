//! Cases of events of calls on many jobs: imports, replacements, promotions, revives, purges, batches and exchanges.

use ringback_core::job::{Due, History, IfExists, ImportJob, NewJob};
use ringback_core::outcome::LastAttempt;
use ringback_core::store_types::{AttemptOutcome, BulkStart, BulkStep, BulkTarget, EventKind, SettleResult};

use super::super::dead_letters::{all, cursors, of_topic, wanted};
use super::super::job_builders::{LONG, STATES, TOPIC, With, bury, ms, seen};
use super::super::workbench::{SOON, Workbench};
use super::{Watching, complete, dead, failed, ready};
use crate::prelude::*;

pub(crate) async fn imports_have_events_of_submits_and_deaths(bench: &Workbench) {
    let mut watching = Watching::start(bench).await;
    let last = LastAttempt { status: None, error: Some("timeout".to_owned()), ..seen() };
    let history = History { attempts: 3, failures: 2, last: Some(last), ..History::default() };
    let died = History { dead: Some("gone".to_owned()), ..history.clone() };
    let jobs = [(bench.job("a").after(LONG), history), (bench.job("b"), died)]
        .map(|(job, history)| ImportJob { job, history: Some(history) });
    let imported = bench.store().import(bench.shard(), &jobs).await.expect("import");
    let submitted = |n: usize| EventKind::Submitted { due: imported[n].job.due };
    watching.expect(&imported[0].job.key, [submitted(0)]).await;
    watching.expect(&imported[1].job.key, [submitted(1), dead("gone")]).await;
    bench.store().import(bench.shard(), &jobs).await.expect("import");
    watching.nothing(bench, "mark").await;
}

pub(crate) async fn a_submit_that_changes_a_job_has_one_event_and_a_refused_one_has_none(bench: &Workbench) {
    let mut watching = Watching::silent(bench).await;
    for state in STATES {
        bench.job_in(state, bench.job(state.into())).await;
    }
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    for (state, wait) in STATES.into_iter().flat_map(|state| [(state, LONG), (state, Duration::ZERO)]) {
        let if_exists = IfExists::Replace { token: bench.token() };
        let job = NewJob { if_exists, ..bench.job(state.into()).content(2).after(wait) };
        for again in [false, true] {
            let answer = bench.submit(std::slice::from_ref(&job)).await.remove(0);
            if state != State::Reserved && !again {
                watching.expect(&job.key, [EventKind::Submitted { due: answer.job.due }]).await;
            }
        }
        bench.submit(&[bench.job(state.into())]).await;
    }
    watching.nothing(bench, "mark").await;
}

pub(crate) async fn jobs_that_a_call_makes_ready_have_promoted_events(bench: &Workbench) {
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

pub(crate) async fn each_revived_job_of_many_has_an_event(bench: &Workbench) {
    let mut watching = Watching::silent(bench).await;
    for name in ["a", "b", "c"] {
        bench.job_in(State::Dead, bench.job(name)).await;
    }
    let begun =
        bench.store().start_bulk(bench.token(), &BulkTarget::Dead(of_topic(TOPIC)), 50).await.expect("begin");
    let BulkStart::Bulk(bulk) = begun else { panic!("one can begin") };
    let cursors = cursors(bench, &wanted(&bulk)).await;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    let revived = bench.store().revive_many(bench.shard(), bulk.id, &cursors).await.expect("revive");
    assert_eq!(revived, BulkStep::Jobs(3));
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

pub(crate) async fn purges_and_evictions_have_no_events(bench: &Workbench) {
    let bench = &bench.with(|options| options.keep_dead = ms(1)).await;
    let mut watching = Watching::silent(bench).await;
    let purged = bench.job_in(State::Dead, bench.job("a")).await.key;
    bench.job_in(State::Dead, bench.job("b")).await;
    bench.store().watch(bench.shard(), LONG).await.expect("watch");
    bench.store().purge(&purged).await.expect("purge");
    eventually(SOON, "the other is evicted", async || match bench.evict(10).await.moved {
        1 => Ok(()),
        n => Err(n),
    })
    .await;
    watching.nothing(bench, "mark").await;
    bench.check().await;
}

pub(crate) async fn a_large_batch_has_all_its_events_in_order(bench: &Workbench) {
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
    // Some jobs fail, so that settles are published in both ways.
    let items = leases.into_iter().enumerate().map(|(n, lease)| {
        let outcome = if n % 7 == 6 { bury() } else { Outcome::Complete };
        (lease, outcome)
    });
    let settled = bench.settle_all(items.collect()).await;
    assert!(settled.iter().all(|settled| *settled == SettleResult::Applied));
    let mut ends = std::collections::HashMap::new();
    for _ in 0..2 * JOBS {
        let event = watching.next().await;
        let kinds: &mut Vec<_> = ends.entry(event.key).or_default();
        kinds.push(event.kind);
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

pub(crate) async fn an_exchange_has_events_of_what_it_settles(bench: &Workbench) {
    let mut watching = Watching::start(bench).await;
    let key = ready(bench, &mut watching, bench.job("a")).await;
    let lease = bench.take_one(&key).await;
    let next = ready(bench, &mut watching, bench.job("b")).await;
    let (_, mut reserved) = bench.exchange(vec![(lease, Outcome::Complete)], &bench.ask(1)).await;
    watching.expect(&key, complete(1)).await;
    let lease = reserved.leases.remove(0);
    // The settle by the repeated answer is the first one.
    assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
    watching.expect(&next, [failed(1, AttemptOutcome::Bury, None), dead("exhausted")]).await;
    watching.nothing(bench, "mark").await;
}
