//! Masters of a Redis Cluster that are killed or replaced under load, and whose replicas take over.
//!
//! Before a master is killed, all that was accepted so far is on its replica: that must not be lost. Of what is accepted
//! around the kill, what no replica has yet may be, unless `RINGBACK_DURABILITY` is `replicated`.

use std::collections::HashMap;

use ringback_core::store_types::{Options, Shard};
use ringback_store::{Store, settings};
use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::{Persistence, RedisCluster, RedisOptions, RedisServer, Role, variable};
use tokio::time::{Instant, sleep};

use super::redis_outage::nothing_waits;
use super::steady_load::{CALLERS, SteadyLoad};
use crate::prelude::*;

/// Fail-overs, locks and leases take this long at most.
const RECOVERY: Duration = Duration::from_secs(60);
/// How many masters are killed with `replicated`, unless `RINGBACK_TEST_FAILOVERS` says otherwise.
const KILLS: usize = 5;
/// How many are killed without it.
const PLAIN_KILLS: usize = 2;
/// How many of those with two replicas are killed, unless `RINGBACK_TEST_FAILOVERS` says otherwise.
const KILLS_OF_THREE: usize = 2;
/// How long a replica is behind. Well below the time after which the others would elect it no more.
const BEHIND: Duration = Duration::from_millis(400);
/// After this time a fail-over by hand that has not happened does not happen any more.
const GIVEN_UP: Duration = Duration::from_secs(7);
const MASTERS: usize = 3;
/// How many jobs are accepted before something goes wrong.
const JOBS: usize = 40;

fn node() -> RedisOptions {
    RedisServer::options().persistence(Persistence::Always).arg("--cluster-node-timeout", "1000")
}

async fn start(durability: &str) -> (Stack, Sink) {
    let options = Stack::options().cluster_with_replicas(node()).env("RINGBACK_SHARDS", "6");
    let options =
        options.env("RINGBACK_DURABILITY", durability).count(Role::Carrier, 2).count(Role::Notifier, 2);
    (options.start().await, Sink::counting().await)
}

/// Waits until the replica of each master has all that was written.
async fn in_sync(cluster: &RedisCluster) {
    for node in cluster.nodes() {
        // A replaced master is still a master for some moments.
        eventually(RECOVERY, "replicas have everything", async || {
            if node.is_master().await { node.replicates_to(1).await } else { Ok(()) }
        })
        .await;
    }
}

/// The index of the other node in a pair of master and replica.
fn partner(node: usize) -> usize {
    (node + MASTERS) % (2 * MASTERS)
}

/// Stops the replica of a master, and waits until the master has accepted something without it.
async fn fall_behind(cluster: &mut RedisCluster, master: usize) {
    cluster.node_mut(partner(master)).stop();
    cluster.nodes()[master].writes_without_replicas().await;
}

/// Claims each shard of an installation of its own: its tokens must be higher than all before.
struct Fences {
    store: Store,
    last: HashMap<u16, u64>,
}

impl Fences {
    const SHARDS: u16 = 6;

    async fn new(url: &str) -> Self {
        let options = Options {
            url: url.to_owned(),
            prefix: "fences".to_owned(),
            shards: Self::SHARDS,
            ..settings::defaults(SOON)
        };
        let store = Store::open(options).expect("the URL is good");
        store.prepare().await.expect("the cluster is fit");
        Self { store, last: HashMap::new() }
    }

    async fn rise(&mut self) {
        for shard in (0..Self::SHARDS).map(Shard) {
            let epoch = eventually(RECOVERY, "a shard is claimed", async || {
                self.store.take_shard(shard, "carrier").await.map_err(|error| error.to_string())
            })
            .await;
            let epoch: u64 = epoch.0.parse().expect("a number");
            let before = self.last.insert(shard.0, epoch).unwrap_or_default();
            assert!(epoch > before, "shard {}: {epoch} after {before}", shard.0);
        }
    }
}

/// Waits until the `safe` jobs are delivered and none is left to deliver. Returns how many of `around` never arrived.
async fn lost(stack: &mut Stack, sink: &Sink, safe: &[String], around: &[String]) -> usize {
    sink.wait_for_jobs(safe, 1, RECOVERY).await;
    nothing_waits(stack).await;
    let counts = sink.counts();
    around.iter().filter(|id| !counts.contains_key(*id)).count()
}

/// Kills one master after the other under load. Returns how many jobs were accepted around kills, and how many are lost.
async fn kill_masters(kills: usize, durability: &str) -> (usize, usize) {
    let (mut stack, sink) = start(durability).await;
    let mut fences = Fences::new(&stack.store_url()).await;
    let (mut safe, mut around) = (Vec::new(), Vec::new());
    let mut masters: Vec<usize> = (0..MASTERS).collect();
    for kill in 0..kills {
        let load = SteadyLoad::start(&stack, &sink, &format!("safe-{kill}"));
        load.more(JOBS).await;
        safe.extend(load.end().await);
        fences.rise().await;
        in_sync(stack.cluster_mut()).await;

        let load = SteadyLoad::start(&stack, &sink, &format!("around-{kill}"));
        load.more(JOBS).await;
        let master = masters[kill % MASTERS];
        if durability == "replicated" {
            fall_behind(stack.cluster_mut(), master).await;
        }
        stack.cluster_mut().node_mut(master).kill();
        stack.cluster_mut().node_mut(partner(master)).cont();
        stack.cluster_mut().nodes()[partner(master)].becomes_master().await;
        masters[kill % MASTERS] = partner(master);
        fences.rise().await;
        // The killed master comes back as the replica of its former replica.
        stack.cluster_mut().node_mut(master).restart().await;
        in_sync(stack.cluster_mut()).await;
        around.extend(load.end().await);
    }
    let lost = lost(&mut stack, &sink, &safe, &around).await;
    assert!(around.len() > kills * 20, "{} jobs are not a load", around.len());
    show(&format!(
        "{durability}: {kills} kills, {} jobs on replicas, {} around kills, {lost} of them lost",
        safe.len(),
        around.len()
    ));
    (around.len(), lost)
}

