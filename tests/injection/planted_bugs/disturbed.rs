//! A short run under faults, for planted bugs that show only then: answers of the store are lost, a carrier is killed
//! and one stopped beyond its lock, the store's memory is full, its functions are gone, and at the end all of its data.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, ToRedisArgs};
use ringback_testkit::history::{Alarm, Entry, FaultClass, Report};
use ringback_testkit::recorded::{Bounds, Recorded, RecordedJob};
use ringback_testkit::{Persistence, Process, RedisServer, Role, Sink, Stack};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::bugs::{Bug, Place};
use super::locks::LockWatch;
use super::plant::{self, Ways};
use crate::processes::is_stopped;

/// What the processes do, each at one of its passes since its start. The load goes on until all of it is done.
const PLAN: &str = "\
store.submit.after cut 5
store.settle.after cut 2
store.exchange.after cut 2
store.promote.after cut 9
store.promote.after kill 3
store.promote.before stop 5
";
/// How long after its due time a job is delivered at the latest: within the lock, the lease and a tick.
const LIVE: Duration = Duration::from_secs(4);
/// How long the plan may take on a busy machine.
const PLANNED: Duration = Duration::from_secs(60);
/// A stopped carrier stays so at least this long, and until another has claimed its shard.
const BEYOND_LOCK: Duration = Duration::from_millis(800);
/// Another claims it within this, if the carrier held it when it was stopped.
const CLAIMED: Duration = Duration::from_secs(10);
/// How long a carrier that is ready may take to say so.
const READY: Duration = Duration::from_secs(1);
/// How long others stand still before and after it continues: less than a lock.
const STANDSTILL: Duration = Duration::from_millis(100);
/// Within this time a submit is answered that the store has lost jobs.
const NOTICED: Duration = Duration::from_millis(950);
/// The pause between two submits.
const PAUSE: Duration = Duration::from_millis(12);

struct Run {
    recorded: Recorded,
    api: String,
    ways: Ways,
    redis: MultiplexedConnection,
}

/// Makes the run with a bug, or without one, and checks its history.
pub(crate) async fn run(bug: Option<&Bug>) -> Report {
    let name = bug.map_or("no bug, under faults", |bug| bug.name);
    let recorded = Recorded::start(name, &Bounds { live: Some(LIVE), ..Bounds::default() });
    let sink = Sink::recorded(recorded.history()).await;
    let files = tempfile::tempdir().expect("a folder");
    let (plan, log) = (files.path().join("plan"), files.path().join("log"));
    fs::write(&plan, PLAN).expect("a file");
    let redis = RedisServer::options().persistence(Persistence::Always);
    let options = Stack::options().redis(redis).count(Role::Carrier, 2).lock_ttl("500ms").unchecked();
    let options = plant::options(bug, options).env("RINGBACK_SHARDS", "1");
    let options =
        options.env("FAULT_PLAN", &plan.display().to_string()).env("FAULT_LOG", &log.display().to_string());
    let mut stack = options.start().await;
    let locks = LockWatch::start(stack.redis().port()).await;
    let (api, redis) = (stack.api_urls().remove(0), stack.redis().client().await);
    let ways = plant::plant(bug, &stack, &sink).await;
    let run = Run { recorded, api, ways, redis };
    let is_over = AtomicBool::new(false);
    let faults = async {
        let left = run.lose_carriers(&mut stack.carriers, &log, &locks).await;
        assert_eq!(left, None, "{name}: not done after {PLANNED:?}");
        run.fill_memory().await;
        let is_loaded_again = !bug.is_some_and(|bug| matches!(bug.place, Place::NotLoadedAgain));
        let functions = run.flush_functions(is_loaded_again).await;
        sleep(Duration::from_millis(300)).await;
        is_over.store(true, Ordering::SeqCst);
        functions
    };
    let ((), functions) = tokio::join!(run.load(&is_over), faults);
    let has_drained = run.drains(LIVE + Duration::from_secs(2)).await;
    // Puts back the library with the bug. Jobs that are left must be readable.
    run.ask::<redis::Value, _>("FUNCTION", ("RESTORE", functions, "REPLACE")).await;
    if !has_drained {
        run.drains(LIVE).await;
    }
    run.recorded.end(&stack, &["t"], false).await;
    run.wipe(&stack).await;
    locks.finish(run.recorded.history());
    run.recorded.check()
}

impl Run {
    async fn submit(&self, id: &str, delay: u64) -> Option<(u16, serde_json::Value)> {
        let job = RecordedJob::new("t", id, Some(self.ways.receiver("/hook")));
        self.recorded.submit(&self.ways.api, &RecordedJob { delay: Some(delay), ..job }).await
    }

