//! Backups that earlier builds made, one for each layout of a store: every later build restores them. The files were
//! made of the installation in `sample`. A build with another layout adds a file and keeps these.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::files::{Backup, backup, restored};
use super::sample::{JOBS, TOPICS};
use super::{api_only, dead};

/// The files, with the kind of the store and the layout that each was made on.
const FILES: [(&str, &str, u64); 7] = [
    ("redis-7.backup", "redis", 7),
    ("redis-8.backup", "redis", 8),
    ("embedded-4.backup", "embedded", 4),
    ("embedded-5.backup", "embedded", 5),
    ("embedded-6.backup", "embedded", 6),
    ("embedded-7.backup", "embedded", 7),
    ("embedded-8.backup", "embedded", 8),
];

#[tokio::test]
async fn backups_of_earlier_layouts_are_restored_on_both_stores() {
    for (name, kind, layout) in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("backups").join(name);
        let saved = Backup::parse(&std::fs::read_to_string(&path).expect("a file"));
        assert_eq!((&saved.header["store"], &saved.header["layout"]), (&json!(kind), &json!(layout)));
        assert_eq!(saved.counts(), (TOPICS, JOBS.len()));
        let path = path.to_str().expect("UTF-8");
        for store in [None, Some("embedded:./data")] {
            let stack = api_only(store, 3).start().await;
            let run = restored(&stack, path).await;
            assert_eq!(
                (&run["topics"]["created"], &run["jobs"]["created"]),
                (&json!(TOPICS), &json!(JOBS.len()))
            );
            let dir = tempfile::tempdir().expect("a directory");
            let (again, _) = backup(&stack, dir.path(), "again").await;
            assert_eq!(without_states(again.jobs()), without_states(saved.jobs()), "{name}");
            assert_eq!(again.topics(), with_all_origins(saved.topics()), "{name}");
            let dead = dead(&stack).await;
            let reasons: Vec<_> = dead.values().map(|job| json!([job["reason"], job["attempts"]])).collect();
            assert_eq!(reasons, [json!(["gone", 3]), json!(["bad-input", 1])], "{name}");
        }
    }
}

/// The topics with what these backups do not say: headers of policies went to all origins.
fn with_all_origins(mut topics: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    for policy in topics.values_mut().map(|topic| &mut topic["policy"]) {
        if policy["headers"].is_object() {
            policy["headers_to"] = json!(["*"]);
        }
    }
    topics
}

/// The jobs without their due times and states: one that was delayed then may be due when this runs.
fn without_states(mut jobs: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let pending = jobs.values_mut().filter(|job| job["state"] != "dead");
    pending.for_each(|job| (job["state"], job["at"]) = (Value::Null, Value::Null));
    jobs
}
