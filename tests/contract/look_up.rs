//! Cases of looking up one job with all that is stored of it, tags included, in every state until it has ended.

use ringback_core::job::{Callback, ContentHash, IfExists, JobKey, MAX_TAG, NewJob, Tags};
use ringback_core::state::State;
use ringback_core::store_types::{DeadFilter, Filter, FoundJob, MoveResult, StoredJob, SubmitResult};
use ringback_core::token::Token;

use super::job_builders::{LONG, STATES, TOPIC, With, ms, tags, topic};
use super::list::rich;
use super::workbench::Workbench;
use crate::sample_jobs::noise;

async fn found(bench: &Workbench, key: &JobKey) -> Option<FoundJob> {
    bench.store().get_stored(key).await.expect("get_stored")
}

async fn stored(bench: &Workbench, key: &JobKey) -> StoredJob {
    match found(bench, key).await {
        Some(FoundJob::Stored(stored)) => *stored,
        other => panic!("{key}: {other:?}"),
    }
}

pub(crate) async fn a_job_that_is_looked_up_has_all_that_was_submitted(bench: &Workbench) {
    let body: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    let mut pull = bench.job("pull").timeout(ms(700));
    pull.delivery.callback = Callback::pull();
    let mut notice = bench.job("notice");
    notice.delivery.on_dead = Some(Box::new(Callback::parse("http://up.example/dead").expect("a URL")));
    let jobs: [NewJob; 6] = [
        bench.job("plain"),
        rich(bench.job("rich")).after(LONG),
        rich(bench.job("large").body(body)).after(LONG),
        bench.job("none").body(Vec::new()).after(LONG),
        pull,
        notice,
    ];
    bench.submit(&jobs).await;
    for job in jobs {
        let stored = stored(bench, &job.key).await;
        assert!(stored.delivery == job.delivery, "what {} brought along has changed", job.key);
        assert_eq!((stored.content, &stored.job), (job.content, &bench.get(&job.key).await));
    }
}

pub(crate) async fn the_tags_of_a_job_are_in_each_answer_until_it_has_ended(bench: &Workbench) {
    for state in STATES {
        for (large, token) in [(false, None), (true, None), (false, Some([7; 8])), (true, Some([8; 8]))] {
            let mut job = bench.job(&format!("{state}-{large}-{}", token.is_some()));
            if large {
                job = job.body(noise(b'x', 50_000).into());
            }
            if let Some(token) = token {
                job.if_exists = IfExists::Replace { token: Token(token) };
            }
            let submitted = bench.submit(std::slice::from_ref(&job)).await.remove(0);
            assert_eq!((submitted.answer, &submitted.job.tags), (SubmitResult::Created, &tags(&job.key)));
            let repeated = bench.submit(std::slice::from_ref(&job)).await.remove(0);
            assert_eq!((repeated.answer, &repeated.job.tags), (SubmitResult::Repeated, &tags(&job.key)));
            bench.cancel(&job.key).await;

            let job = bench.job(&format!("{state}-{large}-{}-2", token.is_some()));
            let known =
                bench.job_in(state, if large { job.body(noise(b'x', 50_000).into()) } else { job }).await;
            let is_known = !state.is_terminal() || state == State::Dead;
            let expected = if is_known { tags(&known.key) } else { Tags::default() };
            assert_eq!(known.tags, expected, "{state}");
        }
    }
    let page = bench.store().page(&Filter::default(), None, 500).await.expect("a page");
    assert!(!page.items.is_empty() && page.items.iter().all(|job| job.tags == tags(&job.key)), "{page:?}");
    let filter = DeadFilter { topic: topic(TOPIC), reason: None, after: None, before: None };
    let dead = bench.store().dead(&filter, None, 100).await.expect("dead jobs");
    assert!(
        !dead.items.is_empty() && dead.items.iter().all(|dead| dead.job.tags == tags(&dead.job.key)),
        "{dead:?}"
    );
    let revived = bench.store().revive(&dead.items[0].job.key, bench.token()).await.expect("revive");
    assert!(matches!(&revived, MoveResult::Applied(job) if job.tags == tags(&job.key)), "{revived:?}");
}

pub(crate) async fn a_job_without_tags_may_get_some_and_lose_them(bench: &Workbench) {
    let with = |text: &str, token: u8| {
        let mut job = bench.job("a").after(LONG);
        job.delivery.tags = Tags::from_stored(text).expect("tags");
        job.content = ContentHash([token; 8]);
        job.if_exists = IfExists::Replace { token: Token([token; 8]) };
        job
    };
    let most = ["a", "b", "c", "d"].map(|tag| tag.repeat(MAX_TAG)).join(" ");
    for (token, text) in (1..).zip(["", "one", &most, "", "a b", ""]) {
        let job = with(text, token);
        let submitted = bench.submit(std::slice::from_ref(&job)).await.remove(0);
        assert_eq!(submitted.job.tags.as_str(), text);
        assert_eq!(bench.get(&job.key).await.tags.as_str(), text);
        assert_eq!(stored(bench, &job.key).await.delivery.tags.as_str(), text);
    }
}

pub(crate) async fn a_job_is_looked_up_in_every_state_until_it_has_ended(bench: &Workbench) {
    for state in STATES {
        for large in [false, true] {
            let job = rich(bench.job(&format!("{state}-{large}")));
            let job = if large { job.body(noise(b'x', 50_000).into()) } else { job };
            let known = bench.job_in(state, job.clone()).await;
            let found = found(bench, &job.key).await.unwrap_or_else(|| panic!("no {state} job"));
            match (state, found) {
                (State::Done | State::Cancelled, FoundJob::Ended(ended)) => assert_eq!(ended, known),
                (_, FoundJob::Stored(stored)) if !state.is_terminal() => {
                    assert_eq!(stored.job, known);
                    assert!(stored.delivery == job.delivery, "{state}");
                }
                (_, other) => panic!("{state}: {other:?}"),
            }
        }
    }
    let unknown = bench.key("store", "unknown");
    assert_eq!(found(bench, &unknown).await, None);
}
