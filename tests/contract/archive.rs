//! Cases of the archive outbox: each end of a job leaves one entry with what was submitted, in order, until it is
//! removed; a full outbox refuses calls or drops entries.

use bytes::Bytes;
use ringback_core::job::{Callback, Context, Delivery, Headers, IfExists, NewJob};
use ringback_core::outcome::Reason;
use ringback_core::store_types::{
    ArchiveEntries, ArchiveSettings, ArchivedJob, AttemptLogEntry, Cancelled, EndedState, EndedStates,
    LogResult, OutboxPart, SettleResult, StoreError, TakeEntries, WhenFull,
};

use super::attempts::failed;
use super::job_builders::{BRIEF, LONG, With, bury, ms, seen, tags};
use super::workbench::{SOON, Workbench, now};
use crate::prelude::*;

const ARCHIVER: &str = "archiver-1";
const LASTS: Duration = Duration::from_secs(5);

fn settings() -> ArchiveSettings {
    ArchiveSettings {
        states: EndedStates::all(),
        with_bodies: true,
        bound: 1 << 30,
        when_full: WhenFull::Stall,
    }
}

impl Workbench {
    async fn attach(&self, settings: ArchiveSettings) {
        self.store().attach_archive(Some(settings)).await.expect("attach");
    }

    async fn taken(&self) -> ArchiveEntries {
        match self.store().take_ended(self.shard(), ARCHIVER, LASTS, 500).await.expect("take") {
            TakeEntries::Taken(taken) => taken,
            TakeEntries::Busy(left) => panic!("another archiver has it for {left:?}"),
        }
    }

    async fn ends(&self) -> Vec<ArchivedJob> {
        self.taken().await.jobs.into_iter().map(|end| end.expect("it can be read")).collect()
    }

    /// Takes the first `n` entries for the archiver, and returns which these are. Panics if another archiver has them.
    async fn part(&self, n: usize) -> OutboxPart {
        match self.store().take_ended(self.shard(), ARCHIVER, LASTS, n).await.expect("take") {
            TakeEntries::Taken(taken) => taken.part,
            TakeEntries::Busy(left) => panic!("another archiver has it for {left:?}"),
        }
    }

    async fn remove(&self, part: &OutboxPart) -> u64 {
        self.store().remove_ended(self.shard(), ARCHIVER, part).await.expect("remove")
    }

    /// The state and the id of each entry, in order.
    async fn kinds(&self) -> Vec<(EndedState, String)> {
        self.ends().await.into_iter().map(|end| (end.kind, end.job.key.id.to_string())).collect()
    }
}

/// The job with headers, context, a timeout and an `on_dead` URL.
fn whole(job: NewJob) -> NewJob {
    let entries = |name: &str| vec![(name.to_owned(), "b".to_owned())];
    let delivery = Delivery {
        headers: Headers::parse(entries("x-a")).expect("headers"),
        context: Context::parse(entries("k")).expect("a context"),
        timeout: Some(ms(9_000)),
        on_dead: Some(Box::new(Callback::parse("https://up.example/dead").expect("a URL"))),
        ..job.delivery
    };
    NewJob { delivery, ..job }
}

pub(crate) async fn each_end_leaves_an_entry_with_what_was_submitted(bench: &Workbench) {
    bench.attach(settings()).await;
    let small = whole(bench.job("small"));
    let large = whole(bench.job("large").body(half_noise(7, 50_000).into()));
    let before = now();
    let done = bench.job_in(State::Done, small.clone()).await;
    let dead = bench.job_in(State::Dead, large.clone()).await;
    let cancelled = bench.job_in(State::Cancelled, whole(bench.job("later")).after(LONG)).await;
    let ends = bench.ends().await;
    let [first, second, third] = ends.as_slice() else { panic!("{ends:?}") };
    for (end, kind, job) in [
        (first, EndedState::Done, done),
        (second, EndedState::Dead, dead),
        (third, EndedState::Cancelled, cancelled),
    ] {
        assert_eq!((end.kind, &end.job.key, end.job.state), (kind, &job.key, job.state));
        assert_eq!((end.job.created, end.job.attempts, end.job.due), (job.created, job.attempts, job.due));
        assert_eq!(
            (&end.job.reason, end.job.failures, &end.job.last),
            (&job.reason, job.failures, &job.last)
        );
        assert!(end.at >= before && end.at <= now() && end.has_body, "{end:?}");
        assert_eq!(end.job.tags, tags(&job.key));
        assert_eq!(end.first_due, job.due);
    }
    assert_eq!(first.delivery.as_ref(), Some(&small.delivery));
    assert_eq!(second.delivery.as_ref(), Some(&large.delivery), "a large body is there");
    // The dead job has its body still.
    assert_eq!(bench.take_revived(&second.job.key).await, large.delivery.body.bytes);
    let status = bench.store().archive_status().await.expect("status");
    assert_eq!((status.pending, status.oldest, status.dropped), (3, Some(first.at), 0));
    assert!((20_000..40_000).contains(&status.bytes), "{status:?}");
}

