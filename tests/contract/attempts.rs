//! Cases of the recorded attempts of jobs: which are kept, how much of each, for how long, and within which room.

use bytes::Bytes;
use ringback_core::clock::Timestamp;
use ringback_core::job::{History, ImportJob, JobKey};
use ringback_core::limits::{MAX_BATCH, MAX_RENEWED};
use ringback_core::outcome::LastAttempt;
use ringback_core::store_types::{
    Attempt, AttemptLogEntry, Lease, LogResult, MAX_ANSWER, MAX_ATTEMPTS, SettleResult,
};
use ringback_core::topic_policy::Logging;
use ringback_wire::parse_policy;

use super::job_builders::{LONG, With, bury, ms};
use super::workbench::{SOON, Workbench, now, until};
use crate::prelude::*;

pub(crate) fn failed() -> Attempt {
    Attempt {
        number: 0,
        at: now(),
        duration: ms(17),
        status: Some(503),
        error: None,
        answer: Bytes::from_static(b"try later"),
        by: "host-1".to_owned(),
    }
}

/// The entry of attempt `number` under a lease, which failed with this answer. Sets the number of the lease.
fn note(lease: &mut Lease, number: u32, answer: &[u8]) -> AttemptLogEntry {
    lease.attempt = number;
    AttemptLogEntry::of(lease, Attempt { answer: Bytes::copy_from_slice(answer), ..failed() })
}

impl Workbench {
    async fn note(&self, notes: &[AttemptLogEntry]) {
        assert_eq!(self.store().log_attempts(self.shard(), notes).await.expect("note"), LogResult::Kept);
    }

    async fn attempts(&self, key: &JobKey) -> Option<Vec<Attempt>> {
        self.store().attempts(key).await.expect("attempts")
    }

    async fn numbers(&self, key: &JobKey) -> Vec<u32> {
        let attempts = self.attempts(key).await.expect("the job is known");
        attempts.iter().map(|attempt| attempt.number).collect()
    }
}

pub(crate) async fn recorded_attempts_are_shown_and_a_job_without_attempts_has_none(bench: &Workbench) {
    let mut lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    assert_eq!(bench.attempts(&key).await, Some(Vec::new()));
    assert_eq!(bench.attempts(&bench.key("store", "nobody")).await, None);
    let answered = failed();
    let silent = Attempt {
        at: Timestamp::from_millis(now().as_millis() - 5),
        duration: Duration::from_secs(30),
        status: None,
        error: Some("timeout".to_owned()),
        answer: Bytes::new(),
        ..failed()
    };
    bench.note(&[AttemptLogEntry::of(&lease, answered.clone())]).await;
    lease.attempt = 2;
    bench.note(&[AttemptLogEntry::of(&lease, silent.clone())]).await;
    let expected = [Attempt { number: 1, ..answered }, Attempt { number: 2, ..silent }];
    assert_eq!(bench.attempts(&key).await.as_deref(), Some(&expected[..]));
    assert_eq!(bench.get(&key).await.state, State::Reserved);
}

pub(crate) async fn attempts_stand_by_number_and_the_last_twenty_stay(bench: &Workbench) {
    let mut lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    for number in [2, 4, 1, 3] {
        bench.note(&[note(&mut lease, number, b"no")]).await;
    }
    assert_eq!(bench.numbers(&key).await, [1, 2, 3, 4]);
    let rest: Vec<_> = (5..=30).map(|number| note(&mut lease, number, b"no")).collect();
    bench.note(&rest).await;
    assert_eq!(bench.numbers(&key).await, (11..=30).collect::<Vec<_>>());
    // An attempt that is recorded after twenty later ones.
    bench.note(&[note(&mut lease, 10, b"no")]).await;
    assert_eq!(bench.numbers(&key).await.len(), MAX_ATTEMPTS);
    bench.note(&[note(&mut lease, 31, b"no"), note(&mut lease, 29, b"no")]).await;
    assert_eq!(bench.numbers(&key).await, (12..=31).collect::<Vec<_>>());
}

