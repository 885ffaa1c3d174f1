//! Counts of a shard, its lanes, topics and tenants: as counted in a pass over the records, as recorded in rows, and the
//! differences. Makes no calls.

use std::collections::{BTreeMap, HashMap};

use ringback_core::lane::{Lane as QueueLane, NO_TENANT};
use ringback_core::state::State;
use ringback_core::store_types::{DamageKind, Finding, Shard, Uncounted};

/// In a shard with more lanes, the counts of lanes, topics and tenants are not compared.
pub(crate) const LANES: usize = 100_000;

pub(crate) type Lane = [u8; 8];
/// Numbers of delayed, ready, reserved and dead jobs.
pub(crate) type Jobs = [i64; 4];

const STATES: [State; 4] = [State::Delayed, State::Ready, State::Reserved, State::Dead];

/// The counts of a pass over the records.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) jobs: u64,
    pub(crate) states: Jobs,
    /// Jobs by lane; `None` in a shard with too many lanes.
    pub(crate) lanes: Option<HashMap<Lane, Jobs>>,
    /// Lost jobs that are delayed or ready. Without an index, it is not known which of the two.
    pub(crate) lost: u64,
    pub(crate) unindexed: u64,
}

impl Count {
    pub(crate) fn add(&mut self, states: Jobs, lanes: &[(Lane, Jobs)]) {
        let add = |sum: &mut Jobs, more: Jobs| sum.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
        add(&mut self.states, states);
        if let Some(known) = &mut self.lanes {
            lanes.iter().for_each(|(lane, jobs)| add(known.entry(*lane).or_default(), *jobs));
        }
        if self.lanes.as_ref().is_some_and(|known| known.len() > LANES) {
            self.lanes = None;
        }
    }

    pub(crate) fn lost(&mut self, state: u8) {
        self.unindexed += 1;
        self.lost += u64::from(state == 1 || state == 2);
    }

    /// Returns, in words, how many accepted jobs are gone without an end, or are stored without being counted; `None` if
    /// the counts add up.
    pub(crate) fn uncounted(
        &self,
        [accepted, _, _, _, _, ended @ .., missing]: [i64; 9],
        tombstones: u64,
    ) -> Option<String> {
        let known: i64 = self.states.iter().chain(&ended).sum();
        Uncounted { jobs: accepted - known - missing, missing, tombstones }.finding()
    }

    /// Returns the differences from the ledger, in words. With lost jobs, delayed and ready ones are compared together.
    pub(crate) fn wrong_states(&self, ledger: Jobs) -> Vec<String> {
        let say = |what: &str, counted: i64, are: i64| {
            (counted != are).then(|| format!("the ledger counts {counted} {what} jobs, and there are {are}"))
        };
        let [delayed, ready, ..] = self.states;
        let mut wrong = Vec::new();
        if self.lost > 0 {
            wrong.extend(say("delayed and ready", ledger[0] + ledger[1], delayed + ready));
        }
        let from = if self.lost > 0 { 2 } else { 0 };
        for index in from..STATES.len() {
            wrong.extend(say(<&str>::from(STATES[index]), ledger[index], self.states[index]));
        }
        wrong
    }
}

pub(crate) struct LaneRow {
    pub(crate) jobs: Jobs,
    pub(crate) topic: Box<str>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct TopicRow {
    pub(crate) lanes: u32,
    pub(crate) is_paused: bool,
}

/// How many topics and lanes a tenant is recorded with.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TenantRow(pub(crate) [u32; 2]);

impl TenantRow {
    pub(crate) fn pack(self) -> Vec<u8> {
        self.0.map(u32::to_be_bytes).concat()
    }
}

pub(crate) struct Rows {
    pub(crate) lanes: Vec<(Lane, LaneRow)>,
    pub(crate) topics: Vec<(Box<str>, TopicRow)>,
    pub(crate) tenants: Vec<(Box<str>, TenantRow)>,
}

/// All rows of a shard by name, since a scan can return a row twice.
#[derive(Default)]
pub(crate) struct RecordedCounts {
    lanes: HashMap<Lane, LaneRow>,
    topics: HashMap<Box<str>, TopicRow>,
    tenants: BTreeMap<Box<str>, TenantRow>,
}

pub(crate) struct WrongLane<'t> {
    pub(crate) lane: Lane,
    row: &'t LaneRow,
    pub(crate) counted: Jobs,
}

pub(crate) struct WrongTopic<'t> {
    pub(crate) topic: &'t str,
    recorded: u32,
    pub(crate) counted: u32,
}

pub(crate) struct WrongTenant<'t> {
    pub(crate) tenant: &'t str,
    recorded: TenantRow,
    pub(crate) counted: TenantRow,
}

/// The numbers of a shard's lanes, topics and paused topics.
#[derive(Clone, Copy)]
pub(crate) struct WrongSums {
    recorded: [i64; 3],
    pub(crate) counted: [i64; 3],
}

#[derive(Default)]
pub(crate) struct Wrong<'t> {
    pub(crate) lanes: Vec<WrongLane<'t>>,
    pub(crate) topics: Vec<WrongTopic<'t>>,
    pub(crate) tenants: Vec<WrongTenant<'t>>,
    pub(crate) sums: Option<WrongSums>,
}

