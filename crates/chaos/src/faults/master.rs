//! Faults of masters that have replicas (killed, stopped, replaced by hand) and of sentinels. Each fault ends when
//! every master has its replicas again, or after 30 seconds.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_testkit::RedisServer;
use ringback_testkit::history::{Entry, History, Loss};
use tokio::time::{Instant, sleep, timeout};

use super::RunningFault;
use crate::fault::Kind;
use crate::installation::Installation;
use crate::store_servers::Group;

/// The time within which servers agree on their masters, and replicas have all data.
const WHOLE: Duration = Duration::from_secs(30);
/// Sentinels do not replace a master that was away for less.
const SHORT: Duration = Duration::from_millis(1_200);
/// How often sentinels are asked to replace a master that works.
const FAIL_OVERS: usize = 3;
/// The limit of each try, during which the master accepts no writes.
const REPLACED_WITHIN: Duration = Duration::from_secs(15);

pub(super) async fn make(installation: &Installation, kind: Kind, rng: &mut StdRng) {
    let group = &mut *installation.group.as_ref().expect("a run on several servers").lock().await;
    let masters = masters(group).await;
    let master = masters[rng.random_range(0..masters.len())];
    // Both longer and shorter than it takes to replace the master.
    let length = Duration::from_millis(rng.random_range(100..7_000));
    let history = &installation.history;
    let begun = RunningFault::new(history, kind.name(), kind.class(), None);
    match kind {
        Kind::KillMaster => {
            group.server_mut(master).kill();
            write_loss_of_attempts(history);
            sleep(length).await;
            wait_replaced(group, master, length, 0).await;
            group.server_mut(master).restart().await;
        }
        Kind::StopMaster => {
            group.server_mut(master).stop();
            write_loss_of_attempts(history);
            sleep(length).await;
            wait_replaced(group, master, length, 0).await;
            group.server_mut(master).cont();
        }
        _ => fail_over(group, master).await,
    }
    wait_whole(group).await;
    if kind == Kind::StopMaster {
        // Changes that the old master accepted until it knew of its successor are lost too.
        write_loss_of_attempts(history);
    }
    // The server must not accept writes before it is a replica.
    ask(&group.servers()[master], &["CLIENT", "UNPAUSE"]).await;
    begun.healed();
}

/// Writes a loss of attempts only. Callbacks and consumers go on without replicas, so attempts and outcomes can be
/// missing on a replica that becomes the master.
pub(super) fn write_loss_of_attempts(history: &History) {
    let t = history.t();
    history.write(&Entry::Loss(Loss { t, since: t, answered: None }));
}

/// With sentinels, and if the master was away for longer than [`SHORT`]: waits up to [`WHOLE`] until a sentinel names
/// another one. Sentinels that have begun to replace a master go on when it comes back; two servers would then accept
/// writes, and one would deliver what was cancelled on the other.
pub(super) async fn wait_replaced(group: &Group, master: usize, length: Duration, sentinel: usize) {
    let Group::Sentinel(group) = group else { return };
    if length > SHORT {
        let deadline = Instant::now() + WHOLE;
        while group.master_of(sentinel).await == master && Instant::now() < deadline {
            sleep(Duration::from_millis(50)).await;
        }
        // After this time the other replica follows the new master.
        sleep(Duration::from_secs(2)).await;
    }
}

pub(super) async fn kill_sentinel(installation: &Installation, rng: &mut StdRng) {
    let group = &mut *installation.group.as_ref().expect("a run on several servers").lock().await;
    let Group::Sentinel(sentinel) = group else { return };
    let (kind, one) = (Kind::KillSentinel, rng.random_range(0..3));
    let begun = RunningFault::new(&installation.history, kind.name(), kind.class(), None);
    sentinel.sentinel_mut(one).kill();
    sleep(Duration::from_millis(rng.random_range(100..4_000))).await;
    sentinel.sentinel_mut(one).restart().await;
    begun.healed();
}

/// The indexes of the servers that are masters.
pub(super) async fn masters(group: &Group) -> Vec<usize> {
    if let Group::Sentinel(sentinel) = group {
        return vec![sentinel.master_of(0).await];
    }
    let mut found = Vec::new();
    for (place, server) in group.servers().iter().enumerate() {
        if server.is_master().await {
            found.push(place);
        }
    }
    found
}

/// Replaces a working master by its replica. With sentinels, pauses its writes for 20 s before each of [`FAIL_OVERS`]
/// tries.
async fn fail_over(group: &Group, master: usize) {
    match group {
        Group::Sentinel(sentinel) => {
            // Sentinels that find no replica good enough at the moment give up.
            for _ in 0..FAIL_OVERS {
                // Without the pause, the former master would deliver jobs that are cancelled on its successor.
                ask(&sentinel.servers()[master], &["CLIENT", "PAUSE", "20000", "WRITE"]).await;
                sentinel.are_in_sync(master).await;
                sentinel.fail_over().await;
                if timeout(REPLACED_WITHIN, sentinel.another_master(0, master)).await.is_ok() {
                    break;
                }
            }
        }
        Group::Cluster(cluster) => {
            let port = cluster.nodes()[master].port().to_string();
            for node in cluster.nodes() {
                if node.info_field("replication", "master_port").await == port {
                    ask(node, &["CLUSTER", "FAILOVER"]).await;
                    // Both sides take a while to agree.
                    sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

/// Sends a command and ignores a refusal, such as of a fail-over while the link to the master is down.
async fn ask(server: &RedisServer, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    let asked: Result<(), _> = command.arg(&words[1..]).query_async(&mut server.client().await).await;
    drop(asked);
}

/// Waits up to [`WHOLE`] until every master has all of its replicas, with all data.
pub(super) async fn wait_whole(group: &Group) {
    let deadline = Instant::now() + WHOLE;
    while Instant::now() < deadline {
        if is_whole(group).await {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

async fn is_whole(group: &Group) -> bool {
    let masters = masters(group).await;
    let replicas = group.servers().len() / masters.len().max(1) - 1;
    let mut count = 0;
    for server in group.servers() {
        if server.is_master().await {
            count += 1;
            if server.replicates_to(replicas).await.is_err() {
                return false;
            }
        }
    }
    let is_ok = match group {
        Group::Sentinel(_) => true,
        Group::Cluster(cluster) => cluster.serves_all_slots().await,
    };
    is_ok && count == masters.len() && count * (replicas + 1) == group.servers().len()
}