pub(crate) async fn an_attempt_that_is_recorded_twice_is_shown_once_as_it_was_first(bench: &Workbench) {
    let mut lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    let notes = [note(&mut lease, 1, b"first"), note(&mut lease, 2, b"second")];
    bench.note(&notes).await;
    bench.note(&notes).await;
    bench
        .note(&[note(&mut lease, 1, b"other"), note(&mut lease, 3, b"third"), note(&mut lease, 3, b"fourth")])
        .await;
    let shown = bench.attempts(&key).await.expect("known");
    let answers: Vec<&[u8]> = shown.iter().map(|attempt| attempt.answer.as_ref()).collect();
    assert_eq!(answers, [&b"first"[..], b"second", b"third"]);
}

pub(crate) async fn responses_and_errors_of_any_kind_are_kept_up_to_their_bounds(bench: &Workbench) {
    let mut lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    let binary: Vec<u8> = (0..=255).collect();
    bench.note(&[note(&mut lease, 1, &binary), note(&mut lease, 2, &[0; 5000])]).await;
    lease.attempt = 3;
    let long = Attempt { error: Some("ü".repeat(500)), by: "n".repeat(500), ..failed() };
    bench.note(&[AttemptLogEntry::of(&lease, long)]).await;
    let shown = bench.attempts(&key).await.expect("known");
    assert_eq!(shown[0].answer, binary);
    assert_eq!(shown[1].answer, vec![0; MAX_ANSWER]);
    assert_eq!((shown[2].error.clone().unwrap_or_default(), shown[2].by.len()), ("ü".repeat(64), 64));
}

pub(crate) async fn many_attempts_in_one_call_each_go_to_their_job(bench: &Workbench) {
    let mut leases = Vec::new();
    for part in 0..MAX_BATCH / 100 {
        let jobs: Vec<_> = (0..100).map(|n| bench.job(&format!("job-{part}-{n}"))).collect();
        bench.submit(&jobs).await;
        leases.extend(bench.take(100).await);
    }
    assert_eq!(leases.len(), MAX_BATCH);
    let name = |lease: &Lease| lease.key.id.to_string();
    let notes: Vec<_> = leases.iter_mut().map(|lease| note(lease, 1, name(lease).as_bytes())).collect();
    bench.note(&notes).await;
    for lease in &leases {
        let shown = bench.attempts(&lease.key).await.expect("known");
        assert_eq!((shown.len(), shown[0].answer.as_ref()), (1, name(lease).as_bytes()));
    }
}

pub(crate) async fn the_log_of_a_job_outlives_its_end(bench: &Workbench) {
    for (name, outcome) in [("done", Outcome::Complete), ("dead", bury())] {
        let mut lease = bench.reserved(bench.job(name)).await;
        let key = lease.key.clone();
        bench.note(&[note(&mut lease, 1, b"no")]).await;
        assert_eq!(bench.settle(lease, outcome).await, SettleResult::Applied);
        assert_eq!(bench.numbers(&key).await, [1], "{name}");
    }
    let dead = bench.key("store", "dead");
    bench.store().purge(&dead).await.expect("purge");
    assert_eq!(bench.numbers(&dead).await, [1], "of a job that is gone");
}

pub(crate) async fn a_later_job_of_the_same_name_has_a_log_of_its_own(bench: &Workbench) {
    let mut lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    bench.note(&[note(&mut lease, 1, b"of the first"), note(&mut lease, 2, b"of the first")]).await;
    assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
    bench.store().purge(&key).await.expect("purge");
    let mut second = bench.reserved(bench.job("a").content(2)).await;
    assert_eq!(bench.attempts(&key).await, Some(Vec::new()));
    bench.note(&[note(&mut second, 1, b"of the second")]).await;
    let shown = bench.attempts(&key).await.expect("known");
    assert_eq!((shown.len(), shown[0].answer.as_ref()), (1, &b"of the second"[..]));
}

pub(crate) async fn a_late_record_of_an_earlier_job_leaves_the_log_of_a_later_one(bench: &Workbench) {
    let [lease, mut same] = bench.take_twice(&bench.accept(bench.job("a")).await.key).await;
    let key = lease.key.clone();
    assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
    bench.store().purge(&key).await.expect("purge");
    until(now().plus(ms(2))).await;
    let mut second = bench.reserved(bench.job("a").content(2)).await;
    let answers = async || {
        let shown = bench.attempts(&key).await.expect("known");
        shown.iter().map(|attempt| attempt.answer.clone()).collect::<Vec<_>>()
    };
    let of_second = [Bytes::from_static(b"of the second")];
    bench.note(&[note(&mut second, 1, &of_second[0])]).await;
    bench.note(&[note(&mut same, 1, b"of the first"), note(&mut same, 2, b"of the first")]).await;
    assert_eq!(answers().await, of_second);
    assert_eq!(bench.settle(second, Outcome::Complete).await, SettleResult::Applied);
    bench.note(&[note(&mut same, 3, b"of the first")]).await;
    assert_eq!(answers().await, of_second, "it has ended");
}

