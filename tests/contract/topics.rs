//! Cases of topics: counts of jobs by state, which topics are known, lateness, pauses, and limits on topics and lanes.

use ringback_core::job::{History, IfExists, ImportJob, JobKey, NewJob, TenantLimits, TenantScope, Topic};
use ringback_core::store_types::{
    Limit, MAX_TOPICS, SettleResult, SubmitResult, Submitted, TopicCounts, Wake,
};

use super::destinations::given;
use super::if_exists::only_new_lives_are_refused;
use super::job_builders::{BRIEF, LONG, STATES, TOPIC, With, bury, ms, release, retry};
use super::workbench::{Workbench, next, now, until};
use crate::prelude::*;

pub(crate) fn topic(name: &str) -> Topic {
    Topic::from_stored(name).expect("a topic")
}

pub(crate) async fn counts(bench: &Workbench, name: &str) -> Option<TopicCounts> {
    bench.store().topic(&topic(name)).await.expect("topic")
}

/// The counts of delayed, ready, reserved and dead jobs of a topic.
async fn states(bench: &Workbench, name: &str) -> [u64; 4] {
    let counts = counts(bench, name).await.expect("it is known");
    [counts.delayed, counts.ready, counts.reserved, counts.dead]
}

pub(crate) async fn each_job_counts_in_the_state_that_it_is_in(bench: &Workbench) {
    let mut expected = [0; 4];
    for state in STATES {
        bench.job_in(state, bench.job(state.into())).await;
        match state {
            State::Delayed => expected[0] += 1,
            State::Ready => expected[1] += 1,
            State::Reserved => expected[2] += 1,
            State::Dead => expected[3] += 1,
            State::Done | State::Cancelled => {}
        }
        assert_eq!(states(bench, TOPIC).await, expected, "{state}");
    }
    assert_eq!(expected, [1; 4]);
}

pub(crate) async fn every_transition_moves_its_job_in_the_counts(bench: &Workbench) {
    let job = bench.accept(bench.job("a").after(LONG).timeout(BRIEF)).await;
    assert_eq!(states(bench, TOPIC).await, [1, 0, 0, 0], "submit");
    bench.store().run(&job.key, bench.token()).await.expect("run");
    assert_eq!(states(bench, TOPIC).await, [0, 1, 0, 0], "run");
    bench.take_one(&job.key).await;
    assert_eq!(states(bench, TOPIC).await, [0, 0, 1, 0], "reserve");
    bench.recover_until(&job.key, State::Ready).await;
    assert_eq!(states(bench, TOPIC).await, [0, 1, 0, 0], "recover");
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, retry(ms(1))).await;
    assert_eq!(states(bench, TOPIC).await, [1, 0, 0, 0], "retry");
    bench.promote_until(1).await;
    assert_eq!(states(bench, TOPIC).await, [0, 1, 0, 0], "promote");
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, bury()).await;
    assert_eq!(states(bench, TOPIC).await, [0, 0, 0, 1], "bury");
    bench.store().revive(&job.key, bench.token()).await.expect("revive");
    assert_eq!(states(bench, TOPIC).await, [0, 1, 0, 0], "revive");
    let lease = bench.take_one(&job.key).await;
    bench.settle(lease, Outcome::Complete).await;
    assert_eq!(states(bench, TOPIC).await, [0; 4], "complete");
}

