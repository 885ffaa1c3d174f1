//! `RINGBACK_DURABILITY=replicated`: a master is cut off from its replica, which takes over, while an API still
//! reaches the former master. No acknowledged job is lost.

use ringback_testkit::{Proxy, ProxyMode, RedisServer, Role, Sink, Stack, StackOptions};

use super::super::redis_outage::{accepted_again, still_the_same_processes};
use super::super::steady_load::SteadyLoad;
use super::super::weaker_store::unready;
use super::{RECOVERY, server};
use crate::sample_jobs::job;

/// How many jobs are accepted on each side before something goes wrong, and afterwards.
const JOBS: usize = 60;

fn on(proxy: &Proxy) -> StackOptions {
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    Stack::options().store(&url).env("RINGBACK_DURABILITY", "replicated")
}

async fn follow_over(replica: &RedisServer, link: &Proxy, master: &RedisServer) {
    let mut command = redis::cmd("REPLICAOF");
    let command = command.arg("127.0.0.1").arg(link.port());
    command.exec_async(&mut replica.client().await).await.expect("REPLICAOF");
    master.is_replicated_to(1).await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_master_is_cut_off_from_its_replica_and_not_from_an_api() {
    let (old, new, third) = (server().await, server().await, server().await);
    let link = Proxy::start(old.port());
    follow_over(&new, &link, &old).await;
    let (near_way, far_way) = (Proxy::start(old.port()), Proxy::start(old.port()));
    let (near, sink) =
        (on(&near_way).count(Role::Carrier, 0).count(Role::Notifier, 0), Sink::counting().await);
    let (mut near, mut far) = (near.start().await, on(&far_way).start().await);
    let loads = [SteadyLoad::start(&near, &sink, "near"), SteadyLoad::start(&far, &sink, "far")];
    for load in &loads {
        load.more(JOBS).await;
    }

    link.fail(ProxyMode::Swallow);
    new.promote().await;
    third.follow(&new).await;
    far_way.lead_to(new.port());
    far_way.cut();
    unready(&near.apis[0], "too few replicas keep up").await;
    loads[1].more(JOBS).await;
    unready(&near.apis[0], "too few replicas keep up").await;

    // Data that only the former master has is gone.
    old.follow(&new).await;
    near_way.lead_to(new.port());
    accepted_again(&near, &job(&sink, "after")).await;
    for load in &loads {
        load.more(JOBS).await;
    }
    let mut ids = Vec::new();
    for load in loads {
        ids.extend(load.end().await);
    }
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    for stack in [&mut near, &mut far] {
        stack.ready(RECOVERY).await;
        assert!(stack.check().await.loss.is_none());
        still_the_same_processes(stack);
    }
}
