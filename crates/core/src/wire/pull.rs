//! What consumers ask and are answered: a reserve, and the word on what was reserved.

mod answer;

use std::time::Duration;

use serde_json::value::RawValue;

pub use self::answer::{
    PulledAnswer, ReceiptAnswer, ReceiptResult, ReceiptsAnswer, RenewAnswer, ReserveAnswer,
};
use super::fields::{Fields, Mistakes, read, shown};
use super::import::{MAX_ERROR, MAX_REASON, is_line, is_word};
use super::submit::open;
use super::{Problem, duration};
use crate::job::{MAX_AHEAD, MAX_TTR, MIN_TTR};

/// The most jobs of one reserve.
pub const MAX_PULL: usize = 100;
/// The longest wait of one reserve.
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// The most receipts of one request.
pub const MAX_RECEIPTS: usize = 1000;

/// Why a job is dead where its consumer gave no reason.
const BURIED: &str = "buried";
const TTR: &str = "100 ms to 12 h";
const DELAY: &str = "a duration of at most 10 years: seconds as a number, or \"10s\"";

/// What a reserve asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveAsk {
    /// At most so many jobs.
    pub max: usize,
    /// For so long; `None`: for as long as each job says.
    pub ttr: Option<Duration>,
    /// How long to wait for the first one.
    pub wait: Duration,
}

impl ReserveAsk {
    /// Reads a request; an empty one asks for one job, at once.
    ///
    /// # Errors
    /// A 400 problem for what is no JSON object, 422 with all the fields that are wrong.
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = opened(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["max", "ttr", "wait"], &mut mistakes);
        let max = fields.get("max").map_or(Some(1), |raw| {
            let max = read::<usize>(raw).filter(|max| (1..=MAX_PULL).contains(max));
            if max.is_none() {
                mistakes.add("max", format!("{} cannot be it", shown(raw)), format!("1 to {MAX_PULL}"));
            }
            max
        });
        let ttr = fields.get("ttr").and_then(|raw| ttr(raw, &mut mistakes));
        let wait =
            fields.get("wait").and_then(|raw| within(raw, "wait", MAX_WAIT, "0 to 60 s", &mut mistakes));
        let ask = Self { max: max.unwrap_or(1), ttr, wait: wait.unwrap_or_default() };
        if mistakes.is_empty() { Ok(ask) } else { Err(Problem::fields(mistakes.into_inner())) }
    }
}

/// A job failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryAsk {
    /// How long to wait; `None`: as the job's policy says.
    pub delay: Option<Duration>,
    /// What went wrong.
    pub error: Option<String>,
}

impl RetryAsk {
    /// Reads a request, which may be empty.
    ///
    /// # Errors
    /// As of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = opened(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["delay", "error"], &mut mistakes);
        let delay = delay(&fields, &mut mistakes);
        let error = error(&fields, &mut mistakes);
        if mistakes.is_empty() {
            Ok(Self { delay, error })
        } else {
            Err(Problem::fields(mistakes.into_inner()))
        }
    }
}

/// A job is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuryAsk {
    /// Why; `buried` where nothing was said.
    pub reason: String,
    /// What went wrong.
    pub error: Option<String>,
}

impl BuryAsk {
    /// Reads a request, which may be empty.
    ///
    /// # Errors
    /// As of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = opened(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["reason", "error"], &mut mistakes);
        let reason = fields.get("reason").and_then(|raw| {
            let reason = read::<String>(raw).filter(|text| is_word(text, MAX_REASON));
            if reason.is_none() {
                let allowed = format!("1 to {MAX_REASON} visible ASCII characters, without spaces");
                mistakes.add("reason", format!("{} cannot be it", shown(raw)), allowed);
            }
            reason
        });
        let error = error(&fields, &mut mistakes);
        let ask = Self { reason: reason.unwrap_or_else(|| BURIED.to_owned()), error };
        if mistakes.is_empty() { Ok(ask) } else { Err(Problem::fields(mistakes.into_inner())) }
    }
}

