//! A consumer of pull jobs that at random finishes, fails, releases, renews or loses a job, or settles it late: every
//! job is finished once, and a job whose lease expired comes back.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt as _;
use ringback_core::state::State;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::random_jobs::pick;
use crate::seeds;
use crate::world::{Simulation, has_ended};

const SEEDS: u64 = 200;
const TTR: Duration = Duration::from_secs(2);

#[test]
fn pull_jobs_are_finished_once_though_consumers_die() {
    seeds::run(
        "pull_jobs_are_finished_once_though_consumers_die",
        SEEDS,
        async |simulation: &mut Simulation| {
            simulation.start(1, 1).await;
            let jobs = simulation.rng.random_range(1..8);
            for number in 0..jobs {
                let delay = pick(&mut simulation.rng, &["0s", "1s", "1h"]);
                let fields = json!({
                    "delay": delay,
                    "ttr": "2s",
                    "retry": {"delays": ["10ms", "5s"], "max": -1, "jitter": 0},
                });
                simulation.submit_surely("p", &format!("job-{number}"), &fields).await;
            }
            let mut consumer = Consumer::default();
            while !simulation.jobs().await.iter().all(has_ended) {
                simulation.run_to_the_next().await;
                consumer.turn(simulation).await;
            }
            for job in simulation.jobs().await {
                let name = job.key.id.as_str();
                assert_eq!(job.state, State::Done, "{name}");
                assert_eq!(consumer.finished.get(name), Some(&1), "{name}: {}", simulation.history.log());
                let attempts = consumer.attempts.get(name).copied();
                assert_eq!(Some(job.attempts), attempts, "{name}: {}", simulation.history.log());
                assert_eq!(Some(job.failures), consumer.failures.get(name).copied().or(Some(0)), "{name}");
            }
        },
    );
}

/// How often each job was reserved and finished, and has failed.
#[derive(Default)]
struct Consumer {
    attempts: BTreeMap<String, u32>,
    finished: BTreeMap<String, u32>,
    failures: BTreeMap<String, u32>,
}

impl Consumer {
    /// Reserves up to four jobs, with a wait of up to 50 s, handles each in a random way and counts the results.
    async fn turn(&mut self, simulation: &mut Simulation) {
        let max = simulation.rng.random_range(1..5);
        let (status, answer) =
            simulation.post("/v1/topics/p/reserve", &json!({"max": max, "wait": "50s"})).await;
        assert_eq!(status, 200, "{answer}");
        let jobs: Vec<Value> = answer["jobs"].as_array().expect("jobs").clone();
        assert!(jobs.len() <= max);
        for job in jobs {
            let (id, receipt) = (text(&job["id"]), text(&job["receipt"]));
            *self.attempts.entry(id.clone()).or_default() += 1;
            let what = simulation.rng.random_range(0..10);
            match what {
                0..4 => self.finish(simulation, &id, &receipt, 200).await,
                4 => {
                    settle(simulation, &receipt, "retry").await;
                    *self.failures.entry(id).or_default() += 1;
                }
                5 => {
                    let is_late = settle(simulation, &receipt, "release").await != 200;
                    *self.failures.entry(id).or_default() += u32::from(is_late);
                }
                6 => {
                    // Renewed in time, the job is finished after its first deadline.
                    sleep(TTR / 2).await;
                    let path = format!("/v1/receipts/{receipt}/renew");
                    let (status, _) = simulation.post(&path, &json!({"ttr": "10s"})).await;
                    // An earlier job of this turn may have taken longer than its lease.
                    if status == 200 {
                        sleep(TTR).await;
                        self.finish(simulation, &id, &receipt, 200).await;
                    } else {
                        *self.failures.entry(id).or_default() += 1;
                    }
                }
                _ => {
                    // The consumer dies, or settles after its lease has expired.
                    sleep(TTR + Duration::from_millis(50)).await;
                    *self.failures.entry(id.clone()).or_default() += 1;
                    if what == 7 {
                        self.finish(simulation, &id, &receipt, 409).await;
                    }
                }
            }
            // Meanwhile the leases of the turn's other jobs may expire.
        }
    }

    async fn finish(&mut self, simulation: &Simulation, id: &str, receipt: &str, wanted: u16) {
        let status = settle(simulation, receipt, "finish").await;
        if status == 200 {
            *self.finished.entry(id.to_owned()).or_default() += 1;
        } else {
            assert_eq!(status, 409);
            *self.failures.entry(id.to_owned()).or_default() += u32::from(wanted == 200);
        }
    }
}

/// Settles a job by `how`, and returns the status: 409 if its lease has expired.
async fn settle(simulation: &Simulation, receipt: &str, how: &str) -> u16 {
    simulation.post(&format!("/v1/receipts/{receipt}/{how}"), &Value::Null).await.0
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
