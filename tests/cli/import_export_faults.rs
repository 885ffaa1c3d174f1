//! `ringback import` and `export` against scripted servers that fail: retries, progress, limits, exit codes and files.

use std::io::Read as _;
use std::process::Stdio;

use ringback_testkit::{Answer, Script, Sink};
use serde_json::{Value, json};

use super::scripted_server::{Fault, Importer};
use super::{Run, fed, reports, ringback, spec};

fn lines(count: usize) -> String {
    let line = |n| {
        json!({"topic": "t", "id": format!("i-{n}"), "url": "http://h/", "body": {"n": n}}).to_string() + "\n"
    };
    (0..count).map(line).collect()
}

async fn import(importer: &Importer, input: impl Into<Vec<u8>>) -> Run {
    fed(&importer.url, &["import", "-", "--output", "json"], input.into()).await
}

fn counts(run: &Run) -> [u64; 4] {
    ["lines", "created", "repeated", "refused"].map(|name| run.json()[name].as_u64().expect("a count"))
}

#[tokio::test]
async fn an_import_goes_in_by_batches_and_a_second_run_changes_nothing() {
    let importer = Importer::start(&[]).await;
    let file = lines(5_001);
    let run = import(&importer, file.as_bytes()).await;
    assert_eq!((run.code, run.err.as_str(), counts(&run)), (Some(0), "", [5_001, 5_001, 0, 0]));
    assert_eq!((&run.json()["complete"], &run.json()["through"]), (&json!(true), &json!(5_001)));
    let mut sizes = importer.requests();
    sizes.sort_unstable();
    assert_eq!((sizes, importer.jobs().len()), (vec![1_001, 2_000, 2_000], 5_001));
    let run = import(&importer, file).await;
    assert_eq!((run.code, counts(&run)), (Some(0), [5_001, 0, 5_001, 0]));
    assert_eq!(importer.jobs().len(), 5_001);
}

