//! Errors of Redis at each call of the store, from a proxy. A table has the outcome of each, and nothing may be lost.
//! Each round gives every call another error, so that as many rounds as there are errors are the whole matrix.
//! `RINGBACK_TEST_ROUNDS` is the number of rounds; by default a third of the calls get one error each, chosen by the
//! seed.

mod calls;
mod damage;
mod requests;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringback_testkit::history::FaultClass;
use ringback_testkit::recorded::{Bounds, Recorded};
use ringback_testkit::{Answer, Persistence, RedisErrors, RedisServer, Role, Script, Sink, Stack, variable};
use tokio::time::Instant;

pub(crate) use self::calls::Client;
use self::table::{ANSWERED, ELSEWHERE, REPEATED, SELDOM};
pub(crate) use self::table::{ErrorEffect, FAULTS, outcome};
use crate::crash_points::{Tour, store_calls};
use crate::seed::seed;
use crate::sources::root;

/// How long it may take until the roles have made each of their calls, and until everything has drained.
const SOON: Duration = Duration::from_secs(30);
/// After so many passes of work a call that is made seldom is waited for no longer.
const MANY: usize = 3;

#[tokio::test]
async fn each_error_of_redis_at_each_call_has_its_outcome_and_nothing_is_lost() {
    let (seed, rounds) = (seed(), rounds());
    // By default a third of the calls are chosen.
    let is_chosen = |place: &usize| rounds.is_some() || seed.wrapping_add(*place as u64).is_multiple_of(3);
    let redis = RedisServer::options().persistence(Persistence::Always).start().await;
    let proxy = RedisErrors::start(redis.port()).await;
    let options = Stack::options().store(&format!("redis://127.0.0.1:{}", proxy.port()));
    let directory = tempfile::tempdir().expect("a directory");
    let archive = format!("sqlite:{}", directory.path().join("archive.db").display());
    let options = options.count(Role::Archiver, 1).role_env(Role::Archiver, "RINGBACK_ARCHIVE", &archive);
    let feeds = directory.path().join("feeds.toml");
    fs::write(&feeds, feed_of(&directory.path().join("orders.db"))).expect("a file");
    let feeds = feeds.display().to_string();
    let options = options.count(Role::Feed, 1).role_env(Role::Feed, "RINGBACK_FEEDS", &feeds);
    // The check at the end is in the history: the proxy ends with this test.
    let mut stack = options.env("RINGBACK_SHARDS", "1").unchecked().start().await;
    let recorded = Arc::new(Recorded::start("errors of redis", &Bounds::default()));
    let fault = recorded.fault("error", FaultClass::Network);
    let (sink, aside) = (Sink::recorded(recorded.history()).await, Sink::start().await);
    // A job that is done before its `run` is repeated would be answered with 409.
    aside.answer(Answer::status(200).after(Duration::from_secs(3)));
    sink.answer_path("/flaky", Script::first(1, Answer::status(503)));
    let client = Client {
        recorded: &recorded,
        api: stack.api_urls().remove(0),
        url: sink.url(""),
        aside: aside.url(""),
        redis: redis.client().await,
    };

    let (mut cells, mut wrong) = (0, Vec::new());
    for round in 0..rounds.unwrap_or(1) {
        let first = round + usize::try_from(seed % 1_000).expect("it is small");
        for (place, call) in ANSWERED.iter().enumerate().filter(|(place, _)| is_chosen(place)) {
            let (name, fault) = FAULTS[(first + place) % FAULTS.len()];
            let wanted = outcome(call, fault);
            wrong.extend(
                client.answered(&proxy, call, (name, fault), wanted, &format!("{seed}-{round}")).await,
            );
            cells += 1;
        }
        for (place, call) in REPEATED.iter().enumerate().filter(|(place, _)| is_chosen(place)) {
            let (_, fault) = FAULTS[(first + place) % FAULTS.len()];
            assert_eq!(outcome(call, fault), ErrorEffect::Repeated);
            proxy.arm(call, fault);
            cells += 1;
        }
        make_all(&client, &proxy, &mut stack, &aside, &format!("{seed}-{round}")).await;
        cells -= proxy.left().len();
        wrong.extend(proxy.left().into_iter().filter(|call| !SELDOM.contains(&call.as_str())));
        proxy.disarm();
        stack.ready(SOON).await;
    }
    client.repaired().await;
    recorded.drain(&stack, &["push"], SOON).await;
    recorded.healed(fault);
    recorded.end(&stack, &["push"], false).await;
    let report = recorded.check();
    show(&format!("seed {seed}: {cells} cells\n{report}"));
    recorded.assert_clean(&report, &format!("seed {seed}"));
    assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    for process in stack.processes_mut() {
        assert_eq!(process.exit_status(), None, "{}", process.log());
        assert!(!process.log().contains("panicked"), "{}", process.log());
    }
}

