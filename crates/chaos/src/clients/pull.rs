//! Consumers of pull jobs: most finish what they reserve; others retry, bury, release, renew, settle late or never.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::Method;
use ringback_testkit::history::{Digest, Entry, Lease, Reserve, Settle, SettleKind, millis};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::Clients;
use super::api::CallOutcome;

/// The limit of a reserve, which waits for a second.
const LIMIT: Duration = Duration::from_secs(4);
/// How often a settle is repeated while its outcome is unknown.
const REPETITIONS: usize = 3;

#[derive(Deserialize)]
struct ReservedJob<'a> {
    #[serde(borrow)]
    jobs: Vec<Job<'a>>,
}

#[derive(Deserialize)]
struct Job<'a> {
    receipt: String,
    topic: String,
    id: String,
    attempt: u32,
    deadline: String,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// Reserves pull jobs and works on them until the task is dropped. Every call is written to the history.
pub(super) async fn run(clients: Arc<Clients>, mut rng: StdRng) {
    loop {
        let (history, n) = (&clients.history, clients.history.next());
        history.write(&Entry::Reserve(Reserve { t: history.t(), n }));
        let ask = format!(r#"{{"max":{},"ttr":"600ms","wait":"1s"}}"#, rng.random_range(1..6));
        let path = "/v1/topics/pull/reserve";
        let outcome = clients.api.call_with(Method::POST, path, Some(ask), None, LIMIT).await;
        let CallOutcome::Ok(_, body) = &outcome else {
            outcome.write(history, n);
            sleep(Duration::from_millis(rng.random_range(20..200))).await;
            continue;
        };
        let t = history.t();
        let reserved: ReservedJob<'_> = serde_json::from_slice(body).expect("an answer to a reserve");
        for job in &reserved.jobs {
            history.write(&Entry::Lease(Lease {
                t,
                n,
                job: &format!("{}/{}", job.topic, job.id),
                token: &job.receipt,
                attempt: job.attempt,
                deadline: millis(&job.deadline.as_str().into()).expect("a time"),
                body: Digest::of(job.body.get().as_bytes()),
            }));
        }
        outcome.write(history, n);
        for job in &reserved.jobs {
            work(&clients, &job.receipt, &mut rng).await;
        }
    }
}

async fn work(clients: &Clients, receipt: &str, rng: &mut StdRng) {
    let what = if clients.is_over() { 0 } else { rng.random_range(0..100) };
    match what {
        0..60 => settle(clients, receipt, SettleKind::Finish).await,
        60..68 => settle(clients, receipt, SettleKind::Retry).await,
        68..70 => settle(clients, receipt, SettleKind::Bury).await,
        70..76 => settle(clients, receipt, SettleKind::Release).await,
        76..86 => {
            sleep(Duration::from_millis(rng.random_range(0..400))).await;
            settle(clients, receipt, SettleKind::Renew).await;
            sleep(Duration::from_millis(rng.random_range(0..400))).await;
            settle(clients, receipt, SettleKind::Finish).await;
        }
        86..94 => {
            sleep(Duration::from_millis(rng.random_range(550..900))).await;
            settle(clients, receipt, SettleKind::Finish).await;
        }
        // The lease of this job expires.
        _ => {}
    }
}

async fn settle(clients: &Clients, receipt: &str, kind: SettleKind) {
    let history = &clients.history;
    for _ in 0..REPETITIONS {
        let n = history.next();
        history.write(&Entry::Settle(Settle { t: history.t(), n, token: receipt, kind }));
        let body = if kind == SettleKind::Renew { r#"{"ttr":"600ms"}"# } else { "{}" };
        let path = format!("/v1/receipts/{receipt}/{kind}");
        let outcome = clients.api.call(Method::POST, &path, Some(body.to_owned())).await;
        outcome.write(history, n);
        if !outcome.is_unknown() {
            return;
        }
    }
}