    async fn ask<T: FromRedisValue, A: ToRedisArgs>(&self, command: &str, args: A) -> T {
        let mut redis = self.redis.clone();
        let answer = redis::cmd(command).arg(args).query_async(&mut redis).await;
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    async fn load(&self, is_over: &AtomicBool) {
        let mut number = 0;
        while !is_over.load(Ordering::SeqCst) {
            self.submit(&format!("job-{number}"), 20 + number * 37 % 300).await;
            number += 1;
            sleep(PAUSE).await;
        }
    }

    /// Starts a killed carrier again and continues a stopped one, until the plan is carried out. Returns the rest of
    /// the plan if that takes too long.
    async fn lose_carriers(
        &self,
        carriers: &mut [Process],
        log: &Path,
        locks: &LockWatch,
    ) -> Option<Vec<String>> {
        let fault = self.recorded.fault("carriers", FaultClass::Process);
        let (deadline, mut stopped) = (Instant::now() + PLANNED, HashMap::new());
        let left = loop {
            for place in 0..carriers.len() {
                let pid = carriers[place].pid();
                if carriers[place].exit_status().is_some() {
                    carriers[place].restart();
                } else if is_stopped(pid) {
                    let (since, claims) =
                        *stopped.entry(pid).or_insert_with(|| (Instant::now(), locks.claims()));
                    let is_claimed = locks.claims() > claims || since.elapsed() >= CLAIMED;
                    if is_claimed && since.elapsed() >= BEYOND_LOCK {
                        stopped.remove(&pid);
                        continue_with_work(carriers, place).await;
                    }
                }
            }
            let done = fs::read_to_string(log).unwrap_or_default();
            let is_done = |line: &str| done.lines().any(|done| line.starts_with(done));
            let left: Vec<_> = PLAN.lines().filter(|line| !is_done(line)).map(str::to_owned).collect();
            let is_running = !carriers.iter().any(|carrier| is_stopped(carrier.pid()));
            // Which of these two calls a notifier makes depends on how busy it is.
            let is_one_of_two = |line: &String| line.contains(".settle.") || line.contains(".exchange.");
            let is_done = left.len() < 2 && left.iter().all(is_one_of_two) && is_running;
            let is_over = is_done && self.are_ready(carriers).await;
            if is_over || Instant::now() > deadline {
                break (!is_over).then_some(left);
            }
            sleep(Duration::from_millis(5)).await;
        };
        self.recorded.healed(fault);
        left
    }

    async fn are_ready(&self, carriers: &[Process]) -> bool {
        for carrier in carriers {
            let url = format!("http://{}/readyz", carrier.admin());
            let asked = timeout(READY, self.recorded.other(Method::GET, &url, None)).await;
            if !matches!(asked, Ok(Some((200, _)))) {
                return false;
            }
        }
        true
    }

    async fn fill_memory(&self) {
        self.ask::<(), _>("CONFIG", ("SET", "maxmemory", 1)).await;
        let fault = self.recorded.fault("full-memory", FaultClass::StoreDown);
        for n in 0..5 {
            self.submit(&format!("full-{n}"), 50).await;
        }
        self.recorded.healed(fault);
        self.ask::<(), _>("CONFIG", ("SET", "maxmemory", 0)).await;
    }

    /// Removes the functions from the server and returns them. If not `is_loaded_again`, processes may not load them.
    async fn flush_functions(&self, is_loaded_again: bool) -> Vec<u8> {
        let functions = self.ask("FUNCTION", "DUMP").await;
        if !is_loaded_again {
            self.ask::<(), _>("ACL", ("SETUSER", "default", "-function|load", "-eval")).await;
        }
        let fault = self.recorded.fault("flush", FaultClass::Store);
        self.ask::<(), _>("FUNCTION", "FLUSH").await;
        self.recorded.healed(fault);
        functions
    }

    /// Waits up to `within` until no job is pending or dead. Returns whether that came true.
    async fn drains(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            let export = self.recorded.other(Method::GET, &format!("{}/v1/export", self.api), None).await;
            if export.is_some_and(|(status, jobs)| status == 200 && jobs.is_empty()) {
                return true;
            }
            sleep(Duration::from_millis(50)).await;
        }
        false
    }

    /// Empties the store, waits up to [`NOTICED`] until a submit is refused for that, accepts the loss, submits one more
    /// job, and waits until it is delivered.
    async fn wipe(&self, stack: &Stack) {
        let fault = self.recorded.fault("wipe", FaultClass::Amnesia);
        self.ask::<(), _>("FLUSHALL", None::<u8>).await;
        let (began, history) = (Instant::now(), self.recorded.history());
        while began.elapsed() < NOTICED {
            let answer = self.submit("refused", 50).await;
            if answer.is_some_and(|(_, problem)| problem.to_string().contains("has lost")) {
                history.write(&Entry::Alarm(Alarm { t: history.t(), pid: stack.apis[0].pid() }));
                break;
            }
            sleep(PAUSE).await;
        }
        if let Some(loss) = stack.check().await.loss {
            let accepted = json!({"run_id": loss.run_id});
            let url = format!("{}/v1/check/accept-loss", self.api);
            self.recorded.other(Method::POST, &url, Some(&accepted)).await;
        }
        self.recorded.healed(fault);
        self.submit("last", 50).await;
        self.drains(LIVE).await;
    }
}

/// Continues a carrier that was stopped beyond its lock. The others are stopped shortly before and go on shortly after
/// that, so that there are due jobs which the carrier would promote without fencing.
async fn continue_with_work(carriers: &mut [Process], place: usize) {
    let is_other = |(other, carrier): &mut (usize, &mut Process)| {
        *other != place && carrier.exit_status().is_none() && !is_stopped(carrier.pid())
    };
    let others: Vec<_> =
        carriers.iter_mut().enumerate().filter_map(|mut one| is_other(&mut one).then_some(one.0)).collect();
    for other in &others {
        carriers[*other].stop();
    }
    sleep(STANDSTILL).await;
    carriers[place].cont();
    sleep(STANDSTILL).await;
    for other in others {
        carriers[other].cont();
    }
}
