//! The archive removes nothing while the clock of the archiver or of Redis is far ahead.

use ringback_testkit::{PostgresServer, Preload, RedisServer, Role, Sink, Stack};

use super::database::{Database, attached};
use crate::sample_jobs::{SOON, TOPIC, job};

const SIXTY_DAYS: i64 = 60 * 86_400 * 1_000_000;

/// The retention is a day. First the clock of an archiver is 60 days ahead, and then that of Redis, with a new archiver.
#[tokio::test]
async fn an_archiver_removes_nothing_by_a_clock_that_differs_from_that_of_the_store() {
    let preload = Preload::compile().expect("there is a C compiler, which links these tests too");
    let database = Database::Postgres(Box::new(PostgresServer::start().await));
    let options = Stack::options()
        .redis(RedisServer::options().behind_proxies(preload.clone()))
        .count(Role::Archiver, 1)
        .env("RINGBACK_ARCHIVE", &database.url())
        .env("RINGBACK_ARCHIVE_KEEP", "1d");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    attached(&stack).await;
    stack.accept(&job(&sink, "kept")).await;
    stack.wait_state(TOPIC, "kept", "done", SOON).await;
    let kept = "select id from ringback_ended_jobs";
    assert_eq!(database.lines(kept, 1, SOON).await, ["kept"]);
    stack.archivers.clear();

    let own = preload.seen();
    for (of, ahead_of_own, ahead_of_redis) in [("the archiver", SIXTY_DAYS, 0), ("Redis", 0, SIXTY_DAYS)] {
        own.set_ahead(ahead_of_own);
        stack.redis().seen().expect("it has the library").set_ahead(ahead_of_redis);
        let spec = stack.spec(Role::Archiver);
        let archiver = own.env().iter().fold(spec, |spec, (name, value)| spec.env(name, value)).start();
        archiver.wait_log("nothing is removed from the archive", SOON).await;
        assert_eq!(database.lines(kept, 1, SOON).await, ["kept"], "{of}");
    }
    stack.redis().seen().expect("it has the library").set_ahead(0);
}
