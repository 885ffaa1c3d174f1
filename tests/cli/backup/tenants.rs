//! Backups and exports of installations with tenants: jobs, policies, secrets and pauses of a tenant go back to that
//! tenant, whatever has the same name elsewhere, and a key restores nothing for another tenant.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::api_only;
use super::files::of_jobs;
use crate::cli::keys::{ROOT, keyed};
use crate::cli::{Run, reports, ringback, run_fed, spec};
use crate::prelude::*;

/// Whom things belong to: no tenant, and two. Each has a topic and jobs of the same names.
const OWNERS: [Option<&str>; 3] = [None, Some("acme"), Some("bolt")];
const MASTER_KEY: &str = "k1:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=";
/// A time that no test reaches.
const FAR: &str = "2036-01-02T03:04:05.678Z";

/// The options of an API that requires keys.
fn api(store: Option<&str>, shards: u16) -> StackOptions {
    let options = api_only(store, shards).env("RINGBACK_MASTER_KEYS", MASTER_KEY);
    options.env("RINGBACK_ROOT_KEY", ROOT)
}

fn name(owner: Option<&str>) -> &str {
    owner.unwrap_or("nobody")
}

/// The command-line flags that choose a tenant; none without a tenant.
fn flags(owner: Option<&str>) -> Vec<&str> {
    owner.map(|tenant| vec!["--tenant", tenant]).unwrap_or_default()
}

async fn as_root(stack: &Stack, words: &[&str]) -> Run {
    keyed(&stack.url(""), ROOT, words).await
}

/// Runs a command with the root key, and asserts that it succeeds.
async fn done(stack: &Stack, words: &[&str]) -> Run {
    let run = as_root(stack, words).await;
    assert_eq!(run.code, Some(0), "{words:?}: {run:?}");
    run
}

/// Gives each owner a policy with a header, a signing secret, paused topics and hosts, and three jobs.
async fn fill(stack: &Stack) {
    for owner in OWNERS {
        let header = format!("authorization:of {}", name(owner));
        let policy = ["policy", "set", "pay", "--timeout", "5", "--header", &header, "--headers-to", "*"];
        done(stack, &[&policy, &*flags(owner)].concat()).await;
        done(stack, &[&["secret", "add", "pay"], &*flags(owner)].concat()).await;
        let paused = format!("paused-of-{}", name(owner));
        for topic in ["held", &paused] {
            done(stack, &[&["pause", topic], &*flags(owner)].concat()).await;
        }
        let host = format!("{}.example:8443", name(owner));
        for host in ["held.example", &host] {
            done(stack, &[&["pause", "--host", host], &*flags(owner)].concat()).await;
        }
    }
    let jobs: String = OWNERS.iter().flat_map(|owner| jobs(*owner)).map(|job| format!("{job}\n")).collect();
    let import = spec(&stack.url(""), &["import", "-", "--json"]).env("RINGBACK_KEY", ROOT);
    let run = run_fed(import, jobs.into_bytes()).await;
    assert_eq!((run.code, &run.json()["created"]), (Some(0), &json!(9)), "{run:?}");
}

fn jobs(owner: Option<&str>) -> [Value; 3] {
    let job = |topic: &str, id: &str| json!({"topic": topic, "id": id, "url": "http://127.0.0.1:9/", "at": FAR, "body": name(owner)});
    let mut dead = job("pay", "dead");
    (dead["state"], dead["reason"], dead["attempts"]) = ("dead".into(), "gone".into(), 1.into());
    (dead["failures"], dead["at"]) = (1.into(), "2026-11-20T10:00:00.000Z".into());
    let mut jobs = [job("pay", "same"), job("held", "same"), dead];
    if let Some(tenant) = owner {
        jobs.iter_mut().for_each(|job| job["tenant"] = tenant.into());
    }
    jobs
}

/// All exported jobs of an installation, by tenant, topic and id.
async fn exported(stack: &Stack) -> BTreeMap<String, Value> {
    let lines = done(stack, &["export"]).await.out;
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let named = |job: Value| (format!("{} {} {}", job["tenant"], job["topic"], job["id"]), job);
    lines.map(named).collect()
}

/// Makes a backup. Returns the values of its lines by kind.
async fn saved(stack: &Stack, path: &str, words: &[&str]) -> BTreeMap<String, Vec<Value>> {
    done(stack, &[&["backup", path], words].concat()).await;
    let mut lines = BTreeMap::<_, Vec<_>>::new();
    for line in fs::read_to_string(path).expect("a file").lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let kind = line["kind"].as_str().expect("a kind").to_owned();
        lines.entry(kind).or_default().push(line["value"].clone());
    }
    lines
}

