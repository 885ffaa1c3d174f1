//! Starts processes again that were killed, and continues those that were stopped, until a fault plan is carried out.

use std::collections::{HashMap, HashSet};
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use ringback_testkit::{Process, Stack};
use tokio::time::{Instant, sleep};

use super::names::Plan;
use crate::processes::is_stopped;

/// How often processes are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// After this time without a new point a process is ended in order.
const STUCK: Duration = Duration::from_millis(400);
/// How long a carrier stays stopped: beyond its lock.
const BEYOND_LOCK: Duration = Duration::from_millis(650);
/// How long the others stay stopped.
const MOMENT: Duration = Duration::from_millis(60);

/// The numbers of actions that were done.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kills: u32,
    pub(crate) stops: u32,
    pub(crate) stops_beyond_the_lock: u32,
}

/// Whether processes are ended in order from time to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// If no new point was reached for a while.
    IfStuck,
    Never,
}

/// Looks after the processes until the plan is carried out, and panics if that takes longer than `within`. If no new
/// point is reached for a while and `ends` allows it, ends a process in order.
pub(crate) async fn supervise(
    stack: &mut Stack,
    counts: &mut Counts,
    within: Duration,
    plan: &Plan,
    ends: Ends,
) {
    let deadline = Instant::now() + within;
    let (mut stopped, mut ended) = (HashMap::new(), HashSet::new());
    let (mut least, mut since, mut turn) = (usize::MAX, Instant::now(), 0);
    loop {
        let left = plan.left();
        if left.len() < least {
            (least, since) = (left.len(), Instant::now());
        } else if since.elapsed() >= STUCK && stopped.is_empty() && plan.is_armed() && ends == Ends::IfStuck {
            // Some points are reached at a start or an orderly end only,
            let mut all: Vec<_> = stack.processes_mut().collect();
            if ended.len() > all.len() {
                // and so once in the life of a process.
                plan.arm_first_passes();
            }
            turn = (turn + 1) % all.len();
            // A second signal would not wait for the end.
            if ended.insert(all[turn].pid()) {
                all[turn].term();
            }
            since = Instant::now();
        }
        let groups = [
            (&mut stack.apis, MOMENT),
            (&mut stack.carriers, BEYOND_LOCK),
            (&mut stack.notifiers, MOMENT),
            (&mut stack.ups, BEYOND_LOCK),
        ];
        for (processes, pause) in groups {
            for process in processes {
                look_after(process, pause, counts, &mut stopped);
            }
        }
        // A process that was asked to end ends, and is started again.
        let is_ending = stack.processes_mut().any(|process| ended.contains(&process.pid()));
        if left.is_empty() && stopped.is_empty() && !is_ending {
            return;
        }
        assert!(Instant::now() < deadline, "seed {}: {counts:?}; not reached: {left:?}", plan.seed);
        sleep(LOOK).await;
    }
}

fn look_after(
    process: &mut Process,
    pause: Duration,
    counts: &mut Counts,
    stopped: &mut HashMap<u32, Instant>,
) {
    let pid = process.pid();
    if let Some(status) = process.exit_status() {
        let is_kill = status.signal() == Some(9);
        // SIGTERM also ends a process that has no handler yet.
        let is_ended = status.success() || status.signal() == Some(15);
        assert!(is_kill || is_ended, "{status}: {}", process.log());
        stopped.remove(&pid);
        counts.kills += u32::from(is_kill);
        process.restart();
    } else if let Some(since) = stopped.get(&pid) {
        if since.elapsed() >= pause {
            stopped.remove(&pid);
            process.cont();
        }
    } else if is_stopped(pid) {
        counts.stops += 1;
        counts.stops_beyond_the_lock += u32::from(pause == BEYOND_LOCK);
        stopped.insert(pid, Instant::now());
    }
}
