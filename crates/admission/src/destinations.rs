//! Judges the URLs of requests by the address guard, so that a caller hears at once what the notifier would refuse.
//! A name whose addresses are forbidden is found by the notifier, which looks it up.

use ringback_core::job::{Callback, NewJob};
use ringback_core::wire::{FieldError, Problem};
use ringback_egress::Guard;
use ringback_store::Store;

use crate::principal::Principal;

/// Judges the URLs of requests.
pub struct Destinations {
    guard: Guard,
    store: Store,
}

impl Destinations {
    /// Judges by a guard, for a store that may be older than the guard.
    pub const fn new(guard: Guard, store: Store) -> Self {
        Self { guard, store }
    }

    /// Judges where a job goes, and where the notices of its end go. URLs that it has from the policy of its topic are
    /// judged here too, and not when the policy is set: a restore must be able to set it.
    ///
    /// # Errors
    /// 422 with each URL that it may not have.
    pub fn check_job(&self, job: &NewJob, caller: &Principal) -> Result<(), Problem> {
        let judge =
            |(field, url): (&str, &Callback)| self.judge(field, url).or_else(|| caller.judge(field, url));
        let errors: Vec<_> = urls(job).filter_map(judge).collect();
        if errors.is_empty() { Ok(()) } else { Err(Problem::fields(errors)) }
    }

    /// Judges where an imported job goes, unless the operator imports it: a restore loses nothing.
    ///
    /// # Errors
    /// 422 with each URL that it may not have.
    pub fn check_import(&self, job: &NewJob, caller: &Principal) -> Result<(), Problem> {
        if caller.is_operator() { Ok(()) } else { self.check_job(job, caller) }
    }

    fn judge(&self, field: &str, url: &Callback) -> Option<FieldError> {
        // Where jobs are older than the guard, they and those that come go on.
        if url.is_pull() || !self.guard.is_enforced(|| self.store.is_guarded()) {
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

/// The URLs of a job, by their fields.
fn urls(job: &NewJob) -> impl Iterator<Item = (&'static str, &Callback)> {
    let on_dead = job.delivery.on_dead.as_deref().map(|url| ("on_dead", url));
    let on_done = job.delivery.on_done.as_deref().map(|url| ("on_done", url));
    std::iter::once(("url", &job.delivery.callback)).chain(on_dead).chain(on_done)
}
