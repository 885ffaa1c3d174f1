//! The audit of a store on Redis, shard by shard, beside everything else that goes on there. Every
//! call is short, and nothing is locked: what one call cannot tell for certain is only told
//! when it was seen to have stayed as it was.
//!
//! - What finds a job is looked up with its record, in one call: exact at any time.
//! - A job in a list is looked for by reading the list; `waiting` says why that is exact too.
//! - Counts are compared with jobs where no job has moved while they were counted.

mod calls;
mod count;
mod told;
mod waiting;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use ringback_core::contract::{Audit, DamageKind, Finding, Repair, RunningAudit, Shard, StoreError};

use self::calls::{Bad, Mend, Overview, Scan};
use self::count::Count;
use self::told::Told;
use self::waiting::{Waiting, Word};
use super::RedisStore;

/// So many jobs that wait in lists are looked for at once; of more of them the lists are read again
/// for each part. With 32 bytes each this bounds the memory that an audit takes.
const WAITING: usize = 500_000;
/// So often a job is looked for that is in another list each time. There are two, and the way leads
/// from one to the other.
const ROUNDS: usize = 3;
/// In a shard with more lanes their counts are not compared.
const LANES: usize = 100_000;

type Lane = [u8; 8];
/// Delayed, ready, reserved, dead.
type Jobs = [i64; 4];

impl RedisStore {
    /// See `ringback_store::Store::audit`.
    pub async fn audit(&self, repair: Repair) -> Result<Audit, StoreError> {
        let shards = self.options.shards;
        let (mut audit, has_answered) = (RunningAudit::of(shards), AtomicBool::new(false));
        for shard in (0..shards).map(Shard) {
            let (audit, has_answered) = (&mut audit.0, &has_answered);
            Walk { store: self, shard, repair, audit, has_answered }.shard().await?;
        }
        Ok(audit.end())
    }
}

/// On the way through a shard.
struct Walk<'a> {
    store: &'a RedisStore,
    shard: Shard,
    repair: Repair,
    audit: &'a mut Audit,
    /// Whether the store has answered any call of this audit.
    has_answered: &'a AtomicBool,
}

