//! The measured job: body 217 B, URL 49 B, id 22 B, a topic of 10 characters.

use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::job::NewJob;
use ringback_wire::{Defaults, parse_job};
use serde_json::{Value, json};

/// The URL of jobs that are never delivered.
pub(crate) const URL: &str = "https://merchant.example/pppppppppppppppppppppppp";
/// The characters that fill the body up to its size.
const FILLER: usize = 217 - 56;

/// The measured job with a number. The fields of `more` are added, or replace those of the same name.
pub(crate) fn job(number: usize, url: &str, more: &Value) -> Value {
    let mut job = json!({
        "topic": "pay.notify",
        "id": format!("order-{number:016}"),
        "url": url,
        "body": { "order": format!("{number:016}"), "status": "PAID", "filler": filler() },
    });
    if let (Some(job), Some(more)) = (job.as_object_mut(), more.as_object()) {
        job.extend(more.clone());
    }
    job
}

/// The text that fills the body up to its size.
pub(crate) fn filler() -> String {
    "x".repeat(FILLER)
}

pub(crate) fn parse(job: &Value) -> NewJob {
    let defaults = Defaults {
        now: SystemClock.now(),
        make_id: &mut || unreachable!("every job has an id"),
        make_token: &mut || unreachable!("no job changes another"),
        trace: None,
        tenant: None,
    };
    parse_job(job.to_string().as_bytes(), defaults).expect("the measured job is valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_job_has_the_measured_sizes() {
        let job = job(7, URL, &json!({}));
        assert_eq!(job["url"].as_str().map(str::len), Some(49));
        assert_eq!(job["topic"].as_str().map(str::len), Some(10));
        assert_eq!(job["id"].as_str().map(str::len), Some(22));
        assert_eq!(job["body"].to_string().len(), 217);
    }
}
