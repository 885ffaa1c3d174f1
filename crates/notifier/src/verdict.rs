//! What an answer means. Pure: the whole table of the callback contract in one function.

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use ringback_core::clock::Timestamp;
use ringback_core::outcome::Reason;

use crate::client::{Answer, CallError};

/// How long a job waits that could not be tried for a lack on this machine.
const BREATHER: Duration = Duration::from_secs(1);

/// The meaning of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The receiver has it.
    Complete,
    /// Again on the schedule, and not before what the receiver asked for.
    Failed { retry_after: Option<Duration> },
    /// Never again.
    Bury(Reason),
    /// It was not tried: our own fault, no failure.
    Release(Duration),
}

/// Judges an attempt. `now` is for a Retry-After that names a date.
pub(crate) fn verdict(answer: &Result<Answer, CallError>, now: Timestamp) -> Verdict {
    match answer {
        Ok(answer) if answer.status.is_success() && answer.is_expected => Verdict::Complete,
        Ok(answer) if answer.status == StatusCode::GONE => Verdict::Bury(Reason::Gone),
        Ok(answer) => Verdict::Failed { retry_after: retry_after(&answer.headers, now) },
        Err(CallError::Timeout | CallError::Connect | CallError::Body | CallError::Broken) => {
            Verdict::Failed { retry_after: None }
        }
        Err(CallError::Ports | CallError::Local) => Verdict::Release(BREATHER),
    }
}

/// Seconds or a date (RFC 9110, section 10.2.3); anything else is no wish at all.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now.as_millis());
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000);

    fn answered(status: u16, after: Option<&str>) -> Verdict {
        let mut headers = HeaderMap::new();
        if let Some(after) = after {
            headers.insert(RETRY_AFTER, after.parse().unwrap());
        }
        judged(status, headers, true)
    }

    fn judged(status: u16, headers: HeaderMap, is_expected: bool) -> Verdict {
        let status = StatusCode::from_u16(status).unwrap();
        verdict(&Ok(Answer { status, headers, start: bytes::Bytes::new(), is_expected }), NOW)
    }

    fn failed(seconds: Option<u64>) -> Verdict {
        Verdict::Failed { retry_after: seconds.map(Duration::from_secs) }
    }

    #[test]
    fn every_status_has_its_meaning() {
        for status in 200..=299 {
            assert_eq!(answered(status, None), Verdict::Complete, "{status}");
        }
        for status in (300..=599).filter(|s| *s != 410) {
            assert_eq!(answered(status, None), failed(None), "{status}");
        }
        assert_eq!(answered(410, Some("5")), Verdict::Bury(Reason::Gone));
    }

    #[test]
    fn a_success_with_another_body_than_expected_is_a_failure() {
        for status in 200..=299 {
            assert_eq!(judged(status, HeaderMap::new(), false), failed(None), "{status}");
        }
        assert_eq!(judged(410, HeaderMap::new(), false), Verdict::Bury(Reason::Gone));
        let later = HeaderMap::from_iter([(RETRY_AFTER, "9".parse().unwrap())]);
        assert_eq!(judged(200, later, false), failed(Some(9)));
    }

    #[test]
    fn an_attempt_without_an_answer_failed_unless_it_was_our_fault() {
        for error in [CallError::Timeout, CallError::Connect, CallError::Body, CallError::Broken] {
            assert_eq!(verdict(&Err(error), NOW), failed(None), "{error:?}");
        }
        for error in [CallError::Ports, CallError::Local] {
            assert_eq!(verdict(&Err(error), NOW), Verdict::Release(BREATHER), "{error:?}");
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date_on_any_failing_status() {
        assert_eq!(answered(503, Some("120")), failed(Some(120)));
        assert_eq!(answered(404, Some(" 7 ")), failed(Some(7)));
        assert_eq!(answered(429, Some("Sun, 06 Nov 1994 08:50:07 GMT")), failed(Some(30)));
        assert_eq!(answered(429, Some("Sun, 06 Nov 1994 08:00:00 GMT")), failed(Some(0)));
        for nonsense in ["soon", "-5", "1.5", ""] {
            assert_eq!(answered(503, Some(nonsense)), failed(None), "{nonsense:?}");
        }
    }
}
