//! Writes the deliveries of a receiver into a history.

use http::header::RETRY_AFTER;

use super::Arrival;
use super::answer::{Answer, End};
use crate::history::{Arrive, Digest, Entry, History, Respond};

/// Writes deliveries into a history.
pub(super) struct Recorder {
    pub(super) history: History,
}

/// A delivery that has arrived.
pub(super) struct Delivery<'a> {
    history: &'a History,
    d: u64,
}

impl Recorder {
    pub(super) fn arrived(&self, arrival: &Arrival) -> Delivery<'_> {
        let d = self.history.next();
        let (topic, id) = (arrival.header("ringback-topic").unwrap_or_default(), arrival.job_id());
        let at = u64::try_from(arrival.at.as_microsecond()).expect("it is after 1970");
        self.history.write(&Entry::Arrive(Arrive {
            t: at.saturating_sub(self.history.wall()),
            d,
            job: &format!("{topic}/{id}"),
            attempt: arrival.attempt().and_then(|attempt| u32::try_from(attempt).ok()).unwrap_or_default(),
            due: arrival.due_at().and_then(|due| u64::try_from(due.as_millisecond()).ok()),
            webhook: arrival.header("webhook-id"),
            stamp: arrival.header("webhook-timestamp").and_then(|stamp| stamp.parse().ok()),
            signed: None,
            url: &format!("http://{}{}", arrival.header("host").unwrap_or_default(), arrival.path),
            body: Digest::of(&arrival.body),
            headers: own_headers(arrival),
        }));
        Delivery { history: &self.history, d }
    }
}

/// The digest of the headers that the job brought. Recorded runs name such headers `x-…` or send them as context.
fn own_headers(arrival: &Arrival) -> Digest {
    let own = arrival.headers.iter().filter_map(|(name, value)| {
        let name = name.as_str();
        let is_own = name.starts_with("x-") || name.starts_with("ringback-context-");
        is_own.then_some((name, value.to_str().unwrap_or_default()))
    });
    Digest::of_headers(own)
}

impl Delivery<'_> {
    /// Writes the end of the delivery: the status and `retry-after` of a response, or else status 0 and a cut. Must be
    /// called just before the last byte of the answer is sent.
    pub(super) fn answers(&self, answer: &Answer) {
        match &answer.end {
            End::Response { status, headers, .. } => {
                let after = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(RETRY_AFTER.as_str()));
                let seconds = after.and_then(|(_, value)| value.parse::<u64>().ok());
                self.respond(*status, false, seconds.map(|seconds| seconds * 1_000));
            }
            End::Raw(_) | End::Close => self.respond(0, true, None),
        }
    }

    /// Writes that the caller went away before the answer.
    pub(super) fn hung_up(&self) {
        self.respond(0, true, None);
    }

    fn respond(&self, status: u16, cut: bool, retry_after: Option<u64>) {
        let (t, d) = (self.history.t(), self.d);
        self.history.write(&Entry::Respond(Respond { t, d, status, cut, unexpected: false, retry_after }));
    }
}