pub(crate) async fn a_job_that_was_created_before_an_earlier_one_of_its_name_has_its_log(bench: &Workbench) {
    let mut lease = bench.reserved(bench.job("a")).await;
    let key = lease.key.clone();
    bench.note(&[note(&mut lease, 1, b"of the first")]).await;
    assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
    bench.store().purge(&key).await.expect("purge");
    let created = Some(Timestamp::from_millis(now().as_millis() - 3_600_000));
    let history = History { dead: None, created, attempts: 0, failures: 0, last: None };
    let job = ImportJob { job: bench.job("a"), history: Some(history) };
    bench.store().import(bench.shard(), &[job]).await.expect("import");
    let mut second = bench.take_one(&key).await;
    bench.note(&[note(&mut second, 1, b"of the second")]).await;
    let shown = bench.attempts(&key).await.expect("known");
    assert_eq!((shown.len(), shown[0].answer.as_ref()), (1, &b"of the second"[..]));
}

pub(crate) async fn logs_take_no_more_memory_than_they_may_and_the_oldest_are_evicted(bench: &Workbench) {
    let small = bench.with(|options| options.keep_attempts_mib = 1).await;
    let mut first = small.reserved(small.job("a")).await;
    let mut busy = small.reserved(small.job("busy")).await;
    small.note(&[note(&mut first, 1, &[b'x'; MAX_ANSWER]), note(&mut busy, 1, b"oldest")]).await;
    // Calls with one and with many attempts, some of which take more than a part of the room.
    let mut last = Vec::new();
    for (part, many) in [1, 7, 100, 250, 20].into_iter().enumerate() {
        let jobs: Vec<_> = (0..many).map(|n| small.job(&format!("job-{part}-{n}"))).collect();
        small.submit(&jobs).await;
        last = small.take(500).await;
        assert_eq!(last.len(), many);
        let notes: Vec<_> = last.iter_mut().map(|lease| note(lease, 1, &[b'x'; MAX_ANSWER])).collect();
        small.note(&notes).await;
        small.note(&[note(&mut busy, 2 + u32::try_from(part).expect("few"), b"later")]).await;
        small.check().await;
    }
    assert_eq!(small.attempts(&first.key).await, Some(Vec::new()), "the oldest is evicted");
    for lease in &last {
        assert_eq!(small.numbers(&lease.key).await, [1], "the newest stays");
    }
    // A log counts as new when it is added to, unless more than the whole room was written since.
    assert_eq!(small.numbers(&busy.key).await.last(), Some(&6));
}

pub(crate) async fn a_log_that_is_added_to_stays_while_others_go(bench: &Workbench) {
    let small = bench.with(|options| options.keep_attempts_mib = 1).await;
    let mut busy = small.reserved(small.job("busy")).await;
    let jobs: Vec<_> = (0..500).map(|n| small.job(&format!("job-{n}"))).collect();
    small.submit(&jobs).await;
    let mut others = Vec::new();
    while others.len() < 500 {
        others.extend(small.take(100).await);
    }
    for (n, some) in (1..).zip(others.chunks_mut(25)) {
        small.note(&[note(&mut busy, n, b"busy")]).await;
        let notes: Vec<_> = some.iter_mut().map(|lease| note(lease, 1, &[b'x'; MAX_ANSWER])).collect();
        small.note(&notes).await;
    }
    assert_eq!(small.numbers(&busy.key).await, (1..=20).collect::<Vec<_>>());
    assert_eq!(small.numbers(&others[0].key).await, [0; 0]);
    small.check().await;
}

