//! Durability profiles of the store: servers that keep data less safely than asked are refused, and a change is
//! acknowledged only once replicas have confirmed it.

use std::sync::Arc;

use ringback_core::clock::SystemClock;
use ringback_core::job::{JobKey, NewJob, Topic};
use ringback_core::store_types::{Options, Profile, StoreError, SubmitResult};
use ringback_store::{Memory, Store, settings};
use ringback_testkit::{Persistence, RedisCluster, RedisServer, eventually, free_port};
use tokio::task::JoinSet;

use crate::contract::job_builders::{LONG, TOPIC, With, new_job};
use crate::contract::workbench::{SOON, Server, Workbench};

const ASKED: [Profile; 4] = [Profile::Memory, Profile::Everysec, Profile::Disk, Profile::Replicated];

async fn server(persistence: Persistence) -> RedisServer {
    RedisServer::options().persistence(persistence).copies_at_once().start().await
}

async fn set(server: &RedisServer, name: &str, value: &str) {
    let mut config = redis::cmd("CONFIG");
    config.arg("SET").arg(name).arg(value);
    config.exec_async(&mut server.client().await).await.expect("CONFIG SET");
}

fn asking(server: &RedisServer, asked: Profile) -> Options {
    Options { url: server.url(), durability: Some(asked), ..settings::defaults(SOON) }
}

