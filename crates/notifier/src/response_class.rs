//! Classifies the response or error of an attempt: complete, failed, bury or release; and what it asks for other callbacks.
//! Also reads `Retry-After`. Pure.

use std::time::{Duration, SystemTime};

use http::header::{DATE, RETRY_AFTER};
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

/// How long callbacks wait after a 429 that names no time.
const UNNAMED_DELAY: Duration = Duration::from_secs(1);

/// The meaning of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponseClass {
    /// The receiver has accepted the job.
    Complete,
    /// Retry on the schedule of the job, but not before the receiver's `Retry-After`.
    Failed { retry_after: Option<Duration> },
    /// Do not retry.
    Bury(Reason),
    /// Nothing was sent, so this does not count as a failure.
    Release(Duration),
}

/// Classifies a response or an error. `bury_on` has the statuses after which a job is not retried, beside 410. `now` is
/// needed for a `Retry-After` that names a date.
pub(crate) fn classify(
    answer: &Result<PostResponse, PostError>,
    bury_on: &[u16],
    now: Timestamp,
) -> ResponseClass {
    match answer {
        Ok(answer) if answer.status.is_success() && answer.is_expected => ResponseClass::Complete,
        Ok(answer) if answer.status == StatusCode::GONE => ResponseClass::Bury(Reason::Gone),
        Ok(answer) if bury_on.contains(&answer.status.as_u16()) => ResponseClass::Bury(Reason::Rejected),
        Ok(answer) => ResponseClass::Failed { retry_after: retry_after(&answer.headers, now) },
        Err(PostError::Forbidden) => ResponseClass::Bury(Reason::ForbiddenAddress),
        Err(PostError::Ports | PostError::Local) => ResponseClass::Release(RELEASE_DELAY),
        Err(PostError::Crowded) => ResponseClass::Release(CROWDED_DELAY),
        Err(PostError::Unsigned) => ResponseClass::Release(UNSIGNED_DELAY),
        Err(_) => ResponseClass::Failed { retry_after: None },
    }
}

/// How long a receiver wants no callbacks: by 429, a second if it names no time, or by 503 with `Retry-After`.
pub(crate) fn slows(response: &PostResponse, now: Timestamp) -> Option<Duration> {
    let after = || retry_after(&response.headers, now);
    match response.status {
        StatusCode::TOO_MANY_REQUESTS => Some(after().unwrap_or(UNNAMED_DELAY)),
        StatusCode::SERVICE_UNAVAILABLE => after(),
        _ => None,
    }
}

/// Whether it says "this job later": 425 with `Retry-After`. It says nothing about the receiver.
pub(crate) fn is_later(response: &PostResponse) -> bool {
    response.status.as_u16() == 425 && response.headers.contains_key(RETRY_AFTER)
}

/// The wait that `Retry-After` asks for: seconds or a date (RFC 9110, section 10.2.3), the longest if there are
/// several. A date is relative to the `Date` of the response, else to `now`. `None` if there is no valid value.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let now = || {
        let date = headers.get(DATE).and_then(|date| date_of(date.to_str().ok()?));
        date.unwrap_or_else(|| SystemTime::UNIX_EPOCH + Duration::from_millis(now.as_millis()))
    };
    let wait = |text: &str| {
        let until = || Some(date_of(text)?.duration_since(now()).unwrap_or_default());
        seconds(text).or_else(until)
    };
    let values = headers.get_all(RETRY_AFTER).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| split(value).filter_map(wait).max()).max()
}

/// Splits a header that was joined of several values (RFC 9110, section 5.3). The comma within a date does not
/// separate.
fn split(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest?;
        let word =
            text.trim_start().split(|sign: char| !sign.is_ascii_alphabetic()).next().unwrap_or_default();
        let is_day =
            word.ends_with("day") || ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains(&word);
        let from = if is_day && text.trim_start()[word.len()..].starts_with(',') {
            text.find(',').map_or(0, |comma| comma + 1)
        } else {
            0
        };
        let end = text[from..].find(',').map(|comma| from + comma);
        rest = end.map(|end| &text[end + 1..]);
        Some(end.map_or(text, |end| &text[..end]).trim())
    })
}

