//! The calls of an audit: arguments of the scripts, and their answers as values. After each call the audit pauses
//! for as long as the call took, so that Redis has half of its time for others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::{Cmd, FromRedisValue, ToRedisArgs, Value};
use ringback_core::contract::{Shard, StoreError};
use tokio::time::{Instant, sleep};

use super::answers::{
    LANE_ROW, Lanes, ListParts, Overview, PAUSED, Problem, Records, Repaired, UNREADABLE, counts, lossy,
    repaired, topic_of,
};
use super::count::{Count, Jobs, Lane};
use super::rows::{LaneRow, TopicRow, Wrong, WrongLane, WrongTopic};
use super::waiting::{List, Verdict};
use crate::redis_store::RedisStore;
use crate::reply;
use crate::script::{self, Script};

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How long a call is repeated when the store has gone away in the middle.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(250);
/// How many records, job states, lanes or sets a page looks at.
const RECORDS: usize = 200;
const STATES: usize = 500;
const LANES: usize = 100;
const SETS: usize = 50;
/// How many entries of lists one call reads, and of how many lists.
const ENTRIES: usize = 1000;
const LISTS: usize = 200;
/// How many lanes or topics one call corrects.
const COUNTS: usize = 500;

/// A place in a scan of a hash or set.
pub(crate) struct Scan {
    at: String,
    life: String,
    is_over: bool,
}

impl Scan {
    pub(crate) fn start() -> Self {
        Self { at: "0".to_owned(), life: String::new(), is_over: false }
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.is_over
    }

    fn push(&self, cmd: &mut Cmd, count: usize) {
        cmd.arg(&self.at).arg(&self.life).arg(count);
    }

    /// Takes the place where to go on, and returns what was found.
    fn advance<T: FromRedisValue>(&mut self, answer: Vec<Value>) -> Result<T, StoreError> {
        let (life, at, found) = reply::scanned(answer, "a page of an audit")?;
        self.is_over = at == "0";
        (self.life, self.at) = (life, at);
        Ok(found)
    }
}

/// A problem as the script answers it: what is wrong, locator, state, lane name, record's start.
type ProblemParts = (String, Vec<u8>, u8, Vec<u8>, Vec<u8>);

/// The calls on one shard.
pub(crate) struct Calls<'a> {
    pub(crate) store: &'a RedisStore,
    pub(crate) shard: Shard,
    /// Whether the store has answered any call of this audit.
    pub(crate) has_answered: &'a AtomicBool,
}

