//! Many jobs in one request, as a JSON array and as lines: results of each item, slow uploads, and bounded memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};

use crate::prelude::*;

#[tokio::test]
async fn an_array_has_a_result_for_each_item_in_order() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let jobs: Vec<Value> = (0..200).map(|n| job(&sink, &format!("job-{n}"))).collect();
    let (status, answer) = stack.batch(&jobs).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(200), &json!(0)));
    let results = answer["results"].as_array().expect("results");
    assert_eq!(results.len(), jobs.len());
    for (sent, result) in jobs.iter().zip(results) {
        assert_eq!((&result["status"], &result["job"]["id"]), (&json!(201), &sent["id"]), "{result}");
    }
    let ids: Vec<&str> = jobs.iter().filter_map(|job| job["id"].as_str()).collect();
    sink.wait_for_jobs(&ids, 1, SOON).await;
}

#[tokio::test]
async fn lines_are_taken_like_an_array_and_a_bad_one_spoils_no_other() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let lines = [
        job(&sink, "first").to_string(),
        "{\"topic\":".to_owned(),
        with(job(&sink, "wrong"), "delay", -1).to_string(),
        job(&sink, "last").to_string(),
    ];
    for (text, note) in [(lines.join("\n"), "without"), (lines.join("\n") + "\n", "with")] {
        let reply = stack.post_lines("/v1/jobs/batch", text).await;
        assert_eq!(reply.status, 200, "{:?}", reply.body);
        let answer = reply.json();
        assert_eq!(
            (&answer["accepted"], &answer["refused"]),
            (&json!(2), &json!(2)),
            "{note} a last line end"
        );
        let accepted = if note == "without" { 201 } else { 200 };
        assert_eq!(statuses(&answer), [accepted, 400, 422, accepted], "{note} a last line end: {answer}");
        assert_eq!(answer["results"][2]["problem"]["errors"][0]["field"], "delay", "{answer}");
        assert!(answer["results"][1].get("job").is_none(), "{answer}");
    }
    sink.wait_for_jobs(&["first", "last"], 1, SOON).await;
    assert_eq!(stack.job(TOPIC, "wrong").await.0, 404);
}

#[tokio::test]
async fn each_item_of_a_batch_is_answered_by_itself() {
    let (stack, sink) = (StackOptions::api_only().start().await, Sink::start().await);
    let far = |id: &str| with(job(&sink, id), "delay", "1h");
    let twice = [far("a"), far("b"), far("a"), with(far("a"), "body", "other")];
    let many: Vec<Value> = (0..20).map(|n| far(&n.to_string())).collect();
    for (jobs, expected, delayed) in
        [(&twice[..], &[201, 201, 200, 409][..], 2), (&many, &[201; 20], 22), (&many, &[200; 20], 22)]
    {
        let (status, answer) = stack.batch(jobs).await;
        assert_eq!((status, statuses(&answer)), (200, expected.to_vec()), "{answer}");
        let refused = expected.iter().filter(|status| **status > 201).count();
        let counts = (&answer["accepted"], &answer["refused"]);
        assert_eq!(counts, (&json!(jobs.len() - refused), &json!(refused)), "{answer}");
        stack.wait_count("delayed", delayed, SOON).await;
    }
    let bad = [json!(17), far("c"), json!({}), far("no spaces"), far("d"), Value::Null, json!([])];
    let (status, answer) = stack.batch(&bad).await;
    assert_eq!((status, &answer["accepted"], &answer["refused"]), (200, &json!(2), &json!(5)), "{answer}");
    for (n, result) in answer["results"].as_array().expect("results").iter().enumerate() {
        let good = [1, 4].contains(&n);
        assert_eq!(result["status"] == 201, good, "item {n}: {result}");
        assert_eq!(result.get("problem").is_none(), good, "item {n}: {result}");
    }
    let lines = async |text: String| stack.post_lines("/v1/jobs/batch", text).await.expect(200);
    let nothing = json!({"accepted": 0, "refused": 0, "results": []});
    assert_eq!(stack.batch(&[]).await, (200, nothing.clone()));
    assert_eq!(lines(String::new()).await, nothing);
    let windows = lines(format!("{}\r\n{}\r\n", far("e"), far("f"))).await;
    assert_eq!(statuses(&windows), [201, 201], "{windows}");
    // The largest batch.
    let all: Vec<String> = (0..10_000).map(|n| far(&format!("all-{n}")).to_string()).collect();
    assert_eq!(lines(all.join("\n")).await["accepted"], 10_000);
    stack.wait_count("delayed", 10_026, SOON).await;
}