/// Prepares a store that asks for a durability. Returns its profile, or why the store is refused.
async fn prepared(options: Options) -> Result<Profile, String> {
    let store = Store::open(options).expect("the options are right");
    match store.prepare().await {
        Ok(()) => Ok(store.profile()),
        Err(StoreError::Weaker(why)) => {
            assert!(matches!(store.stats().await, Err(StoreError::Unprepared)), "{why}");
            Err(why)
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn a_server_that_is_weaker_than_asked_is_refused_with_what_to_change() {
    let (master, replica) = (server(Persistence::Always).await, server(Persistence::Always).await);
    let of = async |asked| prepared(asking(&master, asked)).await;
    assert_eq!(of(Profile::Disk).await, Ok(Profile::Disk));
    let alone = of(Profile::Replicated).await.expect_err("there is no replica");
    assert!(alone.contains("has no replica") && alone.contains("RINGBACK_DURABILITY to disk"), "{alone}");
    replica.follow(&master).await;
    assert_eq!(of(Profile::Replicated).await, Ok(Profile::Replicated));

    let cases = [
        ("appendfsync", "everysec", 2, "appendfsync is everysec: set it to always"),
        ("appendfsync", "no", 1, "appendfsync is no: set it to always"),
        ("no-appendfsync-on-rewrite", "yes", 1, "no-appendfsync-on-rewrite is yes: set it to no"),
        ("appendonly", "no", 1, "appendonly is no: set it to yes"),
    ];
    for (name, value, fit, remedy) in cases {
        set(&master, name, value).await;
        for (n, asked) in ASKED.into_iter().enumerate() {
            let found = of(asked).await;
            // Replicas make up for what is synced only every second.
            let is_fit = n < fit || (asked == Profile::Replicated && fit == 2);
            assert_eq!(found.is_ok(), is_fit, "{name} {value}: {asked:?}: {found:?}");
            if let Err(why) = found {
                assert!(why.contains(remedy) && why.contains(&asked.to_string()), "{why}");
            }
        }
        set(&master, "appendfsync", "always").await;
        set(&master, "no-appendfsync-on-rewrite", "no").await;
    }
    set(&master, "appendonly", "yes").await;

    let mut rules = redis::cmd("ACL");
    rules.arg(&["SETUSER", "default", "-config"]);
    rules.exec_async(&mut master.client().await).await.expect("ACL SETUSER");
    assert_eq!(of(Profile::Memory).await, Ok(Profile::Unknown));
    for asked in &ASKED[1..] {
        let why = of(*asked).await.expect_err("it is not known how it keeps data");
        assert!(why.contains("CONFIG GET"), "{why}");
    }
}

#[tokio::test]
async fn an_embedded_store_in_memory_is_no_disk() {
    let prepared = async |asked| {
        let options = Options { durability: Some(asked), ..settings::defaults(SOON) };
        Store::in_memory(&Memory::new(SystemClock), options).prepare().await
    };
    assert!(prepared(Profile::Memory).await.is_ok());
    for asked in &ASKED[1..] {
        assert!(matches!(prepared(*asked).await, Err(StoreError::Weaker(_))), "{asked:?}");
    }
}

/// A bench on a master with a replica that has to confirm every change, and both servers.
async fn replicated() -> (Workbench, Arc<Server>, RedisServer) {
    let (master, replica) = (server(Persistence::Always).await, server(Persistence::Always).await);
    replica.follow(&master).await;
    let master = Arc::new(Server::Redis(master));
    let bench = Workbench::new(Arc::clone(&master), "replicated").await;
    let bench = bench.with(|options| options.durability = Some(Profile::Replicated)).await;
    (bench, master, replica)
}

#[tokio::test]
async fn calls_in_flight_share_a_wait() {
    const CALLS: usize = 200;
    let (bench, server, _replica) = replicated().await;
    let Server::Redis(master) = &*server else { panic!("a single server") };
    let jobs: Vec<NewJob> = (0..CALLS).map(|n| bench.job(&format!("job-{n}")).after(LONG)).collect();
    let calls = master.watch_calls().await;
    let waits = || {
        let calls = calls.by_command();
        calls.get("wait").copied().unwrap_or_default()
    };
    bench.submit(&jobs).await;
    let once = async || if waits() == 1 { Ok(()) } else { Err(waits()) };
    eventually(SOON, "a submit is waited for once", once).await;
    let mut cancels = JoinSet::new();
    for NewJob { key, .. } in jobs {
        let store = bench.store().clone();
        cancels.spawn(async move { store.cancel(&key).await });
    }
    while let Some(cancelled) = cancels.join_next().await {
        cancelled.expect("a result").expect("a replica confirms it");
    }
    let few = async || match waits() - 1 {
        count if (1..=CALLS as u64 / 4).contains(&count) => Ok(()),
        count => Err(count),
    };
    eventually(SOON, "many cancels are waited for a few times", few).await;
    bench.check().await;
}

#[tokio::test]
async fn a_repetition_is_not_acknowledged_before_replicas_have_what_it_repeats() {
    let (bench, _server, mut replica) = replicated().await;
    let job = bench.job("a").after(LONG);
    let another = Store::open(bench.options()).expect("the options are right");
    another.prepare().await.expect("it is fit");
    replica.stop();
    for store in [bench.store(), &another] {
        let submitted = store.submit(bench.shard(), std::slice::from_ref(&job)).await;
        assert!(matches!(submitted, Err(StoreError::Unreplicated)), "{submitted:?}");
        // Now it is known that too few replicas keep up.
        let refused = store.submit(bench.shard(), &[bench.job("b")]).await;
        assert!(matches!(refused, Err(StoreError::NoReplica)), "{refused:?}");
        assert!(matches!(store.cancel(&bench.job("c").key).await, Err(StoreError::Unreplicated)));
    }
    replica.cont();
    bench.store().prepare().await.expect("the replica keeps up again");
    let submitted = bench.submit(&[job]).await;
    assert_eq!(submitted[0].answer, SubmitResult::Repeated);
    bench.check().await;
}

/// A cluster in which each master has a replica.
async fn cluster() -> (RedisCluster, Vec<RedisServer>) {
    let options = || RedisServer::options().persistence(Persistence::Always).copies_at_once();
    let cluster = RedisCluster::start_with(options()).await;
    let mut replicas = Vec::new();
    for master in cluster.nodes() {
        let bus = free_port().to_string();
        let replica = options().arg("--cluster-enabled", "yes").arg("--cluster-port", &bus).start().await;
        let port = replica.port().to_string();
        let mut client = master.client().await;
        let of_cluster = |words: &[&str]| redis::cmd("CLUSTER").arg(words).to_owned();
        let id: String = of_cluster(&["MYID"]).query_async(&mut client).await.expect("an id");
        let meet = of_cluster(&["MEET", "127.0.0.1", &port, &bus]);
        meet.exec_async(&mut client).await.expect("CLUSTER MEET");
        eventually(SOON, "a replica is connected", async || {
            let replicate = of_cluster(&["REPLICATE", &id]);
            replicate.exec_async(&mut replica.client().await).await.map_err(|error| error.to_string())?;
            let of_master = master.info_field("replication", "slave0").await;
            if of_master.contains("state=online") { Ok(()) } else { Err(of_master) }
        })
        .await;
        replicas.push(replica);
    }
    (cluster, replicas)
}

#[tokio::test]
async fn each_master_of_a_cluster_needs_a_replica_that_confirms() {
    let (cluster, mut replicas) = cluster().await;
    let asking = Options {
        url: cluster.url(),
        shards: 6,
        durability: Some(Profile::Replicated),
        ..settings::defaults(SOON)
    };
    let store = Store::open(asking).expect("the options are right");
    eventually(SOON, "all replicas confirm", async || store.prepare().await).await;
    assert_eq!(store.profile(), Profile::Replicated);
    let topic: Topic = TOPIC.parse().expect("a topic");
    let submit = async |name: &str| {
        let jobs: Vec<_> = (0..48)
            .map(|n| {
                new_job(JobKey { topic: topic.clone(), id: format!("{name}-{n}").parse().expect("an id") })
            })
            .collect();
        let mut results = Vec::new();
        for shard in store.shards() {
            let jobs: Vec<_> = jobs.iter().filter(|job| store.shard_of(&job.key) == shard).cloned().collect();
            results.push(store.submit(shard, &jobs).await.map(drop));
        }
        results
    };
    assert!(submit("all").await.iter().all(Result::is_ok));
    replicas[0].stop();
    // Shards follow the slots: the first two are on the first master.
    let results = submit("some").await;
    assert!(matches!(results[0], Err(StoreError::Unreplicated)), "{results:?}");
    assert!(matches!(results[1], Err(StoreError::NoReplica)), "{results:?}");
    assert!(results[2..].iter().all(Result::is_ok), "{results:?}");
    assert!(matches!(store.prepare().await, Err(StoreError::NoReplica)));
    replicas[0].cont();
    eventually(SOON, "all replicas confirm again", async || store.prepare().await).await;
    assert!(submit("some").await.iter().all(Result::is_ok));
}

/// The script that waits for replicas is refused, as by a server that became a replica after the change.
#[tokio::test]
async fn a_change_whose_confirmation_is_refused_is_not_said_to_be_undone() {
    let (bench, server, _replica) = replicated().await;
    let Server::Redis(master) = &*server else { panic!("a single server") };
    let acl = async |rule: &str| {
        let mut acl = redis::cmd("ACL");
        acl.arg("SETUSER")
            .arg("default")
            .arg(rule)
            .exec_async(&mut master.client().await)
            .await
            .expect("ACL");
    };
    acl("-eval").await;
    let job = bench.job("a").after(LONG);
    let submitted = bench.store().submit(bench.shard(), std::slice::from_ref(&job)).await;
    assert!(matches!(submitted, Err(StoreError::Unreplicated)), "{submitted:?}");
    acl("+eval").await;
    assert_eq!(bench.submit(&[job]).await[0].answer, SubmitResult::Repeated);
    bench.check().await;
}

/// Whether a server has the command WAITAOF, as Redis since 7.2 and Valkey have.
async fn has_waitaof(server: &RedisServer) -> bool {
    let mut command = redis::cmd("COMMAND");
    let command = command.arg("INFO").arg("waitaof");
    let info: Vec<Option<redis::Value>> =
        command.query_async(&mut server.client().await).await.expect("INFO");
    info != [None]
}

#[tokio::test]
async fn replicas_that_begin_to_sync_are_waited_for_again() {
    let (master, replica) = (server(Persistence::Always).await, server(Persistence::Off).await);
    if !has_waitaof(&master).await {
        return;
    }
    replica.follow(&master).await;
    let store = Store::open(asking(&master, Profile::Replicated)).expect("the options are right");
    store.prepare().await.expect("it is fit");
    assert!(master.command_calls().await.contains_key("waitaof"), "it was tried");
    set(&replica, "appendfsync", "always").await;
    set(&replica, "appendonly", "yes").await;
    let waited = async || master.command_calls().await["waitaof"];
    eventually(SOON, "replicas are waited for until they have synced", async || {
        let before = waited().await;
        for _ in 0..2 {
            store.clone().answers().await.map_err(|error| error.to_string())?;
        }
        // One of the calls may be the trial.
        if waited().await >= before + 2 { Ok(()) } else { Err("WAIT alone is sent".to_owned()) }
    })
    .await;
}

/// Redis before 7.2 has no WAITAOF, so only WAIT is sent there.
#[tokio::test]
async fn a_change_is_on_the_disk_of_a_replica_where_that_can_be_waited_for() {
    let (bench, server, mut replica) = replicated().await;
    let Server::Redis(master) = &*server else { panic!("a single server") };
    let has_waitaof = has_waitaof(master).await;
    let calls = master.watch_calls().await;
    let jobs: Vec<NewJob> = (0..20).map(|n| bench.job(&format!("job-{n}")).after(LONG)).collect();
    for job in &jobs {
        bench.submit(std::slice::from_ref(job)).await;
    }
    let made = calls.by_command();
    let count = |name: &str| made.get(name).copied().unwrap_or_default();
    let waitaof = if has_waitaof { jobs.len() as u64 } else { 0 };
    assert_eq!((count("wait"), count("waitaof")), (jobs.len() as u64, waitaof), "{made:?}");
    if !has_waitaof {
        return;
    }
    replica.kill();
    replica.restart().await;
    replica.promote().await;
    let copy = Store::open(Options { url: replica.url(), durability: None, ..bench.options() });
    let copy = copy.expect("the options are right");
    copy.prepare().await.expect("the copy is fit");
    for NewJob { key, .. } in jobs {
        assert!(copy.get(&key).await.expect("get").is_some(), "{key} is lost");
    }
}
