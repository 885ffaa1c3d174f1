//! Answers with the attempt log of a job, and the start of a response as text or base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringback_core::clock::millis;
use ringback_core::store_types::{Attempt, MAX_ANSWER};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The last attempts of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptsResponse {
    /// At most 20, the newest last.
    pub items: Vec<LoggedAttempt>,
}

/// One attempt: `status` if there was a response, `error` if there was none or its body was not the
/// expected one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoggedAttempt {
    /// Its number, from 1. A missing number was not logged.
    pub attempt: u32,
    /// When it was sent; for a pull job when it was reserved.
    #[schema(format = DateTime)]
    pub at: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The response's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The class of the error, or the text that a consumer gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The first 1,024 bytes of the response, if they are text in UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The first 1,024 bytes of the response in base64, if they are not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_base64: Option<String>,
    /// Who made it: the machine and process of a notifier, or `consumer`.
    pub by: String,
}

impl From<Attempt> for LoggedAttempt {
    fn from(attempt: Attempt) -> Self {
        let (answer, answer_base64) = shown(&attempt.answer);
        Self {
            attempt: attempt.number,
            at: attempt.at.to_string(),
            duration_ms: millis(attempt.duration),
            status: attempt.status,
            error: attempt.error,
            answer,
            answer_base64,
            by: attempt.by,
        }
    }
}

/// The start of a response as the fields `answer` (text) and `answer_base64` (other bytes); neither if it is empty.
pub(super) fn shown(start: &[u8]) -> (Option<String>, Option<String>) {
    match text(start) {
        Some("") => (None, None),
        Some(text) => (Some(text.to_owned()), None),
        None => (None, Some(STANDARD.encode(start))),
    }
}

/// The start of a response as text; `None` if it is not UTF-8. An incomplete last character is dropped if it was cut.
fn text(start: &[u8]) -> Option<&str> {
    match std::str::from_utf8(start) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() && start.len() >= MAX_ANSWER => {
            std::str::from_utf8(&start[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(bytes: &[u8]) -> LoggedAttempt {
        Attempt { answer: bytes.to_vec().into(), ..Attempt::default() }.into()
    }

    #[test]
    fn a_response_is_text_if_it_is_utf_8_and_base64_otherwise() {
        let shown = |bytes: &[u8]| {
            let answer = answered(bytes);
            (answer.answer, answer.answer_base64)
        };
        assert_eq!(shown(b""), (None, None));
        assert_eq!(shown("kaputt: ä".as_bytes()), (Some("kaputt: ä".to_owned()), None));
        assert_eq!(shown(&[0xff, 0]), (None, Some("/wA=".to_owned())));
        // It ended in the middle of a character, and was not cut off.
        assert_eq!(shown(&"ä".as_bytes()[..1]), (None, Some("ww==".to_owned())));
    }

    #[test]
    fn a_response_that_was_cut_off_ends_with_a_whole_character() {
        let long = format!("x{}", "ä".repeat(600));
        let answer = answered(&long.as_bytes()[..MAX_ANSWER]).answer.unwrap();
        assert_eq!((answer.len(), answer.chars().last()), (MAX_ANSWER - 1, Some('ä')));
        let answer = answered(&"𝄞".repeat(300).as_bytes()[..MAX_ANSWER]).answer.unwrap();
        assert_eq!(answer.len(), MAX_ANSWER);
    }

    #[test]
    fn absent_values_are_left_out() {
        let json = serde_json::to_string(&LoggedAttempt::from(Attempt::default())).unwrap();
        assert_eq!(json, r#"{"attempt":0,"at":"1970-01-01T00:00:00.000Z","duration_ms":0,"by":""}"#);
    }
}
