//! Turns the table of cases into tests: each group of cases runs on a redis-server, on a cluster, on embedded stores
//! in files and in memory; all groups run on a master with sentinels. The cases of a group run side by side, each in
//! an installation of its own.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use ringback_testkit::{RedisCluster, RedisSentinel, RedisServer};
use tokio::task::{JoinSet, LocalSet};

use super::workbench::{Server, Workbench};
use super::{GROUPS, audit};

/// A case, ready to be run beside others.
pub(crate) type Case = for<'a> fn(&'a Workbench) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The name of a group, and its cases with their names.
pub(crate) type Group = (&'static str, &'static [(&'static str, Case)]);

pub(crate) async fn redis(group: &str) {
    on(Server::Redis(RedisServer::start().await), |name| name == group).await;
}

pub(crate) async fn cluster(group: &str) {
    on(Server::Cluster(RedisCluster::start().await), |name| name == group).await;
}

pub(crate) async fn disk(group: &str) {
    on(Server::Disk(tempfile::tempdir().expect("a directory")), |name| name == group).await;
}

pub(crate) async fn memory(group: &str) {
    on(Server::Memory(Mutex::default()), |name| name == group).await;
}

/// The groups of cases that run on a master that sentinels watch, unless `RINGBACK_TEST_TOPOLOGIES=all` asks for all of
/// them. Each kind of call is in one of these.
const ON_SENTINEL: [&str; 7] =
    ["prepare", "exchange", "carriers", "cancel", "wakes", "bulk_revive", "schedules"];

pub(crate) async fn sentinel() {
    let is_all = crate::faults::runs_all_topologies();
    let server = Server::Sentinel(RedisSentinel::start(RedisServer::options()).await);
    on(server, |name| is_all || ON_SENTINEL.contains(&name)).await;
}

/// Runs the wanted groups of cases on a server.
///
/// # Panics
/// When a case fails, with the names of all that fail; their messages are printed before.
async fn on(server: Server, is_wanted: impl Fn(&str) -> bool) {
    let (server, mut failed) = (Arc::new(server), Vec::new());
    for (_, cases) in GROUPS.iter().filter(|(group, _)| is_wanted(group)) {
        failed.extend(side_by_side(&server, cases).await);
    }
    assert!(failed.is_empty(), "these cases fail: {}", failed.join(", "));
}

/// Runs cases at once, then checks the stores of those that are checked last. Returns the names of those that failed.
async fn side_by_side(server: &Arc<Server>, cases: &[(&'static str, Case)]) -> Vec<&'static str> {
    let (here, mut running) = (LocalSet::new(), JoinSet::new());
    let mut names = std::collections::HashMap::new();
    for &(name, case) in cases {
        let handle = running.spawn_local_on(run(Arc::clone(server), name, case), &here);
        names.insert(handle.id(), name);
    }
    let (mut failed, mut ended) = (Vec::new(), Vec::new());
    here.run_until(async {
        while let Some(one) = running.join_next_with_id().await {
            match one {
                Ok((_, bench)) => ended.push(bench),
                Err(error) => failed.push(names[&error.id()]),
            }
        }
    })
    .await;
    for bench in ended.iter().filter(|bench| bench.is_checked_last()) {
        audit::own(bench.store()).await;
    }
    failed
}

async fn run(server: Arc<Server>, name: &'static str, case: Case) -> Workbench {
    let bench = Workbench::new(server, name).await;
    case(&bench).await;
    bench.check().await;
    bench
}

/// The table: groups (modules) of cases (functions of theirs), which run on each backend.
macro_rules! contract {
    ($($group:ident { $($case:ident),* $(,)? })*) => {
        const GROUPS: &[runner::Group] =
            &[$((stringify!($group), &[$((stringify!($case), |bench| Box::pin($group::$case(bench)))),*])),*];

        contract! { @redis $($group)* }
        contract! { @cluster $($group)* }
        contract! { @disk $($group)* }
        contract! { @memory $($group)* }

        #[tokio::test]
        async fn sentinel() {
            runner::sentinel().await;
        }
    };
    (@$server:ident $($group:ident)*) => {
        mod $server {
            $(#[tokio::test]
            async fn $group() {
                crate::contract::runner::$server(stringify!($group)).await;
            })*
        }
    };
}