pub(crate) async fn what_has_ended_is_counted_by_topic_whether_or_not_it_has_jobs(bench: &Workbench) {
    let ended = async || {
        let counts = counts(bench, TOPIC).await.expect("it is known");
        (counts.done, counts.cancelled)
    };
    for round in 1..3 {
        let other = bench.job(&format!("other-{round}")).to("http://other.example");
        bench.accept(other.clone().after(LONG)).await;
        for (n, state) in [State::Done, State::Cancelled, State::Done].into_iter().enumerate() {
            bench.job_in(state, bench.job(&format!("job-{round}-{n}"))).await;
        }
        assert_eq!(ended().await, (2 * round, 2 * round - 1), "beside a job of another lane");
        bench.cancel(&other.key).await;
        assert_eq!(ended().await, (2 * round, 2 * round), "without jobs");
    }
    // A success that is settled late.
    let job = bench.accept(bench.job("late").timeout(BRIEF)).await;
    let lease = bench.take_one(&job.key).await;
    bench.recover_until(&job.key, State::Ready).await;
    bench.settle(lease, Outcome::Complete).await;
    // A job whose cancel was requested.
    let job = bench.accept(bench.job("asked")).await;
    let lease = bench.take_one(&job.key).await;
    bench.cancel(&job.key).await;
    bench.settle(lease, retry(ms(1))).await;
    assert_eq!(ended().await, (5, 5));
    // A purged job ended before.
    bench.job_in(State::Dead, bench.job("dead")).await;
    bench.store().purge(&bench.job("dead").key).await.expect("purge");
    assert_eq!(ended().await, (5, 5));
}

pub(crate) async fn a_topic_is_known_from_its_first_job_on(bench: &Workbench) {
    assert_eq!(counts(bench, TOPIC).await, None);
    bench.accept(bench.job("a")).await;
    bench.cancel(&bench.job("a").key).await;
    assert_eq!(counts(bench, TOPIC).await, Some(TopicCounts { cancelled: 1, ..TopicCounts::default() }));
    assert_eq!(counts(bench, "stor").await, None);
    assert_eq!(counts(bench, "store-").await, None);
}

pub(crate) async fn topics_come_page_by_page_in_the_order_of_their_names(bench: &Workbench) {
    let names = ["a", "a-b", "a.b", "aa", "B", "store", "Store"];
    // Jobs over all shards, some topics in several.
    for (n, name) in (0..21).zip(names.into_iter().cycle()) {
        let mut job = bench.job_of(name, "any").after(LONG);
        job.key.id = format!("job-{n}").parse().expect("an id");
        let shard = bench.store().shard_of(&job.key);
        bench.store().submit(shard, &[job]).await.expect("submit");
    }
    let mut sorted = names;
    sorted.sort_unstable();
    for limit in [1, 2, 3, 100] {
        let (mut met, mut behind) = (Vec::new(), None);
        loop {
            let page = bench.store().topics(&TenantScope::All, behind.as_ref(), limit).await.expect("topics");
            assert!(page.items.len() <= limit && (!page.items.is_empty() || page.next.is_none()));
            met.extend(page.items);
            behind = page.next;
            if behind.is_none() {
                break;
            }
        }
        let listed: Vec<_> = met.iter().map(|(topic, counts)| (topic.as_str(), counts.delayed)).collect();
        assert_eq!(listed, sorted.map(|name| (name, 3)), "{limit} at a time");
    }
}

pub(crate) async fn a_topic_of_very_many_lanes_is_counted_and_paused(bench: &Workbench) {
    const LANES: usize = 4_300;
    let jobs: Vec<NewJob> = (0..LANES)
        .map(|n| bench.job(&format!("job-{n}")).to(&format!("http://origin-{n}.example")).after(LONG))
        .collect();
    for jobs in jobs.chunks(500) {
        bench.submit(jobs).await;
    }
    bench.accept(bench.job_of("stor", "a").after(LONG)).await;
    assert_eq!(states(bench, TOPIC).await, [LANES as u64, 0, 0, 0]);
    let page = bench.store().topics(&TenantScope::All, None, 2).await.expect("topics");
    let listed: Vec<_> = page.items.iter().map(|(topic, counts)| (topic.as_str(), counts.delayed)).collect();
    assert_eq!(listed, [("stor", 1), (TOPIC, LANES as u64)]);
    pause(bench, TOPIC).await;
    assert!(counts(bench, TOPIC).await.expect("known").paused);
    assert!(bench.store().has_jobs(&topic(TOPIC)).await.expect("has_jobs"));
    assert!(!bench.store().has_jobs(&topic("store.")).await.expect("has_jobs"));
}

