//! The jobs of the demonstration: how each is submitted and answered, and what is expected of it.

use serde_json::{Value, json};

use crate::sink::{Answer, Script};

/// One job.
pub(super) struct Case {
    /// What it is called in the table and, with hyphens, in its id.
    pub(super) name: &'static str,
    /// What it is submitted with beside topic, id, URL and body.
    pub(super) fields: Value,
    /// How the receiver answers it.
    pub(super) answers: Script,
    /// How often it should arrive.
    pub(super) attempts: usize,
    /// How it should end.
    pub(super) end: End,
}

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done,
    /// With this reason.
    Dead(&'static str),
    /// On request, right after the submit.
    Cancelled,
}

/// One of each kind.
pub(super) fn cases() -> [Case; 6] {
    let fine = || Script::always(Answer::status(200));
    let failing = || Answer::status(500);
    let tiers = || json!({ "retry": { "delays": ["500ms", "1s"], "jitter": 0 } });
    let case = |name, fields, answers, attempts, end| Case { name, fields, answers, attempts, end };
    [
        case("due now", json!({}), fine(), 1, End::Done),
        case("delayed by 2 s", json!({ "delay": "2s" }), fine(), 1, End::Done),
        case("fails twice", tiers(), Script::first(2, failing()), 3, End::Done),
        case("always fails", tiers(), failing().into(), 3, End::Dead("exhausted")),
        case("answered 410", tiers(), Answer::status(410).into(), 1, End::Dead("gone")),
        case("cancelled in time", json!({ "delay": "5s" }), fine(), 0, End::Cancelled),
    ]
}
