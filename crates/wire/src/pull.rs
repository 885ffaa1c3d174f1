//! Request bodies of the pull calls: reserving jobs, and settling or renewing them by receipt. Answers are in
//! `job_answers`.

mod answer;

use std::time::Duration;

use ringback_core::job::DEFAULT_TTR;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

pub use self::answer::{
    ReceiptResponse, ReceiptResult, ReceiptsResponse, RenewResponse, ReserveResponse, ReservedJob,
};
use super::declare::{Kind, request};
use super::field_parsers::object::{Fields, Mistakes, read};
use super::kinds::Whole;
use super::schema::{DeadReason, Delay, ErrorMessage, ReserveWait, Ttr};

/// The most jobs of one reserve.
pub const MAX_PULL: usize = 100;
/// What an error message can be.
const ERROR: &str = "1 to 128 bytes without control characters";
/// The most receipts of one request.
pub const MAX_RECEIPTS: usize = 1000;

request! {
    /// How many jobs to reserve, and for how long.
    #[example {"max": 10, "ttr": "30s", "wait": "20s"}]
    #[derive(Copy)]
    pub struct ReserveRequest(open_or_empty) {
        /// The most jobs to reserve; 1 by default.
        max: Whole<usize, 1, { MAX_PULL as u64 }> ["1 to 100"], or 1;
        /// The lease. By default the job's own `ttr`, else that of the topic's policy, else 30 s.
        ttr: Ttr;
        /// How long to wait if there are no jobs. By default not at all.
        wait: ReserveWait, or Duration::ZERO;
    }
}

request! {
    /// Why the attempt failed.
    #[example {"delay": "30s", "error": "no such account"}]
    pub struct RetryRequest(open_or_empty) {
        /// How long to wait before the next attempt. By default the delay of the job's retry policy; if it
        /// allows no further attempt, the job is dead.
        delay: Delay;
        /// The error message.
        error: ErrorMessage [ERROR];
    }
}

request! {
    /// Why the job is buried.
    #[example {"reason": "unpayable", "error": "no such account"}]
    pub struct BuryRequest(open_or_empty) {
        /// A short reason; by default `buried`.
        reason: DeadReason ["1 to 64 visible ASCII characters, without spaces"], or "buried".to_owned();
        /// The error message.
        error: ErrorMessage [ERROR];
    }
}

request! {
    /// When the job is ready again.
    #[example {"delay": "30s"}]
    pub struct ReleaseRequest(open_or_empty) {
        /// How long it waits. By default it is ready at once.
        delay: Delay, or Duration::ZERO;
    }
}

request! {
    /// How long the consumer keeps the job.
    #[example {"ttr": "5m"}]
    pub struct RenewRequest(open_or_empty) {
        /// The new lease, counted from this call; 30 s by default.
        ttr: Ttr, or DEFAULT_TTR;
    }
}

request! {
    /// The jobs that are done.
    #[example {"receipts": ["AAEHBwcHBwcHBwcHBwcABkRi_oAAAP7-_v7-_v7-"]}]
    pub struct FinishAllRequest(open_or_empty) {
        /// Their receipts. The result of any other text is 404.
        receipts: Receipts ["a list of 1 to 1000 receipts"], required Vec::new();
    }
}

/// A list of receipts as texts.
pub struct Receipts;

impl Kind for Receipts {
    type Value = Vec<String>;

    fn read(fields: &Fields<'_>, name: &str, allowed: &str, mistakes: &mut Mistakes) -> Option<Vec<String>> {
        let list =
            read::<Vec<String>>(fields.get(name)?).filter(|all| (1..=MAX_RECEIPTS).contains(&all.len()));
        if list.is_none() {
            mistakes.add(name, "no such list", allowed);
        }
        list
    }

    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        ArrayBuilder::new().items(text).min_items(Some(1)).max_items(Some(MAX_RECEIPTS)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringback_core::job::MAX_TTR;

    use crate::{MAX_WAIT, Problem};

    #[test]
    fn an_empty_reserve_asks_for_one_job_at_once() {
        let one = ReserveRequest { max: 1, ttr: None, wait: Duration::ZERO };
        for empty in ["", " \n", "{}"] {
            assert_eq!(ReserveRequest::parse(empty.as_bytes()), Ok(one));
        }
        let whole = ReserveRequest::parse(br#"{"max":100,"ttr":"12h","wait":60}"#);
        assert_eq!(whole, Ok(ReserveRequest { max: 100, ttr: Some(MAX_TTR), wait: MAX_WAIT }));
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
            assert_eq!(wrong(ReserveRequest::parse(json.as_bytes()).unwrap_err()), of(field), "{json}");
        }
        assert_eq!(wrong(RetryRequest::parse(br#"{"error":"a\nb"}"#).unwrap_err()), of("error"));
        assert_eq!(wrong(RetryRequest::parse(br#"{"delay":"11 years"}"#).unwrap_err()), of("delay"));
        assert_eq!(wrong(BuryRequest::parse(br#"{"reason":"a b"}"#).unwrap_err()), of("reason"));
        assert_eq!(wrong(ReleaseRequest::parse(br#"{"ttr":1}"#).unwrap_err()), of("ttr"));
        assert_eq!(wrong(RenewRequest::parse(br#"{"ttr":0}"#).unwrap_err()), of("ttr"));
        assert_eq!(wrong(FinishAllRequest::parse(b"{}").unwrap_err()), of("receipts"));
        assert_eq!(wrong(FinishAllRequest::parse(br#"{"receipts":[]}"#).unwrap_err()), of("receipts"));
        assert_eq!(wrong(FinishAllRequest::parse(br#"{"receipts":[1]}"#).unwrap_err()), of("receipts"));
        assert_eq!(ReserveRequest::parse(b"[]").unwrap_err().status, 400);
        assert_eq!(ReserveRequest::parse(b"\xff").unwrap_err().status, 400);
    }

    #[test]
    fn an_empty_body_has_the_defaults() {
        assert_eq!(RetryRequest::parse(b""), Ok(RetryRequest { delay: None, error: None }));
        assert_eq!(BuryRequest::parse(b"").unwrap().reason, "buried");
        assert_eq!(ReleaseRequest::parse(b"").unwrap().delay, Duration::ZERO);
        assert_eq!(RenewRequest::parse(b"").unwrap().ttr, DEFAULT_TTR);
        let error = RetryRequest::parse(r#"{"error":"kein Papier, 紙がない"}"#.as_bytes()).unwrap().error;
        assert_eq!(error.as_deref(), Some("kein Papier, 紙がない"));
    }
}
