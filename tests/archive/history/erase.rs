//! Erasures of the history: ended jobs are gone with their bodies, also those that wait for the archive meanwhile. And
//! the database rights that an API needs.

use ringback_testkit::{PostgresServer, Role};

use super::{ends, found, history, some_ends};
use crate::archive::database::{Database, attached, nothing_waits, readable};
use crate::prelude::*;

/// Inserts rows of `count` done jobs with a tag, as an archiver writes them.
async fn insert_many(database: &Database, count: usize) {
    const COLUMNS: &str = "tenant, topic, id, generation, attempts, state, finished_at, created_at, first_due_at, due_at, failures, \
        attempt_log, attempts_complete, tags";
    match database {
        Database::Postgres(_) => {
            let sql = format!(
                "insert into ringback_ended_jobs ({COLUMNS}) select '', 'many', n::text, n, 1, 'done', now() - interval '1 hour', \
                now(), now(), now(), 0, '[]', true, array['all:1'] from generate_series(1, {count}) as n"
            );
            database.rows(&sql).await;
        }
        Database::Sqlite(_) => {
            let numbers =
                format!("with recursive n(n) as (select 1 union all select n + 1 from n where n < {count}) ");
            let ends = format!(
                "insert into ringback_ended_jobs ({COLUMNS}, archived_at) {numbers} select '', 'many', n, n, 1, 'done', 1000, n, n, n, \
                0, '[]', 1, '[\"all:1\",\"n:1\"]', 1 from n"
            );
            database.rows(&ends).await;
            for tag in ["all:1", "n:1"] {
                let tags = format!(
                    "insert into ringback_tags (tenant, tag, finished_at, topic, id, generation, attempts, state) {numbers} \
                    select '', '{tag}', 1000, 'many', n, n, 1, 'done' from n"
                );
                database.rows(&tags).await;
            }
        }
    }
}

#[tokio::test]
async fn what_is_erased_is_gone_with_its_bodies_and_what_ends_later_stays() {
    for (database, stack) in Database::each(|options| options).await {
        let sink = Sink::start().await;
        some_ends(&stack, &sink).await;
        let erase = async |query: &str| stack.delete(&format!("/v1/history{query}")).await;
        assert_eq!(erase("?tag=customer:1").await.expect(200), json!({"erased": 2, "complete": true}));
        assert_eq!(erase("?tag=customer:1").await.expect(200), json!({"erased": 0, "complete": true}));
        let left = database.lines("select id from ringback_ended_jobs order by id", 2, SOON).await;
        assert_eq!(left, ["b", "d"]);
        assert_eq!(database.rows("select id from ringback_bodies order by id").await, [["b"], ["d"]]);
        assert_eq!(erase(&format!("?topic={TOPIC}&id=b")).await.expect(200)["erased"], 1);
        assert_eq!(erase("?topic=other&tag=customer:2").await.expect(200)["erased"], 0);
        assert_eq!(ends(&history(&stack, "").await).len(), 1);

        // A job that ends later stays.
        stack.accept(&with(job(&sink, "late"), "tags", json!(["customer:1"]))).await;
        found(&stack, "?tag=customer:1", 1).await;
        assert_eq!(erase("?tag=customer:1").await.expect(200)["erased"], 1);

        for (query, field) in
            [("", "tag"), ("?id=a", "topic"), ("?tag=a&id=b&topic=c", "tag"), ("?topic=a", "tag")]
        {
            assert_eq!(erase(query).await.expect(422)["errors"][0]["field"], field, "{query}");
        }
    }
}

#[tokio::test]
async fn an_end_that_waits_for_the_archive_while_it_is_erased_never_comes() {
    let postgres = Database::Postgres(Box::new(PostgresServer::start().await));
    let sqlite = Database::Sqlite(tempfile::tempdir().expect("a directory"));
    for database in [postgres, sqlite] {
        let options = Stack::options().count(Role::Archiver, 1).env("RINGBACK_ARCHIVE", &database.url());
        let mut stack = options.start().await;
        attached(&stack).await;
        readable(&stack).await;
        let sink = Sink::start().await;
        stack.archivers[0].kill();
        stack.archivers.clear();
        for (id, tag) in [("by-tag", "customer:9"), ("by-id", "customer:8"), ("stays", "customer:8")] {
            stack.accept(&with(job(&sink, id), "tags", json!([tag]))).await;
            stack.wait_state(TOPIC, id, "done", SOON).await;
        }
        for query in ["tag=customer:9".to_owned(), format!("topic={TOPIC}&id=by-id")] {
            let erased = stack.delete(&format!("/v1/history?{query}")).await.expect(200);
            assert_eq!(erased, json!({"erased": 0, "complete": true}));
        }
        // An erasure of another topic changes nothing.
        stack.delete("/v1/history?topic=other&tag=customer:8").await.expect(200);
        stack.add(Role::Archiver).await;
        found(&stack, "?tag=customer:8", 1).await;
        nothing_waits(&stack).await;
        assert_eq!(database.rows("select id from ringback_ended_jobs").await, [["stays"]]);
        assert_eq!(database.rows("select id from ringback_bodies").await, [["stays"]]);
    }
}

#[tokio::test]
async fn many_ends_are_erased_by_several_at_once_and_none_is_left() {
    for (database, stack) in Database::each(|options| options).await {
        const COUNT: usize = 4_500;
        insert_many(&database, COUNT).await;
        let page = history(&stack, "?topic=many&limit=1000").await;
        assert_eq!((ends(&page).len(), page["next"].is_string()), (1000, true));
        let erase = async || {
            let mut erased = 0;
            loop {
                let reply = stack.delete("/v1/history?tag=all:1").await;
                // A busy machine may refuse the call.
                if reply.status == 503 && reply.header("retry-after").is_some() {
                    continue;
                }
                assert!([200, 202].contains(&reply.status), "{reply:?}");
                erased += reply.json()["erased"].as_u64().expect("a count");
                assert_eq!(reply.json()["complete"], reply.status == 200, "{reply:?}");
                if reply.status == 200 {
                    return erased;
                }
            }
        };
        let (first, second) = tokio::join!(erase(), erase());
        assert_eq!(first + second, COUNT as u64);
        assert_eq!(database.rows("select count(*) from ringback_ended_jobs").await, [["0"]]);
        if let Database::Sqlite(_) = database {
            assert_eq!(database.rows("select count(*) from ringback_tags").await, [["0"]]);
        }
    }
}

#[tokio::test]
async fn an_api_needs_the_rights_of_the_documentation_and_no_others() {
    let database = Database::Postgres(Box::new(PostgresServer::start().await));
    let of_reader = database.url().replace("postgres@", "reader@");
    let stack = Stack::options().env("RINGBACK_ARCHIVE", &of_reader).start().await;
    let _archiver = stack.spec(Role::Archiver).env("RINGBACK_ARCHIVE", &database.url()).start();
    attached(&stack).await;
    let tables = "select tablename from pg_tables where tablename = 'ringback_erasures'";
    database.lines(tables, 1, SOON).await;
    database
        .execute(
            "create role reader login; grant usage on schema public to reader; \
            grant select, insert, update, delete on all tables in schema public to reader",
        )
        .await;
    readable(&stack).await;
    let sink = Sink::start().await;
    some_ends(&stack, &sink).await;
    let erased = stack.delete("/v1/history?tag=customer:1").await.expect(200);
    assert_eq!(erased, json!({"erased": 2, "complete": true}));
    let replay = json!({"filter": {"id": "b"}});
    assert_eq!(stack.post("/v1/history/replay", &replay).await.expect(200)["submitted"], 1);
}
