//! The calls of a check: arguments of the scripts, and their answers as values. After each call the check pauses
//! for as long as the call took, so that Redis has half of its time for others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::{FromRedisValue, ToRedisArgs};
use ringback_core::store_types::{Shard, StoreError};
use tokio::time::{Instant, sleep};

use super::answers::{LANE_ROW, Lanes, Overview, PAUSED, Records, UNREADABLE, counts, lossy, topic_of};
use super::counts::{Count, Jobs, Lane, LaneRow, Rows, TenantRow, TopicRow, Wrong};
use super::waiting::{List, SearchResult};
use crate::redis_store::RedisStore;
use crate::reply;
use crate::script::{self, Script};

const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How long a call is repeated if the store has gone away during the check.
const REPEAT_FOR: Duration = Duration::from_secs(5);
/// The pause between two attempts of a call.
const REPEAT_AFTER: Duration = Duration::from_millis(250);
/// How many records, job states, members of the index of tags, lanes, sets or schedules a page reads.
pub(super) const RECORDS: usize = 200;
pub(super) const STATES: usize = 500;
pub(super) const TAGS: usize = 200;
pub(super) const LANES: usize = 100;
pub(super) const SETS: usize = 50;
pub(super) const SCHEDULES: usize = 50;
/// How many entries of lists one call reads, and of how many lists.
const ENTRIES: usize = 1000;
const LISTS: usize = 200;
/// How many lanes or topics one call corrects.
const COUNTS: usize = 500;

/// A place in a scan of a hash or set.
pub(crate) struct Scan {
    at: String,
    server_run: String,
    pub(crate) is_over: bool,
}

impl Scan {
    pub(crate) fn start() -> Self {
        Self { at: "0".to_owned(), server_run: String::new(), is_over: false }
    }
}

/// The calls on one shard.
pub(crate) struct Calls<'a> {
    pub(crate) store: &'a RedisStore,
    pub(crate) shard: Shard,
    /// Whether the store has answered any call of this check.
    pub(crate) has_answered: &'a AtomicBool,
}

