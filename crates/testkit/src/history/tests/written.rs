//! Tasks that write one history at the same time: the checker reads it and finds it clean.

use std::borrow::Cow;

use super::report;
use crate::history::{
    Answered, Arrive, Digest, End, Entry, History, Invariant, InvariantResult, Respond, Start, Submit,
};

fn start(history: &History) -> Entry<'static> {
    Entry::Start(Start {
        t: 0,
        wall: history.wall(),
        name: Cow::Borrowed("a test"),
        epsilon: 2_000,
        live: None,
        timeout: 10_000,
        policy: 0,
        loss: 0,
    })
}

/// Writes the lines of one job: submit, answer, arrival and end of the delivery. Other tasks can write between them.
async fn life(history: History, job: String) {
    let (n, d, digest) = (history.next(), history.next(), Digest::of(job.as_bytes()));
    let submit = Submit {
        t: history.t(),
        n,
        job: &job,
        url: Some("http://h/"),
        body: digest,
        headers: digest,
        at: None,
        delay: None,
        policy: None,
        timeout: None,
        key: None,
        replace: false,
        store: 0,
    };
    history.write(&Entry::Submit(submit));
    tokio::task::yield_now().await;
    let (status, name) = (Some(201), Some(job.as_str()));
    let (state, due, deadline) = (None, None, None);
    let t = history.t();
    history.write(&Entry::Ok(Answered {
        t,
        n,
        status,
        job: name,
        state,
        due,
        deadline,
        in_flight_unknown: false,
    }));
    tokio::task::yield_now().await;
    let (webhook, stamp, signed) = (None, None, None);
    let due = Some(history.wall() / 1_000);
    let (t, url, attempt) = (history.t(), "http://h/", 1);
    let (body, headers) = (digest, digest);
    history.write(&Entry::Arrive(Arrive {
        t,
        d,
        job: &job,
        attempt,
        due,
        webhook,
        stamp,
        signed,
        url,
        body,
        headers,
    }));
    tokio::task::yield_now().await;
    let t = history.t();
    history.write(&Entry::Respond(Respond {
        t,
        d,
        status: 200,
        cut: false,
        unexpected: false,
        retry_after: None,
    }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_write_one_history() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.jsonl");
    let history = History::create(&path).expect("a file");
    assert!(History::create(&path).is_err(), "a history is never continued");
    history.write(&start(&history));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..500 {
        tasks.spawn(life(history.clone(), format!("a/{number}")));
    }
    tasks.join_all().await;
    history.write(&Entry::End(End { t: history.t(), dumped: true, drained: true }));
    history.flush();
    let report = report(&std::fs::read(&path).expect("it can be read"));
    assert!(report.clean, "{report}");
    assert_eq!((report.totals.lines, report.totals.accepted, report.totals.deliveries), (2_002, 500, 500));
    assert_eq!(report.standing(Invariant::NothingLost).verdict, InvariantResult::Held);
}
