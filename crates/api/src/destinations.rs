//! Judges the URLs of requests by the address guard, so that a caller hears at once what the notifier would refuse.
//! A name whose addresses are forbidden is found by the notifier, which looks it up.

use ringback_core::job::{Callback, NewJob};
use ringback_core::policy::Policy;
use ringback_core::wire::{FieldError, Problem};
use ringback_egress::Guard;
use ringback_store::Store;

/// Judges the URLs of requests.
pub(crate) struct Destinations {
    guard: Guard,
    store: Store,
}

impl Destinations {
    pub(crate) const fn new(guard: Guard, store: Store) -> Self {
        Self { guard, store }
    }

    /// Judges where a job goes, and where the notice of its death goes.
    pub(crate) fn check_job(&self, job: &NewJob) -> Result<(), Problem> {
        let delivery = &job.delivery;
        self.check([("url", Some(&delivery.callback)), ("on_dead", delivery.on_dead.as_deref())])
    }

    /// Judges where the jobs of a topic go.
    pub(crate) fn check_policy(&self, policy: &Policy) -> Result<(), Problem> {
        self.check([("url", policy.url.as_ref()), ("on_dead", policy.on_dead.as_ref())])
    }

    fn check(&self, urls: [(&str, Option<&Callback>); 2]) -> Result<(), Problem> {
        // Jobs in a store from before the guard go on, and so do those that come.
        if !self.guard.is_enforced(self.store.is_guarded()) {
            return Ok(());
        }
        let judge = |(field, url): (&str, Option<&Callback>)| {
            let callback = url.filter(|url| !url.is_pull())?;
            let forbidden = self.guard.judge_origin(callback.origin()).err()?;
            Some(FieldError {
                field: field.to_owned(),
                detail: forbidden.to_string(),
                allowed: forbidden.allowed().to_owned(),
            })
        };
        let errors: Vec<_> = urls.into_iter().filter_map(judge).collect();
        if errors.is_empty() { Ok(()) } else { Err(Problem::fields(errors)) }
    }
}
