//! The audit log in the archive: each entry is there once, after restarts and when late, and goes after its retention.

use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::store_types::{AuditLogId, AuditLogOwner, AuditLogRow, Options};
use ringback_store::{Store, settings};
use ringback_testkit::http_client;

use super::database::{Database, attached, readable};
use crate::prelude::*;

/// All columns but `at`, which databases have in different units, the oldest entry first.
const ALL: &str = "select id, tenant, who, address, operation, target, before, after, count, outcome, trace_id from \
    ringback_audit_log order by id";

/// The limit until the log is read again, also after a few pauses.
const READ: Duration = Duration::from_secs(30);

/// The entries that the API shows, the oldest first.
async fn entries(stack: &Stack) -> Vec<Value> {
    let page = stack.get("/v1/audit-log?limit=1000").await.expect(200);
    let mut items = page["items"].as_array().expect("items").clone();
    items.reverse();
    items
}

/// An entry as the columns of its row. JSON is written anew as text, because databases may change its spaces.
fn columns(entry: &Value) -> Vec<String> {
    let names = [
        "id",
        "tenant",
        "who",
        "address",
        "operation",
        "target",
        "before",
        "after",
        "count",
        "outcome",
        "trace_id",
    ];
    names.map(|name| entry[name].as_str().map_or_else(|| entry[name].to_string(), str::to_owned)).to_vec()
}

/// The rows of the archived audit log, with JSON written as [`columns`] does.
async fn archived(database: &Database) -> Vec<Vec<String>> {
    let mut rows = database.rows(ALL).await;
    for row in &mut rows {
        for json in &mut row[5..8] {
            *json = serde_json::from_str::<Value>(json).expect("JSON").to_string();
        }
    }
    rows
}

async fn pause(stack: &Stack, topic: &str) {
    stack.post_empty(&format!("/v1/topics/{topic}/pause")).await.expect(200);
}

/// Waits until the archive has exactly the `count` entries that the API shows.
async fn is_archived(stack: &Stack, database: &Database, count: usize) {
    eventually(READ, &format!("{count} entries"), async || {
        let (shown, kept) = (entries(stack).await, archived(database).await);
        let expected: Vec<_> = shown.iter().map(columns).collect();
        if kept.len() == count && kept == expected {
            Ok(())
        } else {
            Err(format!("{kept:?}, not {expected:?}"))
        }
    })
    .await;
}

#[tokio::test]
async fn each_entry_of_the_audit_log_is_in_the_archive_with_all_that_it_says() {
    for (database, stack) in Database::each(|options| options).await {
        let sink = Sink::start().await;
        stack.accept(&with(job(&sink, "a"), "delay", "1h")).await;
        stack.delete(&format!("/v1/jobs/{TOPIC}/a")).await.expect(200);
        let policy = json!({"url": "http://127.0.0.1:9/a", "headers": {"authorization": "Bearer s3cret"}});
        stack.put(&format!("/v1/topics/{TOPIC}"), &policy).await.expect(201);
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let paused = http_client().post(stack.url("/v1/topics/b/pause")).header("traceparent", trace).send();
        assert_eq!(paused.await.expect("an answer").status(), 200);
        stack.post_empty("/v1/destinations/h.example/pause").await.expect(200);
        is_archived(&stack, &database, 4).await;
        let rows = archived(&database).await;
        let operations: Vec<_> = rows.iter().map(|row| row[4].as_str()).collect();
        assert_eq!(operations, ["cancel", "put_policy", "pause", "pause_destination"]);
        assert!(!format!("{rows:?}").contains("s3cret"), "{rows:?}");
        let recent = match &database {
            Database::Postgres(_) => {
                "select count(*) from ringback_audit_log where now() - at < interval '1 minute'"
            }
            Database::Sqlite(_) => {
                "select count(*) from ringback_audit_log where unixepoch() * 1000 - at between -5000 and 60000"
            }
        };
        assert_eq!(database.rows(recent).await, [["4"]]);
    }
}

#[tokio::test]
async fn entries_that_came_while_the_database_or_the_archivers_were_away_are_archived_once() {
    let (mut database, mut stack) = Database::with_archivers(2).await;
    pause(&stack, "a").await;
    is_archived(&stack, &database, 1).await;
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    server.kill();
    // More entries than one page of the store.
    for n in 0..300 {
        pause(&stack, &format!("b{n}")).await;
    }
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    server.restart().await;
    is_archived(&stack, &database, 301).await;
    stack.archivers.iter_mut().for_each(|archiver| archiver.kill());
    pause(&stack, "c").await;
    stack.archivers.iter_mut().for_each(|archiver| archiver.restart());
    is_archived(&stack, &database, 302).await;
    assert_eq!(new_entries(&stack).await, 1, "what was there is not new");
}