/// Creates a database without orders. Returns the text of a file with a feed that reads it every second.
fn feed_of(database: &Path) -> String {
    let orders = "create table orders (id text primary key, due_at text)";
    rusqlite::Connection::open(database).expect("it opens").execute_batch(orders).expect("a table");
    let condition = "due_at >= :from and due_at < :to and id > :after order by id limit :limit";
    format!(
        "[[feed]]\nname = \"orders\"\nsource = \"sqlite:{}\"\ntopic = \"orders\"\nevery = \"1s\"\nwindow = \"10m\"\n\
         query = \"select id, due_at from orders where {condition}\"\n",
        database.display()
    )
}

/// Makes the processes make every armed call, or gives up after [`SOON`]. Calls that are made seldom are not waited
/// for after a few passes.
async fn make_all(client: &Client<'_>, proxy: &RedisErrors, stack: &mut Stack, aside: &Sink, round: &str) {
    // A carrier that ends gives its shard back, and the next one claims it.
    stack.carriers[0].term();
    stack.carriers[0].wait_exit(SOON).await;
    stack.carriers[0].restart();
    client.flush_functions().await;
    let tour = Tour::new(client.recorded, &stack.api_urls(), stack, aside);
    let end = Instant::now() + SOON;
    for pass in 0.. {
        client.end_subscriptions().await;
        if proxy.left().iter().any(|call| call == "lose") {
            client.lose_accepted().await;
        }
        if proxy.left().iter().any(|call| call == "pull_lanes") {
            client.wait_in_vain().await;
        }
        tour.round(pass).await;
        // A carrier that is refused at its start, as with NOAUTH, ends.
        if stack.carriers[0].exit_status().is_some() {
            stack.carriers[0].restart();
        }
        client.work(&format!("{round}-{pass}")).await;
        client.damage(&format!("{round}-{pass}")).await;
        client.repaired().await;
        client.make_old().await;
        let mut left = proxy.left();
        if pass >= MANY {
            left.retain(|call| !SELDOM.contains(&call.as_str()));
        }
        if left.is_empty() || Instant::now() > end {
            return;
        }
    }
}

/// Compares the table with the names of all scripts and plain commands in the source.
#[test]
fn each_call_of_the_store_is_in_the_table() {
    let mut calls = store_calls();
    let mut folders = vec![root().join("crates/store-redis/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            let is_source = path.extension().is_some_and(|ending| ending == "rs");
            if is_source {
                let text = fs::read_to_string(&path).expect("a source file");
                let commands =
                    ["redis::cmd(\"", ".command(\""].iter().flat_map(|start| text.split(start).skip(1));
                calls.extend(commands.filter_map(|rest| Some(rest.split('"').next()?.to_owned())));
            }
        }
    }
    let calls: BTreeSet<_> = calls.iter().map(String::as_str).collect();
    let word = |call: &&'static str| call.split(' ').next().expect("a word");
    let own = ["SUBSCRIBE", "PING"];
    let table = ANSWERED.iter().chain(&REPEATED).map(word).chain(ELSEWHERE.map(|(call, _)| call));
    let table: BTreeSet<_> = table.filter(|call| !own.contains(call)).collect();
    assert_eq!(calls.into_iter().filter(|call| !own.contains(call)).collect::<BTreeSet<_>>(), table);
}

fn rounds() -> Option<usize> {
    variable("RINGBACK_TEST_ROUNDS")
}

#[expect(clippy::print_stdout, reason = "the report is read by people")]
fn show(text: &str) {
    println!("{text}");
}
