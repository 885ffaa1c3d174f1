//! A script's fast path leaves the same keys, counts and answers as the script, which is used for other cases.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;
use redis::{Value, cmd};
use ringback_core::clock::Timestamp;
use ringback_core::store_types::{Lease, Reserved, SubmitResult, Waiting};
use ringback_testkit::shard_fields;

use crate::contract::job_builders::With as _;
use crate::contract::workbench::{Workbench, until};
use crate::prelude::*;
use crate::redis_layout::keys::{all, ask, bench};

/// A step of the lives of some jobs, which have numbers from 0 on.
#[derive(Clone, Debug)]
enum Step {
    /// Submits jobs in one call, due now or after a while.
    Submit(std::ops::Range<usize>, Duration),
    /// Waits until all jobs are due, and promotes at most so many.
    Promote(u32),
    /// Reserves at most so many.
    Reserve(usize),
    /// Waits until all jobs are due, and reserves at most so many as the notifier that waits for due jobs.
    Wait(usize),
    /// Completes the first so many of the reserved jobs.
    Complete(usize),
    /// Completes the first so many of the reserved jobs, and reserves at most so many in the same call.
    Exchange(usize, usize),
}

/// Later than any step of this test before a promote.
const LATER: Duration = Duration::from_millis(400);
const SHORT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn a_fast_path_leaves_what_its_script_leaves() {
    use Step::{Complete, Exchange, Promote, Reserve, Submit, Wait};
    let (fast, slow) = (Run::start().await, Run::start().await);
    let mut runs = [fast, slow];
    let taken = "if quick then return quick end";
    runs[0].change_library(taken, "if quick then redis.call('INCR', 'fast:' .. name) return quick end").await;
    runs[1].change_library("not is_logged and not is_uncommon[base] and fast[name]", "false").await;
    // The first submit makes the lane known.
    let steps = [
        Submit(0..1, Duration::ZERO),
        Reserve(1),
        Submit(1..3, Duration::ZERO),
        Complete(1),
        Reserve(1),
        Complete(1),
        Submit(3..4, LATER),
        Submit(4..8, LATER),
        Reserve(1),
        Promote(2),
        Promote(9),
        Reserve(2),
        Reserve(9),
        Reserve(9),
        Exchange(2, 9),
        Submit(8..12, Duration::ZERO),
        Exchange(3, 2),
        Exchange(1, 9),
        Complete(1),
        Complete(9),
        Wait(9),
        Submit(12..13, SHORT),
        Wait(9),
        Submit(13..16, SHORT),
        Wait(9),
        Complete(9),
        Submit(16..18, Duration::ZERO),
        Wait(1),
        Wait(9),
        Complete(9),
        Wait(9),
    ];
    for step in steps {
        let mut left = Vec::new();
        for run in &mut runs {
            let answer = run.make(step.clone()).await;
            left.push((answer, run.layout().await));
        }
        assert_eq!(left[0], left[1], "after {step:?}");
    }
    for run in &runs {
        run.bench.check().await;
    }
    for path in ["submit", "promote", "reserve", "settle", "exchange"] {
        let times: Option<u64> = ask(&mut runs[0].redis, &[b"GET", format!("fast:{path}").as_bytes()]).await;
        assert!(times.is_some(), "the fast path of {path} was taken");
    }
}

struct Run {
    bench: Workbench,
    redis: MultiplexedConnection,
    leases: Vec<Lease>,
    /// When the last job is due.
    due: Timestamp,
}

impl Run {
    async fn start() -> Self {
        let (bench, redis) = bench().await;
        Self { bench, redis, leases: Vec::new(), due: Timestamp::default() }
    }

    /// Loads the library again with another text in one place.
    async fn change_library(&mut self, right: &str, wrong: &str) {
        let mut list = cmd("FUNCTION");
        list.arg("LIST").arg("WITHCODE");
        let libraries: Vec<Vec<Value>> = list.query_async(&mut self.redis).await.expect("libraries");
        let code = libraries[0].last().expect("the code").clone();
        let code: String = redis::from_redis_value(code).expect("a text");
        assert_eq!(code.matches(right).count(), 1, "this is in the library once: {right}");
        let code = code.replace(right, wrong);
        let mut load = cmd("FUNCTION");
        let () =
            load.arg("LOAD").arg("REPLACE").arg(code).query_async(&mut self.redis).await.expect("it loads");
    }

