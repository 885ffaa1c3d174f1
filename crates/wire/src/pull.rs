//! Request bodies of the pull calls: reserve, and settling or renewing a receipt.

mod answer;

use std::time::Duration;

use ringback_core::job::DEFAULT_TTR;

pub use self::answer::{
    ReceiptResponse, ReceiptResult, ReceiptsResponse, RenewResponse, ReserveResponse, ReservedJob,
};
use super::fields::object::{read, read_or_empty};
use super::fields::values::{MAX_WAIT, delay, duration_within, error, parsed, reason, ttr};
use super::problem::Problem;

/// The most jobs of one reserve.
pub const MAX_PULL: usize = 100;
/// The most receipts of one request.
pub const MAX_RECEIPTS: usize = 1000;

/// The reason of a dead job whose consumer gave none.
const DEFAULT_REASON: &str = "buried";

/// The body of a reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveAsk {
    /// The most jobs to reserve.
    pub max: usize,
    /// How long the leases last; `None`: as long as each job says.
    pub ttr: Option<Duration>,
    /// How long to wait for the first job.
    pub wait: Duration,
}

impl ReserveAsk {
    /// Parses a body. An empty one asks for one job, without waiting.
    ///
    /// # Errors
    /// A 400 problem if it is not JSON object, 422 with all wrong fields.
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        read_or_empty(json, &["max", "ttr", "wait"], |fields, mistakes| {
            let max = parsed(fields, "max", &format!("1 to {MAX_PULL}"), mistakes, |raw| {
                read::<usize>(raw).filter(|max| (1..=MAX_PULL).contains(max))
            });
            let ttr = ttr(fields, mistakes);
            let range = Duration::ZERO..=MAX_WAIT;
            let wait = duration_within(fields, "wait", "is not a wait", range, "0 to 60 s", mistakes);
            Self { max: max.unwrap_or(1), ttr, wait: wait.unwrap_or_default() }
        })
    }
}

/// The body of a retry: the attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryAsk {
    /// The delay before the next attempt; `None`: as the job's policy says.
    pub delay: Option<Duration>,
    /// What went wrong.
    pub error: Option<String>,
}

impl RetryAsk {
    /// Parses a body, which may be empty.
    ///
    /// # Errors
    /// Those of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        read_or_empty(json, &["delay", "error"], |fields, mistakes| Self {
            delay: delay(fields, mistakes),
            error: error(fields, mistakes),
        })
    }
}

/// The body of a bury: the job is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuryAsk {
    /// Why; `buried` without a reason.
    pub reason: String,
    /// What went wrong.
    pub error: Option<String>,
}

impl BuryAsk {
    /// Parses a body, which may be empty.
    ///
    /// # Errors
    /// Those of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        read_or_empty(json, &["reason", "error"], |fields, mistakes| {
            let reason = reason(fields, "1 to 64 visible ASCII characters, without spaces", mistakes);
            Self {
                reason: reason.unwrap_or_else(|| DEFAULT_REASON.to_owned()),
                error: error(fields, mistakes),
            }
        })
    }
}

/// Parses the body of a release: the delay before the next attempt, which does not count. Zero for an
/// empty body.
///
/// # Errors
/// Those of [`ReserveAsk::parse`].
pub fn parse_release(json: &[u8]) -> Result<Duration, Problem> {
    read_or_empty(json, &["delay"], |fields, mistakes| delay(fields, mistakes).unwrap_or_default())
}

/// Parses the body of a renewal: how long the lease lasts from now on. [`DEFAULT_TTR`] for an empty body.
///
/// # Errors
/// Those of [`ReserveAsk::parse`].
pub fn parse_renew(json: &[u8]) -> Result<Duration, Problem> {
    read_or_empty(json, &["ttr"], |fields, mistakes| ttr(fields, mistakes).unwrap_or(DEFAULT_TTR))
}

/// Checks the body of a finish, which has no fields.
///
/// # Errors
/// Those of [`ReserveAsk::parse`].
pub fn parse_finish(json: &[u8]) -> Result<(), Problem> {
    read_or_empty(json, &[], |_, _| ())
}

