//! A steady load of submits while something goes wrong. One that is refused or not answered is repeated until accepted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringback_testkit::http_client;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::accepted_count::AcceptedCount;
use crate::prelude::*;
use crate::raw_post::JSON;

/// How many submit at the same time.
pub(super) const CALLERS: usize = 4;
/// The pause of a caller after a submit.
const PAUSE: Duration = Duration::from_millis(10);

/// Callers that submit jobs.
pub(super) struct SteadyLoad {
    is_over: Arc<AtomicBool>,
    accepted: Arc<AcceptedCount>,
    callers: JoinSet<Vec<String>>,
}

impl SteadyLoad {
    /// Starts four callers that submit jobs, due at once or within two seconds. The ids begin with `name`.
    pub(super) fn start(stack: &Stack, sink: &Sink, name: &str) -> Self {
        let (is_over, all, mut callers) =
            (Arc::<AtomicBool>::default(), Arc::<AcceptedCount>::default(), JoinSet::new());
        for caller in 0..CALLERS {
            let (to, hook) = (stack.url("/v1/jobs"), sink.url("/hook"));
            let (over, all) = (Arc::clone(&is_over), Arc::clone(&all));
            let name = format!("{name}-{caller}");
            callers.spawn(async move {
                let (http, mut accepted) = (http_client(), Vec::new());
                while !over.load(Ordering::Relaxed) {
                    let id = format!("{name}-{}", accepted.len());
                    let delay = format!("{}ms", accepted.len() % 20 * 100);
                    let job =
                        json!({"topic": TOPIC, "id": id, "url": hook, "delay": delay, "body": {"id": id}});
                    let answer = http
                        .post(&to)
                        .header(JSON.0, JSON.1)
                        .body(job.to_string())
                        .send()
                        .await
                        .map(|answer| answer.status().as_u16());
                    if matches!(answer, Ok(200 | 201)) {
                        accepted.push(id);
                        all.add();
                    }
                    sleep(PAUSE).await;
                }
                accepted
            });
        }
        Self { is_over, accepted: all, callers }
    }

    /// Waits until `jobs` more jobs are accepted.
    pub(super) async fn more(&self, jobs: usize) {
        self.accepted.more(jobs).await;
    }

    /// Stops the load, and returns the ids of the accepted jobs.
    pub(super) async fn end(self) -> Vec<String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.callers.join_all().await.concat()
    }
}
