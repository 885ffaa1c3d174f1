//! The bounds of all costs. Each has a name with its unit and the value measured when it was set, with Redis 7.0.15
//! and the debug build of Rust 1.95.
//!
//! A bound is raised only by a commit that says what the price buys. It is lowered when the measured value has
//! gone down for good, so that what was won is kept. What is counted exactly has a bound that one more command
//! of a batch, or one more allocation of a job, exceeds; the others have the room that their spread needs.

use crate::table::Bound;

const fn bound(what: &'static str, most: f64) -> Bound {
    Bound { what, most }
}

// Redis: a life is submit, promote, reserve and complete by hand, on one shard, each job due at a time of its own.

/// 4.00, exact: one call per transition. There is no reason to raise it.
pub(crate) const CALLS_ONE: Bound = bound("calls of clients per life, batches of 1", 4.0);

/// 38.14, the same in all runs. Raised for what a life must write or look up anew.
pub(crate) const COMMANDS_ONE: Bound = bound("commands inside scripts per life, batches of 1", 38.6);

/// 0.08, exact: one call per transition and batch. There is no reason to raise it.
pub(crate) const CALLS_FIFTY: Bound = bound("calls of clients per life, batches of 50", 0.08);

/// 0.814, the same in all runs: 40.7 per batch, so jobs that share calls share all commands. A command for each
/// job would add 1. Raised as for batches of 1.
pub(crate) const COMMANDS_FIFTY: Bound = bound("commands inside scripts per life, batches of 50", 0.825);

/// 0.061, exact: submit, promote and exchange per batch, and one settle for the last. There is no reason to
/// raise it.
pub(crate) const CALLS_TOGETHER: Bound =
    bound("calls of clients per life, settled with the next reserve", 0.061);

/// 0.743. Raised as for batches of 1.
pub(crate) const COMMANDS_TOGETHER: Bound =
    bound("commands inside scripts per life, settled with the next reserve", 0.75);

/// 0.147 to 0.15: 7.4 per batch, and more where a slot of ten minutes ends between the jobs. Raised as the
/// others.
pub(crate) const COMMANDS_FAR: Bound =
    bound("commands inside scripts per job due in an hour, batches of 50", 0.157);

/// 41.12, the same in all runs: a publish per transition but reserve, and the names that promote and settle read.
/// Raised as for batches of 1.
pub(crate) const COMMANDS_WATCHED_ONE: Bound =
    bound("commands inside scripts per life while somebody watches, batches of 1", 41.6);

/// 0.872, the same in all runs. Raised as for batches of 1.
pub(crate) const COMMANDS_WATCHED_FIFTY: Bound =
    bound("commands inside scripts per life while somebody watches, batches of 50", 0.88);

// Redis, asked by real processes: one API, one carrier and one notifier on four shards, 2,000 jobs due in a
// second, submitted over HTTP in batches of 100. How many jobs share a call hangs on how fast they go, so these
// have room; they are for what asks in vain or one by one.

/// 0.26 (0.26 to 0.31, the most on a busy machine). Raised for what a process must ask anew.
pub(crate) const STACK_CALLS: Bound = bound("calls of clients per life, all processes", 0.4);

/// As the calls of clients: all but a few are of scripts.
pub(crate) const STACK_SCRIPTS: Bound = bound("calls of scripts per life, all processes", 0.4);

/// 2.6 (2.6 to 3.2, the most on a busy machine). Raised as the calls of clients.
pub(crate) const STACK_COMMANDS: Bound = bound("commands inside scripts per life, all processes", 4.2);

// Instructions of a redis-server 7.0.15 under valgrind, per job. They hang on the build of the server, and its timer is
// counted with them: there is room of a tenth, and more for submit and promote, of which runs differ more.

