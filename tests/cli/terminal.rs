//! Output on a terminal: times in the local zone, and notes below the output that they are about.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use nix::pty::openpty;

use super::{ringback, spec};
use crate::prelude::*;

/// Runs a command on a terminal in a time zone. Returns what it prints on both outputs. Asserts that it succeeds.
async fn on_a_terminal(server: &str, words: &[&str], zone: &str) -> String {
    let mut command = spec(server, words).env("TZ", zone).env("NO_COLOR", "1").command();
    let run = move || {
        let terminal = openpty(None, None).expect("a terminal");
        let notes = terminal.slave.try_clone().expect("another handle");
        command.stdin(Stdio::null()).stdout(Stdio::from(terminal.slave)).stderr(Stdio::from(notes));
        let mut child = command.spawn().expect("the binary starts");
        // Drops this program's last handle of the slave: reading fails once all are closed.
        drop(command);
        let (mut printed, mut buffer) = (Vec::new(), [0; 4096]);
        let mut master = File::from(terminal.master);
        while let Ok(length @ 1..) = master.read(&mut buffer) {
            printed.extend_from_slice(&buffer[..length]);
        }
        assert!(child.wait().expect("it ends").success());
        String::from_utf8(printed).expect("text")
    };
    tokio::task::spawn_blocking(run).await.expect("it runs to its end")
}

#[tokio::test]
async fn times_are_local_on_a_terminal_and_utc_elsewhere() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    for (id, at) in [("winter", "2030-01-02T03:04:05.678Z"), ("summer", "2030-07-02T23:04:05.678Z")] {
        let job = json!({"topic": "t", "id": id, "at": at, "url": "http://127.0.0.1:9/"});
        stack.accept(&job).await;
    }
    for (zone, winter, summer) in [
        ("Europe/Berlin", "2030-01-02T04:04:05.678+01:00", "2030-07-03T01:04:05.678+02:00"),
        ("EST5EDT,M3.2.0,M11.1.0", "2030-01-01T22:04:05.678-05:00", "2030-07-02T19:04:05.678-04:00"),
        ("UTC", "2030-01-02T03:04:05.678Z", "2030-07-02T23:04:05.678Z"),
    ] {
        for (words, local) in [(["get", "t/winter"], winter), (["get", "t/summer"], summer)] {
            let shown = on_a_terminal(&server, &words, zone).await;
            assert!(shown.contains(&format!("due       {local} (in ")), "{zone}: {shown}");
        }
        let shown = on_a_terminal(&server, &["list"], zone).await;
        assert!(shown.contains(winter) && shown.contains(summer), "{zone}: {shown}");
    }
    let shown = on_a_terminal(&server, &["get", "t/winter", "--utc"], "Europe/Berlin").await;
    assert!(shown.contains("due       2030-01-02T03:04:05.678Z (in "), "{shown}");
    let shown = on_a_terminal(&server, &["get", "t/winter", "--json"], "Europe/Berlin").await;
    assert!(shown.contains(r#""due_at":"2030-01-02T03:04:05.678Z""#), "{shown}");
    let run = ringback(&server, &["get", "t/winter"]).await;
    assert!(run.out.contains("due       2030-01-02T03:04:05.678Z (in "), "{run:?}");
}

#[tokio::test]
async fn a_note_comes_below_what_it_is_about() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    for id in ["a", "b"] {
        let job = json!({"topic": "t", "id": id, "delay": "1h", "url": "http://127.0.0.1:9/"});
        stack.accept(&job).await;
    }
    for (words, output, note) in [
        (&["list", "--limit", "1"][..], "TOPIC", "the first 1 jobs; more with --limit or --all"),
        (&["get", "t/a", "--curl"], "curl 'http", "webhook-timestamp and traceparent are left out"),
        (&["submit", "--topic", "t", "--id", "c"], "state", "it is a pull job"),
    ] {
        let shown = on_a_terminal(&server, words, "UTC").await;
        let place = |text: &str| shown.find(text).unwrap_or_else(|| panic!("no {text:?} in {shown}"));
        assert!(place(output) < place(note), "{shown}");
    }
}
