//! Dead letters: how they are listed, what a purge of many came to, and how many are revived.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::fields::{Mistakes, read, shown};
use super::import::{MAX_REASON, is_word};
use super::submit::{TIME, millis_up, open};
use super::{JobAnswer, Problem};
use crate::clock::Timestamp;
use crate::store::{DeadJob, MAX_RATE, Revival};

/// What a reason may look like, for error messages.
pub const REASON: &str = "1 to 64 visible ASCII characters, such as exhausted, gone or lost";

/// A dead job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadJobAnswer {
    /// The job.
    #[serde(flatten)]
    pub job: JobAnswer,
    /// When it died.
    pub died_at: String,
}

impl From<DeadJob> for DeadJobAnswer {
    fn from(dead: DeadJob) -> Self {
        Self { job: dead.job.into(), died_at: dead.died.to_string() }
    }
}

/// A page of dead jobs, in order of death. It may be empty and still have a next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadPageAnswer {
    /// The jobs.
    pub items: Vec<DeadJobAnswer>,
    /// Where the next page begins; null after the last one. Opaque.
    pub next: Option<String>,
}

/// What a purge of many came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgeAnswer {
    /// How many this call has removed.
    pub purged: u64,
    /// Where to go on, as the cursor of another call; null when all are gone. Opaque.
    pub next: Option<String>,
}

/// Whether a job can be dead for this reason.
pub fn is_reason(text: &str) -> bool {
    is_word(text, MAX_REASON)
}

/// A time by RFC 3339, in ms rounded up.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(|time| Timestamp::from_millis(millis_up(time)))
}

/// The rate of a revival that names none, in jobs a second.
pub const DEFAULT_RATE: u32 = 100;

/// Which dead jobs of a topic are to be revived, and how fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviveAsk {
    /// Dead for this reason only.
    pub reason: Option<String>,
    /// That died at this time or later.
    pub after: Option<Timestamp>,
    /// That died before this time.
    pub before: Option<Timestamp>,
    /// Jobs a second.
    pub rate: u32,
}

impl ReviveAsk {
    /// Reads a request; an empty one asks for all, at [`DEFAULT_RATE`].
    ///
    /// # Errors
    /// A 400 problem for what is no JSON object, 422 with all the fields that are wrong.
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let json = if json.trim_ascii().is_empty() { b"{}" } else { json };
        let fields = open(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["reason", "died_after", "died_before", "rate"], &mut mistakes);
        let mut word = |name: &str, allowed: &str, is_right: &dyn Fn(&str) -> bool| {
            let raw = fields.get(name)?;
            let text = read::<String>(raw).filter(|text| is_right(text));
            if text.is_none() {
                mistakes.add(name, format!("{} cannot be it", shown(raw)), allowed);
            }
            text
        };
        let reason = word("reason", REASON, &is_reason);
        let mut time = |name| word(name, TIME, &|text| parse_time(text).is_some());
        let (after, before) = (time("died_after"), time("died_before"));
        let rate = fields.get("rate").map_or(Some(DEFAULT_RATE), |raw| {
            let rate = read::<u32>(raw).filter(|rate| (1..=MAX_RATE).contains(rate));
            if rate.is_none() {
                let allowed = format!("1 to {MAX_RATE} jobs a second, a whole number");
                mistakes.add("rate", format!("{} cannot be it", shown(raw)), allowed);
            }
            rate
        });
        let time = |text: Option<String>| text.as_deref().and_then(parse_time);
        let ask =
            Self { reason, after: time(after), before: time(before), rate: rate.unwrap_or(DEFAULT_RATE) };
        if mistakes.is_empty() { Ok(ask) } else { Err(Problem::fields(mistakes.into_inner())) }
    }
}

/// A call that revives many dead jobs, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevivalAnswer {
    /// What it is known by.
    pub id: String,
    /// Of which topic.
    pub topic: String,
    /// `running`, `done` or `stopped`.
    pub state: String,
    /// How many jobs it has revived so far.
    pub revived: u64,
    /// How many it may revive a second.
    pub rate: u32,
    /// When it began. Only jobs that were dead by then are revived.
    pub started_at: String,
    /// When it was done or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Only those that are dead for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only those that died at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died_after: Option<String>,
    /// Only those that died before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died_before: Option<String>,
}

impl From<Revival> for RevivalAnswer {
    fn from(revival: Revival) -> Self {
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
        let filter = revival.filter;
        Self {
            id: revival.id.to_string(),
            topic: filter.topic.to_string(),
            state: revival.state.name().to_owned(),
            revived: revival.revived,
            rate: revival.rate,
            started_at: revival.started.to_string(),
            ended_at: time(revival.ended),
            reason: filter.reason,
            died_after: time(filter.after),
            died_before: time(filter.before),
        }
    }
}

/// The revivals of a topic that go on, and those that ended within a day; the last one first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevivalsAnswer {
    /// Each as it is now.
    pub items: Vec<RevivalAnswer>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Vec<String> {
        let problem = ReviveAsk::parse(json.as_bytes()).unwrap_err();
        assert_eq!(problem.status, 422, "{json}: {problem:?}");
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_revival_may_say_nothing_or_all() {
        let all = ReviveAsk { reason: None, after: None, before: None, rate: 100 };
        for empty in ["", "  ", "{}", r#"{"reason":null,"rate":null}"#] {
            assert_eq!(ReviveAsk::parse(empty.as_bytes()), Ok(all.clone()), "{empty:?}");
        }
        let json = r#"{"reason":"gone","died_after":"1970-01-01T00:00:01Z","died_before":"1970-01-01T00:00:02.0001Z","rate":100000}"#;
        let ms = |ms| Some(Timestamp::from_millis(ms));
        let asked =
            ReviveAsk { reason: Some("gone".into()), after: ms(1000), before: ms(2001), rate: 100_000 };
        assert_eq!(ReviveAsk::parse(json.as_bytes()), Ok(asked));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for rate in ["0", "100001", "-1", "1.5", "\"5\"", "true", "99999999999"] {
            assert_eq!(fields(&format!(r#"{{"rate":{rate}}}"#)), ["rate"]);
        }
        assert_eq!(
            fields(r#"{"colour":1,"reason":"a b","died_after":5,"died_before":"now","rate":0}"#),
            ["colour", "reason", "died_after", "died_before", "rate"]
        );
        assert_eq!(fields(&format!(r#"{{"reason":"{}"}}"#, "x".repeat(65))), ["reason"]);
        assert_eq!(fields(r#"{"reason":"a","reason":"b"}"#), ["reason"]);
        for bad in ["[]", "5", "{", "null", "\u{feff}{}"] {
            assert_eq!(ReviveAsk::parse(bad.as_bytes()).unwrap_err().status, 400, "{bad:?}");
        }
    }
}
