//! The default retry policy: a receiver that always fails sees ten attempts in a bit more than a day, each on time.

use std::time::Duration;

use ringback_core::retry::RetryPolicy;
use serde_json::json;

use crate::history::ResponseKind;
use crate::properties::{Submitted, by_job, check_job};
use crate::receiver::Reply;
use crate::seeds;
use crate::world::Simulation;

#[test]
fn the_default_tiers_are_exhausted_on_time() {
    seeds::run("the_default_tiers_are_exhausted_on_time", 10, async |simulation: &mut Simulation| {
        simulation.start(1, 1).await;
        let reply = Reply { answer: ResponseKind::Status(500), after: Duration::from_millis(40) };
        simulation.receiver.script("t/a", vec![reply]);
        simulation.submit_surely("t", "a", &json!({"url": "http://receiver.example/", "body": 1})).await;
        let due = simulation.now();
        simulation.run_to_the_end().await;
        let jobs = simulation.jobs().await;
        let attempts = by_job(simulation);
        let retry = RetryPolicy::preset("default").expect("a preset");
        let submitted = Submitted { topic: "t", id: "a".to_owned(), due, body: "1".to_owned(), retry };
        check_job(simulation, &submitted, &jobs[0], &attempts["t/a"]);
        assert_eq!(attempts["t/a"].len(), 10);
    });
}
