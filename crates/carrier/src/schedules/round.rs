//! One round over a shard's schedules whose time has come: decides which fire, move on or are deferred, and does it.

use std::collections::HashMap;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::crash_point;
use ringback_core::limits::MAX_BATCH_BYTES;
use ringback_core::schedule::{Firing, Plan, ScheduleState};
use ringback_core::store_types::{
    DueSchedule, DueSchedules, MAX_DUE_SCHEDULES, ScheduleChange, ScheduleChanged, ScheduleRow, StoreError,
};
use tokio::task::yield_now;
use tokio::time::Instant;
use tracing::{debug, error, warn};

use super::{Round, ScheduleRunner};

/// The shortest and longest wait of a refused or unreadable schedule; in between it waits as long as it is late.
const MIN_DEFERRAL: Duration = Duration::from_secs(1);
const MAX_DEFERRAL: Duration = Duration::from_secs(60);
/// The most firings of one schedule in a round. Further ones are made in the next round, behind those of others.
const MAX_FIRINGS: usize = 10;
/// About how many bytes a job takes without its body.
const JOB_BYTES: usize = 1024;
/// How long to wait if the store says that a schedule is due but returns none.
const NOTHING_FOUND: Duration = Duration::from_secs(1);

/// A schedule whose time has come, and what is to be done with it.
struct Step {
    /// The row as it was read.
    before: ScheduleRow,
    state: ScheduleState,
    plan: Plan,
}

