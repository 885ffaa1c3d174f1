//! The jobs of the demo: how each is submitted and answered, and its expected result.

use serde_json::{Value, json};

use crate::sink::{Answer, Script};

/// One job.
pub(crate) struct Case {
    /// The name in the table and, with hyphens, in the id.
    pub(crate) name: &'static str,
    /// The fields of the job besides topic, id, URL and body.
    pub(crate) fields: Value,
    pub(crate) answers: Script,
    /// The expected number of deliveries.
    pub(crate) attempts: usize,
    pub(crate) end: End,
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Dead(&'static str),
    /// Cancelled right after the submit.
    Cancelled,
}

pub(crate) fn cases() -> [Case; 6] {
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