    /// Makes a step, and returns what matters of its answer.
    async fn make(&mut self, step: Step) -> String {
        match step {
            Step::Submit(numbers, delay) => {
                let job = |n| self.bench.job(&format!("job-{n}")).tags("").after(delay);
                let jobs: Vec<_> = numbers.map(job).collect();
                let submitted = self.bench.submit(&jobs).await;
                assert!(submitted.iter().all(|one| one.answer == SubmitResult::Created));
                self.due = submitted.iter().map(|one| one.job.due).fold(self.due, Timestamp::max);
                String::new()
            }
            Step::Promote(limit) => {
                until(self.due).await;
                let held = self.bench.promote(limit).await;
                format!("{} {}", held.moved, held.next_due.is_some())
            }
            Step::Reserve(limit) => {
                let reserved = self.bench.reserve(&self.bench.ask(limit)).await;
                self.keep(reserved)
            }
            Step::Wait(limit) => {
                until(self.due).await;
                let ask =
                    ringback_core::store_types::Reserve { waiting: Waiting::Yes, ..self.bench.ask(limit) };
                let reserved = self.bench.reserve(&ask).await;
                let waits = reserved.next_due.is_some();
                format!("{} {waits}", self.keep(reserved))
            }
            Step::Complete(count) => {
                let items = self.first(count);
                format!("{:?}", self.bench.settle_all(items).await)
            }
            Step::Exchange(count, limit) => {
                let items = self.first(count);
                let (settled, reserved) = self.bench.exchange(items, &self.bench.ask(limit)).await;
                format!("{settled:?} {}", self.keep(reserved))
            }
        }
    }

    /// Takes the first so many of the reserved jobs, to be completed.
    fn first(&mut self, count: usize) -> Vec<(Lease, Outcome)> {
        let first = self.leases.drain(..count.min(self.leases.len()));
        first.map(|lease| (lease, Outcome::Complete)).collect()
    }

    /// Keeps the leases of a reserve, and returns what matters of its answer.
    fn keep(&mut self, reserved: Reserved) -> String {
        let answer = format!("{} {} {:?}", reserved.leases.len(), reserved.more, reserved.full);
        self.leases.extend(reserved.leases);
        answer
    }

    /// The sizes of all keys of the shard by name, and the counts of the shard. Times are left out.
    async fn layout(&mut self) -> BTreeMap<String, i64> {
        let mut sizes = BTreeMap::new();
        for key in all::<Vec<u8>>(&mut self.redis, "*").await {
            let name = String::from_utf8_lossy(&key).split_once("}:").map(|(_, name)| name.to_owned());
            let Some(name) = name.filter(|_| !key.windows(6).any(|part| part == b"{meta}")) else { continue };
            let kind: String = cmd("TYPE").arg(&key).query_async(&mut self.redis).await.expect("a type");
            let size = match kind.as_str() {
                "hash" => "HLEN",
                "list" => "LLEN",
                "zset" => "ZCARD",
                "set" => "SCARD",
                _ => "STRLEN",
            };
            let size: i64 = cmd(size).arg(&key).query_async(&mut self.redis).await.expect("a size");
            if name == "shard" {
                let hash = cmd("HGETALL").arg(&key).query_async(&mut self.redis).await.expect("a hash");
                for (field, value) in shard_fields(&hash) {
                    let is_time = ["epoch", "lease", "next", "slot", "waits_until"].contains(&field)
                        || field.ends_with("_at");
                    sizes.insert(format!("field {field}"), if is_time { (value > 0).into() } else { value });
                }
                let rows = hash.iter().filter(|(name, row)| name.len() == 8 && row.len() > 28);
                sizes.extend(rows.map(|(_, row)| {
                    let counts = row[..28].iter().map(|byte| i64::from(*byte));
                    (
                        "row".to_owned(),
                        counts.fold(0, |sum: i64, byte| sum.wrapping_mul(7).wrapping_add(byte)),
                    )
                }));
            }
            sizes.insert(name, size);
        }
        sizes
    }
}
