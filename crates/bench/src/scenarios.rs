//! The list of all scenarios, with the names that `make bench ARGS=` takes. Each scenario has a file.

mod archive;
mod attacks;
mod check;
mod drain;
mod embedded;
mod growth;
mod herd;
mod idle;
mod instructions;
mod lateness;
mod memory;
mod modest;
mod one_dead_receiver;
mod pull;
mod redis_cpu;
mod replicated;
mod revive;
mod schedules;
mod submit_batch;
mod submit_one;
mod up;

use futures_util::future::LocalBoxFuture;

use crate::setup::Setup;

#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name on the command line and in the report.
    pub name: &'static str,
    /// One line on what it measures.
    pub about: &'static str,
    pub(crate) run: for<'a> fn(&'a Setup) -> LocalBoxFuture<'a, ()>,
}

/// A scenario from its module and what it measures.
macro_rules! scenario {
    ($module:ident, $about:literal) => {
        Scenario { name: $module::NAME, about: $about, run: |setup| Box::pin($module::run(setup)) }
    };
}

/// All scenarios, in the order in which they run.
pub const SCENARIOS: [Scenario; 21] = [
    scenario!(submit_one, "single submits over HTTP, durable, beside a handler that does nothing"),
    scenario!(replicated, "single submits that a replica has to have, beside those of profile disk"),
    scenario!(submit_batch, "submits of 1,000 jobs per request, beside redis-benchmark"),
    scenario!(drain, "delivery of a backlog of due jobs, beside BullMQ and a bare HTTP client"),
    scenario!(lateness, "time from due to arrival, for jobs due evenly, beside BullMQ"),
    scenario!(memory, "bytes of Redis per pending job, beside BullMQ"),
    scenario!(idle, "CPU and Redis calls of all roles while a million jobs are pending and none is due"),
    scenario!(schedules, "a hundred thousand schedules while none fires, and lateness at 1,000 firings/s"),
    scenario!(
        archive,
        "lateness while all ended jobs go to PostgreSQL, and how fast those that have waited get there"
    ),
    scenario!(redis_cpu, "CPU of Redis for one job from submit to done"),
    scenario!(
        modest,
        "CPU of Redis for one job at 500, 2,000 and 6,000 submits/s, beside BullMQ; with many processes"
    ),
    scenario!(
        instructions,
        "instructions of Redis for one job from submit to done, beside BullMQ; needs valgrind"
    ),
    scenario!(growth, "rate, lateness and CPU of Redis with more and more pending jobs"),
    scenario!(herd, "a million jobs of one topic due at once, and the lateness of other topics"),
    scenario!(
        one_dead_receiver,
        "one of a hundred receivers hangs and gets half of the jobs: lateness of the others"
    ),
    scenario!(attacks, "one tenant attacks in eleven ways: submits and lateness of another"),
    scenario!(
        revive,
        "bulk revive of 100,000 dead jobs at 2,000/s: the rate reached, and the lateness of other topics"
    ),
    scenario!(pull, "pull jobs: expired leases, waiting consumers, and the rate of reserve and finish"),
    scenario!(
        embedded,
        "the embedded store: durable submits beside bare redb, memory, opening after kill -9"
    ),
    scenario!(
        check,
        "duration of a check of a million jobs, and the longest that one command keeps Redis busy"
    ),
    scenario!(up, "one process on the embedded store: single submits over HTTP, and delivery"),
];
