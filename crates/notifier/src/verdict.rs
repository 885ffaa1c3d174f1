//! The meaning of a response under the callback contract: complete, failed, bury or release. Pure.

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use ringback_core::clock::Timestamp;
use ringback_core::outcome::Reason;

use crate::client::{PostError, PostResponse};

/// How long a job waits if this machine was out of resources to send it.
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// How long a job waits if calls that hang hold too many places at its receiver's address.
const CROWDED_DELAY: Duration = Duration::from_secs(5);

/// How long a job waits if a secret that signs it cannot be opened, which takes an operator.
const UNSIGNED_DELAY: Duration = Duration::from_secs(5);

/// The meaning of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The receiver has accepted the job.
    Complete,
    /// Retry on the schedule of the job, but not before the receiver's `Retry-After`.
    Failed { retry_after: Option<Duration> },
    /// Do not retry.
    Bury(Reason),
    /// Nothing was sent, so this does not count as a failure.
    Release(Duration),
}

/// Interprets a response. `now` is needed for a `Retry-After` that names a date.
pub(crate) fn verdict(answer: &Result<PostResponse, PostError>, bury_on: &[u16], now: Timestamp) -> Verdict {
    match answer {
        Ok(answer) if answer.status.is_success() && answer.is_expected => Verdict::Complete,
        Ok(answer) if answer.status == StatusCode::GONE => Verdict::Bury(Reason::Gone),
        Ok(answer) if bury_on.contains(&answer.status.as_u16()) => Verdict::Bury(Reason::Rejected),
        Ok(answer) => Verdict::Failed { retry_after: retry_after(&answer.headers, now) },
        Err(PostError::Forbidden) => Verdict::Bury(Reason::ForbiddenAddress),
        Err(PostError::Ports | PostError::Local) => Verdict::Release(RELEASE_DELAY),
        Err(PostError::Crowded) => Verdict::Release(CROWDED_DELAY),
        Err(PostError::Unsigned) => Verdict::Release(UNSIGNED_DELAY),
        Err(_) => Verdict::Failed { retry_after: None },
    }
}

/// Parses `Retry-After`: seconds or a date (RFC 9110, section 10.2.3). Anything else is ignored.
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
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;
    use ringback_core::retry::{MAX_RETRY_AFTER, RetryPolicy};

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
        verdict(&Ok(PostResponse { status, headers, body: bytes::Bytes::new(), is_expected }), &[], NOW)
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
    fn a_status_that_the_policy_says_is_final_buries_the_job() {
        let answered = |status: u16, is_expected| {
            let (status, headers) = (StatusCode::from_u16(status).unwrap(), HeaderMap::new());
            let answer = PostResponse { status, headers, body: bytes::Bytes::new(), is_expected };
            verdict(&Ok(answer), &[400, 410, 503], NOW)
        };
        for (status, expected) in [
            (400, Verdict::Bury(Reason::Rejected)),
            (503, Verdict::Bury(Reason::Rejected)),
            (410, Verdict::Bury(Reason::Gone)),
            (404, failed(None)),
            (200, Verdict::Complete),
        ] {
            assert_eq!(answered(status, true), expected, "{status}");
        }
        assert_eq!(answered(200, false), failed(None));
    }

    #[test]
    fn an_attempt_without_an_answer_failed_unless_it_was_our_fault() {
        for error in
            [PostError::Timeout, PostError::Dns, PostError::Refused, PostError::Body, PostError::Broken]
        {
            assert_eq!(verdict(&Err(error), &[400], NOW), failed(None), "{error:?}");
        }
        assert_eq!(verdict(&Err(PostError::Forbidden), &[], NOW), Verdict::Bury(Reason::ForbiddenAddress));
        for error in [PostError::Ports, PostError::Local] {
            assert_eq!(verdict(&Err(error), &[400], NOW), Verdict::Release(RELEASE_DELAY), "{error:?}");
        }
        assert_eq!(verdict(&Err(PostError::Crowded), &[], NOW), Verdict::Release(CROWDED_DELAY));
        assert_eq!(verdict(&Err(PostError::Unsigned), &[], NOW), Verdict::Release(UNSIGNED_DELAY));
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

    #[test]
    fn random_answers_have_a_verdict_and_no_retry_after_moves_a_retry_beyond_its_limit() {
        let samples =
            ["200", "503 120", "429 Sun, 06 Nov 1994 08:50:07 GMT", "404 18446744073709551615", "410 5"];
        let policy: RetryPolicy = "1s 30d".parse().unwrap();
        ringback_fuzz::run(&samples, |bytes| {
            let (status, after) = bytes.split_at(bytes.len().min(3));
            let Ok(code) = StatusCode::from_bytes(status) else { return };
            let Ok(after) = http::HeaderValue::from_bytes(after) else { return };
            let is_expected = bytes.len() % 2 == 0;
            match judged(code.as_u16(), HeaderMap::from_iter([(RETRY_AFTER, after)]), is_expected) {
                Verdict::Complete => assert!(code.is_success() && is_expected),
                Verdict::Bury(reason) => assert_eq!((reason, code), (Reason::Gone, StatusCode::GONE)),
                Verdict::Failed { retry_after } => {
                    let mut rng = StdRng::seed_from_u64(bytes.len() as u64);
                    let delay = policy.delay(1, retry_after, &mut rng).expect("a retry");
                    assert!(delay <= MAX_RETRY_AFTER + Duration::from_secs(1), "{delay:?}");
                    assert!(delay >= retry_after.unwrap_or_default().min(MAX_RETRY_AFTER), "{delay:?}");
                }
                Verdict::Release(_) => panic!("an answer is no release"),
            }
        });
    }
}