impl Workbench {
    /// Revives a dead job, reserves it and returns the body.
    async fn take_revived(&self, key: &ringback_core::job::JobKey) -> Bytes {
        self.store().revive(key, self.token()).await.expect("revive");
        self.take_one(key).await.delivery.body.bytes
    }
}

pub(crate) async fn every_way_to_end_leaves_one_entry(bench: &Workbench) {
    let bench = &bench.with(|options| options.keep_dead = ms(1)).await;
    bench.attach(settings()).await;
    let expired = bench.reserved(bench.job("expired")).await;
    let bury = |reason| Outcome::Bury { reason, last: seen() };
    assert_eq!(bench.settle(expired, bury(Reason::Expired)).await, SettleResult::Applied);
    // Jobs that are cancelled while reserved, whose lease expires or is settled.
    for (name, timeout) in [("lost", BRIEF), ("failed", LONG)] {
        let lease = bench.reserved(bench.job(name).timeout(timeout)).await;
        assert_eq!(bench.cancel(&lease.key).await, Cancelled::Requested { in_flight_unknown: false });
        if timeout == BRIEF {
            bench.recover_until(&lease.key, State::Cancelled).await;
        } else {
            assert_eq!(bench.settle(lease, super::job_builders::retry(LONG)).await, SettleResult::Applied);
        }
    }
    let dead = bench.job_in(State::Dead, bench.job("cancelled")).await;
    assert_eq!(bench.cancel(&dead.key).await, Cancelled::Cancelled { in_flight_unknown: false });
    let dead = bench.job_in(State::Dead, bench.job("purged").body(noise(1, 9_000).into())).await;
    bench.store().purge(&dead.key).await.expect("purge");
    bench.job_in(State::Dead, bench.job("evicted")).await;
    let is_gone = async || {
        bench.evict(10).await;
        let purged = bench.stats().await.states.purged;
        if purged < 3 { Err(format!("{purged} are gone")) } else { Ok(()) }
    };
    eventually(SOON, "the dead jobs are gone", is_gone).await;
    let expected = [
        (EndedState::Expired, "expired"),
        (EndedState::Cancelled, "lost"),
        (EndedState::Cancelled, "failed"),
        (EndedState::Dead, "cancelled"),
        (EndedState::Cancelled, "cancelled"),
        (EndedState::Dead, "purged"),
        (EndedState::Dead, "evicted"),
    ];
    let mut named = bench.kinds().await;
    named.retain(|(kind, _)| *kind != EndedState::Purged);
    let named: Vec<_> = named.iter().map(|(kind, name)| (*kind, name.as_str())).collect();
    let expected = expected.map(|(kind, name)| (kind, bench.key("store", name).id.to_string()));
    assert_eq!(named, expected.each_ref().map(|(kind, name)| (*kind, name.as_str())));
    let purged =
        bench.ends().await.into_iter().filter(|end| end.kind == EndedState::Purged).collect::<Vec<_>>();
    let of = |name: &str| {
        let end = purged.iter().find(|end| end.job.key == bench.key("store", name));
        end.unwrap_or_else(|| panic!("{name} was purged"))
    };
    assert_eq!(of("purged").delivery.as_ref().map(|delivery| delivery.body.bytes.len()), Some(9_000));
    // The expired job was dead too, and its retention was over with that of the others.
    let reasons: Vec<_> = ["purged", "evicted", "expired"].map(|name| of(name).job.reason.clone()).into();
    assert_eq!(reasons, [Some("exhausted".into()), Some("exhausted".into()), Some("expired".into())]);
}

