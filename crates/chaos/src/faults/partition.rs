//! Partitions. A master is cut off from the other servers, so that a replica takes its place, while some processes reach
//! both sides; or each server is alone, so that none may take writes. Nothing is dropped: what was sent arrives when the
//! partition ends, as with TCP.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_testkit::Role;
use tokio::time::sleep;

use super::{RunningFault, master};
use crate::fault::Kind;
use crate::installation::Installation;
use crate::store_servers::Group;

/// The pause between two lines about a loss of attempts during a partition.
const FORGETS: Duration = Duration::from_millis(50);

/// The side of a partition on which a server or a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Master,
    Others,
    /// It reaches both sides.
    Both,
}

impl Side {
    fn reaches(self, other: Self) -> bool {
        self == other || self == Self::Both || other == Self::Both
    }

    fn any(rng: &mut StdRng) -> Self {
        match rng.random_range(0..4) {
            0 => Self::Master,
            1 => Self::Others,
            _ => Self::Both,
        }
    }
}

pub(super) async fn make(installation: &Installation, rng: &mut StdRng) {
    let group = &*installation.group.as_ref().expect("a run on several servers").lock().await;
    let masters = master::masters(group).await;
    let master = masters[rng.random_range(0..masters.len())];
    let beside = beside(group, master, rng).await;
    let side = |at| if at == master || beside == Some(at) { Side::Master } else { Side::Others };
    let servers: Vec<_> = (0..).map(side).zip(group.all()).collect();
    // Without a C compiler there are no proxies between servers.
    let addresses = servers.iter().filter_map(|(side, server)| Some((*side, server.seen()?.address())));
    let mut ends: Vec<_> = addresses.collect();
    for member in &installation.members {
        let side = match (group, member.role, Side::any(rng)) {
            // A notifier on the side of the former master would deliver jobs that are cancelled on its successor.
            (Group::Sentinel(_), Role::Notifier, _) => Side::Others,
            (_, _, side) => side,
        };
        ends.extend(member.seen.as_ref().map(|seen| (side, seen.address())));
    }
    if ends.is_empty() {
        return;
    }
    // Both longer and shorter than it takes to replace the master.
    let length = Duration::from_millis(rng.random_range(500..9_000));

    let begun = begin(installation, Kind::Partition);
    for (side, server) in &servers {
        let beyond = ends.iter().filter(|(other, _)| !other.reaches(*side));
        server.hold_links(&beyond.map(|(_, address)| *address).collect::<Vec<_>>());
    }
    let parted = async {
        sleep(length).await;
        // Chooses a sentinel that is not on the side of the master.
        let sentinel = usize::from(beside == Some(group.servers().len()));
        master::wait_replaced(group, master, length, sentinel).await;
        heal(group).await;
    };
    outcomes_may_be_lost(installation, parted).await;
    begun.healed();
}

/// Cuts each server of a cluster off from all others for up to 9 seconds. Does nothing without proxies between them.
pub(super) async fn part_all(installation: &Installation, rng: &mut StdRng) {
    let group = &*installation.group.as_ref().expect("a run on several servers").lock().await;
    let length = Duration::from_millis(rng.random_range(500..9_000));
    let all = group.all();
    let addresses = all.iter().enumerate().filter_map(|(at, server)| Some((at, server.seen()?.address())));
    let addresses: Vec<_> = addresses.collect();
    if addresses.is_empty() {
        return;
    }
    let begun = begin(installation, Kind::NoMajority);
    for (at, server) in all.iter().enumerate() {
        let others = addresses.iter().filter(|(other, _)| *other != at);
        server.hold_links(&others.map(|(_, address)| *address).collect::<Vec<_>>());
    }
    let parted = async {
        sleep(length).await;
        // What the servers have heard of each other by then may be enough to replace a healthy one.
        heal(group).await;
    };
    outcomes_may_be_lost(installation, parted).await;
    begun.healed();
}

fn begin(installation: &Installation, kind: Kind) -> RunningFault<'_> {
    RunningFault::new(&installation.history, kind.name(), kind.class(), None)
}

async fn heal(group: &Group) {
    group.all().iter().for_each(|server| server.heal_links());
    master::wait_whole(group).await;
}

/// Awaits `while_parted`, and writes meanwhile that attempts and outcomes may be lost, because neither side knows
/// those of the other.
async fn outcomes_may_be_lost(installation: &Installation, while_parted: impl Future<Output = ()>) {
    let forgetting = async {
        loop {
            master::write_loss_of_attempts(&installation.history);
            sleep(FORGETS).await;
        }
    };
    tokio::select! {
        () = while_parted => {}
        () = forgetting => {}
    }
    master::write_loss_of_attempts(&installation.history);
}

/// The index of a server that is on the side of the master, at random; `None` if the master is alone. It is a replica
/// or a sentinel, in a cluster a replica of another master.
async fn beside(group: &Group, master: usize, rng: &mut StdRng) -> Option<usize> {
    let (is_alone, draw) = (rng.random_range(0..2) == 0, rng.random_range(0..usize::MAX));
    if is_alone {
        return None;
    }
    let mut found = Vec::new();
    match group {
        Group::Sentinel(_) => found.extend((0..group.all().len()).filter(|at| *at != master)),
        Group::Cluster(cluster) => {
            let port = cluster.nodes()[master].port().to_string();
            for (at, node) in cluster.nodes().iter().enumerate() {
                let of = node.info_field("replication", "master_port").await;
                if !of.is_empty() && of != port {
                    found.push(at);
                }
            }
        }
    }
    found.get(draw % found.len().max(1)).copied()
}
