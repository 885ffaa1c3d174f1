//! Crash points of calls that repair damage or accept a loss: a process is killed, stopped or cut off at each while
//! index entries, records and accepted jobs are removed. Afterwards a repair finds nothing more. By default a third of
//! the calls, chosen by the seed; with `RINGBACK_TEST_SWEEPS` all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringback_testkit::recorded::{Bounds, Recorded};
use ringback_testkit::{Persistence, RedisServer, Role, Sink, StackOptions, attempts};

use crate::crash_points::{Counts, Ends, Plan, repair_points, share, show, supervise, sweeps};
use crate::redis_errors::Client;
use crate::seed::seed;

const NAME: &str = "repairs";
/// How long a sweep, and its end, may take on a busy machine.
const SWEEP: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_repair_damage_may_be_cut_short() {
    let is_whole = sweeps().is_some();
    let seed = seed();
    let plan = Plan::new(&share(repair_points(), seed, is_whole), seed, is_whole);
    let redis = RedisServer::options().persistence(Persistence::Always);
    let options =
        StackOptions::api_only().redis(redis).count(Role::Api, 2).env("RINGBACK_SHARDS", "1").unchecked();
    let mut stack = plan.give(options).start().await;
    let recorded = Arc::new(Recorded::start(NAME, &Bounds::default()));
    let aside = Sink::start().await;
    let client = Client {
        recorded: &recorded,
        api: stack.api_urls().remove(0),
        url: aside.url(""),
        aside: aside.url(""),
        redis: stack.redis().client().await,
    };
    let (is_over, mut counts) = (AtomicBool::new(false), Counts::default());
    let repairing = async {
        let mut round = 0;
        while !is_over.load(Ordering::SeqCst) {
            client.damage(&format!("round-{round}")).await;
            client.repaired().await;
            client.lose_accepted().await;
            round += 1;
        }
    };
    let never = Plan::never();
    let supervising = async {
        supervise(&mut stack, &mut counts, SWEEP, &plan, Ends::Never).await;
        is_over.store(true, Ordering::SeqCst);
        supervise(&mut stack, &mut counts, SWEEP, &never, Ends::Never).await;
    };
    tokio::select! {
        () = repairing => {}
        () = supervising => {}
    }
    stack.ready(SWEEP).await;
    client.repaired().await;
    show(&format!("repairs, seed {}: {counts:?}", plan.seed));
    let check = stack.check().await;
    if !check.clean {
        attempts::remember(NAME, &format!("{check:?}"));
        panic!("seed {}: {check:?}", plan.seed);
    }
}
