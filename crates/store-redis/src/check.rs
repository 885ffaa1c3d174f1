//! Check and repair: checks indexes and counts, shard by shard, while the store is in use. Every call is short,
//! and nothing is locked. A difference is reported only if it is certain:
//!
//! - A job and the index that must hold it are read in one call, which is exact at any time.
//! - A job in a list is found by reading the list; `waiting` explains why that is exact too.
//! - Counts are compared only if no job has moved while they were taken.

mod answers;
mod calls;
mod counts;
mod due;
mod schedules;
mod tags;
mod waiting;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use redis::ToRedisArgs;
use ringback_core::hex::Hex;
use ringback_core::store_types::{Check, DamageKind, Finding, Repair, RunningCheck, Shard, StoreError};

use self::answers::{Overview, Problem, Repaired, id_of, lossy, state_name, topic_of};
use self::calls::{Calls, SETS, STATES, Scan};
use self::counts::{Count, LANES, RecordedCounts};
use self::waiting::{List, SearchResult, Waiting};
use super::redis_store::RedisStore;
use super::script;

/// How many waiting jobs are searched for at once, 32 bytes each; for more the lists are read again.
const WAITING: usize = 500_000;
/// How often lists are read for a job that is not found in them. From [`SEARCHED_FROM`] on, short lists are searched in
/// one call, so only long ones that are cleaned each time can leave a job unverified.
const ROUNDS: usize = 10;
/// The first round in which short lists are searched in one call.
const SEARCHED_FROM: usize = 2;

impl RedisStore {
    /// See `ringback_store::Store::check`.
    pub async fn check(&self, repair: Repair) -> Result<Check, StoreError> {
        let shards = self.options.shards;
        let (mut check, has_answered) = (RunningCheck::of(shards), AtomicBool::new(false));
        for shard in (0..shards).map(Shard) {
            let calls = Calls { store: self, shard, has_answered: &has_answered };
            Walk { calls, shard, repair, check: &mut check.0 }.shard().await?;
        }
        // The row is read again, because the loss may have been accepted meanwhile.
        self.look_at_installation().await?;
        check.0.loss = self.loss();
        Ok(check.end())
    }
}

struct Walk<'a> {
    calls: Calls<'a>,
    shard: Shard,
    repair: Repair,
    check: &'a mut Check,
}

