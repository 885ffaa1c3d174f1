//! Puts, changes and fires schedules: reads the schedule, makes a new state from it, and stores that unless the
//! schedule was changed meanwhile. In that case it tries again.

use std::time::Duration;

use http::StatusCode;
use ringback_admission::{Principal, limit_reached};
use ringback_core::clock::Timestamp;
use ringback_core::job::Topic;
use ringback_core::schedule::{
    Firing, MAX_SCHEDULES, MAX_TENANT_SCHEDULES, Progress, Schedule, ScheduleKey, ScheduleState,
};
use ringback_core::store_types::{
    ScheduleAdded, ScheduleChange, ScheduleChanged, ScheduleRow, is_notice_topic,
};
use ringback_wire::{FieldError, NewSchedule, Problem, ScheduleDefaults, parse_schedule, submit_of_notice};

use super::{find, readable};
use crate::error::ApiError;
use crate::extract::PutFrom;
use crate::state::Api;

/// How often a change is tried, if others change the schedule meanwhile.
const MAX_TRIES: usize = 8;

/// A schedule that was put: the status of the answer, what was there before, and what is there now.
pub(super) struct Put {
    pub(super) status: StatusCode,
    pub(super) before: Option<ScheduleState>,
    pub(super) after: ScheduleState,
}

pub(super) async fn put(
    api: &Api,
    caller: &Principal,
    key: &ScheduleKey,
    json: &[u8],
    from: PutFrom,
) -> Result<Put, ApiError> {
    for _ in 0..MAX_TRIES {
        let stored = api.store.schedule(key).await?;
        let state = stored.as_ref().and_then(readable);
        let new = parse(api, caller, key, (json, from), state.as_ref())?;
        let before = state.clone();
        let (status, put) = match stored {
            None => (StatusCode::CREATED, add(api, caller, key, new).await?),
            Some(row) => (StatusCode::OK, replace(api, caller, row, state, new).await?),
        };
        if let Some(after) = put {
            return Ok(Put { status, before, after });
        }
    }
    Err(outdated())
}

fn parse(
    api: &Api,
    caller: &Principal,
    key: &ScheduleKey,
    (json, from): (&[u8], PutFrom),
    stored: Option<&ScheduleState>,
) -> Result<NewSchedule, ApiError> {
    let (now, policies) = (api.now(), api.policies.all().ok());
    let stored = stored.map(|stored| &stored.schedule);
    let defaults = ScheduleDefaults { now, id: &key.id, tenant: caller.tenant(), stored };
    let new = parse_schedule(json, defaults, policies.as_deref())?;
    let topic = &new.schedule.job.topic;
    caller.check_topic(topic)?;
    if is_notice_topic(topic) {
        return Err(within_job(submit_of_notice(topic)).into());
    }
    let policy = policies.as_ref().and_then(|policies| policies.get(topic));
    let mut job = new.schedule.firing(&key.id, now, policy.map(|policy| &**policy), None);
    api.admission.quotas.check_size_and_set_limits(&mut job, caller)?;
    let destinations = &api.admission.destinations;
    let judged = match from {
        PutFrom::Caller => destinations.check_job(&job, caller),
        PutFrom::Backup => destinations.check_import(&job, caller),
    };
    judged.map_err(within_job)?;
    Ok(new)
}

/// Prefixes the fields that a problem names with `job.`.
fn within_job(problem: Problem) -> Problem {
    if problem.errors.is_empty() {
        return problem;
    }
    let within = |error: FieldError| FieldError { field: format!("job.{}", error.field), ..error };
    Problem::fields(problem.errors.into_iter().map(within).collect())
}

/// Adds a schedule. `None` if one with this key was added meanwhile. 409 if the id has a schedule of another topic (403
/// if the caller may not use that one), or at the limit of schedules; 503 if the store is nearly full.
async fn add(
    api: &Api,
    caller: &Principal,
    key: &ScheduleKey,
    NewSchedule { schedule, paused }: NewSchedule,
) -> Result<Option<ScheduleState>, ApiError> {
    check_room(api).await?;
    let now = api.now();
    let state = new_state(schedule, paused, now);
    // Greater than the version of a schedule that had this key before.
    let row = ScheduleRow::new(key.clone(), now.as_millis() * 1000, &state);
    match api.store.add_schedule(&row, most(api, caller)?).await? {
        ScheduleAdded::Added => Ok(Some(state)),
        ScheduleAdded::Exists => Ok(None),
        ScheduleAdded::OtherTopic(topic) => {
            caller.check_topic(&topic)?;
            Err(other_topic(&topic))
        }
        ScheduleAdded::TooMany => Err(too_many()),
    }
}

fn new_state(schedule: Schedule, paused: Option<bool>, now: Timestamp) -> ScheduleState {
    let paused = paused.unwrap_or_default();
    let next = if paused { None } else { schedule.next_after(now) };
    ScheduleState { schedule, progress: Progress { created: now, paused, next, ..Progress::default() } }
}

/// How many schedules the caller's tenant may have: at most [`MAX_TENANT_SCHEDULES`], and no more than its quota allows
/// jobs. `None` for a caller without a tenant. 503 until the quotas have been read.
fn most(api: &Api, caller: &Principal) -> Result<Option<u64>, ApiError> {
    let Some(tenant) = caller.limited_tenant() else { return Ok(None) };
    let jobs = api.policies.quota(tenant)?.and_then(|quota| quota.jobs);
    Ok(Some(jobs.map_or(MAX_TENANT_SCHEDULES, |jobs| jobs.min(MAX_TENANT_SCHEDULES))))
}

