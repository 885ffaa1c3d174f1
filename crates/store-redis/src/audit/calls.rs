//! The calls of an audit: each script's arguments, and its answer as values. Between two calls
//! there is as long a pause as the one before took, so that Redis has half of its time for others.

mod answers;

use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{Cmd, Value};
use ringback_core::contract::StoreError;
use tokio::time::{Instant, sleep};

pub(crate) use self::answers::{Bad, Mend, Overview, id_of, state_name};
use self::answers::{
    LANE_ROW, Lanes, PAUSED, Read, Records, UNREADABLE, bad, counts, lane_of, lossy, mended, pairs, word,
};
use super::told::{LaneRow, TopicRow, Wrong, WrongLane, WrongTopic};
use super::waiting::{List, Word};
use super::{Count, Walk};
use crate::script::{self, Script, reply};

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How long a store that has gone away in the middle is asked again.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(250);
/// How many records, runs, lanes or sets a page looks at.
const RECORDS: usize = 200;
const RUNS: usize = 500;
const LANES: usize = 100;
const SETS: usize = 50;
/// How many entries of lists one call reads, and of how many lists.
const ENTRIES: usize = 1000;
const LISTS: usize = 200;
/// Of so many lanes or topics the count is put right in one call.
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

    fn args(&self, cmd: &mut Cmd, count: usize) {
        cmd.arg(&self.at).arg(&self.life).arg(count);
    }

    /// Takes note of where to go on; what else was answered.
    fn moved(&mut self, answer: Value) -> Result<std::vec::IntoIter<Value>, StoreError> {
        let mut parts = reply::list(answer)?.into_iter();
        self.life = reply::text(parts.next().ok_or(UNREADABLE)?)?;
        self.at = reply::text(parts.next().ok_or(StoreError::Outdated)?)?;
        self.is_over = self.at == "0";
        Ok(parts)
    }
}