pub(crate) async fn the_lanes_of_a_topic_add_up(bench: &Workbench) {
    let jobs: Vec<NewJob> = (0..300)
        .map(|n| bench.job(&format!("job-{n}")).to(&format!("http://origin-{n}.example")).after(LONG))
        .collect();
    bench.submit(&jobs).await;
    bench.accept(bench.job_of("stor", "a").after(LONG)).await;
    bench.accept(bench.job_of("store.", "a").after(LONG)).await;
    assert_eq!(states(bench, TOPIC).await, [300, 0, 0, 0]);
    let page = bench.store().topics(&TenantScope::All, None, 2).await.expect("topics");
    let listed: Vec<_> = page.items.iter().map(|(topic, counts)| (topic.as_str(), counts.delayed)).collect();
    assert_eq!(listed, [("stor", 1), (TOPIC, 300)]);
    assert_eq!(page.next, Some(topic(TOPIC)));
    for job in &jobs {
        bench.cancel(&job.key).await;
    }
    assert_eq!(states(bench, TOPIC).await, [0; 4]);
}

pub(crate) async fn the_first_due_time_is_that_of_what_is_near_or_ready(bench: &Workbench) {
    bench.accept(bench.job("far").after(12 * LONG)).await;
    let known = counts(bench, TOPIC).await.expect("known");
    assert_eq!((known.oldest_due, known.late), (None, ms(0)));
    let near = bench.accept(bench.job("near").after(LONG / 2)).await;
    let nearer = bench.accept(bench.job("nearer").to("http://other.example").after(LONG / 3)).await;
    let known = counts(bench, TOPIC).await.expect("known");
    assert_eq!((known.oldest_due, known.late), (Some(nearer.due), ms(0)));
    bench.cancel(&nearer.key).await;
    assert_eq!(counts(bench, TOPIC).await.expect("known").oldest_due, Some(near.due));

    let ready = bench.accept(bench.job("ready")).await;
    let gone = bench.job("gone");
    bench.accept(gone.clone()).await;
    until(now().plus(ms(30))).await;
    let known = counts(bench, TOPIC).await.expect("known");
    assert_eq!(known.oldest_due, Some(ready.due));
    assert!(known.late >= ms(25) && known.late < Duration::from_secs(60), "{:?}", known.late);
    bench.take_one(&ready.key).await;
    bench.cancel(&gone.key).await;
    let known = counts(bench, TOPIC).await.expect("known");
    assert_eq!((known.oldest_due, known.late), (Some(near.due), ms(0)));
}

async fn pause(bench: &Workbench, name: &str) {
    bench.store().pause(&topic(name), None).await.expect("pause").expect("there is room");
}

async fn resume(bench: &Workbench, name: &str) -> bool {
    bench.store().resume(&topic(name)).await.expect("resume")
}

pub(crate) async fn nothing_of_a_paused_topic_is_delivered_until_it_is_resumed(bench: &Workbench) {
    let before = bench.accept(bench.job("before")).await;
    pause(bench, TOPIC).await;
    let other = bench.accept(bench.job_of("other", "a")).await;
    let prefix = bench.accept(bench.job_of("store.b", "a")).await;
    let after = bench.accept(bench.job("after").to("http://another.example")).await;
    bench.accept(bench.job("due").after(ms(1))).await;
    bench.promote_until(1).await;
    assert_eq!(given(bench).await, [other.key.to_string(), prefix.key.to_string()]);
    assert!(given(bench).await.is_empty());
    let known = counts(bench, TOPIC).await.expect("known");
    assert!(known.paused && known.ready == 3, "{known:?}");
    bench.cancel(&after.key).await;
    bench.check().await;

    assert!(resume(bench, TOPIC).await);
    assert_eq!(given(bench).await, [before.key.to_string(), bench.job("due").key.to_string()]);
    assert!(!counts(bench, TOPIC).await.expect("known").paused);
}

pub(crate) async fn an_exchange_gives_nothing_of_a_paused_topic(bench: &Workbench) {
    let lease = bench.reserved(bench.job("a")).await;
    bench.accept(bench.job("b")).await;
    pause(bench, TOPIC).await;
    let (settled, reserved) = bench.exchange(vec![(lease, Outcome::Complete)], &bench.ask(10)).await;
    assert_eq!(settled, [SettleResult::Applied]);
    assert!(reserved.leases.is_empty() && !reserved.more);
    resume(bench, TOPIC).await;
    assert_eq!(given(bench).await.len(), 1);
}