#[tokio::test]
async fn a_bad_line_is_reported_by_number_and_the_rest_is_imported() {
    let importer = Importer::start(&[]).await;
    let long = "x".repeat(3_000_000);
    let good = |id: &str| format!(r#"{{"topic":"t","id":"{id}","url":"http://h/"}}"#);
    let file = format!(
        "{}\r\n\n{{\r\n{}\n{long}\n   \n{}\n{}",
        good("a"),
        r#"{"topic":"a b","id":"x","url":"ftp://h"}"#,
        r#"{"topic":"t","id":"a","url":"http://other/"}"#,
        good("b"),
    );
    let run = fed(&importer.url, &["import", "-"], file.clone().into_bytes()).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(run.out, "LINES  CREATED  REPEATED  REFUSED\n    6        2         0        4\n");
    let errors: Vec<_> = run.err.lines().collect();
    assert!(errors[0].starts_with("line 3: 400 not a JSON object"), "{run:?}");
    assert!(errors[1].starts_with("line 4: 422 wrong: topic, url"), "{run:?}");
    assert!(errors[2].starts_with("  topic: \"a b\" is not a topic; allowed: 1 to 64"), "{run:?}");
    assert!(errors[3].starts_with("  url: neither http:// nor https://; allowed: "), "{run:?}");
    assert!(errors[4].starts_with("line 5: 413 the line is longer than"), "{run:?}");
    assert!(errors[5].starts_with("line 7: 409 another job"), "{run:?}");
    assert_eq!(errors.len(), 6);

    let run = import(&importer, file).await;
    assert_eq!((run.code, counts(&run)), (Some(1), [6, 0, 2, 4]));
    let refused: Vec<Value> = run.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<_> = refused.iter().map(|line| (&line["line"], &line["problem"]["status"])).collect();
    assert_eq!(
        numbers,
        [
            (&json!(3), &json!(400)),
            (&json!(4), &json!(422)),
            (&json!(5), &json!(413)),
            (&json!(7), &json!(409))
        ]
    );
}

#[tokio::test]
async fn lines_without_ids_are_the_same_jobs_when_imported_again() {
    let importer = Importer::start(&[]).await;
    // Two equal lines are two jobs.
    let file = "{\"topic\":\"t\",\"url\":\"http://h/\"}\n{\"topic\":\"t\",\"url\":\"http://h/\"}\n{\"id\":null,\"topic\":\"t\",\"url\":\"http://h/\"}";
    assert_eq!(counts(&import(&importer, file).await), [3, 3, 0, 0]);
    assert_eq!(counts(&import(&importer, file.to_owned() + "\r\n").await), [3, 0, 3, 0]);
    assert_eq!(importer.jobs().len(), 3);
}

#[tokio::test]
async fn an_import_outlives_a_server_that_fails_for_a_while() {
    let faults =
        [Fault::Unavailable, Fault::NoResponse, Fault::SomeLines, Fault::Unavailable, Fault::SomeLines];
    let importer = Importer::start(&faults).await;
    let run = import(&importer, lines(6_000) + "no job\n").await;
    assert_eq!((run.code, importer.jobs().len()), (Some(1), 6_000), "{}", run.err);
    let [all, created, repeated, refused] = counts(&run);
    // Lines that were imported before an answer was lost count as repeated.
    assert_eq!((all, created + repeated, refused), (6_001, 6_000, 1));
    assert!(repeated <= 2_000, "{repeated}");
    assert!(run.err.contains("trying again for up to 1m"), "{}", run.err);
    assert_eq!(
        run.err.matches("no job").count() + run.err.matches("\"line\":6001").count(),
        1,
        "{}",
        run.err
    );
}

#[tokio::test]
async fn an_import_that_cannot_be_finished_shows_its_progress_and_can_be_repeated() {
    let importer = Importer::start(&[]).await;
    // The second batch fails, while later ones are under way.
    importer.chokes_on(Some("\"i-2000\""));
    let file = lines(12_000);
    let words = ["import", "-", "--patience", "1s", "--output", "json"];
    let run = fed(&importer.url, &words, file.clone().into_bytes()).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    let [all, created, repeated, refused] = counts(&run);
    assert!(all > 2_000 && (all, repeated, refused) == (created, 0, 0), "{run:?}");
    assert_eq!((&run.json()["complete"], &run.json()["through"]), (&json!(false), &json!(2_000)));
    assert!(run.err.contains("error: the import is not finished: no response from http://"), "{run:?}");
    assert!(run.err.contains("all lines up to 2000 have a result"), "{run:?}");
    assert!(run.err.contains("next: run the same import again"), "{run:?}");

    importer.chokes_on(None);
    let run = import(&importer, file).await;
    assert_eq!((run.code, counts(&run)), (Some(0), [12_000, 12_000 - created, created, 0]));
}

#[tokio::test]
async fn the_time_limit_of_an_import_begins_anew_with_every_line_that_is_taken() {
    // 100, 34, 12, 4, 2 lines, then 1: six requests, which waits that grow would not allow in a second.
    let importer = Importer::start(&[Fault::SomeLines; 5]).await;
    let words = ["import", "-", "--patience", "1s", "--output", "json"];
    let run = fed(&importer.url, &words, lines(100).into_bytes()).await;
    assert_eq!((run.code, counts(&run)), (Some(0), [100, 100, 0, 0]), "{run:?}");
    assert_eq!(importer.requests(), [100, 34, 12, 4, 2, 1]);
}

#[tokio::test]
async fn an_answer_that_does_not_add_up_is_not_believed() {
    let sink = Sink::start().await;
    sink.answer(Answer::status(200).body(r#"{"created":5,"repeated":0,"refused":0,"problems":[]}"#));
    let run = fed(&sink.url(""), &["import", "-"], lines(2).into_bytes()).await;
    assert!(run.code == Some(2) && run.err.contains("2 lines were sent, and it counts 5 + 0 + 0"), "{run:?}");
}

#[tokio::test]
async fn a_server_without_imports_is_reported_at_once() {
    let sink = Sink::start().await;
    let problem = json!({"type": "about:blank", "status": 404, "title": "Not Found", "detail": "x"});
    sink.answer(Answer::status(404).body(problem.to_string()));
    let run = fed(&sink.url(""), &["import", "-"], lines(2).into_bytes()).await;
    assert!(run.code == Some(2) && run.err.contains("does not offer imports"), "{run:?}");
    reports(&sink.url(""), &["import", "no-such-file"], 2, "no-such-file: No such file").await;
}

pub(super) fn stream(chunks: &[&str], end: &str) -> Answer {
    let chunks: String = chunks.iter().map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len())).collect();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
    Answer::raw(format!("{head}{chunks}{end}"))
}

#[tokio::test]
async fn an_export_is_the_servers_lines_as_they_are() {
    let sink = Sink::start().await;
    sink.answer(Answer::status(500));
    sink.answer_path("/v1/export?topic=t&state=dead", stream(&["{\"a\": 1}\n{\"b\"", ":2}\n"], "0\r\n\r\n"));
    let run = ringback(&sink.url(""), &["export", "--topic", "t", "--state", "dead"]).await;
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "{\"a\": 1}\n{\"b\":2}\n", ""));
}