impl Walk<'_> {
    /// A call that changes something. It is made once: asked again it could not tell what was
    /// changed before.
    async fn change(&self, script: &Script, args: impl Fn(&mut Cmd)) -> Result<Value, StoreError> {
        let asked = Instant::now();
        let answer = self.store.run(script, self.shard, args).await?;
        sleep(asked.elapsed().min(LONGEST_PAUSE)).await;
        Ok(answer)
    }

    /// A call that only reads. A store that has answered before is asked again for a while.
    async fn call(&self, script: &Script, args: impl Fn(&mut Cmd)) -> Result<Value, StoreError> {
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

    /// Whoever asks for an audit of a store that is away is told so at once.
    fn is_patient(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    pub(crate) async fn overview(&self) -> Result<Overview, StoreError> {
        let mut parts = reply::list(self.call(&script::AUDIT_SHARD, |_| {}).await?)?.into_iter().skip(1);
        let (mut ledger, mut sums) = ([0; 10], [0; 3]);
        for n in ledger.iter_mut().chain(&mut sums) {
            *n = reply::text(parts.next().ok_or(UNREADABLE)?)?.parse().map_err(|_| UNREADABLE)?;
        }
        let mut count = || reply::number(&parts.next().ok_or(UNREADABLE)?);
        let (jobs, dead_entries, index_entries, topic_entries) = (count()?, count()?, count()?, count()?);
        let wrong = reply::list(parts.next().ok_or(UNREADABLE)?)?;
        let wrong_moments = wrong.into_iter().map(reply::text).collect::<Result<_, _>>()?;
        Ok(Overview { ledger, sums, jobs, dead_entries, index_entries, topic_entries, wrong_moments })
    }

    pub(crate) async fn jobs_page(&self, scan: &mut Scan) -> Result<Records, StoreError> {
        let answer = self.call(&script::AUDIT_JOBS, |cmd| scan.args(cmd, RECORDS)).await?;
        let mut parts = scan.moved(answer)?;
        let mut next = || parts.next().ok_or(UNREADABLE);
        let told = reply::list(next()?)?;
        let mut states = [0; 4];
        for (state, n) in states.iter_mut().zip(&told) {
            *state = reply::int(n)?;
        }
        let (ready, slots) = (reply::bytes(next()?)?.to_vec(), reply::bytes(next()?)?.to_vec());
        let lanes = pairs(next()?)?;
        let lanes = lanes.into_iter().map(|(lane, row)| Ok((lane_of(lane)?, counts(&reply::bytes(row)?)?)));
        let lanes = lanes.collect::<Result<_, StoreError>>()?;
        let bad = reply::list(next()?)?.into_iter().map(bad).collect::<Result<_, _>>()?;
        Ok(Records { states, ready, slots, lanes, bad })
    }

    pub(crate) async fn runs_page(&self, scan: &mut Scan) -> Result<Vec<Vec<u8>>, StoreError> {
        let answer = self.call(&script::AUDIT_RUNS, |cmd| scan.args(cmd, RUNS)).await?;
        let alone = scan.moved(answer)?.next().ok_or(UNREADABLE)?;
        reply::list(alone)?.into_iter().map(|locator| Ok(reply::bytes(locator)?.to_vec())).collect()
    }

    pub(crate) async fn lanes_page(&self, scan: &mut Scan) -> Result<Lanes, StoreError> {
        let answer = self.call(&script::AUDIT_LANES, |cmd| scan.args(cmd, LANES)).await?;
        let mut parts = scan.moved(answer)?;
        let mut next = || parts.next().ok_or(UNREADABLE);
        let (lanes, lost, topics, unlisted) = (next()?, next()?, next()?, next()?);
        let lanes = pairs(lanes)?.into_iter().map(|(lane, row)| {
            let row = reply::bytes(row)?;
            let words = String::from_utf8_lossy(row.get(LANE_ROW..).ok_or(UNREADABLE)?);
            let topic = super::topic_of(&words).into();
            Ok((lane_of(lane)?, LaneRow { jobs: counts(&row)?, topic }))
        });
        let topics = pairs(topics)?.into_iter().map(|(topic, row)| {
            let row = reply::bytes(row)?;
            let lanes = row.first_chunk().map(|lanes| u32::from_be_bytes(*lanes)).ok_or(UNREADABLE)?;
            Ok((
                lossy(topic)?.into(),
                TopicRow { lanes, is_paused: row.get(PAUSED).is_some_and(|mark| *mark > 0) },
            ))
        });
        let lost =
            pairs(lost)?.into_iter().map(|(lane, words)| Ok((reply::bytes(lane)?.to_vec(), lossy(words)?)));
        let unlisted = reply::list(unlisted)?.into_iter().map(|name| Ok(reply::bytes(name)?.to_vec()));
        Ok(Lanes {
            lanes: lanes.collect::<Result<_, StoreError>>()?,
            topics: topics.collect::<Result<_, StoreError>>()?,
            unlisted: unlisted.collect::<Result<_, StoreError>>()?,
            lost: lost.collect::<Result<_, StoreError>>()?,
        })
    }

    pub(crate) async fn entries_page(&self, kind: &str, scan: &mut Scan) -> Result<u64, StoreError> {
        let args = |cmd: &mut Cmd| {
            cmd.arg(kind);
            scan.args(cmd, SETS);
        };
        let answer = self.call(&script::AUDIT_ENTRIES, args).await?;
        reply::number(&scan.moved(answer)?.next().ok_or(UNREADABLE)?)
    }

    /// Reads on through lists; of the first so many entries were read before.
    pub(crate) async fn read_lists(
        &self,
        list: List,
        skip: usize,
        names: &[Vec<u8>],
    ) -> Result<Read, StoreError> {
        let answer = self.call(&script::AUDIT_LISTS, |cmd| {
            cmd.arg(list.name()).arg(skip).arg(ENTRIES);
            cmd.arg(&names[..names.len().min(LISTS)]);
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        let mut next = || reply::number(&parts.next().ok_or(UNREADABLE)?);
        let (lists, skip) = (next()?, next()?);
        let entries =
            parts.map(|entries| Ok(reply::bytes(entries)?.to_vec())).collect::<Result<_, StoreError>>()?;
        Ok(Read { lists, skip, entries })
    }

    /// What is still known of jobs.
    pub(crate) async fn confirm(&self, jobs: &[(Vec<u8>, u8)]) -> Result<Vec<Word>, StoreError> {
        let answer = self.call(&script::AUDIT_CONFIRM, |cmd| push(cmd, jobs)).await?;
        reply::list(answer)?.into_iter().map(word).collect()
    }

    /// Leads to jobs again.
    pub(crate) async fn mend_jobs(&self, jobs: &[(Vec<u8>, u8)]) -> Result<Vec<Mend>, StoreError> {
        let args = |cmd: &mut Cmd| {
            cmd.arg("jobs");
            push(cmd, jobs);
        };
        mended(self.change(&script::AUDIT_MEND, args).await?)
    }

    pub(crate) async fn mend_lanes(&self, lanes: &[(Vec<u8>, String)]) -> Result<Vec<Mend>, StoreError> {
        let names: Vec<_> = lanes.iter().map(|(lane, _)| lane.as_slice()).collect();
        self.mend_named("lanes", &names).await
    }

    pub(crate) async fn mend_index(&self, members: &[Vec<u8>]) -> Result<Vec<Mend>, StoreError> {
        let names: Vec<_> = members.iter().map(Vec::as_slice).collect();
        self.mend_named("index", &names).await
    }

    pub(crate) async fn mend_runs(&self, locators: &[Vec<u8>]) -> Result<Vec<Mend>, StoreError> {
        let names: Vec<_> = locators.iter().map(Vec::as_slice).collect();
        self.mend_named("runs", &names).await
    }

    async fn mend_named(&self, what: &str, names: &[&[u8]]) -> Result<Vec<Mend>, StoreError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let args = |cmd: &mut Cmd| {
            cmd.arg(what).arg(names);
        };
        mended(self.change(&script::AUDIT_MEND, args).await?)
    }

    pub(crate) async fn mend_moments(&self) -> Result<u32, StoreError> {
        let answer = self.change(&script::AUDIT_MEND, |cmd| {
            cmd.arg("moments");
        });
        let answer = answer.await?;
        reply::number(&answer)
    }

    /// Puts counts right, if nothing has moved since; whether those of the states are, and all of
    /// the others.
    pub(crate) async fn mend_counts(
        &self,
        as_of: &Overview,
        count: &Count,
        wrong: &Wrong<'_>,
    ) -> Result<(bool, bool), StoreError> {
        let (mut states, mut all) = (false, true);
        let lanes = wrong.lanes.chunks(COUNTS).map(|lanes| Part { lanes, topics: &[] });
        let topics = wrong.topics.chunks(COUNTS).map(|topics| Part { lanes: &[], topics });
        let parts: Vec<_> = lanes.chain(topics).collect();
        // The states last: as long as the ledger stays, it tells that nothing has moved.
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
            let answer = reply::list(answer.await?)?;
            let [is_set, n] = answer.as_slice() else { return Ok((states, false)) };
            states = reply::int(is_set)? == 1;
            all = all && reply::number::<usize>(n)? == part.lanes.len() + part.topics.len();
        }
        Ok((states, all))
    }
}

/// What is put right in one call.
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
