//! The audit: walks a snapshot, looks each record up in the indexes and each entry in the records,
//! and compares counts. A snapshot does not move, so all of it is exact. Kept in memory are the
//! counts of every lane and topic, and of a repair `MOST_MENDS` findings at most. What is put right
//! is looked at again by the writer, in a transaction of its own.

mod counts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::ReadTransaction;
use ringback_core::contract::{Audit, DamageKind, Finding, Repair, RunningAudit, Shard, StoreError};
use ringback_core::state::State;

use super::EmbeddedStore;
use super::tables::{self, Entry, Hold, Jobs, Known, Look, PARKED, Record, ShardRow, Stage, Sums, topic_in};
use super::txn::Txn;

/// So much is put right after one walk; where there is more, another one follows.
const MOST_MENDS: usize = 10_000;
/// So many walks in a row that put nothing right are the last: what they find cannot be.
const TRIES: usize = 2;
/// So much of it in one call of the writer.
const AT_ONCE: usize = 100;

impl EmbeddedStore {
    /// See `ringback_store::Store::audit`.
    pub async fn audit(&self, repair: Repair) -> Result<Audit, StoreError> {
        let (mut mended, mut tries) = (RunningAudit::of(self.options.shards), TRIES);
        loop {
            let Walked { mut audit, mends } = self.walk(repair).await?;
            let before = mended.0.repaired;
            for mends in mends.chunk_by(|one, other| one.finding.shard == other.finding.shard) {
                for mends in mends.chunks(AT_ONCE) {
                    self.mend(mends, &mut mended.0).await?;
                }
            }
            // What has moved on meanwhile is found no more.
            tries = if mended.0.repaired == before { tries - 1 } else { TRIES };
            if mends.is_empty() || tries == 0 {
                mends.into_iter().for_each(|mend| audit.find(mend.finding));
                return Ok(audit.after(mended.end()));
            }
        }
    }

    async fn walk(&self, repair: Repair) -> Result<Walked, StoreError> {
        let snapshot = self.writer.get().ok_or(StoreError::Unprepared)?.snapshot().await?;
        let given_up = GivenUp::default();
        let is_given_up = Arc::clone(&given_up.0);
        let shards = self.options.shards;
        let walk = tokio::task::spawn_blocking(move || walk(&snapshot, shards, repair, &is_given_up)).await;
        walk.map_err(|_| StoreError::Closed)?
    }

    /// Carries out what is all of one shard.
    async fn mend(&self, mends: &[Mend], audit: &mut Audit) -> Result<(), StoreError> {
        let Some(shard) = mends.first().map(|mend| mend.finding.shard) else { return Ok(()) };
        let actions: Vec<_> = mends.iter().map(|mend| mend.action.clone()).collect();
        let carry_out = move |txn: &mut Txn<'_>| {
            actions.iter().map(|action| action.carry_out(txn)).collect::<Result<Vec<_>, StoreError>>()
        };
        let done = self.call(shard, mends.len() * 256, carry_out).await?;
        for (mend, is_done) in mends.iter().zip(done) {
            if is_done {
                audit.find(mend.finding.clone().repaired(true));
            }
        }
        Ok(())
    }
}

/// Tells the walk that nobody waits for it any more.
#[derive(Default)]
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What puts something right.
#[derive(Clone, Debug)]
enum Action {
    /// Leads to a job.
    Job(u64),
    Topic(Box<str>),
    Lane(Box<str>),
    /// The counts of states are off by so many.
    Counts(Vec<(State, i64)>),
    /// That of tombstones is.
    Tombstones(i64),
    /// The counts of a lane's jobs are.
    Jobs(Box<str>, Jobs),
    /// That of a topic's lanes is.
    Lanes(Box<str>, i64),
    /// The sums over the topics of the shard are.
    Sums(Sums),
    /// Lists are to show a topic.
    Known(Box<str>),
}

impl Action {
    /// Whether there was something to put right.
    fn carry_out(&self, txn: &mut Txn<'_>) -> Result<bool, StoreError> {
        match self {
            Self::Job(number) => txn.lead_to(*number),
            Self::Topic(topic) => txn.lead_to_topic(topic),
            Self::Lane(lane) => txn.lead_to_lane(lane),
            Self::Counts(counts) => {
                counts.iter().for_each(|(state, by)| txn.row.ledger.shift(*state, *by));
                Ok(true)
            }
            Self::Tombstones(by) => {
                txn.row.ended = txn.row.ended.saturating_add_signed(*by);
                Ok(true)
            }
            Self::Jobs(lane, by) => txn.tables.counts.shift(txn.shard(), lane, *by).map(|()| true),
            Self::Lanes(topic, by) => txn.tables.counts.shift_lanes(txn.shard(), topic, *by).map(|()| true),
            Self::Sums(by) => txn.tables.counts.shift_sums(txn.shard(), *by).map(|()| true),
            Self::Known(topic) => txn.tables.due.know(txn.shard(), topic).map(|()| true),
        }
    }
}

/// Something to put right.
struct Mend {
    finding: Finding,
    action: Action,
}