impl ScheduleRunner<'_> {
    pub(super) async fn round(&self) -> Result<Round, StoreError> {
        // The policies decide where a job goes and what its tenant may use.
        self.policies.known().await;
        // The answer below includes every deadline that was set before.
        self.due.clear();
        let asked = Instant::now();
        let DueSchedules { due, now, next } = self.store.due_schedules(self.shard, MAX_DUE_SCHEDULES).await?;
        crash_point!("carrier.after_due_schedules");
        if due.is_empty() {
            let wait = next.map(|wait| if wait.is_zero() { NOTHING_FOUND } else { wait });
            wait.iter().for_each(|wait| self.due.set(asked + *wait));
            return Ok(Round::Empty);
        }
        if self.store.shortage().await.is_some() {
            return Err(StoreError::Full);
        }
        let (mut firing, mut quiet, mut deferred) = (Vec::new(), Vec::new(), Vec::new());
        for schedule in due {
            match step(schedule, now) {
                Ok(step) if step.plan.fire.is_empty() => quiet.push(step),
                Ok(step) => firing.push(step),
                Err(row) => {
                    let (shard, schedule) = (self.shard.number(), row.key.to_string());
                    error!(
                        shard,
                        schedule,
                        "a schedule cannot be read and does not fire: a later version may have written it"
                    );
                    deferred.push(*row);
                }
            }
            // The search for missed firings can take a while.
            yield_now().await;
        }
        let firing = self.within_quotas(firing, &mut deferred).await;
        for steps in batches(firing) {
            deferred.extend(self.fire(steps, now).await?);
        }
        self.move_on(quiet, now).await?;
        self.defer(deferred, now).await?;
        Ok(Round::More)
    }

    /// Limits the firings of schedules to what the quotas of their tenants let through, and returns the schedules with
    /// firings left. The others, and those with a body too large for the quota, are counted, logged and put in `deferred`.
    async fn within_quotas(&self, steps: Vec<Step>, deferred: &mut Vec<ScheduleRow>) -> Vec<Step> {
        let (too_large, steps): (Vec<_>, Vec<_>) =
            steps.into_iter().partition(|step| self.is_too_large(step));
        for step in too_large {
            self.refused(&step, "the body that the quota of its tenant allows");
            deferred.push(step.before);
        }
        let mut needed = HashMap::new();
        for step in &steps {
            if let Some(tenant) = &step.before.key.tenant {
                *needed.entry(tenant.clone()).or_insert(0) += step.plan.fire.len() as u64;
            }
        }
        let mut allowances = self.allowances(needed).await;
        let mut within = Vec::with_capacity(steps.len());
        for mut step in steps {
            match allowances.take(step.before.key.tenant.as_ref(), step.plan.fire.len()) {
                0 => {
                    self.refused(&step, "the quota of its tenant");
                    deferred.push(step.before);
                }
                jobs => {
                    step.plan.limit(jobs);
                    within.push(step);
                }
            }
        }
        within
    }

    /// Whether a job's body is larger than its tenant's present quota allows; false if the quota is not known.
    fn is_too_large(&self, step: &Step) -> bool {
        let tenant = step.before.key.tenant.as_ref();
        let quota = tenant.and_then(|tenant| self.policies.quota(tenant).ok().flatten());
        let limit = quota.and_then(|quota| quota.body_bytes);
        limit.is_some_and(|limit| step.state.schedule.job.delivery.body.bytes.len() > limit as usize)
    }

    /// Submits the jobs of schedules and sets the next times of the schedules. Returns the schedules whose jobs were
    /// refused because of a limit of topics or origins. Skips schedules that were changed since they were read.
    async fn fire(&self, steps: Vec<Step>, now: Timestamp) -> Result<Vec<ScheduleRow>, StoreError> {
        let changes: Vec<_> = steps.iter().map(|step| self.change(step, now)).collect();
        crash_point!("carrier.before_fire");
        let changed = self.store.fire(self.shard, &changes).await?;
        crash_point!("carrier.after_fire");
        let mut refused = Vec::new();
        for (step, changed) in steps.into_iter().zip(changed) {
            match changed {
                ScheduleChanged::Changed => self.fired(&step, now),
                // The schedule was changed meanwhile, or by a call whose answer was lost.
                ScheduleChanged::Outdated => {}
                ScheduleChanged::Full(_) => {
                    self.refused(&step, "a limit of topics or of origins");
                    refused.push(step.before);
                }
            }
        }
        Ok(refused)
    }

    /// Returns the change of a step: the schedule's next version, with its new progress, and the jobs to submit.
    fn change(&self, step: &Step, now: Timestamp) -> ScheduleChange {
        let Step { before, state, plan } = step;
        let (policy, limits) =
            (self.policies.get(&before.topic).ok().flatten(), self.limits(before.key.tenant.as_ref()).ok());
        let job = |time: &Timestamp| {
            state.schedule.firing(&before.key.id, *time, policy.as_deref(), limits.flatten())
        };
        let jobs: Vec<_> = plan.fire.iter().map(job).collect();
        let mut state = state.clone();
        let progress = &mut state.progress;
        if let Some((job, time)) = jobs.last().zip(plan.fire.last()) {
            progress.last = Some(Firing { time: *time, id: job.key.id.clone() });
        }
        progress.next = plan.next;
        progress.fired += jobs.len() as u64;
        progress.missed += plan.missed;
        progress.overlapped += u64::from(plan.is_overlapped);
        let mut row = ScheduleRow::new(before.key.clone(), before.version + 1, &state);
        // A schedule with more firings to make up for goes behind all others whose time has come.
        row.next = row.next.map(|next| next.max(now));
        ScheduleChange { expected: Some(before.version), row, jobs }
    }

    fn fired(&self, step: &Step, now: Timestamp) {
        let count = step.plan.fire.len() as u64;
        self.metrics.fired.add(count, &[]);
        self.metrics.missed_firings.add(step.plan.missed, &[]);
        for time in &step.plan.fire {
            self.metrics.firing_lateness.record(now.since(*time).as_secs_f64(), &[]);
        }
        debug!(shard = self.shard.number(), schedule = %step.before.key, count, "fired");
    }

    fn refused(&self, step: &Step, limit: &str) {
        self.metrics.refused_firings.add(step.plan.fire.len() as u64, &[]);
        let (shard, schedule) = (self.shard.number(), step.before.key.to_string());
        warn!(shard, schedule, limit, "the jobs of a schedule are refused; retrying");
    }

    /// Moves schedules that do not fire this time on to their next time. Counts missed and overlapped firings.
    async fn move_on(&self, steps: Vec<Step>, now: Timestamp) -> Result<(), StoreError> {
        if steps.is_empty() {
            return Ok(());
        }
        let changes: Vec<_> = steps.iter().map(|step| self.change(step, now)).collect();
        let changed = self.store.change_schedules(self.shard, &changes).await?;
        for (Step { plan, .. }, changed) in steps.iter().zip(changed) {
            if changed == ScheduleChanged::Changed {
                self.metrics.missed_firings.add(plan.missed, &[]);
                self.metrics.overlapped_firings.add(u64::from(plan.is_overlapped), &[]);
            }
        }
        Ok(())
    }

    /// Postpones schedules by the time that they are late, within the bounds of a deferral, so that they do not block
    /// others. The time for which they fire stays the same. An unreadable schedule waits [`MAX_DEFERRAL`].
    async fn defer(&self, rows: Vec<ScheduleRow>, now: Timestamp) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let later = |row: ScheduleRow| {
            let time = row.state().ok().and_then(|state| state.progress.next);
            let late = time.map_or(MAX_DEFERRAL, |time| now.since(time));
            let next = now.plus(late.clamp(MIN_DEFERRAL, MAX_DEFERRAL));
            let expected = Some(row.version);
            let row = ScheduleRow { version: row.version + 1, next: Some(next), ..row };
            ScheduleChange { expected, row, jobs: Vec::new() }
        };
        let changes: Vec<_> = rows.into_iter().map(later).collect();
        self.store.change_schedules(self.shard, &changes).await.map(drop)
    }
}

/// Plans what to do with a schedule. If its state cannot be read, returns its row as the error.
fn step(due: DueSchedule, now: Timestamp) -> Result<Step, Box<ScheduleRow>> {
    let DueSchedule { row: before, is_overlapped } = due;
    let Ok(state) = before.state() else { return Err(before.into()) };
    let plan = if is_overlapped { state.plan_of_overlap(now) } else { state.plan(now, MAX_FIRINGS) };
    // A schedule whose time has not come waits. It is here because it was deferred, or the clock was set back.
    let plan = plan.unwrap_or_else(|| Plan { next: state.waits_for(now), ..Plan::default() });
    Ok(Step { before, state, plan })
}

/// Splits steps into calls of at most about [`MAX_BATCH_BYTES`]. A larger step gets a call of its own.
fn batches(steps: Vec<Step>) -> Vec<Vec<Step>> {
    let (mut batches, mut left) = (Vec::<Vec<Step>>::new(), 0);
    for step in steps {
        let job = step.state.schedule.job.delivery.body.bytes.len() + JOB_BYTES;
        let bytes = step.before.packed.len() + step.plan.fire.len() * job;
        match batches.last_mut() {
            Some(batch) if bytes <= left => {
                left -= bytes;
                batch.push(step);
            }
            _ => {
                left = MAX_BATCH_BYTES.saturating_sub(bytes);
                batches.push(vec![step]);
            }
        }
    }
    batches
}
