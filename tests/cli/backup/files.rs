//! Helpers for backup tests: run backups and restores, read backup files, and make such a file from jobs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::cli::{Run, ringback};
use crate::prelude::*;

/// A backup that was read.
pub(super) struct Backup {
    pub(super) header: Value,
    lines: Vec<Value>,
}

impl Backup {
    pub(super) fn parse(text: &str) -> Self {
        let mut lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let end = lines.pop().expect("a last line");
        let body = text.rfind("{\"kind\":\"end\"").expect("a last line");
        let digest: String = Sha256::digest(&text[..body]).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((&end["kind"], &end["value"]["sha256"]), (&"end".into(), &digest.into()));
        let header = lines.remove(0);
        assert_eq!(header["kind"], "backup");
        assert_eq!(header["value"]["format"], 1);
        let saved = Self { header: header["value"].clone(), lines };
        let count = |kind: &str| saved.lines(kind).count() as u64;
        assert_eq!(end["value"]["counts"], serde_json::json!({"topic": count("topic"), "job": count("job")}));
        saved
    }

    pub(super) fn lines(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(move |line| line["kind"] == kind).map(|line| &line["value"])
    }

    /// The number of topics and of jobs.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.lines("topic").count(), self.lines("job").count())
    }

    pub(super) fn topics(&self) -> BTreeMap<String, Value> {
        self.lines("topic").map(|line| (line["topic"].to_string(), line.clone())).collect()
    }

    /// The jobs by topic and id: reserved ones as ready, ready ones without due time. Panics if one is there twice.
    pub(super) fn jobs(&self) -> BTreeMap<String, Value> {
        let mut jobs = BTreeMap::new();
        for line in self.lines("job") {
            let mut line = line.clone();
            if matches!(line["state"].as_str(), Some("ready" | "reserved")) {
                (line["state"], line["at"]) = ("ready".into(), Value::Null);
            }
            let name = format!("{}/{}", line["topic"], line["id"]);
            assert!(jobs.insert(name.clone(), line).is_none(), "{name} is there twice");
        }
        jobs
    }
}

/// Makes a backup in a directory and asserts its messages and that only the owner can read it. Returns content and path.
pub(super) async fn backup(stack: &Stack, dir: &Path, name: &str) -> (Backup, String) {
    let path = dir.join(name).to_str().expect("UTF-8").to_owned();
    let run = ringback(&stack.url(""), &["backup", &path]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""), "{run:?}");
    let saved = Backup::parse(&fs::read_to_string(&path).expect("a file"));
    let (topics, jobs) = saved.counts();
    assert_eq!(run.err, format!("{jobs} jobs and {topics} topics saved to {path}\n"));
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    (saved, path)
}

pub(super) async fn restore(stack: &Stack, path: &str, flags: &[&str]) -> Run {
    ringback(&stack.url(""), &[&["restore", path], flags].concat()).await
}

/// Restores a backup. Asserts that it succeeds, with no message but retries of a busy server. Returns printed counts.
pub(super) async fn restored(stack: &Stack, path: &str) -> Value {
    let run = restore(stack, path, &["--json"]).await;
    let has_failed = run.err.lines().any(|line| !line.contains("trying again for up to"));
    assert!(run.code == Some(0) && !has_failed, "{run:?}");
    run.json()
}

/// The text of a backup file with these jobs.
pub(super) fn of_jobs(jobs: impl Iterator<Item = Value>) -> String {
    let header = serde_json::json!({"kind": "backup", "value":
        {"format": 1, "version": "0.1.0", "store": "redis", "layout": 1, "at": "2026-11-22T17:00:00.000Z"}});
    let (mut text, mut count) = (format!("{header}\n"), 0);
    for job in jobs {
        text += &format!("{{\"kind\":\"job\",\"value\":{job}}}\n");
        count += 1;
    }
    let digest: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    let counts = serde_json::json!({"topic": 0, "job": count});
    text + &format!("{{\"kind\":\"end\",\"value\":{{\"counts\":{counts},\"sha256\":\"{digest}\"}}}}\n")
}
