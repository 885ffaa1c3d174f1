//! All scenarios by the names that `make bench ARGS=` takes, one file each.

mod audit;
mod drain;
mod embedded;
mod growth;
mod herd;
mod idle;
mod lateness;
mod memory;
mod one_dead_receiver;
mod pull;
mod redis_cpu;
mod revive;
mod submit_batch;
mod submit_one;
mod up;

use futures_util::future::LocalBoxFuture;

use crate::setup::Setup;

/// One scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name on the command line and in the report.
    pub name: &'static str,
    /// One line on what it measures.
    pub about: &'static str,
    pub(crate) run: for<'a> fn(&'a Setup) -> LocalBoxFuture<'a, ()>,
}

/// All scenarios, in the order in which they run.
pub const SCENARIOS: [Scenario; 15] = [
    Scenario {
        name: "submit-one",
        about: "single submits over HTTP, durable, beside a handler that does nothing",
        run: |setup| Box::pin(submit_one::run(setup)),
    },
    Scenario {
        name: "submit-batch",
        about: "submits of 1,000 jobs per request, beside redis-benchmark",
        run: |setup| Box::pin(submit_batch::run(setup)),
    },
    Scenario {
        name: "drain",
        about: "delivery of a backlog of due jobs, beside BullMQ and a bare HTTP client",
        run: |setup| Box::pin(drain::run(setup)),
    },
    Scenario {
        name: "lateness",
        about: "time from due to arrival, for jobs due evenly, beside BullMQ",
        run: |setup| Box::pin(lateness::run(setup)),
    },
    Scenario {
        name: "memory",
        about: "bytes of Redis per pending job, beside BullMQ",
        run: |setup| Box::pin(memory::run(setup)),
    },
    Scenario {
        name: "idle",
        about: "CPU and Redis calls of all roles while a million jobs are pending and none is due",
        run: |setup| Box::pin(idle::run(setup)),
    },
    Scenario {
        name: "redis-cpu",
        about: "CPU of Redis for one job from submit to done",
        run: |setup| Box::pin(redis_cpu::run(setup)),
    },
    Scenario {
        name: "growth",
        about: "rate, lateness and CPU of Redis with more and more pending jobs",
        run: |setup| Box::pin(growth::run(setup)),
    },
    Scenario {
        name: "herd",
        about: "a million jobs of one topic due at once, and the lateness of other topics",
        run: |setup| Box::pin(herd::run(setup)),
    },
    Scenario {
        name: "one-dead-receiver",
        about: "one of a hundred receivers hangs and gets half of the jobs: lateness of the others",
        run: |setup| Box::pin(one_dead_receiver::run(setup)),
    },
    Scenario {
        name: "revive",
        about: "redrive of 100,000 dead jobs at 2,000/s: the rate reached, and the lateness of other topics",
        run: |setup| Box::pin(revive::run(setup)),
    },
    Scenario {
        name: "pull",
        about: "pull jobs: expired leases, waiting consumers, and the rate of reserve and finish",
        run: |setup| Box::pin(pull::run(setup)),
    },
    Scenario {
        name: "embedded",
        about: "the embedded store: durable submits beside bare redb, memory, opening after kill -9",
        run: |setup| Box::pin(embedded::run(setup)),
    },
    Scenario {
        name: "audit",
        about: "duration of an audit of a million jobs, and the longest that one command keeps Redis busy",
        run: |setup| Box::pin(audit::run(setup)),
    },
    Scenario {
        name: "up",
        about: "one process on the embedded store: single submits over HTTP, and delivery",
        run: |setup| Box::pin(up::run(setup)),
    },
];
