//! Notices of jobs that die while roles crash, lose the store or its answers, and calls arrive late: each death leads
//! to a notice, and nothing else does.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringback_core::state::State;
use serde_json::{Value, json};

use super::random_jobs::pick;
use super::under_faults::{begin_fault, end_fault};
use crate::history::{Attempt, ResponseKind};
use crate::receiver::Reply;
use crate::seeds;
use crate::world::Simulation;

const SEEDS: u64 = 30;
/// How long the notices of the last deaths may wait for a carrier that publishes them.
const PUBLISHED: Duration = Duration::from_secs(120);

/// How many notices were accepted with all seeds.
static NOTICES: AtomicUsize = AtomicUsize::new(0);

#[test]
fn each_death_leads_to_a_notice_though_roles_fail() {
    let seeds = seeds::run(
        "each_death_leads_to_a_notice_though_roles_fail",
        SEEDS,
        async |simulation: &mut Simulation| {
            simulation.start(2, 2).await;
            for number in 0..4 {
                let id = format!("job-{number}");
                let answer = ResponseKind::Status(pick(&mut simulation.rng, &[200, 410, 500]));
                let reply = Reply { answer, after: Duration::from_millis(5) };
                simulation.receiver.script(&format!("t/{id}"), vec![reply]);
                let fault = begin_fault(simulation).await;
                let url = "http://one.example/";
                let fields = json!({"url": url, "on_dead": url, "retry": {"delays": ["10ms"]}});
                simulation.submit_surely("t", &id, &fields).await;
                let lasts = pick(&mut simulation.rng, &[0, 60, 900, 20_000]);
                simulation.run_for(Duration::from_millis(lasts)).await;
                end_fault(simulation, fault).await;
            }
            simulation.run_to_the_end().await;
            simulation.run_for(PUBLISHED).await;
            simulation.run_to_the_end().await;
            let jobs = simulation.jobs().await;
            let dead =
                jobs.iter().filter(|job| job.state == State::Dead).map(|job| job.key.id.as_str().to_owned());
            let dead: BTreeSet<_> = dead.collect();
            assert_eq!(noticed(&simulation.history.attempts()), dead, "{}", simulation.history.log());
            NOTICES.fetch_add(dead.len(), Ordering::Relaxed);
        },
    );
    assert!((seeds as u64) < SEEDS || NOTICES.load(Ordering::Relaxed) > 0, "no job has died");
}

/// Returns the ids of the jobs whose notices of death the receiver accepted.
fn noticed(attempts: &[Attempt]) -> BTreeSet<String> {
    let notices = attempts.iter().filter(|one| one.job.starts_with("ringback.on-dead/") && one.is_success());
    let id = |notice: &Attempt| {
        let body: Value = serde_json::from_str(&notice.body).expect("a notice is JSON");
        body["data"]["id"].as_str().expect("an id").to_owned()
    };
    notices.map(id).collect()
}
