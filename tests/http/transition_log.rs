//! The log of transitions of real processes, in several processes and in one: a job is followed through all of them.
//! At level `info` nothing is logged, and the store is not asked for transitions.

use ringback_testkit::{Process, Script};

use crate::contract::transition_log::transitions_in;
use crate::prelude::*;

const LOG: &str = "RINGBACK_LOG";
/// Only the log of transitions, beside the lines of level info.
const TRANSITIONS: &str = "info,ringback_store::transitions=debug";

/// Waits until a process has logged exactly these transitions of a job, in this order.
async fn has_logged(process: &Process, id: &str, expected: &[&str]) {
    eventually(SOON, "the transitions are logged", async || {
        let transitions = transitions_in(&process.log(), TOPIC, id);
        if transitions == expected { Ok(()) } else { Err(format!("{transitions:#?}")) }
    })
    .await;
}

/// Submits a job that fails twice, dies, is revived and done, and a job that is rescheduled and cancelled.
async fn two_lives(stack: &Stack, sink: &Sink) {
    sink.answer_job("a", Script::first(2, Answer::status(503)));
    let retry = json!({"delays": ["100ms"], "jitter": 0});
    stack.accept(&with(with(job(sink, "a"), "delay", "300ms"), "retry", retry)).await;
    stack.wait_state(TOPIC, "a", "dead", SOON).await;
    assert_eq!(stack.revive(TOPIC, "a").await.0, 200);
    stack.wait_state(TOPIC, "a", "done", SOON).await;
    stack.accept(&with(job(sink, "b"), "delay", "1h")).await;
    assert_eq!(stack.reschedule(TOPIC, "b", &json!({"delay": "2h"})).await.0, 200);
    assert_eq!(stack.cancel(TOPIC, "b").await.0, 200);
}

const OF_API: [&str; 2] = ["submit: nothing -> delayed", "revive: dead -> ready"];
const OF_CARRIER: [&str; 2] = ["promote: delayed -> ready"; 2];
const OF_NOTIFIER: [&str; 6] = [
    "reserve: ready -> reserved",
    "retry: reserved -> delayed",
    "reserve: ready -> reserved",
    "bury: reserved -> dead, exhausted",
    "reserve: ready -> reserved",
    "complete: reserved -> done",
];
const CANCELLED: [&str; 3] =
    ["submit: nothing -> delayed", "reschedule: delayed -> delayed", "cancel: delayed -> cancelled"];

#[tokio::test]
async fn each_process_logs_the_transitions_that_it_takes() {
    let options = Stack::options().env(LOG, TRANSITIONS).env("RINGBACK_LOG_FORMAT", "json");
    let (stack, sink) = (options.start().await, Sink::start().await);
    let watch = stack.redis().watch_calls().await;
    two_lives(&stack, &sink).await;
    has_logged(&stack.apis[0], "a", &OF_API).await;
    // A due job is promoted by the carrier, or by the notifier that waits for it.
    eventually(SOON, "carrier and notifier have logged the transitions", async || {
        let logged = |process: &Process| transitions_in(&process.log(), TOPIC, "a");
        let (mut promoted, notifier) = (logged(&stack.carriers[0]), logged(&stack.notifiers[0]));
        let (taken, others): (Vec<_>, Vec<_>) =
            notifier.into_iter().partition(|transition| transition.starts_with("promote"));
        promoted.extend(taken);
        if promoted == OF_CARRIER && others == OF_NOTIFIER {
            Ok(())
        } else {
            Err(format!("{promoted:#?} {others:#?}"))
        }
    })
    .await;
    has_logged(&stack.apis[0], "b", &CANCELLED).await;
    let logged = watch.by_function().into_keys().filter(|name| name.ends_with("_logged")).count();
    assert!(logged > 0, "transitions come with the answers");
}

#[tokio::test]
async fn one_process_logs_a_life_in_its_order() {
    let options = StackOptions::embedded().env(LOG, TRANSITIONS).env("RINGBACK_LOG_FORMAT", "json");
    let (stack, sink) = (options.start().await, Sink::start().await);
    two_lives(&stack, &sink).await;
    let [submit, revive] = OF_API;
    let [promote, _] = OF_CARRIER;
    let [reserve, retry, _, bury, _, complete] = OF_NOTIFIER;
    let life = [submit, promote, reserve, retry, promote, reserve, bury, revive, reserve, complete];
    has_logged(&stack.ups[0], "a", &life).await;
    has_logged(&stack.ups[0], "b", &CANCELLED).await;
}

#[tokio::test]
async fn at_the_level_info_no_transition_is_logged_and_none_is_asked_for() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.env(LOG, "info").start().await, Sink::start().await);
        let watch = if stack.ups.is_empty() { Some(stack.redis().watch_calls().await) } else { None };
        two_lives(&stack, &sink).await;
        for process in stack.processes() {
            assert!(!process.log().contains("job changed"), "{}", process.log());
        }
        let functions = watch.map(|watch| watch.by_function()).unwrap_or_default();
        assert!(functions.keys().all(|name| !name.ends_with("_logged")), "{functions:?}");
        assert_eq!(functions.keys().any(|name| name.ends_with("_submit")), stack.ups.is_empty());
    }
}
