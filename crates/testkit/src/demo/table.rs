//! Compares the result of each job with its case, and formats the table of the results.

use std::fmt;

use serde_json::Value;

use super::Submitted;
use super::cases::End;
use crate::sink::Arrival;

/// The result of a job.
pub(crate) struct DemoResult {
    name: &'static str,
    expected: usize,
    attempts: usize,
    end: String,
    /// The lateness of each attempt, in ms.
    lateness: Vec<f64>,
    /// A sentence for each difference from the case.
    pub(crate) wrong: Vec<String>,
}

impl DemoResult {
    /// The result of a job: its arrivals and `last`, the job as last read, compared with its case.
    pub(crate) fn new(job: &Submitted, arrivals: &[Arrival], last: &Value) -> Self {
        let case = &job.case;
        let end = match (last["state"].as_str(), last["reason"].as_str()) {
            (Some(state), Some(reason)) => format!("{state} ({reason})"),
            (state, _) => state.unwrap_or("unknown").to_owned(),
        };
        let lateness = arrivals.iter().map(|arrival| lateness(arrival, job)).collect();
        let mut seen = Self {
            name: case.name,
            expected: case.attempts,
            attempts: arrivals.len(),
            end,
            lateness,
            wrong: Vec::new(),
        };
        seen.judge(job, arrivals);
        seen
    }

    fn judge(&mut self, job: &Submitted, arrivals: &[Arrival]) {
        let (name, expected, attempts) = (self.name, self.expected, self.attempts);
        let mut wrong = Vec::new();
        if attempts != expected {
            wrong.push(format!("\"{name}\" should have arrived {expected} times; arrivals seen: {attempts}"));
        }
        let end = job.case.end.to_string();
        if self.end != end {
            wrong.push(format!("\"{name}\" should be {end} by now, and is {}", self.end));
        }
        for (arrival, number) in arrivals.iter().zip(1..) {
            if arrival.attempt() != Some(number) {
                let number_seen = arrival.header("ringback-attempt").unwrap_or("none");
                wrong.push(format!("\"{name}\" arrived with attempt {number_seen} in place of {number}"));
            }
            if arrival.body != format!(r#"{{"job":"{}"}}"#, job.id) {
                wrong.push(format!("\"{name}\" arrived with another body than it was submitted with"));
            }
        }
        for early in self.lateness.iter().filter(|lateness| **lateness < 0.0) {
            wrong.push(format!("\"{name}\" arrived {:.1} ms early", -early));
        }
        self.wrong = wrong;
    }
}

/// The time in ms from due to arrival. Due is the later of the due times of the job and of the attempt.
fn lateness(arrival: &Arrival, job: &Submitted) -> f64 {
    let due = arrival.due_at().map_or(job.due, |due| due.max(job.due));
    arrival.at.duration_since(due).as_secs_f64() * 1000.0
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Dead(reason) => write!(f, "dead ({reason})"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// The table as text: a heading and a line per job.
pub(crate) fn of(jobs: &[DemoResult]) -> String {
    let row = |name: &str, attempts: &str, end: &str, late: &str, verdict: &str| {
        format!("{name:19}{attempts:12}{end:19}{late:27}{verdict}").trim_end().to_owned() + "\n"
    };
    let mut table = row("job", "attempts", "ended as", "lateness of each, ms", "");
    for job in jobs {
        let late: Vec<String> = job.lateness.iter().map(|late| format!("{late:.1}")).collect();
        let attempts = format!("{} of {}", job.attempts, job.expected);
        let verdict = if job.wrong.is_empty() { "ok" } else { "WRONG" };
        table += &row(job.name, &attempts, &job.end, &late.join("  "), verdict);
    }
    table
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::demo::cases::cases;

    fn submitted(name: &str) -> Submitted {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        Submitted { case, id: "x".to_owned(), due: Timestamp::from_millisecond(1_000).unwrap() }
    }

    fn arrival(at: i64, attempt: &'static str) -> Arrival {
        let mut headers = HeaderMap::new();
        headers.insert("ringback-attempt", HeaderValue::from_static(attempt));
        headers.insert("ringback-due-at", HeaderValue::from_static("1970-01-01T00:00:01.500Z"));
        let at = Timestamp::from_millisecond(at).unwrap();
        let body = Bytes::from_static(br#"{"job":"x"}"#);
        Arrival { at, method: "POST".to_owned(), path: "/demo".to_owned(), headers, body }
    }

    #[test]
    fn an_expected_result_is_ok() {
        let seen =
            DemoResult::new(&submitted("due now"), &[arrival(1_503, "1")], &json!({ "state": "done" }));
        assert!(seen.wrong.is_empty(), "{:?}", seen.wrong);
        let line = of(&[seen]).lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "due now 1 of 1 done 3.0 ok");
    }

    #[test]
    fn every_difference_is_printed() {
        let last = json!({ "state": "dead", "reason": "lost" });
        let seen = DemoResult::new(&submitted("always fails"), &[arrival(1_400, "2")], &last);
        let expected = [
            "\"always fails\" should have arrived 3 times; arrivals seen: 1",
            "\"always fails\" should be dead (exhausted) by now, and is dead (lost)",
            "\"always fails\" arrived with attempt 2 in place of 1",
            "\"always fails\" arrived 100.0 ms early",
        ];
        assert_eq!(seen.wrong, expected);
        assert!(of(&[seen]).contains("WRONG"));
    }
}
