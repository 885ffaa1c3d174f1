//! The check of very many jobs, over HTTP: its duration, the longest that one command keeps Redis busy meanwhile, and
//! the memory of the API. Half of the jobs are ready in one queue and half are far from due, so that all of them are
//! in lists, where a check has most to do.

use std::time::Duration;

use ringback_wire::CheckResponse;
use serde_json::json;
use tokio::time::Instant;

use crate::figure::report;
use crate::fill;
use crate::probe::Probe;
use crate::setup::Setup;
use crate::usage::{peak_mib, resident_mib};
use ringback_testkit::{Role, http_client};

pub(crate) const NAME: &str = "check";
/// The limit of the request, far beyond what a check takes.
const WITHIN: Duration = Duration::from_secs(3600);

pub(crate) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(1_000_000, 10_000);
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 0).count(Role::Notifier, 0).start().await;
    let store = setup.open(stack.redis()).await;
    fill::far(&store, 0..jobs / 2).await;
    fill::ready(&store, jobs / 2..jobs).await;

    let before = resident_mib(stack.apis[0].pid());
    let probe = Probe::start(stack.redis()).await;
    let begun = Instant::now();
    let answer = http_client().get(stack.url("/v1/check")).timeout(WITHIN).send().await.expect("an answer");
    let body = answer.error_for_status().expect("it is checked").bytes().await.expect("the whole answer");
    let seconds = begun.elapsed().as_secs_f64();
    let seen = probe.end(stack.redis()).await;
    let check: CheckResponse = serde_json::from_slice(&body).expect("a check");
    assert!(check.clean && check.checked == jobs as u64, "{check:?}");
    assert_eq!((check.stale, check.compared), (0, check.shards), "nothing moves: {check:?}");

    let with = json!({ "jobs": jobs });
    report(NAME, "duration", seconds, "s", &with);
    report(NAME, "rate", jobs as f64 / seconds, "jobs/s", &with);
    seen.report(NAME, &with);
    let peak = peak_mib(stack.apis[0].pid());
    report(NAME, "api-memory", peak, "MiB", &json!({ "jobs": jobs, "before": before }));
}
