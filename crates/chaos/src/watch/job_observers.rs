//! Observers that read jobs during a run and write the state of each to the history.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use ringback_testkit::history::{Entry, JobState, Observed, state};
use tokio::time::sleep;

use crate::clients::{CallOutcome, Clients, SubmittedJob};

pub(super) const OBSERVERS: u64 = 2;
/// The pause between two looks of an observer.
const PAUSE: Duration = Duration::from_millis(40);
/// The number of latest jobs among which an observer chooses.
const LATEST: usize = 200;
/// How often a chosen job is read in a row.
const LOOKS: usize = 3;

/// Reads random ones of the [`LATEST`] known jobs until the task is dropped.
pub(super) async fn observe(clients: Arc<Clients>, number: u64) {
    let mut rng = StdRng::seed_from_u64(number);
    loop {
        let known = clients.known();
        let latest = &known[known.len().saturating_sub(LATEST)..];
        if !latest.is_empty() {
            let job = &latest[rng.random_range(0..latest.len())];
            for _ in 0..LOOKS {
                look(&clients, job).await;
            }
        }
        sleep(PAUSE).await;
    }
}

async fn look(clients: &Clients, job: &SubmittedJob) {
    let (history, name) = (&clients.history, job.name());
    let asked = history.t();
    let outcome = clients.api.call(Method::GET, &format!("/v1/jobs/{name}"), None).await;
    let state = match &outcome {
        CallOutcome::Ok(..) => state(&outcome.json()["state"]),
        CallOutcome::Refused(404) => Some(JobState::Nothing),
        CallOutcome::Refused(_) | CallOutcome::Unknown => None,
    };
    if let Some(state) = state {
        history.write(&Entry::State(Observed { t: history.t(), asked, job: &name, state, places: 1 }));
    }
}