/// Puts a schedule in place of `row`, with the counts of `stored`, which is `None` if it cannot be read. `None` if
/// `row` was changed meanwhile. 403 if the caller may not use the topic of `row`, 409 if the new schedule has another
/// one, 503 if the store is nearly full.
async fn replace(
    api: &Api,
    caller: &Principal,
    row: ScheduleRow,
    stored: Option<ScheduleState>,
    NewSchedule { schedule, paused }: NewSchedule,
) -> Result<Option<ScheduleState>, ApiError> {
    caller.check_topic(&row.topic)?;
    if row.topic != schedule.job.topic {
        return Err(other_topic(&row.topic));
    }
    let now = api.now();
    let state = match &stored {
        Some(stored) => {
            let mut state = stored.clone();
            state.set(schedule, paused, now);
            state
        }
        // One that cannot be read begins anew.
        None => new_state(schedule, paused, now),
    };
    if stored.as_ref() == Some(&state) {
        return Ok(Some(state));
    }
    check_room(api).await?;
    let missed = stored.map_or(0, |stored| stored.progress.missed);
    Ok(store(api, row, &state, missed).await?.then_some(state))
}

/// Stores a schedule in place of `read`, and counts the firings that were missed by the change in a metric. False, and
/// nothing is stored, if `read` was changed meanwhile.
async fn store(
    api: &Api,
    read: ScheduleRow,
    state: &ScheduleState,
    missed_before: u64,
) -> Result<bool, ApiError> {
    let (shard, expected) = (api.store.shard_of(&read.shard_key()), Some(read.version));
    let row = ScheduleRow::new(read.key, read.version + 1, state);
    let change = ScheduleChange { expected, row, jobs: Vec::new() };
    let is_changed = api.store.change_schedules(shard, &[change]).await? == [ScheduleChanged::Changed];
    if is_changed {
        api.metrics.missed_firings(state.progress.missed - missed_before);
    }
    Ok(is_changed)
}

/// Changes a schedule that exists. Returns whether it was paused before, and what it is now. 404 if there is none, 403
/// if the caller may not use its topic, 503 if others keep changing it.
pub(super) async fn change(
    api: &Api,
    caller: &Principal,
    key: &ScheduleKey,
    make: impl Fn(&mut ScheduleState),
) -> Result<(bool, ScheduleState), ApiError> {
    for _ in 0..MAX_TRIES {
        let (row, before) = find(api, caller, key).await?;
        let Progress { paused, missed, .. } = before.progress;
        let mut state = before.clone();
        make(&mut state);
        if state == before || store(api, row, &state, missed).await? {
            return Ok((paused, state));
        }
    }
    Err(outdated())
}

/// Fires a schedule now: submits its job, and stores the firing as its last. If the job of the `idempotency_key` is
/// known already, changes nothing and returns the schedule with that firing as its last. Fails as [`change`] does, and
/// if the store has no room, or the job is beyond a limit or may not be sent to its URL.
pub(super) async fn run_now(
    api: &Api,
    caller: &Principal,
    key: &ScheduleKey,
    idempotency_key: Option<&str>,
) -> Result<ScheduleState, ApiError> {
    check_room(api).await?;
    for _ in 0..MAX_TRIES {
        let (row, mut state) = find(api, caller, key).await?;
        let policies = api.policies.all()?;
        let policy = policies.get(&row.topic).map(|policy| &**policy);
        let last = state.progress.last.as_ref().map(|last| last.time.plus(Duration::from_millis(1)));
        // Two firings have different times.
        let time = last.map_or(api.now(), |last| last.max(api.now()));
        let id = match idempotency_key {
            Some(text) => key.id.run_of_key(text),
            None => key.id.run(time),
        };
        let mut job = state.schedule.run(id.clone(), policy, None);
        api.admission.quotas.check_size_and_set_limits(&mut job, caller)?;
        if idempotency_key.is_some()
            && let Some(known) = api.store.get(&job.key).await?
        {
            // Answered as the first time, although it may have fired since.
            state.progress.last = Some(Firing { time: known.created, id });
            return Ok(state);
        }
        api.admission.destinations.check_job(&job, caller).map_err(within_job)?;
        state.progress.last = Some(Firing { time, id });
        state.progress.fired += 1;
        let (shard, expected) = (api.store.shard_of(&row.shard_key()), Some(row.version));
        let next = row.next;
        let row = ScheduleRow { next, ..ScheduleRow::new(row.key, row.version + 1, &state) };
        let change = ScheduleChange { expected, row, jobs: vec![job] };
        match api.store.fire(shard, &[change]).await?.as_slice() {
            [ScheduleChanged::Changed] => return Ok(state),
            [ScheduleChanged::Full(limit)] => return Err(within_job(limit_reached(*limit)).into()),
            _ => {}
        }
    }
    Err(outdated())
}

async fn check_room(api: &Api) -> Result<(), ApiError> {
    api.store.shortage().await.map_or(Ok(()), |shortage| Err(ApiError::retry_later(shortage)))
}

fn outdated() -> ApiError {
    ApiError::retry_later("others keep changing this schedule, or it keeps firing")
}

fn other_topic(topic: &Topic) -> ApiError {
    let detail = format!(
        "there is a schedule with this id for topic {topic}, and its topic stays: delete it first, or choose another id"
    );
    ApiError::new(StatusCode::CONFLICT, detail)
}

fn too_many() -> ApiError {
    let detail = format!(
        "there are as many schedules as there may be: {MAX_SCHEDULES} in all, and of a tenant {MAX_TENANT_SCHEDULES}, or as many as its quota allows jobs, and at most half of what the others leave; delete some"
    );
    ApiError::new(StatusCode::CONFLICT, detail)
}
