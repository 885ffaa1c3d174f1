//! The logs of processes when nobody reads them, when their reader is gone, or when the same line comes again and again.

use ringback_testkit::{Process, RedisServer, free_port, http_client};
use tokio::time::interval;

use crate::prelude::*;

const DROPPED: &str = "ringback_log_lines_dropped_total";
/// How long many deliveries may take.
const LONG: Duration = Duration::from_secs(60);

/// The options of both kinds of store, with processes at log level `trace` whose output nobody reads.
fn unread() -> [StackOptions; 2] {
    StackOptions::each_store().map(|options| options.unread().env("RINGBACK_LOG", "trace"))
}

/// Delivers 6,000 jobs with ids so long that their lines fill a log soon.
async fn deliver_many(stack: &mut Stack, sink: &Sink) {
    let ids: Vec<String> = (0..6_000).map(|n| format!("{n:0>120}")).collect();
    // Notifiers that take due jobs themselves leave nothing for carriers to log.
    stack.notifiers.iter_mut().for_each(Process::stop);
    for ids in ids.chunks(500) {
        let jobs: Vec<Value> = ids.iter().map(|id| with(job(sink, id), "delay", "500ms")).collect();
        let (status, answer) = stack.batch(&jobs).await;
        assert_eq!((status, &answer["accepted"]), (200, &json!(500)), "{answer}");
    }
    if !stack.notifiers.is_empty() {
        stack.wait_count("ready", 6_000, LONG).await;
    }
    stack.notifiers.iter_mut().for_each(Process::cont);
    sink.wait_for_jobs(&ids, 1, LONG).await;
    stack.wait_count("done", 6_000, SOON).await;
}

/// The number of dropped lines, by the metric of a process.
async fn dropped(process: &Process) -> u64 {
    let text = process.metrics().await;
    let line = text.lines().find_map(|line| line.strip_prefix(DROPPED)).expect("it is always there");
    line.trim().parse().expect("a number")
}

/// The sum of the fields `lines` in the log lines that contain a message.
fn reported(log: &str, message: &str) -> u64 {
    let reports = log.lines().filter(|line| line.contains(message));
    let field = |line: &str| line.split(" lines=").nth(1)?.split(' ').next()?.parse::<u64>().ok();
    reports.map(|line| field(line).expect("a number of lines")).sum()
}

async fn is_alive(process: &Process) {
    let url = format!("http://{}/healthz", process.admin());
    let answer = http_client().get(&url).timeout(SOON).send().await.expect("it answers");
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn processes_go_on_while_nobody_reads_their_logs_and_say_later_what_they_dropped() {
    for options in unread() {
        let (mut stack, sink) = (options.start().await, Sink::start().await);
        deliver_many(&mut stack, &sink).await;
        for process in stack.processes_mut() {
            is_alive(process).await;
            assert!(dropped(process).await > 0, "the log has filled its queue");
            process.read_output();
        }
        for process in stack.processes_mut() {
            eventually(SOON, "what was dropped is reported", async || {
                let (counted, log) = (dropped(process).await, process.log());
                let reported = reported(&log, ": log lines were dropped");
                if reported == counted { Ok(()) } else { Err(format!("{reported} of {counted}")) }
            })
            .await;
            process.term();
            assert_eq!(process.wait_exit(SOON).await.code(), Some(0));
            process.wait_log(": stopped\n", SOON).await;
        }
        stack.skip_check();
    }
}

#[tokio::test]
async fn processes_end_in_time_while_nobody_reads_their_logs() {
    for options in unread() {
        let (mut stack, sink) = (options.start().await, Sink::start().await);
        stack.accept(&job(&sink, "a")).await;
        stack.wait_state(TOPIC, "a", "done", SOON).await;
        stack.skip_check();
        for process in stack.processes_mut() {
            process.term();
            assert_eq!(process.wait_exit(SOON).await.code(), Some(0));
        }
    }
}

#[tokio::test]
async fn a_second_signal_ends_a_process_whose_log_nobody_reads() {
    let (mut stack, sink) = (Stack::options().unread().start().await, Sink::start().await);
    sink.answer_job("hangs", Answer::status(200).held());
    stack.accept(&job(&sink, "hangs")).await;
    sink.wait_for_job("hangs", 1, SOON).await;
    let notifier = &mut stack.notifiers[0];
    notifier.term();
    eventually(SOON, "it shuts down", async || {
        let (_, text) = notifier.readiness().await?;
        if text.contains("shutting down") { Ok(()) } else { Err(text) }
    })
    .await;
    notifier.term();
    assert_eq!(notifier.wait_exit(Duration::from_secs(5)).await.code(), Some(143));
}

#[tokio::test]
async fn processes_go_on_after_the_reader_of_their_logs_is_gone() {
    for options in unread() {
        let (mut stack, sink) = (options.start().await, Sink::start().await);
        stack.processes_mut().for_each(Process::close_output);
        stack.accept(&job(&sink, "a")).await;
        stack.wait_state(TOPIC, "a", "done", SOON).await;
        stack.skip_check();
        for process in stack.processes_mut() {
            assert!(dropped(process).await > 0, "lines that cannot be written are counted");
            process.term();
            assert_eq!(process.wait_exit(SOON).await.code(), Some(0));
        }
    }
}

#[tokio::test]
async fn ten_lines_of_a_kind_are_logged_and_the_others_are_counted() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    // Nobody listens at these addresses. One line for each destination says that it begins to fail.
    for n in 0..35 {
        let url = format!("http://127.0.0.{}:{}/", n + 10, free_port());
        let job = with_all(job(&sink, &n.to_string()), &json!({"url": url, "retry": {"preset": "none"}}));
        stack.accept(&job).await;
    }
    stack.wait_count("dead", 35, SOON).await;
    let log = || stack.notifiers[0].log();
    // A slow machine may need more than one interval.
    let suppressed = || {
        reported(
            &log(),
            "suppressed like=\"a destination begins to fail; each of its attempts is logged at debug\"",
        )
    };
    eventually(LONG, "each failure is logged or counted", async || {
        let (logged, suppressed) =
            (log().matches(": a destination begins to fail").count() as u64, suppressed());
        if logged + suppressed == 35 { Ok(()) } else { Err(format!("{logged} and {suppressed}")) }
    })
    .await;
    assert!(suppressed() > 0, "{}", log());
}

