//! Sentinels that are all away while the master dies, that name different masters, and that find a second master.

use ringback_testkit::Role;

use super::super::runs_all_topologies;
use super::super::steady_load::{CALLERS, SteadyLoad};
use super::{lost, start, works_again};

/// How many jobs are accepted before something goes wrong.
const JOBS: usize = 40;

#[tokio::test]
async fn sentinels_that_all_die_before_the_master_does_replace_it_when_they_are_back() {
    if !runs_all_topologies() {
        return;
    }
    let (mut stack, sink) = start().await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    for sentinel in 0..3 {
        stack.sentinel_mut().sentinel_mut(sentinel).kill();
    }
    stack.sentinel_mut().are_in_sync(0).await;
    stack.sentinel_mut().server_mut(0).kill();
    super::super::weaker_store::unready(&stack.apis[0], "no sentinel answers").await;
    // A process that starts meanwhile waits with the others.
    stack.apis[0].restart();
    for sentinel in 0..3 {
        stack.sentinel_mut().sentinel_mut(sentinel).restart().await;
    }
    stack.sentinel_mut().another_master(0, 0).await;
    works_again(&mut stack, &sink, "after").await;
    let lost = lost(&stack, &sink, &load.end().await).await;
    assert!(lost <= CALLERS, "{lost} jobs are lost");
}

/// The stopped sentinel names the former master, which is a replica by then.
#[tokio::test]
async fn a_sentinel_that_missed_a_fail_over_is_not_believed() {
    if !runs_all_topologies() {
        return;
    }
    let (mut stack, sink) = start().await;
    stack.sentinel_mut().are_in_sync(0).await;
    stack.sentinel_mut().sentinel_mut(2).stop();
    stack.sentinel_mut().server_mut(0).kill();
    stack.sentinel_mut().another_master(0, 0).await;
    stack.sentinel_mut().server_mut(0).restart().await;
    stack.sentinel_mut().servers()[0].becomes_replica().await;
    // Only the one that knows nothing of it is left, for processes that know nothing of it either.
    for sentinel in [0, 1] {
        stack.sentinel_mut().sentinel_mut(sentinel).kill();
    }
    stack.sentinel_mut().sentinel_mut(2).cont();
    for process in stack.apis.iter_mut().chain(&mut stack.carriers) {
        process.restart();
    }
    for sentinel in [0, 1] {
        stack.sentinel_mut().sentinel_mut(sentinel).restart().await;
    }
    works_again(&mut stack, &sink, "after").await;
}

/// Sentinels turn a server that was made a master by hand into a replica again. Nobody writes to it meanwhile.
#[tokio::test]
async fn a_replica_that_is_promoted_by_hand_beside_the_master_gets_no_jobs() {
    if !runs_all_topologies() {
        return;
    }
    let (mut stack, sink) = start().await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    stack.sentinel_mut().servers()[1].promote().await;
    stack.carriers[0].restart();
    stack.add(Role::Api).await;
    load.more(JOBS).await;
    stack.sentinel_mut().servers()[1].becomes_replica().await;
    works_again(&mut stack, &sink, "after").await;
    assert_eq!(lost(&stack, &sink, &load.end().await).await, 0);
}
