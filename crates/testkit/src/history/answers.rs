//! Converts answers of the API into lines of a history.

use jiff::Timestamp;
use serde_json::Value;

use super::entry::{Answered, Entry, JobState, NotAnswered, Rejected};
use super::writer::History;

impl History {
    /// Writes the outcome of call `n` with the current time: `ok` for a 2xx, with what `answer` says of the job;
    /// `fail` for a 4xx; `info` for any other status, or for none.
    pub fn write_outcome(&self, n: u64, status: Option<u16>, answer: &Value) {
        let t = self.t();
        let name = answer["topic"].as_str().zip(answer["id"].as_str());
        let name = name.map(|(topic, id)| format!("{topic}/{id}"));
        self.write(&match status {
            Some(200..300) => Entry::Ok(Answered {
                t,
                n,
                status,
                job: name.as_deref(),
                state: state(&answer["state"]),
                due: millis(&answer["due_at"]),
                deadline: millis(&answer["deadline"]),
                in_flight_unknown: answer["in_flight"] == "unknown",
            }),
            Some(status @ 400..500) => Entry::Fail(Rejected { t, n, status }),
            _ => Entry::Info(NotAnswered { t, n }),
        });
    }
}

pub fn state(name: &Value) -> Option<JobState> {
    serde_json::from_value(name.clone()).ok()
}

/// Parses a JSON string into milliseconds since 1970; `None` if the value is not a string.
///
/// # Panics
/// When the string is not a time after 1970.
pub fn millis(time: &Value) -> Option<u64> {
    let text = time.as_str()?;
    let time: Timestamp = text.parse().unwrap_or_else(|error| panic!("{text} is not a time: {error}"));
    Some(u64::try_from(time.as_millisecond()).expect("it is after 1970"))
}
