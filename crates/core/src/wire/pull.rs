//! Request bodies of the pull calls: reserve, and settling or renewing a receipt.

mod answer;

use std::time::Duration;

pub use self::answer::{
    PulledAnswer, ReceiptAnswer, ReceiptResult, ReceiptsAnswer, RenewAnswer, ReserveAnswer,
};
use super::fields::object::{Mistakes, open_or_empty, read};
use super::fields::values::{delay, duration_within, error, is_word, parsed, ttr};
use super::problem::Problem;
use crate::job::DEFAULT_TTR;
use crate::limits::MAX_REASON;

/// The most jobs of one reserve.
pub const MAX_PULL: usize = 100;
/// The longest wait of one reserve.
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// The most receipts of one request.
pub const MAX_RECEIPTS: usize = 1000;

/// The reason of a dead job whose consumer gave none.
const BURIED: &str = "buried";

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
    /// A 400 problem if it is not a JSON object, 422 with all wrong fields.
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = open_or_empty(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["max", "ttr", "wait"], &mut mistakes);
        let max = parsed(&fields, "max", &format!("1 to {MAX_PULL}"), &mut mistakes, |raw| {
            read::<usize>(raw).filter(|max| (1..=MAX_PULL).contains(max))
        });
        let ttr = fields.get("ttr").and_then(|raw| ttr(raw, &mut mistakes));
        let wait = fields.get("wait");
        let wait = wait.and_then(|raw| duration_within(raw, "wait", MAX_WAIT, "0 to 60 s", &mut mistakes));
        mistakes.or(Self { max: max.unwrap_or(1), ttr, wait: wait.unwrap_or_default() })
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
        let fields = open_or_empty(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["delay", "error"], &mut mistakes);
        let delay = delay(&fields, &mut mistakes);
        let error = error(&fields, &mut mistakes);
        mistakes.or(Self { delay, error })
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
        let fields = open_or_empty(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["reason", "error"], &mut mistakes);
        let allowed = format!("1 to {MAX_REASON} visible ASCII characters, without spaces");
        let reason = parsed(&fields, "reason", &allowed, &mut mistakes, |raw| {
            read::<String>(raw).filter(|text| is_word(text, MAX_REASON))
        });
        let error = error(&fields, &mut mistakes);
        mistakes.or(Self { reason: reason.unwrap_or_else(|| BURIED.to_owned()), error })
    }
}

/// The body of a release: the attempt does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseAsk {
    /// The delay before the next attempt; zero: none.
    pub delay: Duration,
}

impl ReleaseAsk {
    /// Parses a body, which may be empty.
    ///
    /// # Errors
    /// Those of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = open_or_empty(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["delay"], &mut mistakes);
        let delay = delay(&fields, &mut mistakes).unwrap_or_default();
        mistakes.or(Self { delay })
    }
}

/// The body of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewAsk {
    /// How long the lease lasts from now on.
    pub ttr: Duration,
}

impl RenewAsk {
    /// Parses a body. Without `ttr` the default of all jobs counts.
    ///
    /// # Errors
    /// Those of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = open_or_empty(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["ttr"], &mut mistakes);
        let ttr = fields.get("ttr").and_then(|raw| ttr(raw, &mut mistakes));
        mistakes.or(Self { ttr: ttr.unwrap_or(DEFAULT_TTR) })
    }
}

/// Checks the body of a finish, which has no fields.
///
/// # Errors
/// Those of [`ReserveAsk::parse`].
pub fn parse_finish(json: &[u8]) -> Result<(), Problem> {
    let mut mistakes = Mistakes::default();
    open_or_empty(json)?.check_names("", &[], &mut mistakes);
    mistakes.or(())
}

/// The body of a finish of many jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishAllAsk {
    /// The receipts as texts.
    pub receipts: Vec<String>,
}

impl FinishAllAsk {
    /// Parses a body.
    ///
    /// # Errors
    /// Those of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = open_or_empty(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["receipts"], &mut mistakes);
        let allowed = format!("a list of 1 to {MAX_RECEIPTS} receipts");
        let receipts = fields.get("receipts").and_then(read::<Vec<String>>);
        match receipts.filter(|list| (1..=MAX_RECEIPTS).contains(&list.len())) {
            Some(receipts) if mistakes.is_empty() => return Ok(Self { receipts }),
            Some(_) => {}
            None if fields.get("receipts").is_none() => mistakes.add("receipts", "missing", allowed),
            None => mistakes.add("receipts", "no such list", allowed),
        }
        Err(mistakes.into_problem())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::MAX_TTR;

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
        assert_eq!(wrong(ReleaseAsk::parse(br#"{"ttr":1}"#).unwrap_err()), of("ttr"));
        assert_eq!(wrong(RenewAsk::parse(br#"{"ttr":0}"#).unwrap_err()), of("ttr"));
        assert_eq!(wrong(parse_finish(br#"{"delay":1}"#).unwrap_err()), of("delay"));
        assert_eq!(wrong(FinishAllAsk::parse(b"{}").unwrap_err()), of("receipts"));
        assert_eq!(wrong(FinishAllAsk::parse(br#"{"receipts":[]}"#).unwrap_err()), of("receipts"));
        assert_eq!(wrong(FinishAllAsk::parse(br#"{"receipts":[1]}"#).unwrap_err()), of("receipts"));
        assert_eq!(ReserveAsk::parse(b"[]").unwrap_err().status, 400);
        assert_eq!(ReserveAsk::parse(b"\xff").unwrap_err().status, 400);
    }

    #[test]
    fn an_empty_body_has_the_defaults() {
        assert_eq!(RetryAsk::parse(b""), Ok(RetryAsk::default()));
        assert_eq!(BuryAsk::parse(b"").unwrap().reason, "buried");
        assert_eq!(ReleaseAsk::parse(b"").unwrap().delay, Duration::ZERO);
        assert_eq!(RenewAsk::parse(b"").unwrap().ttr, DEFAULT_TTR);
        let error = RetryAsk::parse(r#"{"error":"kein Papier, 紙がない"}"#.as_bytes()).unwrap().error;
        assert_eq!(error.as_deref(), Some("kein Papier, 紙がない"));
    }
}
