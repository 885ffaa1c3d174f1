//! How the table of cases becomes tests: each case on a redis-server of its own, on an embedded store in a file and on
//! one in memory; each group of cases on one cluster, and all groups on one master that sentinels watch. There the names
//! of failed cases are reported.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use ringback_testkit::{RedisCluster, RedisSentinel, RedisServer};
use tokio::task::{JoinSet, LocalSet};

use super::check;
use super::workbench::{Server, Workbench};

/// A case, ready to be run beside others.
pub(crate) type Case = for<'a> fn(&'a Workbench) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One case on a new redis-server.
pub(crate) async fn on_redis(name: &'static str, case: Case) {
    run(Arc::new(Server::Redis(RedisServer::start().await)), name, case).await;
}

/// One case on embedded stores in a new directory.
pub(crate) async fn on_disk(name: &'static str, case: Case) {
    let directory = tempfile::tempdir().expect("a directory");
    run(Arc::new(Server::Disk(directory)), name, case).await;
}

/// One case on embedded stores in memory.
pub(crate) async fn in_memory(name: &'static str, case: Case) {
    run(Arc::new(Server::Memory(Mutex::default())), name, case).await;
}

/// A group of cases on a new cluster.
///
/// # Panics
/// When one fails, with the names of all that do; their messages are printed before.
pub(crate) async fn on_cluster(cases: &[(&'static str, Case)]) {
    let server = Arc::new(Server::Cluster(RedisCluster::start().await));
    let failed = side_by_side(&server, cases).await;
    assert!(failed.is_empty(), "on a cluster these cases fail: {}", failed.join(", "));
}

/// The groups of cases that run on a master that sentinels watch, unless `RINGBACK_TEST_TOPOLOGIES=all` asks for all of
/// them. Each kind of call is in one of these.
const ON_SENTINEL: [&str; 7] =
    ["prepare", "exchange", "carriers", "cancel", "wakes", "bulk_revive", "schedules"];

/// Groups of cases on one master that sentinels watch.
///
/// # Panics
/// When a case fails, with the names of all that do; their messages are printed before.
pub(crate) async fn on_sentinel(groups: &[(&'static str, &[(&'static str, Case)])]) {
    let is_all = crate::faults::runs_all_topologies();
    let server = Arc::new(Server::Sentinel(RedisSentinel::start(RedisServer::options()).await));
    let mut failed = Vec::new();
    for (_, cases) in groups.iter().filter(|(group, _)| is_all || ON_SENTINEL.contains(group)) {
        failed.extend(side_by_side(&server, cases).await);
    }
    assert!(failed.is_empty(), "with sentinels these cases fail: {}", failed.join(", "));
}

/// Runs cases at the same time, checks what they leave, and returns the names of those that failed.
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
    for bench in ended {
        check::own(bench.store()).await;
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
        contract! { @redis on_redis $($group { $($case)* })* }
        contract! { @disk on_disk $($group { $($case)* })* }
        contract! { @memory in_memory $($group { $($case)* })* }

        mod cluster {
            $(#[tokio::test]
            async fn $group() {
                let cases: &[(&'static str, crate::contract::runner::Case)] =
                    &[$((stringify!($case), |bench| Box::pin(crate::contract::$group::$case(bench)))),*];
                crate::contract::runner::on_cluster(cases).await;
            })*
        }

        #[tokio::test]
        async fn sentinel() {
            use crate::contract::runner::{Case, on_sentinel};
            let groups: &[(&'static str, &[(&'static str, Case)])] = &[$((
                stringify!($group),
                &[$((stringify!($case), |bench| Box::pin(crate::contract::$group::$case(bench)))),*],
            )),*];
            on_sentinel(groups).await;
        }
    };
    (@$backend:ident $run:ident $($group:ident { $($case:ident)* })*) => {
        mod $backend {
            $(mod $group {
                $(#[tokio::test]
                async fn $case() {
                    use crate::contract::{runner::$run, $group};
                    $run(stringify!($case), |bench| Box::pin($group::$case(bench))).await;
                })*
            })*
        }
    };
}