#[tokio::test]
async fn a_receiver_that_fails_is_one_line_however_often_it_does() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(500));
    for n in 0..35 {
        stack.accept(&with(job(&sink, &n.to_string()), "retry", json!({"preset": "none"}))).await;
    }
    stack.wait_count("dead", 35, SOON).await;
    let log = stack.notifiers[0].log();
    let about: Vec<_> = log.lines().filter(|line| line.contains(&sink.url(""))).collect();
    let [line] = about.as_slice() else { panic!("{log}") };
    assert!(line.contains("WARN") && line.contains("a destination begins to fail"), "{line}");
    assert!(line.contains("status=500") && line.contains("attempt=1"), "{line}");
}

/// Makes Redis refuse writes, or ends that: a snapshot fails while a directory has the name of its file.
async fn refuse_writes(redis: &RedisServer, refuse: bool) {
    let mut client = redis.client().await;
    let (_, dir): (String, String) =
        redis::cmd("CONFIG").arg("GET").arg("dir").query_async(&mut client).await.expect("CONFIG GET");
    let inside = format!("{dir}/dump.rdb/inside");
    if refuse {
        std::fs::create_dir_all(inside).expect("the directory of the server is writable");
    } else {
        std::fs::remove_dir_all(format!("{dir}/dump.rdb")).expect("it is there");
    }
    redis::cmd("BGSAVE").exec_async(&mut client).await.expect("BGSAVE begins");
    let expected = format!("rdb_last_bgsave_status:{}", if refuse { "err" } else { "ok" });
    eventually(SOON, "the snapshot has ended", async || {
        let info: String =
            redis::cmd("INFO").arg("persistence").query_async(&mut client.clone()).await.expect("INFO");
        if info.contains(&expected) { Ok(()) } else { Err(info) }
    })
    .await;
}

#[tokio::test]
async fn a_redis_that_refuses_writes_leads_to_few_lines() {
    let redis = RedisServer::options().arg("--save", "3600 1");
    let (mut stack, sink) = (Stack::options().redis(redis).start().await, Sink::start().await);
    // Attempts in flight, whose outcomes cannot be settled before their leases expire.
    sink.answer(Answer::status(500).held());
    let jobs: Vec<Value> = (0..100).map(|n| with(job(&sink, &n.to_string()), "timeout", "1s")).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 100);
    let later: Vec<Value> = (0..200)
        .map(|n| with(job(&sink, &format!("later-{n}")), "delay", format!("{}ms", 2_000 + n * 20)))
        .collect();
    assert_eq!(stack.batch(&later).await.1["accepted"], 200);
    sink.wait_for(100, SOON).await;
    refuse_writes(stack.redis(), true).await;
    let before: Vec<usize> = stack.processes_mut().map(|process| process.log().len()).collect();
    sink.answer(Answer::status(200));
    sink.release();
    // Long enough for a bound on lines per second.
    let mut submits = interval(Duration::from_millis(50));
    for _ in 0..160 {
        submits.tick().await;
        assert_eq!(stack.submit(&job(&sink, "refused")).await.0, 503);
    }
    for (process, before) in stack.processes_mut().zip(before) {
        let log = process.log()[before..].to_owned();
        let lines = log.lines().count();
        assert!((1..=12).contains(&lines), "{lines} lines: {log}");
    }
    refuse_writes(stack.redis(), false).await;
    stack.ready(LONG).await;
    stack.wait_count("done", 300, LONG).await;
}
