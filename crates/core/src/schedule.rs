//! Schedules: jobs that recur, by a cron expression or after a period. Has the rule of a schedule, its times, the job
//! that it submits when it fires (with the id `schedule~time`), and its progress. `change` replaces and pauses
//! schedules, `plan` decides what fires, `cron` reads expressions.

mod change;
mod cron;
mod key;
mod plan;
mod stored;

use std::time::Duration;

pub use cron::{Cron, CronError};
pub use key::{ScheduleId, ScheduleKey};
pub use plan::{MAX_MISSED, ON_TIME, Plan};
use serde::{Deserialize, Serialize};
pub use stored::UnreadableSchedule;
use utoipa::ToSchema;

use crate::clock::{Timestamp, millis, millis_up};
use crate::job::{
    Callback, CallbackMethod, ContentHash, Delivery, Due, IfExists, JobId, JobKey, NewJob, TenantLimits,
    Topic,
};
use crate::topic_policy::Policy;

/// The most schedules of an installation.
pub const MAX_SCHEDULES: u64 = 1_000_000;
/// The most schedules of a tenant. They share the carriers with those of others.
pub const MAX_TENANT_SCHEDULES: u64 = 10_000;
/// The shortest period of a schedule.
pub const MIN_EVERY: Duration = Duration::from_secs(1);
/// The longest period of a schedule.
pub const MAX_EVERY: Duration = Duration::from_secs(366 * 86_400);
/// How far back missed firings are made up for, unless the schedule says it.
pub const DEFAULT_CATCHUP: Duration = Duration::from_secs(3600);
/// The longest time for which missed firings are made up for.
pub const MAX_CATCHUP: Duration = Duration::from_secs(7 * 86_400);
/// The largest body of the job of a schedule, in bytes. The body is kept with the schedule and copied into each job.
pub const MAX_SCHEDULED_BODY: usize = 32 * 1024;
pub const MAX_JITTER: Duration = Duration::from_secs(86_400);

/// When a schedule fires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Rule {
    /// At the times of a cron expression.
    Cron(Box<Cron>),
    /// Again and again after a period.
    Every {
        period: Duration,
        /// One of the times. The others are whole periods before or after it.
        anchor: Timestamp,
    },
}

impl Rule {
    /// Whether both rules have the same times, however they are written. `false` for a cron expression and a period.
    fn means(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Cron(one), Self::Cron(other)) => one.means(other),
            (
                Self::Every { period: one, anchor: of_one },
                Self::Every { period: other, anchor: of_other },
            ) => {
                let apart = of_one.as_millis().abs_diff(of_other.as_millis());
                one == other && apart.is_multiple_of(millis_up(*one))
            }
            (Self::Cron(_), Self::Every { .. }) | (Self::Every { .. }, Self::Cron(_)) => false,
        }
    }

    /// The first time of the rule after this one; `None` if there is none.
    fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.next_after(time),
            Self::Every { period, anchor } => {
                let (period, anchor, time) = (millis_up(*period), anchor.as_millis(), time.as_millis());
                let since_last = if time >= anchor {
                    (time - anchor) % period
                } else {
                    (period - (anchor - time) % period) % period
                };
                Some(Timestamp::from_millis(time.checked_add(period - since_last)?))
            }
        }
    }
}

/// What becomes of firings that were missed because no carrier was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[derive(strum::Display, strum::EnumString, strum::VariantArray, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
#[schema(as = MissedFirings)]
pub enum Missed {
    /// Nothing.
    Skip,
    /// The last one is made up for.
    #[default]
    One,
    /// All are made up for, the last [`MAX_MISSED`] at most.
    All,
}

/// What happens at a time of the schedule while the job of its last firing has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[derive(strum::Display, strum::EnumString, strum::VariantArray, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
#[schema(as = OverlapRule)]
pub enum Overlap {
    #[default]
    Allow,
    /// It does not fire while that job is delayed, ready or reserved.
    Skip,
}

/// The job that a schedule submits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduledJob {
    pub topic: Topic,
    /// What to deliver, and how.
    #[serde(with = "stored::delivery")]
    pub delivery: Delivery,
    /// Whether it has neither a URL nor a time to run, so that each job goes to the URL of the policy that its topic
    /// has then, or is for pull without one.
    pub to_url_of_topic: bool,
}

/// A schedule as a request has put it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub rule: Rule,
    pub job: ScheduledJob,
    /// What becomes of missed firings.
    pub missed: Missed,
    /// How late a missed firing is at most, to be made up for.
    pub catchup: Duration,
    /// What happens while the last job has not ended.
    pub overlap: Overlap,
    /// Each job is due up to so long after its time. How long follows from the job's id.
    pub jitter: Duration,
    /// It does not fire before.
    pub from: Option<Timestamp>,
    /// It does not fire after.
    pub until: Option<Timestamp>,
}