/// Parses seconds, with a fraction, as some servers send it, rounded up. A number that is too large is the largest one.
/// `None` if the text is not a number.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let more = u64::from(fraction.bytes().any(|digit| digit != b'0'));
    Some(Duration::from_secs(whole.parse::<u64>().unwrap_or(u64::MAX).saturating_add(more)))
}

fn date_of(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;
    use ringback_core::retry::{MAX_RETRY_AFTER, RetryPolicy};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000);

    fn answered(status: u16, after: Option<&str>) -> ResponseClass {
        let mut headers = HeaderMap::new();
        if let Some(after) = after {
            headers.insert(RETRY_AFTER, after.parse().unwrap());
        }
        judged(status, headers, true)
    }

    fn judged(status: u16, headers: HeaderMap, is_expected: bool) -> ResponseClass {
        let status = StatusCode::from_u16(status).unwrap();
        classify(&Ok(PostResponse { status, headers, body: bytes::Bytes::new(), is_expected }), &[], NOW)
    }

    fn failed(seconds: Option<u64>) -> ResponseClass {
        ResponseClass::Failed { retry_after: seconds.map(Duration::from_secs) }
    }

    #[test]
    fn every_status_has_its_meaning() {
        for status in 200..=299 {
            assert_eq!(answered(status, None), ResponseClass::Complete, "{status}");
        }
        for status in (300..=599).filter(|s| *s != 410) {
            assert_eq!(answered(status, None), failed(None), "{status}");
        }
        assert_eq!(answered(410, Some("5")), ResponseClass::Bury(Reason::Gone));
    }

    #[test]
    fn a_429_and_a_503_with_retry_after_slow_other_callbacks_and_a_425_says_this_job_later() {
        for (status, after, seconds, later) in [
            (429, Some("7"), Some(7), false),
            (429, None, Some(1), false),
            (503, Some("3600"), Some(3600), false),
            (503, None, None, false),
            (500, Some("7"), None, false),
            (425, Some("7"), None, true),
            (425, None, None, false),
        ] {
            let after = after.map(|after| (RETRY_AFTER, after.parse().unwrap()));
            let headers = HeaderMap::from_iter(after);
            let status = StatusCode::from_u16(status).unwrap();
            let answer = PostResponse { status, headers, body: bytes::Bytes::new(), is_expected: false };
            let expected = (seconds.map(Duration::from_secs), later);
            assert_eq!((slows(&answer, NOW), is_later(&answer)), expected, "{status}");
        }
    }

    #[test]
    fn a_success_with_another_body_than_expected_is_a_failure() {
        for status in 200..=299 {
            assert_eq!(judged(status, HeaderMap::new(), false), failed(None), "{status}");
        }
        assert_eq!(judged(410, HeaderMap::new(), false), ResponseClass::Bury(Reason::Gone));
        let later = HeaderMap::from_iter([(RETRY_AFTER, "9".parse().unwrap())]);
        assert_eq!(judged(200, later, false), failed(Some(9)));
    }

    #[test]
    fn a_status_that_the_policy_says_is_final_buries_the_job() {
        let answered = |status: u16, is_expected| {
            let (status, headers) = (StatusCode::from_u16(status).unwrap(), HeaderMap::new());
            let answer = PostResponse { status, headers, body: bytes::Bytes::new(), is_expected };
            classify(&Ok(answer), &[400, 410, 503], NOW)
        };
        for (status, expected) in [
            (400, ResponseClass::Bury(Reason::Rejected)),
            (503, ResponseClass::Bury(Reason::Rejected)),
            (410, ResponseClass::Bury(Reason::Gone)),
            (404, failed(None)),
            (200, ResponseClass::Complete),
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
            assert_eq!(classify(&Err(error), &[400], NOW), failed(None), "{error:?}");
        }
        assert_eq!(
            classify(&Err(PostError::Forbidden), &[], NOW),
            ResponseClass::Bury(Reason::ForbiddenAddress)
        );
        for error in [PostError::Ports, PostError::Local] {
            assert_eq!(
                classify(&Err(error), &[400], NOW),
                ResponseClass::Release(RELEASE_DELAY),
                "{error:?}"
            );
        }
        assert_eq!(classify(&Err(PostError::Crowded), &[], NOW), ResponseClass::Release(CROWDED_DELAY));
        assert_eq!(classify(&Err(PostError::Unsigned), &[], NOW), ResponseClass::Release(UNSIGNED_DELAY));
    }

    #[test]
    fn retry_after_is_read_in_every_form_that_servers_send() {
        let huge = "9".repeat(40);
        for (text, expected) in [
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("007", Some(7)),
            ("0", Some(0)),
            ("1.5", Some(2)),
            ("3.000", Some(3)),
            (huge.as_str(), Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551615.9", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", Some(30)),
            ("Sun Nov  6 08:50:07 1994", Some(30)),
            ("  Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("5, 120", Some(120)),
            ("120,5", Some(120)),
            ("5, Sun, 06 Nov 1994 08:50:07 GMT, 7", Some(30)),
            ("Sun, 06 Nov 1994 08:50:07 GMT, Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("soon, 5", Some(5)),
            ("soon", None),
            ("-5", None),
            ("+5", None),
            ("1e3", None),
            ("5s", None),
            ("1.", None),
            (".5", None),
            ("1.5.2", None),
            ("NaN", None),
            (",", None),
            ("", None),
        ] {
            assert_eq!(answered(503, Some(text)), failed(expected), "{text:?}");
        }
        assert_eq!(answered(404, Some("7")), failed(Some(7)));
    }

    #[test]
    fn of_several_retry_after_the_longest_counts() {
        let headers = ["5", "Sun, 06 Nov 1994 08:50:07 GMT", "soon", "7"];
        let headers = headers.map(|text| (RETRY_AFTER, text.parse().unwrap()));
        assert_eq!(judged(503, HeaderMap::from_iter(headers), true), failed(Some(30)));
    }

    #[test]
    fn a_date_of_retry_after_is_by_the_clock_of_the_receiver() {
        let headers = |date: &str| {
            let after = "Sun, 06 Nov 1994 10:50:07 GMT".parse().unwrap();
            HeaderMap::from_iter([(RETRY_AFTER, after), (DATE, date.parse().unwrap())])
        };
        assert_eq!(judged(503, headers("Sun, 06 Nov 1994 10:49:37 GMT"), true), failed(Some(30)));
        assert_eq!(judged(503, headers("today"), true), failed(Some(2 * 3600 + 30)));
    }

    #[test]
    fn random_answers_have_a_class_and_no_retry_after_moves_a_retry_beyond_its_limit() {
        let samples =
            ["200", "503 120", "429 Sun, 06 Nov 1994 08:50:07 GMT", "404 18446744073709551615", "410 5"];
        let policy: RetryPolicy = "1s 30d".parse().unwrap();
        ringback_fuzz::run(&samples, |bytes| {
            let (status, after) = bytes.split_at(bytes.len().min(3));
            let Ok(code) = StatusCode::from_bytes(status) else { return };
            let Ok(after) = http::HeaderValue::from_bytes(after) else { return };
            let is_expected = bytes.len() % 2 == 0;
            match judged(code.as_u16(), HeaderMap::from_iter([(RETRY_AFTER, after)]), is_expected) {
                ResponseClass::Complete => assert!(code.is_success() && is_expected),
                ResponseClass::Bury(reason) => assert_eq!((reason, code), (Reason::Gone, StatusCode::GONE)),
                ResponseClass::Failed { retry_after } => {
                    let mut rng = StdRng::seed_from_u64(bytes.len() as u64);
                    let delay = policy.delay(1, retry_after, &mut rng).expect("a retry");
                    assert!(delay <= MAX_RETRY_AFTER + Duration::from_secs(1), "{delay:?}");
                    assert!(delay >= retry_after.unwrap_or_default().min(MAX_RETRY_AFTER), "{delay:?}");
                }
                ResponseClass::Release(_) => panic!("an answer is not a release"),
            }
        });
    }
}
