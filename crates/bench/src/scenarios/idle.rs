//! CPU and Redis calls of all roles while very many jobs are pending and none is due.

use serde_json::json;

use crate::at_rest::AtRest;
use crate::figure::report;
use crate::fill;
use crate::setup::Setup;
use ringback_testkit::Role;

pub(crate) const NAME: &str = "idle";

pub(crate) async fn run(setup: &Setup) {
    let jobs = setup.size.pick(1_000_000, 2_000);
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).count(Role::Notifier, 2).start().await;
    fill::far(&setup.open(stack.redis()).await, 0..jobs).await;
    let used = AtRest::watch(setup, &stack).await;
    let with = json!({ "pending": jobs, "processes": used.processes, "by_command": used.by_command });
    report(NAME, "calls", used.calls, "calls/s", &with);
    let with = json!({ "pending": jobs, "processes": used.processes });
    report(NAME, "roles-cpu", used.roles_cpu, "% of core", &with);
    report(NAME, "redis-cpu", used.redis_cpu, "% of core", &with);
    assert_eq!(stack.count_in("delayed").await, jobs as u64, "every job is there");
}