pub(crate) async fn a_delivery_under_way_goes_on_while_its_topic_is_paused(bench: &Workbench) {
    let names = ["done", "retried", "dead", "released"];
    let mut leases = Vec::new();
    for name in names {
        leases.push(bench.reserved(bench.job(name)).await);
    }
    let again = bench.ask(10);
    pause(bench, TOPIC).await;
    for (lease, outcome) in leases.into_iter().zip([Outcome::Complete, retry(ms(1)), bury(), release(ms(0))])
    {
        assert_eq!(bench.settle(lease, outcome).await, SettleResult::Applied);
    }
    bench.promote_until(1).await;
    assert!(bench.reserve(&again).await.leases.is_empty());
    assert_eq!(states(bench, TOPIC).await, [0, 2, 0, 1]);
    resume(bench, TOPIC).await;
    assert_eq!(given(bench).await.len(), 2);
}

pub(crate) async fn consumers_are_given_nothing_of_a_paused_topic(bench: &Workbench) {
    bench.accept(bench.pull_job("a")).await;
    pause(bench, TOPIC).await;
    let pulled = bench.pull(10, LONG).await;
    assert!(pulled.jobs.is_empty() && !pulled.more);
    bench.accept(bench.pull_job("b")).await;
    let pulls = bench.store().pull_topics(bench.shard(), 0, 10).await.expect("pulls");
    assert_eq!(pulls, (Vec::new(), 0));
    bench.check().await;
    let mut wakes = bench.wakes().await;
    assert!(resume(bench, TOPIC).await);
    let wake = next(&mut wakes).await;
    assert!(matches!(wake, Wake::Pull(shard, _) if shard == bench.shard()), "{wake:?}");
    assert_eq!(bench.pull(10, LONG).await.jobs.len(), 2);
}

pub(crate) async fn a_resumed_topic_wakes_the_notifiers(bench: &Workbench) {
    bench.accept(bench.job("a")).await;
    pause(bench, TOPIC).await;
    assert!(given(bench).await.is_empty());
    let mut wakes = bench.wakes().await;
    resume(bench, TOPIC).await;
    assert_eq!(next(&mut wakes).await, Wake::Ready(bench.shard()));
}

pub(crate) async fn pausing_and_resuming_again_changes_nothing(bench: &Workbench) {
    assert!(!resume(bench, TOPIC).await);
    for _ in 0..2 {
        pause(bench, TOPIC).await;
        assert_eq!(counts(bench, TOPIC).await, Some(TopicCounts { paused: true, ..TopicCounts::default() }));
        bench.check().await;
    }
    bench.accept(bench.job("a")).await;
    assert!(given(bench).await.is_empty());
    for _ in 0..2 {
        assert!(resume(bench, TOPIC).await);
        assert!(!counts(bench, TOPIC).await.expect("known").paused);
        bench.check().await;
    }
    pause(bench, TOPIC).await;
    let gone = bench.job("a").key;
    bench.cancel(&gone).await;
    let expected = TopicCounts { paused: true, cancelled: 1, ..TopicCounts::default() };
    assert_eq!(counts(bench, TOPIC).await, Some(expected));
}

pub(crate) async fn a_lane_that_was_emptied_while_it_was_paused_is_found_again(bench: &Workbench) {
    bench.accept(bench.job("a")).await;
    pause(bench, TOPIC).await;
    assert!(given(bench).await.is_empty());
    bench.cancel(&bench.job("a").key).await;
    let job = bench.accept(bench.job("b")).await;
    assert!(given(bench).await.is_empty());
    bench.check().await;
    resume(bench, TOPIC).await;
    assert_eq!(given(bench).await, [job.key.to_string()]);
}

