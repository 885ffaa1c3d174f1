//! Looking up one job with everything that is stored of it.

use ringback_core::contract::{FoundJob, StoredJob};
use ringback_core::job::{Callback, JobKey, NewJob};
use ringback_core::state::State;

use super::jobs::{LONG, STATES, With, ms};
use super::list::rich;
use super::workbench::Workbench;

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

pub(crate) async fn a_job_is_looked_up_in_every_state_until_it_has_ended(bench: &Workbench) {
    for state in STATES {
        for large in [false, true] {
            let job = rich(bench.job(&format!("{state}-{large}")));
            let job = if large { job.body(vec![b'x'; 50_000]) } else { job };
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
