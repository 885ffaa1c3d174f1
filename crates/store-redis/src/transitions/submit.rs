//! Submit and import, and the loop of calls that all scripts which add jobs share: lanes and their ids, repeated calls,
//! and what to do when the shard has lost jobs or its archive outbox is full.

use std::collections::HashSet;
use std::io::Write as _;
use std::time::Duration;

use redis::{Cmd, RedisWrite as _, Value};
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::{Due, History, IfExists, ImportJob, Job, Locator, NewJob, TenantLimits};
use ringback_core::lane::{Lane, LaneId};
use ringback_core::limits::MAX_IMPORTED_COUNT;
use ringback_core::outcome::LastAttempt;
use ringback_core::state::State;
use ringback_core::store_types::{Limit, Shard, StoreError, SubmitResult, Submitted};

use crate::lane_ids::LaneKey;
use crate::record::{self, Packed, doubles, head, number, six};
use crate::redis_store::RedisStore;
use crate::reply::{self, take};
use crate::script::{self, Script};

/// The largest number in six bytes.
const MAX_SIX: u64 = (1 << 48) - 1;

/// About the bytes of a job's arguments beside its record and payload.
const ARGS: usize = 48;

/// How many ids of a lane are tried. Among a hundred thousand lanes one is taken with a chance of one in 10¹⁴.
const MAX_TAKEN: u8 = 4;

const UNREADABLE: StoreError = StoreError::Unreadable("the answers of a submit");

pub(super) struct Arrival<'a> {
    /// Its number among all jobs.
    pub(super) number: usize,
    job: &'a NewJob,
    pub(super) locator: Locator,
    pub(super) lane: LaneId,
    /// How many ids of its lane were taken by other lanes.
    taken: u8,
    packed: Packed,
}

impl RedisStore {
    pub async fn submit(&self, shard: Shard, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let jobs: Vec<&NewJob> = jobs.iter().collect();
        let replaces = |job: &NewJob| job.if_exists != IfExists::Refuse;
        let script = |job: &NewJob| if replaces(job) { &script::REPLACE } else { &script::SUBMIT };
        let push = |cmd: &mut Cmd, arrivals: &[Arrival<'_>]| {
            if replaces(arrivals[0].job) {
                for Arrival { job, locator, lane, packed, .. } in arrivals {
                    let limit = match job.if_exists {
                        IfExists::Postpone { max_delay: Some(limit), .. } => millis_up(limit).to_string(),
                        IfExists::Postpone { max_delay: None, .. } => "any".to_owned(),
                        IfExists::Update { .. } => "update".to_owned(),
                        IfExists::Refuse | IfExists::Replace { .. } => String::new(),
                    };
                    cmd.arg(&locator.0).arg(pack_due(job.due)).arg(limit);
                    cmd.arg(&lane.0).arg(&packed.rest).arg(&packed.external);
                }
                return;
            }
            // Neighbours of one form with the same lane and due time share a head.
            let form =
                |arrival: &Arrival<'_>| (arrival.lane, arrival.job.due, arrival.packed.external.is_empty());
            for group in arrivals.chunk_by(|a, b| form(a) == form(b)) {
                let Arrival { lane, job, packed, .. } = &group[0];
                let args = if packed.external.is_empty() { 2 } else { 3 };
                let mut head = head(*lane, args, group.len());
                push_due(&mut head, job.due);
                cmd.arg(head);
                for Arrival { locator, packed, .. } in group {
                    cmd.arg(&locator.0).arg(&packed.rest);
                    if !packed.external.is_empty() {
                        cmd.arg(&packed.external);
                    }
                }
            }
        };
        self.add_jobs(shard, &jobs, script, push, submitted).await
    }

    pub async fn import(&self, shard: Shard, jobs: &[ImportJob]) -> Result<Vec<Submitted>, StoreError> {
        let histories: Vec<_> =
            jobs.iter().map(|job| job.history.as_ref().map(pack_history).unwrap_or_default()).collect();
        let jobs: Vec<&NewJob> = jobs.iter().map(|job| &job.job).collect();
        let push = |cmd: &mut Cmd, arrivals: &[Arrival<'_>]| {
            for Arrival { number, job, locator, lane, packed, .. } in arrivals {
                cmd.arg(&locator.0).arg(pack_due(job.due)).arg(&lane.0);
                cmd.arg(&packed.rest).arg(&packed.external).arg(&histories[*number]);
            }
        };
        self.add_jobs(shard, &jobs, |_| &script::IMPORT, push, submitted).await
    }