/// A job is given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseAsk {
    /// How long it is to wait; zero: not at all.
    pub delay: Duration,
}

impl ReleaseAsk {
    /// Reads a request, which may be empty.
    ///
    /// # Errors
    /// As of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = opened(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["delay"], &mut mistakes);
        let delay = delay(&fields, &mut mistakes).unwrap_or_default();
        if mistakes.is_empty() { Ok(Self { delay }) } else { Err(Problem::fields(mistakes.into_inner())) }
    }
}

/// A job is to be kept for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewAsk {
    /// For so long from now on.
    pub ttr: Duration,
}

impl RenewAsk {
    /// Reads a request; without `ttr` it is that of a job that names none.
    ///
    /// # Errors
    /// As of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = opened(json)?;
        let mut mistakes = Mistakes::default();
        fields.check_names("", &["ttr"], &mut mistakes);
        let ttr = fields.get("ttr").and_then(|raw| ttr(raw, &mut mistakes));
        let ttr = ttr.unwrap_or(crate::job::DEFAULT_TTR);
        if mistakes.is_empty() { Ok(Self { ttr }) } else { Err(Problem::fields(mistakes.into_inner())) }
    }
}

/// Nothing can be said beside the receipt.
///
/// # Errors
/// As of [`ReserveAsk::parse`].
pub fn parse_finish(json: &[u8]) -> Result<(), Problem> {
    let mut mistakes = Mistakes::default();
    opened(json)?.check_names("", &[], &mut mistakes);
    if mistakes.is_empty() { Ok(()) } else { Err(Problem::fields(mistakes.into_inner())) }
}

/// Many jobs are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishAllAsk {
    /// Their receipts, as they were written.
    pub receipts: Vec<String>,
}

impl FinishAllAsk {
    /// Reads a request.
    ///
    /// # Errors
    /// As of [`ReserveAsk::parse`].
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let fields = opened(json)?;
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
        Err(Problem::fields(mistakes.into_inner()))
    }
}

/// An empty request says nothing, like an empty object.
fn opened(json: &[u8]) -> Result<Fields<'_>, Problem> {
    if json.trim_ascii().is_empty() { open(b"{}") } else { open(json) }
}

/// A time to run.
pub(super) fn ttr(raw: &RawValue, mistakes: &mut Mistakes) -> Option<Duration> {
    let ttr = duration::from_json(raw).ok().filter(|ttr| (MIN_TTR..=MAX_TTR).contains(ttr));
    if ttr.is_none() {
        mistakes.add("ttr", format!("{} is no time to run", shown(raw)), TTR);
    }
    ttr
}

fn delay(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    within(fields.get("delay")?, "delay", MAX_AHEAD, DELAY, mistakes)
}

fn within(
    raw: &RawValue,
    name: &str,
    most: Duration,
    allowed: &str,
    mistakes: &mut Mistakes,
) -> Option<Duration> {
    let found = duration::from_json(raw).ok().filter(|found| *found <= most);
    if found.is_none() {
        mistakes.add(name, format!("{} cannot be it", shown(raw)), allowed);
    }
    found
}

fn error(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<String> {
    let raw = fields.get("error")?;
    let error = read::<String>(raw).filter(|text| is_line(text, MAX_ERROR));
    if error.is_none() {
        let allowed = format!("1 to {MAX_ERROR} bytes without control characters");
        mistakes.add("error", format!("{} cannot be it", shown(raw)), allowed);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_word_without_more_has_its_defaults() {
        assert_eq!(RetryAsk::parse(b""), Ok(RetryAsk::default()));
        assert_eq!(BuryAsk::parse(b"").unwrap().reason, "buried");
        assert_eq!(ReleaseAsk::parse(b"").unwrap().delay, Duration::ZERO);
        assert_eq!(RenewAsk::parse(b"").unwrap().ttr, crate::job::DEFAULT_TTR);
        let error = RetryAsk::parse(r#"{"error":"kein Papier, 紙がない"}"#.as_bytes()).unwrap().error;
        assert_eq!(error.as_deref(), Some("kein Papier, 紙がない"));
    }
}