pub(crate) async fn a_thousand_lanes_of_a_paused_topic_do_not_stand_before_another(bench: &Workbench) {
    const LANES: usize = 1_200;
    for part in 0..LANES / 400 {
        let jobs: Vec<_> = (0..400)
            .map(|n| bench.job(&format!("{part}-{n}")).to(&format!("http://o-{part}-{n}.example")))
            .collect();
        bench.submit(&jobs).await;
    }
    pause(bench, TOPIC).await;
    let other = bench.accept(bench.job_of("other", "a")).await;
    let mut asked = 0;
    loop {
        asked += 1;
        let reserved = bench.reserve(&bench.ask(10)).await;
        if let [lease] = reserved.leases.as_slice() {
            assert_eq!(lease.key, other.key);
            break;
        }
        assert!(reserved.more && asked <= LANES.div_ceil(64) + 1, "{asked} calls");
    }
    // After that, the paused lanes are out of the way.
    let next = bench.accept(bench.job_of("other", "b")).await;
    assert_eq!(given(bench).await, [next.key.to_string()]);
    assert_eq!(states(bench, TOPIC).await, [0, LANES as u64, 0, 0]);
    resume(bench, TOPIC).await;
    let mut met = 0;
    while met < LANES {
        let more = bench.take(100).await.len();
        assert!(more > 0, "{met} of {LANES}");
        met += more;
    }
}

pub(crate) async fn another_process_finds_the_topic_paused(bench: &Workbench) {
    pause(bench, TOPIC).await;
    let another = bench.another(bench.options());
    another.prepare().await.expect("the store is fit");
    bench.accept(bench.job("a")).await;
    assert!(another.topic(&topic(TOPIC)).await.expect("topic").expect("known").paused);
    assert!(another.reserve(bench.shard(), &bench.ask(10)).await.expect("reserve").leases.is_empty());
}

fn results(answers: Vec<Submitted>) -> Vec<SubmitResult> {
    answers.into_iter().map(|answer| answer.answer).collect()
}

pub(crate) async fn a_tenant_has_no_more_topics_and_lanes_than_its_quota_allows(bench: &Workbench) {
    let limits = Some(TenantLimits { topics: 2, lanes: 3 });
    let job = |topic: &str, id: &str, origin: &str| NewJob {
        limits,
        ..bench.job_of(topic, id).to(&format!("http://{origin}.example")).after(LONG)
    };
    let [full, lanes, created] = [
        SubmitResult::Full(Limit::TenantTopics),
        SubmitResult::Full(Limit::TenantLanes),
        SubmitResult::Created,
    ];
    // The limit holds within one call and over several.
    let (first, second) = (job("~a/one", "1", "x"), job("~a/two", "1", "x"));
    let batch = [first.clone(), second.clone(), job("~a/three", "1", "x"), job("~a/one", "2", "x")];
    assert_eq!(results(bench.submit(&batch).await), [created, created, full, created]);
    let batch = [job("~a/three", "1", "x"), job("~a/two", "2", "y"), job("~a/two", "3", "z")];
    assert_eq!(results(bench.submit(&batch).await), [full, created, lanes]);
    let import = ImportJob { job: job("~a/three", "1", "x"), history: Some(History::default()) };
    let imported = bench.store().import(bench.shard(), &[import]).await.expect("import");
    assert_eq!(results(imported), [full]);
    // A job that would go to another lane stays where it is.
    let if_exists = IfExists::Replace { token: bench.token() };
    let moved = NewJob { if_exists, ..job("~a/two", "1", "z") };
    assert_eq!(results(bench.submit(&[moved]).await), [lanes]);
    assert_eq!(bench.get(&second.key).await.state, State::Delayed);

    // The limit does not hold for other tenants, for jobs without a tenant, or for the operator.
    let operator = NewJob { limits: None, ..job("~a/four", "1", "x") };
    let batch = [job("~ab/one", "1", "x"), bench.job_of("a", "1"), bench.job_of("b", "1"), operator.clone()];
    assert_eq!(results(bench.submit(&batch).await), [created; 4]);

    // A paused topic counts, with jobs or without.
    let store = bench.store();
    let pause = async |name: &str| store.pause(&topic(name), limits).await.expect("pause");
    assert_eq!(pause("~a/three").await, Err(Limit::TenantTopics));
    assert_eq!(pause("~a/one").await, Ok(()));
    for key in [&first.key, &batch_key(bench, "~a/one", "2"), &operator.key] {
        bench.cancel(key).await;
    }
    assert_eq!(results(bench.submit(&[job("~a/three", "1", "x")]).await), [full]);
    resume(bench, "~a/one").await;
    assert_eq!(pause("~a/three").await, Ok(()));
    assert_eq!(results(bench.submit(&[job("~a/one", "3", "x")]).await), [full]);
    resume(bench, "~a/three").await;
    // A lane goes with its last job, which makes room for another.
    let batch = [job("~a/one", "3", "x"), job("~a/one", "4", "z")];
    assert_eq!(results(bench.submit(&batch).await), [created, lanes]);
    bench.cancel(&batch_key(bench, "~a/two", "2")).await;
    assert_eq!(results(bench.submit(&batch[1..]).await), [created]);
    bench.check().await;
}

