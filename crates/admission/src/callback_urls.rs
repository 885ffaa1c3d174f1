//! Checks the URLs of requests, so that a caller learns at once what the notifier could not send to, or the address
//! guard forbids. A name whose addresses are forbidden is only found by the notifier, which resolves it.

use ringback_core::job::{Callback, NewJob, Refused};
use ringback_egress::Guard;
use ringback_wire::{FieldError, Problem};

use crate::principal::Principal;

/// Checks the URLs of requests.
pub struct Destinations {
    guard: Guard,
}

impl Destinations {
    pub const fn new(guard: Guard) -> Self {
        Self { guard }
    }

    /// Checks where a job goes, and where the notices of its end go. A URL from the policy of the topic is checked here
    /// too, and not when the policy is set, because a restore must be able to set it.
    ///
    /// # Errors
    /// 422 with each URL that it may not have.
    pub fn check_job(&self, job: &NewJob, caller: &Principal) -> Result<(), Problem> {
        judged(urls(job), |field, url| cannot_be_sent(field, url).or_else(|| self.judge(field, url, caller)))
    }

    /// Checks where an imported job goes, unless the operator imports it, since a restore must lose nothing. A URL that
    /// no client can send to is accepted; the notifier reports it.
    ///
    /// # Errors
    /// 422 with each URL that it may not have.
    pub fn check_import(&self, job: &NewJob, caller: &Principal) -> Result<(), Problem> {
        if caller.is_operator() {
            return Ok(());
        }
        judged(urls(job), |field, url| self.judge(field, url, caller))
    }

    fn judge(&self, field: &str, url: &Callback, caller: &Principal) -> Option<FieldError> {
        self.judge_by_guard(field, url).or_else(|| caller.judge(field, url))
    }

    fn judge_by_guard(&self, field: &str, url: &Callback) -> Option<FieldError> {
        if url.is_pull() {
            return None;
        }
        let forbidden = self.guard.judge_origin(url.origin()).err()?;
        Some(FieldError {
            field: field.to_owned(),
            detail: forbidden.to_string(),
            allowed: forbidden.allowed().to_owned(),
        })
    }
}

/// What is wrong with the URL of a field; `None` if a client can send to it.
pub fn cannot_be_sent(field: &str, url: &Callback) -> Option<FieldError> {
    let Refused { detail, allowed } = url.check().err()?;
    Some(FieldError { field: field.to_owned(), detail, allowed: allowed.to_owned() })
}

/// Fails with 422 and all errors that `judge` finds in the URLs, if there are any.
fn judged<'a>(
    urls: impl Iterator<Item = (&'static str, &'a Callback)>,
    judge: impl Fn(&'static str, &Callback) -> Option<FieldError>,
) -> Result<(), Problem> {
    let errors: Vec<_> = urls.filter_map(|(field, url)| judge(field, url)).collect();
    if errors.is_empty() { Ok(()) } else { Err(Problem::fields(errors)) }
}

fn urls(job: &NewJob) -> impl Iterator<Item = (&'static str, &Callback)> {
    let on_dead = job.delivery.on_dead.as_deref().map(|url| ("on_dead", url));
    let on_done = job.delivery.on_done.as_deref().map(|url| ("on_done", url));
    std::iter::once(("url", &job.delivery.callback)).chain(on_dead).chain(on_done)
}