impl RecordedCounts {
    /// Adds rows. Returns `None` once there are more than `most` lanes.
    pub(crate) fn with(mut self, rows: Rows, most: usize) -> Option<Self> {
        self.lanes.extend(rows.lanes);
        self.topics.extend(rows.topics);
        self.tenants.extend(rows.tenants);
        (self.lanes.len() <= most).then_some(self)
    }

    /// Returns how many entries the lists of topics must have: each topic by name and by hour, and each lane by name.
    pub(crate) fn listed(&self) -> u64 {
        (self.lanes.len() + 2 * self.topics.len()) as u64
    }

    /// Returns the rows and sums that differ from the counted jobs; `None` if there were too many lanes to count.
    pub(crate) fn wrong(&self, count: &Count, sums: [i64; 3]) -> Option<Wrong<'_>> {
        let counted = count.lanes.as_ref()?;
        let of = |lane: &Lane| counted.get(lane).copied().unwrap_or_default();
        // It is not known which of the lost jobs were delayed.
        let known = |[delayed, ready, rest @ ..]: Jobs| {
            if count.lost > 0 { (delayed + ready, 0, rest) } else { (delayed, ready, rest) }
        };
        let rows = self.lanes.iter().map(|(lane, row)| WrongLane { lane: *lane, row, counted: of(lane) });
        let lanes = rows.filter(|lane| known(lane.row.jobs) != known(lane.counted)).collect();

        let mut per_topic: BTreeMap<&str, u32> = self.topics.keys().map(|topic| (&**topic, 0)).collect();
        // A lane without jobs may rest. One that is recorded with jobs, and has none, is removed.
        let stays = |lane: &Lane, row: &LaneRow| of(lane) != Jobs::default() || row.jobs == Jobs::default();
        for (_, row) in self.lanes.iter().filter(|(lane, row)| stays(lane, row)) {
            *per_topic.entry(&row.topic).or_default() += 1;
        }
        let (mut topics, mut all) = (Vec::new(), [0; 3]);
        let mut per_tenant: BTreeMap<&str, TenantRow> = BTreeMap::new();
        for (topic, counted) in per_topic {
            let TopicRow { lanes: recorded, is_paused } = self.topics.get(topic).copied().unwrap_or_default();
            all[0] += i64::from(counted);
            all[1] += i64::from(counted > 0 || is_paused);
            all[2] += i64::from(is_paused);
            let TenantRow([topics_of, lanes_of]) =
                per_tenant.entry(QueueLane { topic, origin: "" }.tenant()).or_default();
            *topics_of += u32::from(counted > 0 || is_paused);
            *lanes_of += counted;
            if recorded != counted {
                topics.push(WrongTopic { topic, recorded, counted });
            }
        }
        for tenant in self.tenants.keys() {
            per_tenant.entry(tenant).or_default();
        }
        per_tenant.remove(NO_TENANT);
        let tenants = per_tenant.into_iter().map(|(tenant, counted)| WrongTenant {
            tenant,
            recorded: self.tenants.get(tenant).copied().unwrap_or_default(),
            counted,
        });
        let tenants = tenants.filter(|tenant| tenant.recorded != tenant.counted).collect();
        let sums = (sums != all).then_some(WrongSums { recorded: sums, counted: all });
        Some(Wrong { lanes, topics, tenants, sums })
    }
}

impl Wrong<'_> {
    pub(crate) fn is_right(&self) -> bool {
        self.lanes.is_empty() && self.topics.is_empty() && self.tenants.is_empty() && self.sums.is_none()
    }

    pub(crate) fn findings(&self, shard: Shard) -> impl Iterator<Item = Finding> {
        let lanes = self.lanes.iter().map(move |lane| {
            let (recorded, counted) = (describe(lane.row.jobs), describe(lane.counted));
            let detail = format!("a lane is recorded with {recorded} jobs, and has {counted}");
            Finding::new(DamageKind::LaneCount, shard, detail).of_topic(&lane.row.topic)
        });
        let topics = self.topics.iter().map(move |WrongTopic { topic, recorded, counted }| {
            let detail = format!("topic {topic:?} is recorded with {recorded} lanes, and has {counted}");
            Finding::new(DamageKind::Topic, shard, detail).of_topic(topic)
        });
        let tenants = self.tenants.iter().map(move |WrongTenant { tenant, recorded, counted }| {
            let describe = |TenantRow([topics, lanes]): TenantRow| {
                format!("{topics} topics with lanes or paused and {lanes} lanes")
            };
            let (name, recorded, counted) = (&tenant[1..], describe(*recorded), describe(*counted));
            let detail = format!("tenant {name:?} is recorded with {recorded}, and has {counted}");
            Finding::new(DamageKind::Topic, shard, detail)
        });
        let sums = self.sums.map(|WrongSums { recorded, counted }| {
            let describe = |[lanes, topics, paused]: [i64; 3]| {
                format!("{lanes} lanes, {topics} topics with lanes or paused, {paused} paused")
            };
            let detail =
                format!("the shard is recorded with {}, and has {}", describe(recorded), describe(counted));
            Finding::new(DamageKind::Topic, shard, detail)
        });
        lanes.chain(topics).chain(tenants).chain(sums)
    }
}

fn describe([delayed, ready, reserved, dead]: Jobs) -> String {
    format!("{delayed} delayed, {ready} ready, {reserved} reserved, {dead} dead")
}