    /// Makes the calls that add jobs, nearly always one, and returns what `read` makes of each answer, in the order of
    /// `jobs`. `push` adds the arguments behind the lanes. A job is left to a later call if it needs another script, has
    /// the key of a job before it, or its lane the id of another lane, which is then sent with its next id.
    /// Fails with `ArchiveBehind` if the archive outbox is full. If the shard has lost jobs, `take_note_of_loss` handles
    /// that, and the call is repeated once. After a failure the jobs of earlier calls stay added.
    pub(super) async fn add_jobs<T>(
        &self,
        shard: Shard,
        jobs: &[&NewJob],
        script: impl Fn(&NewJob) -> &'static Script,
        push: impl Fn(&mut Cmd, &[Arrival<'_>]),
        read: impl Fn(Value, &NewJob) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let (key, mut has_lost) = (self.lane_key()?, false);
        let mut answers: Vec<_> = jobs.iter().map(|_| None).collect();
        let mut left: Vec<(usize, u8)> = (0..jobs.len()).map(|number| (number, 0)).collect();
        while let Some((first, _)) = left.first() {
            let script_now = script(jobs[*first]);
            let (mut met, mut lanes) = (HashSet::new(), Vec::new());
            let (mut arrivals, mut later) = (Vec::with_capacity(left.len()), Vec::new());
            for &(number, taken) in &left {
                let job = jobs[number];
                let locator = job.key.locator();
                if !met.insert(locator) || !std::ptr::eq(script(job), script_now) {
                    later.push((number, taken));
                } else if let Some(lane) = lane_of(&mut lanes, key, taken, job) {
                    arrivals.push(Arrival {
                        number,
                        job,
                        locator,
                        lane,
                        taken,
                        packed: record::pack(job, lane),
                    });
                } else {
                    later.push((number, taken + 1));
                }
            }
            self.check_takes_jobs(shard)?;
            let known = self.accepted_counts.known(shard);
            let call = self.call(script_now, shard).confirmed().with(|cmd| {
                cmd.arg(doubles([known.accepted as f64, lanes.len() as f64]));
                for ArrivingLane { id, lane, limits } in &lanes {
                    cmd.arg([&id.0[..], &pack_limits(*limits)].concat()).arg(lane.name());
                }
                reserve_space(cmd, &arrivals);
                push(cmd, &arrivals);
            });
            let mut answered = take::list(call.run().await?)?;
            let accepted = answered.pop().ok_or(UNREADABLE)?;
            let accepted = u64::try_from(take::int(&accepted)?).map_err(|_| UNREADABLE)?;
            match answered.as_slice() {
                [Value::BulkString(word)] if word == b"archive" => return Err(StoreError::ArchiveBehind),
                [Value::BulkString(word)] if word == b"lost" => {
                    self.take_note_of_loss(shard, known).await.map_err(nothing_was_added)?;
                    if std::mem::replace(&mut has_lost, true) {
                        return Err(UNREADABLE);
                    }
                    continue;
                }
                _ => has_lost = false,
            }
            self.accepted_counts.saw(shard, known, accepted);
            if answered.len() != arrivals.len() {
                return Err(UNREADABLE);
            }
            for (Arrival { number, job, taken, .. }, answer) in arrivals.iter().zip(answered) {
                if is_of_another_lane(&answer) {
                    later.push((*number, taken + 1));
                } else {
                    answers[*number] = Some(read(answer, job)?);
                }
            }
            // Jobs of one key must be added in their order.
            later.sort_unstable();
            left = later;
            if left.iter().any(|(_, taken)| *taken == MAX_TAKEN) {
                return Err(StoreError::Unreadable("the ids of lanes"));
            }
        }
        answers.into_iter().collect::<Option<_>>().ok_or(UNREADABLE)
    }
}

/// Reserves memory for the arguments of jobs.
fn reserve_space(cmd: &mut Cmd, arrivals: &[Arrival<'_>]) {
    let sizes =
        arrivals.iter().map(|Arrival { packed, .. }| [ARGS, packed.rest.len(), packed.external.len()]);
    cmd.reserve_space_for_args(sizes.flatten());
}

/// Returns the id of a job's lane, which is added to `lanes` if it is new, with the first id after `taken` ones. `None`
/// if another lane in `lanes` has that id. A batch has few lanes, so a search through them is fast.
fn lane_of<'a>(
    lanes: &mut Vec<ArrivingLane<'a>>,
    key: LaneKey,
    taken: u8,
    job: &'a NewJob,
) -> Option<LaneId> {
    let (lane, limits) = (Lane::new(&job.key.topic, job.delivery.callback.origin()), job.limits);
    if let Some(known) = lanes.iter_mut().find(|known| known.lane == lane) {
        if limits.is_none() {
            known.limits = None;
        }
        return Some(known.id);
    }
    let id = key.id(lane, taken);
    if lanes.iter().any(|known| known.id == id) {
        return None;
    }
    lanes.push(ArrivingLane { id, lane, limits });
    Some(id)
}

struct ArrivingLane<'a> {
    id: LaneId,
    lane: Lane<'a>,
    /// How many topics and lanes its tenant may have; `None` if one of the lane's jobs is the operator's.
    limits: Option<TenantLimits>,
}

/// Packs a tenant's limits on topics and lanes for the scripts; empty without limits.
pub(crate) fn pack_limits(limits: Option<TenantLimits>) -> Vec<u8> {
    limits.map_or_else(Vec::new, |TenantLimits { topics, lanes }| {
        [topics.to_be_bytes(), lanes.to_be_bytes()].concat()
    })
}

/// Whether a job was not added because another lane has the id of its lane.
fn is_of_another_lane(answer: &Value) -> bool {
    matches!(answer, Value::Array(parts) if matches!(parts.as_slice(), [Value::Int(421)]))
}

/// Converts the error of a check after a call that added nothing into one that says so.
fn nothing_was_added(error: StoreError) -> StoreError {
    match error {
        StoreError::Away(_) | StoreError::Slow(_) | StoreError::Unreadable(_) => StoreError::Unprepared,
        error => error,
    }
}

/// Formats a due time for the scripts: `+` and ms from now, or absolute ms.
pub(crate) fn pack_due(due: Due) -> Vec<u8> {
    let mut text = Vec::new();
    push_due(&mut text, due);
    text
}

fn push_due(text: &mut Vec<u8>, due: Due) {
    let pushed = match due {
        Due::In(delay) => write!(text, "+{}", millis_up(delay)),
        Due::At(at) => write!(text, "{}", at.as_millis()),
    };
    pushed.expect("a Vec takes all");
}

/// Packs a history for import.lua. Counts are cut to a maximum.
fn pack_history(history: &History) -> Vec<u8> {
    // For an unknown time the latest one: the script lowers it to now.
    let created = history.created.map_or(u64::MAX, Timestamp::as_millis).min(MAX_SIX);
    let mut packed = Vec::with_capacity(64);
    packed.push(history.dead.is_some().into());
    packed.extend_from_slice(&six(created));
    packed.extend_from_slice(&history.attempts.min(MAX_IMPORTED_COUNT).to_be_bytes());
    packed.extend_from_slice(&history.failures.min(MAX_IMPORTED_COUNT).to_be_bytes());
    let (nothing, reason) = (LastAttempt::default(), history.dead.as_deref().unwrap_or_default());
    record::push_last(&mut packed, history.last.as_ref().unwrap_or(&nothing), reason);
    packed
}

fn submitted(answer: Value, new: &NewJob) -> Result<Submitted, StoreError> {
    let key = &new.key;
    // The times of due and creation of a new job.
    if let Value::BulkString(times) = answer {
        let [due @ .., _, _, _, _, _, _] = &times[..] else { return Err(UNREADABLE) };
        let (due, created) = (number(due), number(&times[due.len()..]));
        let job = Job {
            key: key.clone(),
            state: if due <= created { State::Ready } else { State::Delayed },
            due: Timestamp::from_millis(due),
            created: Timestamp::from_millis(created),
            attempts: 0,
            failures: 0,
            last: None,
            reason: None,
            tags: new.delivery.tags.clone(),
        };
        return Ok(Submitted { answer: SubmitResult::Created, job });
    }
    let mut parts = take::list(answer)?;
    if let Some(limit) = limit_in(&parts)? {
        return Ok(Submitted::refused(limit, key));
    }
    let lasts = match parts.as_slice() {
        [Value::Int(423), Value::Int(us), ..] => u64::try_from(*us).ok(),
        _ => None,
    };
    if lasts.is_some() {
        parts.remove(1);
    }
    let (status, job) = reply::described(parts, key)?;
    let answer = match status {
        201 => SubmitResult::Created,
        202 if matches!(new.if_exists, IfExists::Postpone { .. }) => SubmitResult::Postponed,
        202 => SubmitResult::Replaced,
        423 => SubmitResult::Reserved { retry_after: Duration::from_micros(lasts.ok_or(UNREADABLE)?) },
        200 if job.state == State::Cancelled && !is_repeatable(new) => SubmitResult::Cancelled,
        200 => SubmitResult::Repeated,
        409 => SubmitResult::Conflict,
        _ => return Err(UNREADABLE),
    };
    Ok(Submitted { answer, job })
}

/// Whether a submit that meets a cancelled job of its content is a repetition: any other would begin a new generation.
fn is_repeatable(new: &NewJob) -> bool {
    match new.if_exists {
        IfExists::Refuse | IfExists::Update { .. } => false,
        IfExists::Replace { .. } | IfExists::Postpone { .. } => true,
    }
}

/// Returns the limit by which a script refused a job; `None` if it did not. Fails for an unknown limit.
pub(super) fn limit_in(parts: &[Value]) -> Result<Option<Limit>, StoreError> {
    let [Value::Int(status @ (422 | 429)), Value::BulkString(what)] = parts else { return Ok(None) };
    match (status, what.as_slice()) {
        (422, b"topics") => Ok(Some(Limit::Topics)),
        (422, b"lanes") => Ok(Some(Limit::Lanes)),
        (429, b"topics") => Ok(Some(Limit::TenantTopics)),
        (429, b"lanes") => Ok(Some(Limit::TenantLanes)),
        (429, b"keys") => Ok(Some(Limit::Keys)),
        _ => Err(UNREADABLE),
    }
}
