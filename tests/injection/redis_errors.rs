//! The errors of Redis, and what comes of each at each kind of call: the table says it, and the test provokes it.
//!
//! Each round gives every call another error, so that as many rounds as there are errors are the whole matrix.
//! `RINGBACK_TEST_ROUNDS` says how many are run; by default 3 are, from a place that the seed chooses.

mod calls;
mod table;

use std::time::Duration;

use ringback_testkit::history::{FaultClass, Policy};
use ringback_testkit::recorded::{Bounds, Recorded};
use ringback_testkit::{Answer, RedisErrors, RedisServer, Script, Sink, Stack, eventually};

use self::calls::Client;
use self::table::{ANSWERED, FAULTS, Outcome, REPEATED, outcome};
use crate::seed::seed;

/// How long it may take until the roles have made each of their calls, and until everything has drained.
const SOON: Duration = Duration::from_secs(30);
/// After so many passes of work a call that is made seldom is waited for no longer.
const MANY: usize = 8;
/// The rounds that are run by default.
const ROUNDS: usize = 3;

#[tokio::test]
async fn each_error_of_redis_at_each_call_has_its_outcome_and_nothing_is_lost() {
    let (seed, rounds) = (seed(), rounds());
    let redis = RedisServer::start().await;
    let proxy = RedisErrors::start(redis.port()).await;
    let options = Stack::options().store(&format!("redis://127.0.0.1:{}", proxy.port()));
    // The audit at the end is in the history: the proxy ends with this test.
    let mut stack = options.env("RINGBACK_SHARDS", "1").unaudited().start().await;
    let policies = vec![Policy { p: 0, delays: vec![100, 200, 400], max: 4, jitter: 0.1 }];
    let recorded = Recorded::start("errors of redis", &Bounds { live: None, policies });
    let fault = recorded.fault("error", FaultClass::Network);
    let (sink, aside) = (Sink::recorded(recorded.history()).await, Sink::start().await);
    // A job that is done before its `run` is repeated would be answered with 409.
    aside.answer(Answer::status(200).after(Duration::from_secs(3)));
    sink.answer_path("/flaky", Script::first(1, Answer::status(503)));
    let client = Client {
        recorded: &recorded,
        api: stack.api_urls().remove(0),
        url: sink.url(""),
        aside: aside.url(""),
        proxy: &proxy,
    };

    let mut cells = 0;
    for round in 0..rounds {
        let first = round + usize::try_from(seed % 1_000).expect("it is small");
        for (place, call) in ANSWERED.iter().enumerate() {
            let (name, fault) = FAULTS[(first + place) % FAULTS.len()];
            let wanted = outcome(call, fault);
            client.answered(call, (name, fault), wanted, &format!("{seed}-{round}")).await;
            cells += 1;
        }
        for (place, call) in REPEATED.iter().enumerate() {
            let (_, fault) = FAULTS[(first + place) % FAULTS.len()];
            assert_eq!(outcome(call, fault), Outcome::Repeated);
            proxy.arm(call, fault);
            cells += 1;
        }
        let mut pass = 0;
        eventually(SOON, &format!("the roles make all calls, seed {seed}"), async || {
            client.work(&format!("{round}-{pass}")).await;
            pass += 1;
            let mut left = proxy.left();
            if pass > MANY {
                left.retain(|call| call != table::SELDOM);
            }
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        cells -= proxy.left().len();
        proxy.disarm();
        stack.ready(SOON).await;
    }
    recorded.drain(&stack, &["push"], SOON).await;
    recorded.healed(fault);
    recorded.end(&stack, &["push"], false).await;
    let report = recorded.check();
    show(&format!("seed {seed}: {cells} cells\n{report}"));
    assert!(report.clean, "seed {seed}");
    for process in stack.apis.iter_mut().chain(&mut stack.carriers).chain(&mut stack.notifiers) {
        assert_eq!(process.exit_status(), None, "{}", process.log());
        assert!(!process.log().contains("panicked"), "{}", process.log());
    }
}

fn rounds() -> usize {
    let wanted = std::env::var_os("RINGBACK_TEST_ROUNDS").and_then(|rounds| rounds.to_str()?.parse().ok());
    wanted.unwrap_or(ROUNDS)
}

#[expect(clippy::print_stdout, reason = "the report is read by people")]
fn show(text: &str) {
    println!("{text}");
}