fn batch_key(bench: &Workbench, topic: &str, id: &str) -> JobKey {
    bench.job_of(topic, id).key
}

pub(crate) async fn a_tenant_leaves_half_of_the_topics_to_the_others(bench: &Workbench) {
    let half = usize::try_from(MAX_TOPICS / 2).expect("a small number");
    let job = |tenant: &str, n: usize| bench.job_of(&format!("~{tenant}/topic-{n}"), "a").after(LONG);
    let submit = async |tenant: &str, n: usize| {
        let mut created = 0;
        for from in (0..n).step_by(500) {
            let jobs: Vec<_> = (from..n.min(from + 500)).map(|n| job(tenant, n)).collect();
            for answer in results(bench.submit(&jobs).await) {
                match answer {
                    SubmitResult::Created => created += 1,
                    answer => assert_eq!(answer, SubmitResult::Full(Limit::TenantTopics)),
                }
            }
        }
        created
    };
    assert_eq!(submit("greedy", half + 100).await, half);
    assert_eq!(submit("other", half).await, half / 2);
    assert_eq!(results(bench.submit(&[bench.job_of("without", "a")]).await), [SubmitResult::Created]);
}

pub(crate) async fn a_topic_beyond_the_limit_is_refused_and_known_topics_go_on(bench: &Workbench) {
    let most = usize::try_from(MAX_TOPICS).expect("a small number");
    let jobs: Vec<_> = (0..most).map(|n| bench.job_of(&format!("topic-{n}"), "a").after(LONG)).collect();
    let ended = bench.job_of("ended", "a");
    bench.job_in(State::Cancelled, ended.clone()).await;
    for batch in jobs.chunks(500) {
        let answers = bench.submit(batch).await;
        assert!(answers.iter().all(|answer| answer.answer == SubmitResult::Created));
    }
    let (new, other) = (bench.job_of("new", "a"), bench.job_of("topic-1", "b").to("http://other.example"));
    let batch = [new.clone(), other.clone(), jobs[0].clone(), bench.job_of("newer", "a")];
    let full = SubmitResult::Full(Limit::Topics);
    assert_eq!(
        results(bench.submit(&batch).await),
        [full, SubmitResult::Created, SubmitResult::Repeated, full]
    );
    assert_eq!(bench.state(&new.key).await, None);
    assert_eq!(counts(bench, "new").await, None);
    let import = |job: &NewJob| ImportJob { job: job.clone(), history: Some(History::default()) };
    let imported =
        bench.store().import(bench.shard(), &[import(&new), import(&other)]).await.expect("import");
    assert_eq!(results(imported), [full, SubmitResult::Repeated]);
    assert_eq!(bench.store().pause(&topic("new"), None).await.expect("pause"), Err(Limit::Topics));
    assert!(counts(bench, "new").await.is_none_or(|counts| !counts.paused));
    pause(bench, "topic-1").await;
    resume(bench, "topic-1").await;
    let ended = only_new_lives_are_refused(bench, jobs[3].clone(), ended).await;

    bench.cancel(&jobs[2].key).await;
    let batch = [new, bench.job_of("newer", "a")];
    assert_eq!(results(bench.submit(&batch).await), [SubmitResult::Created, full]);
    bench.cancel(&jobs[3].key).await;
    assert_eq!(results(bench.submit(&[ended]).await), [SubmitResult::Created]);
}
