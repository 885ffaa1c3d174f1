//! Judges the URLs of requests, so that a caller hears at once what the notifier could not send or would refuse by the
//! address guard. A name whose addresses are forbidden is found by the notifier, which looks it up.

use ringback_core::job::{Callback, NewJob, Refused};
use ringback_egress::Guard;
use ringback_wire::{FieldError, Problem};

use crate::principal::Principal;

/// Judges the URLs of requests.
pub struct Destinations {
    guard: Guard,
}

impl Destinations {
    pub const fn new(guard: Guard) -> Self {
        Self { guard }
    }

    /// Judges where a job goes, and where the notices of its end go. URLs that it has from the policy of its topic are
    /// judged by the guard here too, and not when the policy is set: a restore must be able to set it.
    ///
    /// # Errors
    /// 422 with each URL that it may not have.
    pub fn check_job(&self, job: &NewJob, caller: &Principal) -> Result<(), Problem> {
        judged(urls(job), |field, url| cannot_be_sent(field, url).or_else(|| self.judge(field, url, caller)))
    }

    /// Judges where an imported job goes, unless the operator imports it: a restore loses nothing. What no client can
    /// send is taken too; the notifier says so.
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

/// What is wrong with a URL of a field if no client can send to it.
pub fn cannot_be_sent(field: &str, url: &Callback) -> Option<FieldError> {
    let Refused { detail, allowed } = url.check().err()?;
    Some(FieldError { field: field.to_owned(), detail, allowed: allowed.to_owned() })
}

/// 422 with each URL that is wrong.
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
