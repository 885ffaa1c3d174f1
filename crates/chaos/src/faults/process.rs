//! Faults of a process: killed and started again, stopped beyond its lock and its leases, or with a log that blocks.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_testkit::Role;
use tokio::time::sleep;

use super::RunningFault;
use crate::fault::{Kind, ProcessFault};
use crate::installation::{Installation, Member};

/// How long a process that was started again may take, while its store may be away too.
const READY: Duration = Duration::from_secs(3);

pub(super) async fn make(
    installation: &Installation,
    kind: Kind,
    what: ProcessFault,
    role: Option<Role>,
    rng: &mut StdRng,
) {
    let members = installation.members.iter().filter(|member| role.is_none_or(|role| role == member.role));
    let members: Vec<&Member> = members.collect();
    let member = members[rng.random_range(0..members.len())];
    let history = &installation.history;
    let running = &mut *member.running.lock().await;
    let begun = RunningFault::new(history, kind.name(), kind.class(), Some(running.process.pid()));
    let mut wait = async |low, high| sleep(Duration::from_millis(rng.random_range(low..high))).await;
    match what {
        ProcessFault::Kill => {
            running.kill(history);
            wait(0, 800).await;
            member.restart(running, history);
        }
        ProcessFault::Stop => {
            running.process.stop();
            wait(300, 4_000).await;
            running.process.cont();
        }
        ProcessFault::BlockLog => {
            member.replace(running, false, history);
            wait(500, 3_000).await;
            let end = RunningFault::new(history, kind.name(), kind.class(), Some(running.process.pid()));
            member.replace(running, true, history);
            end.healed();
        }
    }
    if what != ProcessFault::Stop {
        member.wait_ready(READY).await;
    }
    begun.healed();
}