#[tokio::test]
async fn masters_that_are_killed_under_load_are_replaced_and_nothing_that_a_replica_has_is_lost() {
    let (around, lost) = kill_masters(PLAIN_KILLS, "disk").await;
    assert!(lost <= PLAIN_KILLS * CALLERS, "{lost} of {around} jobs are lost");
}

#[tokio::test]
async fn with_replicated_nothing_accepted_is_lost_when_masters_are_killed_under_load() {
    let wanted = variable("RINGBACK_TEST_FAILOVERS");
    let kills = wanted.unwrap_or(KILLS);
    let (around, lost) = kill_masters(kills, "replicated").await;
    Reached::new(Figure::MasterKills, "failovers", kills as u64).wrong(lost as u64).write();
    assert_eq!(lost, 0, "of {around} jobs");
}

/// One replica confirms what the other replica, which takes over, does not have.
#[tokio::test]
async fn with_replicated_nothing_accepted_is_lost_when_one_of_two_replicas_is_behind_and_takes_over() {
    let kills = variable("RINGBACK_TEST_FAILOVERS").unwrap_or(KILLS_OF_THREE);
    let (mut stack, sink) = start("replicated").await;
    let third = stack.cluster_mut().add_replica(node(), 0).await;
    stack.cluster_mut().is_ok().await;
    let [mut master, mut behind, mut ahead] = [0, partner(0), third];
    let mut accepted = Vec::new();
    for kill in 0..kills {
        let load = SteadyLoad::start(&stack, &sink, &format!("load-{kill}"));
        load.more(JOBS).await;
        let cluster = stack.cluster_mut();
        eventually(RECOVERY, "both replicas have everything", || cluster.nodes()[master].replicates_to(2))
            .await;
        cluster.node_mut(behind).stop();
        cluster.nodes()[master].writes_without_replicas().await;
        sleep(BEHIND).await;
        cluster.node_mut(master).kill();
        cluster.node_mut(ahead).stop();
        cluster.node_mut(behind).cont();
        cluster.nodes()[behind].becomes_master().await;
        cluster.node_mut(ahead).cont();
        cluster.node_mut(master).restart().await;
        load.more(JOBS).await;
        accepted.extend(load.end().await);
        [master, behind, ahead] = [behind, ahead, master];
    }
    let lost = lost(&mut stack, &sink, &[], &accepted).await;
    assert!(accepted.len() > kills * 20, "{} jobs are not a load", accepted.len());
    show(&format!("two replicas: {kills} kills, {} jobs, {lost} of them lost", accepted.len()));
    assert_eq!(lost, 0, "of {} jobs", accepted.len());
}

/// Makes a replica a master with CLUSTER FAILOVER, which is repeated when it was given up. Panics after [`RECOVERY`].
async fn take_over(replica: &RedisServer, how: Option<&str>) {
    let began = Instant::now();
    let mut asked: Option<Instant> = None;
    while !replica.is_master().await {
        assert!(began.elapsed() < RECOVERY, "the replica does not take over");
        if asked.is_none_or(|asked| asked.elapsed() > GIVEN_UP) {
            let mut cluster = redis::cmd("CLUSTER");
            let fail_over = cluster.arg("FAILOVER").arg(how);
            fail_over.exec_async(&mut replica.client().await).await.expect("CLUSTER FAILOVER");
            asked = Some(Instant::now());
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn masters_that_are_replaced_by_hand_under_load_lose_nothing_that_a_replica_has() {
    let (mut stack, sink) = start("disk").await;
    let mut fences = Fences::new(&stack.store_url()).await;
    let (mut safe, mut around) = (Vec::new(), Vec::new());
    for (master, how) in [None, Some("FORCE"), Some("TAKEOVER")].into_iter().enumerate() {
        let load = SteadyLoad::start(&stack, &sink, &format!("safe-{master}"));
        load.more(JOBS).await;
        safe.extend(load.end().await);
        fences.rise().await;
        in_sync(stack.cluster_mut()).await;

        let load = SteadyLoad::start(&stack, &sink, &format!("around-{master}"));
        load.more(JOBS).await;
        take_over(&stack.cluster_mut().nodes()[partner(master)], how).await;
        fences.rise().await;
        in_sync(stack.cluster_mut()).await;
        let accepted = load.end().await;
        if how.is_none() { safe.extend(accepted) } else { around.extend(accepted) }
    }
    let lost = lost(&mut stack, &sink, &safe, &around).await;
    assert!(lost <= around.len() / 10, "{lost} of {} jobs are lost", around.len());
    show(&format!(
        "{} jobs on replicas, {} around FORCE and TAKEOVER, {lost} of them lost",
        safe.len(),
        around.len()
    ));
}

#[expect(clippy::print_stdout, reason = "how much was accepted and lost")]
fn show(text: &str) {
    println!("{text}");
}
