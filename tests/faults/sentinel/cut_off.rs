//! A master with sentinels is cut off together with a carrier and a notifier, and replaced: only with
//! `min-replicas-to-write` is nothing delivered there that was cancelled on its successor.

use ringback_testkit::{Persistence, Preload, RedisSentinel, RedisServer, Role};
use tokio::time::sleep;

use super::super::redis_outage::still_the_same_processes;
use super::super::runs_all_topologies;
use super::RECOVERY;
use crate::prelude::*;

const JOBS: usize = 40;
/// The delay of the jobs: long enough for a fail-over and the cancels after it.
const DELAY: Duration = Duration::from_secs(20);
/// The time after its due time within which a job would be delivered.
const AFTERWARDS: Duration = Duration::from_secs(4);

/// The options of processes that know only these sentinels.
fn beside<const N: usize>(servers: &RedisSentinel, sentinels: [usize; N]) -> StackOptions {
    Stack::options().store(&servers.url_of(sentinels)).env("RINGBACK_DURABILITY", "replicated")
}

/// Cuts the master off with a carrier and a notifier, and cancels all jobs on its successor. Returns how many are
/// delivered nevertheless. `guards` are options of the servers.
async fn delivered(guards: &[&str]) -> usize {
    let preload = Preload::compile().expect("there is a C compiler, which links these tests too");
    let options = RedisServer::options().persistence(Persistence::Always).behind_proxies(preload);
    let options = guards.iter().fold(options, |options, guard| options.arg(guard, "1"));
    let servers = RedisSentinel::start(options).await;
    let sink = Sink::counting().await;
    let mut far = beside(&servers, [1, 2]).count(Role::Notifier, 0).start().await;
    let mut near = beside(&servers, [0]).count(Role::Api, 0).start().await;
    let delay = format!("{}s", DELAY.as_secs());
    let jobs: Vec<_> = (0..JOBS).map(|n| with(job(&sink, &format!("job-{n}")), "delay", &*delay)).collect();
    let (status, answer) = far.batch(&jobs).await;
    assert_eq!((status, &answer["accepted"]), (200, &json!(JOBS)), "{answer}");
    servers.are_in_sync(0).await;

    servers.part(0, 0);
    servers.another_master(1, 0).await;
    for job in &jobs {
        let id = job["id"].as_str().expect("an id");
        eventually(RECOVERY, "a job is cancelled", async || match far.cancel(TOPIC, id).await {
            (200, answer) if answer.get("in_flight").is_none() => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }
    sleep(DELAY + AFTERWARDS).await;
    let delivered = sink.counts().len();
    let written: Result<(), _> =
        redis::cmd("SET").arg("x").arg("1").query_async(&mut servers.servers()[0].client().await).await;
    let is_refused = written.is_err_and(|error| error.code() == Some("NOREPLICAS"));
    assert_eq!(is_refused, !guards.is_empty(), "whether the former master takes writes");

    // Later jobs are delivered, also by the processes that were cut off.
    servers.join();
    for stack in [&mut far, &mut near] {
        stack.ready(RECOVERY).await;
        still_the_same_processes(stack);
    }
    far.accept(&job(&sink, "after")).await;
    sink.wait_for_job("after", 1, RECOVERY).await;
    assert_eq!(sink.counts().len(), delivered + 1);
    delivered
}

#[tokio::test]
async fn with_min_replicas_nothing_is_delivered_beside_a_former_master_that_was_cancelled_on_its_successor() {
    if runs_all_topologies() {
        assert_eq!(delivered(&["--min-replicas-to-write", "--min-replicas-max-lag"]).await, 0);
    }
}

/// The guarantees allow such deliveries. They show that the other test can fail.
#[tokio::test]
async fn without_min_replicas_jobs_are_delivered_beside_a_former_master_that_were_cancelled_on_its_successor()
{
    if runs_all_topologies() {
        assert!(delivered(&[]).await > 0, "processes that are cut off go on");
    }
}
