//! The edges by which jobs arrive: submit and import.

use std::collections::HashSet;

use redis::{Cmd, Value};
use ringback_core::clock::millis_up;
use ringback_core::contract::{Shard, StoreError, Submitted};
use ringback_core::job::{Due, ImportJob, NewJob, Topic};
use ringback_core::lane::{LaneId, lane_name};

use super::layout::Packed;
use super::script::{self, reply};
use super::{RedisStore, codec, layout};

/// Jobs that share a lane and a due time, by their numbers.
struct Group {
    lane: LaneId,
    due: Due,
    jobs: Vec<usize>,
}

impl RedisStore {
    pub async fn submit(&self, shard: Shard, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let jobs: Vec<&NewJob> = jobs.iter().collect();
        let mut answers = vec![None; jobs.len()];
        for round in rounds(&jobs) {
            let mut lanes = Vec::new();
            let groups = grouped(&mut lanes, &jobs, &round);
            let packed: Vec<Vec<Packed>> = groups
                .iter()
                .map(|group| group.jobs.iter().map(|n| layout::pack(jobs[*n], group.lane)).collect())
                .collect();
            let answer = self.run(&script::SUBMIT, shard, |cmd| {
                push_lanes(cmd, &lanes);
                for (group, packed) in groups.iter().zip(&packed) {
                    cmd.arg(&group.lane.0).arg(due(group.due)).arg(packed.len());
                    for (n, packed) in group.jobs.iter().zip(packed) {
                        cmd.arg(&jobs[*n].key.locator().0).arg(&packed.rest).arg(&packed.external);
                    }
                }
            });
            let answer = answer.await?;
            note(&mut answers, groups.into_iter().flat_map(|group| group.jobs), answer, &jobs)?;
        }
        answers.into_iter().collect::<Option<_>>().ok_or(UNREADABLE)
    }

    pub async fn import(&self, shard: Shard, jobs: &[ImportJob]) -> Result<Vec<Submitted>, StoreError> {
        let histories: Vec<_> =
            jobs.iter().map(|job| job.history.as_ref().map(codec::history).unwrap_or_default()).collect();
        let jobs: Vec<&NewJob> = jobs.iter().map(|job| &job.job).collect();
        let mut answers = vec![None; jobs.len()];
        for round in rounds(&jobs) {
            let mut lanes = Vec::new();
            let mut pack = |n: &usize| {
                let lane = named(&mut lanes, jobs[*n]);
                (lane, layout::pack(jobs[*n], lane))
            };
            let packed: Vec<(LaneId, Packed)> = round.iter().map(&mut pack).collect();
            let answer = self.run(&script::IMPORT, shard, |cmd| {
                push_lanes(cmd, &lanes);
                for (n, (lane, packed)) in round.iter().zip(&packed) {
                    cmd.arg(&jobs[*n].key.locator().0).arg(due(jobs[*n].due)).arg(&lane.0);
                    cmd.arg(&packed.rest).arg(&packed.external).arg(&histories[*n]);
                }
            });
            let answer = answer.await?;
            note(&mut answers, round.into_iter(), answer, &jobs)?;
        }
        answers.into_iter().collect::<Option<_>>().ok_or(UNREADABLE)
    }
}

const UNREADABLE: StoreError = StoreError::Unreadable("a submit's answers");

/// Notes what was answered to jobs of these numbers, in their order.
fn note(
    answers: &mut [Option<Submitted>],
    numbers: impl Iterator<Item = usize>,
    told: Value,
    jobs: &[&NewJob],
) -> Result<(), StoreError> {
    let mut told = reply::list(told)?.into_iter();
    for n in numbers {
        answers[n] = Some(codec::submitted(told.next().ok_or(UNREADABLE)?, &jobs[n].key)?);
    }
    if told.next().is_some() { Err(UNREADABLE) } else { Ok(()) }
}

/// The numbers of jobs, in as many calls as it takes for a name to come after itself: nearly
/// always one.
fn rounds(jobs: &[&NewJob]) -> Vec<Vec<usize>> {
    let (mut rounds, mut left) = (Vec::new(), (0..jobs.len()).collect::<Vec<_>>());
    while !left.is_empty() {
        let mut met = HashSet::new();
        let (now, later) = left.into_iter().partition(|n| met.insert(jobs[*n].key.locator()));
        rounds.push(now);
        left = later;
    }
    rounds
}

/// The lanes of a batch, with their words.
type Lanes<'a> = Vec<(LaneId, &'a Topic, &'a str)>;

fn push_lanes(cmd: &mut Cmd, lanes: &Lanes<'_>) {
    cmd.arg(lanes.len());
    for (lane, topic, origin) in lanes {
        cmd.arg(&lane.0).arg(lane_name(topic, origin));
    }
}

/// A due time as the scripts take it.
pub(crate) fn due(due: Due) -> String {
    match due {
        Due::In(delay) => format!("+{}", millis_up(delay)),
        Due::At(at) => at.as_millis().to_string(),
    }
}

/// Jobs that stand beside each other and share lane and due time are a group.
fn grouped<'a>(lanes: &mut Lanes<'a>, jobs: &[&'a NewJob], numbers: &[usize]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for n in numbers {
        let (lane, due) = (named(lanes, jobs[*n]), jobs[*n].due);
        match groups.last_mut().filter(|group| group.lane == lane && group.due == due) {
            Some(group) => group.jobs.push(*n),
            None => groups.push(Group { lane, due, jobs: vec![*n] }),
        }
    }
    groups
}

/// The lane of a job, which is among `lanes` then. Those of a batch are few, so they are
/// looked through.
fn named<'a>(lanes: &mut Lanes<'a>, job: &'a NewJob) -> LaneId {
    let (topic, origin) = (&job.key.topic, job.delivery.callback.origin());
    if let Some((lane, ..)) = lanes.iter().find(|(_, t, o)| *t == topic && *o == origin) {
        return *lane;
    }
    let lane = LaneId::of(&lane_name(topic, origin));
    lanes.push((lane, topic, origin));
    lane
}