pub(crate) async fn attempts_older_than_their_retention_are_not_shown(bench: &Workbench) {
    let brief = bench.with(|options| options.keep_attempts = ms(400)).await;
    let mut lease = brief.reserved(brief.job("a")).await;
    let key = lease.key.clone();
    let at = now();
    brief.note(&[note(&mut lease, 1, b"no")]).await;
    let mut number = 1;
    eventually(SOON, "the first attempt is evicted", async || {
        number += 1;
        brief.note(&[note(&mut lease, number, b"no")]).await;
        match brief.numbers(&key).await.first() {
            // The log also has its limit of twenty attempts.
            Some(1) if number < 19 => Err("it is shown"),
            Some(1) => {
                number = 18;
                Err("it is shown")
            }
            _ => Ok(()),
        }
    })
    .await;
    assert!(now() >= at.plus(ms(400)), "it was evicted too early");
    eventually(SOON, "all are evicted", async || {
        if brief.numbers(&key).await.is_empty() { Ok(()) } else { Err("some are shown") }
    })
    .await;
    brief.check().await;
}

pub(crate) async fn a_consumer_s_failure_is_recorded_with_what_the_lease_knows(bench: &Workbench) {
    let job = bench.pulled("a").await;
    let noted = |error: &str| AttemptLogEntry::failed(&job.receipt, Some(error.to_owned()));
    let before = now();
    bench.note(&[noted("out of paper"), AttemptLogEntry::expired(&job.receipt, "lease ran out")]).await;
    let shown = bench.attempts(&job.key).await.expect("known");
    assert_eq!(shown.len(), 1, "{shown:?}");
    let Attempt { number, at, error, by, status, .. } = &shown[0];
    assert_eq!(
        (*number, error.as_deref(), by.as_str(), *status),
        (1, Some("out of paper"), "consumer", None)
    );
    assert!(*at <= before && before.since(*at) < LONG, "{at:?}");
    let outcome = Outcome::Retry { after: LONG, last: LastAttempt::by_consumer(None) };
    assert_eq!(bench.settle_receipt(job.receipt, outcome).await, SettleResult::Applied);
    bench.note(&[noted("too late")]).await;
    assert_eq!(bench.numbers(&job.key).await, [1]);
}

pub(crate) async fn an_expired_lease_is_recorded_and_a_renewed_one_is_not(bench: &Workbench) {
    let keys = [bench.accept(bench.pull_job("a")).await.key, bench.accept(bench.pull_job("b")).await.key];
    for key in &keys {
        bench.pull_one(key, ms(30)).await;
    }
    let expired = bench.expired_leases(2).await;
    bench.store().renew_receipt(&expired[1].receipt, LONG, MAX_RENEWED).await.expect("renew");
    let notes: Vec<_> =
        expired.iter().map(|job| AttemptLogEntry::expired(&job.receipt, "lease ran out")).collect();
    bench.note(&notes).await;
    let mut shown = Vec::new();
    for key in &keys {
        shown.push(bench.attempts(key).await.expect("known").len());
    }
    shown.sort_unstable();
    assert_eq!(shown, [0, 1]);
    let outcome = Outcome::Retry { after: LONG, last: LastAttempt::by_consumer(None) };
    let settled = bench.store().settle_expired(bench.shard(), &[(expired[0].receipt, outcome)]).await;
    assert_eq!(settled.expect("settle"), [SettleResult::Applied]);
}

pub(crate) async fn nothing_is_recorded_without_room_and_a_topic_chooses_what_is_recorded(bench: &Workbench) {
    let without_room = bench
        .with(|options| {
            options.prefix = format!("{}0", options.prefix);
            (options.attempts, options.keep_attempts_mib) = (Logging::All, 0);
        })
        .await;
    let mut lease = without_room.reserved(without_room.job("a")).await;
    without_room.note(&[note(&mut lease, 1, b"no")]).await;
    assert_eq!(without_room.attempts(&lease.key).await, Some(Vec::new()));
    let policy =
        |which: &str| parse_policy(format!(r#"{{"attempts":"{which}"}}"#).as_bytes()).expect("a policy");
    assert_eq!(without_room.store().logging(Some(&policy("all"))), Logging::Off);
    assert_eq!(bench.store().logging(None), Logging::Failed);
    assert_eq!(bench.store().logging(Some(&policy("off"))), Logging::Off);
    assert_eq!(bench.store().logging(Some(&policy("all"))), Logging::All);
    assert!(Logging::Failed.notes_success(2) && !Logging::Failed.notes_success(1));
}