/// Batch size, how many batches are counted, and the bounds of submit, promote, reserve and complete. One at a time they
/// took 162,400, 208,500, 223,500 and 135,400; in batches of 8 70,200, 29,400, 53,200 and 29,300; in batches of 50
/// 59,100, 6,100, 25,900 and 13,800. With the scripts of flow control they took 185,200 to 191,600, 192,000, 227,000 and
/// 139,000: one more collection of garbage (1.7 million) falls into the 30 submits. Raised for what a life must write or look up anew; last for promote, which reads the
/// fields that the other three no longer read, and is not needed where a notifier waits.
pub(crate) const REDIS_INSTRUCTIONS: [(usize, usize, [Bound; 4]); 3] = [
    (
        1,
        30,
        [
            bound("instructions of Redis: submit, one job at a time", 203_000.0),
            bound("instructions of Redis: promote, one job at a time", 230_000.0),
            bound("instructions of Redis: reserve, one job at a time", 247_000.0),
            bound("instructions of Redis: complete, one job at a time", 149_000.0),
        ],
    ),
    (
        8,
        10,
        [
            bound("instructions of Redis per job: submit, batches of 8", 86_000.0),
            bound("instructions of Redis per job: promote, batches of 8", 33_000.0),
            bound("instructions of Redis per job: reserve, batches of 8", 56_000.0),
            bound("instructions of Redis per job: complete, batches of 8", 31_000.0),
        ],
    ),
    (
        50,
        4,
        [
            bound("instructions of Redis per job: submit, batches of 50", 70_000.0),
            bound("instructions of Redis per job: promote, batches of 50", 7_500.0),
            bound("instructions of Redis per job: reserve, batches of 50", 29_100.0),
            bound("instructions of Redis per job: complete, batches of 50", 15_000.0),
        ],
    ),
];

// The memory of pending jobs that are due within a day: 20,000 of them in Redis, 5,000 in a file.

/// 431.3 (431.1 to 431.5) with jemalloc; 390.3 in Valkey 9.1.2 with libc. With 16 bytes more in a record it is
/// 495: jemalloc gives the next larger piece. Raised for what every pending job must carry.
pub(crate) const REDIS_BYTES: Bound = bound("bytes of Redis per pending job", 440.0);

/// 465.3, the same in all runs. Raised as for Redis.
pub(crate) const FILE_BYTES: Bound =
    bound("bytes of used pages in the embedded store's file per pending job", 475.0);

// Allocations, per job of a batch of 100 on Redis, growing what is there included; the least of five rounds.

/// 24.31 (24.31 to 24.45). Raised for a new field, or a dependency that is worth more of them.
pub(crate) const SUBMIT_ALLOCATIONS: Bound = bound("allocations per job: parse and submit", 25.3);

/// 3,278. Raised as the allocations.
pub(crate) const SUBMIT_BYTES: Bound = bound("bytes allocated per job: parse and submit", 3_400.0);

/// 10.11, the same in all runs. Raised as for a submit.
pub(crate) const RESERVE_COMPLETE_ALLOCATIONS: Bound =
    bound("allocations per job: reserve and complete", 10.9);

/// 4,207, the same in all runs. Raised as for a submit.
pub(crate) const RESERVE_COMPLETE_BYTES: Bound =
    bound("bytes allocated per job: reserve and complete", 4_350.0);

/// 103.2 (100.9 to 103.9), so three or four more are needed to exceed the bound: reserve, request, HTTP client,
/// answer and settle. Raised as for a submit.
pub(crate) const NOTIFIER_ALLOCATIONS: Bound = bound("allocations per job: a whole notifier", 106.0);

/// 34,100 (33,300 to 34,500); tasks are larger in a debug build. Raised as for a submit.
pub(crate) const NOTIFIER_BYTES: Bound = bound("bytes allocated per job: a whole notifier", 36_000.0);

// Instructions of the build for tests, which is optimised a little. A tenth of room, since another compiler makes other
// code.

/// 55,026, the same in all runs. Raised for a new field, or a check that was missing.
pub(crate) const PARSE_INSTRUCTIONS: Bound = bound("instructions: parse one submitted job", 60_500.0);

/// 825, the same in all runs. Raised for another rule of waiting.
pub(crate) const DELAY_INSTRUCTIONS: Bound = bound("instructions: when to try again", 908.0);

/// 575,000, redb's among them. Raised for what a transition must do anew.
pub(crate) const LIFE_INSTRUCTIONS: Bound =
    bound("instructions: a life on the embedded store in memory, batches of 10", 632_000.0);
