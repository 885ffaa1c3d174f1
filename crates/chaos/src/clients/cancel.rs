//! Clients that cancel, reschedule or run jobs around their due times.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::Method;
use ringback_testkit::history::{Call, Entry, MoveCall, MoveKind};
use tokio::time::sleep;

use super::{Clients, SubmittedJob};

/// How often a cancel is repeated while its outcome is unknown.
const REPETITIONS: usize = 3;
/// The longest wait for a due time, in ms.
const MAX_WAIT: i64 = 3_000;

pub(super) async fn run(clients: Arc<Clients>, mut rng: StdRng) {
    while !clients.is_over() {
        sleep(Duration::from_millis(rng.random_range(50..350))).await;
        // Leaves out jobs that may be replaced, because their fate is not certain.
        let Some(job) = clients.recent(&mut rng).filter(|job| !job.id.starts_with("again-")) else {
            continue;
        };
        match rng.random_range(0..10) {
            0..7 => {
                wait_until_due(&job, &mut rng).await;
                cancel(&clients, &job, &mut rng).await;
            }
            7..9 => reschedule(&clients, &job, rng.random_range(0..1_500)).await,
            _ => run_now(&clients, &job).await,
        }
    }
}

/// Waits until 5 ms before to 5 ms after the due time, at most [`MAX_WAIT`]. Returns at once if that time is unknown.
async fn wait_until_due(job: &SubmittedJob, rng: &mut StdRng) {
    let Some(due) = job.due.and_then(|due| i64::try_from(due).ok()) else { return };
    let wait = due - ringback_testkit::now().as_millisecond() + rng.random_range(-5..=5);
    if let Ok(wait) = u64::try_from(wait.min(MAX_WAIT)) {
        sleep(Duration::from_millis(wait)).await;
    }
}

async fn cancel(clients: &Clients, job: &SubmittedJob, rng: &mut StdRng) {
    let history = &clients.history;
    for _ in 0..REPETITIONS {
        let n = history.next();
        history.write(&Entry::Cancel(Call { t: history.t(), n, job: &job.name() }));
        let outcome = clients.api.call(Method::DELETE, &path(job), None).await;
        outcome.write(history, n);
        if !outcome.is_unknown() && rng.random_range(0..20) != 0 {
            return;
        }
    }
}

async fn reschedule(clients: &Clients, job: &SubmittedJob, delay: u64) {
    let (history, n) = (&clients.history, clients.history.next());
    let kind = MoveKind::Reschedule;
    history.write(&Entry::Move(MoveCall {
        t: history.t(),
        n,
        job: &job.name(),
        kind,
        at: None,
        delay: Some(delay),
    }));
    let body = format!(r#"{{"delay":"{delay}ms"}}"#);
    clients.api.call(Method::PATCH, &path(job), Some(body)).await.write(history, n);
}

async fn run_now(clients: &Clients, job: &SubmittedJob) {
    let (history, n) = (&clients.history, clients.history.next());
    let kind = MoveKind::Run;
    history.write(&Entry::Move(MoveCall {
        t: history.t(),
        n,
        job: &job.name(),
        kind,
        at: None,
        delay: None,
    }));
    clients.api.call(Method::POST, &format!("{}/run", path(job)), None).await.write(history, n);
}

fn path(job: &SubmittedJob) -> String {
    format!("/v1/jobs/{}", job.name())
}