/// The number of entries that the running archivers have added.
async fn new_entries(stack: &Stack) -> u64 {
    let mut sum = 0;
    for archiver in &stack.archivers {
        sum += archiver.metric("ringback_archiver_audit_log_entries_total").await.unwrap_or_default() as u64;
    }
    sum
}

#[tokio::test]
async fn an_entry_that_comes_late_and_one_that_cannot_be_read_hold_up_nothing() {
    let (database, stack) = Database::with_archivers(1).await;
    pause(&stack, "a").await;
    is_archived(&stack, &database, 1).await;
    let [shown] = &entries(&stack).await[..] else { panic!("one entry") };
    // Entries as an API writes them after 25 s without the store, one with a NUL, and one that is no entry.
    let store = Store::open(Options { url: stack.store_url(), ..settings::defaults(SOON) }).expect("a store");
    store.prepare().await.expect("it answers");
    let mut late = shown.clone();
    late["target"]["topic"] = "nul\0nul".into();
    let id = |random| AuditLogId::new(SystemClock.now().minus(Duration::from_secs(25)), random);
    let row = |random, written: String| AuditLogRow {
        id: id(random),
        owner: AuditLogOwner::Tenant(None),
        written: written.into(),
    };
    store.append_audit_log(&[row(1, late.to_string()), row(2, "no entry".to_owned())]).await.expect("append");
    pause(&stack, "b").await;
    eventually(READ, "both are there", async || {
        let topics: Vec<_> = archived(&database)
            .await
            .iter()
            .map(|row| serde_json::from_str::<Value>(&row[5]).expect("JSON"))
            .collect();
        let expected = ["nul\u{fffd}nul", "a", "b"].map(|topic| json!({"topic": topic}));
        if topics == expected { Ok(()) } else { Err(format!("{topics:?}")) }
    })
    .await;
    assert!(stack.archivers[0].log().contains("an entry of the audit log is not archived"));
    let lost = stack.archivers[0].metric("ringback_archiver_lost_audit_log_entries_total").await;
    assert_eq!(lost, Some(1.0));
}

#[tokio::test]
async fn a_database_that_takes_ends_but_no_audit_log_is_no_outage() {
    let (database, stack) = Database::with_archivers(1).await;
    readable(&stack).await;
    let refuse = "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$; \
        create trigger refuse before insert on ringback_audit_log for each row execute function refuse()";
    database.rows(refuse).await;
    pause(&stack, "a").await;
    let says = "the database does not take the audit log";
    eventually(SOON, "the archiver says why", async || {
        let log = stack.archivers[0].log();
        if log.contains(says) && log.contains("no") { Ok(()) } else { Err(log) }
    })
    .await;
    let sink = Sink::start().await;
    for id in ["a", "b", "c"] {
        stack.accept(&job(&sink, id)).await;
        let sql = format!("select id from ringback_ended_jobs where id = '{id}'");
        database.lines(&sql, 1, SOON).await;
    }
    let log = stack.archivers[0].log();
    assert!(log.matches(says).count() == 1 && !log.contains("the archive is unavailable"), "{log}");
    database.rows("drop trigger refuse on ringback_audit_log").await;
    is_archived(&stack, &database, 1).await;
    assert!(stack.archivers[0].log().contains("the audit log is archived again"));
}

#[tokio::test]
async fn entries_that_were_kept_long_enough_are_removed() {
    for (database, options) in Database::options(|options| options.env("RINGBACK_ARCHIVE_KEEP", "30d")).await
    {
        let mut stack = options.start().await;
        attached(&stack).await;
        pause(&stack, "a").await;
        is_archived(&stack, &database, 1).await;
        let old = |days: u32| match &database {
            Database::Postgres(_) => format!("now() - interval '{days} days'"),
            Database::Sqlite(_) => format!("(unixepoch() - {days} * 86400) * 1000"),
        };
        for (id, days) in [("0old", 31), ("0kept", 29)] {
            let at = old(days);
            let sql = format!(
                "insert into ringback_audit_log (id, at, who, operation, target, outcome, archived_at) \
                values ('{id}', {at}, 'open', 'pause', '{{}}', 'done', {at})"
            );
            database.execute(&sql).await;
        }
        match &database {
            Database::Postgres(_) => stack.archivers[0].restart(),
            Database::Sqlite(_) => stack.ups[0].restart(),
        }
        let by_hand = "select id from ringback_audit_log where id in ('0old', '0kept')";
        assert_eq!(database.lines(by_hand, 1, SOON).await, ["0kept"]);
    }
}