impl Walk<'_> {
    async fn shard(&mut self) -> Result<(), StoreError> {
        self.times().await?;
        self.schedules().await?;
        // Everything that is compared is read between the two overviews.
        let before = self.calls.overview().await?;
        let recorded = self.lanes().await?;
        let count = self.jobs(LookFor::All).await?;
        self.states().await?;
        self.stray_tags().await?;
        let entries = self.entries().await?;
        let after = self.calls.overview().await?;
        self.check.checked += count.jobs;
        let indexed = count.jobs.saturating_sub(count.unindexed);
        self.check.stale += (entries + after.dead_entries).saturating_sub(indexed);
        let listed = recorded.as_ref().map_or(u64::MAX, RecordedCounts::listed);
        self.check.stale += (after.index_entries + after.topic_entries).saturating_sub(listed);
        match self.repair {
            Repair::No => {
                self.counts(&before, &after, &count, recorded.as_ref()).await?;
                self.ledger(&after);
            }
            // Relinked jobs may count elsewhere.
            Repair::Yes => {
                self.remove_due().await?;
                let before = self.calls.overview().await?;
                let recorded = self.lanes().await?;
                let count = self.jobs(LookFor::Counts).await?;
                let after = self.calls.overview().await?;
                self.counts(&before, &after, &count, recorded.as_ref()).await?;
                let left = self.calls.overview().await?;
                self.ledger(&left);
            }
        }
        Ok(())
    }

    /// Checks the fields with the first times of indexes, and the numbers of paused and of limited destinations.
    async fn times(&mut self) -> Result<(), StoreError> {
        let wrong = self.calls.overview().await?.wrong_times;
        let repaired = match self.repair {
            Repair::Yes if wrong.is_empty() => Repaired::MovedOn,
            Repair::Yes if self.calls.repair::<u32>("times", &[""; 0]).await? == 0 => Repaired::MovedOn,
            Repair::Yes => Repaired::Done,
            Repair::No => Repaired::Left,
        };
        for name in wrong {
            let what = match name.as_str() {
                "lease_at" => "leases expire before the time at which they are looked at next",
                "next_notice_at" => {
                    "dead-letter notices are due before the time at which they are looked at next"
                }
                "next_firing_at" => "schedules fire before the time at which they are looked at next",
                "dead_at" => "dead jobs are to be evicted before the time at which they are looked at next",
                "paused_hosts" => "the number of paused destinations differs from the recorded one",
                "limits" => "the number of limited destinations differs from the recorded one",
                _ => "the first slot differs from the recorded one",
            };
            self.found(Finding::new(DamageKind::WakeAt, self.shard, what), repaired);
        }
        Ok(())
    }

    /// Records a finding, repaired or not, unless it was gone when it was to be repaired.
    fn found(&mut self, finding: Finding, repaired: Repaired) {
        match repaired {
            Repaired::MovedOn => {}
            Repaired::Done => self.check.find(finding.repaired(true)),
            Repaired::Left => self.check.find(finding),
        }
    }

    /// Checks lanes and topics: links to their jobs, and the lists that show them. Repairs them if asked for. Returns
    /// their recorded counts; `None` for more than [`LANES`] lanes.
    async fn lanes(&mut self) -> Result<Option<RecordedCounts>, StoreError> {
        let (mut scan, mut recorded) = (Scan::start(), Some(RecordedCounts::default()));
        while !scan.is_over {
            let page = self.calls.lanes_page(&mut scan).await?;
            let ids: Vec<_> = page.unlinked.iter().map(|(lane, _)| lane).collect();
            let repaired = self.repair("lanes", &ids).await?;
            for ((_, lane), repaired) in page.unlinked.into_iter().zip(repaired) {
                let detail = format!("nothing leads to the jobs of {:?}", lossy(&lane));
                let finding = Finding::new(DamageKind::Schedule, self.shard, detail);
                self.found(finding.of_topic(&topic_of(&lane)), repaired);
            }
            self.unlisted(&page.unlisted).await?;
            recorded = recorded.and_then(|recorded| recorded.with(page.rows, LANES));
        }
        Ok(recorded)
    }

    /// Reports topics and lanes that lists of topics do not show, and lists them if repairs are asked for.
    async fn unlisted(&mut self, members: &[Vec<u8>]) -> Result<(), StoreError> {
        let repaired = self.repair("index", members).await?;
        for (member, repaired) in members.iter().zip(repaired) {
            let topic = topic_of(member);
            let what = if member.len() == topic.len() + 1 { "topic" } else { "a lane of topic" };
            let detail = format!("lists of topics do not show {what} {topic:?}");
            self.found(Finding::new(DamageKind::Topic, self.shard, detail).of_topic(&topic), repaired);
        }
        Ok(())
    }

    /// Counts all records and, with [`LookFor::All`], checks each against the index that must hold it.
    async fn jobs(&mut self, look_for: LookFor) -> Result<Count, StoreError> {
        let mut count = Count { lanes: Some(HashMap::new()), ..Count::default() };
        let (mut scan, mut waiting) = (Scan::start(), Waiting::default());
        while !scan.is_over {
            let page = self.calls.jobs_page(&mut scan).await?;
            count.add(page.states, &page.lanes);
            count.jobs += page.states.iter().sum::<i64>().unsigned_abs();
            match look_for {
                LookFor::Counts => {}
                LookFor::All => {
                    waiting.add(&page.ready, &page.slots)?;
                    self.problems(page.problems, &mut count).await?;
                    if waiting.len() >= WAITING {
                        self.search(&mut waiting, &mut count).await?;
                    }
                }
            }
        }
        self.search(&mut waiting, &mut count).await?;
        Ok(count)
    }

    /// Reports the problems of a page. If repairs are asked for, restores entries of lost jobs and of tags.
    async fn problems(&mut self, problems: Vec<Problem>, count: &mut Count) -> Result<(), StoreError> {
        let lost = problems.iter().filter(|(problem, ..)| problem == "unindexed");
        let lost: Vec<_> = lost.map(|(_, locator, ..)| (locator.clone(), 0)).collect();
        let mut relinked = self.repair("jobs", &lost).await?.into_iter();
        let untagged = problems.iter().filter(|(problem, ..)| problem == "tag");
        let untagged: Vec<_> = untagged.map(|(_, locator, ..)| locator.clone()).collect();
        let mut tagged = self.repair("tags", &untagged).await?.into_iter();
        for (problem, locator, code, lane, record) in problems {
            let state = state_name(code);
            let (kind, detail) = match problem.as_str() {
                "unindexed" => (DamageKind::Unindexed, unindexed(state)),
                "tag" => (DamageKind::Tag, format!("filters by tag do not find a {state} job")),
                "body" => (DamageKind::Body, format!("the body of a {state} job is missing")),
                "lane" => (
                    DamageKind::Lane,
                    format!("the lane of a {state} job has no name, so its target is not known"),
                ),
                _ => (DamageKind::Unreadable, format!("the record at {} cannot be read", Hex(&locator))),
            };
            let is_lost = kind == DamageKind::Unindexed;
            let repaired = match kind {
                DamageKind::Unindexed => relinked.next(),
                DamageKind::Tag => tagged.next(),
                _ => None,
            };
            let repaired = repaired.unwrap_or(Repaired::Left);
            if is_lost && repaired != Repaired::MovedOn {
                count.lost(code);
            }
            let finding = Finding::new(kind, self.shard, detail);
            self.found(finding.of_topic(&topic_of(&lane)).of_job(id_of(&record)), repaired);
        }
        Ok(())
    }

    /// Searches waiting jobs in the lists that must hold them, and reports lost ones. After [`ROUNDS`] rounds, the jobs
    /// that are left count as unverified.
    async fn search(&mut self, waiting: &mut Waiting, count: &mut Count) -> Result<(), StoreError> {
        let mut waiting = std::mem::take(waiting);
        for round in 0..ROUNDS {
            let ((unmet, cleaned), mut again) = (self.read_lists(waiting).await?, Waiting::default());
            for jobs in unmet.some() {
                let verdicts = self.calls.confirm(cleaned, round >= SEARCHED_FROM, &jobs).await?;
                self.unmet(jobs.into_iter().zip(verdicts), &mut again, count).await?;
            }
            waiting = again;
            if waiting.len() == 0 {
                break;
            }
        }
        self.check.unverified += waiting.len() as u64;
        Ok(())
    }

    /// Reads the lists that must hold jobs. Returns the jobs missing there, and each list's count of cleanings before.
    async fn read_lists(&self, mut waiting: Waiting) -> Result<(Waiting, u64), StoreError> {
        waiting.sort();
        let mut cleaned = None;
        for list in [List::Slot, List::Ready] {
            let names: Vec<_> = waiting.names(list).into_iter().collect();
            let (mut from, mut skip) = (0, 0);
            while from < names.len() {
                let (lists, read, entries, count) = self.calls.read_lists(list, skip, &names[from..]).await?;
                cleaned.get_or_insert(count);
                for (name, entries) in names[from..].iter().zip(&entries) {
                    waiting.mark_all(list, name, entries);
                }
                (from, skip) = (from + lists, read);
            }
        }
        waiting.retain_unmet();
        Ok((waiting, cleaned.unwrap_or_default()))
    }

    /// Repairs lost jobs if asked for, and reports them; adds those that another list must hold now to `again`.
    async fn unmet(
        &mut self,
        jobs: impl Iterator<Item = ((Vec<u8>, u8), SearchResult)>,
        again: &mut Waiting,
        count: &mut Count,
    ) -> Result<(), StoreError> {
        let (mut lost, mut findings) = (Vec::new(), Vec::new());
        for ((known, _), verdict) in jobs {
            match verdict {
                SearchResult::MovedOn => {}
                SearchResult::Again(list) => again.again(&known, list),
                SearchResult::Lost { state, lane, record } => {
                    let detail = unindexed(state_name(state));
                    let finding = Finding::new(DamageKind::Unindexed, self.shard, detail);
                    findings.push(finding.of_topic(&topic_of(&lane)).of_job(id_of(&record)));
                    lost.push((known, state));
                }
            }
        }
        let relinked = self.repair("jobs", &lost).await?;
        for ((finding, (_, state)), repaired) in findings.into_iter().zip(lost).zip(relinked) {
            if repaired != Repaired::MovedOn {
                count.lost(state);
                self.found(finding, repaired);
            }
        }
        Ok(())
    }

    /// Reports job states without a record, and removes them if repairs are asked for.
    async fn states(&mut self) -> Result<(), StoreError> {
        let mut scan = Scan::start();
        while !scan.is_over {
            let alone: Vec<Vec<u8>> = self.calls.page(&script::CHECK_STATES, &mut scan, STATES).await?;
            let repaired = self.repair("states", &alone).await?;
            for (locator, repaired) in alone.iter().zip(repaired) {
                let detail = format!("a job state without a record, at {}", Hex(locator));
                self.found(Finding::new(DamageKind::StateRecord, self.shard, detail), repaired);
            }
        }
        Ok(())
    }

    /// Repairs items of a kind, see `check/repair.lua`, if repairs are asked for. Returns a result for each item, all
    /// [`Repaired::Left`] if they are not.
    async fn repair(&self, kind: &str, items: &[impl ToRedisArgs]) -> Result<Vec<Repaired>, StoreError> {
        match self.repair {
            Repair::Yes if !items.is_empty() => {
                let codes: Vec<u8> = self.calls.repair(kind, items).await?;
                Ok(codes.into_iter().map(Repaired::from).collect())
            }
            Repair::Yes | Repair::No => Ok(vec![Repaired::Left; items.len()]),
        }
    }

    /// Counts the entries of all indexes except that of dead jobs.
    async fn entries(&mut self) -> Result<u64, StoreError> {
        let mut sum = 0;
        for kind in ["lanes", "pulls", "paused", "due_lanes", "slots", "batches", "leases"] {
            let mut scan = Scan::start();
            while !scan.is_over {
                sum += self.calls.page_of::<u64>(&script::CHECK_ENTRIES, kind, &mut scan, SETS).await?;
            }
        }
        Ok(sum)
    }

    /// Compares counts with recorded counts, if no job has moved meanwhile, and corrects them if repairs are asked for.
    /// Otherwise compares only the ledger's number of jobs with that of records.
    async fn counts(
        &mut self,
        before: &Overview,
        after: &Overview,
        count: &Count,
        recorded: Option<&RecordedCounts>,
    ) -> Result<(), StoreError> {
        if before.ledger != after.ledger || count.jobs != after.jobs {
            let counted: i64 = after.states().iter().sum();
            if i128::from(counted) != i128::from(after.jobs) {
                let detail = format!(
                    "the ledger counts {counted} jobs that have not ended, and there are {}",
                    after.jobs
                );
                self.check.find(Finding::new(DamageKind::Ledger, self.shard, detail));
            }
            return Ok(());
        }
        self.check.compared += 1;
        let mut states = count.wrong_states(after.states());
        states.extend(count.uncounted(after.jobs_by_end(), after.uncounted_tombstones));
        let wrong = recorded.and_then(|recorded| recorded.wrong(count, after.sums)).unwrap_or_default();
        if states.is_empty() && wrong.is_right() {
            return Ok(());
        }
        let (states_corrected, rest_corrected) = match self.repair {
            Repair::Yes => self.calls.correct_counts(after, count, &wrong).await?,
            Repair::No => (false, false),
        };
        for detail in states {
            self.check.find(Finding::new(DamageKind::Ledger, self.shard, detail).repaired(states_corrected));
        }
        for finding in wrong.findings(self.shard) {
            self.check.find(finding.repaired(rest_corrected));
        }
        Ok(())
    }

    /// Checks that the ledger adds up: every accepted job is in one state, purged or missing. Adds the missing ones.
    fn ledger(&mut self, overview: &Overview) {
        let Overview { ledger, .. } = overview;
        let [accepted, rest @ .., missing, _lease, _pauses, _replaced] = ledger;
        self.check.missing += u64::try_from(*missing).unwrap_or(0);
        let sum = rest.iter().sum::<i64>() + missing;
        if *accepted != sum || ledger.iter().any(|n| *n < 0) {
            let detail = format!(
                "{accepted} jobs were accepted, and the counts of all states add up to {sum}: {rest:?}, {missing} missing"
            );
            self.check.find(Finding::new(DamageKind::Ledger, self.shard, detail));
        }
    }
}

/// The purpose of a pass over the records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LookFor {
    All,
    Counts,
}

fn unindexed(state: &str) -> String {
    format!("nothing leads to a {state} job")
}