/// The lines of a backup except the first and the last, in which two backups of the same installation differ.
fn content(mut lines: BTreeMap<String, Vec<Value>>) -> Value {
    lines.retain(|kind, _| !["backup", "end"].contains(&kind.as_str()));
    json!(lines)
}

/// Restores a backup. Returns how many topics and jobs were created, repeated and refused.
async fn restored(stack: &Stack, path: &str, words: &[&str]) -> Value {
    let run = done(stack, &[&["restore", path, "--json"], words].concat()).await.json();
    let counts = |of: &str| json!([run[of]["created"], run[of]["repeated"], run[of]["refused"]]);
    json!([counts("topics"), counts("jobs")])
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().expect("UTF-8").to_owned()
}

#[tokio::test]
async fn all_tenants_go_to_another_store_and_back_each_to_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = api(None, 4).start().await;
    fill(&first).await;
    let (jobs, file) = (exported(&first).await, path(dir.path(), "first"));
    assert_eq!(jobs.len(), 9, "{jobs:?}");
    let lines = saved(&first, &file, &[]).await;
    let counts: Vec<_> = lines.iter().map(|(kind, lines)| (kind.as_str(), lines.len())).collect();
    let expected = [("destination", 6), ("job", 9), ("topic", 9)];
    let others = [("backup", 1), ("end", 1)];
    assert!(
        counts.len() == 5 && expected.iter().chain(&others).all(|kind| counts.contains(kind)),
        "{counts:?}"
    );
    let expected: Value = expected.into_iter().map(|(kind, n)| (kind.to_owned(), json!(n))).collect();
    assert_eq!(lines["end"][0]["counts"], expected);
    let for_all = lines["destination"].iter().filter(|line| line["for_all"] == true);
    assert_eq!(for_all.count(), 2, "{lines:?}");
    let content_of_first = content(lines);

    let second = api(Some("embedded:./data"), 7).start().await;
    assert_eq!(restored(&second, &file, &[]).await, json!([[9, 0, 0], [9, 0, 0]]));
    assert_eq!(exported(&second).await, jobs);
    let again = path(dir.path(), "second");
    assert_eq!(content(saved(&second, &again, &[]).await), content_of_first);
    assert_eq!(restored(&second, &file, &[]).await, json!([[0, 9, 0], [0, 9, 0]]));
    for owner in OWNERS {
        let secrets = done(&second, &[&["secret", "list", "pay", "--json"], &*flags(owner)].concat()).await;
        let before = done(&first, &[&["secret", "list", "pay", "--json"], &*flags(owner)].concat()).await;
        assert_eq!(secrets.json(), before.json(), "{owner:?}");
        let topics = done(&second, &[&["topics", "--json"], &*flags(owner)].concat()).await.out;
        assert!(topics.contains(&format!("paused-of-{}", name(owner))), "{topics}");
        assert_eq!(topics.matches("paused-of-").count(), 1, "{topics}");
    }

    let third = api(None, 3).start().await;
    assert_eq!(restored(&third, &again, &[]).await, json!([[9, 0, 0], [9, 0, 0]]));
    assert_eq!(exported(&third).await, jobs);
}

#[tokio::test]
async fn a_tenant_is_saved_and_restored_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = api(None, 4).start().await;
    fill(&first).await;
    let (all, one) = (path(dir.path(), "all"), path(dir.path(), "one"));
    saved(&first, &all, &[]).await;
    let lines = saved(&first, &one, &["--tenant", "acme"]).await;
    assert_eq!((&lines["backup"][0]["tenant"], lines["job"].len()), (&json!("acme"), 3));
    let mut acme = exported(&first).await;
    acme.retain(|_, job| job["tenant"] == "acme");

    let second = api(Some("embedded:./data"), 2).start().await;
    let run = as_root(&second, &["restore", &all, "--tenant", "cork"]).await;
    assert!(
        run.code == Some(2) && run.err.contains("has nothing of tenant cork, and nothing was changed"),
        "{run:?}"
    );
    assert_eq!(restored(&second, &all, &["--tenant", "acme"]).await, json!([[3, 0, 0], [3, 0, 0]]));
    assert_eq!(exported(&second).await, acme);
    let again = saved(&second, &path(dir.path(), "again"), &[]).await;
    let hosts = ["acme.example:8443", "held.example"];
    assert_eq!(
        again["destination"],
        hosts.map(|host| json!({"tenant": "acme", "destination": host, "for_all": false}))
    );
    assert_eq!(restored(&second, &one, &[]).await, json!([[0, 3, 0], [0, 3, 0]]));

    // The tenant does so itself, with its own key.
    let third = api(None, 2).start().await;
    let scopes = ["--scope", "import", "--scope", "manage", "--scope", "read"];
    let mut keys = Vec::new();
    for stack in [&first, &third] {
        let made = done(stack, &[&["key", "create", "--tenant", "acme"], &scopes[..]].concat()).await;
        keys.push(made.out.trim_end().to_owned());
    }
    let own = path(dir.path(), "own");
    assert_eq!(keyed(&first.url(""), &keys[0], &["backup", &own]).await.code, Some(0));
    let run = keyed(&third.url(""), &keys[1], &["restore", &own, "--json"]).await;
    assert_eq!((run.code, &run.json()["jobs"]["created"]), (Some(0), &json!(3)), "{run:?}");
    assert_eq!(exported(&third).await, acme);
}

