//! The answers of a receiver: chooses the status, one or a sequence of them for each job, and has the delay, the
//! headers and the body.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// The most jobs whose place in a sequence is remembered. Beyond that the oldest begins again.
const MAX_JOBS: usize = 10_000;
/// The longest webhook-id that is remembered, in bytes.
const MAX_ID: usize = 256;

/// The answers of a receiver.
pub(super) struct Answers {
    statuses: Vec<StatusCode>,
    pub(super) delay: Duration,
    pub(super) headers: HeaderMap,
    body: Bytes,
    counts: Mutex<Counts>,
}

/// How many answers each job got.
#[derive(Default)]
struct Counts {
    by_job: HashMap<Vec<u8>, usize>,
    /// The jobs, the oldest first.
    order: VecDeque<Vec<u8>>,
    /// Answers to requests without a webhook-id.
    others: usize,
}

impl Answers {
    /// Answers with these statuses in turn, of which the last repeats; with 200 if there are none.
    pub(super) fn new(
        statuses: Vec<StatusCode>,
        delay: Duration,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Option<String>,
    ) -> Self {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(name, value);
        }
        let body = body.unwrap_or_default().into();
        Self { statuses, delay, headers: all, body, counts: Mutex::default() }
    }

    /// The status of the next answer to the job of this webhook-id. All requests without one, or with one that is too
    /// long, count as those of one job.
    pub(super) fn next_status(&self, webhook_id: Option<&HeaderValue>) -> StatusCode {
        let id = webhook_id.map(HeaderValue::as_bytes).filter(|id| id.len() <= MAX_ID);
        let turn = match self.statuses.len() {
            0 | 1 => 0,
            _ => self.counts.lock().unwrap_or_else(PoisonError::into_inner).next(id),
        };
        self.statuses.get(turn).or(self.statuses.last()).copied().unwrap_or(StatusCode::OK)
    }

    /// The body of an answer with this status. Some statuses have none (RFC 9110, section 15).
    pub(super) fn body(&self, status: StatusCode) -> Bytes {
        match status {
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED => Bytes::new(),
            _ => self.body.clone(),
        }
    }
}

impl Counts {
    /// Counts an answer to a job, or to a request without an id, and returns how many came before it.
    fn next(&mut self, id: Option<&[u8]>) -> usize {
        let Some(id) = id else {
            self.others = self.others.saturating_add(1);
            return self.others - 1;
        };
        if let Some(count) = self.by_job.get_mut(id) {
            *count = count.saturating_add(1);
            return *count - 1;
        }
        if self.order.len() >= MAX_JOBS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_job.remove(&oldest);
        }
        self.order.push_back(id.to_owned());
        self.by_job.insert(id.to_owned(), 1);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(statuses: &[u16]) -> Answers {
        let statuses = statuses.iter().map(|status| StatusCode::from_u16(*status).unwrap()).collect();
        Answers::new(statuses, Duration::ZERO, Vec::new(), Some("success".to_owned()))
    }

    #[test]
    fn each_job_goes_through_the_sequence_and_the_last_status_repeats() {
        let answers = answers(&[500, 503, 200]);
        let (a, b) = (HeaderValue::from_static("a"), HeaderValue::from_static("b"));
        let ids = [Some(&a), Some(&b), Some(&a), None, Some(&a), Some(&a), Some(&b), None];
        let found = ids.map(|id| answers.next_status(id).as_u16());
        assert_eq!(found, [500, 500, 503, 500, 200, 200, 503, 503]);
    }

    #[test]
    fn only_the_latest_jobs_are_remembered() {
        let answers = answers(&[500, 200]);
        for n in 0..=MAX_JOBS {
            answers.next_status(Some(&HeaderValue::from(n)));
        }
        let counts = answers.counts.lock().unwrap();
        assert_eq!((counts.by_job.len(), counts.order.len()), (MAX_JOBS, MAX_JOBS));
        drop(counts);
        assert_eq!(answers.next_status(Some(&HeaderValue::from(MAX_JOBS))), 200);
        assert_eq!(answers.next_status(Some(&HeaderValue::from(0))), 500, "it was the oldest");
    }

    #[test]
    fn a_status_without_a_body_has_none() {
        let answers = answers(&[204]);
        assert_eq!(answers.body(StatusCode::NO_CONTENT), Bytes::new());
        assert_eq!(answers.body(StatusCode::OK), "success");
    }
}