#[tokio::test]
async fn clients_that_send_slowly_keep_nobody_waiting() {
    let (stack, sink) = (StackOptions::api_only().start().await, Sink::start().await);
    let mut slow = JoinSet::new();
    for _ in 0..20 {
        let mut stream = begun_upload(&stack, WHOLE).await;
        slow.spawn(async move {
            let mut second = interval(Duration::from_secs(1));
            while stream.write_all(b" ").await.is_ok() {
                second.tick().await;
            }
        });
    }
    for round in 0..3 {
        let jobs: Vec<Value> =
            (0..1_000).map(|n| with(job(&sink, &format!("{round}-{n}")), "delay", "1h")).collect();
        let begin = Instant::now();
        let (status, answer) = stack.batch(&jobs).await;
        assert_eq!((status, &answer["accepted"]), (200, &json!(1_000)), "{answer}");
        assert!(begin.elapsed() < Duration::from_secs(5), "it took {:?}", begin.elapsed());
    }
    assert_eq!(slow.len(), 20);
    assert!(slow.try_join_next().is_none(), "all of them are still sending");
}

#[tokio::test]
async fn uploads_of_unknown_length_hold_what_has_arrived_and_leave_room_for_the_others() {
    let (stack, sink) = (StackOptions::api_only().start().await, Sink::start().await);
    let mut slow = JoinSet::new();
    let sent = Arc::new(AtomicUsize::new(0));
    // Little more than the slowest allowed pace, which begins with 16 KiB in two seconds.
    let chunk = format!("4800\r\n{}\r\n", " ".repeat(0x4800));
    for _ in 0..20 {
        let mut stream = begun_upload(&stack, "transfer-encoding: chunked\r\n\r\n").await;
        let (chunk, sent) = (chunk.clone(), Arc::clone(&sent));
        slow.spawn(async move {
            let mut second = interval(Duration::from_secs(1));
            while stream.write_all(chunk.as_bytes()).await.is_ok() {
                sent.fetch_add(1, Ordering::Relaxed);
                second.tick().await;
            }
        });
    }
    for round in 0..5 {
        let jobs: Vec<Value> =
            (0..1_000).map(|n| with(job(&sink, &format!("{round}-{n}")), "delay", "1h")).collect();
        let (status, answer) = stack.batch(&jobs).await;
        assert_eq!((status, &answer["accepted"]), (200, &json!(1_000)), "{answer}");
        let more = 20 * (round + 2);
        eventually(SOON, "they have sent more", async || match sent.load(Ordering::Relaxed) {
            chunks if chunks >= more => Ok(()),
            chunks => Err(chunks),
        })
        .await;
    }
    assert!(slow.try_join_next().is_none(), "all of them are still sending");
}

#[tokio::test]
async fn uploads_that_stall_take_no_more_memory_than_there_is_room_for_and_give_it_back() {
    const PART: usize = 15 << 20;
    let (stack, sink) = (StackOptions::api_only().start().await, Sink::start().await);
    let mut uploads = JoinSet::new();
    for _ in 0..12 {
        let mut stream = begun_upload(&stack, WHOLE).await;
        uploads.spawn(async move {
            // The API may have given it up already.
            stream.write_all(&vec![b' '; PART]).await.ok();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.map(|_| String::from_utf8_lossy(&answer).into_owned())
        });
    }
    // Small requests are served meanwhile.
    assert_eq!(stack.batch(&[with(job(&sink, "small"), "delay", "1h")]).await.0, 200);
    let answers = timeout(SOON, uploads.join_all()).await.expect("all are given up");
    for answer in answers.into_iter().flatten() {
        assert!(["HTTP/1.1 408", "HTTP/1.1 503"].contains(&answer.as_str()), "{answer}");
    }
    let large: Vec<Value> = (0..1_000).map(|n| with(job(&sink, &format!("{n}")), "delay", "1h")).collect();
    assert_eq!(stack.batch(&large).await.0, 200);
    if let Some(peak) = peak_memory(stack.apis[0].pid()) {
        assert!(peak < 160 << 20, "{} MiB", peak >> 20);
    }
}

/// The end of a head that announces 16 MiB, and the first byte of the body.
const WHOLE: &str = "content-length: 16777216\r\n\r\n[";

/// Opens a connection and sends the head of a batch that ends with `end`.
async fn begun_upload(stack: &Stack, end: &str) -> TcpStream {
    let url = stack.url("/v1/jobs/batch");
    let address = url.trim_start_matches("http://").split('/').next().expect("an address");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head =
        format!("POST /v1/jobs/batch HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{end}");
    stream.write_all(head.as_bytes()).await.expect("the head is sent");
    stream
}

/// The peak memory of a process in bytes; `None` on systems that do not report it.
pub(crate) fn peak_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn statuses(answer: &Value) -> Vec<u64> {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("no results in {answer}"));
    results.iter().filter_map(|result| result["status"].as_u64()).collect()
}
