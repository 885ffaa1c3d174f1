//! Jobs over a year: a refund that is polled for a year, and jobs submitted ahead for each week of a year.

use std::time::Duration;

use ringback_core::retry::{Max, RetryPolicy};
use ringback_core::state::State;
use serde_json::json;

use super::random_jobs::retry_json;
use super::without_faults::check_all;
use crate::history::ResponseKind;
use crate::properties::{Submitted, by_job};
use crate::receiver::Reply;
use crate::seeds;
use crate::world::Simulation;

const SEEDS: u64 = 5;
const DAY: Duration = Duration::from_secs(86_400);
/// The waits between the polls; the last one, of two weeks, repeats.
const WAITS: [Duration; 3] = [DAY, Duration::from_secs(7 * 86_400), Duration::from_secs(14 * 86_400)];
/// How many polls find that the refund is not settled.
const POLLS: usize = 27;

#[test]
fn a_refund_is_polled_for_a_year() {
    seeds::run("a_refund_is_polled_for_a_year", SEEDS, async |simulation: &mut Simulation| {
        simulation.start(1, 1).await;
        let retry = RetryPolicy::new(WAITS.to_vec(), Max::Unlimited, 0.1).expect("a policy");
        let reply = |status| Reply { answer: ResponseKind::Status(status), after: Duration::from_millis(80) };
        let script = std::iter::repeat_n(reply(404), POLLS).chain([reply(200)]);
        simulation.receiver.script("refunds/r-1", script.collect());
        let fields = json!({"url": "http://bank.example/refunds", "body": 1, "retry": retry_json(&retry)});
        simulation.submit_surely("refunds", "r-1", &fields).await;
        let due = simulation.now();
        let (id, body) = ("r-1".to_owned(), "1".to_owned());
        let job = Submitted { topic: "refunds", id, due, body, retry };
        simulation.run_to_the_end().await;
        check_all(simulation, &[job]).await;
        assert_eq!(by_job(simulation)["refunds/r-1"].len(), POLLS + 1);
        assert!(simulation.now().since(due) > 350 * DAY);
        assert_eq!(simulation.jobs().await[0].state, State::Done);
    });
}

#[test]
fn a_schedule_of_a_year_is_kept_to_the_millisecond() {
    seeds::run(
        "a_schedule_of_a_year_is_kept_to_the_millisecond",
        SEEDS,
        async |simulation: &mut Simulation| {
            simulation.start(1, 1).await;
            let begin = simulation.now();
            let mut jobs = Vec::new();
            for week in 1..=52_u32 {
                let due = begin.plus(7 * DAY * week + Duration::from_millis(u64::from(week)));
                let id = format!("week-{week}");
                let fields = json!({"url": "http://one.example/", "at": due.to_string(), "body": week});
                simulation.submit_surely("year", &id, &fields).await;
                let retry = RetryPolicy::preset("default").expect("a preset");
                let body = week.to_string();
                jobs.push(Submitted { topic: "year", id, due, body, retry });
            }
            simulation.run_to_the_end().await;
            check_all(simulation, &jobs).await;
        },
    );
}