pub(crate) async fn without_an_archive_and_for_ends_that_are_not_wanted_there_are_no_entries(
    bench: &Workbench,
) {
    bench.job_in(State::Done, bench.job("a")).await;
    let wanted = EndedStates::of([EndedState::Dead]);
    bench.attach(ArchiveSettings { states: wanted, with_bodies: false, ..settings() }).await;
    bench.job_in(State::Done, bench.job("b")).await;
    let dead = bench.job_in(State::Dead, whole(bench.job("c").body(half_noise(3, 9_000).into()))).await;
    bench.store().attach_archive(None).await.expect("detach");
    bench.job_in(State::Dead, bench.job("d")).await;
    let ends = bench.ends().await;
    let [end] = ends.as_slice() else { panic!("{ends:?}") };
    assert_eq!((&end.job.key, end.has_body), (&dead.key, false));
    let delivery = end.delivery.as_ref().expect("the rest can be read");
    assert!(delivery.body.bytes.is_empty() && delivery.on_dead.is_some(), "{delivery:?}");
    let status = bench.store().archive_status().await.expect("status");
    assert_eq!((status.settings, status.pending), (None, 1));
    assert!(status.bytes < 2_000, "no body counts: {status:?}");
    assert_eq!(bench.store().drop_ended().await.expect("drop"), 1);
    let status = bench.store().archive_status().await.expect("status");
    assert_eq!((status.pending, status.bytes, status.dropped, status.oldest), (0, 0, 1, None));
}

pub(crate) async fn entries_are_removed_once_and_only_the_first_ones(bench: &Workbench) {
    bench.attach(settings()).await;
    for n in 0..5 {
        bench.job_in(State::Done, bench.job(&format!("{n}")).body(noise(9, 3_000).into())).await;
    }
    let two = bench.part(2).await;
    assert_eq!(bench.remove(&two).await, 3);
    assert_eq!(bench.remove(&two).await, 3, "a repetition removes nothing");
    let (one, all) = (bench.part(1).await, bench.part(3).await);
    let behind = OutboxPart { first: all.first + 1, ..all.clone() };
    assert_eq!(bench.remove(&behind).await, 3, "they are not the first");
    assert_eq!(bench.remove(&one).await, 2);
    let taken = bench.taken().await;
    assert_eq!((taken.part.first, taken.jobs.len()), (two.first + 3, 2));
    assert_eq!(bench.remove(&all).await, 0, "the first of them was removed before");
    let status = bench.store().archive_status().await.expect("status");
    assert_eq!((status.pending, status.bytes, status.dropped), (0, 0, 0));
}

pub(crate) async fn large_ends_are_spread_over_several_parts(bench: &Workbench) {
    const SIZE: usize = 200_000;
    bench.attach(settings()).await;
    for n in 0..12 {
        let body = if n % 2 == 0 { noise(n, SIZE).into() } else { vec![n; SIZE] };
        bench.job_in(State::Done, bench.job(&format!("{n}")).body(body)).await;
    }
    let mut left = 12;
    while left > 0 {
        let part = bench.taken().await.part;
        assert!((1..=8).contains(&part.count), "{} in one part", part.count);
        left = bench.remove(&part).await;
    }
}

pub(crate) async fn a_repeated_settle_leaves_one_entry_and_a_success_after_a_death_one_more(
    bench: &Workbench,
) {
    bench.attach(settings()).await;
    let stale = bench.stale_lease(bench.job("late").timeout(BRIEF)).await;
    for (lease, expected) in
        bench.take_twice(&stale.key).await.into_iter().zip([SettleResult::Applied, SettleResult::Replayed])
    {
        let lost = Outcome::Bury { reason: Reason::Lost, last: seen() };
        assert_eq!(bench.settle(lease, lost).await, expected);
    }
    assert_eq!(bench.settle(stale, Outcome::Complete).await, SettleResult::Late);
    let kinds: Vec<_> = bench.kinds().await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [EndedState::Dead, EndedState::Done]);
}

pub(crate) async fn each_life_of_a_name_has_its_own_entry(bench: &Workbench) {
    bench.attach(settings()).await;
    let first = bench.job_in(State::Dead, bench.job("a")).await;
    let replace = IfExists::Replace { token: bench.token() };
    let next = NewJob { if_exists: replace, ..bench.job("a").body(b"second".to_vec()) };
    bench.submit(&[next]).await;
    let lease = bench.take_one(&first.key).await;
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    let ends = bench.ends().await;
    let of = |end: &ArchivedJob| (end.kind, end.former_attempts, end.job.attempts);
    assert_eq!(ends.iter().map(of).collect::<Vec<_>>(), [(EndedState::Dead, 0, 1), (EndedState::Done, 1, 2)]);
    assert!(ends[0].job.created < ends[1].job.created, "lives have different times of acceptance");
}

