//! The measured job, of the same sizes as that of the benchmarks: body 217 B, id 22 B, a topic of 10
//! characters, and a URL of 49 B where nothing is delivered.

use ringback_core::clock::Timestamp;
use ringback_core::job::NewJob;
use ringback_wire::{Defaults, parse_job};

/// The URL of jobs that are never delivered.
pub(crate) const URL: &str = "https://merchant.example/pppppppppppppppppppppppp";

/// The JSON text of a job that is due after `delay` seconds.
pub(crate) fn text(number: usize, url: &str, delay: f64) -> String {
    let filler = "x".repeat(161);
    format!(
        r#"{{"topic":"pay.notify","id":"order-{number:016}","url":"{url}","delay":{delay},"body":{{"order":"{number:016}","status":"PAID","filler":"{filler}"}}}}"#
    )
}

/// Parses the text of a job.
///
/// # Panics
/// When the text is not a valid job.
pub(crate) fn parse(text: &str) -> NewJob {
    let defaults = Defaults {
        // A job with a delay does not depend on the current time.
        now: Timestamp::default(),
        make_id: &mut |_: &_| unreachable!("every job has an id"),
        make_token: &mut || unreachable!("no job changes another"),
        trace: None,
        tenant: None,
    };
    parse_job(text.as_bytes(), defaults).expect("the measured job is valid")
}