impl Calls<'_> {
    /// Makes a call that changes something. It is made once: a repetition could not report what the first one has
    /// changed.
    async fn change<T: FromRedisValue>(
        &self,
        script: &Script,
        args: impl Fn(&mut Cmd),
    ) -> Result<T, StoreError> {
        let asked = Instant::now();
        let answer = self.store.run(script, self.shard, args).await?;
        sleep(asked.elapsed().min(LONGEST_PAUSE)).await;
        Ok(answer)
    }

    /// Makes a call that only reads. It is repeated for a while if the store has answered before.
    async fn call<T: FromRedisValue>(
        &self,
        script: &Script,
        args: impl Fn(&mut Cmd),
    ) -> Result<T, StoreError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.change(script, &args).await {
                Ok(answer) => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error) if error.is_transient() && self.is_patient() && Instant::now() < until => {
                    tracing::debug!(shard = self.shard.0, %error, "an audit asks the store again");
                    sleep(AGAIN).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// An audit of a store that is away from the start fails at once.
    fn is_patient(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    pub(crate) async fn overview(&self) -> Result<Overview, StoreError> {
        let (ledger, sums, sizes, wrong_times) = self.call(&script::AUDIT_SHARD, |_| {}).await?;
        let [jobs, dead_entries, index_entries, topic_entries] = sizes;
        Ok(Overview { ledger, sums, jobs, dead_entries, index_entries, topic_entries, wrong_times })
    }

    pub(crate) async fn jobs_page(&self, scan: &mut Scan) -> Result<Records, StoreError> {
        type Answer = (Jobs, Vec<u8>, Vec<u8>, Vec<(Lane, Vec<u8>)>, Vec<ProblemParts>);
        let (states, ready, slots, lanes, problems): Answer =
            self.page(&script::AUDIT_JOBS, scan, RECORDS).await?;
        let lanes = lanes.into_iter().map(|(lane, row)| Ok((lane, counts(&row)?)));
        let lanes = lanes.collect::<Result<_, StoreError>>()?;
        let problems = problems.into_iter().map(|(what, locator, state, lane, record)| Problem {
            what,
            locator,
            state,
            lane: lossy(&lane),
            record,
        });
        Ok(Records { states, ready, slots, lanes, problems: problems.collect() })
    }

    pub(crate) async fn states_page(&self, scan: &mut Scan) -> Result<Vec<Vec<u8>>, StoreError> {
        self.page(&script::AUDIT_STATES, scan, STATES).await
    }

    pub(crate) async fn lanes_page(&self, scan: &mut Scan) -> Result<Lanes, StoreError> {
        type Rows<N> = Vec<(N, Vec<u8>)>;
        let (lanes, unlinked, topics, unlisted): (Rows<Lane>, Rows<Lane>, Rows<Vec<u8>>, _) =
            self.page(&script::AUDIT_LANES, scan, LANES).await?;
        let lanes = lanes.into_iter().map(|(lane, row)| {
            let name = String::from_utf8_lossy(row.get(LANE_ROW..).ok_or(UNREADABLE)?);
            Ok((lane, LaneRow { jobs: counts(&row)?, topic: topic_of(&name).into() }))
        });
        let topics = topics.into_iter().map(|(topic, row)| {
            let lanes = row.first_chunk().map(|lanes| u32::from_be_bytes(*lanes)).ok_or(UNREADABLE)?;
            let is_paused = row.get(PAUSED).is_some_and(|flag| *flag > 0);
            Ok((lossy(&topic).into(), TopicRow { lanes, is_paused }))
        });
        Ok(Lanes {
            lanes: lanes.collect::<Result<_, StoreError>>()?,
            topics: topics.collect::<Result<_, StoreError>>()?,
            unlisted,
            unlinked: unlinked.into_iter().map(|(lane, name)| (lane, lossy(&name))).collect(),
        })
    }

    pub(crate) async fn entries_page(&self, kind: &str, scan: &mut Scan) -> Result<u64, StoreError> {
        let answer = self.call(&script::AUDIT_ENTRIES, |cmd| {
            cmd.arg(kind);
            scan.push(cmd, SETS);
        });
        scan.advance(answer.await?)
    }

    /// Makes a call that looks at a page.
    async fn page<T: FromRedisValue>(
        &self,
        script: &Script,
        scan: &mut Scan,
        count: usize,
    ) -> Result<T, StoreError> {
        let answer = self.call(script, |cmd| scan.push(cmd, count)).await?;
        scan.advance(answer)
    }

    /// Reads lists on. The first `skip` entries of the first list were read before.
    pub(crate) async fn read_lists(
        &self,
        list: List,
        skip: usize,
        names: &[Vec<u8>],
    ) -> Result<ListParts, StoreError> {
        let answer = self.call(&script::AUDIT_LISTS, |cmd| {
            cmd.arg(list.name()).arg(skip).arg(ENTRIES);
            cmd.arg(&names[..names.len().min(LISTS)]);
        });
        let (lists, skip, entries) = answer.await?;
        Ok(ListParts { lists, skip, entries })
    }

    /// Judges jobs that were not found.
    pub(crate) async fn confirm(&self, jobs: &[(Vec<u8>, u8)]) -> Result<Vec<Verdict>, StoreError> {
        let answers: Vec<(String, u8, Vec<u8>, Vec<u8>)> =
            self.call(&script::AUDIT_CONFIRM, |cmd| push(cmd, jobs)).await?;
        let verdicts = answers.into_iter().map(|(verdict, state, lane, record)| match verdict.as_str() {
            "" => Ok(Verdict::MovedOn),
            "again" if state == List::Ready.state() => Ok(Verdict::Again(List::Ready)),
            "again" if state == List::Slot.state() => Ok(Verdict::Again(List::Slot)),
            "lost" => Ok(Verdict::Lost { state, lane: lossy(&lane), record }),
            _ => Err(UNREADABLE),
        });
        verdicts.collect()
    }

    /// Relinks lost jobs.
    pub(crate) async fn repair_jobs(&self, jobs: &[(Vec<u8>, u8)]) -> Result<Vec<Repaired>, StoreError> {
        let answers = self.change(&script::AUDIT_REPAIR, |cmd| {
            cmd.arg("jobs");
            push(cmd, jobs);
        });
        answers.await.map(repaired)
    }

    /// Repairs lanes, members of `index`, or job states without a record, by their names.
    pub(crate) async fn repair_named(
        &self,
        what: &str,
        names: &[impl ToRedisArgs],
    ) -> Result<Vec<Repaired>, StoreError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let answers = self.change(&script::AUDIT_REPAIR, |cmd| {
            cmd.arg(what);
            names.iter().for_each(|name| {
                cmd.arg(name);
            });
        });
        answers.await.map(repaired)
    }

    /// Corrects the times of the next look. Returns how many were wrong.
    pub(crate) async fn repair_times(&self) -> Result<u32, StoreError> {
        let repaired = self.change(&script::AUDIT_REPAIR, |cmd| {
            cmd.arg("times");
        });
        repaired.await
    }

    /// Corrects counts, if nothing has moved since. Returns whether those of the states are corrected, and whether
    /// all others are.
    pub(crate) async fn correct_counts(
        &self,
        as_of: &Overview,
        count: &Count,
        wrong: &Wrong<'_>,
    ) -> Result<(bool, bool), StoreError> {
        let (mut states, mut all) = (false, true);
        let lanes = wrong.lanes.chunks(COUNTS).map(|lanes| Part { lanes, topics: &[] });
        let topics = wrong.topics.chunks(COUNTS).map(|topics| Part { lanes: &[], topics });
        let parts: Vec<_> = lanes.chain(topics).collect();
        // The states come last: as long as the ledger stays, it shows that nothing has moved.
        for (part, counted) in
            parts.iter().map(|part| (part, as_of.states())).chain([(&NOTHING, count.states)])
        {
            let answer = self.change(&script::AUDIT_COUNT, |cmd| {
                cmd.arg(&as_of.ledger).arg(&counted);
                match wrong.sums {
                    Some(sums) => cmd.arg(&sums.counted),
                    None => cmd.arg(&[""; 3]),
                };
                part.push(cmd);
            });
            let answer: Vec<usize> = answer.await?;
            let &[is_set, n] = answer.as_slice() else { return Ok((states, false)) };
            states = is_set == 1;
            all = all && n == part.lanes.len() + part.topics.len();
        }
        Ok((states, all))
    }
}

/// The lanes and topics that one call corrects.
struct Part<'w> {
    lanes: &'w [WrongLane<'w>],
    topics: &'w [WrongTopic<'w>],
}

const NOTHING: Part<'static> = Part { lanes: &[], topics: &[] };

impl Part<'_> {
    fn push(&self, cmd: &mut Cmd) {
        cmd.arg(self.lanes.len());
        for lane in self.lanes {
            let counts = lane.counted.map(|n| u32::try_from(n).unwrap_or(0).to_be_bytes());
            cmd.arg(&lane.lane).arg(counts.concat());
        }
        for topic in self.topics {
            cmd.arg(topic.topic).arg(topic.counted);
        }
    }
}

fn push(cmd: &mut Cmd, jobs: &[(Vec<u8>, u8)]) {
    for (known, state) in jobs {
        cmd.arg(known).arg(state);
    }
}
