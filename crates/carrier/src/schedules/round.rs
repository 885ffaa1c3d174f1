//! One round: what is to be done with each schedule whose time has come, and the calls that do it.

use std::collections::HashMap;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::contract::{
    DueSchedule, DueSchedules, MAX_DUE_SCHEDULES, ScheduleChange, ScheduleChanged, ScheduleRow, StoreError,
};
use ringback_core::crash_point;
use ringback_core::limits::MAX_BATCH_BYTES;
use ringback_core::schedule::{Firing, Plan, ScheduleState};
use tokio::time::Instant;
use tracing::{debug, error, warn};

use super::{Round, ScheduleRunner};

/// How long a schedule waits whose jobs are not let through, or that cannot be read.
const PUT_OFF: Duration = Duration::from_secs(5);
/// The most firings of one schedule in a round.
const MAX_FIRINGS: usize = 100;
/// About how many bytes a job takes without its body.
const JOB_BYTES: usize = 1024;

/// What is to be done with a schedule.
struct Step {
    change: ScheduleChange,
    /// The row as it was read.
    before: ScheduleRow,
    plan: Plan,
    is_overlapped: bool,
}

impl ScheduleRunner<'_> {
    pub(super) async fn round(&self) -> Result<Round, StoreError> {
        // Where a job goes and what its tenant may use is known with the policies.
        self.policies.known().await;
        // The answer below includes every deadline that was set before.
        self.due.clear();
        let asked = Instant::now();
        let DueSchedules { due, now, next } = self.store.due_schedules(self.shard, MAX_DUE_SCHEDULES).await?;
        crash_point!("carrier.after_due_schedules");
        if due.is_empty() {
            next.iter().for_each(|wait| self.due.set(asked + *wait));
            return Ok(Round::Empty);
        }
        if self.store.shortage().await.is_some() {
            return Err(StoreError::Full);
        }
        let (mut steps, mut put_off) = (Vec::new(), Vec::new());
        for schedule in due {
            match self.step(schedule, now) {
                Ok(step) => steps.push(step),
                Err(row) => put_off.push(*row),
            }
        }
        let (firing, quiet): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| !step.plan.fire.is_empty());
        let firing = self.within_quotas(firing, &mut put_off).await?;
        for steps in batches(firing) {
            put_off.extend(self.fire(steps, now).await?);
        }
        self.move_on(quiet).await?;
        self.put_off(put_off, now).await?;
        Ok(Round::More)
    }

    /// What is to be done with a schedule. Returns the row of one that has to wait.
    fn step(&self, due: DueSchedule, now: Timestamp) -> Result<Step, Box<ScheduleRow>> {
        let DueSchedule { row: before, is_overlapped } = due;
        let (shard, schedule) = (self.shard.number(), before.key.to_string());
        let mut state = match before.state() {
            Ok(state) => state,
            Err(error) => {
                error!(shard, schedule, %error, "a schedule does not fire");
                return Err(before.into());
            }
        };
        let plan = if is_overlapped { state.plan_of_overlap(now) } else { state.plan(now, most(&state)) };
        // One that was put off, or whose time was read as later than it is, waits for its time.
        let plan = plan.unwrap_or(Plan { next: state.progress.next, ..Plan::default() });
        let tenant = before.key.tenant.as_ref();
        let policy = self.policies.get(&before.topic).ok().flatten();
        let Ok(limits) = self.limits(tenant) else { return Err(before.into()) };
        let id = &before.key.id;
        let job = |time: &Timestamp| state.schedule.firing(id, *time, policy.as_deref(), limits);
        let jobs: Vec<_> = plan.fire.iter().map(job).collect();
        let progress = &mut state.progress;
        if let Some((job, time)) = jobs.last().zip(plan.fire.last()) {
            progress.last = Some(Firing { time: *time, id: job.key.id.clone() });
        }
        progress.next = plan.next;
        progress.fired += jobs.len() as u64;
        progress.missed += plan.missed;
        progress.overlapped += u64::from(is_overlapped);
        let row = ScheduleRow::new(before.key.clone(), before.version + 1, &state);
        Ok(Step { change: ScheduleChange { expected: Some(before.version), row, jobs }, before, plan, is_overlapped })
    }

    /// The steps whose jobs the quotas of tenants let through.
    async fn within_quotas(
        &self,
        steps: Vec<Step>,
        put_off: &mut Vec<ScheduleRow>,
    ) -> Result<Vec<Step>, StoreError> {
        let mut needed = HashMap::new();
        for step in &steps {
            if let Some(tenant) = &step.before.key.tenant {
                *needed.entry(tenant.clone()).or_insert(0) += step.change.jobs.len() as u64;
            }
        }
        let mut allowances = self.allowances(needed).await?;
        let mut within = Vec::with_capacity(steps.len());
        for step in steps {
            if allowances.take(step.before.key.tenant.as_ref(), step.change.jobs.len() as u64) {
                within.push(step);
            } else {
                self.refused(&step, "its tenant's quota");
                put_off.push(step.before);
            }
        }
        Ok(within)
    }

    /// Submits the jobs of schedules and moves these on. Returns those whose jobs were refused.
    async fn fire(&self, steps: Vec<Step>, now: Timestamp) -> Result<Vec<ScheduleRow>, StoreError> {
        let changes: Vec<_> = steps.iter().map(|step| step.change.clone()).collect();
        crash_point!("carrier.before_fire");
        let changed = self.store.fire(self.shard, &changes).await?;
        crash_point!("carrier.after_fire");
        let mut refused = Vec::new();
        for (step, changed) in steps.into_iter().zip(changed) {
            match changed {
                ScheduleChanged::Changed => self.fired(&step, now),
                // It was changed meanwhile, or by a call whose answer was lost.
                ScheduleChanged::Outdated => {}
                ScheduleChanged::Full(_) => {
                    self.refused(&step, "a limit of topics or of origins");
                    refused.push(step.before);
                }
            }
        }
        Ok(refused)
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
        self.metrics.refused_firings.add(step.change.jobs.len() as u64, &[]);
        let (shard, schedule) = (self.shard.number(), step.before.key.to_string());
        warn!(shard, schedule, limit, "the jobs of a schedule are refused; retrying");
    }

    /// Moves schedules on that do not fire this time.
    async fn move_on(&self, steps: Vec<Step>) -> Result<(), StoreError> {
        if steps.is_empty() {
            return Ok(());
        }
        let changes: Vec<_> = steps.iter().map(|step| step.change.clone()).collect();
        let changed = self.store.change_schedules(self.shard, &changes).await?;
        for (step, changed) in steps.iter().zip(changed) {
            if changed == ScheduleChanged::Changed {
                self.metrics.missed_firings.add(step.plan.missed, &[]);
                self.metrics.overlapped_firings.add(u64::from(step.is_overlapped), &[]);
            }
        }
        Ok(())
    }

    /// Lets schedules wait, so that they are not among the first again.
    async fn put_off(&self, rows: Vec<ScheduleRow>, now: Timestamp) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let later = |row: ScheduleRow| {
            let expected = Some(row.version);
            let row = ScheduleRow { version: row.version + 1, next: Some(now.plus(PUT_OFF)), ..row };
            ScheduleChange { expected, row, jobs: Vec::new() }
        };
        let changes: Vec<_> = rows.into_iter().map(later).collect();
        self.store.change_schedules(self.shard, &changes).await.map(drop)
    }
}

/// How many jobs of a schedule are submitted in one call.
fn most(state: &ScheduleState) -> usize {
    (MAX_BATCH_BYTES / job_bytes(state)).clamp(1, MAX_FIRINGS)
}

fn job_bytes(state: &ScheduleState) -> usize {
    state.schedule.job.delivery.body.bytes.len() + JOB_BYTES
}

/// Splits steps into calls of limited size.
fn batches(steps: Vec<Step>) -> Vec<Vec<Step>> {
    let (mut batches, mut left) = (Vec::<Vec<Step>>::new(), 0);
    for step in steps {
        let jobs = step.change.jobs.iter().map(|job| job.delivery.body.bytes.len() + JOB_BYTES);
        let bytes = step.change.row.packed.len() + jobs.sum::<usize>();
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
