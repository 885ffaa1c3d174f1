//! Cases of topic policies: put, changed, read, deleted, limited, and known to shared configurations within a second.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use ringback_core::job::Topic;
use ringback_core::store_types::{PolicyPut, StoreError};
use ringback_core::topic_policy::{MAX_POLICIES, MAX_POLICY, MAX_TOPICS_WITH_METRICS, Policy};
use ringback_store::{ConfigUnknown, SharedConfig, Store};
use ringback_wire::parse_policy;
use tokio::task::JoinSet;

use super::job_builders::{LONG, TOPIC, With as _, bury};
use super::workbench::{SOON, Workbench};
use crate::prelude::*;

/// The limit until a change is known: a second and what a busy machine adds, but less than the five seconds after which
/// every process checks.
pub(crate) const SECOND: Duration = Duration::from_secs(3);

pub(crate) fn topic(name: &str) -> Topic {
    name.parse().expect("a topic")
}

pub(crate) fn policy(json: &str) -> Policy {
    parse_policy(json.as_bytes()).expect("a policy")
}

/// Puts a policy. Returns whether it is new; `None` if there are too many policies.
pub(crate) async fn put(store: &Store, name: &str, json: &str) -> Option<bool> {
    is_new(store.put_policy(&topic(name), &policy(json)).await)
}

fn is_new(put: Result<PolicyPut, StoreError>) -> Option<bool> {
    match put.expect("put") {
        PolicyPut::Created(_) => Some(true),
        PolicyPut::Replaced(_) => Some(false),
        PolicyPut::TooMany | PolicyPut::TooManyWithMetrics | PolicyPut::TooManyLimits(_) => None,
        PolicyPut::Outdated => panic!("it replaces any other"),
    }
}

async fn written(store: &Store, name: &str) -> Option<String> {
    let found = store.policy(&topic(name)).await.expect("policy");
    found.map(|policy| policy.written().to_owned())
}

/// Keeps a shared configuration up to date while `work` runs.
pub(crate) async fn keeping(shared: SharedConfig, store: Store, work: impl Future<Output = ()>) {
    let keep = shared.keep(store, StdRng::seed_from_u64(1), || {});
    tokio::select! {
        () = keep => panic!("the shared configuration is kept for ever"),
        () = work => {}
    }
}

/// The timeout in seconds that the shared configuration has for a topic.
pub(crate) fn timeout(shared: &SharedConfig, name: &str) -> Result<Option<u64>, ConfigUnknown> {
    Ok(shared.get(&topic(name))?.and_then(|policy| policy.timeout).map(|timeout| timeout.as_secs()))
}

pub(crate) async fn knows(shared: &SharedConfig, name: &str, seconds: Option<u64>, within: Duration) {
    eventually(within, &format!("{name} is known with {seconds:?}"), async || {
        let known = timeout(shared, name);
        if known == Ok(seconds) { Ok(()) } else { Err(format!("{known:?}")) }
    })
    .await;
}