pub(crate) async fn entries_have_the_attempts_that_were_logged(bench: &Workbench) {
    bench.attach(settings()).await;
    for (name, is_logged) in [("logged", true), ("unlogged", false)] {
        let lease = bench.reserved(bench.job(name)).await;
        if is_logged {
            let note = AttemptLogEntry::of(&lease, failed());
            assert_eq!(
                bench.store().log_attempts(bench.shard(), &[note]).await.expect("note"),
                LogResult::Kept
            );
        }
        assert_eq!(bench.settle(lease, bury()).await, SettleResult::Applied);
    }
    let ends = bench.ends().await;
    let answers: Vec<_> = ends[0].attempts.iter().map(|attempt| attempt.answer.clone()).collect();
    assert_eq!((answers, ends[0].is_attempts_complete()), (vec![Bytes::from_static(b"try later")], true));
    assert_eq!((ends[1].attempts.len(), ends[1].is_attempts_complete()), (0, false));
}

pub(crate) async fn a_full_outbox_stops_submits_and_at_twice_its_bound_reserves(bench: &Workbench) {
    bench.attach(ArchiveSettings { bound: 20_000, ..settings() }).await;
    let refused = async || {
        let answer = bench.store().submit(bench.shard(), &[bench.job("refused")]).await;
        matches!(answer, Err(StoreError::ArchiveBehind))
    };
    for n in 0..6 {
        bench.accept(bench.job(&format!("{n}")).body(noise(9, 12_000).into())).await;
    }
    bench.job_in_place("0").await;
    assert!(!refused().await);
    bench.job_in_place("1").await;
    assert!(refused().await, "two entries of 12,000 bytes");
    let status = bench.store().archive_status().await.expect("status");
    assert_eq!(status.stalled, 1);
    for name in ["2", "3"] {
        bench.job_in_place(name).await;
    }
    assert!(bench.take(5).await.is_empty(), "four entries: nothing is delivered");
    assert_eq!(bench.remove(&bench.part(1).await).await, 3);
    assert!(bench.take(1).await.len() == 1 && refused().await);
    assert_eq!(bench.remove(&bench.part(3).await).await, 0);
    assert!(!refused().await);
}

impl Workbench {
    /// Reserves and completes the next ready job, which must have this name.
    async fn job_in_place(&self, name: &str) {
        let lease = self.take_one(&self.key("store", name)).await;
        assert_eq!(self.settle(lease, Outcome::Complete).await, SettleResult::Applied);
    }
}

pub(crate) async fn an_outbox_that_drops_loses_the_oldest_entries_and_counts_them(bench: &Workbench) {
    bench.attach(ArchiveSettings { bound: 30_000, when_full: WhenFull::Drop, ..settings() }).await;
    for n in 0..5 {
        bench.job_in(State::Done, bench.job(&format!("{n}")).body(noise(9, 12_000).into())).await;
    }
    let taken = bench.taken().await;
    assert_eq!((taken.part.first, taken.jobs.len()), (3, 2));
    let status = bench.store().archive_status().await.expect("status");
    assert_eq!((status.dropped, status.pending, status.stalled), (3, 2, 0));
    // Of entries that were taken before others were dropped, those that are still there are removed.
    bench.job_in(State::Done, bench.job("5").body(noise(9, 12_000).into())).await;
    assert_eq!(bench.remove(&taken.part).await, 1);
    // The bound is exceeded in one step: dropped entries leave nothing behind.
    bench.attach(ArchiveSettings { bound: 15_000, when_full: WhenFull::Drop, ..settings() }).await;
    for n in 6..9 {
        bench.accept(bench.job(&format!("{n}")).body(noise(9, 12_000).into())).await;
    }
    let leases = bench.take(3).await;
    let settled = leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
    assert_eq!(bench.settle_all(settled).await, [SettleResult::Applied; 3]);
    let ends = bench.ends().await;
    assert_eq!((ends.len(), ends[0].has_body), (1, true));
    assert_eq!(bench.remove(&bench.part(1).await).await, 0);
}