/// Parses the body of a finish of many jobs: their receipts as texts.
///
/// # Errors
/// Those of [`ReserveAsk::parse`].
pub fn parse_finish_all(json: &[u8]) -> Result<Vec<String>, Problem> {
    read_or_empty(json, &["receipts"], |fields, mistakes| {
        let raw = fields.get("receipts");
        let list = raw.and_then(read::<Vec<String>>).filter(|list| (1..=MAX_RECEIPTS).contains(&list.len()));
        list.unwrap_or_else(|| {
            let detail = if raw.is_none() { "missing" } else { "no such list" };
            mistakes.add("receipts", detail, format!("a list of 1 to {MAX_RECEIPTS} receipts"));
            Vec::new()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringback_core::job::MAX_TTR;

    #[test]
    fn an_empty_reserve_asks_for_one_job_at_once() {
        let one = ReserveAsk { max: 1, ttr: None, wait: Duration::ZERO };
        for empty in ["", " \n", "{}"] {
            assert_eq!(ReserveAsk::parse(empty.as_bytes()), Ok(one));
        }
        let whole = ReserveAsk::parse(br#"{"max":100,"ttr":"12h","wait":60}"#);
        assert_eq!(whole, Ok(ReserveAsk { max: 100, ttr: Some(MAX_TTR), wait: MAX_WAIT }));
    }

    #[test]
    fn each_wrong_field_is_refused_by_its_name() {
        let wrong = |problem: Problem| (problem.status, problem.errors[0].field.clone());
        let of = |field: &str| (422, field.to_owned());
        for (json, field) in [
            (r#"{"max":0}"#, "max"),
            (r#"{"max":101}"#, "max"),
            (r#"{"max":"ten"}"#, "max"),
            (r#"{"ttr":"13h"}"#, "ttr"),
            (r#"{"ttr":"99ms"}"#, "ttr"),
            (r#"{"wait":61}"#, "wait"),
            (r#"{"wait":-1}"#, "wait"),
            (r#"{"colour":"red"}"#, "colour"),
        ] {
            assert_eq!(wrong(ReserveAsk::parse(json.as_bytes()).unwrap_err()), of(field), "{json}");
        }
        assert_eq!(wrong(RetryAsk::parse(br#"{"error":"a\nb"}"#).unwrap_err()), of("error"));
        assert_eq!(wrong(RetryAsk::parse(br#"{"delay":"11 years"}"#).unwrap_err()), of("delay"));
        assert_eq!(wrong(BuryAsk::parse(br#"{"reason":"a b"}"#).unwrap_err()), of("reason"));
        assert_eq!(wrong(parse_release(br#"{"ttr":1}"#).unwrap_err()), of("ttr"));
        assert_eq!(wrong(parse_renew(br#"{"ttr":0}"#).unwrap_err()), of("ttr"));
        assert_eq!(wrong(parse_finish(br#"{"delay":1}"#).unwrap_err()), of("delay"));
        assert_eq!(wrong(parse_finish_all(b"{}").unwrap_err()), of("receipts"));
        assert_eq!(wrong(parse_finish_all(br#"{"receipts":[]}"#).unwrap_err()), of("receipts"));
        assert_eq!(wrong(parse_finish_all(br#"{"receipts":[1]}"#).unwrap_err()), of("receipts"));
        assert_eq!(ReserveAsk::parse(b"[]").unwrap_err().status, 400);
        assert_eq!(ReserveAsk::parse(b"\xff").unwrap_err().status, 400);
    }

    #[test]
    fn an_empty_body_has_the_defaults() {
        assert_eq!(RetryAsk::parse(b""), Ok(RetryAsk::default()));
        assert_eq!(BuryAsk::parse(b"").unwrap().reason, "buried");
        assert_eq!(parse_release(b"").unwrap(), Duration::ZERO);
        assert_eq!(parse_renew(b"").unwrap(), DEFAULT_TTR);
        let error = RetryAsk::parse(r#"{"error":"kein Papier, 紙がない"}"#.as_bytes()).unwrap().error;
        assert_eq!(error.as_deref(), Some("kein Papier, 紙がない"));
    }
}
