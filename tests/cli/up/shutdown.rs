//! How `ringback up` ends and starts again: after one signal, after two, and after kill -9.

use std::collections::HashMap;

use ringback_testkit::{Process, Role, http_client};

use super::{STORES, options};
use crate::prelude::*;
use crate::sample_jobs::time;

#[tokio::test]
async fn asked_to_end_it_finishes_what_it_is_at_and_keeps_the_rest() {
    for store in STORES {
        let (mut stack, sink) = (options(store).start().await, Sink::start().await);
        sink.answer_job("flies", Answer::status(200).held());
        stack.accept(&job(&sink, "flies")).await;
        stack.accept(&with(job(&sink, "waits"), "delay", "1h")).await;
        sink.wait_for_job("flies", 1, SOON).await;

        stack.ups[0].term();
        takes_no_more(&stack.url("/v1/stats")).await;
        assert_eq!(stack.ups[0].exit_status(), None, "{store}: a call is in flight");
        sink.release();
        let status = stack.ups[0].wait_exit(SOON).await;
        assert_eq!(status.code(), Some(0), "{store}: {}", stack.ups[0].log());

        stack.ups[0].restart();
        stack.ready(SOON).await;
        let (_, flown) = stack.job(TOPIC, "flies").await;
        assert_eq!((&flown["state"], &flown["attempts"]), (&json!("done"), &json!(1)), "{store}: {flown}");
        assert_eq!(stack.job(TOPIC, "waits").await.1["state"], "delayed", "{store}");
        assert_eq!(sink.seen(), 1, "{store}");
    }
}

#[tokio::test]
async fn asked_to_end_it_leaves_only_the_database() {
    let (mut stack, sink) = (StackOptions::embedded().start().await, Sink::start().await);
    // Several rounds, because a process that does not wait for its store still closes it now and then.
    for round in 0..8 {
        let id = format!("job-{round}");
        stack.accept(&job(&sink, &id)).await;
        sink.wait_for_job(&id, 1, SOON).await;
        let up = &mut stack.ups[0];
        let data = up.directory().join("data");
        // An idle store closes fastest, which is when the process is most likely to be too early.
        let modified = |name: &str| data.join(name).metadata().and_then(|file| file.modified());
        let written = modified("ringback.redo").expect("the store has a log");
        eventually(SOON, "a checkpoint", async || match modified("ringback.redb") {
            Ok(database) if database > written => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        up.term();
        let status = up.wait_exit(SOON).await;
        assert_eq!(status.code(), Some(0), "{}", up.log());
        let files = data.read_dir().expect("the directory of the store");
        let mut names: Vec<_> = files.map(|file| file.expect("a file").file_name()).collect();
        names.sort();
        assert_eq!(names, ["master.keys", "ringback.redb"], "round {round}: {}", up.log());
        up.restart();
        stack.ready(SOON).await;
    }
}

#[tokio::test]
async fn what_outlasts_the_grace_is_given_back() {
    for store in STORES {
        let options = options(store).role_env(Role::Up, "RINGBACK_SHUTDOWN_TIMEOUT", "1s");
        let (mut stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_job("hangs", Answer::status(200).held());
        stack.accept(&job(&sink, "hangs")).await;
        sink.wait_for_job("hangs", 1, SOON).await;
        stack.ups[0].term();
        let status = stack.ups[0].wait_exit(SOON).await;
        assert_eq!(status.code(), Some(0), "{store}: {}", stack.ups[0].log());

        sink.answer_job("hangs", Answer::status(200));
        stack.ups[0].restart();
        stack.ready(SOON).await;
        // Well before the lease of eleven seconds expires.
        let done = stack.wait_state(TOPIC, "hangs", "done", Duration::from_secs(8)).await;
        assert_eq!((&done["attempts"], &done["failures"]), (&json!(2), &json!(0)), "{store}: {done}");
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    for store in STORES {
        let (mut stack, sink) = (options(store).start().await, Sink::start().await);
        sink.answer_job("hangs", Answer::status(200).held());
        stack.accept(&job(&sink, "hangs")).await;
        sink.wait_for_job("hangs", 1, SOON).await;
        stack.ups[0].term();
        takes_no_more(&stack.url("/v1/stats")).await;
        stack.ups[0].term();
        let status = stack.ups[0].wait_exit(Duration::from_secs(5)).await;
        assert_eq!(status.code(), Some(143), "{store}: {}", stack.ups[0].log());
    }
}

#[tokio::test]
async fn after_kill_9_all_that_was_answered_is_delivered_and_nothing_early() {
    for store in STORES {
        let (mut stack, sink) = (options(store).start().await, Sink::start().await);
        let jobs: Vec<Value> = (0..600)
            .map(|n| {
                let due = with(job(&sink, &format!("job-{n}")), "delay", format!("{}ms", n * 7 % 3_000));
                with(due, "timeout", "1s")
            })
            .collect();
        let mut due = HashMap::new();
        for (round, some) in jobs.chunks(200).enumerate() {
            let (status, answer) = stack.batch(some).await;
            assert_eq!((status, &answer["accepted"]), (200, &json!(some.len())), "{store}: {answer}");
            for result in answer["results"].as_array().expect("results") {
                let id = result["job"]["id"].as_str().expect("an id").to_owned();
                due.insert(id, time(&result["job"]["due_at"]));
            }
            // The process ends at once after an answer, and in one round during deliveries.
            if round == 1 {
                sink.wait_for(150, SOON).await;
            }
            kill_and_start(&mut stack.ups[0]).await;
        }
        let ids: Vec<&String> = due.keys().collect();
        sink.wait_for_jobs(&ids, 1, Duration::from_secs(60)).await;
        for arrival in sink.arrivals() {
            assert!(arrival.at >= due[arrival.job_id()], "{store}: {} is early", arrival.job_id());
        }
        eventually(SOON, "every job is done", async || match stack.count_in("done").await {
            600 => Ok(()),
            done => Err(format!("{store}: {done} of 600")),
        })
        .await;
    }
}

async fn kill_and_start(up: &mut Process) {
    up.kill();
    up.restart();
    up.ready(SOON).await;
}

/// Waits until nobody listens at the URL any more.
async fn takes_no_more(url: &str) {
    let client = http_client();
    eventually(SOON, "nobody listens any more", async || match client.get(url).send().await {
        Err(error) if error.is_connect() => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}