impl Calls<'_> {
    /// Makes a call once, then pauses. For calls that report what they change, which a repetition could not.
    async fn change<T: FromRedisValue>(
        &self,
        script: &Script,
        args: impl ToRedisArgs,
    ) -> Result<T, StoreError> {
        let asked = Instant::now();
        let answer = self.store.call(script, self.shard).arg(args).run().await?;
        sleep(asked.elapsed().min(LONGEST_PAUSE)).await;
        Ok(answer)
    }

    /// Makes a call that may be repeated: for [`REPEAT_FOR`] after transient errors, if the store has answered a call of
    /// this check before. So a check of a store that is away from the start fails at once.
    async fn call<T: FromRedisValue>(
        &self,
        script: &Script,
        args: impl ToRedisArgs,
    ) -> Result<T, StoreError> {
        let until = Instant::now() + REPEAT_FOR;
        loop {
            match self.change(script, &args).await {
                Ok(answer) => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error)
                    if error.is_transient()
                        && self.has_answered.load(Ordering::Relaxed)
                        && Instant::now() < until =>
                {
                    tracing::debug!(shard = self.shard.0, %error, "a check asks the store again");
                    sleep(REPEAT_AFTER).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the next step of a scan and returns its page.
    pub(crate) async fn page<T: FromRedisValue>(
        &self,
        script: &Script,
        scan: &mut Scan,
        count: usize,
    ) -> Result<T, StoreError> {
        self.page_of(script, None::<&str>, scan, count).await
    }

    /// Makes the next step of the scan `which` of a script, and returns its page. Fails if the server was restarted
    /// during the scan.
    pub(crate) async fn page_of<T: FromRedisValue>(
        &self,
        script: &Script,
        which: impl ToRedisArgs,
        scan: &mut Scan,
        count: usize,
    ) -> Result<T, StoreError> {
        let answer = self.call(script, (which, &scan.at, &scan.server_run, count)).await?;
        let (server_run, at, found) = reply::scanned(answer, "a page of a check")?;
        *scan = Scan { is_over: at == "0", at, server_run };
        Ok(found)
    }

    pub(crate) async fn overview(&self) -> Result<Overview, StoreError> {
        let (ledger, sums, sizes, wrong_times) = self.call(&script::CHECK_SHARD, None::<u8>).await?;
        let [jobs, dead_entries, index_entries, topic_entries, uncounted_tombstones] = sizes;
        Ok(Overview {
            ledger,
            sums,
            jobs,
            dead_entries,
            index_entries,
            topic_entries,
            uncounted_tombstones,
            wrong_times,
        })
    }

    pub(crate) async fn jobs_page(&self, scan: &mut Scan) -> Result<Records, StoreError> {
        let (states, ready, slots, lanes, problems) = self.page(&script::CHECK_JOBS, scan, RECORDS).await?;
        let lanes: Vec<(Lane, Vec<u8>)> = lanes;
        let lanes = lanes.into_iter().map(|(lane, row)| Ok((lane, counts(&row)?)));
        Ok(Records { states, ready, slots, lanes: lanes.collect::<Result<_, StoreError>>()?, problems })
    }

    pub(crate) async fn lanes_page(&self, scan: &mut Scan) -> Result<Lanes, StoreError> {
        type Packed<N> = Vec<(N, Vec<u8>)>;
        let (lanes, unlinked, topics, tenants, unlisted): (
            Packed<Lane>,
            _,
            Packed<Vec<u8>>,
            Packed<Vec<u8>>,
            _,
        ) = self.page(&script::CHECK_LANES, scan, LANES).await?;
        let lanes = lanes.into_iter().map(|(lane, row)| {
            let topic = topic_of(row.get(LANE_ROW..).ok_or(UNREADABLE)?).into();
            Ok((lane, LaneRow { jobs: counts(&row)?, topic }))
        });
        let topics = topics.into_iter().map(|(topic, row)| {
            let lanes = row.first_chunk().map(|lanes| u32::from_be_bytes(*lanes)).ok_or(UNREADABLE)?;
            let is_paused = row.get(PAUSED).is_some_and(|flag| *flag > 0);
            Ok((lossy(&topic).into(), TopicRow { lanes, is_paused }))
        });
        let tenants = tenants.into_iter().map(|(tenant, row)| {
            let (numbers, _) = row.as_chunks();
            let &[topics, lanes] = numbers else { return Err(UNREADABLE) };
            Ok((lossy(&tenant).into(), TenantRow([topics, lanes].map(u32::from_be_bytes))))
        });
        Ok(Lanes {
            rows: Rows {
                lanes: lanes.collect::<Result<_, _>>()?,
                topics: topics.collect::<Result<_, StoreError>>()?,
                tenants: tenants.collect::<Result<_, StoreError>>()?,
            },
            unlisted,
            unlinked,
        })
    }

    /// Reads lists from their ends. The last `skip` entries of the first list were read before. Returns how many lists
    /// were read to their beginning, how many entries of the next one were read so far, the entries of each list, and
    /// how often a list was cleaned.
    pub(crate) async fn read_lists(
        &self,
        list: List,
        skip: usize,
        names: &[Vec<u8>],
    ) -> Result<(usize, usize, Vec<Vec<u8>>, u64), StoreError> {
        let names = &names[..names.len().min(LISTS)];
        self.call(&script::CHECK_LISTS, (<&str>::from(list), skip, ENTRIES, names)).await
    }

    /// Judges jobs that were not found in lists, and returns a result for each. `cleaned` is how often a list had been
    /// cleaned when the reading began. With `is_searched` short lists are searched in the same call.
    pub(crate) async fn confirm(
        &self,
        cleaned: u64,
        is_searched: bool,
        jobs: &[(Vec<u8>, u8)],
    ) -> Result<Vec<SearchResult>, StoreError> {
        let answers: Vec<(String, u8, Vec<u8>, Vec<u8>)> =
            self.call(&script::CHECK_CONFIRM, (cleaned, u8::from(is_searched), jobs)).await?;
        let verdicts = answers.into_iter().map(|(verdict, state, lane, record)| match verdict.as_str() {
            "" => Ok(SearchResult::MovedOn),
            "again" if state == List::Ready.state() => Ok(SearchResult::Again(List::Ready)),
            "again" if state == List::Slot.state() => Ok(SearchResult::Again(List::Slot)),
            "lost" => Ok(SearchResult::Lost { state, lane, record }),
            _ => Err(UNREADABLE),
        });
        verdicts.collect()
    }

    /// Repairs items of a kind, see `check_repair` in `check/repair.lua`, and returns its answer.
    pub(crate) async fn repair<T: FromRedisValue>(
        &self,
        kind: &str,
        items: &[impl ToRedisArgs],
    ) -> Result<T, StoreError> {
        self.change(&script::CHECK_REPAIR, (kind, items)).await
    }

    /// Marks those due times in a page of a slot as cancelled that lead to no delayed job. The last `skip` entries were
    /// read before. Returns how many entries were read, and how many were marked.
    pub(crate) async fn remove_far_due(&self, slot: &str, skip: u64) -> Result<(u64, u64), StoreError> {
        self.call(&script::CHECK_SLOT, (slot, skip, RECORDS)).await
    }

    /// Corrects counts, in several calls, as long as the ledger is the same as in `as_of`. Returns whether the counts of
    /// states were corrected, and whether all others were.
    pub(crate) async fn correct_counts(
        &self,
        as_of: &Overview,
        count: &Count,
        wrong: &Wrong<'_>,
    ) -> Result<(bool, bool), StoreError> {
        let (mut are_states_set, mut all) = (false, true);
        let sums = wrong.sums.map_or_else(<[String; 3]>::default, |sums| sums.counted.map(|n| n.to_string()));
        let later = [const { String::new() }; 4];
        let topics = wrong.topics.iter().map(|topic| (topic.topic, topic.counted.to_string().into_bytes()));
        let tenants = wrong.tenants.iter().map(|tenant| (tenant.tenant, tenant.counted.pack()));
        let topics: Vec<_> = topics.chain(tenants).collect();
        let lanes = wrong.lanes.chunks(COUNTS).map(|lanes| (lanes, &[][..], later.clone()));
        let topics = topics.chunks(COUNTS).map(|topics| (&[][..], topics, later.clone()));
        let states = count.states.map(|n| n.to_string());
        // The states come last: as long as the ledger stays, it shows that nothing has moved.
        for (lanes, topics, counted) in lanes.chain(topics).chain([(&[][..], &[][..], states)]) {
            let lane_rows: Vec<_> =
                lanes.iter().map(|lane| (&lane.lane, pack_counts(lane.counted))).collect();
            let args = (&as_of.ledger, &counted, &sums, lanes.len(), lane_rows, topics);
            let answer: Vec<usize> = self.change(&script::CHECK_COUNT, args).await?;
            let &[is_set, n] = answer.as_slice() else { return Ok((are_states_set, false)) };
            are_states_set = is_set == 1;
            all = all && n == lanes.len() + topics.len();
        }
        Ok((are_states_set, all))
    }
}

fn pack_counts(jobs: Jobs) -> Vec<u8> {
    jobs.map(|n| u32::try_from(n).unwrap_or(0).to_be_bytes()).concat()
}
