//! Ids and keys of schedules: [`ScheduleId`], with which the ids of the schedule's jobs begin, and [`ScheduleKey`],
//! under which a store keeps the schedule. Also the content hash of a firing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::Timestamp;
use crate::hex::Hex;
use crate::job::{ContentHash, JobId, JobKey, NameError, Tenant, Topic};

/// Identifies a schedule within its tenant: `[A-Za-z0-9._-]{1,96}`, neither `.` nor `..`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScheduleId(Box<str>);

impl ScheduleId {
    /// The form of an id, for error messages.
    pub const ALLOWED: &'static str = "1 to 96 of A-Z a-z 0-9 . _ -, and neither . nor ..";

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the job of a firing, such as `daily~20261126T080000Z`. It has the time in UTC, with milliseconds if it
    /// is not a whole second.
    pub fn firing(&self, time: Timestamp) -> JobId {
        self.with(&utc(time))
    }

    /// The id of the job of a firing that somebody has requested at `time`, such as `daily~run-20261126T080000.123Z`.
    pub fn run(&self, time: Timestamp) -> JobId {
        self.with(&format!("run-{}", utc(time)))
    }

    /// The id of the job of a firing requested with an idempotency key: `~run-` and 64 bits of the key's SHA-256.
    pub fn run_of_key(&self, key: &str) -> JobId {
        let digest = Sha256::digest(key);
        self.with(&format!("run-{}", Hex(&digest[..8])))
    }

    fn with(&self, end: &str) -> JobId {
        format!("{}~{end}", self.0).parse().expect("it lies within the alphabet of ids")
    }
}

/// A time in UTC as ids have it: `20261126T080000Z`, with milliseconds if it is not a whole second.
fn utc(time: Timestamp) -> String {
    let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    let form = if ms % 1000 == 0 { "%Y%m%dT%H%M%SZ" } else { "%Y%m%dT%H%M%S%.3fZ" };
    at.strftime(form).to_string()
}

impl FromStr for ScheduleId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let inside = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let fits = (1..=96).contains(&text.len()) && text.bytes().all(inside);
        if fits && text != "." && text != ".." {
            Ok(Self(text.into()))
        } else {
            Err(NameError(Self::ALLOWED))
        }
    }
}

impl fmt::Display for ScheduleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ContentHash {
    /// The hash of the job of a firing. It follows from the job's id alone, so that a repeated submit is recognised.
    pub fn of_firing(id: &JobId) -> Self {
        Self::of(Sha256::digest(format!("firing {id}")).into())
    }
}

/// Identifies a schedule in an installation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScheduleKey {
    /// Whose it is, if it belongs to a tenant.
    pub tenant: Option<Tenant>,
    pub id: ScheduleId,
}

impl ScheduleKey {
    /// Reads what its [`Display`](fmt::Display) has written; `None` if the text is something else.
    pub fn from_stored(text: &str) -> Option<Self> {
        match text.strip_prefix(Tenant::MARK) {
            Some(rest) => {
                let (tenant, id) = rest.split_once('/')?;
                Some(Self { tenant: Some(tenant.parse().ok()?), id: id.parse().ok()? })
            }
            None => Some(Self { tenant: None, id: text.parse().ok()? }),
        }
    }

    /// The job key that chooses the shard of the schedule, and of its jobs, whose ids agree with it up to their `~`.
    pub fn in_topic(&self, topic: &Topic) -> JobKey {
        JobKey {
            topic: topic.clone(),
            id: self.id.as_str().parse().expect("an id of a schedule is one of a job"),
        }
    }
}

/// The text that no other schedule of the installation has: the id, or `~tenant/id`.
impl fmt::Display for ScheduleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = self.tenant.as_ref().map(Tenant::prefix).unwrap_or_default();
        write!(f, "{prefix}{}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_a_firing_has_the_time_in_utc() {
        let id: ScheduleId = "daily".parse().unwrap();
        let of = |ms| id.firing(Timestamp::from_millis(ms)).to_string();
        assert_eq!(of(1_763_600_000_000), "daily~20251120T005320Z");
        assert_eq!(of(1_763_600_000_120), "daily~20251120T005320.120Z");
        assert_eq!(id.run(Timestamp::from_millis(1_763_600_000_000)).as_str(), "daily~run-20251120T005320Z");
        assert_eq!(id.run_of_key("8e03978e-40d5").as_str(), "daily~run-5c7776970d4aa80b");
        let longest: ScheduleId = "x".repeat(96).parse().unwrap();
        assert!(longest.run(Timestamp::from_millis(1)).as_str().len() <= 128);
    }

    #[test]
    fn a_schedule_shares_the_shard_of_its_jobs() {
        let key = ScheduleKey { tenant: None, id: "a.b-c".parse().unwrap() };
        let topic: Topic = "t".parse().unwrap();
        let job = JobKey { topic: topic.clone(), id: key.id.firing(Timestamp::from_millis(5)) };
        assert_eq!(key.in_topic(&topic).shard_hash(), job.shard_hash());
    }

    #[test]
    fn a_key_is_read_as_it_is_written() {
        for text in ["a", "~acme/a.b"] {
            assert_eq!(ScheduleKey::from_stored(text).unwrap().to_string(), text);
        }
        for bad in ["", "a~b", "~acme", "~acme/", "a/b", "~acme/..", &"x".repeat(97)] {
            assert_eq!(ScheduleKey::from_stored(bad), None, "{bad}");
        }
    }
}