/// What one walk came to.
struct Walked {
    audit: Audit,
    mends: Vec<Mend>,
}

/// Reads everything; takes a while for a large store, and blocks.
fn walk(
    snapshot: &ReadTransaction,
    shards: u16,
    repair: Repair,
    is_given_up: &AtomicBool,
) -> Result<Walked, StoreError> {
    let audit = Audit { shards, compared: shards, ..Audit::default() };
    let rows: BTreeMap<_, _> = tables::rows(snapshot)?.into_iter().collect();
    let look = Look::into(snapshot)?;
    let (jobs, known) = tables::counts(snapshot)?;
    let mut books = Books {
        look,
        repair,
        rows,
        audit,
        mends: Vec::new(),
        counts: BTreeMap::new(),
        open: BTreeMap::new(),
        known,
        met: 0,
    };
    let go_on = || if is_given_up.load(Ordering::Relaxed) { Err(StoreError::Closed) } else { Ok(()) };
    tables::each_record(snapshot, |number, record| {
        go_on()?;
        match record {
            Some(record) => books.record(&record),
            None => {
                books.unreadable(number);
                Ok(())
            }
        }
    })?;
    let mut before = None;
    tables::each_waiting(snapshot, |entry| {
        go_on()?;
        books.waiting(&entry, &mut before)
    })?;
    // No two jobs have the same entry.
    books.audit.stale += books.look.entries()?.saturating_sub(books.met);
    books.ledgers();
    for (shard, detail) in tables::audit_attempts(snapshot)? {
        books.find(Finding::new(DamageKind::Attempts, Shard(shard), detail), None);
    }
    books.topics(&jobs)?;
    books.lanes(&jobs);
    Ok(Walked { audit: books.audit, mends: books.mends })
}

struct Books {
    look: Look,
    repair: Repair,
    rows: BTreeMap<u16, ShardRow>,
    audit: Audit,
    mends: Vec<Mend>,
    /// Jobs and tombstones by state.
    counts: BTreeMap<(u16, &'static str), i64>,
    /// Jobs that have not ended, by lane.
    open: BTreeMap<(u16, String), Jobs>,
    /// What is told of topics.
    known: BTreeMap<(u16, String), Known>,
    /// Entries and bodies that jobs were looked up by.
    met: u64,
}

/// What stands together in an index: all of it is led to by one turn.
#[derive(PartialEq, Eq)]
enum Group {
    Topic(u16, String),
    Lane(u16, String),
}

impl Books {
    fn find(&mut self, finding: Finding, action: Option<Action>) {
        match action {
            Some(action) if self.repair == Repair::Yes => {
                // What is too much for this walk is found by the next.
                if self.mends.len() < MOST_MENDS {
                    self.mends.push(Mend { finding, action });
                }
            }
            _ => self.audit.find(finding),
        }
    }

    fn unreadable(&mut self, number: u64) {
        let detail = format!("the record of job number {number} cannot be read");
        self.find(Finding::new(DamageKind::Unreadable, Shard(0), detail), None);
    }

    fn record(&mut self, record: &Record) -> Result<(), StoreError> {
        let Record { number, shard, .. } = *record;
        let (state, is_over) = (record.state(), record.ended().is_some());
        *self.counts.entry((shard, state.name())).or_default() += 1;
        self.audit.checked += u64::from(!is_over);
        let (is_named, is_placed) =
            (self.look.has(&Entry::Id(record.locator, number))?, self.look.has(&place(record))?);
        let has_body = self.look.has(&Entry::Body(number))?;
        self.met += u64::from(is_named) + u64::from(is_placed) + u64::from(has_body && !is_over);
        let finding = |books: &Self, kind, detail: String| {
            let finding = Finding::new(kind, Shard(shard), detail).of_topic(&record.topic);
            Ok::<_, StoreError>(finding.of_job(books.look.id(number)?))
        };
        if !is_over && !has_body {
            let finding = finding(self, DamageKind::Body, format!("the body of a {state} job is missing"))?;
            self.find(finding, None);
        }
        if !is_over {
            self.open.entry((shard, record.lane())).or_default().count(state);
        }
        if !is_named || !is_placed {
            let what = if is_over { "what is remembered of a" } else { "a" };
            let finding =
                finding(self, DamageKind::Unindexed, format!("nothing leads to {what} {state} job"))?;
            self.find(finding, Some(Action::Job(number)));
        }
        Ok(())
    }

    /// Turns that lead to nothing, and what waits in a topic or lane that has none.
    fn waiting(&mut self, entry: &Entry, before: &mut Option<Group>) -> Result<(), StoreError> {
        let leads = match entry {
            Entry::Topic(shard, topic, at) => {
                self.look.first_due(*shard, topic)?.is_some()
                    && self.look.topic_turn(*shard, topic)? == Some(*at)
            }
            Entry::Lane(shard, lane, turn) => {
                self.look.is_waiting(*shard, lane)? && self.look.lane_turn(*shard, lane)? == Some(*turn)
            }
            _ => true,
        };
        self.audit.stale += u64::from(!leads);
        let group = match entry {
            Entry::Due(shard, topic, ..) => Group::Topic(*shard, topic.clone()),
            Entry::Ready(shard, lane, ..) => Group::Lane(*shard, lane.clone()),
            _ => return Ok(()),
        };
        if before.as_ref() != Some(&group) {
            self.turn(&group, entry)?;
            *before = Some(group);
        }
        Ok(())
    }