#[tokio::test]
async fn a_file_gets_its_name_once_the_export_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.ndjson");
    let files = || std::fs::read_dir(dir.path()).unwrap().count();
    let words = ["export", "-o", path.to_str().unwrap()];
    let sink = Sink::start().await;
    sink.answer_path(
        "/v1/export",
        Script::first(1, stream(&["1\n2\n"], "")).finally(stream(&["1\n2\n3\n"], "0\r\n\r\n")),
    );
    reports(&sink.url(""), &words, 2, "the export is incomplete after 2 jobs").await;
    assert_eq!(files(), 0);
    reports(&sink.url(""), &words, 0, "3 jobs exported to ").await;
    assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), files()), ("1\n2\n3\n", 1));
}

#[tokio::test]
async fn an_export_that_is_cut_off_is_2_however_it_is_cut() {
    let sink = Sink::start().await;
    for (chunks, end) in [(&["1\n"][..], ""), (&["1\n"], "5\r\n22"), (&["1\n22"], "0\r\n\r\n"), (&[], "")] {
        sink.answer(stream(chunks, end));
        let run = ringback(&sink.url(""), &["export"]).await;
        assert_eq!(run.code, Some(2), "{chunks:?} {end:?}: {run:?}");
        assert!(run.err.contains("the export is incomplete after"), "{run:?}");
    }
}

#[tokio::test]
async fn an_export_waits_for_a_server_that_asks_for_it() {
    let sink = Sink::start().await;
    let problem =
        json!({"type": "about:blank", "status": 503, "title": "Service Unavailable", "detail": "x"});
    let busy = Answer::status(503).header("retry-after", "1").body(problem.to_string());
    sink.answer(Script::first(2, busy).finally(stream(&["1\n"], "0\r\n\r\n")));
    let run = ringback(&sink.url(""), &["export"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "1\n"), "{run:?}");
    assert!(run.err.contains("503 Service Unavailable: x; trying again"), "{run:?}");
    let at: Vec<_> = sink.arrivals().iter().map(|arrival| arrival.at).collect();
    assert!(at[1].duration_since(at[0]).as_millis() >= 1_000, "{at:?}");
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_error() {
    let sink = Sink::start().await;
    let line = format!("{{\"x\":\"{}\"}}\n", "y".repeat(1_000));
    let chunk = line.repeat(500);
    sink.answer(stream(&[chunk.as_str(); 8], "0\r\n\r\n"));
    let mut command = spec(&sink.url(""), &["export"]).command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0; 10]).unwrap();
        drop(out);
        Run::from(child.wait_with_output().unwrap())
    });
    let run = run.await.unwrap();
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
}