impl Walk<'_> {
    async fn shard(&mut self) -> Result<(), StoreError> {
        self.moments().await?;
        // Whatever is compared is read between the two.
        let before = self.overview().await?;
        let told = self.lanes().await?;
        let count = self.jobs(LookFor::All).await?;
        self.runs().await?;
        let entries = self.entries().await?;
        let after = self.overview().await?;
        self.audit.checked += count.jobs;
        let indexed = count.jobs.saturating_sub(count.unindexed);
        self.audit.stale += (entries + after.dead_entries).saturating_sub(indexed);
        let listed = told.as_ref().map_or(u64::MAX, Told::listed);
        self.audit.stale += (after.index_entries + after.topic_entries).saturating_sub(listed);
        match self.repair {
            Repair::No => {
                self.counts(&before, &after, &count, told.as_ref()).await?;
                self.ledger(&after);
            }
            // Where jobs are led to again they count elsewhere.
            Repair::Yes => {
                let before = self.overview().await?;
                let told = self.lanes().await?;
                let count = self.jobs(LookFor::Counts).await?;
                let after = self.overview().await?;
                self.counts(&before, &after, &count, told.as_ref()).await?;
                let left = self.overview().await?;
                self.ledger(&left);
            }
        }
        Ok(())
    }

    /// The shard's words on when to look next.
    async fn moments(&mut self) -> Result<(), StoreError> {
        let wrong = self.overview().await?.wrong_moments;
        let mend = match self.repair {
            Repair::Yes if !wrong.is_empty() && self.mend_moments().await? > 0 => Mend::Mended,
            Repair::Yes => Mend::MovedOn,
            Repair::No => Mend::Left,
        };
        for name in wrong {
            let what = match name.as_str() {
                "lease_at" => "leases run out before the time at which they are looked at next",
                "tell_at" => "deaths are to be told before the time at which they are looked at next",
                "dead_at" => "dead jobs are there before the time at which they are looked at next",
                _ => "the first slot is another one than is told",
            };
            self.found(Finding::new(DamageKind::WakeAt, self.shard, what), mend);
        }
        Ok(())
    }

    /// Records what was wrong, unless that was no longer so when it was to be put right.
    fn found(&mut self, finding: Finding, mend: Mend) {
        match mend {
            Mend::MovedOn => {}
            Mend::Mended => self.audit.find(finding.repaired(true)),
            Mend::Left => self.audit.find(finding),
        }
    }

    /// Lanes and topics, what leads to them, and whether lists show them; what each is said to have,
    /// unless there are too many.
    async fn lanes(&mut self) -> Result<Option<Told>, StoreError> {
        let (mut scan, mut told) = (Scan::start(), Some(Told::default()));
        while scan.goes_on() {
            let page = self.lanes_page(&mut scan).await?;
            let mended = match self.repair {
                Repair::Yes => self.mend_lanes(&page.lost).await?,
                Repair::No => vec![Mend::Left; page.lost.len()],
            };
            for ((_, words), mend) in page.lost.into_iter().zip(mended) {
                let finding = Finding::new(
                    DamageKind::Schedule,
                    self.shard,
                    format!("nothing leads to the jobs of {words:?}"),
                );
                self.found(finding.of_topic(topic_of(&words)), mend);
            }
            self.unlisted(&page.unlisted).await?;
            told = told.and_then(|told| told.with(page.lanes, page.topics, LANES));
        }
        Ok(told)
    }

    /// Topics and lanes that lists of topics would not show.
    async fn unlisted(&mut self, members: &[Vec<u8>]) -> Result<(), StoreError> {
        let mended = match self.repair {
            Repair::Yes => self.mend_index(members).await?,
            Repair::No => vec![Mend::Left; members.len()],
        };
        for (member, mend) in members.iter().zip(mended) {
            let words = String::from_utf8_lossy(member);
            let topic = topic_of(&words);
            let what = if member.len() == topic.len() + 1 { "topic" } else { "a lane of topic" };
            let detail = format!("lists of topics do not show {what} {topic:?}");
            self.found(Finding::new(DamageKind::Topic, self.shard, detail).of_topic(topic), mend);
        }
        Ok(())
    }

    /// All records, each with what finds it.
    async fn jobs(&mut self, look_for: LookFor) -> Result<Count, StoreError> {
        let mut count = Count { lanes: Some(HashMap::new()), ..Count::default() };
        let (mut scan, mut waiting) = (Scan::start(), Waiting::default());
        while scan.goes_on() {
            let page = self.jobs_page(&mut scan).await?;
            count.add(page.states, &page.lanes);
            count.jobs += page.states.iter().sum::<i64>().unsigned_abs();
            match look_for {
                LookFor::Counts => {}
                LookFor::All => {
                    waiting.add(&page.ready, &page.slots)?;
                    self.bad(page.bad, &mut count).await?;
                    if waiting.len() >= WAITING {
                        self.search(&mut waiting, &mut count).await?;
                    }
                }
            }
        }
        self.search(&mut waiting, &mut count).await?;
        Ok(count)
    }

    /// What was seen to be wrong in one call.
    async fn bad(&mut self, bad: Vec<Bad>, count: &mut Count) -> Result<(), StoreError> {
        let lost = bad.iter().filter(|bad| bad.what == "unindexed");
        let lost: Vec<_> = lost.map(|bad| (bad.locator.clone(), 0)).collect();
        let mut mended = self.mend(&lost).await?.into_iter();
        for bad in bad {
            let (state, topic, id) = (bad.state_name(), topic_of(&bad.words), bad.id());
            let (kind, detail) = match bad.what.as_str() {
                "unindexed" => (DamageKind::Unindexed, unindexed(state)),
                "body" => (DamageKind::Body, format!("the body of a {state} job is missing")),
                "lane" => (
                    DamageKind::Lane,
                    format!("where a {state} job goes is not known: its lane has no words"),
                ),
                _ => (DamageKind::Unreadable, format!("the record at {} cannot be read", hex(&bad.locator))),
            };
            let is_lost = kind == DamageKind::Unindexed;
            let mend = if is_lost { mended.next() } else { None }.unwrap_or(Mend::Left);
            if is_lost && mend != Mend::MovedOn {
                count.lost(bad.state);
            }
            self.found(Finding::new(kind, self.shard, detail).of_topic(topic).of_job(id), mend);
        }
        Ok(())
    }

    /// Leads to lost jobs again where that is wanted.
    async fn mend(&self, lost: &[(Vec<u8>, u8)]) -> Result<Vec<Mend>, StoreError> {
        match self.repair {
            Repair::Yes if !lost.is_empty() => self.mend_jobs(lost).await,
            Repair::Yes | Repair::No => Ok(vec![Mend::Left; lost.len()]),
        }
    }

    /// Looks for the jobs that wait in the lists in which they have to be.
    async fn search(&mut self, waiting: &mut Waiting, count: &mut Count) -> Result<(), StoreError> {
        let mut waiting = std::mem::take(waiting);
        for _ in 0..ROUNDS {
            let (unmet, mut again) = (waiting::unmet(self, waiting).await?, Waiting::default());
            for jobs in unmet.some() {
                let words = self.confirm(&jobs).await?;
                self.unmet(jobs.into_iter().zip(words), &mut again, count).await?;
            }
            waiting = again;
            if waiting.len() == 0 {
                break;
            }
        }
        Ok(())
    }

    /// What is still known of jobs that were not met.
    async fn unmet(
        &mut self,
        jobs: impl Iterator<Item = ((Vec<u8>, u8), Word)>,
        again: &mut Waiting,
        count: &mut Count,
    ) -> Result<(), StoreError> {
        let (mut lost, mut findings) = (Vec::new(), Vec::new());
        for ((known, _), word) in jobs {
            match word {
                Word::MovedOn => {}
                Word::Again(list) => again.again(&known, list),
                Word::Lost { state, words, record } => {
                    let detail = unindexed(calls::state_name(state));
                    let finding = Finding::new(DamageKind::Unindexed, self.shard, detail);
                    findings.push(finding.of_topic(topic_of(&words)).of_job(calls::id_of(&record)));
                    lost.push((known, state));
                }
            }
        }
        let mended = self.mend(&lost).await?;
        for ((finding, (_, state)), mend) in findings.into_iter().zip(lost).zip(mended) {
            if mend != Mend::MovedOn {
                count.lost(state);
                self.found(finding, mend);
            }
        }
        Ok(())
    }

    /// Runs without their record.
    async fn runs(&mut self) -> Result<(), StoreError> {
        let mut scan = Scan::start();
        while scan.goes_on() {
            let alone = self.runs_page(&mut scan).await?;
            let mended = match self.repair {
                Repair::Yes => self.mend_runs(&alone).await?,
                Repair::No => vec![Mend::Left; alone.len()],
            };
            for (locator, mend) in alone.iter().zip(mended) {
                let detail = format!("what is left of a job whose record is gone, at {}", hex(locator));
                self.found(Finding::new(DamageKind::StateRecord, self.shard, detail), mend);
            }
        }
        Ok(())
    }

    /// Entries of all indexes, but for those of dead jobs.
    async fn entries(&mut self) -> Result<u64, StoreError> {
        let mut sum = 0;
        for kind in ["lanes", "pulls", "parked", "turns", "slots", "batches"] {
            let mut scan = Scan::start();
            while scan.goes_on() {
                sum += self.entries_page(kind, &mut scan).await?;
            }
        }
        Ok(sum)
    }

    /// Compares what was counted with what is said, where nothing has moved meanwhile.
    async fn counts(
        &mut self,
        before: &Overview,
        after: &Overview,
        count: &Count,
        told: Option<&Told>,
    ) -> Result<(), StoreError> {
        if before.ledger != after.ledger || count.jobs != after.jobs {
            let counted: i64 = after.states().iter().sum();
            if i128::from(counted) != i128::from(after.jobs) {
                let detail = format!(
                    "the ledger counts {counted} jobs that have not ended, and there are {}",
                    after.jobs
                );
                self.audit.find(Finding::new(DamageKind::Ledger, self.shard, detail));
            }
            return Ok(());
        }
        self.audit.compared += 1;
        let states = count.wrong_states(after.states());
        let wrong = told.and_then(|told| told.wrong(count, after.sums)).unwrap_or_default();
        if states.is_empty() && wrong.is_right() {
            return Ok(());
        }
        let (states_mended, rest_mended) = match self.repair {
            Repair::Yes => self.mend_counts(after, count, &wrong).await?,
            Repair::No => (false, false),
        };
        for detail in states {
            self.audit.find(Finding::new(DamageKind::Ledger, self.shard, detail).repaired(states_mended));
        }
        for finding in wrong.findings(self.shard) {
            self.audit.find(finding.repaired(rest_mended));
        }
        Ok(())
    }

    /// That every job that was accepted is in one state, which one call tells.
    fn ledger(&mut self, overview: &Overview) {
        let Overview { ledger, .. } = overview;
        let [accepted, rest @ .., _lease, _pauses] = ledger;
        let sum: i64 = rest.iter().sum();
        if *accepted != sum || ledger.iter().any(|n| *n < 0) {
            let detail = format!(
                "{accepted} jobs were accepted, and the counts of all states add up to {sum}: {rest:?}"
            );
            self.audit.find(Finding::new(DamageKind::Ledger, self.shard, detail));
        }
    }
}

/// What a pass over the records is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LookFor {
    All,
    Counts,
}

fn topic_of(words: &str) -> &str {
    words.split(' ').next().unwrap_or_default()
}

fn unindexed(state: &str) -> String {
    format!("nothing leads to a {state} job")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