    /// The first entry of a topic or lane: whether it has its turn.
    fn turn(&mut self, group: &Group, first: &Entry) -> Result<(), StoreError> {
        match (group, first) {
            (Group::Topic(shard, topic), Entry::Due(_, _, first, _)) => {
                let turn = self.look.topic_turn(*shard, topic)?;
                // One that is due already stands behind those that were due in the same pass.
                let seen = self.rows.get(shard).map_or(0, |row| row.time_us / 1000);
                let is_there = match turn {
                    Some(at) => {
                        at <= seen.max(*first) && self.look.has(&Entry::Topic(*shard, topic.clone(), at))?
                    }
                    None => false,
                };
                if !is_there {
                    let detail = format!("nothing leads to the delayed jobs of {topic:?}");
                    let finding = Finding::new(DamageKind::Schedule, Shard(*shard), detail).of_topic(topic);
                    self.find(finding, Some(Action::Topic(topic.as_str().into())));
                }
            }
            (Group::Lane(shard, lane), _) => {
                let topic = topic_in(lane);
                // Who resumes the topic gives the lanes that are parked their turns again.
                let known = self.known.get(&(*shard, topic.to_owned()));
                let is_held = known.is_some_and(|known| known.hold != Hold::None);
                let is_there = match self.look.lane_turn(*shard, lane)? {
                    Some(PARKED) if !is_held => false,
                    Some(turn) => self.look.has(&Entry::Lane(*shard, lane.clone(), turn))?,
                    None => false,
                };
                if !is_there {
                    let detail = format!("nothing leads to the jobs of {lane:?}");
                    let finding = Finding::new(DamageKind::Schedule, Shard(*shard), detail).of_topic(topic);
                    self.find(finding, Some(Action::Lane(lane.as_str().into())));
                }
            }
            (Group::Topic(..), _) => {}
        }
        Ok(())
    }

    /// Compares what was counted with what is said.
    fn ledgers(&mut self) {
        let kept: Vec<_> = self.counts.keys().map(|(shard, _)| *shard).collect();
        for shard in kept {
            self.rows.entry(shard).or_default();
        }
        for (shard, row) in std::mem::take(&mut self.rows) {
            self.ledger(Shard(shard), &row);
        }
    }

    fn ledger(&mut self, shard: Shard, row: &ShardRow) {
        let kept = |state: State| self.counts.get(&(shard.0, state.name())).copied().unwrap_or(0);
        let (mut off, mut wrong, mut after) = (Vec::new(), Vec::new(), row.ledger.clone());
        for state in State::ALL {
            let (jobs, told) = (kept(state), i64::try_from(row.ledger.of(state)).unwrap_or(i64::MAX));
            // Tombstones are forgotten, so fewer are kept than were counted.
            if jobs > told || (jobs < told && !state.is_terminal()) {
                wrong.push(format!("the ledger counts {told} {state} jobs, and there are {jobs}"));
                off.push((state, jobs - told));
                after.shift(state, jobs - told);
            }
        }
        let tombstones = kept(State::Done) + kept(State::Cancelled);
        // Jobs that are gone, or were counted twice, cannot be told from each other: a ledger that
        // would not add up stays.
        let can_mend = after.adds_up();
        if !wrong.is_empty() {
            let finding = Finding::new(DamageKind::Ledger, shard, wrong.join("; "));
            self.find(finding, can_mend.then_some(Action::Counts(off)));
        }
        if !row.ledger.adds_up() && !can_mend {
            let detail =
                format!("the counts of all states do not add up to what was accepted: {:?}", row.ledger);
            self.find(Finding::new(DamageKind::Ledger, shard, detail), None);
        }
        let told = i64::try_from(row.ended).unwrap_or(i64::MAX);
        if tombstones != told {
            let detail = format!("{told} ended jobs are said to be remembered, and {tombstones} are");
            let finding = Finding::new(DamageKind::Ledger, shard, detail);
            self.find(finding, Some(Action::Tombstones(tombstones - told)));
        }
    }
}

/// Where the index of a job's state has it.
fn place(record: &Record) -> Entry {
    let Record { number, shard, .. } = *record;
    match &record.stage {
        Stage::Delayed => Entry::Due(shard, record.topic.to_string(), record.due, number),
        Stage::Ready { position } => Entry::Ready(shard, record.lane(), *position, number),
        Stage::Reserved { deadline, put_off, .. } => Entry::Lease(shard, deadline + put_off, number),
        Stage::Dead { since, .. } => Entry::Dead(shard, *since, number),
        Stage::Done { at } | Stage::Cancelled { at, .. } => Entry::Ended(shard, *at, number),
    }
}