impl Schedule {
    /// The first time after this one at which the schedule fires, within `from` and `until`; `None` if there is none.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let before_from = self.from.map(|from| Timestamp::from_millis(from.as_millis().saturating_sub(1)));
        let next = self.rule.next_after(before_from.map_or(time, |from| from.max(time)))?;
        self.until.is_none_or(|until| next <= until).then_some(next)
    }

    /// The next times after this one at which the schedule fires, at most `count`.
    pub fn upcoming(&self, time: Timestamp, count: usize) -> Vec<Timestamp> {
        let first = self.next_after(time);
        std::iter::successors(first, |time| self.next_after(*time)).take(count).collect()
    }

    /// How often the schedule fires at or after `from` and before `end`. With a period this is computed; the times of a
    /// cron expression are counted one by one, up to `most`.
    pub fn count_between(&self, from: Timestamp, end: Timestamp, most: u64) -> u64 {
        let from = self.from.map_or(from, |first| first.max(from)).as_millis();
        let last = self.until.map_or(end, |until| end.min(until.plus(Duration::from_millis(1)))).as_millis();
        let Some(before) = from.checked_sub(1).filter(|_| from < last).map(Timestamp::from_millis) else {
            return 0;
        };
        match &self.rule {
            Rule::Every { period, .. } => match self.rule.next_after(before).map(Timestamp::as_millis) {
                Some(first) if first < last => (last - 1 - first) / millis_up(*period) + 1,
                _ => 0,
            },
            Rule::Cron(_) => {
                let times =
                    std::iter::successors(self.rule.next_after(before), |time| self.rule.next_after(*time));
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                times.take(most).take_while(|time| time.as_millis() < last).count() as u64
            }
        }
    }

    /// Whether both schedules fire at the same times, however they are written. `false` also where this cannot be told.
    pub fn has_times_of(&self, other: &Self) -> bool {
        self.rule.means(&other.rule) && (self.from, self.until) == (other.from, other.until)
    }

    /// The job of a firing, due at `time` plus a part of the jitter. `policy` is the topic's, `limits` the tenant's.
    pub fn firing(
        &self,
        id: &ScheduleId,
        time: Timestamp,
        policy: Option<&Policy>,
        limits: Option<TenantLimits>,
    ) -> NewJob {
        let id = id.firing(time);
        let due = Due::At(self.due(&id, time));
        self.job(id, due, policy, limits)
    }

    fn job(&self, id: JobId, due: Due, policy: Option<&Policy>, limits: Option<TenantLimits>) -> NewJob {
        let mut delivery = self.job.delivery.clone();
        if self.job.to_url_of_topic {
            delivery.callback = policy.and_then(|policy| policy.url.clone()).unwrap_or_else(Callback::pull);
            if delivery.callback.is_pull() {
                // What only a job with a URL has.
                delivery.timeout = None;
                delivery.method = CallbackMethod::Post;
                delivery.on_done = None;
            }
        }
        let content = ContentHash::of_firing(&id);
        let key = JobKey { topic: self.job.topic.clone(), id };
        NewJob { key, due, delivery, content, if_exists: IfExists::Refuse, limits }
    }

    /// The job of a firing that somebody has requested, due at once.
    pub fn run(&self, id: JobId, policy: Option<&Policy>, limits: Option<TenantLimits>) -> NewJob {
        self.job(id, Due::In(Duration::ZERO), policy, limits)
    }

    /// When the job of a firing is due: at `time` plus a part of the jitter that follows from the job's id.
    fn due(&self, id: &JobId, time: Timestamp) -> Timestamp {
        let jitter = millis(self.jitter);
        if jitter == 0 {
            return time;
        }
        let random = u64::from_be_bytes(ContentHash::of_firing(id).0);
        time.plus(Duration::from_millis(random % (jitter + 1)))
    }
}

/// A firing that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firing {
    pub time: Timestamp,
    pub id: JobId,
}

/// The progress of a schedule: its next time, its last firing, and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// When it was first put.
    pub created: Timestamp,
    /// Whether it is paused, so that it does not fire.
    pub paused: bool,
    /// Its next time; `None` if it is paused or has none.
    pub next: Option<Timestamp>,
    pub last: Option<Firing>,
    /// How often it has fired.
    pub fired: u64,
    /// How many firings were missed and not made up for, as far as they were counted.
    pub missed: u64,
    /// How often it did not fire because the job before had not ended.
    pub overlapped: u64,
}

/// A schedule and its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleState {
    pub schedule: Schedule,
    pub progress: Progress,
}

#[cfg(test)]
mod tests;