#[tokio::test]
async fn an_export_of_all_tenants_is_imported_for_each_or_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = api(None, 4).start().await;
    fill(&first).await;
    let (jobs, file) = (exported(&first).await, path(dir.path(), "jobs"));
    done(&first, &["export", "-o", &file, "--tenant", "acme"]).await;
    let second = api(Some("embedded:./data"), 2).start().await;
    let run = as_root(&second, &["import", &file, "--tenant", "bolt", "--json"]).await;
    assert_eq!((run.code, &run.json()["refused"]), (Some(1), &json!(3)), "{run:?}");
    assert_eq!(exported(&second).await, BTreeMap::new());
    done(&first, &["export", "-o", &file]).await;
    assert_eq!(done(&second, &["import", &file, "--json"]).await.json()["created"], 9);
    assert_eq!(exported(&second).await, jobs);
}

#[tokio::test]
async fn nothing_is_restored_with_a_key_that_is_not_for_all_of_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = api(None, 4).start().await;
    fill(&first).await;
    let file = path(dir.path(), "all");
    saved(&first, &file, &[]).await;

    let second = api(None, 2).start().await;
    let scopes = ["--scope", "import", "--scope", "manage", "--scope", "read"];
    for (words, why) in [
        (&["--tenant", "acme"][..], "what belongs to no tenant: 403 Forbidden: the key is of another tenant"),
        (&[], "what belongs to tenant acme: 403 Forbidden: the key is of another tenant"),
    ] {
        let made = done(&second, &[&["key", "create"], &scopes[..], words].concat()).await;
        let run = keyed(&second.url(""), made.out.trim_end(), &["restore", &file]).await;
        assert!(run.code == Some(2) && run.err.contains(why), "{run:?}");
        assert!(run.err.contains("next: set RINGBACK_KEY to a key that allows this"), "{run:?}");
    }
    let nothing = content(saved(&second, &path(dir.path(), "second"), &[]).await);
    assert_eq!(nothing, json!({}));

    // A file without tenants does not become that of a tenant.
    let plain = StackOptions::api_only().start().await;
    assert_eq!(ringback(&plain.url(""), &["pause", "t"]).await.code, Some(0));
    let job = ["submit", "--topic", "t", "--id", "a", "--url", "http://127.0.0.1:9/", "--delay", "1h"];
    assert_eq!(ringback(&plain.url(""), &job).await.code, Some(0));
    let old = path(dir.path(), "plain");
    assert_eq!(ringback(&plain.url(""), &["backup", &old]).await.code, Some(0));
    let made = done(&second, &[&["key", "create", "--tenant", "acme"], &scopes[..]].concat()).await;
    let run = keyed(&second.url(""), made.out.trim_end(), &["restore", &old]).await;
    assert!(run.code == Some(2) && run.err.contains("what belongs to no tenant: 403"), "{run:?}");
    assert_eq!(exported(&second).await, BTreeMap::new());
    assert_eq!(restored(&second, &old, &[]).await, json!([[1, 0, 0], [1, 0, 0]]));

    // Servers without tenants.
    reports(&plain.url(""), &["restore", &file], 2, "there are no tenants without a root key").await;
    let run = ringback(&plain.url(""), &["topics", "--json"]).await;
    assert!(!run.out.contains("pay") && !run.out.contains("held"), "{run:?}");
}

#[tokio::test]
async fn jobs_without_a_tenant_are_restored_as_such_whoever_the_key_is_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = path(dir.path(), "jobs");
    fs::write(&file, of_jobs(jobs(None).into_iter())).expect("a file");
    let sink = Sink::start().await;
    sink.answer_path("/v1/export/topics", Answer::status(200).body(""));
    let answer = json!({"created": 3, "repeated": 0, "refused": 0, "problems": []});
    sink.answer_path("/v1/import", Answer::status(200).body(answer.to_string()));
    let run = keyed(&sink.url(""), ROOT, &["restore", &file]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let arrivals = sink.arrivals();
    assert_eq!(arrivals.len(), 2, "{arrivals:?}");
    for arrival in arrivals {
        assert_eq!(arrival.header("ringback-tenant"), Some("~none"), "{arrival:?}");
    }
}
