//! The receiver of callbacks: answers the attempts of each job by a script, and records them in the history.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use ringback_core::clock::Clock as _;
use ringback_core::written_time::parse_time;
use ringback_notifier::{LocalResponse, Receiver};
use tokio::time::sleep;

use crate::clock::VirtualClock;
use crate::history::{Attempt, History, ResponseKind};

/// An answer, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) answer: ResponseKind,
    pub(crate) after: Duration,
}

/// The replies to a job's attempts, in order. The last one repeats.
pub(crate) type Script = Vec<Reply>;

pub(crate) struct ScriptedReceiver {
    pub(crate) history: History,
    pub(crate) clock: VirtualClock,
    /// By job, as `topic/id`, with the number of attempts so far. A job without a script is answered with 200 at once.
    scripts: Mutex<BTreeMap<String, (Script, usize)>>,
}

impl ScriptedReceiver {
    pub(crate) fn new(history: History, clock: VirtualClock) -> Self {
        Self { history, clock, scripts: Mutex::default() }
    }

    pub(crate) fn script(&self, job: &str, script: Script) {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).insert(job.to_owned(), (script, 0));
    }

    fn next(&self, job: &str) -> Reply {
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let ok = Reply { answer: ResponseKind::Status(200), after: Duration::ZERO };
        let Some((script, count)) = scripts.get_mut(job) else { return ok };
        *count += 1;
        script.get(*count - 1).or(script.last()).copied().unwrap_or(ok)
    }
}

impl Receiver for ScriptedReceiver {
    fn receive(&self, request: Request<Bytes>) -> LocalResponse {
        let headers = request.headers();
        let job = format!("{}/{}", header(headers, "ringback-topic"), header(headers, "ringback-job-id"));
        let reply = self.next(&job);
        let attempt = Attempt {
            webhook_id: header(headers, "webhook-id").to_owned(),
            number: header(headers, "ringback-attempt").parse().expect("a number"),
            due: parse_time(header(headers, "ringback-due-at")).expect("a time"),
            body: String::from_utf8_lossy(request.body()).into_owned(),
            started: self.clock.now(),
            ended: None,
            answered: None,
            job,
        };
        let history = self.history.clone();
        let open = OpenAttempt { place: history.begin(attempt), history };
        Box::pin(async move {
            if !reply.after.is_zero() {
                sleep(reply.after).await;
            }
            let (status, headers) = match reply.answer {
                ResponseKind::Status(status) => (status, None),
                ResponseKind::RetryAfter(seconds) => (429, Some(seconds)),
                ResponseKind::Broken => {
                    open.end(reply.answer);
                    return None;
                }
                ResponseKind::Hang => std::future::pending().await,
            };
            open.end(reply.answer);
            let mut response = Response::builder().status(status);
            if let Some(seconds) = headers {
                response = response.header(http::header::RETRY_AFTER, seconds);
            }
            response.body(Bytes::new()).ok()
        })
    }
}

/// Records the end of an attempt; when dropped, an end without an answer, for the notifier has given up.
struct OpenAttempt {
    place: usize,
    history: History,
}

impl OpenAttempt {
    fn end(&self, answer: ResponseKind) {
        self.history.end(self.place, Some(answer));
    }
}

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        self.history.end(self.place, None);
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