pub(crate) async fn a_topic_has_the_policy_that_was_put_last(bench: &Workbench) {
    let store = bench.store();
    assert_eq!(written(store, "a").await, None);
    assert_eq!(put(store, "a", r#"{"timeout":"1s","url":"http://h/"}"#).await, Some(true));
    assert_eq!(put(store, "b", "{}").await, Some(true));
    let second = r#"{"retry":{"delays":["1s"],"max":-1},"headers":{"X-A":"é\u0041"},"expect_body":"ok"}"#;
    assert!(parse_policy(second.as_bytes()).is_err(), "a header in ASCII alone");
    let second = r#"{"retry":{"delays":["1s"],"max":-1},"headers":{"X-A":"1"},"expect_body":"ö\"\\"}"#;
    assert_eq!(put(store, "a", second).await, Some(false));
    assert_eq!(written(store, "a").await.as_deref(), Some(second), "nothing of the first is left");
    assert_eq!(written(store, "b").await.as_deref(), Some("{}"));
    let again = bench.another(bench.options());
    again.prepare().await.expect("prepare");
    assert_eq!(again.policy(&topic("a")).await.expect("policy"), Some(policy(second)));
}

pub(crate) async fn a_deleted_policy_is_gone_and_a_second_delete_finds_none(bench: &Workbench) {
    let store = bench.store();
    put(store, "a", "{}").await;
    put(store, "b", "{}").await;
    assert!(store.delete_policy(&topic("a")).await.expect("delete").is_some());
    assert_eq!(store.delete_policy(&topic("a")).await.expect("delete"), None, "it had none any more");
    assert_eq!((written(store, "a").await, written(store, "b").await), (None, Some("{}".to_owned())));
    assert!(store.delete_policy(&topic("b")).await.expect("delete").is_some());
    assert_eq!(put(store, "a", "{}").await, Some(true));
}

pub(crate) async fn each_change_of_a_policy_has_a_later_version(bench: &Workbench) {
    let store = bench.store();
    let all = async |known| store.policies(known).await.expect("policies");
    let (mut last, none) = all(None).await.expect("nothing is known");
    assert!(none.is_empty());
    assert!(all(Some(last)).await.is_none(), "nothing has changed");
    for n in 0..6_usize {
        match n {
            3 => drop(store.delete_policy(&topic("t-1")).await.expect("delete")),
            5 => drop(put(store, "t-0", r#"{"ttr":"1s"}"#).await),
            _ => drop(put(store, &format!("t-{n}"), "{}").await),
        }
        let (version, _) = all(Some(last)).await.expect("a change");
        assert!(version > last, "{version:?} after {last:?}");
        last = version;
    }
    store.delete_policy(&topic("absent")).await.expect("delete");
    assert!(all(Some(last)).await.is_none(), "what changes nothing is no change");
    let (_, policies) = all(None).await.expect("nothing is known");
    let mut names: Vec<_> = policies.keys().map(Topic::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["t-0", "t-2", "t-4"]);
    assert_eq!(policies[&topic("t-0")].ttr, Some(Duration::from_secs(1)));
}

pub(crate) async fn policies_of_the_largest_size_are_read_as_a_whole(bench: &Workbench) {
    let expected = "x".repeat(1024);
    let with = |value: &str| format!(r#"{{"headers":{{"a":"{value}"}},"expect_body":"{expected}"}}"#);
    // A backslash takes two bytes in JSON, and headers have 8 KiB.
    let room = MAX_POLICY - with("").len();
    let largest = with(&(r"\\".repeat(room / 2) + &"b".repeat(room % 2)));
    assert_eq!(policy(&largest).written().len(), MAX_POLICY);
    for n in 0..150 {
        put(bench.store(), &format!("topic-{n}"), &largest).await;
    }
    let (_, policies) = bench.store().policies(None).await.expect("policies").expect("nothing is known");
    assert_eq!(policies.len(), 150);
    assert!(policies.values().all(|policy| policy.expect_body.as_deref() == Some(&expected)));
}

/// Each change sees what the others have made, also changes that find no policy.
pub(crate) async fn changes_at_the_same_time_are_all_kept(bench: &Workbench) {
    const CHANGES: usize = 8;
    for name in ["new", "known"] {
        if name == "known" {
            put(bench.store(), name, "{}").await;
        }
        let mut changes = JoinSet::new();
        for n in 0..CHANGES {
            let store = bench.store().clone();
            changes.spawn(async move {
                let add = |stored: Option<&Policy>| {
                    let texts = stored.and_then(|policy| policy.expect_body.clone()).unwrap_or_default();
                    Ok::<_, ()>(policy(&format!(r#"{{"expect_body":"{texts}{n}"}}"#)))
                };
                store.change_policy(&topic(name), add).await.expect("change").expect("a policy").1
            });
        }
        let puts = changes.join_all().await;
        assert!(puts.iter().all(|put| *put != PolicyPut::Outdated), "{puts:?}");
        let created = puts.iter().filter(|put| matches!(put, PolicyPut::Created(_))).count();
        assert_eq!(created, usize::from(name == "new"));
        let stored = bench.store().policy(&topic(name)).await.expect("policy").expect("one");
        let mut texts = stored.expect_body.unwrap_or_default().into_bytes();
        texts.sort_unstable();
        assert_eq!(texts, b"01234567", "{name}");
    }
}

pub(crate) async fn a_policy_beyond_the_limit_is_refused_until_one_is_deleted(bench: &Workbench) {
    let store = bench.store();
    for from in (0..MAX_POLICIES).step_by(500) {
        let mut puts = JoinSet::new();
        for n in from..from + 500 {
            let (store, name) = (store.clone(), topic(&format!("topic-{n}")));
            puts.spawn(async move { store.put_policy(&name, &Policy::default()).await });
        }
        let answers = puts.join_all().await;
        assert!(answers.into_iter().all(|answer| is_new(answer) == Some(true)));
    }
    let (version, all) = store.policies(None).await.expect("policies").expect("nothing is known");
    assert_eq!(all.len(), MAX_POLICIES);
    assert_eq!(put(store, "one-more", "{}").await, None);
    assert!(store.policies(Some(version)).await.expect("policies").is_none(), "nothing has changed");
    assert_eq!(put(store, "topic-7", r#"{"ttr":"1s"}"#).await, Some(false));
    assert!(store.delete_policy(&topic("topic-7")).await.expect("delete").is_some());
    assert_eq!(put(store, "one-more", "{}").await, Some(true));
}

pub(crate) async fn a_topic_with_metrics_beyond_the_limit_is_refused_until_another_has_none(
    bench: &Workbench,
) {
    const WITH: &str = r#"{"metrics":true}"#;
    let store = bench.store();
    for n in 0..MAX_TOPICS_WITH_METRICS {
        assert_eq!(put(store, &format!("topic-{n}"), WITH).await, Some(true));
    }
    put(store, "known", r#"{"ttr":"1s"}"#).await;
    let (version, all) = store.policies(None).await.expect("policies").expect("nothing is known");
    assert_eq!(all.len(), MAX_TOPICS_WITH_METRICS + 1);
    for name in ["new", "known"] {
        let refused = store.put_policy(&topic(name), &policy(WITH)).await.expect("put");
        assert_eq!(refused, PolicyPut::TooManyWithMetrics, "{name}");
    }
    assert_eq!(
        (written(store, "new").await, written(store, "known").await.as_deref()),
        (None, Some(r#"{"ttr":"1s"}"#))
    );
    assert!(store.policies(Some(version)).await.expect("policies").is_none(), "nothing has changed");
    // A topic that has metrics keeps them, and those without are not limited.
    assert_eq!(put(store, "topic-1", r#"{"metrics":true,"ttr":"2s"}"#).await, Some(false));
    assert_eq!(put(store, "other", r#"{"metrics":false}"#).await, Some(true));
    // After each of these changes, one place is free.
    assert_eq!(put(store, "topic-1", "{}").await, Some(false));
    assert_eq!(put(store, "new", WITH).await, Some(true));
    assert_eq!(put(store, "known", WITH).await, None);
    assert!(store.delete_policy(&topic("new")).await.expect("delete").is_some());
    assert_eq!(put(store, "known", WITH).await, Some(false));
    assert_eq!(put(store, "topic-1", WITH).await, None);
}

pub(crate) async fn a_shared_configuration_learns_of_each_change_within_a_second(bench: &Workbench) {
    let (shared, another) = (SharedConfig::default(), bench.another(bench.options()));
    another.prepare().await.expect("prepare");
    put(bench.store(), "before", r#"{"timeout":1}"#).await;
    assert!(shared.get(&topic("before")).is_err() && shared.all().is_err(), "nothing was read yet");
    keeping(shared.clone(), another, async {
        shared.known().await;
        assert_eq!(timeout(&shared, "before"), Ok(Some(1)));
        // The first change may be published before the subscription begins.
        put(bench.store(), "first", r#"{"timeout":1}"#).await;
        knows(&shared, "first", Some(1), SOON).await;
        for seconds in 2..8 {
            put(bench.store(), "topic", &format!(r#"{{"timeout":{seconds}}}"#)).await;
            knows(&shared, "topic", Some(seconds), SECOND).await;
        }
        bench.store().delete_policy(&topic("topic")).await.expect("delete");
        knows(&shared, "topic", None, SECOND).await;
        assert_eq!(timeout(&shared, "before"), Ok(Some(1)));
    })
    .await;
}

pub(crate) async fn a_change_is_known_when_its_version_is_reached(bench: &Workbench) {
    let (shared, store) = (SharedConfig::default(), bench.store().clone());
    keeping(shared.clone(), store.clone(), async {
        for n in 1..50 {
            let policy = policy(&format!(r#"{{"timeout":{n}}}"#));
            let put = store.put_policy(&topic("t"), &policy).await.expect("put");
            let (PolicyPut::Created(version) | PolicyPut::Replaced(version)) = put else { panic!("{put:?}") };
            shared.reached(version).await;
            assert_eq!(timeout(&shared, "t"), Ok(Some(n)));
        }
        let version = store.delete_policy(&topic("t")).await.expect("delete").expect("it had one");
        shared.reached(version).await;
        assert_eq!(timeout(&shared, "t"), Ok(None));
    })
    .await;
}

pub(crate) async fn a_topic_has_jobs_until_the_last_one_has_ended(bench: &Workbench) {
    let has = async |name: &str| bench.store().has_jobs(&topic(name)).await.expect("has jobs");
    assert!(!has("a").await);
    for name in ["a", "a.b", "aa"] {
        bench.accept(bench.job_of(name, "delayed").after(LONG)).await;
    }
    assert!(has("a").await && has("a.b").await && has("aa").await && !has("b").await && !has("a.").await);
    bench.cancel(&bench.key("a", "delayed")).await;
    assert!(!has("a").await && has("a.b").await && has("aa").await);
    for name in ["ready", "reserved", "dead"] {
        let job = bench.accept(bench.job_of("a", name)).await;
        assert!(has("a").await, "it is ready");
        if name != "ready" {
            let lease = bench.take_one(&job.key).await;
            assert!(has("a").await, "it is reserved");
            let outcome = if name == "dead" { bury() } else { Outcome::Complete };
            bench.settle(lease, outcome).await;
        }
        assert_eq!(has("a").await, name != "reserved", "{name}");
        bench.cancel(&job.key).await;
        assert!(!has("a").await);
    }
    bench.accept(bench.pull_job("pull")).await;
    assert!(has(TOPIC).await);
    let far = bench.job_of("far", "away").after(Duration::from_secs(86_400 * 300));
    bench.accept(far).await;
    assert!(has("far").await);
}

pub(crate) async fn a_shared_configuration_knows_nothing_before_the_store_was_found_fit(bench: &Workbench) {
    let (shared, another) = (SharedConfig::default(), bench.another(bench.options()));
    put(bench.store(), "topic", r#"{"timeout":1}"#).await;
    let error = another.policies(None).await.expect_err("not prepared");
    assert!(matches!(error, StoreError::Unprepared), "{error}");
    keeping(shared.clone(), another.clone(), async {
        // The shared configuration is kept meanwhile.
        for _ in 0..100 {
            tokio::task::yield_now().await;
            assert!(shared.get(&topic("topic")).is_err());
        }
        another.prepare().await.expect("prepare");
        shared.known().await;
        assert_eq!(timeout(&shared, "topic"), Ok(Some(1)));
    })
    .await;
}

/// The stored policy with one more second of timeout; an error without a policy.
fn one_more(stored: Option<&Policy>) -> Result<Policy, &'static str> {
    let seconds = stored.ok_or("no policy")?.timeout.expect("a timeout").as_secs() + 1;
    Ok(policy(&format!(r#"{{"timeout":{seconds}}}"#)))
}

pub(crate) async fn a_policy_made_from_the_stored_one_replaces_no_later_one(bench: &Workbench) {
    let store = bench.store();
    let nothing = store.change_policy(&topic("t"), one_more).await.expect("change");
    assert_eq!(nothing, Err("no policy"));
    assert_eq!(written(store, "t").await, None, "nothing was put");
    put(store, "t", r#"{"timeout":1}"#).await;
    let (made, put) = store.change_policy(&topic("t"), one_more).await.expect("change").expect("a policy");
    assert!(matches!(put, PolicyPut::Replaced(_)), "{put:?}");
    assert_eq!(
        (made.written(), written(store, "t").await.as_deref()),
        (r#"{"timeout":2}"#, Some(made.written()))
    );

    let mut changes = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        changes.spawn(async move {
            let mut applied = 0;
            while applied < 5 {
                let change = store.change_policy(&topic("t"), one_more).await.expect("change");
                let (_, put) = change.expect("a policy");
                applied += u32::from(put != PolicyPut::Outdated);
            }
        });
    }
    while let Some(done) = changes.join_next().await {
        done.expect("it ends");
    }
    let expected = 2 + 8 * 5;
    assert_eq!(written(store, "t").await, Some(format!(r#"{{"timeout":{expected}}}"#)), "each change counts");
}
